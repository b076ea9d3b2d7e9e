"""Reads the entity in a line of the JSON dump: its terms, sitelinks and statements, in the form of the release.

A snak becomes columns of ``Value``. No value is lost: if its type is unknown or its form does not match its type, it is
stored as JSON, with the type ``other``.

Source: https://doc.wikimedia.org/Wikibase/master/php/docs_topics_json.html.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from reprlib import repr as brief
from sys import intern
from typing import Any, NamedTuple

import orjson

from kbsource.errors import RecordError
from kbsource.wikidata.records import Term

SNAKS = ("value", "somevalue", "novalue")
VALUE_TYPES = ("entity", "string", "time", "quantity", "monolingualtext", "globecoordinate", "other")
RANKS = ("preferred", "normal", "deprecated")
ID_NUMBER = r"(?:[1-9]\d{0,8}|[1-3]\d{9})"
"""Regular expression for the number in an id. The number fits into 32 bits, because Wikibase assigns no number above
2,147,483,647.
"""
VALUE_ID = rf"(?:[A-Z]{ID_NUMBER}|L{ID_NUMBER}-[FS][1-9]\d*)"
"""Id of any entity; ids of forms and senses begin with the id of their lexeme."""

FORMS = (*(("value", value_type) for value_type in VALUE_TYPES), ("somevalue", None), ("novalue", None))
"""All possible combinations of the kind of a snak and the type of its value."""
ENTITY, _STRING, _TIME, _QUANTITY, _MONOLINGUAL, _COORDINATE, _OTHER, _SOMEVALUE, _NOVALUE = range(len(FORMS))
_VALUELESS = {"somevalue": _SOMEVALUE, "novalue": _NOVALUE}
OWN_COLUMNS = {
    "monolingualtext": ("language",),
    "quantity": ("unit", "lower", "upper"),
    "time": ("year", "month", "day", "precision", "calendar"),
    "globecoordinate": ("latitude", "longitude", "globe"),
}
"""By type of value: the columns of ``Value`` that only this type uses."""

Snak = tuple[int, str | None, str | None, tuple[Any, ...] | None]
"""Index in ``FORMS``, ``datatype``, ``value``, and the ``OWN_COLUMNS`` of the type; None for missing parts.

