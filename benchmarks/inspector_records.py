"""Measures ``kbsource inspect`` for an alignment of a million records: milliseconds of each view, and memory.

The alignment has generated records and is kept in ``.bench``. Requests are sent one after the other, in a random order
with a fixed seed. The first list reads the table of records once.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.inspector import BAR_MB, get_view, memory_mb, server
from tests.support.derived_releases import Piece, Record, write_alignment
from tests.support.pages import WORDS

N_RECORDS = 1_000_000
N_VIEWS = 200
CHUNK_RECORDS = 5_000
N_WORDS = 25
_REASONS = {"dropped": ("below_threshold", "page_missing"), "excluded": ("no_answer",), "rejected": ("malformed_json",)}


def cached_alignment(n_records: int) -> Path:
    """Returns a generated alignment with this number of records, each with one to four pieces of evidence, made on
    first use.
    """
    folder = WORK / "releases" / f"records-{n_records}"
    if not (folder / "manifest.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        n_chunks = n_records // CHUNK_RECORDS
        write_alignment(
            folder, _records(n_records), dataset="trex", split="train", chunk=CHUNK_RECORDS, n_chunks=n_chunks
        )
    return folder


def _records(n_records: int) -> Iterator[Record]:
    chosen = random.Random(0)
    for number in range(n_records):
        outcome = chosen.choices(("written", "dropped", "excluded", "rejected"), (80, 12, 6, 2))[0]
        old, new = (" ".join(chosen.choices(WORDS, k=N_WORDS)) for _ in range(2))
        score = round(chosen.random(), 6) if outcome in ("written", "dropped") else None
        pieces = [] if score is None else [Piece(old=old, new=new, score=score)] * chosen.choice((1, 1, 2, 4))
        reason = chosen.choice(_REASONS.get(outcome, (None,)))
        name, answers = f"{chosen.getrandbits(60):x}-{number}", ("an answer",) * max(len(pieces), 1)
        yield Record(id=name, input=old, answers=answers, outcome=outcome, reason=reason, score=score, pieces=pieces)


def measure(*, n_records: int = N_RECORDS, n_views: int = N_VIEWS) -> dict[str, Any]:
    """Makes the alignment if necessary, and measures a server that has just started."""
    folder, chosen = cached_alignment(n_records), random.Random(0)
    numbers = [chosen.randrange(n_records) for _ in range(n_views)]
    records = f"/r/{folder.name}/tables/records"
    views = {
        "list, in order": [f"{records}?from={number}" for number in numbers],
        "list, by BLEU": [f"{records}?sort=score&outcome=written&from={number // 2}" for number in numbers],
        "record": [f"{records}/{number}" for number in numbers],
        "record, among those by BLEU": [f"{records}/{number}?sort=-score" for number in numbers],
    }
    result: dict[str, Any] = {"machine": machine(), "records": n_records, "views": []}
    with tempfile.TemporaryDirectory() as cache, server(folder, cache) as (connection, pid):
        result["first_list_ms"] = get_view(connection, records)[0]
        for name, paths in views.items():
            cuts = quantiles([get_view(connection, path)[0] for path in paths], n=100)
            result["views"].append((name, len(paths), cuts[49], cuts[94], memory_mb(pid, "VmRSS")))
        result["peak_mb"] = memory_mb(pid, "VmHWM")
    return result


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(
        f"\ninspector: {result['records']} records; first list {result['first_list_ms']:.0f} ms; peak "
        f"{result['peak_mb']:.0f} MB; bar: {BAR_MB:.0f} MB"
    )
    print(table(("view", "n", "p50 ms", "p95 ms", "RSS MB"), result["views"]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=N_RECORDS)
    parser.add_argument("--views", type=int, default=N_VIEWS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(n_records=args.records, n_views=args.views)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
