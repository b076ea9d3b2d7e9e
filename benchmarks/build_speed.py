"""Measures the whole build on dumps of increasing size: MB/s per core compared with plain bz2 decoding, workers,
memory, peers.
"""

from __future__ import annotations

import argparse
import bz2
import hashlib
import os
import shutil
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.environment import (
    OLDER_WIKIEXTRACTOR,
    WORK,
    machine,
    older_wikiextractor,
    peer_python,
    table,
    write_json,
)
from benchmarks.make_dump import MadeDump, cached_dump
from benchmarks.process_tree import Usage, run
from benchmarks.slices import REPOSITORY, data_root

SHARE_BAR = 0.2  # MB/s a core of the build over MB/s of plain bz2 decoding
MEMORY_BAR_MB = 1000.0
FLAT_BAR = 1.25  # largest over smallest peak of the sizes


def decode_cpu_s(path: Path, *, n_rounds: int = 3) -> float:
    """Returns the CPU seconds that Python's bz2 module needs to decode the file: the median of the rounds."""
    rounds = []
    for _ in range(n_rounds):
        start = time.process_time()
        with bz2.open(path, "rb") as file:
            while file.read(1 << 20):
                pass
        rounds.append(time.process_time() - start)
    return median(rounds)


def build(dump: MadeDump, *, output: Path, runner: tuple[str, ...], options: list[str]) -> Usage:
    """Runs ``kbsource build`` with the folder ``output``, which is removed first. The other parameters are those of
    ``make``.
    """
    return make("build", dump.path, output=output, options=[*runner, *options])


def make(command: str, source: Path, *, output: Path, options: list[str]) -> Usage:
    """Runs a command that makes a release in ``output``, which is removed first.

    Raises:
        SystemExit: the command failed; the message has the end of its output.
    """
    shutil.rmtree(output, ignore_errors=True)
    given = [sys.executable, "-m", "pipelines.cli", command, str(source), "--output", str(output)]
    return _checked([*given, *options], name=output.name)


def _checked(command: list[str], *, name: str, env: dict[str, str] | None = None) -> Usage:
    log = WORK / "logs" / f"{name}.log"
    usage = run(command, cwd=REPOSITORY, log=log, env=env)
    if usage.returncode != 0:
        tail = log.read_text(encoding="utf-8", errors="replace")[-3000:]
        raise SystemExit(f"{' '.join(command)} ended with {usage.returncode}:\n{tail}")
    return usage


