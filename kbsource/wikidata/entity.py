"""A line of the JSON dump -> an Entity: its terms, sitelinks and statements as they are released.

PHP writes an empty object as ``[]``; wherever the format has an object, an empty array is one.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from kbsource.wikidata.values import RANKS, Columns, read_snak

MUL = "mul"
"""Language of labels and aliases that hold in all languages (names of people, titles)."""
NEEDED_QUALIFIERS = (
    "P580",  # start time
    "P582",  # end time
    "P585",  # point in time
    "P1319",  # earliest date
    "P1326",  # latest date
    "P1264",  # valid in period
    "P1545",  # series ordinal
    "P518",  # applies to part
    "P642",  # of
    "P453",  # character role
    "P1686",  # for work
    "P3831",  # object of statement has role
    "P2868",  # subject has role
    "P1534",  # end cause
    "P1480",  # sourcing circumstances
    "P5102",  # nature of statement
    "P2241",  # reason for deprecated rank
)
"""Qualifiers that decide when, for what and how surely a statement holds."""

_ID = re.compile(r"([A-Z])([1-9]\d{0,9})(?:-[A-Z][1-9]\d*)?", re.ASCII)
_MAX_NUMBER = (1 << 32) - 1
_NO_MEMORY = "Not enough memory"
_KEY = re.compile(rb'"id":\s*"([A-Z][1-9]\d{0,9})"')
_KEY_BYTES = 4096


class Term(NamedTuple):
    """A label, description or alias."""

    language: str
    text: str


class Sitelink(NamedTuple):
    """A page about the item; a row of the table ``sitelinks`` but for the item."""

    site: str
    title: str


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity, as far as it is released.

    Attributes:
        kind: ``item``, ``property``, or another type that is not released (``lexeme``, …); of those nothing but the id
            is read.
        entity_id: ``Q42``.
        number: number in the id.
        revision_id: None where the dump does not tell.
        datatype: of a property, else None.
        labels, descriptions, aliases: in the chosen languages, as dumped.
        label: the one to show, None without one.
        sitelinks: to the chosen wikis.
        n_sitelinks: to all wikis.
        statements: rows of the table ``statements``.
    """

    kind: str
    entity_id: str
    number: int
    revision_id: int | None = None
    datatype: str | None = None
    labels: tuple[Term, ...] = ()
    descriptions: tuple[Term, ...] = ()
    aliases: tuple[Term, ...] = ()
    label: Term | None = None
    sitelinks: tuple[Sitelink, ...] = ()
    n_sitelinks: int = 0
    statements: tuple[Columns, ...] = ()


class _Languages(dict[str, bool]):
    """Whether a language is wanted: chosen, a variant of a chosen one (``en-gb`` of ``en``), or ``mul``."""

    def __init__(self, chosen: tuple[str, ...]) -> None:
        super().__init__(dict.fromkeys((*chosen, MUL), True))
        self._prefixes = tuple(f"{language}-" for language in chosen)

    def __missing__(self, language: str) -> bool:
        self[language] = found = language.startswith(self._prefixes)
        return found


