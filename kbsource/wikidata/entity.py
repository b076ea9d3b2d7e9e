"""A line of the JSON dump -> an Entity: its terms, sitelinks and statements as they are released.

PHP writes an empty object as ``[]``; wherever the format has an object, an empty array is one.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from reprlib import repr as brief
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from kbsource.wikidata.values import ID_NUMBER, RANKS, Columns, read_snak

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

_ID = re.compile(rf"([A-Z])({ID_NUMBER})(?:-[A-Z][1-9]\d*)?", re.ASCII)
_PROPERTY_ID = re.compile(rf"P{ID_NUMBER}", re.ASCII)
_LETTERS = {"item": "Q", "property": "P"}
_MAX_REVISION = (1 << 63) - 1
_NO_QUALIFIERS: tuple[Any, ...] = (None, [], {})
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
        self._qualifiers = _Properties(qualifiers)
        self._properties = _Properties(None)

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
            source, target = value.get("entity", entity_id), value["redirect"]
            raise RecordError("entity_redirect", f"{brief(source)} to {brief(target)}")
        if entity_id is None or kind is None:
            raise RecordError("missing_field", "id" if entity_id is None else "type")
        found = _ID.fullmatch(entity_id) if type(entity_id) is str else None
        if found is None or type(kind) is not str or not _fits(found, kind):
            raise RecordError("invalid_field", f"id {brief(entity_id)} of type {brief(kind)}")
        number = int(found[2])
        if kind not in _LETTERS:
            return Entity(kind, entity_id, number)
        revision_id, datatype = value.get("lastrevid"), value.get("datatype")
        if revision_id is not None and not (type(revision_id) is int and 0 <= revision_id <= _MAX_REVISION):
            raise RecordError("invalid_field", f"lastrevid {brief(revision_id)}")
        if kind == "property" and type(datatype) is not str:
            raise RecordError("missing_field" if datatype is None else "invalid_field", f"datatype {brief(datatype)}")
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
            shown_term(labels, self._order),
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
                    for term in _list(terms)
                ]
            )
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"aliases: {error!r}") from error

    def _wanted_sitelinks(self, sitelinks: Mapping[str, Any]) -> tuple[Sitelink, ...]:
        sites = self._sites
        new = tuple.__new__  # what a NamedTuple's constructor calls after a Python frame of its own
        found = []
        try:
            for site, link in sitelinks.items():
                if sites is None or site in sites:
                    title = link["title"]
                    if type(title) is not str or not title:
                        raise TypeError(f"{brief(title)} is no title")
                    found.append(new(Sitelink, (site, title)))
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"sitelinks: {error!r}") from error
        return tuple(found)

    def _statements(self, entity_id: str, claims: Mapping[str, Any]) -> tuple[Columns, ...]:
        rows: list[Columns] = []
        properties = self._properties
        try:
            for property_id, statements in claims.items():
                for statement in _list(statements) if properties[property_id] else ():
                    rank = statement["rank"]
                    if rank not in RANKS:
                        raise RecordError("malformed_statement", f"{property_id}: rank {brief(rank)}")
                    qualifiers = statement.get("qualifiers")
                    if not qualifiers and qualifiers not in _NO_QUALIFIERS:
                        raise TypeError(f"qualifiers are {brief(qualifiers)}")
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
                if wanted[property_id]
                for snak in _list(snaks)
            ]
        )


def shown_term(terms: Sequence[Term], languages: Sequence[str]) -> Term | None:
    """Gives the term of the first chosen language that has one, else of ``mul``, else of a variant; None of none."""
    if not terms:
        return None
    by_language = {term.language: term for term in terms}
    for language in (*languages, MUL):
        if language in by_language:
            return by_language[language]
    return min(terms)


def entity_key(line: bytes) -> str:
    """Gives the id of a line that cannot be read, as far as it shows; else an empty string."""
    found = _KEY.search(line[:_KEY_BYTES])
    return found[1].decode("ascii") if found else ""


def _fits(found: re.Match[str], kind: str) -> bool:
    """Says whether an id is one of the type. Of the letters of items and properties no other type has any."""
    if kind in _LETTERS or found[1] in _LETTERS.values():
        return found[0] == f"{_LETTERS.get(kind)}{found[2]}"
    return True


def _list(value: Any) -> Iterable[Any]:
    """Gives the members of an array; PHP writes one with gaps as an object."""
    if type(value) is list:
        return value
    if type(value) is dict:
        return value.values()
    raise TypeError(f"{brief(value)} is no array")


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
        raise TypeError(f"{brief(value)} is no text")
    return value
