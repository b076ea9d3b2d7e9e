"""Measures looking up one page in a release of 100,000 pages, by id and by title: milliseconds and memory.

``kbsource build`` makes the release from a generated dump; it is kept in ``.bench``. The lookups run in a separate
process, so that its resident set is the memory of a reader.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.make_dump import made_up_dump
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY

N_PAGES = 100_000
N_LOOKUPS = 2_000
BAR_MS = 5.0
WORDS = [
    "river",
    "mathematician",
    "language",
    "university",
    "century",
    "Zürich",
    "naïve",
    "北京",
    "treaty",
    "kingdom",
    "Łódź",
    "island",
    "railway",
    "district",
    "émigré",
    "composer",
    "theory",
    "football",
    "season",
    "𝔘nicode",
    "species",
    "family",
    "album",
    "station",
    "parliament",
    "election",
]


def title_of(number: int) -> str:
    """Returns the title of the generated page with this number."""
    return f"{WORDS[number % len(WORDS)].capitalize()} {number}"


def wikitext_of(number: int, n_pages: int) -> str:
    """Returns about 2 KB of wikitext with links to other generated pages."""
    rng = random.Random(number)
    parts = [f"'''{title_of(number)}''' is a made-up page."]
    for section in range(4):
        parts.append(f"== Section {section} ==")
        for _ in range(2):
            words = " ".join(rng.choices(WORDS, k=20))
            target = title_of(rng.randrange(n_pages))
            parts.append(f"The {words}, see [[{target}]] and [[{target}|another]] of {rng.randrange(1900, 2000)}.")
    parts.append("[[Category:Made-up pages]]")
    return "\n\n".join(parts)


def made_up_pages(n_pages: int) -> Iterator[tuple[int, str, str]]:
    """Yields (page id, title, wikitext); every third number is a page id."""
    for number in range(n_pages):
        yield 1 + 3 * number, title_of(number), wikitext_of(number, n_pages)


def cached_release(n_pages: int) -> Path:
    """Returns a release with this number of pages, built on first use.

    Raises:
        SystemExit: the build failed.
    """
    release = WORK / "releases" / f"lookup-{n_pages}"
    if not (release / "manifest.json").is_file():
        shutil.rmtree(release, ignore_errors=True)
        dump = made_up_dump(
            WORK / "dumps" / f"lookup-{n_pages}" / "enwiki-20000101-pages-articles-multistream.xml.bz2",
            made_up_pages(n_pages),
        )
        command = [sys.executable, "-m", "pipelines.cli", "build", "--workers", "1"]
        command += ["--dump", str(dump.path), "--output", str(release)]
        log = WORK / "logs" / "lookup-build.log"
        if run(command, cwd=REPOSITORY, log=log).returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text(encoding='utf-8')[-3000:]}")
    return release


def resident_mb() -> float:
    """Returns this process's resident set in MB (10^6 bytes)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit("/proc/self/status has no VmRSS: this measurement needs Linux.")


def look_up(release: Path, *, n_pages: int, n_lookups: int) -> dict[str, Any]:
    """Opens the release and times lookups, in a random order with a fixed seed."""
    from kbsource.lookup import KnowledgeSource

    before_mb = resident_mb()
    start = time.perf_counter()
    source = KnowledgeSource.open(str(release))
    open_ms = (time.perf_counter() - start) * 1e3
    numbers = random.Random(0).sample(range(n_pages), min(n_lookups, n_pages))
    result: dict[str, Any] = {
        "pages": n_pages,
        "lookups": len(numbers),
        "open_ms": open_ms,
        "beam_imported": "apache_beam" in sys.modules,
        "kinds": [],
    }
    for kind, find, keys in (
        ("id", source.by_id, [1 + 3 * number for number in numbers]),
        ("title", source.by_title, [title_of(number) for number in numbers]),
    ):
        milliseconds = _time_each(find, keys)
        cuts = quantiles(milliseconds, n=100)
        result["kinds"].append(
            {
                "by": kind,
                "first_ms": milliseconds[0],
                "p50_ms": cuts[49],
                "p99_ms": cuts[98],
                "max_ms": max(milliseconds),
                "resident_mb": resident_mb(),
                "grown_mb": resident_mb() - before_mb,
            }
        )
    return result


def _time_each(find: Callable[[Any], Any], keys: list[Any]) -> list[float]:
    milliseconds = []
    for key in keys:
        start = time.perf_counter()
        page = find(key)
        milliseconds.append((time.perf_counter() - start) * 1e3)
        if page is None:
            raise SystemExit(f"{key!r} is not in the release it was put into.")
    return milliseconds


def measure(*, n_pages: int = N_PAGES, n_lookups: int = N_LOOKUPS) -> dict[str, Any]:
    """Builds the release if necessary, and measures in a new process."""
    release = cached_release(n_pages)
    command = [sys.executable, "-m", "benchmarks.lookup_speed", "--release", str(release), "--answer"]
    command += ["--pages", str(n_pages), "--lookups", str(n_lookups)]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}.")
    answer: dict[str, Any] = json.loads(done.stdout)
    return {"machine": machine(), **answer}


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    beam = "IMPORTED" if result["beam_imported"] else "not imported"
    print(
        f"\nlookup: {result['lookups']} of {result['pages']} pages in an order of chance; opened in "
        f"{result['open_ms']:.1f} ms; Beam {beam}; bar: {BAR_MS} ms"
    )
    header = ("by", "first ms", "p50 ms", "p99 ms", "max ms", "resident MB", "grown by MB")
    print(table(header, [tuple(kind.values()) for kind in result["kinds"]]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=N_PAGES)
    parser.add_argument("--lookups", type=int, default=N_LOOKUPS)
    parser.add_argument("--release", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    if args.answer:
        print(json.dumps(look_up(args.release, n_pages=args.pages, n_lookups=args.lookups)))
        return
    result = measure(n_pages=args.pages, n_lookups=args.lookups)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
