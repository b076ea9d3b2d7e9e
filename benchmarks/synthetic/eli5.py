"""Generates threads of about 3.5 KB, with one to eight answers of 130 words and their scores, as in the JSON lines of
the dumps.

One question in ten was annotated: it has four passages, each with three judgements and a highlight. One passage in
eight is judged to be no evidence. One question in a hundred has no answer with text, and one in ten thousand lacks a
score. ``write_parquet`` writes the same threads as Parquet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.synthetic.form import Synthetic, Words, write_text

_ANNOTATED = 10
_PASSAGES = 4
_WORKERS = 3
_GROUP_ROWS = 10_000
_SCHEMA = pa.schema(
    {
        "q_id": pa.string(),
        "title": pa.string(),
        "selftext": pa.string(),
        "answers": pa.struct(
            {"a_id": pa.list_(pa.string()), "text": pa.list_(pa.string()), "score": pa.list_(pa.int32())}
        ),
    }
)


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes threads with this number of bytes as JSON lines, and the campaign that annotated some of them."""
    words = Words("eli5")
    threads = _Threads(words)
    lines = (json.dumps(thread) + "\n" for thread in threads.each())
    records = write_text(folder / "eli5_dev.jsonl", lines, n_bytes=n_bytes)
    return Synthetic("eli5", "dev", (records,), _campaign(folder, words, threads.n_threads))


def write_parquet(folder: Path, n_bytes: int) -> Synthetic:
    """Writes the same number of threads as ``write``, and their campaign."""
    words = Words("eli5")
    threads = _Threads(words)
    path = folder / "eli5_dev.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines, written = threads.each(), 0
    with pq.ParquetWriter(path, _SCHEMA) as writer:
        while written < n_bytes:
            group = list(islice(lines, _GROUP_ROWS))
            written += sum(len(json.dumps(passage)) for passage in group)
            writer.write_table(pa.Table.from_pylist(group, schema=_SCHEMA))
    return Synthetic("eli5", "dev", (str(path),), _campaign(folder, words, threads.n_threads))


class _Threads:
    def __init__(self, words: Words) -> None:
        self._words = words
        self.n_threads = 0

    def each(self) -> Iterator[dict[str, Any]]:
        words, rng = self._words, self._words.rng
        while True:
            number = self.n_threads
            self.n_threads += 1
            texts = [words.text(rng.randint(60, 200)) for _ in range(rng.randint(1, 8))]
            if number % 100 == 50:
                texts = [" " for _ in texts]
            scores = [rng.randint(2, 500) for _ in texts]
            yield {
                "q_id": _question_id(number),
                "title": f"{words.text(12)}?",
                "selftext": words.text(20),
                "answers": {
                    "a_id": [f"d{number}{at}" for at in range(len(texts))],
                    "text": texts,
                    "score": scores[1:] if number % 10_000 == 9_999 else scores,
                },
            }


def _campaign(folder: Path, words: Words, n_threads: int) -> tuple[str, str]:
    questions = range(0, n_threads, _ANNOTATED)
    passages = write_text(folder / "passages.jsonl", _passages(words, questions), n_bytes=1 << 60)
    judgements = write_text(folder / "judgements.jsonl", _judgements(words, questions), n_bytes=1 << 60)
    return passages, judgements


def _passages(words: Words, questions: range) -> Iterator[str]:
    for question in questions:
        for at in range(_PASSAGES):
            passage = {
                "passage_id": f"{question}-{at}",
                "wikipedia_title": words.title(question + at),
                "text": words.text(100),
            }
            yield json.dumps(passage) + "\n"


def _judgements(words: Words, questions: range) -> Iterator[str]:
    for question in questions:
        for at in range(_PASSAGES):
            label = "no" if words.rng.random() < 0.125 else "yes"
            for worker in range(_WORKERS):
                judgement = {
                    "question_id": _question_id(question),
                    "passage_id": f"{question}-{at}",
                    "worker_id": f"w{worker}",
                    "label": label,
                    "highlight": words.text(20),
                    "free_text": "",
                }
                yield json.dumps(judgement) + "\n"


def _question_id(number: int) -> str:
    return f"q{number:07x}"
