"""Measures only the joins of QAMPARI: facts per second and core, and memory. Two in five of the generated facts share
one value.

SQL joins facts to simple queries, and the answers of simple queries to intersections.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.environment import machine, table, write_json
from kbsource.files import join
from kbsource.runtime.chunks import ChunkKey, Report, chunk_path, rows_batch, write_chunk
from kbsource.runtime.database import MEMORY_MB, insert, ordered_batches
from kbsource.runtime.warehouse import StoredTable, warehouse
from mapping.qampari import joins
from mapping.qampari.joins import QUERY_ANSWERS as ANSWERS
from mapping.qampari.joins import JoinRules
from mapping.qampari.questions import Relations, SimpleRelation
from mapping.qampari.selection import MOST_SUBJECTS, AnswerFilter
from mapping.qampari.statements import FACTS, cut_facts
from pipelines.transforms.tables import CHUNK_ROWS

SIZES = (2_000_000, 20_000_000)
_PROPERTIES = (19, 50, 57, 86, 161)


def _relation(number: int) -> SimpleRelation:
    return SimpleRelation(f"P{number}", "label", "Which", "works", "works", "{entity}", "{entity}")


_RELATIONS = Relations({f"P{number}": _relation(number) for number in _PROPERTIES}, {}, ())


def made_facts(chunk: int, n_facts: int) -> pa.RecordBatch:
    """Returns a chunk of generated facts, out of this number of facts in all."""
    rng = np.random.default_rng(chunk)
    n_rows = min(CHUNK_ROWS, n_facts - chunk * CHUNK_ROWS)
    is_frequent = rng.random(n_rows) < 0.4
    values = np.where(is_frequent, 5, rng.integers(100, 100 + n_facts // 30, n_rows))
    properties = np.where(is_frequent, 50, np.array(_PROPERTIES)[rng.integers(0, len(_PROPERTIES), n_rows)])
    subjects, none = np.sort(rng.integers(0, n_facts // 3, n_rows)), np.zeros(n_rows, np.uint64)
    return pa.RecordBatch.from_arrays(
        [pa.array(column) for column in (properties, values, subjects, none, none)], FACTS.names
    )


def _stored(folder: str, name: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> StoredTable:
    """Writes a table with one chunk for each batch."""
    chunks = []
    for number, batch in enumerate(batches):
        path = chunk_path(join(folder, name), ChunkKey(0, number))
        chunks.append(write_chunk([batch], schema, Report(n_bytes=batch.nbytes), path=path))
    return StoredTable(schema, chunks)


_DECIDED = """
create temp table decided as select query, 'kept' as outcome, count(*) as n_validated from validated group by query;
"""


def _cross(folder: str, facts: StoredTable, memory_mb: int) -> int:
    """Joins facts to simple queries, treats all their answers as validated, and joins the queries to intersections."""
    rules = JoinRules(AnswerFilter(5, MOST_SUBJECTS), MOST_SUBJECTS, takes_all=True)
    relations = rows_batch(joins.relation_rows(_RELATIONS), joins.RELATIONS)
    with warehouse({"facts": facts}, memory_mb=memory_mb) as db:
        db.execute(rules.macros())
        insert(db, "relations", [relations], joins.RELATIONS)
        insert(db, "relation_types", [], joins.RELATION_TYPES)
        db.execute(rules.sql(joins.FIND_QUERIES))
        answers = _stored(folder, "answers", ANSWERS, ordered_batches(db, joins.ALL_ANSWERS, ANSWERS))
    with warehouse({"answers": answers}, memory_mb=memory_mb) as db:
        db.execute(rules.macros())
        db.execute("create temp table validated as select *, subject as fact, true as is_validated from answers")
        db.execute(_DECIDED + rules.sql(joins.CROSS_QUERIES))
        rows = ordered_batches(db, joins.INTERSECTION_ANSWERS, joins.CROSSED)
        _stored(folder, "crossed", joins.CROSSED, rows)
        ((n_intersections,),) = db.execute("select count(*) from intersections").fetchall()
    return int(n_intersections)


def measure(n_facts: int, *, memory_mb: int = MEMORY_MB) -> dict[str, Any]:
    """Returns the figures of one size.

    Args:
        memory_mb: memory limit of the database.
    """
    chunks = range(-(-n_facts // CHUNK_ROWS))
    making_s = 0.0
    with tempfile.TemporaryDirectory(prefix="kbsource-") as folder:

        def made() -> Iterator[pa.RecordBatch]:
            nonlocal making_s
            for chunk in chunks:
                begun = time.process_time()
                batch = made_facts(chunk, n_facts).cast(FACTS)
                making_s += time.process_time() - begun
                yield cut_facts(batch, MOST_SUBJECTS)

        started, wall = time.process_time(), time.monotonic()
        n_intersections = _cross(folder, _stored(folder, "facts", FACTS, made()), memory_mb)
    cpu_s = time.process_time() - started - making_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return {
        "facts": n_facts,
        "intersections": n_intersections,
        "wall_s": time.monotonic() - wall,
        "cpu_s": cpu_s,
        "facts_per_core_s": n_facts / cpu_s,
        "peak_mb": peak_mb,
    }


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.qampari_joins", description=__doc__)
    parser.add_argument("--facts", type=int, nargs="+", default=list(SIZES), help="sizes, ascending")
    parser.add_argument("--memory", type=int, default=MEMORY_MB, help="memory limit of the database, in MB")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    rows = [measure(size, memory_mb=args.memory) for size in args.facts]
    names = ("facts", "intersections", "wall_s", "cpu_s", "facts_per_core_s", "peak_mb")
    print(
        table(
            ("facts", "intersections", "wall s", "CPU s", "facts/s per core", "peak MB"),
            [tuple(row[name] for name in names) for row in rows],
        )
    )
    write_json(args.json, {"machine": machine(), "runs": rows})


if __name__ == "__main__":
    main()
