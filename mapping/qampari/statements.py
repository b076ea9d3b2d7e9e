"""Converts Wikidata statements to facts and values, batch by batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mapping.qampari.classes import N_WORDS, ClassTypes, ItemSet, item_numbers, required

ENDED = "P582"
"""End time: the qualifier of statements that are no longer valid."""
_INSTANCE_OF = 31
_PROPERTY_BITS = 20
_BLANKS = "[ \t\r\n\u00a0]+"
STATEMENT_COLUMNS = ("entity_id", "property_id", "rank", "value_type", "value", "language", "year", "qualifiers")


FACTS = pa.schema(
    [
        *required("property", "value", "subject"),
        *required(*(f"types_{word}" for word in range(N_WORDS)), of=pa.uint64()),
    ]
)
"""Facts between items, by number, with the types of the subject (``ClassTypes``)."""

VALUES = pa.schema([*required("subject", "property"), *required("value", of=pa.string())])
"""Values of subjects: item, four-digit year, amount, text."""


def simple_facts(batch: pa.RecordBatch, property_ids: Collection[str], types: ClassTypes) -> pa.RecordBatch:
    """Returns the facts of some properties, as rows of FACTS.

    Deprecated statements, statements that have ended (qualifier P582), those whose value is not an item, and those
    about properties are left out. Preferred statements do not hide normal ones.

    Args:
        batch: statements with ``STATEMENT_COLUMNS``; for each of its entities, all of them.

    Source: QAMPARI's released parser for ended statements; it ignores the rank.
    """
    wanted = np.array(sorted(int(property_id[1:]) for property_id in property_ids), np.int64)
    is_asked = pc.is_in(batch["property_id"], pa.array([*sorted(property_ids), f"P{_INSTANCE_OF}"]))
    is_item = pc.and_(is_asked, pc.fill_null(pc.equal(batch["value_type"], "entity"), False))
    current = _current(batch.filter(pc.and_(is_item, pc.starts_with(batch["entity_id"], "Q"))))
    current = current.filter(pc.starts_with(current["value"], "Q"))
    subjects, properties, values = (item_numbers(current[name]) for name in ("entity_id", "property_id", "value"))
    entities, places = np.unique(subjects, return_inverse=True)
    masks = np.zeros((len(entities), N_WORDS), np.uint64)
    is_instance = properties == _INSTANCE_OF
    np.bitwise_or.at(masks, places[is_instance], types.of_classes(values[is_instance]))
    is_wanted = np.isin(properties, wanted)
    of_subjects = masks[places[is_wanted]]
    columns = [properties[is_wanted], values[is_wanted], subjects[is_wanted], *of_subjects.T]
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=FACTS)


def cut_facts(facts: pa.RecordBatch, most: int) -> pa.RecordBatch:
    """Returns facts with at most ``most`` + 1 distinct subjects per property and value.

    Pairs that will be skipped for their many subjects are thus reduced to few rows from the beginning, in each chunk of
    the statements.
    """
    property_, value, subject = (facts[name].to_numpy() for name in ("property", "value", "subject"))
    pair = value << _PROPERTY_BITS | property_
    counts = pc.value_counts(pa.array(pair))
    frequent = counts.field("values").to_numpy()[counts.field("counts").to_numpy() > most + 1]
    is_cut = np.isin(pair, frequent)
    places = [np.flatnonzero(~is_cut)]
    for value_pair in frequent:
        own = np.flatnonzero(pair == value_pair)
        _, first = np.unique(subject[own], return_index=True)
        places.append(own[first[: most + 1]])
    return facts.take(pa.array(np.concatenate(places)))


def values_of(
    batch: pa.RecordBatch,
    subjects: ItemSet,
    property_ids: Collection[str],
    *,
    value_types: Mapping[str, Collection[str]] | None = None,
    is_best: bool = False,
) -> pa.RecordBatch:
    """Returns the values of some subjects, as rows of VALUES. The same statements as in ``simple_facts`` are left out.

    Values are items, times (their year, with a minus before our era), amounts, strings and English texts; strings and
    texts have white space as in pages (``evidence.plain_text``). For times and amounts, only the first statement of a
    property is used; for the others, all are.

    Args:
        batch: statements with ``STATEMENT_COLUMNS``; for each of its entities, all of them.
        value_types: by property, the allowed types of its values; others are left out. None: any.
        is_best: preferred statements hide the normal ones of their item and property.
    """
    is_asked = pc.is_in(batch["property_id"], pa.array(sorted(property_ids), pa.string()))
    batch = batch.filter(pc.and_(is_asked, pc.starts_with(batch["entity_id"], "Q")))
    if value_types is not None:
        batch = batch.filter(_have_types(batch, value_types))
    batch = batch.filter(pa.array(subjects.has(item_numbers(batch["entity_id"]))))
    current = _current(batch)
    if is_best:
        current = _preferred(current)
    texts = _texts(current)
    is_kept = pc.and_(pc.is_valid(texts), _is_first_or_many(current))
    current, texts = current.filter(is_kept), texts.filter(is_kept)
    columns = [item_numbers(current["entity_id"]), item_numbers(current["property_id"])]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), texts], schema=VALUES)


def _have_types(batch: pa.RecordBatch, value_types: Mapping[str, Collection[str]]) -> pa.Array:
    """Returns which values are of a type that their property allows."""
    properties_of: defaultdict[str, list[str]] = defaultdict(list)
    for property_id, types in value_types.items():
        for type_id in types:
            properties_of[type_id].append(property_id)
    fit = pa.array(np.zeros(batch.num_rows, np.bool_))
    for type_id, properties in sorted(properties_of.items()):
        is_type = pc.fill_null(pc.equal(batch["value_type"], type_id), False)
        fit = pc.or_(fit, pc.and_(is_type, pc.is_in(batch["property_id"], pa.array(properties, pa.string()))))
    return fit


def _texts(batch: pa.RecordBatch) -> pa.Array:
    kind = batch["value_type"]
    is_english = pc.fill_null(pc.equal(batch["language"], "en"), False)
    is_said = pc.or_(
        pc.is_in(kind, pa.array(["string", "quantity"])),
        pc.or_(
            pc.and_(pc.equal(kind, "entity"), pc.starts_with(batch["value"], "Q")),
            pc.and_(pc.equal(kind, "monolingualtext"), is_english),
        ),
    )
    plain = pc.utf8_trim_whitespace(pc.replace_substring_regex(batch["value"], _BLANKS, " "))
    other = pc.if_else(is_said, plain, pa.scalar(None, pa.string()))
    return pc.if_else(pc.equal(kind, "time"), pc.cast(batch["year"], pa.string()), other)


def _is_first_or_many(batch: pa.RecordBatch) -> pa.Array:
    """Returns which rows are the first of their item and property, or are of a type that allows several values."""
    keys = np.stack([item_numbers(batch["entity_id"]), item_numbers(batch["property_id"])])
    _, first = np.unique(keys, axis=1, return_index=True)
    is_first = np.zeros(batch.num_rows, np.bool_)
    is_first[first] = True
    is_single = pc.is_in(batch["value_type"], pa.array(["time", "quantity"]))
    return pc.or_(pa.array(is_first), pc.invert(is_single))


def _current(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the current statements: with a value, not deprecated, without an end time."""
    qualifiers = pc.struct_field(pc.list_flatten(batch["qualifiers"]), "property_id")
    rows = pc.list_parent_indices(batch["qualifiers"]).to_numpy()
    has_ended = np.zeros(batch.num_rows, np.bool_)
    has_ended[rows[pc.equal(qualifiers, ENDED).to_numpy(zero_copy_only=False)]] = True
    holds = pc.and_(pc.not_equal(batch["rank"], "deprecated"), pc.is_valid(batch["value"]))
    return batch.filter(pc.and_(holds, pa.array(~has_ended)))


def _preferred(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the statements except those that are hidden by a preferred one of the same item and property."""
    keys = item_numbers(batch["entity_id"]) << _PROPERTY_BITS | item_numbers(batch["property_id"])
    _, places = np.unique(keys, return_inverse=True)
    is_preferred = pc.equal(batch["rank"], "preferred").to_numpy(zero_copy_only=False)
    has_preferred = np.zeros(batch.num_rows, np.bool_)
    has_preferred[places[is_preferred]] = True
    return batch.filter(pa.array(is_preferred | ~has_preferred[places]))
