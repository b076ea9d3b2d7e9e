"""The steps of AmbER sets, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import apache_beam as beam

from mapping.amber.records import AmberOptions
from pipelines.amber.alignment import AlignSets
from pipelines.amber.entities import MakeEntities
from pipelines.amber.finish import FinishRelease, rank_values
from pipelines.amber.names import find_names, make_sets
from pipelines.amber.plan import (
    MEMBERS,
    NAME_ORDER,
    OUTCOMES,
    USED,
    WANTED,
    Plan,
    groups_by_text,
    groups_of_names,
)
from pipelines.primitives.gather import Made
from pipelines.primitives.group_map import COUNTS, GroupMap, as_groups
from pipelines.primitives.lookup import WriteItemSet
from pipelines.primitives.regroup import Regroup


class FindNames(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, rows) of NAMES -> ``members``, ``outcomes`` and ``counts``, as a ``GroupMap``.

    Args:
        folder: takes what lies between.
        n_groups: that names are put in.
        n_collections: there are.
        options: the rules.
    """

    def __init__(self, folder: str, n_groups: int, n_collections: int, options: AmberOptions) -> None:
        super().__init__()
        self._folder, self._n_groups = folder, n_groups
        self._find = partial(find_names, n_collections=n_collections, options=options)

    def expand(self, names: Any) -> Any:
        by_name = partial(groups_of_names, n_groups=self._n_groups)
        grouped = names | "by name" >> Regroup(f"{self._folder}/rows", by_name, order=NAME_ORDER)
        return {"names": grouped} | "find" >> GroupMap(
            self._find,
            f"{self._folder}/found",
            outputs={"members": MEMBERS, "outcomes": OUTCOMES},
            orders={"names": NAME_ORDER},
            sorted_by={"outcomes": 2},
        )


def make_release(pipeline: Any, plan: Plan, paths: Mapping[str, tuple[str, ...]], values: Mapping[str, Any]) -> None:
    """Makes a release of AmbER sets.

    Args:
        pipeline: that the steps are added to.
        plan: of the job.
        paths: see ``MakeEntities``.
        values: of the manifest.
    """
    made = Made()
    entities = pipeline | "entities" >> MakeEntities(plan, paths)
    chunks = beam.pvalue.AsList(entities["entities"])
    items = beam.pvalue.AsSingleton(entities["entities"] | "items" >> WriteItemSet(plan.folder("items.npy")))
    names = entities["names"] | "names" >> FindNames(
        plan.folder("names"), plan.n_groups, len(plan.collections), plan.options.rules
    )
    sets = {"members": names["members"] | "members" >> beam.MapTuple(as_groups)} | "sets" >> GroupMap(
        partial(make_sets, plan=plan),
        plan.folder("sets"),
        outputs={"wanted": WANTED, "outcomes": OUTCOMES},
        given=(chunks, items),
        sorted_by={"outcomes": 2},
    )
    settled = sets["wanted"] | "align" >> AlignSets(plan)
    by_value = partial(groups_by_text, column="value", n_groups=plan.n_groups)
    used = {"used": entities["used"] | "by value" >> Regroup(plan.folder("used"), by_value)} | "rank" >> GroupMap(
        rank_values, plan.folder("ranked"), outputs={"used": USED}
    )
    made.add("counts", entities["joined"])
    made.add("counts", entities[COUNTS])
    made.add("signals", settled[COUNTS])
    made.add("used", used["used"])
    for name in ("sets", "tuples"):
        made.add(name, settled[name])
    for step in (names, sets, settled):
        made.add("outcomes", step["outcomes"])
    _ = made.gathered() | "finish" >> beam.ParDo(FinishRelease(plan, values), chunks, items)
