"""Claims of an entity -> its statements."""

from __future__ import annotations

import re
from collections.abc import Mapping
from reprlib import repr as brief
from typing import Any

from kbsource.errors import RecordError
from kbsource.wikidata.containers import members
from kbsource.wikidata.values import ID_NUMBER, RANKS, Snak, read_snak

Qualifier = tuple[str, Snak]
"""Property and snak."""
Statement = tuple[str, int, Snak, tuple[Qualifier, ...]]
"""Property, place of the rank in ``RANKS``, main snak, qualifiers."""

_PROPERTY_ID = re.compile(rf"P{ID_NUMBER}", re.ASCII)
_RANK_PLACES = {rank: place for place, rank in enumerate(RANKS)}
_NO_QUALIFIERS: tuple[Any, ...] = (None, [], {})


class _Properties(dict[str, bool]):
    """Whether a property is wanted. Where all are, what is no property raises RecordError ``malformed_statement``."""

    def __init__(self, chosen: frozenset[str] | None) -> None:
        super().__init__(dict.fromkeys(chosen or (), True))
        self._takes_all = chosen is None

    def __missing__(self, property_id: str) -> bool:
        if self._takes_all and not _PROPERTY_ID.fullmatch(property_id):
            raise RecordError("malformed_statement", f"a statement of {brief(property_id)}, which is no property")
        self[property_id] = self._takes_all
        return self._takes_all


class StatementReader:
    """Reads statements.

    Args:
        qualifiers: properties of the qualifiers that are wanted; None for all.
    """

    def __init__(self, qualifiers: frozenset[str] | None) -> None:
        self._qualifiers = _Properties(qualifiers)
        self._properties = _Properties(None)

    def read(self, entity_id: str, claims: Mapping[str, Any]) -> tuple[Statement, ...]:
        """Gives the statements in their order.

        Raises:
            RecordError: ``malformed_statement``.
        """
        found: list[Statement] = []
        add, properties, read_qualifiers = found.append, self._properties, self._read_qualifiers
        try:
            for property_id, statements in claims.items():
                for statement in members(statements) if properties[property_id] else ():
                    rank = statement["rank"]
                    place = _RANK_PLACES.get(rank) if type(rank) is str else None
                    if place is None:
                        raise RecordError("malformed_statement", f"{property_id}: rank {brief(rank)}")
                    qualifiers = statement.get("qualifiers")
                    if qualifiers:
                        add((property_id, place, read_snak(statement["mainsnak"]), read_qualifiers(qualifiers)))
                    elif qualifiers in _NO_QUALIFIERS:
                        add((property_id, place, read_snak(statement["mainsnak"]), ()))
                    else:
                        raise TypeError(f"qualifiers are {brief(qualifiers)}")
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError("malformed_statement", f"{entity_id}: {error!r}") from error
        return tuple(found)

    def _read_qualifiers(self, qualifiers: Mapping[str, Any]) -> tuple[Qualifier, ...]:
        wanted = self._qualifiers
        found: list[Qualifier] = []
        for property_id, snaks in qualifiers.items():
            if wanted[property_id]:
                for snak in members(snaks):
                    found.append((property_id, read_snak(snak)))
        return tuple(found)
