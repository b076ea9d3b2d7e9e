"""A line of the JSON dump -> an Entity: its terms, sitelinks and statements as they are released.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from reprlib import repr as brief
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from kbsource.wikidata.containers import members, object_of
from kbsource.wikidata.statements import Statement, StatementReader
from kbsource.wikidata.values import ID_NUMBER

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
_LETTERS = {"item": "Q", "property": "P"}
_MAX_REVISION = (1 << 63) - 1
_ONLY_TEXT = frozenset([str])
_NO_MEMORY = "Not enough memory"
_KEY = re.compile(rb'"id":\s*"([A-Z][1-9]\d{0,9})"')
_KEY_BYTES = 4096


class Term(NamedTuple):
    """A label, description or alias."""

    language: str
    text: str


class EntitySitelinks(NamedTuple):
    """Pages about an item, as wikis and, at the same places, titles; rows of the table ``sitelinks``."""

    sites: tuple[str, ...]
    titles: tuple[str, ...]


NO_SITELINKS = EntitySitelinks((), ())


class Entity(NamedTuple):
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
        statements: in the order of the dump.
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
    sitelinks: EntitySitelinks = NO_SITELINKS
    n_sitelinks: int = 0
    statements: tuple[Statement, ...] = ()


class _Languages:
    """Languages that are wanted: chosen ones, their variants (``en-gb`` of ``en``), and ``mul``."""

    def __init__(self, chosen: tuple[str, ...]) -> None:
        self._chosen = frozenset((*chosen, MUL))
        self._prefixes = tuple(f"{language}-" for language in chosen)
        self._unwanted: set[str] = set()  # those met so far: most of the hundreds that an entity has

    def wanted_of(self, languages: Iterable[str]) -> list[str]:
        """Gives the wanted ones, in their order."""
        unwanted = self._unwanted
        return [language for language in languages if language not in unwanted and self._is_wanted(language)]

    def _is_wanted(self, language: str) -> bool:
        if language in self._chosen or language.startswith(self._prefixes):
            return True
        self._unwanted.add(language)
        return False


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
        self._wanted = {"languages": languages, "sites": sites or (), "qualifiers": qualifiers or ()}
        self._wanted_of = _Languages(languages).wanted_of
        self._sites = sites
        self._statements = StatementReader(qualifiers)

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
        sitelinks = object_of(value, "sitelinks")
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
            self._statements.read(entity_id, object_of(value, "claims")),
        )

    def wanted_in(self, kind: str, names: Collection[str]) -> set[str]:
        """Gives which of the chosen ``languages``, ``sites`` or ``qualifiers`` are among names, as a variant too."""
        return {one for one in self._wanted[kind] if any(name == one or name.startswith(f"{one}-") for name in names)}

    def _terms(self, value: Mapping[str, Any], name: str) -> tuple[Term, ...]:
        found = object_of(value, name)
        try:
            # The language is the key; inside, a fallback's own language may stand.
            return tuple([Term(language, _text(found[language]["value"])) for language in self._wanted_of(found)])
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"{name}: {error!r}") from error

    def _aliases(self, value: Mapping[str, Any]) -> tuple[Term, ...]:
        found = object_of(value, "aliases")
        try:
            return tuple(
                [
                    Term(language, _text(term["value"]))
                    for language in self._wanted_of(found)
                    for term in members(found[language])
                ]
            )
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"aliases: {error!r}") from error

    def _wanted_sitelinks(self, sitelinks: Mapping[str, Any]) -> EntitySitelinks:
        wanted = self._sites
        if wanted is not None:
            sitelinks = {site: link for site, link in sitelinks.items() if site in wanted}
        try:
            titles = tuple([link["title"] for link in sitelinks.values()])
            if not all(titles) or not _ONLY_TEXT.issuperset(map(type, titles)):
                raise TypeError
        except (KeyError, TypeError):
            raise RecordError("invalid_field", f"sitelinks: {_first_fault(sitelinks)!r}") from None
        return EntitySitelinks(tuple(sitelinks), titles)


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


def _first_fault(sitelinks: Mapping[str, Any]) -> Exception:
    """Gives what is wrong with the first sitelink that has no title."""
    for link in sitelinks.values():
        try:
            title = link["title"]
        except (KeyError, TypeError) as error:
            return error
        if type(title) is not str or not title:
            return TypeError(f"{brief(title)} is no title")
    raise AssertionError("every sitelink has a title")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{brief(value)} is no text")
    return value
