"""Converts list tables to facts that pages prove, and to questions. A question asks for all listed things, for the rows
that have a certain value, or for the rows whose value is above or below a certain value. No model judges these facts.

Source: QAMPARI (2022), section 3.3, and the wording of questions in its released code. That code compares numbers as
texts and keeps one row for each value; here numbers are compared as numbers, and every row that qualifies is an answer.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from operator import itemgetter
from typing import Literal, NamedTuple

from kbsource.identity import stable_sha256
from mapping.qampari.evidence import CandidateSentence, PageSentences, number_names, text_names, written_number
from mapping.qampari.list_tables import LinkedText, ListTable
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.selection import AnswerFilter
from mapping.search.text import fold_case

_MARKS = "[,\u00a0\u202f ]"
_NUMBER = re.compile(
    rf"[-−+]?(?:0|[1-9]\d{{0,2}}(?:(?P<mark>{_MARKS})\d{{3}}(?:(?P=mark)\d{{3}})*|\d*))(?:\.\d+)?", re.ASCII
)
_NAME_WORD = re.compile(r"\w+(?:['’.&-]\w+)*")
_LEAST_SINGULAR = 4


class TableFact(NamedTuple):
    """A fact about a row that is to be proved."""

    list_page_id: int  # page of the list
    table: int  # number of the table within the page
    row: int  # number of the row within the table
    #: number of the column whose value is to be proved; None to prove that the row belongs to the list
    column: int | None
    page_id: int  # the page that the key links to, which is searched first
    text: str
    names: tuple[str, ...]  # the forms that the value may have in a page; for membership, the words of the list's name
    value_page_id: int | None  # the page that the value links to, searched for the key; or None

    @property
    def key(self) -> str:
        """Identifies the fact among all facts."""
        return fact_key(self.list_page_id, self.table, self.row, self.column)


def fact_key(list_page_id: int, table: int, row: int, column: int | None) -> str:
    """Returns the key that identifies a fact among all facts."""
    parts = (list_page_id, table, row) if column is None else (list_page_id, table, row, column)
    return "__".join(map(str, parts))


def table_facts(tables: Iterable[ListTable]) -> Iterator[TableFact]:
    """Lists the facts to be proved for the tables of a page: first that rows belong to the list, then their values.

    Only rows with a page make facts. Rows with the same page, or in a column with the same page and value, make one
    fact, at the first row. Values that cannot be searched for, such as numbers of fewer than three digits, make none.

    Args:
        tables: the tables of a page, from ``list_tables``.
    """
    tables = list(tables)
    for table, row in member_rows(tables):
        yield _fact(table, row, None)
    for table in tables:
        for column in table.value_columns:
            facts = (_fact(table, row, column) for row in rows_with_page(table, column))
            yield from (fact for fact in facts if fact.names)


def member_rows(tables: Iterable[ListTable]) -> Iterator[tuple[ListTable, int]]:
    """Reads the rows of a page's tables that link to a page. If several rows link to the same page, only the first is
    read.
    """
    seen = set()
    for table in tables:
        for number, row in enumerate(table.rows):
            if row.key.page_id is not None and row.key.page_id not in seen:
                seen.add(row.key.page_id)
                yield table, number


def rows_with_page(table: ListTable, column: int) -> Iterator[int]:
    """Selects the rows that have a page; for each page and value only the first. The value can be empty."""
    seen = set()
    for number, row in enumerate(table.rows):
        pair = row.key.page_id, row.values[column].text
        if row.key.page_id is not None and pair not in seen:
            seen.add(pair)
            yield number


def _fact(table: ListTable, number: int, column: int | None) -> TableFact:
    key = table.rows[number].key
    assert key.page_id is not None
    if column is None:
        names, value_page_id = name_words(table.name), None
    else:
        value = table.rows[number].values[column]
        names = value_names(value.text)
        # The key occurs in its own page anyway.
        value_page_id = value.page_id if value.page_id != key.page_id else None
    return TableFact(table.page_id, table.number, number, column, key.page_id, key.text, names, value_page_id)


def name_words(name: str) -> tuple[str, ...]:
    """Returns the distinct words of a list's name, in lower case (``fold_case``).

    >>> name_words("U.S. rail-roads of the 1850s, the")
    ('u.s', 'rail-roads', 'of', 'the', '1850s')
    """
    return tuple(dict.fromkeys(_NAME_WORD.findall(fold_case(name))))


def parse_cell_number(text: str) -> Decimal | None:
    """Parses a number, with commas or spaces between thousands or without; returns None for other texts.

    Texts that begin with a zero, have a unit or are a range are not numbers.

    >>> [parse_cell_number(text) for text in ("1,250", "12.5", "−3", "1,25", "007", "12 km")]
    [Decimal('1250'), Decimal('12.5'), Decimal('-3'), None, None, None]
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    return Decimal(re.sub(_MARKS, "", text).replace("−", "-")) or Decimal()


