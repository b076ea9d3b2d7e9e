"""Measures the search for the names of AmbER sets: aliases per second and core, and memory, with generated entities.

``python -m benchmarks.amber_names --entities 1000000 --hot 0.001``
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from kbsource.runtime.database import connected, insert
from mapping.amber.names import FACTS, ITEM_KIND, TERMS, VIEWED, find_names, named_sets
from mapping.amber.records import AmberOptions, load_collections

_ROWS = 1 << 14
_ALIASES = 3


def made_rows(chunk: int, hot: float) -> tuple[pa.RecordBatch, pa.RecordBatch, pa.RecordBatch]:
    """Generates rows of VIEWED, TERMS and FACTS. One name has a share of all aliases; every other name has one or a few
    entities.

    Args:
        hot: share of the aliases that have the most frequent name.
    """
    rng = np.random.default_rng(chunk)
    own = chunk * _ROWS + np.arange(1, _ROWS + 1)
    items = np.repeat(own, _ALIASES)
    numbers = np.where(rng.random(len(items)) < 0.5, rng.integers(0, 300_000, len(items)), 1_000_000 + items)
    texts = [
        "John Smith" if is_hot else f"Name {number} of the {'house' if number % 2 else 'line'}"
        for number, is_hot in zip(numbers.tolist(), (rng.random(len(items)) < hot).tolist(), strict=True)
    ]
    types = np.array(["Q5", "Q11424", "Q1"])[rng.integers(0, 3, _ROWS)]
    fixed = [np.full(_ROWS, value) for value in (0, 31, ITEM_KIND)]
    columns = (
        (VIEWED, (own, np.full(_ROWS, -1), rng.integers(5, 1_000_000, _ROWS))),
        (TERMS, (items, np.tile(np.arange(_ALIASES), _ROWS), texts)),
        (FACTS, (own, *fixed, types, pa.nulls(_ROWS, pa.string()))),
    )
    viewed, terms, facts = (pa.record_batch(list(map(pa.array, values)), schema=schema) for schema, values in columns)
    return viewed, terms, facts


def measure(n_entities: int, hot: float) -> dict[str, float]:
    """Returns the aliases per second, without the time to generate rows, and the peak memory of the process in MB."""
    n_chunks, seconds = -(-n_entities // _ROWS), 0.0
    with tempfile.TemporaryDirectory() as folder, connected(threads=1, scratch=folder) as db:
        for chunk in range(n_chunks):
            for name, batch in zip(("viewed", "terms", "facts"), made_rows(chunk, hot), strict=True):
                started = time.process_time()
                insert(db, name, [batch], batch.schema)
                seconds += time.process_time() - started
        started = time.process_time()
        find_names(db, load_collections(None, (), "corrected"), AmberOptions())
        n_members = sum(len(named.members) for named in named_sets(db))
        seconds += time.process_time() - started
        n_bytes = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {
        "aliases": n_chunks * _ROWS * _ALIASES,
        "members": n_members,
        "seconds": seconds,
        "aliases_per_second": n_chunks * _ROWS * _ALIASES / seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "disk_mb": n_bytes / 1e6,
    }


def main(argv: list[str] | None = None) -> int:
    """Measures, and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, nargs="+", default=[200_000])
    parser.add_argument(
        "--hot", type=float, default=0.001, help="share of the aliases that have the most frequent name"
    )
    args = parser.parse_args(argv)
    for n_entities in args.entities:
        print(n_entities, {name: round(value, 1) for name, value in measure(n_entities, args.hot).items()})
    return 0


if __name__ == "__main__":
    main()
