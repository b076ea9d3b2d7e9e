"""``kbsource diff`` over two made-up releases: seconds, memory by number of pages, and the line drawn out to 7 million.

Pages are short: a heading and three paragraphs of forty words. Of a thousand pages 50 are edited, 10 renamed, 10 gone, 10
new and 5 merged into their neighbours. The command runs in a process of its own, which is sampled ten times a second;
memory is its resident set, and that without the pages of mapped files, which the system takes back at will.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY
from kbsource.records import Element, Page
from tests.support.releases import TitleRow, redirect_to, write_release

SIZES = (250_000, 1_000_000)
PLANNED, BAR_MB = 7_000_000, 4_000
_PER_SHARD = 50_000
_HEAD = Element("heading", 2, None, "", ("History",), "History")


class MadeUp:
    """Pages of either release, by number; those from ``n_pages`` on are new."""

    def __init__(self, n_pages: int) -> None:
        self._n_pages = n_pages
        rng = random.Random(0)
        words = [f"word{number}" for number in range(5_000)]
        self._stock = [" ".join(rng.choices(words, k=20)) + "." for _ in range(20_000)]

    def page(self, number: int, *, is_new: bool) -> Page:
        """Gives a page as the old or the new release has it."""
        title, text, place = f"Page {number}", list(self._texts(number)), number % 1000
        if is_new and place < 50:
            text[place % 3] = f"{text[place % 3][:60]} edited {text[place % 3][70:]}"
        elif is_new and place < 60:
            title = f"Page {number} (renamed)"
        paragraphs = [Element("paragraph", 0, None, "", _HEAD.section, paragraph) for paragraph in text]
        elements = (Element("title", 1, None, "", (), title), paragraphs[0]._replace(section=()), _HEAD, *paragraphs[1:])
        facts = (3 * number + 1, title, f"Q{number + 1}", False, number + 1, None, "2019-07-19T20:25:53Z", "https://e.org")
        return Page(*facts, elements, (), (), (), (), (), (), (), "ok")

    def _texts(self, number: int) -> Iterator[str]:
        for paragraph in range(3):
            first = (number * 3 + paragraph) * 7919
            yield f"{number} {self._stock[first % 20_000]} {self._stock[first // 20_000 % 20_000]}"

    def numbers(self, *, is_new: bool) -> Iterator[int]:
        """Gives the numbers of the pages of a release."""
        if not is_new:
            yield from range(self._n_pages)
            return
        yield from (number for number in range(self._n_pages) if not 60 <= number % 1000 < 75)
        yield from range(self._n_pages, self._n_pages + self._n_pages // 100)

    def titles(self, *, is_new: bool) -> Iterator[TitleRow]:
        """Gives the rows of the title index."""
        for number in self.numbers(is_new=is_new):
            is_renamed = is_new and number < self._n_pages and 50 <= number % 1000 < 60
            yield TitleRow(3 * number + 1, f"Page {number} (renamed)" if is_renamed else f"Page {number}")
            if is_renamed:
                yield redirect_to(3 * number + 2, f"Page {number}", f"Page {number} (renamed)")
        for number in range(self._n_pages) if is_new else ():
            if 70 <= number % 1000 < 75:
                yield redirect_to(3 * number + 1, f"Page {number}", f"Page {number + 10}")


def made_up_release(n_pages: int, *, is_new: bool) -> Path:
    """Gives a release of so many pages, made on first use."""
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
    """Gives figures for ``PLANNED`` pages: on the line through the smallest and the largest size."""
    first, last = rows[0], rows[-1]
    steps = (PLANNED - last["pages"]) / max(1, last["pages"] - first["pages"])
    names = ("wall_s", "cpu_s", "resident_mb", "own_mb", "output_mb")
    return {name: last[name] + steps * (last[name] - first[name]) for name in names}


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    print(f"\ndiff of releases; bar: {BAR_MB:,} MB for {PLANNED:,} pages each")
    rows = [tuple(row.values())[:-1] for row in result["sizes"]]
    rows.append((f"{PLANNED} (line)", *result["planned"].values()))
    print(table(("pages", "wall s", "CPU s", "resident MB", "own MB", "output MB"), rows))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diff", description=__doc__)
    parser.add_argument("--pages", type=int, nargs="+", default=SIZES)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(sizes=tuple(args.pages))
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