def value_names(text: str) -> tuple[str, ...]:
    """Returns the forms that a value may have in a page; empty for numbers of fewer than three digits.

    >>> value_names("4,542"), value_names("42"), value_names("Lund")
    (('4,542', '4542'), (), ('Lund',))
    """
    number = parse_cell_number(text)
    if number is None:
        return text_names(text)
    names = number_names(f"{number:f}")
    return tuple(dict.fromkeys((text, *names))) if names else ()


def find_words(sentences: PageSentences, words: Iterable[str]) -> CandidateSentence | None:
    """Returns the first sentence of a page among those with most of some words; None unless the page has all of them.

    Words are searched for in paragraphs and list items, as whole words and regardless of case; a word of more than
    three letters that ends in "s" also matches without it. The words are returned as they are written in the sentence,
    joined by spaces.

    Args:
        words: without repeats.
    """
    found: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    for word in words:
        is_plural = len(word) >= _LEAST_SINGULAR and word.endswith("s")
        written = f"{re.escape(word[:-1])}s?" if is_plural else re.escape(word)
        pattern = re.compile(rf"(?<!\w){written}(?!\w)", re.IGNORECASE)
        places: dict[tuple[int, int], str] = {}
        for element in sentences.running:
            for match in pattern.finditer(sentences.page.elements[element].text):
                sentence = bisect_right(sentences.spans(element), match.start(), key=itemgetter(0)) - 1
                places.setdefault((element, sentence), match[0])
        if not places:
            return None
        for place, match_text in places.items():
            found[place].append(match_text)
    if not found:
        return None
    element, sentence = min(found, key=lambda place: (-len(found[place]), place))
    place = sentences.spans(element)[sentence]
    return sentences.candidate(element, *place)._replace(found=" ".join(found[element, sentence]))


ColumnKind = Literal["text", "number", "year"]
TableRows = Literal["linked", "all"]
"""Rows that link to a page, or all rows."""

LEAST_CHARS = 6
"""Minimum length of a value of a text column that a question asks about. Source: the released code."""

REASONS: dict[str, str] = {
    "too_few_validated": "fewer rows are proved than a question needs answers",
    "share_too_low": "too small a share of the rows with a page, or of all rows, is proved",
    "too_many_validated": "more rows are proved than a question may have answers",
    "no_pivot": "no number or year of the column has enough proved rows on either side",
    "same_text": "another question about the page has the same words",
    "short_value": "the value is too short to be asked about",
}
"""Reasons for not making a question, or all questions of a column, with their meanings."""

_YEAR = re.compile(r"(?<!\d)[12]\d{3}(?!\d)")
_CAPITALISED = re.compile(r"(?<!\w)[A-Z][a-z]+(?!\w)")
_YEAR_NAMES = ("year", "date", "last")


class DroppedQuestion(NamedTuple):
    """A question, or the questions of a column, that were not made."""

    subset: str  # subset of the question, one of ``questions.SUBSETS``
    key: str  # key that the question would have; for a column, the common beginning of its questions' keys
    reason: str  # key of ``REASONS``
    n_answers: int  # number of pages that answer according to the table; for a column, of the pages of all its rows
    n_validated: int  # number of answers that are proved


class _Row(NamedTuple):
    """A row of a column, or of a page, with its proof."""

    page_id: int
    key: LinkedText
    value: LinkedText
    proof: ProofText | None


def make_questions(
    tables: Iterable[ListTable],
    proofs: Mapping[str, ProofText],
    *,
    seed: str,
    keep: AnswerFilter | None = None,
    redirects: Mapping[int, tuple[str, ...]] | None = None,
    share_of: TableRows = "linked",
) -> tuple[list[Question], list[DroppedQuestion]]:
    """Returns the questions about the tables of a page, and those that were not made.

    A simple question asks for the rows of all of its tables. Each column that can be asked about yields compositions if
    enough of its rows, and a large enough share of them, are proved. A text column yields one question for each value
    that enough rows have; a column of numbers or years yields one for each side of a randomly drawn value. Rows that
    link to the same page are one answer, which is the first of them that is proved. The proof of a composition's answer
    is the proof of its value.

    Args:
        tables: the tables of a page, from ``list_tables``.
        proofs: by ``TableFact.key``, for facts with a proof.
        keep: limits for the number of answers, and the share of rows that must be proved.
        redirects: other titles of pages, by page id, used as aliases of answers; none by default.
        share_of: the rows that count for the share that must be proved; rows without a page are never proved.
    """
    tables = list(tables)
    if not tables:
        return [], []
    if len({table.page_id for table in tables}) > 1:
        raise ValueError("Questions are made of the tables of one page.")
    maker = _Maker(tables[0], proofs, seed, AnswerFilter() if keep is None else keep, redirects or {}, share_of)
    maker.ask_simple(tables)
    for table in tables:
        for column in table.value_columns:
            maker.ask_column(table, column)
    return maker.questions, maker.unkept


