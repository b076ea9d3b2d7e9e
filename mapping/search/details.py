"""The numbers, dates and names of an evidence, and whether a text that is like it still has them.

A *detail* is a number (a run of digits of any script, with its separators and a minus sign), a month or a day of the
week in the language of the wiki, or a name. A name has a capital letter where the page never writes the word without
one; the first word of a sentence is a name only if the page has it so inside a sentence, or if another such word
replaces it. A number in English words counts where another number replaces it. The title of the page names its
subject, so its words may be left out, but not be replaced by other names.

Most scripts of Asia have no capitals, and nothing tells names from other words there: every word (of scripts without
spaces, every letter) that another one replaces counts as a detail, except for stop words. A text that was reworded may
so be taken for one with other details; one with other details is never taken for one that was reworded.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from kbsource.sentences import sentence_spans
from kbsource.wikitext.functions.dates import date_forms
from kbsource.wikitext.functions.numbers import spell_number
from mapping.search.text import normal_form
from mapping.search.tokens import Token, Tokeniser, stop_words

# Separators stand between digits alone; a minus sign is one only where no word or number is before it.
_NUMBER = re.compile(r"(?<![\w\d])[-\u2212](?=\d)|\d+(?:[.,'’٫٬\u00a0\u2009\u202f]\d+)*")
_GROUP = re.compile(r"[.,'’٬\u00a0\u2009\u202f](\d{3})(?!\d)")
_DECIMAL = str.maketrans(",٫", "..")
_GEORGIAN = range(0x10D0, 0x1100)
"""Letters with capitals in Unicode, which nobody writes names with."""


class PageWords(NamedTuple):
    """How a page writes words, by their normal forms."""

    plain: frozenset[str]  #: written without a capital at least once
    inner: frozenset[str]  #: written with a capital behind the first word of a sentence
    title: frozenset[str]  #: of the title

    @classmethod
    def of(cls, title: str, texts: Iterable[str], tokeniser: Tokeniser) -> PageWords:
        """Those of a page.

        Args:
            texts: of its body, without headings and title.
        """
        plain: set[str] = set()
        inner: set[str] = set()
        for text in texts:
            for start, end in sentence_spans(text):
                sentence = text[start:end]
                for number, token in enumerate(tokeniser.tokens(sentence)):
                    if not has_capital(sentence, token):
                        plain.add(token.form)
                    elif number:
                        inner.add(token.form)
        return cls(frozenset(plain), frozenset(inner), frozenset(tokeniser.forms(title)))


def has_other_details(evidence: str, text: str, words: PageWords, tokeniser: Tokeniser, lang: str) -> bool:
    """Whether a text lacks numbers, dates or names of an evidence, or has others in their places.

    What the text has besides changes nothing that the evidence says.
    """
    if Counter(numbers_of(evidence)) - Counter(numbers_of(text)):
        return True
    old, new = (_Words(one, words, tokeniser, lang) for one in (evidence, text))
    if old.forms != new.forms and old.without_details() == new.without_details():
        return True  # they changed places
    for operation in Levenshtein.opcodes(old.forms, new.forms):
        if operation.tag in ("delete", "replace"):
            lost = range(operation.src_start, operation.src_end)
            instead = range(operation.dest_start, operation.dest_end)
            if old.loses(lost, instead, new):
                return True
    return False


def numbers_of(text: str) -> list[str]:
    """The numbers of a text, in digits of ASCII, without what separates groups of three.

    >>> numbers_of("1,200 of ١٢٣٤٥ at −5.5 °C, 1999–2003")
    ['1200', '12345', '-5.5', '1999', '2003']
    """
    found: list[str] = []
    sign = ""
    for match in _NUMBER.finditer(text):
        if not match[0][-1].isdigit():
            sign = "-"
            continue
        found.append(sign + _GROUP.sub(r"\1", _in_ascii(match[0])).translate(_DECIMAL))
        sign = ""
    return found


def _in_ascii(text: str) -> str:
    """A text with its digits in ASCII."""
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def has_capital(text: str, token: Token) -> bool:
    """Whether a token of a text has a capital letter."""
    return any(char.isupper() for char in text[token.start : token.end])


class _Words:
    """The words of a text, and what they are."""

    def __init__(self, text: str, words: PageWords, tokeniser: Tokeniser, lang: str) -> None:
        tokens = tokeniser.tokens(text)
        starts = {start for start, _ in sentence_spans(text)}
        self.forms = [_in_ascii(token.form) for token in tokens]
        self._words, self._calendar, self._stops = words, _calendar_words(lang), stop_words(lang)
        self._number_words = _number_words(lang)
        self._capital = [has_capital(text, token) for token in tokens]
        self._first = [not text[: token.start].strip() or token.start in starts for token in tokens]
        self._counts = Counter(self.forms)

    def is_detail(self, number: int) -> bool:
        """Whether a word is a number, a date or a name, whatever is in its place elsewhere."""
        form = self.forms[number]
        if form in self._calendar or any(char.isdigit() for char in form):
            return True
        return self._is_like_name(number) and (not self._first[number] or form in self._words.inner)

    def _is_like_name(self, number: int) -> bool:
        form = self.forms[number]
        return self._capital[number] and form not in self._words.plain and form not in self._stops

    def without_details(self) -> list[str]:
        return [form for number, form in enumerate(self.forms) if not self.is_detail(number)]

    def loses(self, lost: range, instead: range, new: _Words) -> bool:
        """Whether words of this text that another one does not have in that place are details that it lacks.

        Args:
            instead: the words of the other text that are in their place, none or some.
        """
        gone = [number for number in lost if self._counts[self.forms[number]] > new._counts[self.forms[number]]]
        come = [number for number in instead if new._counts[new.forms[number]] > self._counts[new.forms[number]]]
        has_names = any(new._is_like_name(number) for number in come)
        for number in gone:
            if self.is_detail(number) and (has_names or self.forms[number] not in self._words.title):
                return True
            if has_names and self._is_like_name(number):
                return True
        counted = {self._number_words[form] for number in gone if (form := self.forms[number]) in self._number_words}
        if counted:
            come_forms = [new.forms[number] for number in come]
            others = {self._number_words.get(form, form) for form in come_forms}
            if any(other.isdigit() for other in others - counted):
                return True
        return any(map(self._has_no_case, gone)) and any(map(new._has_no_case, come))

    def _has_no_case(self, number: int) -> bool:
        form = self.forms[number]
        letters = [char for char in form if char.isalpha()]
        return (
            bool(letters)
            and form not in self._stops
            and all(unicodedata.category(char) == "Lo" or ord(char) in _GEORGIAN for char in letters)
        )


@cache
def _calendar_words(lang: str) -> frozenset[str]:
    """Names of months and days of the week of a language that have no other meaning with a capital."""
    forms = date_forms(lang)
    named = (*forms.months, *forms.alone, *forms.days)
    return frozenset(normal_form(word) for name in named for word in name.split() if not word.isdecimal())


@cache
def _number_words(lang: str) -> dict[str, str]:
    """The words of English numbers and their digits; none for other languages."""
    if lang not in ("en", "simple"):
        return {}
    values = (*range(20), *range(20, 100, 10), 100, 1000, 1_000_000, 1_000_000_000)
    return {normal_form(spell_number(value).split()[-1]): str(value) for value in values}
