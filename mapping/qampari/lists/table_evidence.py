"""What lists say of their rows, as facts, and the sentences of pages that prove them. No model judges these.

Source: QAMPARI (2022), section 3.3, and its released code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from kbsource.records import Page
from mapping.qampari.facts.evidence import N_BEFORE, Candidate, number_names, text_names
from mapping.qampari.lists.list_tables import ListTable
from mapping.search.caseless import fold_case
from mapping.search.sentences import sentence_spans

_MARKS = "[,\u00a0\u202f ]"
_NUMBER = re.compile(
    rf"[-−+]?(?:0|[1-9]\d{{0,2}}(?:(?P<mark>{_MARKS})\d{{3}}(?:(?P=mark)\d{{3}})*|\d*))(?:\.\d+)?", re.ASCII
)
_NAME_WORD = re.compile(r"\w+(?:['’.&-]\w+)*")
_LEAST_SINGULAR = 4
_TITLES = frozenset(("title", "heading"))


class TableFact(NamedTuple):
    """What is to be proved of a row.

    Attributes:
        list_page_id: the list's page.
        table: number of the table.
        row: number of the row.
        column: number of the column whose value is to be proved; None where it is that the row belongs to the list.
        page_id: the page that the key links to, which is searched first.
        text: of the key.
        names: the value as a page may write it; of a row's belonging the words of the list's name.
        value_page_id: the page that the value links to, searched for the key; None without one of its own.
    """

    list_page_id: int
    table: int
    row: int
    column: int | None
    page_id: int
    text: str
    names: tuple[str, ...]
    value_page_id: int | None

    @property
    def key(self) -> str:
        """Names the fact among all."""
        return fact_key(self.list_page_id, self.table, self.row, self.column)


def fact_key(list_page_id: int, table: int, row: int, column: int | None) -> str:
    """Gives what names a fact among all."""
    parts = (list_page_id, table, row) if column is None else (list_page_id, table, row, column)
    return "__".join(map(str, parts))


def table_facts(tables: Iterable[ListTable]) -> Iterator[TableFact]:
    """Gives what is to be proved of the tables of a page: first that rows belong to the list, then their values.

    Of rows that have a page; the same page, and the same page with the same value in a column of a table, once, at the
    first row. Values that cannot be looked for, such as numbers of less than three digits, make no fact.

    Args:
        tables: of one page, as ``list_tables`` gives them.
    """
    tables = list(tables)
    for table, row in member_rows(tables):
        yield _fact(table, row, None)
    for table in tables:
        for column in table.value_columns:
            facts = (_fact(table, row, column) for row in value_rows(table, column))
            yield from (fact for fact in facts if fact.names)


def member_rows(tables: Iterable[ListTable]) -> Iterator[tuple[ListTable, int]]:
    """Gives the rows of a page's tables that have a page, the first row of each page."""
    seen = set()
    for table in tables:
        for number, row in enumerate(table.rows):
            if row.key.page_id is not None and row.key.page_id not in seen:
                seen.add(row.key.page_id)
                yield table, number


def value_rows(table: ListTable, column: int) -> Iterator[int]:
    """Gives the rows that have a page, the first of each page and value; the value can be empty."""
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
        # In the page of the key itself the key stands anyway.
        value_page_id = value.page_id if value.page_id != key.page_id else None
    return TableFact(table.page_id, table.number, number, column, key.page_id, key.text, names, value_page_id)


def name_words(name: str) -> tuple[str, ...]:
    """Gives the words of a list's name, in lower case (``fold_case``), each once.

    >>> name_words("U.S. rail-roads of the 1850s, the")
    ('u.s', 'rail-roads', 'of', 'the', '1850s')
    """
    return tuple(dict.fromkeys(_NAME_WORD.findall(fold_case(name))))


def parse_number(text: str) -> Decimal | None:
    """Gives the number that a text is: with commas or blanks between thousands, or none; None for other texts.

    What begins with a zero, has a unit or is a range is no number.

    >>> [parse_number(one) for one in ("1,250", "12.5", "−3", "1,25", "007", "12 km")]
    [Decimal('1250'), Decimal('12.5'), Decimal('-3'), None, None, None]
    """
    if _NUMBER.fullmatch(text) is None:
        return None
    return Decimal(re.sub(_MARKS, "", text).replace("−", "-")) or Decimal()


def value_names(text: str) -> tuple[str, ...]:
    """Gives how a page may write a value; none for numbers of less than three digits.

    >>> value_names("4,542"), value_names("42"), value_names("Lund")
    (('4,542', '4542'), (), ('Lund',))
    """
    number = parse_number(text)
    if number is None:
        return text_names(text)
    names = number_names(f"{number:f}")
    return tuple(dict.fromkeys((text, *names))) if names else ()


def find_words(page: Page, words: Iterable[str], *, n_before: int = N_BEFORE) -> Candidate | None:
    """Gives the sentence of a page that has most of some words, the first of these; None unless the page has them all.

    Words are looked for in paragraphs and list items, whole and in any case; one of more than three letters that ends
    in "s" is found without it too. What is found is given as the words stand in the sentence, joined by blanks.

    Args:
        page: the page.
        words: each once.
        n_before: most sentences before, of the same element.
    """
    spans: dict[int, list[tuple[int, int]]] = {}
    found: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    running = [number for number, one in enumerate(page.elements) if one.kind not in _TITLES]
    for word in words:
        pattern = _word_pattern(word)
        places: dict[tuple[int, int], str] = {}
        for element in running:
            text = page.elements[element].text
            for match in pattern.finditer(text):
                if element not in spans:
                    spans[element] = sentence_spans(text)
                sentence = bisect_right(spans[element], match.start(), key=lambda span: span[0]) - 1
                places.setdefault((element, sentence), match[0])
        if not places:
            return None
        for place, match_text in places.items():
            found[place].append(match_text)
    if not found:
        return None
    element, sentence = min(found, key=lambda place: (-len(found[place]), place))
    begin = spans[element][max(0, sentence - n_before)][0]
    start, end = spans[element][sentence]
    text = page.elements[element].text[begin:end]
    return Candidate(page.page_id, element, begin, start, end, text, " ".join(found[element, sentence]), False)


def _word_pattern(word: str) -> re.Pattern[str]:
    is_plural = len(word) >= _LEAST_SINGULAR and word.endswith("s")
    written = f"{re.escape(word[:-1])}s?" if is_plural else re.escape(word)
    return re.compile(rf"(?<!\w){written}(?!\w)", re.IGNORECASE)