class EntityReader:
    """Reads entities. Holds what is wanted of them; make one for each process."""

    def __init__(
        self,
        *,
        languages: tuple[str, ...],
        sites: frozenset[str] | None,
        qualifiers: frozenset[str] | None,
    ) -> None:
        """Prepares.

        Args:
            languages: of labels, descriptions and aliases, the preferred one first.
            sites: wikis whose sitelinks are wanted; None for all.
            qualifiers: properties of the qualifiers that are wanted; None for all.
        """
        self._order = languages
        self._languages = _Languages(languages)
        self._sites = sites
        self._qualifiers = qualifiers

    def read(self, line: bytes) -> Entity:
        """Gives the entity of a line, without the commas and brackets around it.

        Raises:
            RecordError: ``malformed_json``, ``missing_field``, ``invalid_field``, ``entity_redirect``,
                ``malformed_statement``.
        """
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if _NO_MEMORY in str(error):  # no fault of the line's form
                raise MemoryError from error
            raise RecordError("malformed_json", str(error)) from error
        if type(value) is not dict:
            raise RecordError("malformed_json", f"{type(value).__name__}, not an object")
        entity_id, kind = value.get("id"), value.get("type")
        if "redirect" in value:
            raise RecordError("entity_redirect", f"{value.get('entity', entity_id)!r} to {value['redirect']!r}")
        if entity_id is None or kind is None:
            raise RecordError("missing_field", "id" if entity_id is None else "type")
        found = _ID.fullmatch(entity_id) if type(entity_id) is str else None
        if found is None or int(found[2]) > _MAX_NUMBER or type(kind) is not str:
            raise RecordError("invalid_field", f"id {entity_id!r} of type {kind!r}")
        number = int(found[2])
        if kind not in ("item", "property"):
            return Entity(kind, entity_id, number)
        if found[0] != f"{'Q' if kind == 'item' else 'P'}{number}":
            raise RecordError("invalid_field", f"id {entity_id!r} of type {kind!r}")
        revision_id, datatype = value.get("lastrevid"), value.get("datatype")
        if type(revision_id) is not int and revision_id is not None:
            raise RecordError("invalid_field", f"lastrevid {revision_id!r}")
        if kind == "property" and type(datatype) is not str:
            raise RecordError("missing_field" if datatype is None else "invalid_field", f"datatype {datatype!r}")
        labels = self._terms(value, "labels")
        sitelinks = _object(value, "sitelinks")
        return Entity(
            kind,
            entity_id,
            number,
            revision_id,
            datatype if kind == "property" else None,
            labels,
            self._terms(value, "descriptions"),
            self._aliases(value),
            self._shown(labels),
            self._wanted_sitelinks(sitelinks),
            len(sitelinks),
            self._statements(entity_id, _object(value, "claims")),
        )

    def _terms(self, value: Mapping[str, Any], name: str) -> tuple[Term, ...]:
        wanted = self._languages
        try:
            # The language is the key; inside, a fallback's own language may stand.
            return tuple(
                [
                    Term(language, _text(term["value"]))
                    for language, term in _object(value, name).items()
                    if wanted[language]
                ]
            )
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"{name}: {error!r}") from error

    def _aliases(self, value: Mapping[str, Any]) -> tuple[Term, ...]:
        wanted = self._languages
        try:
            return tuple(
                [
                    Term(language, _text(term["value"]))
                    for language, terms in _object(value, "aliases").items()
                    if wanted[language]
                    for term in (terms.values() if type(terms) is dict else terms)
                ]
            )
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"aliases: {error!r}") from error

    def _shown(self, labels: tuple[Term, ...]) -> Term | None:
        """Gives the label of the first chosen language that has one, else of ``mul``, else of a variant."""
        if not labels:
            return None
        by_language = {term.language: term for term in labels}
        for language in (*self._order, MUL):
            if language in by_language:
                return by_language[language]
        return min(labels)

    def _wanted_sitelinks(self, sitelinks: Mapping[str, Any]) -> tuple[Sitelink, ...]:
        sites = self._sites
        try:
            return tuple(
                [
                    Sitelink(site, _text(link["title"]))
                    for site, link in sitelinks.items()
                    if sites is None or site in sites
                ]
            )
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"sitelinks: {error!r}") from error

    def _statements(self, entity_id: str, claims: Mapping[str, Any]) -> tuple[Columns, ...]:
        rows: list[Columns] = []
        try:
            for property_id, statements in claims.items():
                for statement in statements:
                    rank = statement["rank"]
                    if rank not in RANKS:
                        raise RecordError("malformed_statement", f"{property_id}: rank {rank!r}")
                    qualifiers = statement.get("qualifiers")
                    rows.append(
                        (
                            entity_id,
                            property_id,
                            rank,
                            *read_snak(statement["mainsnak"]),
                            self._read_qualifiers(qualifiers) if qualifiers else (),
                        )
                    )
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError("malformed_statement", f"{entity_id}: {error!r}") from error
        return tuple(rows)

    def _read_qualifiers(self, qualifiers: Mapping[str, Any]) -> tuple[Columns, ...]:
        wanted = self._qualifiers
        return tuple(
            [
                (property_id, *read_snak(snak))
                for property_id, snaks in qualifiers.items()
                if wanted is None or property_id in wanted
                for snak in snaks
            ]
        )


def entity_key(line: bytes) -> str:
    """Gives the id of a line that cannot be read, as far as it shows; else an empty string."""
    found = _KEY.search(line[:_KEY_BYTES])
    return found[1].decode("ascii") if found else ""


def _object(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Gives an object of the entity; missing, null and ``[]`` are empty ones."""
    found = value.get(name)
    if type(found) is dict:
        return found
    if found is None or found == []:
        return {}
    raise RecordError("invalid_field", f"{name} is a {type(found).__name__}")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is no text")
    return value
