"""Makes a set from a name that several entities share.

The set contains the properties that distinguish the entities, first from Wikidata, then also checked in their pages."""

from __future__ import annotations

import hashlib
import importlib
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import inf
from typing import Any

from msgspec.structs import replace

from kbsource.runtime.imports import standing_in
from mapping.amber.records import (
    ITEM,
    QUANTITY,
    AmberEntity,
    AmberOptions,
    AmberSet,
    AmberTuple,
    AmberValue,
    Collection,
    FullValue,
    PageRef,
    SetEntity,
)

LEAST_GAP = 0.1
"""Source: section 3.2 of the paper, https://aclanthology.org/2021.acl-long.345."""


INSTANCE_OF = "P31"
BEARERS_OF_VALUES = ("P3095", "P1535")
"""Properties "practised by" and "used by": the guitarist for a guitar."""


def distinguishing(
    members: Sequence[AmberEntity], collection: Collection, options: AmberOptions
) -> list[tuple[str, ...]]:
    """Returns, for each entity with a name, the properties that only it has and that are listed for one of its types.

    A property counts for an entity even if its values have no names: a question about it would fit that entity too.
    """
    n_with = Counter(property_id for entity in members for property_id in entity.properties)
    most = 1 if options.complex_types else inf
    found = []
    for entity in members:
        n_listed = Counter(property_id for kind in {*entity.types} for property_id in {*collection.types.get(kind, ())})
        found.append(
            tuple(
                property_id
                for property_id in entity.properties
                if n_with[property_id] == 1 and 0 < n_listed[property_id] <= most
            )
        )
    return found


def full_values(values: Sequence[AmberValue], known: Mapping[str, AmberEntity], *, lang: str) -> tuple[FullValue, ...]:
    """Returns values with their names; values without a name are skipped.

    Args:
        known: entities, by id.
    """
    full = (_quantity(value, lang) if value.kind == QUANTITY else _item(value, known) for value in values)
    return tuple(value for value in full if value is not None and value.aliases)


def _quantity(value: AmberValue, lang: str) -> FullValue:
    amount = value.value[1:]
    return FullValue(
        QUANTITY, None, value.value, value.unit, (amount,), number_in_words(amount) if lang == "en" else ()
    )


def _item(value: AmberValue, known: Mapping[str, AmberEntity]) -> FullValue | None:
    entity = known.get(value.value)
    if entity is None:
        return None
    further = {
        alias
        for property_id in BEARERS_OF_VALUES
        for full_value in entity.properties.get(property_id, ())
        if (bearer := known.get(full_value.value)) is not None
        for alias in bearer.aliases
    }
    return FullValue(ITEM, value.value, None, None, entity.aliases, tuple(sorted(further)), entity.types)


_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")


@cache
def _inflect() -> Any:
    """Imports inflect without the type checks of typeguard, which parses the whole source of a module for each function
    that it checks. This takes two seconds, and ``_NUMBER`` checks the only argument.
    """
    with standing_in({"typeguard": {"typechecked": lambda function: function}}):
        return importlib.import_module("inflect")  # here, because command options are read without it


def number_in_words(amount: str) -> tuple[str, ...]:
    """Returns a number in English words, as in the authors' code; empty for more than 36 digits, or if it is not a
    number.

    >>> number_in_words("12"), number_in_words("1001.5"), number_in_words("1" + "0" * 40)
    (('twelve',), ('one thousand and one point five',), ())
    """
    if _NUMBER.fullmatch(amount) is None:
        return ()
    inflect = _inflect()
    try:
        return (str(inflect.engine().number_to_words(amount)),)
    except inflect.NumOutOfRangeError:
        return ()


def amber_id(name: str, qid: str, property_id: str) -> str:
    """Returns the id of a tuple.

    >>> amber_id("Abe Lincoln", "Q91", "P607")
    '6981ec17f0438a7cc94fff740cc9bb23'
    """
    return hashlib.md5(repr([name, qid, property_id]).encode(), usedforsecurity=False).hexdigest()