def column_kind(values: Collection[str], name: str) -> ColumnKind:
    """Returns the kind of a column's values, ignoring empty ones.

    Years are four digits from 1000 to 2999; in a column whose name contains "year", "date" or "last", any text with
    such a year. Numbers are texts that ``parse_cell_number`` accepts. A column has years or numbers only if all of its
    values are.

    >>> column_kind(["1990", "2001"], "Founded"), column_kind(["1,990", "20"], "Area"), column_kind(["Lund"], "Town")
    ('year', 'number', 'text')
    """
    said = [value for value in values if value]
    if not said:
        return "text"
    is_dated = any(word in name.lower() for word in _YEAR_NAMES)
    if all(_YEAR.search(text) if is_dated else _YEAR.fullmatch(text) for text in said):
        return "year"
    return "number" if all(parse_cell_number(text) is not None for text in said) else "text"


def draw_pivot(amounts: Iterable[tuple[int, Decimal]], *, least: int, seed: str, column_key: str) -> Decimal | None:
    """Returns one of the amounts, with which the others are compared; None if no amount has enough others on both
    sides.

    It is drawn by hash, so it does not depend on their order.

    Args:
        amounts: (page that has it, amount).
        least: minimum number of pages with an amount below it, and with one not below it.
        column_key: identifies the column among all columns.
    """
    by_page: dict[int, list[Decimal]] = {}
    for page_id, amount in amounts:
        by_page.setdefault(page_id, []).append(amount)
    smallest, largest = sorted(map(min, by_page.values())), sorted(map(max, by_page.values()))
    pivots = [
        pivot
        for pivot in {amount for having in by_page.values() for amount in having}
        if bisect_left(smallest, pivot) >= least and len(largest) - bisect_left(largest, pivot) >= least
    ]
    return min(
        pivots, key=lambda pivot: (stable_sha256(seed, "pivot", column_key, written_number(pivot)), pivot), default=None
    )


