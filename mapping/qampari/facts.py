"""Statements of Wikidata -> facts that questions are made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.classes import N_WORDS, ClassTypes, Numbers, item_numbers

ENDED = "P582"
"""Qualifier of statements that no longer hold: end time."""
_INSTANCE_OF = 31
_BLANKS = "[ \t\r\n\u00a0]+"
_COLUMNS = ("entity_id", "property_id", "rank", "value_type", "value", "language", "year", "qualifiers")


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


def simple_facts(tables: WikidataTables, property_ids: Collection[str], types: ClassTypes) -> Iterator[pa.RecordBatch]:
    """Gives the facts of some properties, as rows of FACTS.

    Left out are statements that are deprecated, that have ended (qualifier P582), whose value is no item, and those of
    properties. Preferred statements do not hide normal ones.

    Args:
        tables: of Wikidata; the statements of an item stand together.
        property_ids: of the facts.
        types: tells the types of the subjects, by their P31.

    Source: QAMPARI's released parser for ended statements; there the rank is not looked at.
    """
    wanted = np.array(sorted(int(one[1:]) for one in property_ids), np.int64)
    for batch in _whole_items(tables):
        current = _current(batch)
        current = current.filter(pc.fill_null(pc.equal(current["value_type"], "entity"), False))
        current = current.filter(pc.starts_with(current["value"], "Q"))
        subjects, properties, values = (item_numbers(current[name]) for name in ("entity_id", "property_id", "value"))
        entities, places = np.unique(subjects, return_inverse=True)
        masks = np.zeros((len(entities), N_WORDS), np.uint64)
        is_instance = properties == _INSTANCE_OF
        np.bitwise_or.at(masks, places[is_instance], types.of_classes(values[is_instance]))
        is_wanted = np.isin(properties, wanted)
        of_subjects = masks[places[is_wanted]]
        columns = [properties[is_wanted], values[is_wanted], subjects[is_wanted], *of_subjects.T]
        yield pa.RecordBatch.from_arrays([pa.array(one) for one in columns], schema=FACTS)


def values_of(
    tables: WikidataTables,
    subjects: Numbers,
    property_ids: Collection[str],
    *,
    value_types: Mapping[str, Collection[str]] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Gives the values that some subjects have, as rows of VALUES; left out is what ``simple_facts`` leaves out.

    Values are items, times (their year, before our era with a minus), amounts, strings and English texts, both with
    white space as pages have it (``evidence.plain_text``). Of times and amounts the first statement of a property
    counts, of the others all.

    Args:
        tables: of Wikidata.
        subjects: numbers of items, ascending.
        property_ids: of the values.
        value_types: by property the types that its values have; others are left out. None: any.
    """
    wanted = pa.array(sorted(property_ids), pa.string())
    for batch in _whole_items(tables):
        batch = batch.filter(pc.is_in(batch["property_id"], wanted))
        if value_types is not None:
            batch = batch.filter(_have_types(batch, value_types))
        batch = batch.filter(pa.array(_are_among(subjects, item_numbers(batch["entity_id"]))))
        current = _current(batch)
        texts = _texts(current)
        is_kept = pc.and_(pc.is_valid(texts), _is_first_or_many(current))
        current, texts = current.filter(is_kept), texts.filter(is_kept)
        columns = [item_numbers(current["entity_id"]), item_numbers(current["property_id"])]
        yield pa.RecordBatch.from_arrays([*map(pa.array, columns), texts], schema=VALUES)


def _are_among(ascending: Numbers, numbers: Numbers) -> npt.NDArray[np.bool_]:
    """Says which numbers are among many others, without a copy of these."""
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    found: npt.NDArray[np.bool_] = ascending[at] == numbers
    return found


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


def _whole_items(tables: WikidataTables) -> Iterator[pa.RecordBatch]:
    """Gives the statements of items, those of an item never in two batches."""
    rest: pa.RecordBatch | None = None
    for read in tables.batches("statements", _COLUMNS):
        batch = read.filter(pc.starts_with(read["entity_id"], "Q"))
        if rest is not None:
            batch = pa.Table.from_batches([rest, batch]).combine_chunks().to_batches()[0]
        if batch.num_rows == 0:
            continue
        last = batch["entity_id"][batch.num_rows - 1]
        n_whole = pc.index(batch["entity_id"], last).as_py()
        rest = batch.slice(n_whole)
        if n_whole:
            yield batch.slice(0, n_whole)
    if rest is not None:
        yield rest
