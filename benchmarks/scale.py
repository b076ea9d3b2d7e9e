"""Measures how a build scales with the size of the dump, the processes of one machine, and the workers of a Spark
cluster.

A straight line through the sizes separates the constant cost of a build from the cost that grows with the dump. The
line is extrapolated to the whole English Wikipedia.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from statistics import linear_regression
from typing import Any

from benchmarks.build_speed import release_digest
from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.make_dump import MadeDump, cached_dump
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY, data_root

# pages-articles of the English Wikipedia, unpacked: "over 100 GB" in 2026.
# https://en.wikipedia.org/wiki/Wikipedia:Database_download
ENWIKI_GB = 105
CORES = (1, 2, 8, 32, 96)


def build(dump: MadeDump, *, output: Path, runner: str, workers: int, kit: str | None) -> dict[str, Any]:
    """Builds in a separate process tree, which includes the cluster's processes, and returns the cost.

    ``driver_s`` is the CPU time of the driver, whose work is not distributed: checks, indexes, small tables.

    Raises:
        SystemExit: the build failed; the message has the end of its output.
    """
    shutil.rmtree(output, ignore_errors=True)
    log = WORK / "logs" / f"{output.name}.log"
    given = {"dump": str(dump.path), "output": str(output), "runner": runner, "workers": workers, "kit": kit}
    usage = run([sys.executable, "-m", "benchmarks.scale", "--one", json.dumps(given)], cwd=REPOSITORY, log=log)
    text = log.read_text("utf-8", errors="replace")
    if usage.returncode != 0:
        raise SystemExit(f"the build of {dump.path} by {runner} failed:\n{text[-3000:]}")
    own = json.loads(text.strip().rpartition("\n")[2])
    return {
        "wall_s": own["wall_s"],
        "cpu_s": usage.cpu_s,
        "driver_s": own["driver_s"],
        "peak_tree_mb": usage.peak_tree_mb,
        "peak_process_mb": usage.peak_process_mb,
        "release_sha256": release_digest(output),
    }


def build_one(given: dict[str, Any]) -> None:
    """Runs one build and prints its wall time and the driver's CPU time. Starts a cluster before the build and stops it
    afterwards, if one is used.
    """
    command = ["build", given["dump"], "--output", given["output"], "--max-rejects", "0.05"]
    if given["runner"] == "spark":
        from tests.support.clusters import SparkCluster
        from tests.support.spark_kit import kit_in

        with SparkCluster(kit_in(Path(given["kit"])), WORK / "spark", n_workers=given["workers"]) as cluster:
            seconds = timed_command([*command, "--runner", "spark", *cluster.flags()])
    else:
        seconds = timed_command([*command, "--workers", str(given["workers"])])
    print(json.dumps({"wall_s": seconds, "driver_s": time.process_time()}))


def timed_command(argv: list[str]) -> float:
    """Runs ``kbsource`` in this process and returns the seconds that it took.

    Raises:
        SystemExit: the command failed.
    """
    from pipelines.cli import main as kbsource

    start = time.perf_counter()
    if code := kbsource(argv):
        raise SystemExit(code)
    return time.perf_counter() - start


def measure(data: str | None, *, sizes_mb: list[int], kit: str | None, spark_mb: int) -> dict[str, Any]:
    """Builds every size with one and two processes, and a dump of ``spark_mb`` MB with one and two Spark workers."""
    root = data_root(data)
    plan = [(n_mb, "local", workers) for n_mb in sizes_mb for workers in (1, 2)]
    plan += [(spark_mb, "spark", workers) for workers in (1, 2)] if kit else []
    rows = []
    for n_mb, runner, workers in plan:
        dump = cached_dump(WORK / "dumps", root=root, n_mb=n_mb)
        output = WORK / "releases" / f"scale-{n_mb}mb-{runner}-{workers}"
        figures = build(dump, output=output, runner=runner, workers=workers, kit=kit)
        shutil.rmtree(output)
        rows.append({"size_mb": n_mb, "runner": runner, "workers": workers, **figures})
    return {"machine": machine(), "builds": rows, "projection": projection(rows)}


def projection(rows: list[dict[str, Any]], *, gb: float = ENWIKI_GB) -> dict[str, Any] | None:
    """Returns CPU hours, and hours of wall time by number of cores, for a dump of ``gb`` GB; None if there is only one
    size.

    The straight lines go through the builds with one process. The driver's work stays on one core; all other work is
    divided among the cores.
    """
    of_one_worker = [row for row in rows if row["runner"] == "local" and row["workers"] == 1]
    if len(of_one_worker) < 2:
        return None
    sizes = [row["size_mb"] for row in of_one_worker]
    cpu = linear_regression(sizes, [row["cpu_s"] for row in of_one_worker])
    driver = linear_regression(sizes, [row["driver_s"] for row in of_one_worker])
    n_mb = gb * 1000
    cpu_s = cpu.slope * n_mb + cpu.intercept
    driver_s = max(0.0, driver.slope * n_mb + driver.intercept)
    return {
        "gb": gb,
        "mb_per_core_s": 1 / cpu.slope,
        "fixed_cpu_s": cpu.intercept,
        "cpu_hours": cpu_s / 3600,
        "driver_hours": driver_s / 3600,
        "wall_hours": {str(n): (driver_s + max(0.0, cpu_s - driver_s) / n) / 3600 for n in CORES},
    }


def show(result: dict[str, Any]) -> None:
    """Prints the tables."""
    keys = ("size_mb", "runner", "workers", "wall_s", "cpu_s", "driver_s", "peak_tree_mb", "peak_process_mb")
    header = ("MB", "runner", "workers", "wall s", "CPU s", "driver s", "peak MB", "process MB")
    print(table(header, [tuple(row[key] for key in keys) for row in result["builds"]]))
    digests: dict[int, set[str]] = {}
    for row in result["builds"]:
        digests.setdefault(row["size_mb"], set()).add(row["release_sha256"])
    for n_mb, found in digests.items():
        print(f"{n_mb} MB: {'the same bytes by every runner' if len(found) == 1 else 'DIFFERENT BYTES'}")
    if (line := result["projection"]) is not None:
        print(
            f"\n{line['gb']} GB of XML: {line['mb_per_core_s']:.1f} MB/s a core beyond {line['fixed_cpu_s']:.0f} s, "
            f"{line['cpu_hours']:.1f} CPU hours, {line['driver_hours']:.2f} of them the driver's"
        )
        print(table(("cores", "hours"), [(int(n), hours) for n, hours in line["wall_hours"].items()]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--sizes", default="50,100,200,400", help="MB of XML, comma-separated")
    parser.add_argument(
        "--spark", metavar="KIT", help="folder downloaded by make spark-test; without it, Spark is not measured"
    )
    parser.add_argument("--spark-mb", type=int, default=200, help="MB of XML for Spark (default: %(default)s)")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        build_one(json.loads(args.one))
        return
    sizes_mb = [int(size) for size in args.sizes.split(",")]
    result = measure(args.data, sizes_mb=sizes_mb, kit=args.spark, spark_mb=args.spark_mb)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