def make_set(
    name: str,
    members: Sequence[tuple[AmberEntity, bool]],
    known: Mapping[str, AmberEntity],
    collection: Collection,
    options: AmberOptions,
) -> AmberSet:
    """Returns the set for a name, before any page is searched.

    Args:
        members: entities of the collection, each with whether it is a head.
        known: entities that provide the names of values, by id.
    """
    ordered = sorted(members, key=lambda member: int(member[0].qid[1:]))
    property_ids = distinguishing([entity for entity, _ in ordered], collection, options)
    entities = (
        SetEntity(
            entity.qid,
            entity.popularity,
            is_head,
            entity.aliases,
            entity.types,
            (),
            tuple(_tuples(name, entity, own, known, collection, options.lang)),
        )
        for (entity, is_head), own in zip(ordered, property_ids, strict=True)
    )
    return AmberSet(name, tuple(entities))


def _tuples(
    name: str,
    entity: AmberEntity,
    property_ids: Iterable[str],
    known: Mapping[str, AmberEntity],
    collection: Collection,
    lang: str,
) -> Iterable[AmberTuple]:
    for property_id in property_ids:
        if values := full_values(entity.properties[property_id], known, lang=lang):
            yield AmberTuple(
                property_id,
                collection.labels.get(property_id, property_id),
                amber_id(name, entity.qid, property_id),
                (),
                values,
            )


def lacking(amber_set: AmberSet, stage: str) -> str | None:
    """Returns why a set is rejected: ``few_STAGE`` or ``no_head_STAGE``; None if it is valid, which requires two
    entities with tuples, one of them a head."""
    distinguished = [entity for entity in amber_set.entities if entity.tuples]
    if len(distinguished) < 2:
        return f"few_{stage}"
    return None if any(entity.is_head for entity in distinguished) else f"no_head_{stage}"


N_TOKENS = 350
"""Source: section 3.3 of the paper, https://aclanthology.org/2021.acl-long.345."""
_ARTICLE = re.compile(r"\b(a|an|the)\b")
_UNPUNCTUATED = str.maketrans("-", " ", string.punctuation.replace("-", ""))


def normalised(text: str) -> list[str]:
    """Returns the words of a text, normalised as for comparing answers.

    >>> normalised("The Spider-Man's 1,234")
    ['spider', 'mans', '1234']
    """
    return _ARTICLE.sub(" ", text.lower().translate(_UNPUNCTUATED)).split()


class PageBeginning:
    """The beginning of a page, which is searched for names. Its text is KILT's paragraphs, joined by spaces."""

    def __init__(self, page: PageRef, text: str) -> None:
        self.page = page
        self._words = _joined(normalised(" ".join(text.split()[:N_TOKENS])))

    def names(self, alias: str) -> bool:
        """Returns whether the words of an alias occur in sequence; False for an alias without words."""
        words = normalised(alias)
        return bool(words) and _joined(words) in self._words


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "


def align_entity(entity: SetEntity, passages: Sequence[PageBeginning]) -> SetEntity:
    """Returns an entity with its pages, and with its properties for which a page names a value."""
    aligned = (_aligned(amber_tuple, passages) for amber_tuple in entity.tuples)
    return replace(
        entity,
        wikipedia=tuple(passage.page for passage in passages),
        tuples=tuple(amber_tuple for amber_tuple in aligned if amber_tuple.provenance),
    )


def _aligned(amber_tuple: AmberTuple, passages: Sequence[PageBeginning]) -> AmberTuple:
    found: dict[PageRef, None] = {}
    values = []
    for value in amber_tuple.values:
        of_value = [passage.page for alias in value.aliases for passage in passages if passage.names(alias)]
        found.update(dict.fromkeys(of_value))
        values.append(replace(value, found_in_passage=bool(of_value)))
    return replace(amber_tuple, provenance=tuple(found), values=tuple(values))