class _Maker:
    """Makes the questions of a page."""

    def __init__(
        self,
        page: ListTable,
        proofs: Mapping[str, ProofText],
        seed: str,
        keep: AnswerFilter,
        redirects: Mapping[int, tuple[str, ...]],
        share_of: TableRows,
    ) -> None:
        self.questions: list[Question] = []
        self.unkept: list[DroppedQuestion] = []
        self._texts: set[str] = set()
        self._page_id = page.page_id
        self._entity = QuestionEntity(page.name, (page.name,), page.title, None)
        self._proofs, self._seed, self._keep, self._redirects = proofs, seed, keep, redirects
        self._share_of = share_of

    def ask_simple(self, tables: Sequence[ListTable]) -> None:
        key = str(self._page_id)
        rows = [self._row(table, number, None) for table, number in member_rows(tables)]
        if self._passes(TABLE_SIMPLE, key, rows, tables):
            self._add(TABLE_SIMPLE, key, f"Who or what is {self._entity.text}?", rows, ())

    def ask_column(self, table: ListTable, column: int) -> None:
        key = f"{self._page_id}__{table.number}__{column}"
        rows = [self._row(table, number, column) for number in rows_with_page(table, column)]
        if not self._passes(TABLE_COMPOSITION, key, rows, [table]):
            return
        kind = column_kind([row.value.text for row in rows], table.columns[column])
        key_column, name = table.columns[table.key_column], table.name
        phrase = name if key_column.lower() in name.lower() else f"{_uncapitalise(key_column)} of {name}"
        listed = f"What are the {phrase} such that"
        if kind == "text":
            self._ask_values(key, rows, f"{listed} their {_uncapitalise(table.columns[column])} value is")
        elif kind == "number":
            said = f"{listed} their {_uncapitalise(table.columns[column])} value is"
            self._ask_sides(key, rows, _number_of, {"lower": f"{said} lower than", "greater": f"{said} greater than"})
        else:
            said = f"{listed} they were created or happened"
            self._ask_sides(key, rows, _year_of, {"before": f"{said} before", "after": f"{said} after"})

    def _row(self, table: ListTable, number: int, column: int | None) -> _Row:
        row = table.rows[number]
        proof = self._proofs.get(fact_key(self._page_id, table.number, number, column))
        assert row.key.page_id is not None
        return _Row(row.key.page_id, row.key, row.key if column is None else row.values[column], proof)

    def _passes(self, subset: str, key: str, rows: Sequence[_Row], tables: Sequence[ListTable]) -> bool:
        """Returns whether enough of the rows with a page are proved, and a large enough share of them, or of all
        rows."""
        n_rows = len(rows)
        if self._share_of == "all":
            n_rows += sum(row.key.page_id is None for table in tables for row in table.rows)
        n_validated = sum(row.proof is not None for row in rows)
        if n_validated < self._keep.least:
            self._leave(subset, key, "too_few_validated", rows)
            return False
        # Ignoring the maximum, which applies to each single question.
        if not replace(self._keep, most=max(self._keep.most, n_validated)).keeps(n_validated, n_rows):
            self._leave(subset, key, "share_too_low", rows)
            return False
        return True

    def _ask_values(self, column_key: str, rows: Sequence[_Row], said: str) -> None:
        by_value: dict[str, list[_Row]] = {}
        for row in rows:
            by_value.setdefault(row.value.text, []).append(row)
        for value, having in by_value.items():
            key = f"{column_key}__{value}"
            if not value or len(_answers(having)) < self._keep.least:
                continue
            if len(value) < LEAST_CHARS:
                self._leave(TABLE_COMPOSITION, key, "short_value", having)
                continue
            linked = next((amount.value.title for amount in having if amount.value.title is not None), None)
            entities = () if linked is None else (QuestionEntity(value, (value,), linked, None),)
            self._add(TABLE_COMPOSITION, key, f"{said} {value}?", having, entities)

    def _ask_sides(
        self, column_key: str, rows: Sequence[_Row], amount_of: Callable[[str], Decimal], said: Mapping[str, str]
    ) -> None:
        """Asks for the rows below a drawn amount, then for the others; ``said`` contains the wording for each."""
        amounts = [(amount_of(row.value.text), row) for row in rows if row.value.text]
        proved = [(row.page_id, amount) for amount, row in amounts if row.proof is not None]
        pivot = draw_pivot(proved, least=self._keep.least, seed=self._seed, column_key=column_key)
        if pivot is None:
            self._leave(TABLE_COMPOSITION, column_key, "no_pivot", rows)
            return
        sides = (
            [row for amount, row in amounts if amount < pivot],
            [row for amount, row in amounts if amount >= pivot],
        )
        shown = min(row.value.text for amount, row in amounts if amount == pivot)
        if parse_cell_number(shown) is None:  # a date, of which only the year is compared
            shown = written_number(pivot)
        for side, (word, text) in zip(sides, said.items(), strict=True):
            self._add(TABLE_COMPOSITION, f"{column_key}__{word}__{written_number(pivot)}", f"{text} {shown}?", side, ())

    def _leave(self, subset: str, key: str, reason: str, rows: Sequence[_Row]) -> None:
        proved = [row for row in rows if row.proof is not None]
        self.unkept.append(DroppedQuestion(subset, key, reason, len(_answers(rows)), len(_answers(proved))))

    def _add(
        self, subset: str, key: str, text: str, rows: Sequence[_Row], entities: tuple[QuestionEntity, ...]
    ) -> None:
        found = _answers([row for row in rows if row.proof is not None])
        if len(found) < self._keep.least:
            self._leave(subset, key, "too_few_validated", rows)
        elif len(found) > self._keep.most:
            self._leave(subset, key, "too_many_validated", rows)
        elif text in self._texts:
            self._leave(subset, key, "same_text", rows)
        else:
            self._texts.add(text)
            about, answers = (self._entity, *entities), tuple(self._answer(row) for row in found)
            counts = len(_answers(rows)), len(answers)
            self.questions.append(Question(subset, key, text, None, (), None, about, answers, *counts))

    def _answer(self, row: _Row) -> QuestionAnswer:
        assert row.proof is not None
        text = row.key.text
        aliases = tuple(dict.fromkeys((text, *self._redirects.get(row.page_id, ()))))
        return QuestionAnswer(text, aliases, row.key.title, None, (row.proof,))


def _answers(rows: Iterable[_Row]) -> list[_Row]:
    """Returns the first row of each page."""
    first: dict[int, _Row] = {}
    for row in rows:
        first.setdefault(row.page_id, row)
    return list(first.values())


def _number_of(text: str) -> Decimal:
    number = parse_cell_number(text)
    assert number is not None
    return number


def _year_of(text: str) -> Decimal:
    found = _YEAR.search(text)
    assert found is not None
    return Decimal(found[0])


def _uncapitalise(name: str) -> str:
    """Returns a column's name in lower case, except for words like GDP. The released code lowers all words."""
    return _CAPITALISED.sub(lambda word: word[0].lower(), name)
