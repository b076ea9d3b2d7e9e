"""Measures ``kbsource diff`` over two generated releases: seconds, memory by number of pages, and only the joins for 7
million pages.

Pages are short: a heading and three paragraphs of forty words. Of a thousand pages, 50 are edited, 10 are renamed, 10
are deleted, 10 are new, and 5 are merged into a neighbour. The command runs in a separate process whose memory is
sampled ten times a second. Memory is the resident set, with and without the pages of mapped files, which the system can
take back at any time. The joins run in another process. They read generated fingerprints and redirects, one for each
page, so that no release of 7 million pages is needed.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY
from kbsource.columns import schema_of
from kbsource.diff.kind import TABLES
from kbsource.diff.making import COMPARED, MATCH, PAGE_ROWS, REDIRECT_ROWS, STAGED, TITLE_MAP, PagePair
from kbsource.records import Element, Page
from kbsource.release.sql import connected
from kbsource.release.writer import TableFile, write_batches
from kbsource.runtime.database import ordered_batches
from tests.support.releases import TitleRow, redirect_to, write_release

SIZES = (250_000, 1_000_000)
PLANNED, BAR_MB = 7_000_000, 4_000
_PER_SHARD = 50_000
FINGERPRINTS = pa.schema(
    [
        ("page_id", pa.int64()),
        ("title", pa.string()),
        ("qid", pa.string()),
        ("revision_id", pa.int64()),
        ("is_disambiguation", pa.bool_()),
        ("shard", pa.int32()),
        ("row", pa.int32()),
        ("chars", pa.int64()),
        ("text_hash", pa.binary()),
    ]
)
REDIRECTS = pa.schema([("page_id", pa.int64()), ("title", pa.string()), ("final_page_id", pa.int64())])
"""What ``kbsource.diff.making.FINGERPRINTS`` makes of a release, in tables."""
_HEAD = Element("heading", 2, None, "", ("History",), "History")


class MadeUp:
    """The generated pages of one release, by number. Pages from number ``n_pages`` on are new."""

    def __init__(self, n_pages: int) -> None:
        self._n_pages = n_pages
        rng = random.Random(0)
        words = [f"word{number}" for number in range(5_000)]
        self._stock = [" ".join(rng.choices(words, k=20)) + "." for _ in range(20_000)]

    def page(self, number: int, *, is_new: bool) -> Page:
        """Returns a page of the old or of the new release."""
        title, text, place = f"Page {number}", list(self._texts(number)), number % 1000
        if is_new and place < 50:
            text[place % 3] = f"{text[place % 3][:60]} edited {text[place % 3][70:]}"
        elif is_new and place < 60:
            title = f"Page {number} (renamed)"
        paragraphs = [Element("paragraph", 0, None, "", _HEAD.section, paragraph) for paragraph in text]
        elements = (
            Element("title", 1, None, "", (), title),
            replace(paragraphs[0], section=()),
            _HEAD,
            *paragraphs[1:],
        )
        facts = (
            3 * number + 1,
            title,
            f"Q{number + 1}",
            False,
            number + 1,
            None,
            datetime(2019, 7, 19, tzinfo=UTC),
            "https://e.org",
        )
        return Page(*facts, elements, *((),) * 9, "ok")

    def _texts(self, number: int) -> Iterator[str]:
        for paragraph in range(3):
            first = (number * 3 + paragraph) * 7919
            yield f"{number} {self._stock[first % 20_000]} {self._stock[first // 20_000 % 20_000]}"

    def numbers(self, *, is_new: bool) -> Iterator[int]:
        """Yields the numbers of the pages of a release."""
        if not is_new:
            yield from range(self._n_pages)
            return
        yield from (number for number in range(self._n_pages) if not 60 <= number % 1000 < 75)
        yield from range(self._n_pages, self._n_pages + self._n_pages // 100)

    def titles(self, *, is_new: bool) -> Iterator[TitleRow]:
        """Yields the rows of the title index."""
        for number in self.numbers(is_new=is_new):
            is_renamed = is_new and number < self._n_pages and 50 <= number % 1000 < 60
            yield TitleRow(3 * number + 1, f"Page {number} (renamed)" if is_renamed else f"Page {number}")
            if is_renamed:
                yield redirect_to(3 * number + 2, f"Page {number}", f"Page {number} (renamed)")
        for number in range(self._n_pages) if is_new else ():
            if 70 <= number % 1000 < 75:
                yield redirect_to(3 * number + 1, f"Page {number}", f"Page {number + 10}")

    def fingerprints(self, *, is_new: bool) -> Iterator[pa.RecordBatch]:
        """Yields the data of the pages that the joins read."""
        for numbers in _batched(self.numbers(is_new=is_new)):
            place, is_old = numbers % 1000, numbers < self._n_pages
            renamed = is_new & is_old & (place >= 50) & (place < 60)
            edited = is_new & is_old & (place < 50)
            titles = pc.binary_join_element_wise(
                "Page ", pa.array(numbers).cast(pa.string()), pc.if_else(pa.array(renamed), " (renamed)", ""), ""
            )
            hashes = np.stack([numbers, edited], axis=1).astype("<i8").tobytes()
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(3 * numbers + 1),
                    titles,
                    pc.binary_join_element_wise("Q", pa.array(numbers + 1).cast(pa.string()), ""),
                    pa.array(numbers),
                    pa.array(np.zeros(len(numbers), np.bool_)),
                    pa.array((numbers // _PER_SHARD).astype(np.int32)),
                    pa.array((numbers % _PER_SHARD).astype(np.int32)),
                    pa.array(numbers % 5000 + 1),
                    pa.FixedSizeBinaryArray.from_buffers(
                        pa.binary(16), len(numbers), [None, pa.py_buffer(hashes)]
                    ).cast(pa.binary()),
                ],
                schema=FINGERPRINTS,
            )

    def redirects(self, *, is_new: bool) -> Iterator[pa.RecordBatch]:
        """Yields the data of the redirects that the joins read: one redirect for each page, and the redirects of merged
        and renamed pages.
        """
        for numbers in _batched(iter(range(self._n_pages))):
            place = numbers % 1000
            merged = numbers[is_new & (place >= 70) & (place < 75)]
            renamed = numbers[is_new & (place >= 50) & (place < 60)]
            ids = np.concatenate([3 * numbers + 3, 3 * merged + 1, 3 * renamed + 2])
            names = [("Name ", numbers), ("Page ", merged), ("Page ", renamed)]
            titles = pa.concat_arrays(
                [pc.binary_join_element_wise(head, pa.array(own).cast(pa.string()), "") for head, own in names]
            )
            targets = np.concatenate([3 * numbers + 1, 3 * (merged + 10) + 1, 3 * renamed + 1])
            yield pa.RecordBatch.from_arrays([pa.array(ids), titles, pa.array(targets)], schema=REDIRECTS)


def _batched(numbers: Iterator[int]) -> Iterator[npt.NDArray[np.int64]]:
    while len(own := np.fromiter(islice(numbers, 1 << 16), np.int64)):
        yield own


def made_up_release(n_pages: int, *, is_new: bool) -> Path:
    """Returns a generated release with this number of pages, made on first use."""
    folder = WORK / f"diff-{n_pages}" / ("new" if is_new else "old")
    if not (folder / "release" / "manifest.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        world = MadeUp(n_pages)
        pages = (world.page(number, is_new=is_new and number < n_pages) for number in world.numbers(is_new=is_new))
        n_shards = 1 + n_pages // _PER_SHARD
        titles = world.titles(is_new=is_new)
        write_release(folder, pages, titles=titles, rows_per_shard=_PER_SHARD, n_shards=n_shards)
    return folder / "release"


def measure(*, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Measures the command at each size."""
    rows = []
    for n_pages in sizes:
        old, new = (str(made_up_release(n_pages, is_new=is_new)) for is_new in (False, True))
        output = WORK / f"diff-{n_pages}" / "diff"
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "pipelines.cli", "diff", old, new, "--output", str(output)]
        log = WORK / "logs" / "diff.log"
        usage = run(command, cwd=REPOSITORY, log=log)
        if usage.returncode != 0:
            raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text(encoding='utf-8')[-3000:]}")
        rows.append(
            {
                "pages": n_pages,
                "wall_s": usage.wall_s,
                "cpu_s": usage.cpu_s,
                "resident_mb": usage.peak_process_mb,
                "own_mb": usage.peak_root_own_mb,
                "output_mb": sum(path.stat().st_size for path in output.rglob("*") if path.is_file()) / 1e6,
                "counts": json.loads((output / "report.json").read_bytes())["counts"]["page_changes"],
            }
        )
    return {"machine": machine(), "sizes": rows, "planned": planned(rows)}


