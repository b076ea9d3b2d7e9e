"""Runs all measurements one after the other: ``python -m benchmarks``. The figures are written to
``.bench/results.json``.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks import (
    bm25,
    build_speed,
    citations_speed,
    leaks,
    lookup_speed,
    map_speed,
    qampari_speed,
    sources_speed,
    span_search,
    wikidata_speed,
    wikitext_speed,
)
from benchmarks.environment import WORK, write_json

LISTED_LEAKS = 50
SIZES_MB = {"quick": [20, 40], "full": [50, 100, 200]}
WIKIDATA_MB = {"quick": [20, 40], "full": [50, 200]}
PEERS_MB = {"quick": 20, "full": 50}
ROUNDS = {"quick": 3, "full": 7}
SOURCES_MB = {"quick": (2, 10), "full": (20, 100)}
LOOKUP_PAGES = {"quick": 10_000, "full": 100_000}
EVIDENCES = {"quick": (1_000, 10_000), "full": (10_000, 100_000)}
QAMPARI_PAGES = {"quick": (1_000, 5_000), "full": (2_000, 20_000, 100_000)}
PASSAGES = {"quick": 100_000, "full": 1_000_000}
QUERIES = {"quick": (200, 2, 5), "full": (1_000, 5, 20)}


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--quick", action="store_true", help="small sizes, a few minutes")
    parser.add_argument("--json", default=str(WORK / "results.json"), help="write the figures here")
    args = parser.parse_args()
    size = "quick" if args.quick else "full"
    results: dict[str, Any] = {}

    results["wikitext"] = wikitext_speed.measure(args.data, n_rounds=ROUNDS[size])
    wikitext_speed.show(results["wikitext"])
    results["citations"] = citations_speed.measure(args.data, n_rounds=ROUNDS[size])
    citations_speed.show(results["citations"])
    results["leaks"] = leaks.measure(args.data)
    leaks.show(results["leaks"], n_lines=LISTED_LEAKS)
    results["build"] = build_speed.measure(args.data, sizes_mb=SIZES_MB[size], peers_mb=PEERS_MB[size], options=[])
    build_speed.show(results["build"])
    results["lookup"] = lookup_speed.measure(n_pages=LOOKUP_PAGES[size])
    lookup_speed.show(results["lookup"])

    results["bm25"] = bm25.measure(n_passages=PASSAGES[size])
    bm25.show(results["bm25"])

    n_queries, n_nltk, n_everywhere = QUERIES[size]
    results["span_search"] = span_search.measure(
        args.data, n_queries=n_queries, n_nltk=n_nltk, n_everywhere=n_everywhere
    )
    span_search.show(results["span_search"])
    results["map"] = map_speed.measure(args.data, sizes=EVIDENCES[size])
    map_speed.show(results["map"])

    results["wikidata"] = wikidata_speed.measure(
        args.data, size_mb=WIKIDATA_MB[size][-1], sizes_mb=WIKIDATA_MB[size], n_rounds=ROUNDS[size]
    )
    wikidata_speed.show(results["wikidata"])

    results["sources"] = sources_speed.measure(sizes_mb=SOURCES_MB[size])
    sources_speed.show(results["sources"])

    results["qampari"] = qampari_speed.measure(sizes=QAMPARI_PAGES[size])
    qampari_speed.show(results["qampari"])

    write_json(args.json, results)
    print(f"\nall figures, and every leak: {args.json}")


if __name__ == "__main__":
    main()
