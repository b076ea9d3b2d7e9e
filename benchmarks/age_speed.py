"""Measures ``kbsource age`` over two and over five generated snapshots of the same pages: the cost of additional
snapshots.

There are a thousand pages of twelve paragraphs. In each snapshot, every twentieth page differs from the previous
snapshot in one paragraph. There are ten thousand pieces of evidence. Each is a paragraph of the first snapshot in which
every tenth word is replaced, so that each needs a search. The two commands run in turns, each in a new process.
Processor time includes all child processes.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY
from kbsource.records import Element, Page
from tests.support.releases import TitleRow, write_release

DATES = ("20200101", "20210101", "20220101", "20230101", "20240101")
N_PAGES, N_EVIDENCES, N_PARAGRAPHS, N_WORDS = 1_000, 10_000, 12, 60
CHANGED_EVERY, BAR = 20, 1.3
_WORDS = [f"word{number}" for number in range(3_000)]


def _paragraph(page: int, number: int, snapshot: int) -> list[str]:
    """Returns the words of a paragraph in a snapshot."""
    changed = [at for at in range(1, snapshot + 1) if page % CHANGED_EVERY == at and number == at % N_PARAGRAPHS]
    return random.Random(f"{page} {number} {changed}").choices(_WORDS, k=N_WORDS)


def pages(snapshot: int) -> Iterator[Page]:
    """Yields the pages of a snapshot."""
    for page in range(N_PAGES):
        title = Element("title", 1, None, "", (), f"Page {page}")
        texts = (f"{' '.join(_paragraph(page, number, snapshot)).capitalize()}." for number in range(N_PARAGRAPHS))
        elements = (title, *(Element("paragraph", 0, None, "", (), text) for text in texts))
        facts = (
            page + 1,
            f"Page {page}",
            None,
            False,
            7,
            None,
            datetime(2019, 7, 19, tzinfo=UTC),
            "https://en.wikipedia.org/",
        )
        yield Page(*facts, elements, *((),) * 9, "ok")


def _evidence(page: int, number: int) -> str:
    """Returns a paragraph of the first snapshot in which every tenth word is replaced."""
    return " ".join("other" if at % 10 == 9 else word for at, word in enumerate(_paragraph(page, number, 0)))


def _made(folder: Path) -> tuple[list[str], str]:
    """Returns the releases and the dataset, which are made on first use."""
    releases = []
    for snapshot, date in enumerate(DATES):
        if not (folder / date / "release" / "manifest.json").exists():
            shutil.rmtree(folder / date, ignore_errors=True)
            titles = [TitleRow(page + 1, f"Page {page}") for page in range(N_PAGES)]
            write_release(folder / date, pages(snapshot), titles=titles, rows_per_shard=N_PAGES // 2, date=date)
        releases.append(str(folder / date / "release"))
    old = folder / "old.jsonl"
    dataset = folder / "made-up-dev-kilt.jsonl"
    with old.open("w", encoding="utf-8") as written:
        for page in range(N_PAGES):
            texts = [f"Page {page}", *(_evidence(page, number) for number in range(N_PARAGRAPHS))]
            names = {"_id": str(page + 1), "wikipedia_id": str(page + 1), "wikipedia_title": f"Page {page}"}
            written.write(f"{json.dumps({**names, 'text': texts, 'anchors': [], 'categories': ''})}\n")
    with dataset.open("w", encoding="utf-8") as written:
        for number in range(N_EVIDENCES):
            page, paragraph = number % N_PAGES, number // N_PAGES % N_PARAGRAPHS
            span = {"start_paragraph_id": paragraph + 1, "end_paragraph_id": paragraph + 1, "start_character": 0}
            span |= {"wikipedia_id": str(page + 1), "title": f"Page {page}"}
            span |= {"end_character": len(_evidence(page, paragraph))}
            record = {"id": f"q{number}", "input": "?", "output": [{"answer": "yes", "provenance": [span]}]}
            written.write(f"{json.dumps(record)}\n")
    return releases, str(dataset)


def measure(*, rounds: int = 3) -> dict[str, Any]:
    """Measures both commands in turns."""
    folder = WORK / "age"
    folder.mkdir(parents=True, exist_ok=True)
    releases, dataset = _made(folder)
    seconds: dict[int, list[float]] = {2: [], 5: []}
    for _ in range(rounds):
        for n_releases, own in seconds.items():
            output = folder / f"age-{n_releases}"
            shutil.rmtree(output, ignore_errors=True)
            given = ["--input", dataset, "--from-kb", str(folder / "old.jsonl"), "--output", str(output)]
            command = [sys.executable, "-m", "pipelines.cli", "age", *releases[:n_releases], *given]
            log = WORK / "logs" / "age.log"
            usage = run(command, cwd=REPOSITORY, log=log)
            if usage.returncode != 0:
                raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text(encoding='utf-8')[-3000:]}")
            own.append(usage.cpu_s)
    two, five = (sorted(own)[len(own) // 2] for own in seconds.values())
    return {"machine": machine(), "cpu_s": seconds, "ratio": five / two, "bar": BAR}


def show(results: dict[str, Any]) -> None:
    """Prints the figures."""
    rows = [[f"{n} snapshots", *(f"{seconds:.1f}" for seconds in own)] for n, own in results["cpu_s"].items()]
    print(table(["", *(f"CPU s, round {at + 1}" for at in range(len(rows[0]) - 1))], rows))
    print(f"five against two: {results['ratio']:.2f} (bar {results['bar']})")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.age_speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    results = measure(rounds=args.rounds)
    show(results)
    if args.json:
        write_json(results, args.json)


if __name__ == "__main__":
    main()
