"""Measures ``kbsource qampari`` without a model over generated encyclopaedias: page searches per second, and memory by
size.

Both releases are built with kbsource's own commands on first use, see ``benchmarks.synthetic.encyclopaedia``. There is
one worker process in addition to the driver.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.build_speed import release_digest
from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import Usage, run
from benchmarks.slices import REPOSITORY
from benchmarks.synthetic.encyclopaedia import SITE, write_encyclopaedia

SIZES = (2_000, 20_000, 100_000)
FLAT_KB = 1.0
"""Memory counts as flat when what the driver has of its own grows by no more a page from the last size but one to the
last. About 40 bytes a page are stated: its place, its item, a byte for each fact and question. The rest is bounded:
what waits to be spilt, and the row group that is written."""


def measure(*, sizes: tuple[int, ...] = SIZES, options: tuple[str, ...] = ()) -> dict[str, Any]:
    """Returns the figures.

    Args:
        sizes: numbers of pages, ascending.
        options: further options of ``kbsource qampari``.
    """
    rows = []
    for n_pages in sizes:
        folder = WORK / "qampari" / str(n_pages)
        kb, wikidata = made_releases(folder, n_pages)
        output = folder / "questions"
        shutil.rmtree(output, ignore_errors=True)
        command = ["qampari", str(kb), str(wikidata), "--output", str(output), "--model", "none"]
        usage = kbsource([*command, *options], folder / "qampari.log")
        report = json.loads((output / "report.json").read_text("utf-8"))
        rows.append({"pages": n_pages, **_figures(report, usage), "release_sha256": release_digest(output)})
    before, last = rows[max(0, len(rows) - 2)], rows[-1]
    growth = (last["peak_driver_own_mb"] - before["peak_driver_own_mb"]) * 1000
    growth /= max(1, last["pages"] - before["pages"])
    return {"machine": machine(), "runs": rows, "driver_growth_kb_a_page": growth, "flat": growth <= FLAT_KB}


def made_releases(folder: Path, n_pages: int) -> tuple[Path, Path]:
    """Returns the release of pages and the release of Wikidata of an encyclopaedia, built on first use."""
    kb, wikidata = folder / "kb", folder / "wikidata"
    if not (kb / "manifest.json").is_file():
        for release in (kb, wikidata):
            shutil.rmtree(release, ignore_errors=True)
        made = write_encyclopaedia(folder / "made", n_pages)
        given = ["--dump", str(made.wikidata), "--output", str(wikidata), "--sites", SITE]
        kbsource(["wikidata", *given], folder / "wikidata.log")
        given = ["--dump", str(made.dump), "--wikidata", str(wikidata), "--output", str(kb)]
        kbsource(["build", *given], folder / "build.log")
        shutil.rmtree(folder / "made")
    return kb, wikidata


def kbsource(arguments: list[str], log: Path) -> Usage:
    """Runs a command of kbsource in separate processes.

    Raises:
        SystemExit: the command failed; the message has the end of its output.
    """
    command = [sys.executable, "-m", "pipelines.cli", *arguments]
    usage = run(command, cwd=REPOSITORY, log=log)
    if usage.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {usage.returncode}:\n{log.read_text('utf-8')[-3000:]}")
    return usage


def _figures(report: dict[str, Any], usage: Usage) -> dict[str, Any]:
    facts = report["facts"].values()
    n_looks = sum(fact["searches"] for fact in facts)
    n_candidates = sum(fact.get("candidates", 0) for fact in facts)
    return {
        "facts": sum(fact["all"] for fact in facts),
        "looks": n_looks,
        "candidates": n_candidates,
        "proved": sum(fact.get("proved", 0) for fact in facts),
        "questions": sum(report["questions"]["kept"].values()),
        "wall_s": usage.wall_s,
        "cpu_s": usage.cpu_s,
        "looks_per_core_s": n_looks / usage.cpu_s,
        "peak_driver_own_mb": usage.peak_root_own_mb,
        "peak_own_mb": usage.peak_tree_own_mb,
        "peak_tree_mb": usage.peak_tree_mb,
        "peak_process_mb": usage.peak_process_mb,
    }


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print("\nkbsource qampari --model none, generated encyclopaedias")
    head = ("pages", "facts", "searches", "candidates", "questions", "wall s", "CPU s", "searches/s per core")
    names = ("pages", "facts", "looks", "candidates", "questions", "wall_s", "cpu_s", "looks_per_core_s")
    print(table(head, [tuple(row[name] for name in names) for row in result["runs"]]))
    memory = ("peak_driver_own_mb", "peak_own_mb", "peak_tree_mb", "peak_process_mb")
    columns = ("pages", "driver's own MB", "all own MB", "all MB", "one process MB")
    print(table(columns, [(row["pages"], *(row[name] for name in memory)) for row in result["runs"]]))
    print(f"driver's own memory: {result['driver_growth_kb_a_page']:+.2f} kB per page; flat: {result['flat']}")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.qampari_speed", description=__doc__)
    parser.add_argument("--pages", type=int, nargs="+", default=list(SIZES), help="sizes of the encyclopaedias")
    parser.add_argument("--json", help="write the figures here")
    args, options = parser.parse_known_args()
    result = measure(sizes=tuple(args.pages), options=tuple(options))
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
