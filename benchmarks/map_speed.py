"""Measures ``kbsource map`` on generated evidence over a release of real pages: pieces of evidence per second, and
memory by their number.

A piece of evidence is a part of a real paragraph, 5 to 150 words long. 10 to 30 % of its words are dropped, replaced,
or preceded by an inserted word. The pieces are taken from all pages in turn, so that several pieces share a page. A
share of the pieces names its page by a title that the release does not have, a different one each time. There is one
worker process in addition to the driver.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY, S1, data_root
from kbsource.lookup import KnowledgeSource

SEED = 20190801
SIZES = (10_000, 100_000)
SHORTEST, LONGEST = 5, 150
LEAST, MOST = 0.1, 0.3
MISSING = 0.1
FLAT = 1.05
"""Memory counts as flat up to this factor."""


def real_release(data: str | None) -> Path:
    """Returns a release of the long English articles of the real data, built on first use.

    Raises:
        SystemExit: the build failed.
    """
    release = WORK / "releases" / "map-s1"
    if not (release / "manifest.json").is_file():
        shutil.rmtree(release, ignore_errors=True)
        # Under its own name the slice says that it is one part of many.
        dump = WORK / "map-s1.xml.bz2"
        WORK.mkdir(exist_ok=True)
        shutil.copyfile(data_root(data) / "dumps" / S1, dump)
        command = [sys.executable, "-m", "pipelines.cli", "build", str(dump), "--output", str(release)]
        log = WORK / "map-s1-build.log"
        usage = run([*command, "--max-rejects", "1", "--allow-truncated"], cwd=REPOSITORY, log=log)
        if usage.returncode:
            raise SystemExit(f"kbsource build failed, see {log}")
    return release


def write_evidences(
    release: Path, path: Path, n_evidences: int, *, longest: int = LONGEST, missing: float = MISSING
) -> None:
    """Writes this number of records in kbsource's own format, each with one piece of evidence.

    Args:
        release: release from whose pages the evidence is made.
        path: file to write.
        n_evidences: number of records.
        longest: maximum number of words in a piece of evidence.
        missing: share of the pieces whose page is not in the release.
    """
    with KnowledgeSource.open(str(release)) as source:
        pages = [
            (
                page.page_id,
                page.title,
                [words for element in page.elements[1:] if len(words := element.text.split()) >= SHORTEST],
            )
            for page in source
            if not page.is_disambiguation
        ]
    pages = [page for page in pages if page[2]]
    vocabulary = sorted({word for _, _, paragraphs in pages for words in paragraphs for word in words})
    rng = random.Random(SEED)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for number in range(n_evidences):
            page_id, title, paragraphs = pages[number % len(pages)]
            words = rng.choice(paragraphs)
            n_words = min(len(words), rng.randint(SHORTEST, longest))
            start = rng.randrange(len(words) - n_words + 1)
            text = " ".join(_changed(words[start : start + n_words], vocabulary, rng))
            evidence: dict[str, object] = {"page_id": page_id, "text": text}
            if rng.random() < missing:
                evidence = {"title": f"{title} {rng.choice(vocabulary)} {number}", "text": text}
            record = {"id": str(number), "input": "?", "output": [{"answer": "x", "evidence": [evidence]}]}
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def _changed(words: list[str], vocabulary: list[str], rng: random.Random) -> list[str]:
    share = rng.uniform(LEAST, MOST)
    changed: list[str] = []
    for word in words:
        if rng.random() >= share:
            changed.append(word)
            continue
        kind = rng.choice(("drop", "insert", "replace"))
        if kind != "drop":
            changed.append(rng.choice(vocabulary))
        if kind == "insert":
            changed.append(word)
    return changed or words


def measure(
    data: str | None,
    *,
    sizes: tuple[int, ...] = SIZES,
    kb: str | None = None,
    longest: int = LONGEST,
    missing: float = MISSING,
) -> dict[str, Any]:
    """Returns the figures."""
    release = Path(kb).resolve() if kb else real_release(data)
    rows = []
    for n_evidences in sizes:
        source = WORK / "map" / f"{n_evidences}.jsonl"
        write_evidences(release, source, n_evidences, longest=longest, missing=missing)
        output = WORK / "map" / f"aligned-{n_evidences}"
        shutil.rmtree(output, ignore_errors=True)
        command = [sys.executable, "-m", "pipelines.cli", "map", "jsonl", str(release), "--workers", "1"]
        log = WORK / "map" / f"{n_evidences}.log"
        usage = run([*command, "--input", str(source), "--output", str(output)], cwd=REPOSITORY, log=log)
        if usage.returncode:
            raise SystemExit(f"kbsource map failed, see {log}")
        counts = json.loads((output / "report.json").read_text("utf-8"))["counts"]
        rows.append(
            {
                "evidences": n_evidences,
                "wall_s": usage.wall_s,
                "cpu_s": usage.cpu_s,
                "per_core_s": n_evidences / usage.cpu_s,
                "peak_tree_mb": usage.peak_tree_mb,
                "peak_process_mb": usage.peak_process_mb,
                "outcomes": counts["evidences"],
            }
        )
    growth = rows[-1]["peak_tree_mb"] / rows[0]["peak_tree_mb"]
    with KnowledgeSource.open(str(release)) as knowledge:
        n_pages = len(knowledge)
    return {"machine": machine(), "pages": n_pages, "runs": rows, "memory_growth": growth, "flat": growth <= FLAT}


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print(f"\nkbsource map, generated evidence over {result['pages']} real pages")
    columns = ("evidences", "wall_s", "cpu_s", "per_core_s", "peak_tree_mb", "peak_process_mb")
    head = (
        "pieces of evidence",
        "wall s",
        "CPU s",
        "pieces of evidence/s per core",
        "peak MB, all",
        "peak MB, one process",
    )
    print(table(head, [tuple(row[name] for name in columns) for row in result["runs"]]))
    print(f"memory from the fewest to the most: × {result['memory_growth']:.2f}, flat: {result['flat']}")
    print(f"outcomes of the most: {result['runs'][-1]['outcomes']}")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.map_speed", description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--kb", help="a release to use instead of one built from the real data")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of pieces of evidence")
    parser.add_argument("--json", help="write the figures here")
    parser.add_argument("--longest", type=int, default=LONGEST, help="maximum number of words of a piece of evidence")
    parser.add_argument(
        "--missing",
        type=float,
        default=MISSING,
        help="share of the pieces of evidence whose page is not in the release",
    )
    args = parser.parse_args()
    result = measure(args.data, sizes=tuple(args.sizes), kb=args.kb, longest=args.longest, missing=args.missing)
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
