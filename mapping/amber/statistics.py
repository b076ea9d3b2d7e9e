"""Counts of a collection, beside those of the paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mapping.amber.records import TASKS, AmberSet, Collection, Task

_MEASURES = ("sets", "entities_per_set", "told_apart_per_set", "properties_per_set", "queries", *TASKS)
PUBLISHED: Mapping[str, tuple[float, ...]] = {
    "human": (2093, 2.98, 2.03, 2.84, 23768, 5942, 5942, 11884),
    "nonhuman": (5237, 2.42, 2.06, 2.64, 55216, 13804, 13804, 27608),
}
"""Source: table 2 of the paper, https://aclanthology.org/2021.acl-long.345."""


class CollectionStatistics:
    """Counts the sets of a collection."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._counts: Counter[str] = Counter()
        self._properties: Counter[str] = Counter()

    def add(self, amber_set: AmberSet, n_queries: Mapping[Task, int]) -> None:
        """Takes a set with the number of its queries by task."""
        own = [one for one in amber_set.entities if one.tuples]
        n_tuples = sum(len(one.tuples) for one in own)
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
        shares = {name: round(100 * n / total, 2) for name, n in self._properties.most_common()}
        measures = zip(_MEASURES, own, published, strict=True)
        return {**{name: {"made": one, "published": of} for name, one, of in measures}, "shares": shares}
