"""Corpora of passages with known texts, written without a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kbsource.files import LocalStorage
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_rows
from mapping.passages.cut import Passage, PassageSpan, passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.passages.schema import PASSAGES


def passage(page_id: int, number: int, title: str, text: str) -> Passage:
    """Gives a passage that is the whole of an element."""
    spans = (PassageSpan(number + 1, 0, len(text)),)
    return Passage(passage_id(page_id, number), page_id, title, number, len(text.split()), text, spans)


def write_corpus(folder: Path, passages: Iterable[Passage], *, lang: str = "en") -> Path:
    """Writes a corpus of passages of nobody's pages and gives its folder."""
    storage = LocalStorage()
    facts = {"options": {}, "counts": {}, "lang": lang, "release": {"manifest_sha256": "0" * 64}}
    with ReleaseFolder(str(folder), storage, kind=PASSAGES_CORPUS):
        entry = write_rows(passages, "passages", PASSAGES, output=str(folder), storage=storage, group_rows=512)
        commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing([entry], facts), str(folder), storage)
    return folder
