"""Writes passages as lines in the input formats of retrievers.

Sources: Pyserini's JsonCollection (``id``, ``contents``; its encoders split ``contents`` at the newline into title and
text); DPR's ``psgs_w100.tsv`` (columns ``id``, ``text``, ``title``, read by Python's csv module with tab as delimiter);
KILT's ``create_kilt_data_paragraphs`` (a number, a tab, a JSON object); BEIR's ``corpus.jsonl`` (``_id``, ``title``,
``text``, ``metadata``); ColBERT's collection (``pid``, text, title; the pid is the line number, from 0).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import orjson

from kbsource.errors import DataError
from kbsource.kilt import LEAD, kilt_record, kilt_texts, section_name
from kbsource.records import Page
from mapping.passages.cut import Passage

_ODD_IN_TSV = frozenset('"\t\r\n')
_BREAKS = re.compile(r"[\t\r\n]")


class KiltPage(NamedTuple):
    """A page in KILT's form: its record, and for each element its paragraph and the number of characters before its
    text."""

    record: dict[str, Any]
    places: Mapping[int, tuple[int, int]]


class KiltPages:
    """The pages of a file in KILT's form, requested in their order. Memory: one page.

    Args:
        pages: pages of the file; they are read only when the first one is requested.
    """

    def __init__(self, pages: Iterable[Page], path: str) -> None:
        self._pages, self._path = iter(pages), path
        self._page_id, self._page = -1, KiltPage({}, {})

    def page(self, page_id: int) -> KiltPage:
        """Returns a page.

        Raises:
            DataError: the file has no such page after the page that was requested before.
        """
        while self._page_id != page_id:
            page = next(self._pages, None)
            if page is None:
                raise DataError(
                    f"{self._path} has no page {page_id}, but passages were cut from that page; check the "
                    f"release with kbsource verify."
                )
            if page.page_id == page_id:
                self._page = KiltPage(kilt_record(page), kilt_texts(page)[1])
            self._page_id = page.page_id
        return self._page


Line = Callable[[Passage, KiltPages], bytes]


@dataclass(frozen=True, slots=True)
class LineForm:
    """A line file of a format."""

    folder: str
    suffix: str
    line: Line  # returns the line of a passage, with its newline; empty bytes if the passage has no line
    name: str = "passages"  # of the file; a number is added if there is one file per file of the table
    is_joined: bool = True  # all lines are in one file, because its readers take one file
    head: bytes = b""  # start and end of a joined file
    tail: bytes = b""
    #: returns the line of a joined file, given its number from 0 and the line; None if lines stay as they are
    numbered: Callable[[int, bytes], bytes] | None = None
    needs_pages: bool = False  # lines contain more than the table has


class PassageForm(NamedTuple):
    """A format: the tools that read it, and its files."""

    meaning: str
    files: Sequence[LineForm]


def section_text(section: Sequence[str]) -> str:
    """Returns the headings above a passage as one text.

    >>> section_text(["Course", "Mouth"])
    'Course > Mouth'
    """
    return " > ".join(section)


def json_line(value: Mapping[str, Any]) -> bytes:
    """Returns a JSON object as a line."""
    return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)


def pyserini_line(passage: Passage, _: KiltPages) -> bytes:
    """Returns a line with ``id``, ``contents`` (the title, a newline, the text) and ``section``."""
    contents = f"{passage.title}\n{passage.text}"
    return json_line({"id": passage.passage_id, "contents": contents, "section": section_text(passage.section)})


def beir_line(passage: Passage, _: KiltPages) -> bytes:
    """Returns a line with ``_id``, ``title``, ``text``, and the page and section in ``metadata``."""
    metadata = {"wikipedia_id": str(passage.page_id), "section": section_text(passage.section)}
    return json_line({"_id": passage.passage_id, "title": passage.title, "text": passage.text, "metadata": metadata})


def dpr_line(passage: Passage, _: KiltPages) -> bytes:
    """Returns id, text and title separated by tabs. Values with quotes or tabs are quoted."""
    return tsv_line(passage.passage_id, passage.text, passage.title)


def title_line(passage: Passage, _: KiltPages) -> bytes:
    """Returns title and page id as a member of a JSON object, for the first passage of a page."""
    return orjson.dumps(passage.title) + b": %d\n" % passage.page_id if passage.number == 0 else b""


def colbert_line(passage: Passage, _: KiltPages) -> bytes:
    """Returns text and title separated by a tab. ColBERT has no quoting, so tabs and line breaks become spaces."""
    return "\t".join(_BREAKS.sub(" ", text) for text in (passage.text, passage.title)).encode() + b"\n"


def id_line(passage: Passage, _: KiltPages) -> bytes:
    """Returns a line with the id."""
    return passage.passage_id.encode() + b"\n"


def kilt_chunk_line(passage: Passage, pages: KiltPages, *, is_released: bool = False) -> bytes:
    """Returns KILT's JSON of a chunk: text, sources and anchors of a passage.

    Args:
        passage: a passage whose elements all have a paragraph in KILT.
        is_released: write the same as the released code. It cuts texts one character too late before it strips white
            space at their ends, calls the lead section ``Section::::Abstract``, and writes no ``chunk_id``.
    """
    record, places = pages.page(passage.page_id)
    texts, sources, anchors = [], [], []
    at = 0
    for span in passage.spans:
        paragraph, before = places[span.element]
        start, end = span.start_char + before, span.end_char + before
        text = record["text"][paragraph][start : end + is_released].rstrip()
        sources.append({"paragraph_id": paragraph, "start": start, "end": end})
        for anchor in record["anchors"]:
            source = {name: anchor[name] for name in ("paragraph_id", "start", "end")}
            if source["paragraph_id"] == paragraph and start <= source["start"] and source["end"] <= start + len(text):
                moved = {name: source[name] - start + at for name in ("start", "end")}
                rest = {name: value for name, value in anchor.items() if name not in source}
                anchors.append({**rest, "source": source, **moved})
        texts.append(text)
        at += len(text) + 1
    section = section_name(passage.section)
    value = {
        **{name: record[name] for name in ("_id", "wikipedia_id", "wikipedia_title")},
        "text": " ".join(texts),
        "anchors": anchors,
        "categories": record["categories"],
        "history": record["history"],
        "sources": sources,
        "section": section.removesuffix(".") if is_released and section == LEAD else section,
    }
    return json_line(value if is_released else {**value, "chunk_id": passage.passage_id})


def tsv_line(*values: str) -> bytes:
    """Returns values as a line of a table with tabs that the csv module reads.

    Values with quotes, tabs or line breaks are quoted here, because the quoting of the csv module differs between its
    versions.

    >>> tsv_line("1", 'the "Sorn"', "A")
    b'1\\t"the ""Sorn\"""\\tA\\n'
    """
    return ("\t".join(map(_quoted, values)) + "\n").encode()


def _quoted(value: str) -> str:
    if _ODD_IN_TSV.isdisjoint(value):
        return value
    doubled = value.replace('"', '""')
    return f'"{doubled}"'


def _from_zero(number: int, line: bytes) -> bytes:
    return b"%d\t%s" % (number, line)


def _from_one(number: int, line: bytes) -> bytes:
    return b"%d\t%s" % (number + 1, line)


def _member(number: int, line: bytes) -> bytes:
    return (b",\n" if number else b"") + line[:-1]


FORMS: Mapping[str, PassageForm] = {
    "pyserini": PassageForm(
        "JSON Lines for Pyserini and Anserini", [LineForm("pyserini", "jsonl", pyserini_line, is_joined=False)]
    ),
    "dpr": PassageForm(
        "a TSV file for DPR and FiD, and a list of the page of each title",
        [
            LineForm("dpr", "tsv", dpr_line, head=tsv_line("id", "text", "title")),
            LineForm("dpr", "json", title_line, "title_to_page_id", head=b"{\n", tail=b"\n}\n", numbered=_member),
        ],
    ),
    "kilt": PassageForm(
        "KILT's chunks, with sources and anchors; not with --unit sentences",
        [LineForm("kilt", "tsv", kilt_chunk_line, numbered=_from_one, needs_pages=True)],
    ),
    "kilt-compat": PassageForm(
        "the same, with the mistakes of KILT's released code",
        [
            LineForm(
                "kilt-compat", "tsv", partial(kilt_chunk_line, is_released=True), numbered=_from_one, needs_pages=True
            )
        ],
    ),
    "beir": PassageForm("a corpus for BEIR", [LineForm("beir", "jsonl", beir_line, "corpus")]),
    "colbert": PassageForm(
        "a collection for ColBERT, and a list of the passage of each number",
        [
            LineForm("colbert", "tsv", colbert_line, "collection", numbered=_from_zero),
            LineForm("colbert", "tsv", id_line, "passage_ids", numbered=_from_zero),
        ],
    ),
}
"""Formats by name."""


def line_forms(formats: Iterable[str]) -> list[LineForm]:
    """Returns the line files of the named formats."""
    return [form for name in formats for form in FORMS[name].files]
