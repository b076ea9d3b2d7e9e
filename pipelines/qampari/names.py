"""What items are called, out of all of Wikidata and the pages of a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import atomic_write, join
from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.qampari.facts.classes import Numbers
from mapping.qampari.facts.item_sets import ItemSet
from mapping.qampari.facts.names import NAMES, TERM_COLUMNS, TERMS, ItemNames, item_terms, name_items
from pipelines.primitives.gather import Gather
from pipelines.primitives.group_map import GroupMap, GroupWork
from pipelines.primitives.regroup import Regroup
from pipelines.qampari.lookups import Lookup
from pipelines.qampari.plan import ITEMS, Plan, groups_by
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for
from pipelines.transforms.read_table import ReadTable


class WriteItemSet(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, ``Stored``) of rows of ITEMS -> the path of one set of all of them.

    Args:
        path: of the file.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def expand(self, items: Any) -> Any:
        return items | Gather() | "write" >> beam.ParDo(_WriteItemSet(self._path))


class _WriteItemSet(WorkerDoFn):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def process(self, chunks: list[tuple[Key, Stored]]) -> Iterator[str]:
        with named_faults():
            items = ItemSet()
            for _, one in chunks:
                for batch in read_stored(Stored(*one), storage_for(one[0])):
                    items.add(batch["item"].to_numpy())
            with atomic_write(storage_for(self._path), self._path) as file:
                np.save(file, items.bits, allow_pickle=False)
            yield self._path


def read_item_set(path: str) -> ItemSet:
    """Gives a set that ``WriteItemSet`` wrote."""
    with storage_for(path).open_read(path) as file:
        return ItemSet(np.load(file, allow_pickle=False))


class NameItems(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, ``Stored``) of rows of ITEMS -> the same of rows of NAMES; all of them together are for ``item_names``.

    Args:
        plan: of the job.
        name: of the step.
        paths: of the files of items of a release of Wikidata.
    """

    def __init__(self, plan: Plan, name: str, paths: tuple[str, ...]) -> None:
        super().__init__()
        self._plan, self._folder, self._paths = plan, plan.folder(name), paths

    def expand(self, items: Any) -> Any:
        needed = items | "set" >> WriteItemSet(join(self._folder, "needed.npy"))
        by_item = partial(groups_by, column="item", n_groups=self._plan.n_groups)
        terms = (
            items.pipeline
            | "read" >> ReadTable(self._paths, TERM_COLUMNS)
            | "needed" >> beam.ParDo(_Needed(), beam.pvalue.AsSingleton(needed))
            | "terms" >> Regroup(join(self._folder, "terms"), by_item)
        )
        inputs = {"terms": terms, "items": items | "by item" >> Regroup(join(self._folder, "items"), by_item)}
        name = partial(_name, plan=self._plan)
        named = inputs | "name" >> GroupMap(
            name, join(self._folder, "named"), outputs={"names": NAMES}, plain=("names",)
        )
        return named.names


class _Needed(WorkerDoFn):
    def __init__(self) -> None:
        super().__init__()
        self._needed: ItemSet | None = None

    def process(self, element: tuple[Key, pa.RecordBatch], path: str) -> Iterator[tuple[Key, pa.RecordBatch]]:
        key, batch = element
        with named_faults():
            self._needed = self._needed or read_item_set(path)
            yield key, item_terms(batch, self._needed)


def _name(work: GroupWork, *, plan: Plan) -> None:
    items = np.unique(work.table("items", ITEMS)["item"].to_numpy())
    for batch in name_items(items, work.table("terms", TERMS), plan.item_pages()):
        work.write("names", batch)


def item_names(chunks: Sequence[tuple[Key, Stored]], plan: Plan) -> ItemNames:
    """Opens what ``NameItems`` gave."""
    return ItemNames(Lookup(chunks, "item", partial(_groups, n_groups=plan.n_groups)).take)


def _groups(items: Numbers, n_groups: int) -> Numbers:
    return items % n_groups
