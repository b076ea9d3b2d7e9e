"""Generates TriviaQA: 2.5 KB per question, with 28 aliases of its answer and two pages, as in the real files.

1 % of the questions have no page, and every 10,000th line is truncated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from benchmarks.synthetic.form import Synthetic, Words, write_array

_N_ALIASES = 28
_BROKEN_EVERY = 10_000


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes about ``n_bytes`` of TriviaQA in its original format into a folder, and returns the files."""
    array = folder / "array.json"
    write_array(array, _questions(Words("triviaqa")), n_bytes=n_bytes)
    path = folder / "wikipedia-dev.json"
    with array.open("rb") as elements, path.open("wb") as file:
        file.write(b'{"Data": ')
        while block := elements.read(1 << 20):
            file.write(block)
        file.write(b', "Domain": "Wikipedia", "Split": "dev", "VerifiedEval": false, "Version": 1.0}\n')
    array.unlink()
    return Synthetic("triviaqa", "dev", (str(path),))


def _questions(words: Words) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        question = _question(words, number)
        if number % _BROKEN_EVERY == 0:
            question = question.replace('"Aliases": [', '"Aliases": ', 1)
        yield question


def _question(words: Words, number: int) -> str:
    aliases = [words.text(words.rng.randint(1, 4)).title() for _ in range(_N_ALIASES)]
    titles = [] if number % 100 == 0 else [words.title(number), words.title(3 * number + 1)]
    normalised = [alias.lower() for alias in aliases]
    record = {
        "Answer": {
            "Aliases": aliases,
            "MatchedWikiEntityName": aliases[0],
            "NormalizedAliases": normalised,
            "NormalizedMatchedWikiEntityName": normalised[0],
            "NormalizedValue": normalised[0],
            "Type": "WikipediaEntity",
            "Value": aliases[0],
        },
        "EntityPages": [{"DocSource": "TagMe", "Filename": f"{title}.txt", "Title": title} for title in titles],
        "Question": f"{words.text(14).capitalize()}?",
        "QuestionId": f"tc_{number}",
        "QuestionSource": "http://www.example.org/",
    }
    return json.dumps(record, indent=4)
