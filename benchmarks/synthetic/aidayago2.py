"""Generates AIDA CoNLL-YAGO in its tab-separated format, with only the train split; documents as in ``conll``."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from benchmarks.synthetic.conll import documents
from benchmarks.synthetic.form import Synthetic, Words, write_text


def write(folder: Path, n_bytes: int) -> Synthetic:
    """Writes documents with this number of bytes."""
    names = (f"{number} NEWS" for number in count(1))
    path = write_text(folder / "AIDA-YAGO2-dataset.tsv", documents(Words("aidayago2"), names), n_bytes=n_bytes)
    return Synthetic("aidayago2", "train", (path,))
