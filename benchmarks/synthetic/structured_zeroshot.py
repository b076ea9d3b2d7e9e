"""Lines of Zero-Shot RE of some 200 bytes: 84 relations of ten questions each, half of the lines negative.

Most subjects have one line a relation, some have several; one line in twenty has two answers, one in ten thousand has
too few columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.synthetic.form import Synthetic, Words, write_text

_N_RELATIONS = 84
_N_TEMPLATES = 10


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes the train split of fold 0 with that many bytes."""
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
