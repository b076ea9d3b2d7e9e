"""Measures ``kbsource wikidata``: MB/s per core from a dump to tables, compared with orjson.loads and bz2 decoding, and
memory by size.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY, data_root
from kbsource.dump.digests import CheckedFiles, hash_file
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import ChunkKey, Work, chunk_path, write_chunk
from kbsource.runtime.guarded import spare_collector
from kbsource.wikidata.entity import NEEDED_QUALIFIERS, EntityReader
from kbsource.wikidata.lines import plan_entities
from kbsource.wikidata.parts import IDS, PartFiles

SOURCES = ("wikidata/qrank_twenty_entities.json.bz2", "wikidata/wikibase-dump-filter_entities.ndjson.gz")
BAR = 0.5  # MB/s of ours over the slower of orjson.loads and bz2
FLAT_BAR = 1.25  # largest over smallest peak of the sizes
_ID = re.compile(rb'"id":"Q\d+"')
_NUMBERS_FROM = 100_000_000


def entities(data: Path) -> list[bytes]:
    """Returns the lines of the real entities."""
    lines: list[bytes] = []
    for name in SOURCES:
        opened = bz2.open if name.endswith("bz2") else gzip.open
        with opened(data / name, "rb") as file:
            lines += [line.strip(b" \r\n,") for line in file]
    return [line for line in lines if line.startswith(b"{")]


def make_dump(data: Path, size_mb: int) -> Path:
    """Returns a single-stream bzip2 dump of about this many MB of JSON, in which every entity has a unique id."""
    path = WORK / "wikidata" / f"wikidata-{size_mb}mb.json.bz2"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        compressor = bz2.BZ2Compressor()
        with path.with_suffix(".tmp").open("wb") as file:
            for piece in _content(entities(data), size_mb * 1_000_000):
                file.write(compressor.compress(piece))
            file.write(compressor.flush())
        path.with_suffix(".tmp").rename(path)
    return path


def _content(lines: list[bytes], n_bytes: int) -> Iterator[bytes]:
    yield b"[\n"
    done = number = 0
    while done < n_bytes:
        for line in lines:
            piece = (b",\n" if number else b"") + _ID.sub(b'"id":"Q%d"' % (_NUMBERS_FROM + number), line, count=1)
            yield piece
            done += len(piece)
            number += 1
    yield b"\n]\n"


def _cpu_s(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def decode(path: Path) -> None:
    """Decodes the file with Python's bz2 module and discards the result."""
    with bz2.open(path, "rb") as file:
        while file.read(1 << 20):
            pass


def load(lines: list[bytes]) -> None:
    """Parses every line and discards the result."""
    for line in lines:
        orjson.loads(line)


def parse(path: Path, output: Path) -> None:
    """Processes the whole dump: hashes it, and makes Parquet files from the compressed bytes."""
    shutil.rmtree(output, ignore_errors=True)
    staging = str(output / "_staging")
    hashed = {str(path): hash_file(str(path))}
    ranges = plan_entities([str(path)], range_bytes=1 << 40)
    reader = EntityReader(languages=("en",), sites=None, qualifiers=frozenset(NEEDED_QUALIFIERS))
    files = PartFiles(ranges, reader, files=CheckedFiles(hashed), staging=staging)
    work = Work(ChunkKey(0, 0), Beat.unshared())
    write_chunk(files(iter(()), work), IDS, work.report, path=chunk_path(staging, work.key))


def measure(data: str | None, *, size_mb: int, sizes_mb: list[int], n_rounds: int) -> dict[str, Any]:
    """Measures the speed on one dump, in turns in this process, and the memory of the command on dumps of several
    sizes.
    """
    root = data_root(data)
    dump = make_dump(root, size_mb)
    spare_collector()  # as in a working process; it serves all three
    lines = [line.strip(b" \r\n,") for line in bz2.decompress(dump.read_bytes()).split(b"\n")]
    lines = [line for line in lines if line.startswith(b"{")]
    n_bytes = sum(map(len, lines))
    works: dict[str, Callable[[], object]] = {
        "orjson.loads": lambda: load(lines),
        "bz2": lambda: decode(dump),
        "kbsource": lambda: parse(dump, WORK / "wikidata" / "part"),
    }
    rounds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(n_rounds):
        for name, work in works.items():
            rounds[name].append(_cpu_s(work))
    speeds = {name: n_bytes / 1e6 / median(seconds) for name, seconds in rounds.items()}
    share = speeds["kbsource"] / min(speeds["orjson.loads"], speeds["bz2"])
    memory = [_memory(make_dump(root, size), size) for size in sizes_mb]
    return {
        "machine": machine(),
        "mb": n_bytes / 1e6,
        "entities": len(lines),
        "mb_per_s": speeds,
        "share_of_slower": share,
        "bar": BAR,
        "memory": memory,
    }


def _memory(dump: Path, size_mb: int) -> dict[str, Any]:
    output = WORK / "wikidata" / "release"
    shutil.rmtree(output, ignore_errors=True)
    command = [sys.executable, "-m", "pipelines.cli", "wikidata", str(dump), "--output", str(output)]
    log = WORK / "logs" / "wikidata.log"
    usage = run(command, cwd=REPOSITORY, log=log)
    if usage.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {usage.returncode}:\n{log.read_text('utf-8')[-3000:]}")
    return {
        "mb": size_mb,
        "wall_s": usage.wall_s,
        "cpu_s": usage.cpu_s,
        "peak_tree_mb": usage.peak_tree_mb,
        "peak_process_mb": usage.peak_process_mb,
    }


def show(result: dict[str, Any]) -> None:
    """Prints the tables."""
    print(f"\nWikidata to tables: {result['entities']} entities, {result['mb']:.1f} MB of JSON, one core")
    rows: list[tuple[Any, ...]] = list(result["mb_per_s"].items())
    print(table(("what", "MB/s"), rows))
    print(f"of the slower: {result['share_of_slower']:.0%} (bar {result['bar']:.0%})")
    names = ("mb", "wall_s", "cpu_s", "peak_tree_mb", "peak_process_mb")
    print("\nkbsource wikidata, one worker process")
    print(
        table(
            ("MB", "wall s", "CPU s", "peak of all MB", "of one MB"),
            [tuple(m[n] for n in names) for m in result["memory"]],
        )
    )
    peaks = [measured["peak_tree_mb"] for measured in result["memory"]]
    print(f"largest over smallest peak: {max(peaks) / min(peaks):.2f} (bar {FLAT_BAR})")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument(
        "--size", type=int, default=200, metavar="MB", help="size of the JSON dump for the measurement of speed"
    )
    parser.add_argument(
        "--sizes", default="50,200", metavar="MB,MB", help="sizes of the JSON dumps for the measurement of memory"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    result = measure(args.data, size_mb=args.size, sizes_mb=sizes, n_rounds=args.rounds)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
