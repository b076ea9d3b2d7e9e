"""Measures ``kbsource inspect`` for a release of 100,000 pages: milliseconds of each view, and the server's memory.

The release has generated pages and is kept in ``.bench``. Requests are sent one after the other, in a random order with
a fixed seed. They are measured twice: while the index of incoming links is being made, and after it is complete.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import quantiles
from typing import Any
from urllib.parse import quote, urlsplit

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.slices import REPOSITORY
from tests.support.pages import synthetic_pages, title_of
from tests.support.releases import TitleRow, redirect_to, write_release

N_PAGES = 100_000
N_VIEWS = 1_000
BAR_MS = 150.0
BAR_MB = 400.0
SHARDS = 10


def cached_release(n_pages: int) -> Path:
    """Returns a generated release with this number of pages, half as many redirects, and 48 links on each page, made on
    first use.
    """
    folder = WORK / "releases" / f"inspector-{n_pages}"
    release = folder / "release"
    if not (release / "manifest.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        titles = [TitleRow(1 + 3 * number, title_of(number)) for number in range(n_pages)]
        others = [redirect_to(3 + 6 * number, f"Also {number}", title_of(number)) for number in range(n_pages // 2)]
        pages = synthetic_pages(n_pages)
        write_release(folder, pages, titles=[*titles, *others], rows_per_shard=n_pages // SHARDS, n_shards=SHARDS)
    return release


@contextmanager
def server(release: Path, cache: str) -> Iterator[tuple[HTTPConnection, int]]:
    """Starts ``kbsource inspect``; yields a connection to it, and its process id."""
    command = [sys.executable, "-m", "pipelines.cli", "inspect", str(release), "--port", "0"]
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = urlsplit(process.stdout.readline().split()[0])
        try:
            yield HTTPConnection(address.hostname or "", address.port), process.pid
        finally:
            process.terminate()


def memory_mb(pid: int, name: str) -> float:
    """Returns a measure of a process's memory (``VmRSS``, ``VmHWM``) in MB (10^6 bytes)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit(f"/proc/{pid}/status has no {name}: this measurement needs Linux.")


def get_view(connection: HTTPConnection, path: str) -> tuple[float, bytes]:
    """Returns the milliseconds until the whole response has arrived, and the response."""
    start = time.perf_counter()
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}: {content[:300]!r}")
    return (time.perf_counter() - start) * 1e3, content


def measure(*, n_pages: int = N_PAGES, n_views: int = N_VIEWS) -> dict[str, Any]:
    """Makes the release if necessary, and measures a server that has no index yet."""
    release = cached_release(n_pages)
    chosen = random.Random(0)
    ids = [1 + 3 * chosen.randrange(n_pages) for _ in range(n_views)]
    typed = [f"Article {chosen.randrange(n_pages)}"[: chosen.randint(1, 12)] for _ in range(n_views)]
    page = "/r/release/page/{}".format
    result: dict[str, Any] = {"machine": machine(), "pages": n_pages, "views": []}

    def see(name: str, paths: list[str]) -> None:
        times = [get_view(connection, path)[0] for path in paths]
        cuts = quantiles(times, n=100)
        memory = memory_mb(pid, "VmRSS")
        result["views"].append(
            {
                "view": name,
                "n": len(times),
                "p50_ms": cuts[49],
                "p95_ms": cuts[94],
                "max_ms": max(times),
                "rss_mb": memory,
            }
        )

    with tempfile.TemporaryDirectory() as cache, server(release, cache) as (connection, pid):
        start = time.perf_counter()
        result["first_view_ms"] = get_view(connection, page(ids[0]))[0]
        see("page, links being counted", [page(own) for own in ids[: n_views // 10]])
        while b"being counted" in get_view(connection, f"{page(ids[0])}/links")[1]:
            time.sleep(0.2)
        result["links_counted_s"] = time.perf_counter() - start
        start = time.perf_counter()
        while not json.loads(get_view(connection, "/r/release/titles.json?q=a")[1])["ready"]:
            time.sleep(0.05)
        result["titles_sorted_s"] = time.perf_counter() - start
        see("page", [page(own) for own in ids])
        see("titles as one types", [f"/r/release/titles.json?q={quote(text)}" for text in typed])
        see("what links here", [f"{page(own)}/links" for own in ids])
        result["peak_mb"] = memory_mb(pid, "VmHWM")
        result["cache_mb"] = sum(path.stat().st_size for path in Path(cache).rglob("*") if path.is_file()) / 1e6
    return result


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(
        f"\ninspector: {result['pages']} pages; first view {result['first_view_ms']:.0f} ms; links counted in "
        f"{result['links_counted_s']:.1f} s, titles sorted in {result['titles_sorted_s']:.1f} s, "
        f"{result['cache_mb']:.0f} MB of cache; peak {result['peak_mb']:.0f} MB; bars: {BAR_MS:.0f} ms, {BAR_MB:.0f} MB"
    )
    header = ("view", "n", "p50 ms", "p95 ms", "max ms", "RSS MB")
    print(table(header, [tuple(view.values()) for view in result["views"]]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=N_PAGES)
    parser.add_argument("--views", type=int, default=N_VIEWS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(n_pages=args.pages, n_views=args.views)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
