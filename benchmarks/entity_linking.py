"""Measures ``kbsource entity-linking`` over copies of real pages in which every link resolves: links per second and
core, and memory.

Each copy has another word before each of its texts, so that few links have the same context. The pages that the links
point to are stubs.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.map_speed import real_release
from benchmarks.qampari_speed import kbsource
from kbsource.lookup import KnowledgeSource
from kbsource.records import Element, Page
from tests.support.releases import TitleRow, write_release

COPIES = (10, 40)
_FIRST_COPY = 10_000_000


def measure(data: str | None = None, *, copies: tuple[int, ...] = COPIES) -> dict[str, Any]:
    """Returns the figures of one run for each size."""
    runs = []
    for n_copies in copies:
        kb = made_release(data, n_copies)
        output = kb.parent / "linking"
        shutil.rmtree(output, ignore_errors=True)
        wanted = ["--train", "100000", "--dev", "1000", "--json"]
        log = kb.parent / "linking.log"
        usage = kbsource(["entity-linking", str(kb), "--output", str(output), *wanted], log)
        counts = json.loads((output / "manifest.json").read_text())["counts"]
        runs.append(
            {
                "copies": n_copies,
                "links": counts["links"],
                "taken": counts["taken"],
                "train": counts["train"],
                "aliases": counts["aliases"],
                "wall_s": usage.wall_s,
                "cpu_s": usage.cpu_s,
                "links_per_core_s": counts["links"] / usage.cpu_s,
                "peak_own_mb": usage.peak_tree_own_mb,
                "peak_tree_mb": usage.peak_tree_mb,
            }
        )
    return {"machine": machine(), "runs": runs}


def made_release(data: str | None, n_copies: int) -> Path:
    """Returns a release with this number of copies of the pages of a slice. The release is kept for later runs."""
    folder = WORK / f"linking-{n_copies}"
    kb = folder / "release"
    if not (kb / "manifest.json").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with KnowledgeSource.open(real_release(data)) as source:
            pages = list(source)
        targets = sorted({anchor.target_title for page in pages for anchor in page.anchors})
        ids = {title: number for number, title in enumerate(targets, 1)}
        made = list(_copies(pages, ids, n_copies))
        titles = [TitleRow(made_page.page_id, made_page.title) for made_page in made]
        write_release(folder, made, titles=titles, rows_per_shard=len(made) // 4, n_shards=4)
    return kb


def _copies(pages: list[Page], ids: dict[str, int], n_copies: int) -> Iterator[Page]:
    stub = replace(pages[0], qid=None, anchors=(), tables=(), infoboxes=(), templates=(), losses=(), categories=())
    for title, page_id in ids.items():
        elements = (Element("title", 1, None, "", (), title), Element("paragraph", 0, None, "", (), "It is a stub."))
        yield replace(stub, page_id=page_id, title=title, elements=elements)
    for copy in range(n_copies):
        for number, page in enumerate(pages):
            word = f"{copy} "
            n_chars = len(word)
            elements = (
                page.elements[0],
                *(replace(element, text=word + element.text) for element in page.elements[1:]),
            )
            anchors = tuple(
                replace(
                    anchor,
                    start=anchor.start + n_chars,
                    end=anchor.end + n_chars,
                    target_page_id=ids[anchor.target_title],
                )
                for anchor in page.anchors
                if anchor.element
            )
            page_id = _FIRST_COPY + copy * len(pages) + number
            yield replace(
                page, page_id=page_id, qid=None, title=f"{page.title} ({copy})", elements=elements, anchors=anchors
            )


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print("\nkbsource entity-linking, copies of real pages")
    names = (
        "copies",
        "links",
        "taken",
        "train",
        "aliases",
        "wall_s",
        "cpu_s",
        "links_per_core_s",
        "peak_own_mb",
        "peak_tree_mb",
    )
    head = ("copies", "links", "taken", "train", "aliases", "wall s", "CPU s", "links/s per core", "own MB", "all MB")
    print(table(head, [tuple(row[name] for name in names) for row in result["runs"]]))


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.entity_linking", description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--copies", type=int, nargs="+", default=list(COPIES), help="copies of the pages")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, copies=tuple(args.copies))
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
