"""Page -> passages of consecutive whole sentences, each with its exact place.

What counts is running text: paragraphs and list items, of whatever marker. The title goes beside each passage and is no
part of it; headings are left out, since they are no sentences; cells of tables and infoboxes are no running text.

Sources: QAMPARI (2022): consecutive sentences, at most 100 words. Its released code loses the rest of a page from the
first sentence on that is longer than that; nothing is lost here. DPR (2020) and section 3 of KILT (2021): 100 words
each, without lists. KILT's ``create_kilt_data_paragraphs``: sentences of one section, fewer than 100 tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from kbsource.errors import RecordError, SetupError
from kbsource.rows import Int32, Row
from kbsource.sentences import sentence_spans
from mapping.options import AtLeast1, Like, check_options
from mapping.search.tokens import Tokeniser

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


Join = Callable[[Sequence[str]], str]
_BLANK, _PARTED = " ", "; "
_CLOSERS = "\"'”’»)]}」』）"
_STOPS = (*".!?…。！？:;,：；，、", *"\u061f\u061b\u060c\u06d4\u0964\u0965\u0589\u1362\u104b\u17d4\u17d5")


class PageText(NamedTuple):
    """What of a page is cut into passages."""

    page_id: int
    title: str
    elements: tuple[tuple[int, str], ...]  # number and text of its paragraphs and list items, in order
    #: headings that each of them stands under, outermost first; nothing where there are no headings
    sections: tuple[tuple[str, ...], ...] = ()


class PassageSpan(Row):
    """A piece of an element, half-open in code points of its text."""

    element: Annotated[Int32, "number of the element of the page"]
    start_char: Annotated[Int32, "first code point in that element's text"]
    end_char: Annotated[Int32, "one past the last code point in that element's text"]


class Passage(Row):
    """One row per passage, in the order of the release that they are cut from."""

    passage_id: Annotated[str, "page id, two underscores, number; unique"]
    page_id: Annotated[int, "page of the knowledge source that it is cut from"]
    title: Annotated[str, "title of that page"]
    number: Annotated[Int32, "place among the passages of its page, from 0"]
    n_words: Annotated[Int32, "words in it; with `--unit tokens-N` tokens"]
    text: Annotated[str, "the pieces that `spans` names, joined; see docs/passages.md"]
    spans: Annotated[tuple[PassageSpan, ...], "where it stands in the page, in order; of each element one span at most"]
    section: Annotated[tuple[str, ...], "headings that its beginning stands under, outermost first"] = ()

    def holds(self, element: int, start_char: int, end_char: int) -> bool:
        """Whether all of a piece of an element is in it."""
        return self.piece(element, start_char, end_char) is not None

    def piece(self, element: int, start_char: int, end_char: int) -> str | None:
        """The text of a piece of an element; None where not all of it is in it."""
        at = 0
        for span in self.spans:
            if span.element == element and span.start_char <= start_char and end_char <= span.end_char:
                return self.text[at + start_char - span.start_char : at + end_char - span.start_char]
            at += span.end_char - span.start_char
            at += len(_PARTED if self.text.startswith(_PARTED, at) else _BLANK)
        return None


@dataclass(frozen=True, slots=True)
class CutOptions:
    """How pages are cut; stands in the manifest under ``options``."""

    max_words: AtLeast1 = MAX_WORDS
    """Most words of a passage."""
    split_long: Annotated[bool, Parameter("--split-long-sentences")] = False
    """Cut a sentence of more words behind each N of them; else it is a passage by itself."""
    unit: Annotated[
        str,
        Parameter(
            metavar="UNIT",
            validator=Like(r"sentences|(words|tokens)-[1-9]\d{0,5}", "sentences, words-100 or tokens-100"),
        ),
    ] = "sentences"
    """What passages are made of: sentences; words-N: N words each, as DPR and KILT's passages, without lists; tokens-N:
    sentences of one section with fewer than N tokens, as KILT's chunks."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options`` and for options that the unit leaves nothing to say."""
        check_options(self)
        if not self.is_by_sentence and (self.max_words != MAX_WORDS or self.split_long):
            raise SetupError(
                f"--unit {self.unit} says how long passages are; leave --max-words and --split-long-sentences out."
            )

    @property
    def is_by_sentence(self) -> bool:
        """Whether whole sentences of all running text are packed."""
        return self.unit == "sentences"

    @property
    def has_lists(self) -> bool:
        """Whether list items count as running text."""
        return not self.unit.startswith("words")

    def join(self, pieces: Sequence[str]) -> str:
        """The text of a passage out of its pieces; those of words and tokens have blanks, as in DPR and KILT."""
        return join_pieces(pieces) if self.is_by_sentence else _BLANK.join(pieces)

    @property
    def limit(self) -> int:
        """Most words, or tokens, of a passage."""
        return self.max_words if self.is_by_sentence else int(self.unit.partition("-")[2])

    def cutter(self, lang: str) -> Callable[[PageText], list[Passage]]:
        """The function from a page of a wiki in that language to its passages."""
        if self.is_by_sentence:
            return partial(cut_page, max_words=self.max_words, split_long=self.split_long)
        if self.has_lists:
            return partial(cut_chunks, n_tokens=self.limit, count=Tokeniser(lang).count)
        return partial(cut_words, n_words=self.limit)