A plain tuple, because a dump has billions of them.
"""

# Years were once padded to 11 digits, and have up to 16 digits in cosmology.
_match_time = re.compile(r"([+-]\d{1,16})-(0\d|1[0-2])-([0-2]\d|3[01])T\d\d:\d\d:\d\dZ", re.ASCII).fullmatch
_is_amount = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII).fullmatch
_is_entity_id = re.compile(VALUE_ID, re.ASCII).fullmatch
MONTH_PRECISION, DAY_PRECISION = 10, 11
_NUMBERS = {f"{number:02}": number or None for number in range(32)}
"""Months and days by their two digits. None stands for 00, which means that the month or day is not stated."""
_MAX_PRECISION = 14
_MAX_DEGREES = 360
"""As in Wikibase: the longitudes of some globes run from 0 to 360."""
_LETTERS = {"item": "Q", "property": "P", "lexeme": "L"}
_CALENDARS = {"Q1985727": "gregorian", "Q1985786": "julian"}
# Exceptions raised by the reader of a type if a value has another form.
_FORM_FAULTS = (KeyError, TypeError, ValueError, AttributeError)


def read_snak(snak: dict[str, Any]) -> Snak:
    """Returns the content of a snak.

    Raises:
        RecordError: ``malformed_statement``.
    """
    try:
        kind = snak["snaktype"]
        datatype = snak.get("datatype")
        if type(datatype) is str:
            datatype = intern(datatype)  # so that the values of a row group share one text per datatype
        elif datatype is not None:
            raise RecordError("malformed_statement", f"datatype {brief(datatype)}")
        if kind != "value":
            if kind not in SNAKS:
                raise RecordError("malformed_statement", f"snaktype {brief(kind)}")
            return _VALUELESS[kind], datatype, None, None
        datavalue = snak["datavalue"]
        type_ = datavalue["type"]
        value = datavalue["value"]
    except (KeyError, TypeError, AttributeError) as error:
        raise RecordError("malformed_statement", f"snak without {error}: {brief(snak)}") from error
    reader = _READERS.get(type_) if type(type_) is str else None
    if reader is not None:
        try:
            return reader(datatype, value)
        except _FORM_FAULTS:
            pass
    return _OTHER, datatype, orjson.dumps(datavalue, option=orjson.OPT_SORT_KEYS).decode(), None


def _read_entity(datatype: str | None, value: dict[str, Any]) -> Snak:
    # Dumps before 2016 have no "id"; entities of later types have no "numeric-id".
    found = value.get("id")
    if found is None:
        number = value["numeric-id"]
        if type(number) is not int:
            raise TypeError(number)
        found = f"{_LETTERS[value['entity-type']]}{number}"
    if not _is_entity_id(found):
        raise ValueError(found)
    return ENTITY, datatype, found, None


def _read_string(datatype: str | None, value: str) -> Snak:
    if type(value) is not str:
        raise TypeError(value)
    return _STRING, datatype, value, None


def _read_time(datatype: str | None, value: dict[str, Any]) -> Snak:
    written = value["time"]
    found = _match_time(written)
    precision = value["precision"]
    if found is None or type(precision) is not int or not 0 <= precision <= _MAX_PRECISION:
        raise ValueError(written)
    year, month, day = found.groups()
    calendar = _entity_of(value["calendarmodel"])
    own = (
        int(year),
        _NUMBERS[month] if precision >= MONTH_PRECISION else None,
        _NUMBERS[day] if precision >= DAY_PRECISION else None,
        precision,
        _CALENDARS.get(calendar, calendar),
    )
    return _TIME, datatype, written, own


def _read_quantity(datatype: str | None, value: dict[str, Any]) -> Snak:
    unit, amount = value["unit"], _amount(value["amount"])
    own = (None if unit == "1" else _entity_of(unit), _bound(value.get("lowerBound")), _bound(value.get("upperBound")))
    return _QUANTITY, datatype, amount, own


def _read_monolingual(datatype: str | None, value: dict[str, Any]) -> Snak:
    language, text = value["language"], value["text"]
    if type(language) is not str or type(text) is not str:
        raise TypeError(value)
    return _MONOLINGUAL, datatype, text, (language,)


def _read_coordinate(datatype: str | None, value: dict[str, Any]) -> Snak:
    latitude, longitude = _degrees(value["latitude"]), _degrees(value["longitude"])
    globe = _entity_of(value["globe"])
    return _COORDINATE, datatype, f"{latitude!r},{longitude!r}", (latitude, longitude, globe)


def _degrees(number: Any) -> float:
    if type(number) not in (int, float) or not -_MAX_DEGREES <= number <= _MAX_DEGREES:
        raise ValueError(number)
    return float(number)


def _amount(written: str) -> str:
    if not _is_amount(written):
        raise ValueError(written)
    return written.removeprefix("+")


def _bound(written: str | None) -> str | None:
    return None if written is None else _amount(written)


@lru_cache(maxsize=1 << 12)
def _entity_of(address: str) -> str:
    """Returns the id at the end of ``http://www.wikidata.org/entity/Q42``."""
    found = address.rsplit("/", 1)[-1]
    if not _is_entity_id(found):
        raise ValueError(address)
    return found


_READERS: dict[str, Callable[[str | None, Any], Snak]] = {
    "wikibase-entityid": _read_entity,
    "string": _read_string,
    "time": _read_time,
    "quantity": _read_quantity,
    "monolingualtext": _read_monolingual,
    "globecoordinate": _read_coordinate,
}