def release_digest(release: Path) -> str:
    """Returns one SHA-256 hash over the names and bytes of all files of a release."""
    digest = hashlib.sha256()
    for path in sorted(path for path in release.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            part = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{path.relative_to(release)} {part}\n".encode())
    return digest.hexdigest()


def measure(data: str | None, *, sizes_mb: list[int], peers_mb: int | None, options: list[str]) -> dict[str, Any]:
    """Builds every size with one and with two workers, and runs the peers' commands on a dump of ``peers_mb`` MB."""
    root = data_root(data)
    folder = WORK / "releases"
    rows: list[dict[str, Any]] = []
    for n_mb in sizes_mb:
        dump = cached_dump(WORK / "dumps", root=root, n_mb=n_mb)
        decode_s = decode_cpu_s(dump.path)
        local = ("--workers", "1")
        two_workers = ("--workers", "2")
        for name, runner in (("local", local), ("local, 2 workers", two_workers)):
            output = folder / f"{n_mb}mb-{runner[1]}"
            usage = build(dump, output=output, runner=runner, options=options)
            rows.append(_row(dump, n_mb, name, usage, decode_s) | {"release_sha256": release_digest(output)})
            shutil.rmtree(output)
    result: dict[str, Any] = {"machine": machine(), "builds": rows, "peers": []}
    result["memory"] = _memory_summary(rows)
    if peers_mb is not None:
        dump = cached_dump(WORK / "dumps", root=root, n_mb=peers_mb, multistream=False)
        decode_s = decode_cpu_s(dump.path)
        usage = build(dump, output=folder / "peers", runner=("--workers", "1"), options=options)
        shutil.rmtree(folder / "peers")
        result["peers"] = [_row(dump, peers_mb, "kbsource build", usage, decode_s)]
        for name, command, env in peer_commands(dump.path, folder):
            usage = _checked(command, name=name.split(" ", 1)[0], env=env)
            result["peers"].append(_row(dump, peers_mb, name, usage, decode_s))
            shutil.rmtree(folder / "peer", ignore_errors=True)
    return result


def peer_commands(dump: Path, folder: Path) -> list[tuple[str, list[str], dict[str, str]]]:
    """Returns the peers' own commands for a whole dump, each with one worker process."""
    output = folder / "peer"
    output.mkdir(parents=True, exist_ok=True)
    extract = ["-m", "wikiextractor.WikiExtractor", "--no-templates", "--processes", "1", "--quiet"]
    python = str(peer_python())
    older = {"PYTHONPATH": os.fspath(older_wikiextractor())}
    return [
        (
            f"wikiextractor {OLDER_WIKIEXTRACTOR} --no-templates",
            [python, *extract, "--output", str(output / "text"), str(dump)],
            older,
        ),
        (
            f"wikiextractor {OLDER_WIKIEXTRACTOR} --no-templates --links --json",
            [python, *extract, "--links", "--json", "--output", str(output / "links"), str(dump)],
            older,
        ),
        (
            "segment_wiki",
            [
                python,
                "-m",
                "gensim.scripts.segment_wiki",
                "-w",
                "1",
                "-f",
                str(dump),
                "-o",
                str(output / "s.json"),
            ],
            {},
        ),
    ]


def _row(dump: MadeDump, n_mb: int, name: str, usage: Usage, decode_s: float) -> dict[str, Any]:
    xml_mb = dump.n_xml_bytes / 1e6
    return {
        "size_mb": n_mb,
        "name": name,
        "pages": dump.n_pages,
        "wall_s": usage.wall_s,
        "cpu_s": usage.cpu_s,
        "mb_per_core_s": xml_mb / usage.cpu_s,
        "mb_per_wall_s": xml_mb / usage.wall_s,
        "bz2_mb_per_s": xml_mb / decode_s,
        "share_of_bz2": decode_s / usage.cpu_s,
        "peak_tree_mb": usage.peak_tree_mb,
        "peak_process_mb": usage.peak_process_mb,
        "processes": usage.n_processes,
    }


def _memory_summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for name in dict.fromkeys(row["name"] for row in rows):
        peaks = [row["peak_tree_mb"] for row in rows if row["name"] == name]
        summary[name] = {"highest_mb": max(peaks), "largest_over_smallest": max(peaks) / min(peaks)}
    return summary


def show(result: dict[str, Any]) -> None:
    """Prints the tables and the bars."""
    keys = (
        "size_mb", "name", "wall_s", "cpu_s", "mb_per_core_s", "mb_per_wall_s", "bz2_mb_per_s",
        "share_of_bz2", "peak_tree_mb", "peak_process_mb", "processes",
    )  # fmt: skip
    header = (
        "MB", "run", "wall s", "CPU s", "MB/s per core", "MB/s wall", "bz2 MB/s",
        "share of bz2", "peak MB", "process MB", "processes",
    )  # fmt: skip
    for title, rows in (("the whole build", result["builds"]), ("whole commands", result["peers"])):
        if rows:
            print(f"\n{title}: MB of XML; memory is the process tree's PSS; bar: share of bz2 >= {SHARE_BAR}")
            print(table(header, [tuple(row[key] for key in keys) for row in rows]))
    for name, memory in result["memory"].items():
        print(
            f"memory, {name}: highest {memory['highest_mb']:.0f} MB (bar {MEMORY_BAR_MB:.0f}), "
            f"largest over smallest size {memory['largest_over_smallest']:.2f} (bar {FLAT_BAR})"
        )
    by_size: dict[int, list[dict[str, Any]]] = {}
    for row in result["builds"]:
        by_size.setdefault(row["size_mb"], []).append(row)
    for n_mb, (single, two) in ((n_mb, rows) for n_mb, rows in by_size.items() if len(rows) == 2):
        same = "the same bytes" if single["release_sha256"] == two["release_sha256"] else "DIFFERENT BYTES"
        print(f"{n_mb} MB: 2 workers take {two['wall_s'] / single['wall_s']:.2f} of the wall time of 1; {same}")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--sizes", default="50,100,200", help="MB of XML, comma-separated")
    parser.add_argument("--peers-mb", type=int, help="also run the peers' commands on a dump of this size")
    parser.add_argument("--json", help="write the figures here")
    args, options = parser.parse_known_args()
    sizes_mb = [int(size) for size in args.sizes.split(",")]
    result = measure(args.data, sizes_mb=sizes_mb, peers_mb=args.peers_mb, options=options)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
