"""Measures an incremental build of a dump in which 5 % of the articles are edited, compared with the full build.

It measures CPU and bytes of both builds and of their passages, and the cost of recording dependencies.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.build_speed import make, release_digest
from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.make_dump import MadePage, base_pages, made_pages, write_dump
from benchmarks.slices import OTHERS, S1, data_root

CPU_BAR = 0.35  # CPU of the build from a base over that of the full one
WHOLE_WIKI = "dumpsterdive_smallwiki-pages-articles.xml.gz"
EVERY = 20  # an article in so many is edited
_NEW = b"\n\nThe tide came in. It was [[April]] {{citation needed}}.</text>"


def edited(pages: Iterable[MadePage]) -> Iterator[MadePage]:
    """Yields the pages, with a new paragraph at the end of every twentieth article."""
    n_articles = 0
    for page in pages:
        n_articles += page.is_article
        is_edited = page.is_article and n_articles % EVERY == 0
        yield page._replace(xml=page.xml.replace(b"</text>", _NEW)) if is_edited else page


def measure(data: str | None, *, n_mb: int, slices: tuple[str, ...], options: list[str]) -> dict[str, Any]:
    """Builds the first dump without and with dependencies, then the edited dump in full and from the first release."""
    root, folder = data_root(data), WORK / "dumps" / f"{n_mb}mb-incremental"
    pages = base_pages(root, slices)
    old, new = (folder / f"enwiki-2000{month}01-pages-articles.xml.bz2" for month in ("01", "02"))
    before = write_dump(old, made_pages(pages, n_mb=n_mb), multistream=True)
    after = write_dump(new, edited(made_pages(pages, n_mb=n_mb)), multistream=True)
    releases = WORK / "releases"
    base = releases / "base"
    rows = [
        _made("without dependencies", "build", before.path, releases / "plain", options=options),
        _made("with dependencies", "build", before.path, base, options=["--record-dependencies", *options]),
        _made("edited, full", "build", after.path, releases / "full", options=["--record-dependencies", *options]),
        _made(
            "edited, from a base",
            "build",
            after.path,
            releases / "made",
            options=["--record-dependencies", "--base", str(base), *options],
        ),
    ]
    known = ["--base", str(releases / "cut-base"), "--base-kb", str(base)]
    cuts = [
        _made(name, "passages", kb, releases / f"cut-{kb.name}", options=given)
        for name, kb, given in (
            ("passages", base, []),
            ("passages of the edited, full", releases / "full", []),
            ("passages of the edited, from a base", releases / "made", known),
        )
    ]
    for name in ("plain", "base", "full", "made", "cut-base", "cut-full", "cut-made"):
        shutil.rmtree(releases / name)
    return {"machine": machine(), "builds": rows, "passages": cuts, "articles": before.n_articles}


def _made(name: str, command: str, source: Path, output: Path, *, options: list[str]) -> dict[str, Any]:
    usage = make(command, source, output=output, options=["--workers", "1", *options])
    n_bytes = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    dependencies = sum(
        path.stat().st_size for table in ("dependencies", "definitions") for path in output.glob(f"{table}/*")
    )
    return {
        "name": name,
        "cpu_s": usage.cpu_s,
        "wall_s": usage.wall_s,
        "peak_mb": usage.peak_tree_mb,
        "release_mb": n_bytes / 1e6,
        "dependencies_mb": dependencies / 1e6,
        "sha256": release_digest(output),
    }


def show(result: dict[str, Any]) -> None:
    """Prints the table and the bar."""
    keys = ("name", "cpu_s", "wall_s", "peak_mb", "release_mb", "dependencies_mb")
    rows = result["builds"]
    print(f"\n{result['articles']} articles, one in {EVERY} edited")
    header = ("build", "CPU s", "wall s", "peak MB", "release MB", "of it dependencies MB")
    print(table(header, [tuple(row[key] for key in keys) for row in (*rows, *result["passages"])]))
    plain, recorded, *_ = rows
    for what in ("builds", "passages"):
        *_, full, made = result[what]
        same = "the same bytes" if full["sha256"] == made["sha256"] else "DIFFERENT BYTES"
        print(f"{what} from a base: {made['cpu_s'] / full['cpu_s']:.2f} of the CPU in full (bar {CPU_BAR}); {same}")
    print(f"dependencies: {recorded['cpu_s'] / plain['cpu_s']:.2f} of the CPU without them")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--mb", type=int, default=50, help="MB of XML")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--whole-wiki", action="store_true", help="use the one slice that defines its templates")
    args, options = parser.parse_known_args()
    slices = (WHOLE_WIKI,) if args.whole_wiki else (S1, *OTHERS)
    result = measure(args.data, n_mb=args.mb, slices=slices, options=options)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
