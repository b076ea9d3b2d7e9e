"""Classes of answers and kinds of values, out of all of Wikidata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import named_faults
from kbsource.files import atomic_write, join
from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.qampari.facts.classes import (
    ClassTypes,
    choose_classes,
    class_types,
    class_uses,
    labelled_items,
    pairs_of_classes,
)
from pipelines.primitives.checkpoint import Checkpoint
from pipelines.primitives.gather import Gather
from pipelines.qampari.plan import Plan
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for
from pipelines.transforms.read_table import ReadTable

_Chunk = tuple[Key, pa.RecordBatch]


class Classes(NamedTuple):
    """What is known of classes and values.

    Attributes:
        chosen: one dict: ``classes`` by label, and by property the type of the first value where it was asked for.
        types: path of the types of all classes.
    """

    chosen: Any
    types: Any


class FindClasses(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Pipeline -> ``Classes``.

    Args:
        plan: of the job.
        paths: of the files of a release of Wikidata, by table.
        lacking: properties whose values have a type that must be found out.
    """

    def __init__(self, plan: Plan, paths: Mapping[str, tuple[str, ...]], lacking: tuple[str, ...]) -> None:
        super().__init__()
        self._plan, self._paths, self._lacking = plan, paths, lacking

    def expand(self, pipeline: Any) -> Classes:
        folder, relations = self._plan.folder("classes"), self._plan.relations
        labels, given = tuple(relations.wanted_types), dict(relations.classes)
        named = (
            pipeline
            | "items" >> ReadTable(self._paths["items"], ("item_id", "labels"))
            | "labels" >> beam.Map(_labels, labels)
            | "labelled" >> Gather()
        )
        chosen = (
            pipeline
            | "statements" >> ReadTable(self._paths["statements"], ("property_id", "rank", "value_type", "value"))
            | "uses" >> beam.Map(_uses, beam.pvalue.AsSingleton(named), self._lacking)
            | "used" >> Gather()
            | "choose" >> beam.Map(_choose, beam.pvalue.AsSingleton(named), labels, given)
        )
        types = (
            pipeline
            | "closure" >> ReadTable(self._paths["classes"], ("class_id", "superclass_id"))
            | "under" >> beam.Map(_under, beam.pvalue.AsSingleton(chosen))
            | Checkpoint(join(folder, "under"))
            | "all" >> Gather()
            | "types" >> beam.ParDo(_WriteTypes(join(folder, "types.npz")), beam.pvalue.AsSingleton(chosen))
        )
        return Classes(chosen, types)


def _labels(chunk: _Chunk, labels: tuple[str, ...]) -> tuple[Key, list[tuple[str, str]]]:
    key, batch = chunk
    return key, labelled_items(batch, labels)


def _uses(
    chunk: _Chunk, named: list[tuple[Key, list[tuple[str, str]]]], lacking: tuple[str, ...]
) -> tuple[Key, dict[str, Any]]:
    key, batch = chunk
    types: dict[str, str] = {}
    if lacking:
        is_lacking = pc.is_in(batch["property_id"], pa.array(lacking, pa.string()))
        found = batch.filter(pc.and_(is_lacking, pc.is_valid(batch["value_type"])))
        for property_id, type_ in zip(found["property_id"].to_pylist(), found["value_type"].to_pylist(), strict=True):
            types.setdefault(property_id, type_)
    return key, {"uses": class_uses(batch, {item for _, pairs in named for item, _ in pairs}), "types": types}


def _choose(
    found: list[tuple[Key, dict[str, Any]]],
    named: list[tuple[Key, list[tuple[str, str]]]],
    labels: tuple[str, ...],
    given: dict[str, str],
) -> dict[str, dict[str, str]]:
    items: defaultdict[str, set[str]] = defaultdict(set)
    for _, pairs in named:
        for item, label in pairs:
            items[label].add(item)
    uses: dict[str, tuple[int, int]] = {}
    types: dict[str, str] = {}
    for _, one in found:
        for item, (n_uses, n_instances) in one["uses"].items():
            before = uses.get(item, (0, 0))
            uses[item] = before[0] + n_uses, before[1] + n_instances
        types = {**one["types"], **types}
    return {"classes": choose_classes(labels, items, uses, given=given), "types": types}


def _under(chunk: _Chunk, chosen: dict[str, dict[str, str]]) -> tuple[Key, pa.RecordBatch]:
    key, batch = chunk
    return key, pairs_of_classes(batch, chosen["classes"])


class _WriteTypes(WorkerDoFn):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def process(self, chunks: list[tuple[Key, Stored]], chosen: dict[str, dict[str, str]]) -> Iterator[str]:
        with named_faults():
            batches = (batch for _, one in chunks for batch in read_stored(Stored(*one), storage_for(one[0])))
            types = class_types(batches, chosen["classes"])
            with atomic_write(storage_for(self._path), self._path) as file:
                np.savez(file, labels=np.array(types.labels, np.str_), numbers=types.numbers, masks=types.masks)
            yield self._path


def read_types(path: str) -> ClassTypes:
    """Gives the types of all classes."""
    with storage_for(path).open_read(path) as file, np.load(file, allow_pickle=False) as arrays:
        return ClassTypes(tuple(arrays["labels"].tolist()), arrays["numbers"], arrays["masks"])
