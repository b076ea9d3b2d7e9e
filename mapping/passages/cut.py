"""Page -> passages of consecutive whole sentences, each with its exact place.

What counts is running text: paragraphs and list items, of whatever marker. The title goes beside each passage and is no
part of it; headings are left out, since they are no sentences; cells of tables and infoboxes are no running text.

Source: QAMPARI (2022): consecutive sentences, at most 100 words. Its released code loses the rest of a page from the
first sentence on that is longer than that; nothing is lost here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kbsource.errors import RecordError
from mapping.options import Checked, option
from mapping.search.sentences import sentence_spans

MAX_WORDS = 100
TITLE_KINDS = frozenset(("title", "heading"))
"""Kinds of elements that are no running text."""

# Ideographs, kana and their punctuation: without blanks between words, each counts as a word.
_WIDE = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff"
# Thai, Lao, Tibetan, Burmese and Khmer: without blanks between words too, which have some four letters.
_RUN_ON = "\u0e00-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
_MARKS = "".join(
    mark
    for mark in map(chr, (*range(0x0E00, 0x10A0), *range(0x1780, 0x1800), *range(0xAA60, 0xAA80)))
    if unicodedata.category(mark).startswith("M")
)
_JOINERS = "\u200b-\u200d"
_HAS_WIDE = re.compile(f"[{_WIDE}{_RUN_ON}]")
_WORD = re.compile(rf"[{_WIDE}]|(?:[{_RUN_ON}][{_MARKS}{_JOINERS}]*+){{1,4}}|[^\s{_WIDE}{_RUN_ON}]+")


class PageText(NamedTuple):
    """What of a page is cut into passages.

    Attributes:
        page_id, title: of the page.
        elements: number and text of its paragraphs and list items, in order.
    """

    page_id: int
    title: str
    elements: tuple[tuple[int, str], ...]


class Span(NamedTuple):
    """A piece of an element, half-open in code points of its text."""

    element: int
    start_char: int
    end_char: int


class Passage(NamedTuple):
    """A passage, in the order of the columns of ``PASSAGES``.

    Attributes:
        passage_id: ``<page id>__<number>``.
        page_id, title: of its page.
        number: place among the passages of the page, from 0.
        n_words: words in it, counted sentence by sentence.
        text: the pieces of ``spans`` with one blank between two of them.
        spans: where it stands, in order; of each element one at most.
    """

    passage_id: str
    page_id: int
    title: str
    number: int
    n_words: int
    text: str
    spans: tuple[Span, ...]

    def holds(self, element: int, start_char: int, end_char: int) -> bool:
        """Says whether all of a piece of an element is in it."""
        return self.piece(element, start_char, end_char) is not None

    def piece(self, element: int, start_char: int, end_char: int) -> str | None:
        """Gives the text of a piece of an element; None where not all of it is in it."""
        at = 0
        for one in self.spans:
            if one.element == element and one.start_char <= start_char and end_char <= one.end_char:
                return self.text[at + start_char - one.start_char : at + end_char - one.start_char]
            at += one.end_char - one.start_char + 1
        return None


@dataclass(frozen=True, slots=True)
class CutOptions(Checked):
    """How pages are cut; stands in the manifest under ``options``."""

    max_words: int = option(MAX_WORDS, "most words of a passage", lowest=1)
    split_long: bool = option(
        False,
        "cut a sentence of more words behind each N of them; else it is a passage by itself",
        flag="--split-long-sentences",
    )

    def cut(self, page: PageText) -> list[Passage]:
        """Gives the passages of a page."""
        return cut_page(page, max_words=self.max_words, split_long=self.split_long)


class _Sentence(NamedTuple):
    span: Span
    n_words: int


def passage_id(page_id: int, number: int) -> str:
    """Gives the id of the passage with that number in its page.

    >>> passage_id(12, 0)
    '12__0'
    """
    return f"{page_id}__{number}"


def count_words(text: str) -> int:
    """Gives the number of words: runs without white space; each ideograph and each kana is one by itself, and four
    letters are one where words have some but no blanks between them (Thai, Lao, Tibetan, Burmese, Khmer).

    >>> count_words("It rises here, in 1901."), count_words("北京是首都。")
    (5, 6)
    """
    if text.isascii() or _HAS_WIDE.search(text) is None:
        return len(text.split())
    return sum(1 for _ in _WORD.finditer(text))


def cut_page(page: PageText, *, max_words: int = MAX_WORDS, split_long: bool = False) -> list[Passage]:
    """Gives the passages of a page, in order: as many whole sentences at a time as ``max_words`` takes.

    Args:
        page: its running text.
        max_words: most words of a passage.
        split_long: a sentence with more words is cut behind each ``max_words`` of them; else it is a passage by itself.
    """
    texts = dict(page.elements)
    groups = _groups(_sentences(page, max_words, split_long), max_words)
    return [_passage(page, texts, number, group) for number, group in enumerate(groups)]


def check_passages(page: PageText, passages: Sequence[Passage]) -> None:
    """Raises where passages do not hold what they claim, or not all of the page.

    Every text is what stands at its spans; spans are in order and do not overlap; between them, before and behind them
    there is nothing but white space.

    Raises:
        RecordError: ``passage_law`` for a passage that is not built as such, ``offset_law`` for a text or place that is
            not that of the page, ``lost_text`` for text of the page that is in no passage.
    """
    texts = dict(page.elements)
    ends = dict.fromkeys(texts, 0)
    last = (-1, 0)
    for number, one in enumerate(passages):
        if (one.passage_id, one.page_id, one.title, one.number) != (
            passage_id(page.page_id, number),
            page.page_id,
            page.title,
            number,
        ):
            raise RecordError("passage_law", f"passage {number} of page {page.page_id} is called {one.passage_id}")
        pieces = []
        for element, start, end in one.spans:
            text = texts.get(element)
            if text is None or not 0 <= start < end <= len(text) or (element, start) < last:
                raise RecordError("offset_law", f"{one.passage_id}: [{start}, {end}) of element {element}")
            if text[ends[element] : start].strip():
                raise RecordError("lost_text", f"{one.passage_id}: text before {start} of element {element}")
            pieces.append(text[start:end])
            ends[element], last = end, (element, end)
        if not pieces or " ".join(pieces) != one.text:
            raise RecordError("offset_law", f"{one.passage_id}: its text is not what stands at its spans")
    for element, text in page.elements:
        if text[ends[element] :].strip():
            raise RecordError("lost_text", f"page {page.page_id}: text from {ends[element]} on of element {element}")


def _sentences(page: PageText, max_words: int, split_long: bool) -> Iterator[_Sentence]:
    for element, text in page.elements:
        for start, end in sentence_spans(text):
            n_words = count_words(text[start:end])
            if n_words > max_words and split_long:
                yield from _split(element, text, start, end, max_words)
            else:
                yield _Sentence(Span(element, start, end), n_words)


def _split(element: int, text: str, start: int, end: int, max_words: int) -> Iterator[_Sentence]:
    words = [found.span() for found in _WORD.finditer(text, start, end)]
    for first in range(0, len(words), max_words):
        part = words[first : first + max_words]
        yield _Sentence(Span(element, part[0][0], part[-1][1]), len(part))


def _groups(sentences: Iterator[_Sentence], max_words: int) -> Iterator[list[_Sentence]]:
    group: list[_Sentence] = []
    n_words = 0
    for one in sentences:
        if group and n_words + one.n_words > max_words:
            yield group
            group, n_words = [], 0
        group.append(one)
        n_words += one.n_words
    if group:
        yield group


def _passage(page: PageText, texts: Mapping[int, str], number: int, group: Sequence[_Sentence]) -> Passage:
    spans: list[Span] = []
    for span, _ in group:
        if spans and spans[-1].element == span.element:
            spans[-1] = spans[-1]._replace(end_char=span.end_char)
        else:
            spans.append(span)
    return Passage(
        passage_id=passage_id(page.page_id, number),
        page_id=page.page_id,
        title=page.title,
        number=number,
        n_words=sum(one.n_words for one in group),
        text=" ".join(texts[element][start:end] for element, start, end in spans),
        spans=tuple(spans),
    )
