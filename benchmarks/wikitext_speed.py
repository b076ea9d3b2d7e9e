"""Compares the CPU time of kbsource and its peers from wikitext to page, on the same articles in one run."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.environment import machine, table, write_json
from benchmarks.peers import OURS, PEERS, Peer, Timing, time_in_turns
from benchmarks.slices import OTHERS, S1, data_root, read_slices

# Peer name starts with -> kbsource must be at least this many times as fast.
BARS = {"wikiextractor": 1.5, "strip_code": 8.0}


def measure(data: str | None, *, n_rounds: int, only: str | None = None) -> dict[str, Any]:
    """Measures every extractor on S1, and on all other slices together. ``only`` limits the peers to those with these
    names.
    """
    root = data_root(data)
    peers = tuple(peer for peer in PEERS if only is None or only in peer.name or peer.name == OURS)
    result: dict[str, Any] = {"machine": machine(), "rounds": n_rounds, "sets": {}}
    for name, files in (("S1", (S1,)), ("others", OTHERS)):
        slices = list(read_slices(root, files))
        result["sets"][name] = measure_set(slices, peers=peers, n_rounds=n_rounds)
    return result


def measure_set(slices: list[Any], *, peers: tuple[Peer, ...], n_rounds: int) -> dict[str, Any]:
    """Measures the extractors on the articles of some slices."""
    timings = time_in_turns(slices, peers=peers, n_rounds=n_rounds)
    ours = next((timing for timing in timings if timing.name == OURS), None)
    return {
        "articles": sum(len(wiki_slice.articles()) for wiki_slice in slices),
        "mb": timings[0].n_bytes / 1e6,
        "extractors": [_row(timing, ours) for timing in timings],
    }


def _row(timing: Timing, ours: Timing | None) -> dict[str, Any]:
    bar = next((bar for name, bar in BARS.items() if timing.name.startswith(name)), None)
    return {
        "name": timing.name,
        "mb_per_s": timing.mb_per_s,
        "cpu_s_per_mb": 1 / timing.mb_per_s,
        "spread": (max(timing.rounds_s) - min(timing.rounds_s)) / timing.cpu_s,
        "result_chars": timing.n_result_chars,
        "kbsource_times_as_fast": timing.cpu_s / ours.cpu_s if ours else None,
        "bar": bar,
    }


def show(result: dict[str, Any]) -> None:
    """Prints the tables."""
    for name, measured in result["sets"].items():
        print(
            f"\nwikitext to page, {name}: {measured['articles']} articles, "
            f"{measured['mb']:.2f} MB of wikitext, one core"
        )
        rows = [
            (
                extractor["name"],
                extractor["mb_per_s"],
                extractor["cpu_s_per_mb"],
                extractor["spread"],
                extractor["result_chars"],
                extractor["kbsource_times_as_fast"],
                extractor["bar"],
            )
            for extractor in measured["extractors"]
        ]
        header = ("extractor", "MB/s", "CPU s/MB", "spread", "chars out", "kbsource is × as fast", "bar")
        print(table(header, rows))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="measure kbsource and the extractors whose name contains this text")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, n_rounds=args.rounds, only=args.only)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
