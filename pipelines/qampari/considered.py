"""What became of every query that was considered, written as it is settled."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kbsource.files import LocalStorage
from kbsource.staging import StagedRows, read_batches, staged_rows
from mapping.qampari.rows import QueryRow
from mapping.qampari.schema import QUERIES

if TYPE_CHECKING:
    from pipelines.qampari.facts import FactStage

_ROWS_AT_ONCE = 8192


class Considerations:
    """Takes queries as they are settled. A context: afterwards they can be read.

    Attributes:
        funnel: by subset how many queries came how far, and answers of these.
        facts: by kind of facts how many there were, were found, judged and proved.
    """

    def __init__(self, staging: str) -> None:
        self._path = os.path.join(staging, "queries.arrow")
        self._opened: AbstractContextManager[StagedRows] = staged_rows(LocalStorage(), self._path, QUERIES)
        self._sink: StagedRows | None = None
        self.funnel: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.facts: dict[str, dict[str, int]] = {}

    def __enter__(self) -> Considerations:
        self._sink = self._opened.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, trace)

    def add(self, one: QueryRow) -> None:
        """Takes a query."""
        assert self._sink is not None
        self._sink.add(one)
        if self._sink.n_pending == _ROWS_AT_ONCE:
            self._sink.flush()
        counts = self.funnel[one.subset]
        counts.update(["queries", one.outcome])
        counts["answers"] += one.n_answers
        for name in ("n_with_page", "n_aligned", "n_validated"):
            value: Any = getattr(one, name)
            counts[f"answers_{name.removeprefix('n_')}"] += value or 0

    def count_stage(self, name: str, stage: FactStage) -> None:
        """Takes the counts of a kind of facts."""
        self.facts[name] = {"all": stage.n_facts, "searches": stage.n_searches, **dict(sorted(stage.counts.items()))}

    def rows(self) -> Iterator[QueryRow]:
        """Gives all of them in the order they came."""
        for batch in read_batches(LocalStorage(), self._path):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                subset, key, property_ids, entity_ids, *rest = row
                yield QueryRow(subset, key, tuple(property_ids), tuple(entity_ids), *rest)
