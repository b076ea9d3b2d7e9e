"""Statements of Wikidata -> facts that questions are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mapping.qampari.facts.classes import N_WORDS, ClassTypes, item_numbers
from mapping.qampari.facts.item_sets import ItemSet

ENDED = "P582"
"""Qualifier of statements that no longer hold: end time."""
_INSTANCE_OF = 31
_PROPERTY_BITS = 20
_BLANKS = "[ \t\r\n\u00a0]+"
STATEMENT_COLUMNS = ("entity_id", "property_id", "rank", "value_type", "value", "language", "year", "qualifiers")


def _field(name: str, type_: pa.DataType) -> pa.Field:
    return pa.field(name, type_, nullable=False)


FACTS = pa.schema(
    [
        _field("property", pa.int64()),
        _field("value", pa.int64()),
        _field("subject", pa.int64()),
        *(_field(f"types_{word}", pa.uint64()) for word in range(N_WORDS)),
    ]
)
"""Facts between items, by their numbers, with the types that the subject is an instance of (``ClassTypes``)."""

VALUES = pa.schema([_field("subject", pa.int64()), _field("property", pa.int64()), _field("value", pa.string())])
"""Values of subjects: item, four-digit year, amount, text."""


def simple_facts(batch: pa.RecordBatch, property_ids: Collection[str], types: ClassTypes) -> pa.RecordBatch:
    """Gives the facts of some properties, as rows of FACTS.

    Left out are statements that are deprecated, that have ended (qualifier P582), whose value is no item, and those of
    properties. Preferred statements do not hide normal ones.

    Args:
        batch: statements with ``STATEMENT_COLUMNS``, of any of its entities all.
        property_ids: of the facts.
        types: tells the types of the subjects, by their P31.

    Source: QAMPARI's released parser for ended statements; there the rank is not looked at.
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


def sorted_facts(facts: pa.RecordBatch, most: int) -> pa.RecordBatch:
    """Gives facts, each once, by value, property and subject; of property and value no more than one beyond ``most``.

    So what is passed over for its many subjects is few rows, of each chunk of the statements, from the beginning.
    """
    property_, value, subject = (facts[name].to_numpy() for name in ("property", "value", "subject"))
    pair = value << _PROPERTY_BITS | property_
    order = np.argsort(subject, kind="stable")
    order = order[np.argsort(pair[order], kind="stable")]
    pair, subject = pair[order], subject[order]
    is_first = np.ones(len(pair), np.bool_)
    is_first[1:] = pair[1:] != pair[:-1]
    is_new = is_first.copy()
    is_new[1:] |= subject[1:] != subject[:-1]
    order, is_first = order[is_new], is_first[is_new]
    starts = np.flatnonzero(is_first)
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return facts.take(pa.array(order[place <= most]))


def values_of(
    batch: pa.RecordBatch,
    subjects: ItemSet,
    property_ids: Collection[str],
    *,
    value_types: Mapping[str, Collection[str]] | None = None,
) -> pa.RecordBatch:
    """Gives the values that some subjects have, as rows of VALUES; left out is what ``simple_facts`` leaves out.

    Values are items, times (their year, before our era with a minus), amounts, strings and English texts, both with
    white space as pages have it (``evidence.plain_text``). Of times and amounts the first statement of a property
    counts, of the others all.

    Args:
        batch: statements with ``STATEMENT_COLUMNS``, of any of its entities all.
        subjects: items.
        property_ids: of the values.
        value_types: by property the types that its values have; others are left out. None: any.
    """
    is_asked = pc.is_in(batch["property_id"], pa.array(sorted(property_ids), pa.string()))
    batch = batch.filter(pc.and_(is_asked, pc.starts_with(batch["entity_id"], "Q")))
    if value_types is not None:
        batch = batch.filter(_have_types(batch, value_types))
    batch = batch.filter(pa.array(subjects.has(item_numbers(batch["entity_id"]))))
    current = _current(batch)
    texts = _texts(current)
    is_kept = pc.and_(pc.is_valid(texts), _is_first_or_many(current))
    current, texts = current.filter(is_kept), texts.filter(is_kept)
    columns = [item_numbers(current["entity_id"]), item_numbers(current["property_id"])]
    return pa.RecordBatch.from_arrays([*map(pa.array, columns), texts], schema=VALUES)


def _have_types(batch: pa.RecordBatch, value_types: Mapping[str, Collection[str]]) -> pa.Array:
    """Says which values are of a type that their property has."""
    properties_of: defaultdict[str, list[str]] = defaultdict(list)
    for property_id, types in value_types.items():
        for one in types:
            properties_of[one].append(property_id)
    fit = pa.array(np.zeros(batch.num_rows, np.bool_))
    for one, properties in sorted(properties_of.items()):
        is_type = pc.fill_null(pc.equal(batch["value_type"], one), False)
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
    """Says which rows are the first of their item and property, or may stand beside others."""
    keys = np.stack([item_numbers(batch["entity_id"]), item_numbers(batch["property_id"])])
    _, first = np.unique(keys, axis=1, return_index=True)
    is_first = np.zeros(batch.num_rows, np.bool_)
    is_first[first] = True
    is_single = pc.is_in(batch["value_type"], pa.array(["time", "quantity"]))
    return pc.or_(pa.array(is_first), pc.invert(is_single))


def _current(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Gives the statements that have a value, are not deprecated and have not ended."""
    qualifiers = pc.struct_field(pc.list_flatten(batch["qualifiers"]), "property_id")
    rows = pc.list_parent_indices(batch["qualifiers"]).to_numpy()
    has_ended = np.zeros(batch.num_rows, np.bool_)
    has_ended[rows[pc.equal(qualifiers, ENDED).to_numpy(zero_copy_only=False)]] = True
    holds = pc.and_(pc.not_equal(batch["rank"], "deprecated"), pc.is_valid(batch["value"]))
    return batch.filter(pc.and_(holds, pa.array(~has_ended)))
