"""Measures how links are resolved at the size of the English Wikipedia: milliseconds of CPU per MB of wikitext.

A dump of repeated pages also repeats its links, so most of them are found in the cache. This measurement generates
links to 18 million titles. They follow a Zipf law so flat that three quarters of the links are not in the cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.slices import REPOSITORY
from kbsource.runtime.guarded import spare_collector

N_TITLES = 18_000_000
# The English Wikipedia of 2026 has about 7 million articles and 11 million redirects.
ARTICLE_SHARE = 0.4
LINKS_A_MB = 4_500
MEAN_PAGE_MB = 0.0045
PAGE_SIGMA = 1.3
ZIPF_EXPONENT = 0.82
REDIRECT_SHARE, MISSING_SHARE = 0.08, 0.02
N_MB = 20
BAR_MS = 15.0
_BATCH_ROWS = 100_000
_WORDS = "river station Łódź county language season album treaty 北京 district émigré football theory élan".split()


def title_of(number: int) -> str:
    """Returns the title with this number; it is about as long as real titles."""
    first, second = _WORDS[number % 13], _WORDS[number // 13 % 11]
    return f"{first.capitalize()} {second} {number * 7919 % 100_000_007}"


def title_batches(n_titles: int) -> Iterator[pa.RecordBatch]:
    """Yields the table of titles: articles by decreasing popularity, then redirects to them."""
    from kbsource.index.title_index_build import TITLE_ROWS

    n_articles = int(n_titles * ARTICLE_SHARE)
    for start in range(0, n_titles, _BATCH_ROWS):
        numbers = range(start, min(start + _BATCH_ROWS, n_titles))
        ids = pa.array(numbers, pa.int64())
        targets = [None if number < n_articles else title_of(number * 31 % n_articles) for number in numbers]
        columns = {
            "page_id": ids,
            "title": [title_of(number) for number in numbers],
            "revision_id": ids,
            "is_redirect": [target is not None for target in targets],
            "target_title": targets,
            "target_namespace": [None if target is None else 0 for target in targets],
            "target_fragment": [f"Part {n}" if target and n % 50 == 0 else None for n, target in enumerate(targets)],
            "source": ids,
        }
        yield pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in TITLE_ROWS], schema=TITLE_ROWS
        )


def cached_index(n_titles: int, folder: Path) -> Path:
    """Returns the folder of the index of this number of titles, made on first use."""
    from kbsource.index.title_index_build import build_title_index

    index = folder / f"titles-{n_titles}"
    if not (index / "complete").is_file():
        build_title_index(title_batches(n_titles), str(index), scratch=str(folder / "titles-scratch"))
        (index / "complete").touch()
    return index


def linked_numbers(n_titles: int, n_mb: float, seed: int) -> list[list[int]]:
    """Returns, for each page, the numbers of the titles that its links point to. The pages have ``n_mb`` MB of wikitext
    together.
    """
    draw = np.random.default_rng(seed)
    n_articles = int(n_titles * ARTICLE_SHARE)
    n_pages = int(n_mb / MEAN_PAGE_MB)
    sizes = draw.lognormal(np.log(MEAN_PAGE_MB) - PAGE_SIGMA**2 / 2, PAGE_SIGMA, n_pages)
    n_links = draw.poisson(sizes * (n_mb / sizes.sum()) * LINKS_A_MB)
    n = int(n_links.sum())
    # The share of the k most popular of N titles is (k / N) ** (1 - exponent).
    ranks = n_articles * draw.random(n) ** (1 / (1 - ZIPF_EXPONENT))
    numbers = np.minimum(ranks.astype(np.int64), n_articles - 1)
    kind = draw.random(n)
    others = draw.integers(n_articles, n_titles, n)
    numbers = np.where(kind < REDIRECT_SHARE, others, numbers)
    numbers = np.where(kind > 1 - MISSING_SHARE, n_titles + others, numbers)
    links = iter(numbers.tolist())
    return [[next(links) for _ in range(count)] for count in n_links.tolist()]


def resolve_links(given: dict[str, Any]) -> dict[str, Any]:
    """Resolves the links of pages as a build does, or one by one, and returns the cost.

    The titles are generated just before they are resolved, as a parser would do. The same number of links is resolved
    beforehand, without being measured, so that the index is mapped into memory.
    """
    from kbsource.index.title_index import TitleIndex
    from kbsource.pages.articles import LINKS_AT_ONCE

    n_links, cpu_s = 0, 0.0
    numbers = linked_numbers(given["n_titles"], 2 * given["n_mb"], given["seed"])
    index = TitleIndex.open(given["index"])
    spare_collector()
    waiting: list[int] = []
    for place, page in enumerate(numbers):
        waiting += page
        if len(waiting) < LINKS_AT_ONCE:
            continue
        titles = list(map(title_of, waiting))
        start = time.process_time()
        if given["way"] == "one by one":
            for title in titles:
                index.resolve(title)
        else:
            resolved = index.resolve_all(set(titles))
            for title in titles:
                resolved[title]
        if place > len(numbers) // 2:
            cpu_s += time.process_time() - start
            n_links += len(titles)
        waiting = []
    return {"ms_a_mb": cpu_s / n_links * LINKS_A_MB * 1e3, "us_a_link": cpu_s / n_links * 1e6}


def missed_share(index: Path, n_titles: int, n_mb: float) -> float:
    """Returns the share of links that are not in the cache, in the second half of the pages."""
    from kbsource.index.title_index import TitleIndex

    titles, n_missed = TitleIndex.open(str(index)), 0
    resolve = titles._resolve

    def counted(title: str) -> Any:
        nonlocal n_missed
        n_missed += 1
        return resolve(title)

    titles._resolve = counted  # type: ignore[method-assign]
    numbers = [number for page in linked_numbers(n_titles, 2 * n_mb, 0) for number in page]
    for place, number in enumerate(numbers):
        if place == len(numbers) // 2:
            n_missed = 0
        titles.resolve(title_of(number))
    return n_missed / (len(numbers) - len(numbers) // 2)


def measure(folder: Path, *, n_titles: int = N_TITLES, n_mb: float = N_MB, n_rounds: int = 3) -> dict[str, Any]:
    """Makes the index if necessary, and measures the two ways in turns, each in separate processes."""
    index = cached_index(n_titles, folder)
    ways: dict[str, list[dict[str, Any]]] = {"one by one": [], "in batches": []}
    for seed in range(n_rounds):
        for way, rounds in ways.items():
            given = {"n_titles": n_titles, "n_mb": n_mb, "seed": seed, "index": str(index), "way": way}
            command = [sys.executable, "-m", "benchmarks.link_speed", "--one", json.dumps(given)]
            done = subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
            rounds.append(json.loads(done.stdout))
    rows = [{"way": way, **min(rounds, key=lambda row: row["ms_a_mb"])} for way, rounds in ways.items()]
    missed = missed_share(index, n_titles, n_mb)
    return {"machine": machine(), "titles": n_titles, "mb": n_mb, "missed_share": missed, "ways": rows}


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(
        f"\nlinks: {result['titles']:,} titles, {LINKS_A_MB:,} links a MB; {result['missed_share']:.0%} miss the cache"
    )
    print(f"bar: {BAR_MS} ms per MB of wikitext, in batches")
    header = ("way", "ms a MB", "µs a link")
    print(table(header, [tuple(way.values()) for way in result["ways"]]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--titles", type=int, default=N_TITLES)
    parser.add_argument("--mb", type=float, default=N_MB, help="MB of wikitext whose links are resolved")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=WORK, help="where the index is kept (default: %(default)s)")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(resolve_links(json.loads(args.one))))
        return
    result = measure(args.folder, n_titles=args.titles, n_mb=args.mb, n_rounds=args.rounds)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
