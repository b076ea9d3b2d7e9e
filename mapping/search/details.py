"""The numbers, dates and names in a piece of evidence, and whether a similar text still has them.

A *detail* is a number (a run of digits of any script, with separators and minus sign), a month or day of the week in
the language of the wiki, or a name. A name is a word with a capital letter that never occurs without a capital in the
page. The first word of a sentence is a name only if the page capitalises it inside a sentence too, or if another such
word replaces it. A number in English words is a detail if another number replaces it: *two* instead of *three*. The
title of the page names its subject, so a text may omit the words of the title, but not replace them by other names.

Most scripts of Asia have no capitals, so nothing distinguishes names from other words there. In these scripts every
replaced word (in scripts without spaces, every replaced letter) counts as a detail, except for stop words. A rephrased
text may therefore be reported as having other details, but a text with other details is never reported as rephrased.
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

# A separator has digits on both sides; a minus sign counts only if no word or number precedes it.
_NUMBER = re.compile(r"(?<![\w\d])[-\u2212](?=\d)|\d+(?:[.,'’٫٬\u00a0\u2009\u202f]\d+)*")
_GROUP = re.compile(r"[.,'’٬\u00a0\u2009\u202f](\d{3})(?!\d)")
_DECIMAL = str.maketrans(",٫", "..")
_GEORGIAN = range(0x10D0, 0x1100)
"""Letters that have capitals in Unicode, although names are not capitalised in this script."""


class PageWords(NamedTuple):
    """Whether a page writes a word with a capital. All words are in normal form."""

    plain: frozenset[str]  #: written without a capital at least once
    inner: frozenset[str]  #: written with a capital after the first word of a sentence
    title: frozenset[str]  #: words of the title

    @classmethod
    def of(cls, title: str, texts: Iterable[str], tokeniser: Tokeniser) -> PageWords:
        """Collects the words of a page.

        Args:
            texts: the texts of its body, without headings and title.
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
    """Returns whether a text lacks numbers, dates or names of a piece of evidence, or has others in their place.

    Additional details in the text do not count, because they do not contradict the evidence.
    """
    if Counter(numbers_of(evidence)) - Counter(numbers_of(text)):
        return True
    old, new = (_Words(side, words, tokeniser, lang) for side in (evidence, text))
    if old.forms != new.forms and old.without_details() == new.without_details():
        return True  # the same details, but in another order
    for operation in Levenshtein.opcodes(old.forms, new.forms):
        if operation.tag in ("delete", "replace"):
            lost = range(operation.src_start, operation.src_end)
            instead = range(operation.dest_start, operation.dest_end)
            if old.loses(lost, instead, new):
                return True
    return False


def numbers_of(text: str) -> list[str]:
    """Returns the numbers in a text, in ASCII digits, without separators between groups of three.

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
    """Returns a text with its digits in ASCII."""
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def has_capital(text: str, token: Token) -> bool:
    """Returns whether a token has a capital letter."""
    return any(char.isupper() for char in text[token.start : token.end])


class _Words:
    """The words of a text, with their properties."""

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
        """Returns whether a word is a detail whatever replaces it: a number, part of a date, or a name."""
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
        """Returns whether details are among the words that another text lacks at a position.

        Args:
            instead: the words that the other text has at this position; may be empty.
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
    """Returns a language's names of months and weekdays that have no other meaning when capitalised."""
    forms = date_forms(lang)
    named = (*forms.months, *forms.alone, *forms.days)
    return frozenset(normal_form(word) for name in named for word in name.split() if not word.isdecimal())


@cache
def _number_words(lang: str) -> dict[str, str]:
    """Returns the English words for numbers, with their digits; empty for other languages."""
    if lang not in ("en", "simple"):
        return {}
    values = (*range(20), *range(20, 100, 10), 100, 1000, 1_000_000, 1_000_000_000)
    return {normal_form(spell_number(value).split()[-1]): str(value) for value in values}
