"""Declares generated data sets, and the words that they are made of. The same name always gives the same text."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mapping.sources.source import Split

_N_WORDS = 1 << 16
_N_SYLLABLES = 4
_CONSONANTS, _VOWELS = "bdfghklmnprstvz", "aeiou"


class Synthetic(NamedTuple):
    """Files in the original format of a dataset.

    Attributes:
        dataset: name in ``mapping.sources.SOURCES``.
        split: the split that is read.
        records: the dataset's own files.
        references: other files that the source needs, such as FEVER's wiki-pages.
        options: options of the source that differ from the defaults.
    """

    dataset: str
    split: Split
    records: tuple[str, ...]
    references: tuple[str, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})


class Words:
    """An endless stream of generated words. Use ``rng`` for every other random choice."""

    def __init__(self, name: str) -> None:
        self.rng = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8]))
        syllables = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
        self._pool = [
            "".join(self.rng.choices(syllables, k=self.rng.randint(1, _N_SYLLABLES))) for _ in range(_N_WORDS)
        ]

    def list(self, n_words: int) -> list[str]:
        """Returns this number of words."""
        start = self.rng.randrange(_N_WORDS - n_words)
        return self._pool[start : start + n_words]

    def text(self, n_words: int) -> str:
        """Returns this number of words, separated by spaces."""
        return " ".join(self.list(n_words))

    def sentence(self, n_words: int) -> str:
        """Returns a sentence in the form of tokenised corpora, in which the full stop is a separate token."""
        return f"{self.text(n_words).capitalize()} ."

    def title(self, number: int) -> str:
        """Returns the title of the page with this number. Every number has its own title, which never changes."""
        return f"{self._pool[number % _N_WORDS].capitalize()} {number}"


def write_text(path: Path, pieces: Iterable[str], *, n_bytes: int) -> str:
    """Writes pieces until the file has ``n_bytes``, with a complete last piece, and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for piece in pieces:
            file.write(piece)
            written += len(piece.encode())
            if written >= n_bytes:
                break
    return str(path)


def write_array(path: Path, elements: Iterable[str], *, n_bytes: int) -> str:
    """Writes a JSON array of elements that are already JSON, with the size limit of ``write_text``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("[")
        for element in elements:
            piece = (", " if written else "") + element
            file.write(piece)
            written += len(piece.encode())
            if written >= n_bytes:
                break
        file.write("]\n")
    return str(path)
