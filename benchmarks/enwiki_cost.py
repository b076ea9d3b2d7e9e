"""Estimates the cost of building the English Wikipedia: CPU, disk and wall time of each phase, from builds of two
generated dumps.

The difference between the two sizes shows how the cost grows with the dump, without the constant cost of starting up.
The CPU time of a build is divided among its phases in proportion to the seconds that each phase worked.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.make_dump import MadeDump, base_pages, write_dump
from benchmarks.process_tree import run
from benchmarks.scale import ENWIKI_GB
from benchmarks.slices import REPOSITORY, S1, data_root

CORES = (1, 16, 64)
CHECK = "check"
POLL_S = 0.1


class Phase(NamedTuple):
    """A phase of a build: the step that reports its seconds, a description, and whether it runs on a single core."""

    step: str
    text: str
    is_serial: bool


PHASES = (
    Phase(CHECK, "checks and hashes the files", True),
    Phase("dump", "reads the dump", False),
    Phase("index", "indexes titles", True),
    Phase("pages", "parses articles", False),
    Phase("write", "writes the files of pages", False),
    Phase("release", "writes the small tables and the manifest", True),
)


@dataclass(frozen=True, slots=True)
class Build:
    """The cost of building one generated dump.

    Attributes:
        xml_mb: size of the XML in MB (10^6 bytes, as for all sizes here).
        cpu_s: CPU time of all processes.
        seconds: seconds that each step worked; for the check, its CPU time.
        disk_mb: peak size of each folder.
        peak_disk_mb: peak size of all folders together.
        release_mb: size of the finished release.
        process_mb: peak memory of the largest process.
        tree_mb: peak memory of all processes together.
    """

    xml_mb: float
    cpu_s: float
    seconds: dict[str, float]
    disk_mb: dict[str, float]
    peak_disk_mb: float
    release_mb: float
    process_mb: float
    tree_mb: float


class Cost(NamedTuple):
    """The cost of a phase for a dump of some size: CPU time, and by number of cores, its wall time and its share of all
    phases.
    """

    phase: Phase
    cpu_s: float
    wall_s: dict[int, float]
    share: dict[int, float]


def costs(small: Build, large: Build, *, gb: float, cores: Sequence[int] = CORES) -> list[Cost]:
    """Returns the cost of each phase for a dump of ``gb`` GB of XML, extrapolated by straight lines through the two
    builds.
    """
    n_mb = large.xml_mb - small.xml_mb
    grown = {
        phase.step: max(0.0, large.seconds.get(phase.step, 0) - small.seconds.get(phase.step, 0)) for phase in PHASES
    }
    # Steps report wall time, which is more than CPU time if the machine is busy. The check has CPU time.
    of_steps = (large.cpu_s - small.cpu_s - grown[CHECK]) / sum(s for step, s in grown.items() if step != CHECK)
    cpu = {step: s / n_mb * gb * 1000 * (1 if step == CHECK else of_steps) for step, s in grown.items()}
    walls = {n: {phase.step: cpu[phase.step] / (1 if phase.is_serial else n) for phase in PHASES} for n in cores}
    return [
        Cost(
            phase,
            cpu[phase.step],
            {n: walls[n][phase.step] for n in cores},
            {n: walls[n][phase.step] / sum(walls[n].values()) for n in cores},
        )
        for phase in PHASES
    ]


def disk_gb(small: Build, large: Build, *, gb: float) -> dict[str, float]:
    """Returns the size in GB of each folder, of all folders together (``peak``) and of the release, for a dump of
    ``gb`` GB of XML.
    """
    factor = gb / (large.xml_mb - small.xml_mb)
    found = {name: factor * (most - small.disk_mb.get(name, 0)) for name, most in sorted(large.disk_mb.items())}
    return found | {
        "peak": factor * (large.peak_disk_mb - small.peak_disk_mb),
        "release": factor * (large.release_mb - small.release_mb),
    }


def build(dump: MadeDump, *, output: Path, workers: int) -> Build:
    """Builds a dump in a separate process tree, and returns the cost.

    Raises:
        SystemExit: the build failed; the message has the end of its output.
    """
    shutil.rmtree(output, ignore_errors=True)
    log = WORK / "logs" / f"{output.name}.log"
    command = [sys.executable, "-m", "pipelines.cli", "build", str(dump.path), "--output", str(output), "--json"]
    with folder_sizes(output) as sizes:
        usage = run([*command, "--workers", str(workers), "--max-rejects", "0.05"], cwd=REPOSITORY, log=log)
    text = log.read_text("utf-8", errors="replace")
    if usage.returncode != 0:
        raise SystemExit(f"the build of {dump.path} failed:\n{text[-3000:]}")
    summary = json.loads(text[text.index("{\n") :])
    most = {name: max(found.get(name, 0) for found in sizes) for name in {name for found in sizes for name in found}}
    return Build(
        xml_mb=dump.n_xml_bytes / 1e6,
        cpu_s=usage.cpu_s,
        seconds={CHECK: check_cpu_s(dump.path), **summary["steps"]},
        disk_mb={name: n / 1e6 for name, n in most.items() if name.startswith("_staging/") and n >= 1e5},
        peak_disk_mb=summary["peak_bytes"] / 1e6,
        release_mb=sum(sizes[-1].values()) / 1e6,
        process_mb=usage.peak_process_mb,
        tree_mb=usage.peak_tree_mb,
    )


def check_cpu_s(path: Path, *, n_rounds: int = 3) -> float:
    """Returns the CPU time of the check that precedes a build: the minimum of some rounds."""
    from kbsource.dump.check import dump_findings

    found = []
    for _ in range(n_rounds):
        start = time.process_time()
        dump_findings([str(path)])
        found.append(time.process_time() - start)
    return min(found)


@contextmanager
def folder_sizes(folder: Path) -> Iterator[list[dict[str, int]]]:
    """Collects the sizes of the folders (``_staging/articles``) in bytes, at regular times while the body runs and once
    at its end.
    """
    found: list[dict[str, int]] = []
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(POLL_S):
            found.append(_sizes(folder))

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()
        found.append(_sizes(folder))


def _sizes(folder: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for place, _, names in os.walk(folder):
        kind = "/".join(Path(place).relative_to(folder).parts[:2])
        for name in names:
            try:
                sizes[kind] = sizes.get(kind, 0) + os.path.getsize(os.path.join(place, name))
            except FileNotFoundError:
                continue  # files come and go
    return sizes


def dump_like_enwiki(root: Path, n_mb: int) -> MadeDump:
    """Returns the generated dump of this size, made on first use."""
    from benchmarks.like_enwiki import pages_like_enwiki

    folder = WORK / "dumps" / f"like-enwiki-{n_mb}mb"
    facts, path = folder / "facts.json", folder / "enwiki-20260101-pages-articles-multistream.xml.bz2"
    if facts.is_file():
        return MadeDump(path, **json.loads(facts.read_text()))
    made = write_dump(path, pages_like_enwiki(base_pages(root, (S1,)), n_mb=n_mb), multistream=True)
    facts.write_text(json.dumps({key: value for key, value in asdict(made).items() if key != "path"}))
    return made


def measure(data: str | None, *, sizes_mb: Sequence[int], workers: int = 1, gb: float = ENWIKI_GB) -> dict[str, Any]:
    """Builds dumps of two sizes, and extrapolates the cost to ``gb`` GB."""
    root, builds = data_root(data), []
    for n_mb in sorted(sizes_mb):
        output = WORK / "releases" / f"enwiki-cost-{n_mb}mb"
        builds.append(build(dump_like_enwiki(root, n_mb), output=output, workers=workers))
        shutil.rmtree(output)
    small, *_, large = builds
    return {
        "machine": machine(),
        "gb": gb,
        "builds": [asdict(made) for made in builds],
        "phases": [cost._asdict() | {"phase": cost.phase.step} for cost in costs(small, large, gb=gb)],
        "disk_gb": disk_gb(small, large, gb=gb),
    }


def show(result: dict[str, Any]) -> None:
    """Prints the tables."""
    keys = ("xml_mb", "cpu_s", "peak_disk_mb", "release_mb", "process_mb", "tree_mb")
    header = ("MB", "CPU s", "peak disk MB", "release MB", "process MB", "all processes MB")
    print(table(header, [tuple(made[key] for key in keys) for made in result["builds"]]))
    text = {phase.step: f"{phase.text}{' (one core)' if phase.is_serial else ''}" for phase in PHASES}
    print(f"\n{result['gb']} GB of XML")
    rows = [
        (
            text[cost["phase"]],
            cost["cpu_s"] / 3600,
            *(f"{cost['wall_s'][n] / 60:.1f} ({cost['share'][n]:.0%})" for n in CORES),
        )
        for cost in result["phases"]
    ]
    walls = {n: sum(cost["wall_s"][n] for cost in result["phases"]) for n in CORES}
    total = ("all", sum(cost["cpu_s"] for cost in result["phases"]) / 3600, *(f"{walls[n] / 60:.1f}" for n in CORES))
    print(table(("phase", "CPU h", *(f"minutes, {n} cores" for n in CORES)), [*rows, total]))
    print(table(("folder", "GB"), [*result["disk_gb"].items()]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--sizes", default="100,400", help="MB of XML of the two dumps (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="worker processes of each build (default: %(default)s)")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    sizes_mb = [int(size) for size in args.sizes.split(",")]
    if len(sizes_mb) != 2 or sizes_mb[0] == sizes_mb[1]:
        parser.error(f"--sizes must be two different sizes, not {args.sizes}")
    result = measure(args.data, sizes_mb=sizes_mb, workers=args.workers)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
