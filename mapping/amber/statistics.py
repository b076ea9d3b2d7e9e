"""Counts of a collection, beside those of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mapping.amber.records import TASKS, AmberSet, Collection, Task

MEASURES = ("sets", "entities_per_set", "told_apart_per_set", "properties_per_set", "queries", *TASKS)
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "human": (2093, 2.98, 2.03, 2.84, 23768, 5942, 5942, 11884),
    "nonhuman": (5237, 2.42, 2.06, 2.64, 55216, 13804, 13804, 27608),
}
_SHARES = (
    "Q5 P641 25.68 Q5 P54 17.25 Q5 P1303 17.01 Q5 P413 12.82 Q5 P607 12.29 Q5 P241 12.22 Q5 P135 2.04 Q5 P185 0.42 "
    "Q5 P157 0.19 Q5 P1441 0.08 Q11424 P161 27.14 Q11424 P58 18.28 Q482994 P175 16.57 Q7725634 P50 11.13 "
    "Q47461344 P50 7.43 Q482994 P264 7.11 Q7366 P175 4.42 Q215380 P264 2.1 Q5398426 P161 2.01 Q5398426 P2437 1.85 "
    "Q4830453 P452 0.65 Q7366 P264 0.62 Q515 P1082 0.24 Q482994 P658 0.21 Q5398426 P58 0.21"
).split()
PUBLISHED_SHARES = {f"{kind} {one}": float(n) for kind, one, n in zip(*(_SHARES[i::3] for i in range(3)), strict=True)}
"""Source: the tables of statistics of the paper, https://aclanthology.org/2021.acl-long.345."""


class CollectionStatistics:
    """Counts the sets of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._counts: Counter[str] = Counter()
        self._properties: Counter[str] = Counter()

    def add(self, amber_set: AmberSet, n_queries: Mapping[Task, int]) -> None:
        """Takes a set with the number of its queries by task."""
        own = [one for one in amber_set.entities if one.tuples]
        n_tuples = sum(len(flag_option.tuples) for flag_option in own)
        self._counts.update(sets=1, entities=len(amber_set.entities), told_apart=len(own), properties=n_tuples)
        self._counts.update(n_queries)
        for entity in own:
            for kind in dict.fromkeys(entity.entity_types):
                for one in entity.tuples:
                    if one.property_id in self._collection.types.get(kind, ()):
                        self._properties[f"{kind} {one.property_id}"] += 1

    def values(self) -> dict[str, Any]:
        """Gives the measures, each with that of the paper, and the share of each property of a type in per cent."""
        counts, n_sets = self._counts, self._counts["sets"] or 1
        means = [round(counts[name] / n_sets, 2) for name in ("entities", "told_apart", "properties")]
        n_queries = [counts[task] for task in TASKS]
        own = (counts["sets"], *means, sum(n_queries), *n_queries)
        published = PUBLISHED.get(self._collection.name, (None,) * len(own))
        total = counts["properties"] or 1
        shares = {
            name: {"made": round(100 * self._properties[name] / total, 2), "published": PUBLISHED_SHARES.get(name)}
            for name in (f"{kind} {stored}" for kind, many in self._collection.types.items() for stored in many)
        }
        measures = zip(MEASURES, own, published, strict=True)
        return {**{name: {"made": one, "published": of} for name, one, of in measures}, "shares": shares}
