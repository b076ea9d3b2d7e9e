"""Measures reading every dataset in its original format: records per second and core, and memory by size.

The files are generated, see ``benchmarks.synthetic``. Each source reads its file in a separate process; examples are
counted and discarded. The peak memory of a process includes its share of mapped libraries, so it depends on what else
runs. The process's own memory does not.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY
from benchmarks.synthetic import GENERATORS
from benchmarks.synthetic.form import Synthetic
from mapping.sources import all_sources
from mapping.sources.source import Inputs

SIZES_MB = (100, 1000)
FLAT_MB = 12
"""A process's own memory counts as flat when it grows by no more: caches of indexes on disk, 4 MB each, fill up."""


def measure(*, sizes_mb: tuple[int, ...] = SIZES_MB, only: tuple[str, ...] = (), keeps: bool = False) -> dict[str, Any]:
    """Returns the figures.

    Args:
        sizes_mb: sizes of the files in 10^6 bytes, ascending.
        only: datasets to measure; empty for all.
        keeps: whether the files stay in ``.bench/sources``.
    """
    rows = []
    for dataset in only or tuple(GENERATORS):
        runs = []
        for megabytes in sizes_mb:
            folder = WORK / "sources" / dataset / str(megabytes)
            shutil.rmtree(folder, ignore_errors=True)
            made = GENERATORS[dataset](folder, megabytes * 10**6)
            runs.append({"mb": megabytes, **_read_apart(made, folder)})
            if not keeps:
                shutil.rmtree(folder)
        growth = runs[-1]["peak_own_mb"] - runs[0]["peak_own_mb"]
        rows.append({"dataset": dataset, "runs": runs, "memory_growth_mb": growth, "flat": growth <= FLAT_MB})
    return {"machine": machine(), "datasets": rows}


def _read_apart(made: Synthetic, folder: Path) -> dict[str, Any]:
    """Reads a dataset in another process; returns its counts and cost.

    Raises:
        SystemExit: the process failed.
    """
    scratch = folder / "scratch"
    scratch.mkdir()
    task = json.dumps({**made._asdict(), "options": dict(made.options), "scratch": str(scratch)})
    log = folder / "read.log"
    usage = run([sys.executable, "-m", "benchmarks.sources_speed", "--read", task], cwd=REPOSITORY, log=log)
    if usage.returncode:
        raise SystemExit(f"{made.dataset}: reading failed, see {log}")
    counted: dict[str, Any] = json.loads(log.read_text("utf-8").splitlines()[-1])
    return {
        **counted,
        "per_core_s": counted["records"] / counted["cpu_s"],
        "peak_mb": usage.peak_tree_mb,
        "peak_own_mb": usage.peak_tree_own_mb,
    }


def read(task: str) -> dict[str, Any]:
    """Reads a whole dataset; returns counts and CPU time, without imports."""
    value = json.loads(task)
    inputs = Inputs(tuple(value["records"]), tuple(value["references"]), scratch=value["scratch"])
    kind = all_sources()[value["dataset"]]
    source = kind(inputs, value["split"], kind.options_type(**value["options"]))
    source.check()
    start = time.process_time()
    for _ in source.read():
        pass
    tally = source.tally
    return {
        "cpu_s": time.process_time() - start,
        "records": tally.records,
        "examples": tally.examples,
        "evidences": tally.evidences,
        "rejected": tally.rejected.total(),
        "references": tally.references,
    }


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print("\nreading datasets, generated files in their original formats")
    head = ("dataset", "MB", "records", "examples", "CPU s", "records/s per core", "MB/s per core", "peak MB", "own")
    rows = [
        (
            dataset["dataset"],
            growth["mb"],
            growth["records"],
            growth["examples"],
            growth["cpu_s"],
            growth["per_core_s"],
            growth["mb"] / growth["cpu_s"],
            growth["peak_mb"],
            growth["peak_own_mb"],
        )
        for dataset in result["datasets"]
        for growth in dataset["runs"]
    ]
    print(table(head, rows))
    growths = ", ".join(f"{dataset['dataset']} {dataset['memory_growth_mb']:+.0f} MB" for dataset in result["datasets"])
    print(f"own memory, smallest to largest: {growths}; flat: {all(dataset['flat'] for dataset in result['datasets'])}")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sources_speed", description=__doc__)
    parser.add_argument("--mb", type=int, nargs="+", default=list(SIZES_MB), help="sizes of the files")
    parser.add_argument("--only", nargs="+", default=[], choices=list(GENERATORS), help="datasets (default: all)")
    parser.add_argument("--keep", action="store_true", help="keep the files in .bench/sources")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.read:
        print(json.dumps(read(args.read)))
        return
    result = measure(sizes_mb=tuple(args.mb), only=tuple(args.only), keeps=args.keep)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
