"""Writes facts about items, classes and queries to files, and looks them up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Folder
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_stored, rows_batch
from mapping.qampari.classes import (
    ClassTypes,
    ItemSet,
    choose_classes,
    class_types,
    class_uses,
    labelled_items,
    pairs_of_classes,
)
from mapping.qampari.names import NAMES, TERM_COLUMNS, item_terms, name_items
from mapping.qampari.records import ProofText
from pipelines.primitives.lookup import MapRows, read_item_set, write_item_set
from pipelines.primitives.page_texts import PagesPlan, ReleasePages
from pipelines.primitives.shuffle import Checkpoint, CollectSorted, keep_batch
from pipelines.qampari.plan import QampariPlan
from pipelines.runners.workers import do, wired
from pipelines.transforms.tables import ReadTable, read_places

Given = beam.pvalue.AsSingleton
_Chunk = tuple[ChunkKey, pa.RecordBatch]


@wired
def find_classes(
    pipeline: Any,
    plan: QampariPlan,
    paths: Mapping[str, tuple[str, ...]],
    places: Mapping[str, Any],
    lacking: tuple[str, ...],
) -> tuple[Any, Any]:
    """Looks up the classes of answer types. Applied to a pipeline; returns facts about classes and values, and the path
    of the types of all classes.

    The facts are one dict: ``classes`` by label, and ``types`` of the first value by property, if requested.

    Args:
        places: results of ``find_places`` for ``items`` and ``statements``.
        lacking: properties for whose values the type must be determined.
    """
    labels, given = tuple(plan.relations.wanted_types), dict(plan.relations.classes)
    named = (
        places["items"]
        | "items" >> read_places(paths["items"], ("item_id", "labels"))
        | "labels" >> beam.Map(_labels, labels)
        | "labelled" >> CollectSorted()
    )
    chosen = (
        places["statements"]
        | "statements" >> read_places(paths["statements"], ("property_id", "rank", "value_type", "value"))
        | "uses" >> beam.Map(_uses, Given(named), lacking)
        | "choose" >> CollectSorted(partial(_choose, labels=labels, given=given), Given(named))
    )
    types = (
        pipeline
        | "closure" >> ReadTable(paths["classes"], ("class_id", "superclass_id"))
        | "under" >> do(_under, Given(chosen), folder=plan.folder("classes", "under"))
        | "types" >> CollectSorted(partial(_write_types, path=plan.folder("classes", "types.npz")), Given(chosen))
    )
    return chosen, types


def _labels(chunk: _Chunk, labels: tuple[str, ...]) -> tuple[ChunkKey, list[tuple[str, str]]]:
    key, batch = chunk
    return key, labelled_items(batch, labels)


def _uses(
    chunk: _Chunk, named: list[tuple[ChunkKey, list[tuple[str, str]]]], lacking: tuple[str, ...]
) -> tuple[ChunkKey, dict[str, Any]]:
    key, batch = chunk
    types: dict[str, str] = {}
    if lacking:
        is_lacking = pc.is_in(batch["property_id"], pa.array(lacking, pa.string()))
        found = batch.filter(pc.and_(is_lacking, pc.is_valid(batch["value_type"])))
        for property_id, type_ in zip(found["property_id"].to_pylist(), found["value_type"].to_pylist(), strict=True):
            types.setdefault(property_id, type_)
    return key, {"uses": class_uses(batch, {item for _, pairs in named for item, _ in pairs}), "types": types}


def _choose(
    found: list[tuple[ChunkKey, dict[str, Any]]],
    named: list[tuple[ChunkKey, list[tuple[str, str]]]],
    *,
    labels: tuple[str, ...],
    given: dict[str, str],
) -> Iterator[dict[str, dict[str, str]]]:
    items: defaultdict[str, set[str]] = defaultdict(set)
    for _, pairs in named:
        for item, label in pairs:
            items[label].add(item)
    uses, types = Counter[str](), dict[str, str]()
    for _, row in found:
        uses.update(row["uses"])
        types = {**row["types"], **types}
    yield {"classes": choose_classes(labels, items, uses, given=given), "types": types}


def _under(chunk: _Chunk, chosen: dict[str, dict[str, str]], *, folder: str) -> Iterator[tuple[ChunkKey, BatchRef]]:
    key, batch = chunk
    yield key, keep_batch(ChunkKey(*key), pairs_of_classes(batch, chosen["classes"]), folder)


def _write_types(
    chunks: list[tuple[ChunkKey, BatchRef]], chosen: dict[str, dict[str, str]], *, path: str
) -> Iterator[str]:
    batches = (batch for _, chunk in chunks for batch in read_stored(BatchRef(*chunk)))
    types = class_types(batches, chosen["classes"])
    with Folder.of(path).create() as file:
        np.savez(file, labels=np.array(types.labels, np.str_), numbers=types.numbers, masks=types.masks)
    yield path


def read_types(path: str) -> ClassTypes:
    """Returns the types of all classes."""
    with Folder.of(path).open() as file, np.load(file, allow_pickle=False) as arrays:
        return ClassTypes(tuple(arrays["labels"].tolist()), arrays["numbers"], arrays["masks"])


@wired
def name_listed_items(items: Any, plan: PagesPlan, name: str, paths: tuple[str, ...], places: Any) -> Any:
    """Looks up the names of the items that Wikidata has.

    (key, ``BatchRef`` of ITEMS) -> (key, ``BatchRef`` of NAMES).

    ``places`` is the result of ``find_places`` for the files of items at ``paths``.
    """
    needed = items | "set" >> write_item_set(plan.folder(name, "needed.npy"))
    return (
        places
        | "read" >> read_places(paths, TERM_COLUMNS)
        | "name" >> beam.ParDo(MapRows(partial(_named, pages=plan.pages), opens=read_item_set), Given(needed))
        | "checkpoint" >> Checkpoint(plan.folder(name, "named"))
    )


def _named(batch: pa.RecordBatch, needed: ItemSet, *, pages: ReleasePages) -> pa.RecordBatch:
    terms = pa.Table.from_batches([item_terms(batch, needed)])
    named = name_items(np.unique(terms["item"].to_numpy()), terms, pages.of_items())
    table = pa.Table.from_batches(named, NAMES).combine_chunks()
    return next(iter(table.to_batches()), rows_batch((), NAMES))


def proof_texts(rows: pa.RecordBatch | pa.Table) -> list[ProofText]:
    """Returns rows of PROOFS as records."""
    return list(map(ProofText, *(rows[name].to_pylist() for name in ProofText.__struct_fields__)))
