"""Ways to tamper with corpora of passages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mapping.passages.cut import CutOptions
from mapping.passages.kind import PASSAGES_CORPUS
from tests.support.passages import CORPUS_CUT, CORPUS_FORMS, CORPUS_PAGES, cut_release, write_kb
from tests.support.tampered.edits import (
    COUNTED,
    MANIFEST,
    Group,
    Place,
    Released,
    Tampered,
    again,
    at,
    content,
    counted,
    drop,
    listed,
    manifest,
    put,
    rows,
    unlisted,
)

PASSAGES = "passages/passages-00000-of-00002.parquet"
PYSERINI = "pyserini/passages-00000-of-00002.jsonl"
DPR = "dpr/passages.tsv"


def _passages(folder: Path, release: Path) -> Released:
    kb = write_kb(folder / "kb", CORPUS_PAGES)
    cut_release(folder / "corpus", kb, cut=CORPUS_CUT, formats=CORPUS_FORMS)
    return Released(folder / "corpus", {"kb": kb})


def _chunks(folder: Path, release: Path) -> Released:
    formats = ("kilt", "kilt-compat", "beir", "colbert")
    cut_release(folder / "corpus", release, cut=CutOptions(unit="tokens-100"), formats=formats)
    return Released(folder / "corpus", {"kb": release})


def _span(element: int, start: int, end: int) -> dict[str, int]:
    return {"element": element, "start_char": start, "end_char": end}


def _cell(end: int) -> dict[str, int]:
    return {"table": 0, "row": 0, "cell": 0, "start_char": 0, "end_char": end, "passage_start_char": 0}


_LINES = ((PYSERINI, "line_differs"), (DPR, "line_differs"))
_TITLES = (("dpr/title_to_page_id.json", "line_differs"),)
_DISORDER = ((PASSAGES, "invalid_passage 2"),)


def _passage(
    what: str, text: str, *edits: Callable[[list[Any]], object], number: int = 1, also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a malformed passage, or one that is out of order: the second invariant of that name."""
    return Tampered(
        what, rows(PASSAGES, *edits), "invalid_passage 2" if number == 2 else "invalid_passage", text, also=also
    )


