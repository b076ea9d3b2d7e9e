"""Generates lines of Zero-Shot RE of about 200 bytes: 84 relations with ten questions each; half of the lines are
negative.

Most subjects have one line for each relation, and some have several. One line in twenty has two answers, and one in ten
thousand lacks columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.synthetic.form import Synthetic, Words, write_text

_N_RELATIONS = 84
_N_TEMPLATES = 10


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes the train split of fold 0 with this number of bytes."""
    records = write_text(folder / "train.0", _lines(Words("structured_zeroshot")), n_bytes=n_bytes)
    return Synthetic("structured_zeroshot", "train", (records,))


def _lines(words: Words) -> Iterator[str]:
    rng = words.rng
    relations = [words.text(2) for _ in range(_N_RELATIONS)]
    templates = [[f"{words.text(4).capitalize()} XXX ?" for _ in range(_N_TEMPLATES)] for _ in relations]
    number = 0
    while True:
        number += 1
        relation = rng.randrange(_N_RELATIONS)
        subject = words.title(rng.randint(number // 2, number))
        fields = [relations[relation], rng.choice(templates[relation]), subject, words.sentence(20)]
        if rng.random() < 0.5:
            fields += [words.text(2) for _ in range(2 if rng.random() < 0.05 else 1)]
        yield "\t".join(fields[:3] if number % 10_000 == 9_999 else fields) + "\n"
