"""Generates questions of about 6 KB: ten paragraphs of context and two or three supporting facts, one of them in the
abstracts.

There is an abstract of four sentences for every question. Some data is broken: one fact in fifty has a sentence number
that its page does not have, one title in fifty does not exist, and one question in ten thousand has no facts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.synthetic.form import Synthetic, Words, write_array, write_text

_SENTENCES = 4
_PARAGRAPHS = 10
_PAGES_A_FILE = 20_000


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes questions with this number of bytes, and the abstracts that they name."""
    words = Words("hotpotqa")
    questions = _Questions(words)
    records = write_array(folder / "train.json", questions.elements(), n_bytes=n_bytes)
    abstracts = folder / "abstracts"
    for number, start in enumerate(range(0, questions.n_questions, _PAGES_A_FILE)):
        numbers = range(start, min(start + _PAGES_A_FILE, questions.n_questions))
        path = abstracts / f"A{chr(65 + number // 100)}" / f"wiki_{number % 100:02}"
        write_text(path, (_abstract(words, article_number) for article_number in numbers), n_bytes=1 << 60)
    return Synthetic("hotpotqa", "train", (records,), (str(abstracts),))


class _Questions:
    def __init__(self, words: Words) -> None:
        self._words = words
        self.n_questions = 0

    def elements(self) -> Iterator[str]:
        words, rng = self._words, self._words.rng
        while True:
            number = self.n_questions
            self.n_questions += 1
            context = [
                [words.title(5_000_000 + number * _PARAGRAPHS + at), [words.sentence(20) for _ in range(_SENTENCES)]]
                for at in range(_PARAGRAPHS)
            ]
            titles = [words.title(rng.randint(0, number)), context[0][0]]
            if rng.random() < 0.02:
                titles[0] = f"Nowhere {number}"
            facts = [[title, rng.randrange(_SENTENCES + (rng.random() < 0.1))] for title in titles]
            question = {
                "_id": f"{number:024x}",
                "answer": words.text(2),
                "question": f"{words.text(15)}?",
                "supporting_facts": [] if number % 10_000 == 9_999 else facts,
                "context": context,
                "type": "bridge",
                "level": "hard",
            }
            yield json.dumps(question)


def _abstract(words: Words, number: int) -> str:
    sentences = [words.sentence(20) for _ in range(_SENTENCES)]
    return json.dumps({"id": str(number), "url": "", "title": words.title(number), "text": sentences}) + "\n"
