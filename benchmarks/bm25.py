"""Measures BM25 over a million passages: seconds and memory of the index, queries per second, and memory of the search.

Passages are generated. Each has a hundred words, drawn by Zipf's law from 300,000 words, of which the most frequent are
English stop words. Queries have ten words of the same distribution. Index and search run in separate processes. Queries
per second are per second of processor time.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.slices import REPOSITORY
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import Passage, PassageSpan, passage_id
from mapping.passages.kind import PASSAGES_CORPUS

N_PASSAGES, N_QUERIES = 1_000_000, 2_000
N_WORDS, PASSAGE_WORDS, QUERY_WORDS, TOP = 300_000, 100, 10, 100
BAR_MB, BAR_QUERIES = 1_500, 200
STOP_WORDS = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this "
    "to was will with"
).split()


def made_up_texts(seed: int, n_words: int) -> Iterator[str]:
    """Yields an endless sequence of texts with this number of words."""
    seeded = np.random.default_rng(seed)
    shares = np.cumsum(1 / np.arange(1, N_WORDS + 1))
    words = [*STOP_WORDS, *(f"word{rank}" for rank in range(len(STOP_WORDS), N_WORDS))]
    while True:
        drawn = np.searchsorted(shares, seeded.random((1_000, n_words)) * shares[-1])
        for numbers in drawn.tolist():
            yield " ".join([words[number] for number in numbers])


def write_corpus(folder: Path, n_passages: int) -> None:
    """Writes a corpus of generated passages, ten for each page."""
    options = {"max_words": 100, "split_long": False, "unit": "sentences", "formats": []}
    counts = {"pages": -(-n_passages // 10)}
    facts = {"options": options, "counts": counts, "lang": "en", "release": {"manifest_sha256": ""}}
    rows = (
        Passage(passage_id(row // 10, row % 10), row // 10, "", row % 10, PASSAGE_WORDS, text, (PassageSpan(1, 0, 1),))
        for row, text in enumerate(islice(made_up_texts(7, PASSAGE_WORDS), n_passages))
    )
    with ReleaseFolder(str(folder), kind=PASSAGES_CORPUS):
        entry = write_rows(rows, "passages", PASSAGES, output=str(folder), group_rows=2_048)
        facts = with_counts(PASSAGES_CORPUS, [entry], facts, str(folder))
        commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing([entry], facts), str(folder))


def make(folder: Path) -> dict[str, float]:
    """Indexes the corpus in this process."""
    from mapping.retrieval.index import make_index

    start = time.perf_counter()
    make_index(str(folder / "corpus"), str(folder / "index"))
    n_bytes = sum(path.stat().st_size for path in (folder / "index").rglob("*"))
    return {
        "index_s": time.perf_counter() - start,
        "index_cpu_s": time.process_time(),
        "index_mb": n_bytes / 1e6,
        "index_resident_mb": _peak_mb(),
    }


def search(folder: Path) -> dict[str, float]:
    """Searches the index in this process."""
    from mapping.retrieval.index import PassageIndex

    index = PassageIndex(str(folder / "corpus"), str(folder / "index"))
    queries = list(islice(made_up_texts(8, QUERY_WORDS), N_QUERIES))
    result = {}
    for name, with_texts in (("ranked", False), ("with_texts", True)):
        cpu = time.process_time()
        for query in queries:
            index.search(query, TOP, with_texts=with_texts)
        result[f"queries_a_cpu_second_{name}"] = N_QUERIES / (time.process_time() - cpu)
    return {**result, "search_resident_mb": _peak_mb()}


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


STEPS = {"make": make, "search": search}


def measure(*, n_passages: int = N_PASSAGES) -> dict[str, Any]:
    """Measures index and search, each in a separate process."""
    folder = WORK / f"bm25-{n_passages}"
    if not (folder / "corpus" / "manifest.json").exists():
        write_corpus(folder / "corpus", n_passages)
    shutil.rmtree(folder / "index", ignore_errors=True)
    result: dict[str, Any] = {"machine": machine(), "passages": n_passages}
    for step in STEPS:
        command = [sys.executable, "-m", "benchmarks.bm25", "--step", step, "--folder", str(folder)]
        done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
        result |= json.loads(done.stdout)
    return result


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print(f"\nBM25 over {result['passages']:,} passages; bars: {BAR_MB} MB, {BAR_QUERIES} queries per second and core")
    print(table(("figure", "value"), [(name, value) for name, value in result.items() if isinstance(value, float)]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bm25", description=__doc__)
    parser.add_argument("--passages", type=int, default=N_PASSAGES)
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    if args.step:
        print(json.dumps(STEPS[args.step](args.folder)))
        return
    result = measure(n_passages=args.passages)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
