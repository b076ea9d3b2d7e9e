"""How dates and ages are written in a language."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any, NamedTuple

from kbsource.wikitext.functions.measures.numbers import plain_minus

_LONGEST = 80  # characters; no date is longer
_YEAR = re.compile(r"(?<!\d)(\d{3,4})(?!\d)")
_DAY = re.compile(r"(?<!\d)(\d{1,2})(?!\d)")
_WORD = re.compile(r"[^\W\d_]+")
_ISO = re.compile(r"(-?\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?", re.DOTALL)
# What a language without a form of its own has.
_NAMED = {"form": "{day} {month} {year}", "month_form": "{month} {year}", "age": " ({age})", "aged": " ({age})"}
_NUMBERS = {**_NAMED, "form": "{year}-{number:02d}-{day:0>2}", "month_form": "{year}-{number:02d}"}
_SLASHES = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{3,4})")


class Date(NamedTuple):
    """A date; month and day are 0 when unknown, years before Christ are negative."""

    year: int
    month: int = 0
    day: int = 0


@dataclass(frozen=True, slots=True)
class DateForms:
    """The words of one language; see rules/dates.toml and rules/calendar_names.toml.

    Attributes:
        months, alone, short: names of the months within a date, by themselves, and cut; none where they are not known.
        days, short_days: of the days of the week from Sunday on, likewise.
    """

    months: tuple[str, ...]
    alone: tuple[str, ...]
    short: tuple[str, ...]
    days: tuple[str, ...]
    short_days: tuple[str, ...]
    form: str
    month_form: str
    year_form: str
    first_day: str
    age: str
    aged: str
    years: tuple[str, ...]


@cache
def _calendars() -> tuple[dict[str, Any], dict[str, Any]]:
    """Gives forms of dates by language, and names of months and days."""
    folder = resources.files("kbsource.wikitext")
    forms, names = (
        tomllib.loads(folder.joinpath(f"rules/{name}.toml").read_text("utf-8")) for name in ("dates", "calendar_names")
    )
    return forms, names


@cache
def date_forms(lang: str) -> DateForms:
    """Gives the words of a language; where it has no data dates are written in numbers."""
    base = "en" if lang == "simple" else lang.split("-", 1)[0]
    forms, names = (data.get(lang) or data.get(base) or {} for data in _calendars())
    entry = {**(_NAMED if names else _NUMBERS), **names, **forms}
    months = tuple(entry.get("months", ()))
    alone = tuple(entry.get("alone", months))
    days = tuple(entry.get("days", ()))
    return DateForms(
        months=months,
        alone=alone,
        short=tuple(entry.get("short", alone)),
        days=days,
        short_days=tuple(entry.get("short_days", days)),
        form=entry["form"],
        month_form=entry["month_form"],
        year_form=entry.get("year_form", "{year}"),
        first_day=entry.get("first_day", "1"),
        age=entry["age"],
        aged=entry["aged"],
        years=tuple(entry.get("years", ())),
    )


@cache
def _month_numbers(lang: str) -> dict[str, int]:
    """Gives the number of a month by its name or its first three letters, in the language and in English."""
    numbers: dict[str, int] = {}
    for code in ("en", lang):
        forms = date_forms(code)
        for names in (forms.months, forms.alone):
            for number, name in enumerate(names, 1):
                folded = name.casefold()
                numbers[folded] = number
                if folded.isalpha() and len(folded) > 3:
                    numbers.setdefault(folded[:3], number)
    numbers["sept"] = 9
    return numbers


def read_month(text: str, lang: str) -> int:
    """Gives the number of a month written as a number or a name; 0 when it is none."""
    text = text.strip().rstrip(".")
    if text.isdecimal() and text.isascii():
        number = int(text) if len(text) <= 2 else 0
        return number if number <= 12 else 0
    return _month_numbers(lang).get(text.casefold(), 0)


def read_date(text: str, lang: str) -> Date | None:
    """Gives the date that a free text names (``16 July 1969``, ``July 16, 1969, 13:32``, ``1969-07-16``), or None."""
    return _read_date(text, lang) if len(text) <= _LONGEST else None


@lru_cache(maxsize=1 << 13)
def _read_date(text: str, lang: str) -> Date | None:
    text = plain_minus(text).strip()
    iso = _ISO.match(text)
    if iso:
        return checked_date(int(iso.group(1)), int(iso.group(2)), int(iso.group(3)))
    slashes = _SLASHES.match(text)
    if slashes:
        return checked_date(int(slashes.group(3)), int(slashes.group(2)), int(slashes.group(1)))
    year = _YEAR.search(text)
    if year is None:
        return None
    rest = text[: year.start()] + " " + text[year.end() :].partition(":")[0]
    month = next((number for word in _WORD.findall(rest) if (number := read_month(word, lang))), 0)
    day = _DAY.search(text[: year.start()]) or _DAY.search(rest)
    return checked_date(int(year.group(1)), month, int(day.group(1)) if day and month else 0)


def checked_date(year: int, month: int, day: int) -> Date:
    """Gives the date with month and day only as far as they can be right."""
    if not 1 <= month <= 12:
        return Date(year)
    return Date(year, month, day if 1 <= day <= 31 else 0)


def write_date(date: Date, lang: str, *, is_day_first: bool = False) -> str:
    """Gives a date in the form of the language; in English with the day first where asked for."""
    forms = date_forms(lang)
    year = str(date.year) if date.year > 0 else f"{-date.year} BC"
    if not date.month:
        return forms.year_form.format(year=year)
    if not date.day:
        month = forms.alone[date.month - 1] if forms.alone else ""
        return forms.month_form.format(month=month, number=date.month, year=year)
    day = forms.first_day if date.day == 1 else str(date.day)
    form = "{day} {month} {year}" if is_day_first and lang == "en" else forms.form
    month = forms.months[date.month - 1] if forms.months else ""
    return form.format(day=day, month=month, number=date.month, year=year)


def write_age(age: str, lang: str, *, is_dead: bool = False) -> str:
    """Gives the age as it stands behind a date, in brackets with the space before them."""
    forms = date_forms(lang)
    years = ""
    if forms.years:
        number = int(age.rpartition("–")[2]) if age.rpartition("–")[2].isdecimal() else 0
        tens, ones = number // 10 % 10, number % 10
        years = forms.years[0 if ones == 1 and tens != 1 else 1 if 2 <= ones <= 4 and tens != 1 else 2]
    return (forms.aged if is_dead else forms.age).format(age=age, years=years)


def age_between(start: Date, end: Date) -> str:
    """Gives full years between two dates: ``26``, or ``25–26`` where month or day is unknown."""
    years = end.year - start.year
    if start.year < 0 < end.year:
        years -= 1
    if not start.month or not end.month:
        return f"{years - 1}–{years}" if years > 0 else str(years)
    if start.month != end.month:
        return str(years - (start.month > end.month))
    if not start.day or not end.day:
        return f"{years - 1}–{years}"
    return str(years - (start.day > end.day))