class _Sentence(NamedTuple):
    span: PassageSpan
    n_words: int


def passage_id(page_id: int, number: int) -> str:
    """The id of the passage with that number in its page.

    >>> passage_id(12, 0)
    '12__0'
    """
    return f"{page_id}__{number}"


def count_words(text: str) -> int:
    """The number of words: runs without white space; each ideograph and each kana is one by itself, and four
    letters are one where words have some but no blanks between them (Thai, Lao, Tibetan, Burmese, Khmer).

    >>> count_words("It rises here, in 1901."), count_words("北京是首都。")
    (5, 6)
    """
    if text.isascii() or _HAS_WIDE.search(text) is None:
        return len(text.split())
    return sum(1 for _ in _WORD.finditer(text))


def join_pieces(pieces: Sequence[str]) -> str:
    """The text of pieces of elements: a blank behind one that ends in a mark of punctuation, else a semicolon too, so
    that items of a list do not run into one another.

    >>> join_pieces(["They are:", "Norda", "Fenneka (small)", "Both are dry."])
    'They are: Norda; Fenneka (small); Both are dry.'
    """
    ends = (_BLANK if piece.rstrip(_CLOSERS).endswith(_STOPS) else _PARTED for piece in pieces[:-1])
    return "".join((*chain.from_iterable(zip(pieces, ends, strict=False)), pieces[-1]))


def cut_page(page: PageText, *, max_words: int = MAX_WORDS, split_long: bool = False) -> list[Passage]:
    """The passages of a page, in order: as many whole sentences at a time as ``max_words`` takes.

    Args:
        split_long: a sentence with more words is cut behind each ``max_words`` of them; else it is a passage by itself.
    """
    return _passages(page, _groups(_sentences(page, max_words, split_long), max_words), join_pieces)


def cut_words(page: PageText, *, n_words: int) -> list[Passage]:
    """The passages of a page, in order: each has ``n_words`` words, the last one what is left."""
    return _passages(page, _groups(_word_runs(page, n_words), n_words))


def cut_chunks(page: PageText, *, n_tokens: int, count: Callable[[str], int]) -> list[Passage]:
    """The passages of a page, in order, as KILT chunks it: whole sentences of one section.

    A paragraph or item is filled up sentence by sentence to fewer than ``n_tokens``; what is left at its end goes into
    the passage before it, where both stand in one section and have fewer together. A longer sentence is a passage by
    itself.

    Args:
        n_tokens: a passage has fewer.
    """
    return _passages(page, _chunks(page, n_tokens, count))


