"""What items are called, out of all of Wikidata and the pages of a release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from kbsource.errors import named_faults
from kbsource.files import join
from kbsource.runtime.chunks import Key, Stored
from mapping.qampari.facts.classes import Numbers
from mapping.qampari.facts.item_sets import ItemSet
from mapping.qampari.facts.names import NAMES, TERM_COLUMNS, TERMS, ItemNames, item_terms, name_items
from pipelines.primitives.group_map import GroupMap, GroupWork, groups_by
from pipelines.primitives.lookup import Lookup, WriteItemSet, read_item_set
from pipelines.primitives.regroup import Regroup
from pipelines.qampari.plan import ITEMS, Plan
from pipelines.runners.workers import WorkerDoFn
from pipelines.transforms.read_table import ReadTable


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
