"""Cuts a page into passages of consecutive whole sentences and records the exact location of each passage.

Running text is paragraphs and list items, with any marker. The title is stored with each passage but is not part of it.
Headings are left out because they are not sentences. Cells of tables and infoboxes are not running text; the rows of
tables can be passages of their own, after those of the running text.

Sources: QAMPARI (2022): consecutive sentences, at most 100 words. Its released code drops the rest of a page from the
first sentence that is longer than 100 words. No text is dropped here. DPR (2020) and section 3 of KILT (2021): 100
words each, without lists. KILT's ``create_kilt_data_paragraphs``: sentences of one section, fewer than 100 tokens.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Annotated, NamedTuple, TypeVar

from cyclopts import Parameter
from msgspec.structs import replace

from kbsource.elements import Table
from kbsource.errors import RecordError, SetupError
from kbsource.rows import Int32, Row
from kbsource.sentences import ends_with_mark, sentence_spans
from mapping.options import AtLeast1, Like, check_options
from mapping.passages.tables import PassageCell, RowSentence, located_text, table_sentences
from mapping.search.tokens import Tokeniser

MAX_WORDS = 100
TITLE_KINDS = frozenset(("title", "heading"))
"""Kinds of elements that are not running text."""

# Ideographs, kana and their punctuation. These scripts put no spaces between words, so each character counts as a word.
_WIDE = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uffef\U00020000-\U0003ffff"
# Thai, Lao, Tibetan, Burmese and Khmer. These scripts also put no spaces between words; a word has about four letters.
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


class PageText(NamedTuple):
    """The part of a page that is cut into passages."""

    page_id: int
    title: str
    elements: tuple[tuple[int, str], ...]  # number and text of each paragraph and list item, in page order
    #: headings above each element, outermost first; empty if there are no headings
    sections: tuple[tuple[str, ...], ...] = ()
    tables: tuple[Table, ...] = ()  # tables of the page; empty unless tables are cut too
    table_sections: tuple[tuple[str, ...], ...] = ()  # headings above each table


class PassageSpan(Row):
    """Part of an element: a half-open range of code points of its text."""

    element: Annotated[Int32, "number of the element in the page"]
    start_char: Annotated[Int32, "first code point of the span in the element's text"]
    end_char: Annotated[Int32, "end of the span in the element's text, one past its last code point"]


class Passage(Row):
    """One row per passage, in the order of the release from which it is cut."""

    passage_id: Annotated[str, "page id, two underscores, number; unique"]
    page_id: Annotated[int, "page from which the passage is cut"]
    title: Annotated[str, "title of the page"]
    number: Annotated[Int32, "position among the passages of its page, from 0"]
    n_words: Annotated[Int32, "number of words in the passage; number of tokens with `--unit tokens-N`"]
    text: Annotated[str, "the texts of `spans`, joined; or rows of a table, see docs/passages.md"]
    spans: Annotated[
        tuple[PassageSpan, ...],
        "the location of the passage in the page, in order; at most one span per element, none for rows of a table",
    ]
    section: Annotated[tuple[str, ...], "headings above the start of the passage, outermost first"] = ()
    cells: Annotated[
        tuple[PassageCell, ...], "for rows of a table, the locations of their cells and headers; else empty"
    ] = ()

    def holds(self, element: int, start_char: int, end_char: int) -> bool:
        """Returns whether the passage contains a span of an element completely."""
        return self.piece(element, start_char, end_char) is not None

    def piece(self, element: int, start_char: int, end_char: int) -> str | None:
        """Returns the text of a span of an element; None if the passage does not contain the span completely."""
        at = 0
        for span in self.spans:
            if span.element == element and span.start_char <= start_char and end_char <= span.end_char:
                return self.text[at + start_char - span.start_char : at + end_char - span.start_char]
            at += span.end_char - span.start_char
            at += len(_PARTED if self.text.startswith(_PARTED, at) else _BLANK)
        return None


@dataclass(frozen=True, slots=True)
class CutOptions:
    """Options of cutting pages. The manifest stores them under ``options``."""

    max_words: AtLeast1 = MAX_WORDS
    """Maximum number of words in a passage."""
    split_long: Annotated[bool, Parameter("--split-long-sentences")] = False
    """Cut a sentence of more than N words after every N words. By default, such a sentence is a separate passage."""
    unit: Annotated[
        str,
        Parameter(
            metavar="UNIT",
            validator=Like(r"sentences|(words|tokens)-[1-9]\d{0,5}", "sentences, words-100 or tokens-100"),
        ),
    ] = "sentences"
    """Unit of passages: sentences; words-N (N words each, without lists, as in DPR and in KILT's passages); tokens-N
    (sentences of one section with fewer than N tokens, as in KILT's chunks)."""
    tables: Annotated[bool, Parameter("--tables")] = False
    """Also write the rows of tables as sentences "header: value; header: value.". They are separate passages after
    those of the page's text.
    """

    def __post_init__(self) -> None:
        """Raises SetupError as ``check_options`` does, and for options that have no effect with the unit."""
        check_options(self)
        if not self.is_by_sentence and (self.max_words != MAX_WORDS or self.split_long):
            raise SetupError(
                f"--unit {self.unit} sets the length of passages; leave --max-words and --split-long-sentences out."
            )

    @property
    def is_by_sentence(self) -> bool:
        """Returns whether passages are built from whole sentences of all running text."""
        return self.unit == "sentences"

    @property
    def has_lists(self) -> bool:
        """Returns whether list items count as running text."""
        return not self.unit.startswith("words")

    def join(self, pieces: Sequence[str]) -> str:
        """Returns the text of a passage from its pieces. With words and tokens as units, pieces are joined by spaces,
        as in DPR and KILT."""
        return join_pieces(pieces) if self.is_by_sentence else _BLANK.join(pieces)

    @property
    def limit(self) -> int:
        """Returns the maximum number of words, or tokens, in a passage."""
        return self.max_words if self.is_by_sentence else int(self.unit.partition("-")[2])

    def cutter(self, lang: str) -> Callable[[PageText], list[Passage]]:
        """Returns the function that cuts a page of a wiki in that language into passages."""
        cut_text: Callable[[PageText], list[Passage]]
        if self.is_by_sentence:
            cut_text = partial(cut_page, max_words=self.max_words, split_long=self.split_long)
            cut_rows = partial(cut_table_rows, max_words=self.max_words, split_long=self.split_long)
        elif self.has_lists:
            count = Tokeniser(lang).count
            cut_text = partial(cut_chunks, n_tokens=self.limit, count=count)
            cut_rows = partial(cut_table_rows, max_words=self.limit - 1, count=count)
        else:
            cut_text = partial(cut_words, n_words=self.limit)
            cut_rows = partial(cut_table_rows, max_words=self.limit, split_long=True)

        def cut_both(page: PageText) -> list[Passage]:
            passages = cut_text(page)
            return passages + cut_rows(page, first=len(passages))

        return cut_both if self.tables else cut_text


class _Sentence(NamedTuple):
    span: PassageSpan
    n_words: int


class _Rows(NamedTuple):
    """A row of a table, or a part of one."""

    sentence: RowSentence
    n_words: int


_Part = TypeVar("_Part", _Sentence, _Rows)


def passage_id(page_id: int, number: int) -> str:
    """Returns the id of the passage with that number in its page.

    >>> passage_id(12, 0)
    '12__0'
    """
    return f"{page_id}__{number}"


def count_words(text: str) -> int:
    """Returns the number of words in a text.

    A word is a run of characters without white space. Each ideograph and each kana counts as one word. In scripts
    without spaces between words (Thai, Lao, Tibetan, Burmese, Khmer), four letters count as one word.

    >>> count_words("It rises here, in 1901."), count_words("北京是首都。")
    (5, 6)
    """
    if text.isascii() or _HAS_WIDE.search(text) is None:
        return len(text.split())
    return sum(1 for _ in _WORD.finditer(text))


def join_pieces(pieces: Sequence[str]) -> str:
    """Joins pieces of elements into one text.

    A piece that ends in punctuation is followed by a space, any other piece by a semicolon and a space, so that list
    items stay apart.

    >>> join_pieces(["They are:", "Norda", "Fenneka (small)", "Both are dry."])
    'They are: Norda; Fenneka (small); Both are dry.'
    """
    ends = (_BLANK if ends_with_mark(piece) else _PARTED for piece in pieces[:-1])
    return "".join((*chain.from_iterable(zip(pieces, ends, strict=False)), pieces[-1]))


def cut_page(page: PageText, *, max_words: int = MAX_WORDS, split_long: bool = False) -> list[Passage]:
    """Returns the passages of a page, in order. Each contains as many whole sentences as ``max_words`` allows.

    Args:
        split_long: cut a sentence with more words after every ``max_words`` words; otherwise it is a separate passage.
    """
    return _passages(page, _groups(_sentences(page, max_words, split_long), max_words), join_pieces)


def cut_words(page: PageText, *, n_words: int) -> list[Passage]:
    """Returns the passages of a page, in order. Each has ``n_words`` words; the last has the remaining words."""
    return _passages(page, _groups(_word_runs(page, n_words), n_words))


def cut_chunks(page: PageText, *, n_tokens: int, count: Callable[[str], int]) -> list[Passage]:
    """Returns the passages of a page, in order, cut as KILT does: whole sentences of one section.

    A paragraph or list item is filled sentence by sentence up to fewer than ``n_tokens``. The rest of the paragraph is
    added to the previous passage if both are in one section and together have fewer than ``n_tokens``. A longer
    sentence is a separate passage.

    Args:
        n_tokens: passages have fewer tokens than this.
    """
    return _passages(page, _chunks(page, n_tokens, count))


def cut_table_rows(
    page: PageText,
    *,
    first: int = 0,
    max_words: int = MAX_WORDS,
    split_long: bool = False,
    count: Callable[[str], int] = count_words,
) -> list[Passage]:
    """Returns the passages of a page's tables, in order. Each contains as many whole rows of one table as ``max_words``
    allows.

    Args:
        first: number of the first passage.
        split_long: cut a row with more words after every ``max_words`` words; otherwise it is a separate passage.
        count: returns the number of words of a text.
    """
    passages: list[Passage] = []
    for number, (table, section) in enumerate(zip(page.tables, page.table_sections, strict=True)):
        sentences = [
            part
            for sentence in table_sentences(number, table)
            for part in _row_parts(sentence, max_words if split_long else None, count)
        ]
        for group in _groups(iter(sentences), max_words):
            passages.append(_table_passage(page, first + len(passages), group, section))
    return passages


def check_passages(page: PageText, passages: Sequence[Passage], join: Join) -> None:
    """Checks that passages contain exactly the text of the page at the recorded locations.

    The text of each passage is the text at its spans, joined. Spans are in order and do not overlap. Before, between
    and after them there is only white space. The text at each cell of a passage of a table is that cell's text, and
    every cell with text is in a passage.

    Raises:
        RecordError: ``invalid_passage`` for a passage with a wrong id, title or number; ``span_mismatch`` for a text or
            location that differs from the page; ``lost_text`` for text of the page that is in no passage.
    """
    texts = dict(page.elements)
    ends = dict.fromkeys(texts, 0)
    last = (-1, 0)
    for number, passage in enumerate(passages):
        if (passage.passage_id, passage.page_id, passage.title, passage.number) != (
            passage_id(page.page_id, number),
            page.page_id,
            page.title,
            number,
        ):
            raise RecordError(
                "invalid_passage", f"passage {number} of page {page.page_id} is called {passage.passage_id}"
            )
        if passage.cells:
            _check_cells(page, passage)
            continue
        pieces = []
        for span in passage.spans:
            element, start, end = span.element, span.start_char, span.end_char
            text = texts.get(element)
            if text is None or not 0 <= start < end <= len(text) or (element, start) < last:
                raise RecordError("span_mismatch", f"{passage.passage_id}: [{start}, {end}) of element {element}")
            if text[ends[element] : start].strip():
                raise RecordError("lost_text", f"{passage.passage_id}: text before {start} of element {element}")
            pieces.append(text[start:end])
            ends[element], last = end, (element, end)
        if not pieces or join(pieces) != passage.text:
            raise RecordError("span_mismatch", f"{passage.passage_id}: its text does not match its spans")
    for element, text in page.elements:
        if text[ends[element] :].strip():
            raise RecordError("lost_text", f"page {page.page_id}: text from {ends[element]} on of element {element}")
    _check_no_cell_is_lost(page, passages)


def _check_cells(page: PageText, passage: Passage) -> None:
    end, first = 0, passage.cells[0].table
    for cell in passage.cells:
        text = None
        if cell.table == first and 0 <= first < len(page.tables):
            text = located_text(page.tables[first], cell.row, cell.cell)
        is_exact = text is not None and 0 <= cell.start_char < cell.end_char <= len(text)
        if (
            text is None
            or not is_exact
            or passage.text[cell.passage_start_char : cell.passage_end_char] != text[cell.start_char : cell.end_char]
        ):
            place = f"[{cell.start_char}, {cell.end_char}) of cell {cell.cell}, row {cell.row}, table {cell.table}"
            raise RecordError("span_mismatch", f"{passage.passage_id}: {place}")
        if cell.passage_start_char < end or passage.text[end : cell.passage_start_char].strip(" ;:,."):
            raise RecordError("span_mismatch", f"{passage.passage_id}: its text at {end} belongs to no cell")
        end = cell.passage_end_char
    if passage.spans or passage.text[end:].strip(" ;:,."):
        raise RecordError("span_mismatch", f"{passage.passage_id}: its text at {end} belongs to no cell")


def _check_no_cell_is_lost(page: PageText, passages: Sequence[Passage]) -> None:
    n_chars: Counter[tuple[int, int | None, int | None]] = Counter()
    for part in chain.from_iterable(passage.cells for passage in passages):
        n_chars[part.table, part.row, part.cell] += part.end_char - part.start_char
    for number, table in enumerate(page.tables):
        for row, cells in enumerate(table.rows):
            for index, cell in enumerate(cells):
                if n_chars[number, row, index] < len("".join(cell.text.split())):
                    raise RecordError(
                        "lost_text", f"page {page.page_id}: text of cell {index}, row {row}, table {number}"
                    )


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


def _row_parts(sentence: RowSentence, max_words: int | None, count: Callable[[str], int]) -> Iterator[_Rows]:
    """Splits a row into parts of ``max_words`` words if it is longer."""
    n_words = count(sentence.text)
    if max_words is None or n_words <= max_words:
        yield _Rows(sentence, n_words)
        return
    words = [found.span() for found in _WORD.finditer(sentence.text)]
    cells = deque(sentence.cells)
    for first in range(0, len(words), max_words):
        part = words[first : first + max_words]
        start, end = part[0][0], part[-1][1]
        held = []
        while cells and cells[0].passage_start_char < end:
            cell = cells.popleft()
            if cell.passage_end_char > end:
                cells.appendleft(cell)
            begin, stop = max(cell.passage_start_char, start), min(cell.passage_end_char, end)
            if begin < stop:
                moved = {
                    "start_char": cell.start_char + begin - cell.passage_start_char,
                    "end_char": cell.start_char + stop - cell.passage_start_char,
                }
                held.append(replace(cell, passage_start_char=begin - start, **moved))
            if cell.passage_end_char > end:
                break
        if held:  # otherwise it is a separator between cells
            yield _Rows(RowSentence(sentence.text[start:end], tuple(held)), len(part))


def _table_passage(page: PageText, number: int, rows: Sequence[_Rows], section: tuple[str, ...]) -> Passage:
    cells: list[PassageCell] = []
    at = 0
    for (text, own), _ in rows:
        cells += (replace(cell, passage_start_char=cell.passage_start_char + at) for cell in own)
        at += len(text) + len(_BLANK)
    return Passage(
        passage_id=passage_id(page.page_id, number),
        page_id=page.page_id,
        title=page.title,
        number=number,
        n_words=sum(row.n_words for row in rows),
        text=_BLANK.join(row.sentence.text for row in rows),
        spans=(),
        section=section,
        cells=tuple(cells),
    )


def _word_runs(page: PageText, n_words: int) -> Iterator[_Sentence]:
    """Divides words into runs that fill passages of ``n_words`` one after another. Each run is in one element."""
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
            sentence = _Sentence(PassageSpan(element, start, end), count(text[start:end]))
            if held and n_held + sentence.n_words >= n_tokens:
                if last:
                    yield last
                last, length, last_section = held, n_held, section
                held, n_held = [], 0
            held.append(sentence)
            n_held += sentence.n_words
        if held and last and section == last_section and n_held + length < n_tokens:
            last, length = last + held, length + n_held + 1  # 1 for the space between two texts, which KILT counts too
        elif held:
            if last:
                yield last
            last, length, last_section = held, n_held, section
    if last:
        yield last


def _groups(sentences: Iterator[_Part], max_words: int) -> Iterator[list[_Part]]:
    group: list[_Part] = []
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