def check_passages(page: PageText, passages: Sequence[Passage], join: Join) -> None:
    """Raises where passages do not hold what they claim, or not all of the page.

    Every text is what stands at its spans, joined; spans are in order and do not overlap; between them, before and
    behind them there is nothing but white space.

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
        for span in one.spans:
            element, start, end = span.element, span.start_char, span.end_char
            text = texts.get(element)
            if text is None or not 0 <= start < end <= len(text) or (element, start) < last:
                raise RecordError("offset_law", f"{one.passage_id}: [{start}, {end}) of element {element}")
            if text[ends[element] : start].strip():
                raise RecordError("lost_text", f"{one.passage_id}: text before {start} of element {element}")
            pieces.append(text[start:end])
            ends[element], last = end, (element, end)
        if not pieces or join(pieces) != one.text:
            raise RecordError("offset_law", f"{one.passage_id}: its text is not what stands at its spans")
    for element, text in page.elements:
        if text[ends[element] :].strip():
            raise RecordError("lost_text", f"page {page.page_id}: text from {ends[element]} on of element {element}")


def _sentences(page: PageText, max_words: int, split_long: bool) -> Iterator[_Sentence]:
    for element, text in page.elements:
        for start, end in sentence_spans(text):
            n_words = count_words(text[start:end])
            if n_words <= max_words or not split_long:
                yield _Sentence(PassageSpan(element, start, end), n_words)
                continue
            words = [found.span() for found in _WORD.finditer(text, start, end)]
            for first in range(0, len(words), max_words):
                part = words[first : first + max_words]
                yield _Sentence(PassageSpan(element, part[0][0], part[-1][1]), len(part))


def _word_runs(page: PageText, n_words: int) -> Iterator[_Sentence]:
    """Runs of words that fill one passage of ``n_words`` after the other, each run in one element."""
    room = n_words
    for element, text in page.elements:
        words = [found.span() for found in _WORD.finditer(text)]
        first = 0
        while first < len(words):
            run = words[first : first + room]
            yield _Sentence(PassageSpan(element, run[0][0], run[-1][1]), len(run))
            first += len(run)
            room = room - len(run) or n_words


def _chunks(page: PageText, n_tokens: int, count: Callable[[str], int]) -> Iterator[list[_Sentence]]:
    last: list[_Sentence] = []
    length, last_section = 0, None
    for (element, text), section in zip(page.elements, page.sections or [()] * len(page.elements), strict=True):
        held: list[_Sentence] = []
        n_held = 0
        for start, end in sentence_spans(text):
            one = _Sentence(PassageSpan(element, start, end), count(text[start:end]))
            if held and n_held + one.n_words >= n_tokens:
                if last:
                    yield last
                last, length, last_section = held, n_held, section
                held, n_held = [], 0
            held.append(one)
            n_held += one.n_words
        if held and last and section == last_section and n_held + length < n_tokens:
            last, length = last + held, length + n_held + 1  # KILT counts the blank between two texts
        elif held:
            if last:
                yield last
            last, length, last_section = held, n_held, section
    if last:
        yield last


def _groups(sentences: Iterator[_Sentence], max_words: int) -> Iterator[list[_Sentence]]:
    group: list[_Sentence] = []
    n_words = 0
    for sentence in sentences:
        if group and n_words + sentence.n_words > max_words:
            yield group
            group, n_words = [], 0
        group.append(sentence)
        n_words += sentence.n_words
    if group:
        yield group


def _passages(page: PageText, groups: Iterator[list[_Sentence]], join: Join = _BLANK.join) -> list[Passage]:
    texts = dict(page.elements)
    sections = dict(zip(texts, page.sections, strict=False))
    return [_passage(page, texts, number, group, sections, join) for number, group in enumerate(groups)]


def _passage(
    page: PageText,
    texts: Mapping[int, str],
    number: int,
    group: Sequence[_Sentence],
    sections: Mapping[int, tuple[str, ...]],
    join: Join,
) -> Passage:
    spans: list[PassageSpan] = []
    for span, _ in group:
        if spans and spans[-1].element == span.element:
            spans[-1] = PassageSpan(span.element, spans[-1].start_char, span.end_char)
        else:
            spans.append(span)
    return Passage(
        passage_id=passage_id(page.page_id, number),
        page_id=page.page_id,
        title=page.title,
        number=number,
        n_words=sum(passage.n_words for passage in group),
        text=join([texts[span.element][span.start_char : span.end_char] for span in spans]),
        spans=tuple(spans),
        section=sections.get(spans[0].element, ()),
    )
