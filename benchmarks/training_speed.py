"""Measures ``kbsource training-data`` on generated questions over real passages: questions per second, and memory by
their number.

A question has one piece of evidence: 8 to 20 words of a paragraph of a real page. Two of these words are its answer.
The questions are about all pages in turn. The run of a question has 20 random passages of the corpus, one of them from
the page of the question. Half of the questions belong to a second dataset, so that mixed lines are written too.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks.environment import WORK, machine, table, write_json
from benchmarks.map_speed import SEED, SHORTEST, real_release
from benchmarks.process_tree import run
from benchmarks.slices import REPOSITORY
from kbsource.lookup import KnowledgeSource
from mapping.passages.corpus import read_passages

SIZES = (10_000, 100_000)
FORMS = ("dpr", "seq2seq", "fid", "pig")
WORDS = (8, 20)
TOP = 20
DATASETS = ("first", "second")
BAR_MB = 700
"""Own memory stays below this, whatever the number: what starts up, 400 MB of the database, and row groups."""


def measure(data: str | None, *, sizes: tuple[int, ...] = SIZES, forms: tuple[str, ...] = FORMS) -> dict[str, Any]:
    """Returns the figures."""
    release, folder = real_release(data), WORK / "training"
    passages = folder / "passages"
    if not (passages / "manifest.json").is_file():
        _kbsource(["passages", str(release), "--workers", "1", "--output", str(passages)], folder / "passages.log")
    rows = []
    for n_questions in sizes:
        made = folder / str(n_questions)
        if not (made / "complete").is_file():
            shutil.rmtree(made, ignore_errors=True)
            _write_datasets(release, passages, made, n_questions)
            (made / "complete").touch()
        flags = [
            *("--passages", str(passages), "--retrieved"),
            *(str(made / f"{name}.trec") for name in DATASETS),
        ]
        for form in forms:
            output = made / f"training-{form}"
            shutil.rmtree(output, ignore_errors=True)
            command = ["training-data", *(str(made / name) for name in DATASETS), "--for", form, *flags]
            usage = _kbsource([*command, "--output", str(output)], made / f"{form}.log")
            counts = json.loads((output / "manifest.json").read_text("utf-8"))["counts"]
            n_bytes = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
            shutil.rmtree(output)
            rows.append(
                {
                    "form": form,
                    "questions": n_questions,
                    "examples": counts["examples"],
                    "rejected": counts["rejected"],
                    "mb": n_bytes / 1e6,
                    "cpu_s": usage.cpu_s,
                    "per_core_s": n_questions / usage.cpu_s,
                    "peak_tree_mb": usage.peak_tree_mb,
                    "peak_own_mb": usage.peak_tree_own_mb,
                }
            )
    peak = max(row["peak_own_mb"] for row in rows)
    return {"machine": machine(), "runs": rows, "peak_own_mb": peak, "bounded": peak <= BAR_MB}


def _write_datasets(release: Path, passages: Path, folder: Path, n_questions: int) -> None:
    """Writes questions, maps them to the release, and generates their runs."""
    with KnowledgeSource.open(str(release)) as source:
        pages = [
            (page.page_id, [words for element in page.elements[1:] if len(words := element.text.split()) >= WORDS[1]])
            for page in source
            if not page.is_disambiguation
        ]
    of_page: dict[int, list[str]] = defaultdict(list)
    ids = []
    for path in sorted(passages.glob("passages/*.parquet")):
        for passage in read_passages(str(path)):
            of_page[passage.page_id].append(passage.passage_id)
            ids.append(passage.passage_id)
    pages = [(page_id, paragraphs) for page_id, paragraphs in pages if paragraphs and of_page[page_id]]
    rng = random.Random(SEED)
    for number, name in enumerate(DATASETS):
        records, found = folder / f"{name}.jsonl", folder / f"{name}.trec"
        records.parent.mkdir(parents=True, exist_ok=True)
        with records.open("w", encoding="utf-8") as questions, found.open("w", encoding="utf-8") as ranked:
            for place in range(number, n_questions, len(DATASETS)):
                page_id, paragraphs = pages[place % len(pages)]
                words = rng.choice(paragraphs)
                n_words = rng.randint(*WORDS)
                start = rng.randrange(len(words) - n_words + 1)
                piece = words[start : start + n_words]
                evidence = {"page_id": page_id, "text": " ".join(piece)}
                record = {
                    "id": str(place),
                    "input": f"what is {' '.join(piece[2 : SHORTEST + 2])}",
                    "output": [{"answer": " ".join(piece[:2]), "evidence": [evidence]}],
                }
                questions.write(json.dumps(record, ensure_ascii=False) + "\n")
                drawn = [rng.choice(of_page[page_id]), *rng.choices(ids, k=TOP - 1)]
                for rank, passage_id in enumerate(dict.fromkeys(drawn), 1):
                    ranked.write(f"{place} Q0 {passage_id} {rank} {TOP - rank} made-up\n")
        command = ["map", "jsonl", str(release), "--workers", "1", "--split", "train", "--stem", name]
        _kbsource([*command, "--input", str(records), "--output", str(folder / name)], folder / f"{name}.log")


def _kbsource(arguments: list[str], log: Path) -> Any:
    usage = run([sys.executable, "-m", "pipelines.cli", *arguments], cwd=REPOSITORY, log=log)
    if usage.returncode:
        raise SystemExit(f"kbsource {arguments[0]} failed, see {log}")
    return usage


def show(result: dict[str, Any]) -> None:
    """Prints the figures."""
    print("\nkbsource training-data, generated questions over real passages")
    columns = (
        *("form", "questions", "examples", "rejected", "mb", "cpu_s", "per_core_s", "peak_own_mb", "peak_tree_mb"),
    )
    head = ("form", "questions", "examples", "rejected", "MB", "CPU s", "questions/s per core", "own MB", "all MB")
    print(table(head, [tuple(row[name] for name in columns) for row in result["runs"]]))
    print(f"own memory below {BAR_MB} MB: {result['bounded']}")


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_speed", description=__doc__)
    parser.add_argument("--data", help="folder of the real data (default: KBSOURCE_REAL_DATA or ../shared/data)")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of questions")
    parser.add_argument("--forms", nargs="+", default=list(FORMS), help="forms of training data")
    parser.add_argument("--json", help="write the figures here")
    args = parser.parse_args()
    result = measure(args.data, sizes=tuple(args.sizes), forms=tuple(args.forms))
    show(result)
    write_json(args.json, result)


if __name__ == "__main__":
    main()
