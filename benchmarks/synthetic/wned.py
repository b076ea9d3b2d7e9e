"""Generates WNED-WIKI in its tab-separated format. ``conll`` describes the documents; half of them belong to the split
that is read.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from benchmarks.synthetic.conll import documents
from benchmarks.synthetic.form import Synthetic, Words, write_text


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes documents with this number of bytes."""
    words = Words("wned")
    names = (words.title(number).replace(" ", "_") for number in count())
    path = write_text(folder / "wikipedia.conll", documents(words, names), n_bytes=n_bytes)
    return Synthetic("wned", "dev", (path,))