def object_of(value: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Returns an object of an entity; empty if it is missing, null or ``[]``.

    Raises:
        RecordError: ``invalid_field`` if it has any other value.
    """
    found = value.get(name)
    if type(found) is dict:
        return found
    if found is None or found == []:
        return {}
    raise RecordError("invalid_field", f"{name} is a {type(found).__name__}")


def members(value: Any) -> Iterable[Any]:
    """Returns the members of an array.

    Raises:
        TypeError: the value is not an array.
    """
    if type(value) is list:
        return value
    if type(value) is dict:
        return value.values()
    raise TypeError(f"{brief(value)} is not an array")


def _alone(value: Any) -> tuple[Any]:
    return (value,)


Qualifier = tuple[str, Snak]
"""Property and snak."""
ReadStatement = tuple[str, int, Snak, tuple[Qualifier, ...]]
"""Property, index of the rank in ``RANKS``, main snak, qualifiers."""

_PROPERTY_ID = re.compile(rf"P{ID_NUMBER}", re.ASCII)
_RANK_PLACES = {rank: place for place, rank in enumerate(RANKS)}
_NO_QUALIFIERS: tuple[Any, ...] = (None, [], {})


class _Properties(dict[str, bool]):
    """Looks up whether a property is wanted. If all are wanted, a key that is not a property raises RecordError
    ``malformed_statement``.
    """

    def __init__(self, chosen: frozenset[str] | None) -> None:
        super().__init__(dict.fromkeys(chosen or (), True))
        self._takes_all = chosen is None

    def __missing__(self, property_id: str) -> bool:
        if self._takes_all and not _PROPERTY_ID.fullmatch(property_id):
            raise RecordError("malformed_statement", f"a statement of {brief(property_id)}, which is not a property")
        self[property_id] = self._takes_all
        return self._takes_all


MUL = "mul"
"""Language of labels and aliases that apply to all languages (names of people, titles)."""
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
"""Qualifiers that determine when, for what and with what certainty a statement holds."""

_ID = re.compile(rf"([A-Z])({ID_NUMBER})(?:-[A-Z][1-9]\d*)?", re.ASCII)
_KIND_LETTERS = {"item": "Q", "property": "P"}
_MAX_REVISION = (1 << 63) - 1
_NO_MEMORY = "Not enough memory"
_KEY = re.compile(rb'"id":\s*"([A-Z][1-9]\d{0,9})"')
_KEY_BYTES = 4096


class Entity(NamedTuple):
    """One entity, with the data that is released."""

    #: ``item``, ``property``, or a type that is not in the release (``lexeme``, …), of which only the id is read
    kind: str
    entity_id: str  #: ``Q42``
    number: int  #: number in the id
    revision_id: int | None = None  #: None if the dump lacks it
    datatype: str | None = None  #: datatype of a property, else None
    #: ``labels``, ``descriptions``, ``aliases``: those in the chosen languages, as in the dump
    labels: tuple[Term, ...] = ()
    descriptions: tuple[Term, ...] = ()
    aliases: tuple[Term, ...] = ()
    label: Term | None = None  #: the label to show, if any
    #: sitelinks to the chosen wikis, as two parallel sequences: the wikis, and the titles
    sitelinks: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    n_sitelinks: int = 0  #: number of sitelinks to all wikis
    statements: tuple[ReadStatement, ...] = ()  #: in the order of the dump


class _Languages(dict[str, bool]):
    """Looks up whether a language is wanted: the chosen languages, their variants (``en-gb`` of ``en``), and
    ``mul``.
    """

    def __init__(self, chosen: tuple[str, ...]) -> None:
        super().__init__(dict.fromkeys((*chosen, MUL), True))
        self._prefixes = tuple(f"{language}-" for language in chosen)

    def __missing__(self, language: str) -> bool:
        found = self[language] = language.startswith(self._prefixes)
        return found


class EntityReader:
    """Reads entities. It holds the selection; create one per process."""

    def __init__(
        self, *, languages: tuple[str, ...], sites: frozenset[str] | None, qualifiers: frozenset[str] | None
    ) -> None:
        """Prepares the selection.

        Args:
            languages: languages of labels, descriptions and aliases, the preferred one first.
            sites: wikis whose sitelinks are included; None for all.
            qualifiers: properties of the qualifiers that are included; None for all.
        """
        self._order = languages
        self._wanted = {"languages": languages, "sites": sites or (), "qualifiers": qualifiers or ()}
        self._languages, self._sites = _Languages(languages), sites
        self._properties, self._qualifiers = _Properties(None), _Properties(qualifiers)

    def read(self, line: bytes) -> Entity:
        """Returns the entity in a line. The line must not contain the commas and brackets of the array.

        Raises:
            RecordError: ``malformed_json``, ``missing_field``, ``invalid_field``, ``entity_redirect``,
                ``malformed_statement``.
        """
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            if _NO_MEMORY in str(error):  # the cause is not the line
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
        if kind not in _KIND_LETTERS:
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
            self._terms(value, "aliases", members),
            shown_term(labels, self._order),
            self._wanted_sitelinks(sitelinks),
            len(sitelinks),
            self._statements(entity_id, object_of(value, "claims")),
        )

    def wanted_in(self, kind: str, names: Collection[str]) -> set[str]:
        """Returns those of the chosen ``languages``, ``sites`` or ``qualifiers`` that occur among the names, themselves
        or as a variant.
        """
        return {
            code for code in self._wanted[kind] if any(name == code or name.startswith(f"{code}-") for name in names)
        }

    def _terms(
        self, value: Mapping[str, Any], name: str, terms_in: Callable[[Any], Iterable[Any]] = _alone
    ) -> tuple[Term, ...]:
        found, wanted = object_of(value, name), self._languages
        try:
            # The key is the language. The value may name another language, from which the term was taken as a fallback.
            own = [(language, found[language]) for language in found if wanted[language]]
            return tuple([Term(language, _text(term["value"])) for language, terms in own for term in terms_in(terms)])
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"{name}: {error!r}") from error

    def _wanted_sitelinks(self, sitelinks: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        wanted = self._sites
        if wanted is not None:
            sitelinks = {site: link for site, link in sitelinks.items() if site in wanted}
        titles = []
        try:
            for link in sitelinks.values():
                title = link["title"]
                if type(title) is not str or not title:
                    raise TypeError(f"{brief(title)} is not a title")
                titles.append(title)
        except (KeyError, TypeError) as error:
            raise RecordError("invalid_field", f"sitelinks: {error!r}") from error
        return tuple(sitelinks), tuple(titles)

    def _statements(self, entity_id: str, claims: Mapping[str, Any]) -> tuple[ReadStatement, ...]:
        found: list[ReadStatement] = []
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
        return tuple(
            [
                (property_id, read_snak(snak))
                for property_id, snaks in qualifiers.items()
                if wanted[property_id]
                for snak in members(snaks)
            ]
        )


def shown_term(terms: Sequence[Term], languages: Sequence[str]) -> Term | None:
    """Returns the term in the first of the chosen languages that has one, or else in ``mul``, or else in a variant;
    None if there are no terms.
    """
    if not terms:
        return None
    by_language = {term.language: term for term in terms}
    for language in (*languages, MUL):
        if language in by_language:
            return by_language[language]
    return min(terms)


def entity_key(line: bytes) -> str:
    """Returns the id in a line that cannot be read; an empty string if no id is found."""
    found = _KEY.search(line[:_KEY_BYTES])
    return found[1].decode("ascii") if found else ""


def _fits(found: re.Match[str], kind: str) -> bool:
    """Returns whether an id matches the type of its entity. Only items have the letter Q, and only properties the
    letter P.
    """
    if kind in _KIND_LETTERS or found[1] in _KIND_LETTERS.values():
        return found[0] == f"{_KIND_LETTERS.get(kind)}{found[2]}"
    return True


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"{brief(value)} is not a text")
    return value
