"""Converts the dates in citations to ISO 8601. A text that can be read in two ways has no date.

``functions.dates.read_date``, which formats dates for templates, makes a best guess instead.
"""

from __future__ import annotations

import datetime
import re
from functools import cache, lru_cache

from kbsource.wikitext.functions.dates import date_forms
from kbsource.wikitext.identifiers import citation_rules

_LONGEST = 80  # characters; no date is longer
_YEAR_FIRST = re.compile(r"(\d{4})(?:-(\d\d)|([-\u2010/.])(\d{1,2})\3(\d{1,2})(?:[T ].*)?)")
_CJK = re.compile(r"(\d{4})\s?年(?:\s?(\d{1,2})\s?月(?:\s?(\d{1,2})\s?[日号號])?)?")
_NUMBERS = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
_LETTERED = re.compile(r"\d{4}[a-z]")  # such as 2004b, the second cited work of 2004
_TOKEN = re.compile(r"\d+|[^\W\d_]+|[^\w\s.,()'’]")
_SPANS = frozenset("–—-/−")
_MONTH_FIRST = frozenset(("en", "simple", "ja", "zh"))  # 3.4.2020 may be in March; elsewhere it is in April


@cache
def _names(lang: str) -> tuple[dict[str, int], frozenset[str], tuple[tuple[str, str], ...]]:
    """Returns three things for reading dates in a language and in English: the number of each month by its full or
    abbreviated name, without ambiguous abbreviations; other words that dates contain; and replacements for names that
    contain spaces, longest first.
    """
    words = citation_rules()["dates"]
    months: dict[str, int] = {}
    for code in dict.fromkeys(("en", lang)):
        forms = date_forms(code)
        cuts = [name.casefold()[:3] for name in forms.alone]
        months.update((cut, number) for number, cut in enumerate(cuts, 1) if cut.isalpha() and cuts.count(cut) == 1)
        for names in (forms.short, forms.alone, forms.months):
            months.update((name.casefold().strip("."), number) for number, name in enumerate(names, 1))
        months.update(words["months"].get(code, {}))
    days = (day.casefold().strip(".") for code in ("en", lang) for day in date_forms(code).days)
    blank = sorted((name for name in months if " " in name), key=len, reverse=True)
    joined = tuple((name, f" {date_forms('en').months[months[name] - 1].casefold()} ") for name in blank)
    return months, frozenset((*words["words"].split(), *days)), joined


def sure_date(text: str, lang: str) -> str | None:
    """Returns the ISO date of a text in a language: year, month or day; None if it is ambiguous.

    For a range of dates or a season, the result is the shortest year, month or day that contains all of it. A date in
    numbers is read only if it is unambiguous.

    >>> sure_date("16 July 1969", "en"), sure_date("May–June 2004", "en"), sure_date("03/04/2020", "en")
    ('1969-07-16', '2004', None)
    """
    return _sure_date(text.strip(), lang) if len(text) <= _LONGEST else None


@lru_cache(maxsize=1 << 14)
def _sure_date(text: str, lang: str) -> str | None:
    if found := _YEAR_FIRST.fullmatch(text):
        if not found[2]:
            return _iso(found[1], int(found[4]), int(found[5])) if int(found[4]) and int(found[5]) else None
        is_month = 0 < int(found[2]) <= int(found[1][2:])  # 2004-05 may mean the years 2004 and 2005
        return _iso(found[1], int(found[2]), 0) if is_month else None
    if cjk := _CJK.fullmatch(text):
        return _iso(cjk[1], int(cjk[2] or 0), int(cjk[3] or 0))
    if numbers := _NUMBERS.fullmatch(text):
        first, second, year = int(numbers[1]), int(numbers[3]), numbers[4]
        if (numbers[2] == "." and lang not in _MONTH_FIRST) or first > 12 or first == second:
            return _iso(year, second, first)
        return _iso(year, first, second) if second > 12 else None
    return _in_words(text.casefold(), lang)


def _in_words(text: str, lang: str) -> str | None:
    """Returns the date in a text of words and numbers; None if one of them is not known to be part of a date."""
    if _LETTERED.fullmatch(text):
        text = text[:-1]
    known_months, known_words, joined = _names(lang)
    for name, month in joined:
        text = text.replace(name, month)
    years: list[str] = []
    months: list[int] = []
    days: list[int] = []
    is_span = False
    for token in _TOKEN.findall(text):
        if token.isdecimal():
            if len(token) == 4:
                years.append(token)
            elif len(token) <= 2:
                days.append(int(token))
            else:
                return None
        elif token in known_months:
            months.append(known_months[token])
        elif token in _SPANS:
            is_span = True
        elif token not in known_words:
            return None
    if len(years) != 1 or (max(len(months), len(days)) > 1 and not is_span) or (days and not months):
        return None
    if len(months) != 1:
        return _iso(years[0], 0, 0)
    return _iso(years[0], months[0], days[0] if len(days) == 1 and not is_span else 0)


def _iso(year: str, month: int, day: int) -> str | None:
    """Returns a date in ISO form, without the parts that are 0; None if there is no such date."""
    try:
        datetime.date(int(year), month or 1, day or 1)
    except ValueError:
        return None
    return f"{int(year):04d}" + (f"-{month:02d}" if month else "") + (f"-{day:02d}" if day else "")