def _other_passage(
    what: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a passage that its page does not give."""
    return Tampered(what, rows(PASSAGES, *edits), "passage_differs", text, also=also, is_compared=True)


def _add_passage_of_no_page(passages: list[Any]) -> None:
    values = {"passage_id": "6__0", "page_id": 6, "title": "No page", "number": 0, "n_words": 1, "text": "Yes."}
    passages.append({**passages[0], **values, "spans": [_span(1, 0, 4)]})


_OUT_OF_ORDER = "3__1: its spans are out of order"
_CELLS = "3__1: its cells are out of order"
_NEITHER = "3__1: must have either spans or cells"
_THIRD = "passages/passages-00002-of-00003.parquet"
_TWICE = ((MANIFEST, "duplicate_page"),)
_OF_THREE = (
    *((f"passages/passages-0000{number}-of-00003.parquet", "missing") for number in range(2)),
    *((f"pyserini/passages-0000{number}-of-00003.jsonl", "missing") for number in range(3)),
)
_NO_FILE = "every corpus of passages has this file"
_PASSAGES = (
    _passage("a passage has another id", "3__7: number 1 of page 3", at(1, passage_id="3__7"), also=_LINES),
    _passage(
        "a title differs",
        "3__1: its page has two titles, 'Sorn' and 'Other'",
        at(1, title="Other"),
        number=2,
        also=_LINES,
    ),
    _passage(
        "a passage has a letter more",
        "3__1: its text and its spans differ in length",
        at(1, text="It rises in Bracks."),
        also=_LINES,
    ),
    _passage("a passage begins before the last one ends", _OUT_OF_ORDER, at(1, spans=[_span(1, 0, 18)]), number=2),
    _passage("spans are in another order", _OUT_OF_ORDER, at(1, spans=[_span(2, 30, 39), _span(2, 21, 29)])),
    _passage("a passage has no spans", _NEITHER, at(1, spans=[]), also=_DISORDER),
    _passage("a passage of text has a cell", _NEITHER, at(1, cells=[_cell(2)]), also=_DISORDER),
    _passage("a cell ends behind the text", _CELLS, at(1, spans=[], cells=[_cell(99)]), also=_DISORDER),
    _passage("a cell is there twice", _CELLS, at(1, spans=[], cells=[_cell(2)] * 2), also=_DISORDER),
    _passage("text is behind a table", "3__2: its table is out of order", at(1, spans=[], cells=[_cell(2)]), number=2),
    _passage(
        "two sentences have more words than a passage",
        "3__1: 7 words",
        at(1, n_words=7, spans=[_span(2, 21, 30), _span(3, 0, 8)]),
        also=(*_DISORDER, *COUNTED),
    ),
    _passage(
        "a passage is missing within its page",
        "3__2: its number does not follow that of the previous passage",
        drop(1),
        number=2,
        also=(*_LINES, *COUNTED),
    ),
    Tampered(
        "a page has a passage in a second place",
        rows(PASSAGES, again(0)),
        "duplicate_page",
        "page 3",
        MANIFEST,
        (*_LINES, *_TITLES, *COUNTED),
    ),
    _other_passage(
        "a letter differs", "number 0: 3__0 instead of 3__0", at(0, text="The Sorn is a siver."), also=_LINES
    ),
    _other_passage("words are not counted", "number 0: 3__0 instead of 3__0", at(0, n_words=4), also=COUNTED),
    _other_passage("another element", "number 2: 3__2 instead of 3__2", at(2, spans=[_span(4, 0, 17)])),
    _other_passage("the last is missing", "number 5: nothing instead of 5__2", drop(-1), also=(*_LINES, *COUNTED)),
    _other_passage(
        "a passage is of no page",
        "number 6: 6__0 instead of nothing",
        _add_passage_of_no_page,
        also=(*_LINES, *_TITLES, *COUNTED),
    ),
    *(
        Tampered(what, content(file, change), "line_differs", text)
        for what, file, change, text in (
            ("a word of a line differs", PYSERINI, lambda read: read.replace(b"Brack", b"Black"), "3__1 from byte 44"),
            ("there is a line more", PYSERINI, lambda read: read + b"{}\n", "more content than expected: {}"),
            ("the last line is missing", PYSERINI, lambda read: read[: read.rindex(b"{")], "5__2 from byte 0: "),
            ("columns are exchanged", DPR, lambda read: read.replace(b"text\ttitle", b"title\ttext", 1), "from byte 4"),
        )
    ),
    *(
        Tampered(
            f"the manifest counts one more of {name}",
            counted(name, lambda count: count + 1),
            "counts",
            f"counts.{name}: ",
            is_compared=name == "pages",
        )
        for name in ("pages", "passages", "words", "long_passages", "pages_without_text")
    ),
    Tampered("the manifest counts one word", counted("words", lambda count: 1), "counts", "counts.words"),
    Tampered("the manifest has no counts", manifest(put({}, "counts")), "manifest", "the entry 'passages' is missing"),
    Tampered("a file of the table is missing", unlisted(PASSAGES), "missing", _NO_FILE, also=COUNTED, is_compared=True),
    Tampered("a file of lines is missing", unlisted(PYSERINI), "missing", _NO_FILE),
    Tampered(
        "there is a third file of the table",
        listed(_THIRD, PASSAGES),
        "manifest",
        "passages-00000-of-00002.parquet is not one of its files",
        also=(*COUNTED, *_TWICE, *_OF_THREE),
    ),
    Tampered(
        "there is a file more than the pages have",
        listed(_THIRD, PASSAGES),
        "manifest",
        f"{_THIRD} is not one of its files",
        also=(*COUNTED, *_TWICE),
        is_compared=True,
    ),
)
_CHUNKS = (
    Tampered(
        "a line says another paragraph than the page",
        content("kilt/passages.tsv", lambda before: before.replace(b'"paragraph_id":1', b'"paragraph_id":2', 1)),
        "line_differs",
        "1__0 from byte 312: 2",
        is_compared=True,
    ),
)

GROUPS = {
    "passages": Group(PASSAGES_CORPUS, _passages, _PASSAGES),
    "chunks": Group(PASSAGES_CORPUS, _chunks, _CHUNKS),
}