def planned(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the figures for ``PLANNED`` pages, extrapolated by the straight line through the smallest and the largest
    size.
    """
    first, last = rows[0], rows[-1]
    steps = (PLANNED - last["pages"]) / max(1, last["pages"] - first["pages"])
    names = ("wall_s", "cpu_s", "resident_mb", "own_mb", "output_mb")
    return {name: last[name] + steps * (last[name] - first[name]) for name in names}


def join(folder: Path, n_pages: int) -> None:
    """Runs, in this process, only the joins of two releases, with generated rows for all pages."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    world = MadeUp(n_pages)
    with connected(reads=[str(folder)], memory_mb=1000, threads=2, scratch=str(folder)) as db:
        for side in ("old", "new"):
            made = (
                (f"{side}_pages", FINGERPRINTS, world.fingerprints(is_new=side == "new")),
                (f"{side}_redirects", REDIRECTS, world.redirects(is_new=side == "new")),
            )
            for name, schema, rows in made:
                write_batches(rows, name, schema, output=str(folder), file=f"{name}.parquet")
                db.read_parquet(str(folder / f"{name}.parquet")).create_view(name)
        for statement in MATCH:
            db.execute(statement)
        n_compared = 0
        with TableFile(str(folder), "kept.parquet", "kept", schema=STAGED["kept"], is_plain=True) as kept:
            for batch in ordered_batches(db, COMPARED, schema_of(PagePair)):
                n_compared += len(batch)
                own = batch.filter(pc.and_(batch["text_changed"], pc.is_valid(batch["old_page_id"])))["old_page_id"]
                if len(own):
                    kept.write(pa.RecordBatch.from_arrays([own, own], schema=STAGED["kept"]))
        db.read_parquet(str(folder / "kept.parquet")).create_view("kept")
        for table, query in (("page_changes", PAGE_ROWS), ("redirect_changes", REDIRECT_ROWS)):
            write_batches(ordered_batches(db, query, TABLES[table]), table, TABLES[table], output=str(folder))
        n_moves = len(db.execute(TITLE_MAP).fetchall())
    print(json.dumps({"compared": n_compared, "moves": n_moves}))


def measure_joins(n_pages: int) -> dict[str, Any]:
    """Measures only the joins."""
    folder = WORK / f"diff-joins-{n_pages}"
    command = [sys.executable, "-m", "benchmarks.diff", "--step", str(folder), "--joins", str(n_pages)]
    usage = run(command, cwd=REPOSITORY, log=WORK / "logs" / "diff-joins.log")
    if usage.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: see {WORK}/logs/diff-joins.log")
    shutil.rmtree(folder)
    return {"pages": n_pages, "wall_s": usage.wall_s, "resident_mb": usage.peak_process_mb}


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(f"\ndiff of releases; bar: {BAR_MB:,} MB for {PLANNED:,} pages each")
    rows = [tuple(row.values())[:-1] for row in result["sizes"]]
    rows.append((f"{PLANNED} (line)", *result["planned"].values()))
    print(table(("pages", "wall s", "CPU s", "resident MB", "own MB", "output MB"), rows))
    if joins := result.get("joins"):
        print(table(("joins alone, pages", "wall s", "resident MB"), [tuple(joins.values())]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diff", description=__doc__)
    parser.add_argument("--pages", type=int, nargs="+", default=SIZES)
    parser.add_argument(
        "--joins", type=int, default=PLANNED, help="pages for the measurement of only the joins; 0 skips it"
    )
    parser.add_argument("--step", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    if args.step:
        join(args.step, args.joins)
        return
    result = measure(sizes=tuple(args.pages))
    if args.joins:
        result["joins"] = measure_joins(args.joins)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
