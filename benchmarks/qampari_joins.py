"""QAMPARI's joins alone over made-up facts, two in five of which share one value: facts a second a core, and memory.

One pipeline in this process: facts by value to simple queries, answers by subject to pairs, these to intersections.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa

from benchmarks.environment import machine, table, write_json
from kbsource.runtime.chunks import ChunkKey
from kbsource.runtime.regroup import ByNumber, whole_runs
from mapping.qampari import statements
from mapping.qampari.classes import ClassTypes
from mapping.qampari.questions import QueryNumbers, Relations, SimpleRelation
from mapping.qampari.selection import MOST_SUBJECTS
from mapping.qampari.statements import FACTS, sorted_facts
from pipelines.primitives.group_map import By, GroupWork, groups_for, map_groups
from pipelines.qampari import compositions, simple
from pipelines.qampari.plan import by_query
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.transforms.tables import CHUNK_ROWS

SIZES = (2_000_000, 20_000_000)
_PROPERTIES = (19, 50, 57, 86, 161)
_TYPES = ClassTypes((), np.empty(0, np.int64), np.empty((0, 2), np.uint64))


def _relation(number: int) -> SimpleRelation:
    return SimpleRelation(f"P{number}", "label", "Which", "works", "works", "{entity}", "{entity}")


_RELATIONS = Relations({f"P{number}": _relation(number) for number in _PROPERTIES}, {}, ())


def made_facts(chunk: int, n_facts: int) -> pa.RecordBatch:
    """Gives a chunk of so many facts in all."""
    rng = np.random.default_rng(chunk)
    n_rows = min(CHUNK_ROWS, n_facts - chunk * CHUNK_ROWS)
    is_frequent = rng.random(n_rows) < 0.4
    values = np.where(is_frequent, 5, rng.integers(100, 100 + n_facts // 30, n_rows))
    properties = np.where(is_frequent, 50, np.array(_PROPERTIES)[rng.integers(0, len(_PROPERTIES), n_rows)])
    subjects, none = np.sort(rng.integers(0, n_facts // 3, n_rows)), np.zeros(n_rows, np.uint64)
    return pa.RecordBatch.from_arrays(
        [pa.array(column) for column in (properties, values, subjects, none, none)], FACTS.names
    )


class _Facts(WorkerDoFn):
    def __init__(self, n_facts: int) -> None:
        super().__init__()
        self._n_facts = n_facts

    def process(self, chunk: int) -> Iterator[tuple[ChunkKey, pa.RecordBatch]]:
        batch = made_facts(chunk, self._n_facts).cast(FACTS)
        yield ChunkKey(chunk, 0), sorted_facts(batch, MOST_SUBJECTS)


def _ask(work: GroupWork) -> None:
    numbers = QueryNumbers(())
    facts = whole_runs(work.rows("facts"), simple.FACT_ORDER[:2])
    for query, subjects in statements.simple_answers(facts, _RELATIONS, _TYPES, least=5, most=MOST_SUBJECTS):
        n_answers = np.full(len(subjects), len(subjects))
        work.extend("answers", (np.full(len(subjects), numbers.number(query)), n_answers, subjects, subjects))


def _intersect(work: GroupWork) -> None:
    for _ in statements.intersections(whole_runs(work.rows("pairs"), compositions.INTERSECTION_ORDER[:2]), least=5):
        work.counts["intersections"] += 1


def measure(n_facts: int) -> dict[str, Any]:
    """Gives the figures of one size."""
    n_groups = groups_for(n_facts)
    by_first = by_query("first", n_groups)

    def by(column: str, order: Sequence[str]) -> By:
        return By(ByNumber(column, n_groups), order)

    chunks = list(range(-(-n_facts // CHUNK_ROWS)))
    started = time.process_time()
    for chunk in chunks[:4]:
        made_facts(chunk, n_facts)
    making_s = (time.process_time() - started) * len(chunks) / len(chunks[:4])
    with tempfile.TemporaryDirectory(prefix="kbsource-") as scratch:
        folder = Path(scratch)
        pipeline = new_pipeline(["--runner=FnApiRunner"])
        facts = pipeline | beam.Create(chunks) | beam.Reshuffle() | beam.ParDo(_Facts(n_facts))
        asked = {"facts": facts} | "ask" >> map_groups(
            _ask,
            str(folder / "asked"),
            outputs={"answers": statements.ANSWERS},
            by={"facts": by("value", simple.FACT_ORDER)},
        )
        paired = {"answers": asked["answers"]} | "pair" >> map_groups(
            compositions.join_values,
            str(folder / "paired"),
            outputs={"pairs": statements.PAIRS},
            by={"answers": by("subject", compositions.ANSWER_ORDER)},
        )
        _ = {"pairs": paired["pairs"]} | "intersect" >> map_groups(
            _intersect,
            str(folder / "settled"),
            outputs={},
            by={"pairs": By(by_first, compositions.INTERSECTION_ORDER)},
        )
        started, wall = time.process_time(), time.monotonic()
        run_pipeline(pipeline, "joins")
    cpu_s = time.process_time() - started - making_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return {
        "facts": n_facts,
        "wall_s": time.monotonic() - wall,
        "cpu_s": cpu_s,
        "facts_per_core_s": n_facts / cpu_s,
        "peak_mb": peak_mb,
    }


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.qampari_joins", description=__doc__)
    parser.add_argument("--facts", type=int, nargs="+", default=list(SIZES), help="sizes, ascending")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    rows = [measure(size) for size in args.facts]
    names = ("facts", "wall_s", "cpu_s", "facts_per_core_s", "peak_mb")
    print(
        table(
            ("facts", "wall s", "CPU s", "facts/s a core", "peak MB"),
            [tuple(row[name] for name in names) for row in rows],
        )
    )
    write_json(args.json, {"machine": machine(), "runs": rows})


if __name__ == "__main__":
    main()
