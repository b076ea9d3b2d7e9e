"""The names of AmbER sets: aliases a second and a core, and memory, on made-up entities.

``python -m benchmarks.amber_names --entities 1000000 --hot 0.001``
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import numpy as np
import pyarrow as pa

from kbsource.runtime.chunks import ChunkKey
from mapping.amber.records import AmberOptions
from pipelines.amber.entities import name_rows
from pipelines.jobs.amber import share_names
from pipelines.primitives.group_map import COUNTS, groups_for
from pipelines.primitives.shuffle import CollectSorted
from pipelines.runners.presets import beam_flags
from pipelines.runners.running import new_pipeline, run_pipeline

_ROWS = 1 << 14
_ALIASES = 3


class _Make(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """Number of a chunk -> rows of NAMES: one name that a share of all aliases is, and others of one or a few bearers.

    Args:
        hot: that share.
    """

    def __init__(self, hot: float) -> None:
        super().__init__()
        self._hot = hot

    def process(self, chunk: int) -> Iterator[tuple[ChunkKey, pa.RecordBatch]]:
        rng = np.random.default_rng(chunk)
        items = chunk * _ROWS + np.repeat(np.arange(_ROWS), _ALIASES)
        numbers = np.where(rng.random(len(items)) < 0.5, rng.integers(0, 300_000, len(items)), 1_000_000 + items)
        is_hot = rng.random(len(items)) < self._hot
        texts = [
            "John Smith" if hot else f"Name {number} of the {'house' if number % 2 else 'line'}"
            for number, hot in zip(numbers.tolist(), is_hot.tolist(), strict=True)
        ]
        views = np.repeat(rng.integers(5, 1_000_000, _ROWS), _ALIASES)
        members = np.repeat(rng.integers(0, 4, _ROWS), _ALIASES)
        yield ChunkKey(0, chunk), name_rows(items, views, members, pa.array(texts))


def measure(n_entities: int, hot: float) -> dict[str, float]:
    """Gives aliases a second, without the making of rows, and the most memory of the process in MB."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = {}
        for is_whole in (False, True):
            started = time.process_time()
            pipeline = new_pipeline(beam_flags("local", workers=None, beam_args=()))
            chunks = (
                pipeline | beam.Create(list(range(-(-n_entities // _ROWS))), reshuffle=False) | beam.ParDo(_Make(hot))
            )
            if is_whole:
                found = chunks | share_names(folder, groups_for(3 * n_entities * _ALIASES), 2, AmberOptions())
                _ = found[COUNTS] | CollectSorted()
            run_pipeline(pipeline, "names")
            seconds[is_whole] = time.process_time() - started
        n_aliases = -(-n_entities // _ROWS) * _ROWS * _ALIASES
        n_bytes = sum(path.stat().st_size for path in Path(folder).rglob("*"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "aliases": n_aliases,
        "seconds": seconds[True] - seconds[False],
        "aliases_per_second": n_aliases / (seconds[True] - seconds[False]),
        "peak_mb": peak,
        "disk_mb": n_bytes / 1e6,
    }


def main(argv: list[str] | None = None) -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entities", type=int, nargs="+", default=[200_000])
    parser.add_argument("--hot", type=float, default=0.001, help="share of the aliases that are one name")
    args = parser.parse_args(argv)
    for n_entities in args.entities:
        print(n_entities, {name: round(value, 1) for name, value in measure(n_entities, args.hot).items()})
    return 0


if __name__ == "__main__":
    main()
