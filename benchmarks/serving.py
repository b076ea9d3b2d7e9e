"""Measures ``kbsource serve`` with eight clients: milliseconds of BM25 searches, errors, and the server's processor
time.

The release and its passages are generated, five passages for each page, and kept in ``.bench``. The words of passages
and questions are drawn as in ``benchmarks.bm25``. Each client sends one question after the other over one connection.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks.bm25 import PASSAGE_WORDS, QUERY_WORDS, made_up_texts
from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.inspector import memory_mb
from benchmarks.slices import REPOSITORY
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import Passage, PassageSpan, passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import make_index
from tests.support.pages import title_of
from tests.support.passages import page
from tests.support.releases import TitleRow, write_release

N_PAGES, N_REQUESTS, N_CLIENTS, OF_A_PAGE = 10_000, 5_000, 8, 5
BAR_PAGES, BAR_REQUESTS, BAR_MS = 100_000, 50_000, 30.0
_TICKS = os.sysconf("SC_CLK_TCK")


def made(n_pages: int) -> Path:
    """Returns a folder with ``release``, ``corpus`` and ``bm25``, made on first use."""
    folder = WORK / f"serving-{n_pages}"
    if (folder / "bm25" / "manifest.json").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts = made_up_texts(7, PASSAGE_WORDS)
    pages = (page(1 + number, title_of(number), *islice(texts, OF_A_PAGE)) for number in range(n_pages))
    titles = [TitleRow(1 + number, title_of(number)) for number in range(n_pages)]
    manifest = write_release(folder, pages, titles=titles, rows_per_shard=n_pages // 10, n_shards=10)
    options = {"max_words": 100, "split_long": False, "unit": "sentences", "formats": []}
    facts = {"options": options, "counts": {"pages": n_pages}, "lang": "en", "release": manifest.facts()}
    rows = (
        Passage(
            passage_id(1 + number, place),
            1 + number,
            title_of(number),
            place,
            PASSAGE_WORDS,
            text,
            (PassageSpan(1 + place, 0, len(text)),),
        )
        for number, own in enumerate(_by_page(made_up_texts(7, PASSAGE_WORDS), n_pages))
        for place, text in enumerate(own)
    )
    corpus = str(folder / "corpus")
    with ReleaseFolder(corpus, kind=PASSAGES_CORPUS):
        entry = write_rows(rows, "passages", PASSAGES, output=corpus, group_rows=2_048)
        facts = with_counts(PASSAGES_CORPUS, [entry], facts, corpus)
        commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing([entry], facts), corpus)
    make_index(corpus, str(folder / "bm25"))
    return folder


def _by_page(texts: Iterator[str], n_pages: int) -> Iterator[list[str]]:
    for _ in range(n_pages):
        yield list(islice(texts, OF_A_PAGE))


@contextmanager
def server(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Starts ``kbsource serve``; yields host, port and process id."""
    given = ["--passages", str(folder / "corpus"), "--index", str(folder / "bm25"), "--port", "0"]
    command = [sys.executable, "-m", "pipelines.cli", "serve", str(folder / "release"), *given]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().split()[0])
        try:
            yield address.hostname or "", address.port or 0, process.pid
        finally:
            process.terminate()


def cpu_s(pid: int) -> float:
    """Returns the processor time that a process has used so far."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def client(host: str, port: int, paths: list[str]) -> tuple[list[float], int]:
    """Requests one path after the other; returns the milliseconds, and the number of responses without a result."""
    connection, times, n_errors = HTTPConnection(host, port), [], 0
    for path in paths:
        start = time.perf_counter()
        connection.request("GET", path)
        answer = connection.getresponse()
        n_errors += not (answer.read().startswith(b'{"release"') and answer.status == 200)
        times.append((time.perf_counter() - start) * 1e3)
    return times, n_errors


def measure(*, n_pages: int = N_PAGES, n_requests: int = N_REQUESTS) -> dict[str, Any]:
    """Makes the release and its index if necessary, and measures the requests."""
    folder = made(n_pages)
    questions = islice(made_up_texts(8, QUERY_WORDS), n_requests)
    paths = [f"/search?k=10&query={quote(text)}" for text in questions]
    with server(folder) as (host, port, pid), ThreadPoolExecutor(N_CLIENTS) as threads:
        client(host, port, paths[:50])
        cpu, start = cpu_s(pid), time.perf_counter()
        asked = [threads.submit(client, host, port, paths[number::N_CLIENTS]) for number in range(N_CLIENTS)]
        done = [query.result() for query in asked]
        seconds, cpu = time.perf_counter() - start, cpu_s(pid) - cpu
        memory = memory_mb(pid, "VmHWM")
    times = [second for own, _ in done for second in own]
    cuts = quantiles(times, n=100)
    return {
        "machine": machine(),
        "pages": n_pages,
        "passages": n_pages * OF_A_PAGE,
        "requests": n_requests,
        "clients": N_CLIENTS,
        "errors": sum(n_errors for _, n_errors in done),
        "p50_ms": cuts[49],
        "p95_ms": cuts[94],
        "max_ms": max(times),
        "requests_a_second": n_requests / seconds,
        "server_cpu_ms_a_request": cpu * 1e3 / n_requests,
        "server_peak_mb": memory,
    }


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print(f"\nserving; bars: p95 {BAR_MS:.0f} ms, no error in {BAR_REQUESTS:,} requests, {BAR_PAGES:,} pages")
    print(table(("figure", "value"), [(name, value) for name, value in result.items() if name != "machine"]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--pages", type=int, default=N_PAGES)
    parser.add_argument("--requests", type=int, default=N_REQUESTS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(n_pages=args.pages, n_requests=args.requests)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
