"""Dates and ages in the form of a language."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from kbsource.numerals import read_int
from kbsource.wikitext.functions.arguments import PageFacts, Template, is_true, read_rules, read_section
from kbsource.wikitext.functions.numbers import NBSP, group_digits, plain_minus

_LONGEST = 80  # in characters; no date is longer
_YEAR = re.compile(r"(?<!\d)(\d{3,4})(?!\d)")
_LONGEST_YEAR = 5  # in digits
_DAY = re.compile(r"(?<!\d)(\d{1,2})(?!\d)")
_WORD = re.compile(r"[^\W\d_]+")
_ISO = re.compile(r"(-?\d{1,4})-(\d{1,2})-(\d{1,2})(?:[T ].*)?", re.DOTALL)
# Forms for languages without their own.
_NAMED = {"form": "{day} {month} {year}", "month_form": "{month} {year}", "age": " ({age})", "aged": " ({age})"}
_NUMBERS = {**_NAMED, "form": "{year}-{number:02d}-{day:0>2}", "month_form": "{year}-{number:02d}"}
_SLASHES = re.compile(r"(\d{1,2})[./](\d{1,2})[./](\d{3,4})")


class Date(NamedTuple):
    """A date; month and day are 0 if unknown, years BC are negative."""

    year: int
    month: int = 0
    day: int = 0


@dataclass(frozen=True, slots=True)
class DateForms:
    """The words and forms of a language; see rules/dates.toml and rules/calendar_names.toml."""

    #: ``months``, ``alone``, ``short``: names of the months within a date, outside a date, and abbreviated; empty if
    #: unknown
    months: tuple[str, ...]
    alone: tuple[str, ...]
    short: tuple[str, ...]
    #: ``days``, ``short_days``: names of the weekdays from Sunday on; empty if unknown
    days: tuple[str, ...]
    short_days: tuple[str, ...]
    form: str
    month_form: str
    year_form: str
    first_day: str
    before_christ: str
    age: str
    aged: str
    years: tuple[str, ...]


@cache
def date_forms(lang: str) -> DateForms:
    """Returns the words and forms of a language; if there is no data for it, dates are written in numbers."""
    base = "en" if lang == "simple" else lang.split("-", 1)[0]
    forms = read_rules("dates").get(lang) or read_rules("dates").get(base) or {}
    names = read_section("calendar_names", lang) or read_section("calendar_names", base)
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
        before_christ=entry.get("before_christ", "{year} BC"),
        age=entry["age"],
        aged=entry["aged"],
        years=tuple(entry.get("years", ())),
    )


@cache
def _month_numbers(lang: str) -> dict[str, int]:
    """Returns the number of a month by its name or its first three letters, in the language and in English."""
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
    """Returns the number of a month written as a number or a name; 0 if it is neither."""
    text = text.strip().rstrip(".")
    if text.isdecimal() and text.isascii():
        number = read_int(text, 2) or 0
        return number if number <= 12 else 0
    return _month_numbers(lang).get(text.casefold(), 0)


def read_date(text: str, lang: str) -> Date | None:
    """Returns the date that a free text names (``16 July 1969``, ``July 16, 1969, 13:32``, ``1969-07-16``), or None."""
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
    """Returns the date, leaving out an impossible month or day."""
    if not 1 <= month <= 12:
        return Date(year)
    return Date(year, month, day if 1 <= day <= 31 else 0)


def write_date(date: Date, lang: str, *, is_day_first: bool = False) -> str:
    """Returns a date in the form of the language; in English with the day first if requested."""
    forms = date_forms(lang)
    year = str(date.year) if date.year > 0 else forms.before_christ.format(year=-date.year)
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
    """Returns the age as written after a date, in brackets with the space before them."""
    forms = date_forms(lang)
    years = ""
    if forms.years:
        number = read_int(age.rpartition("–")[2]) or 0
        tens, ones = number // 10 % 10, number % 10
        years = forms.years[0 if ones == 1 and tens != 1 else 1 if 2 <= ones <= 4 and tens != 1 else 2]
    return (forms.aged if is_dead else forms.age).format(age=age, years=years)


def age_between(start: Date, end: Date) -> str:
    """Returns the full years between two dates: ``26``, or ``25–26`` if month or day is unknown."""
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


_SLOTS = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}


def _take(values: list[str], lang: str, order: str) -> Date | None:
    """Returns the date of up to three arguments in a given order; None if the year is not a number. Four digits
    in the place of the day are the year: the order is then the reverse.
    """
    three = [*values[:3], "", "", ""][:3]
    if order != "mdy" and {len(three[0]), len(three[2])} in ({1, 4}, {2, 4}) and (three[0] + three[2]).isdecimal():
        order = "ymd" if len(three[0]) == 4 else "dmy"
    year, month_text, day = (three[slot] for slot in _SLOTS[order])
    number = read_int(plain_minus(year), _LONGEST_YEAR)
    if number is None:
        return None
    month = read_month(month_text, lang)
    return checked_date(number, month, max(read_int(day, 2) or 0, 0))


def _written(found: Date, template: Template, page: PageFacts) -> str:
    """Returns the date in the form of the language; in English with the day first if the use requests it."""
    named = template.named
    if "df" in named:
        is_day_first = named["df"].lower() in ("y", "yes", "dmy", "true", "1", "d")
    else:
        is_day_first = "mf" not in named and named.get("format", "").lower() == "dmy"
    return write_date(found, page.lang, is_day_first=is_day_first)


def date(template: Template, page: PageFacts, *, order: str = "ymd", ago: bool = False, time: bool = True) -> str:
    """Returns ``July 16, 1969`` from year, month and day in the given order; with hours and minutes if ``time`` allows
    them.

    ``ago`` adds ``; 23 years ago``, counted to the revision.
    """
    values = template.stripped()
    found = _take(values, page.lang, order)
    if found is None:
        text = template.shown()
        parsed = read_date(text, page.lang) if len(template.filled()) == 1 else None
        return text if not ago or parsed is None else text + _ago(parsed, page)
    text = _written(found, template, page)
    if time and found.day and len(values) > 4 and values[3].isdecimal() and values[4].isdecimal():
        seconds = f":{values[5].zfill(2)}" if len(values) > 5 and values[5].isdecimal() else ""
        zone = ""
        if len(values) > 6 and values[6]:
            zone = " (UTC)" if values[6] == "Z" else f" (UTC{values[6]})"
        text = f"{values[3].zfill(2)}:{values[4].zfill(2)}{seconds}, {text}{zone}"
    return text + _ago(found, page) if ago else text


def _ago(start: Date, page: PageFacts) -> str:
    now = page.date
    if now is None or page.lang != "en":
        return ""
    end = Date(*now)
    years = age_between(start, end)
    if years.startswith("-"):
        return ""
    if years == "0" and start.day:
        days = _days_between(start, end)
        months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
        count, word = (months, "month") if months else (days, "day")
        return f"; {_counted(count, word, NBSP)} ago" if count >= 0 else ""
    return f"; {years}{NBSP}year{'' if years == '1' else 's'} ago"


def text_date(template: Template, page: PageFacts, *, age: bool = False) -> str:
    """Returns a date written out in the first argument as it is: ``{{birth-date and age|2 January 1990}}``."""
    text = template.argument(1)
    parsed = read_date(text, page.lang)
    second = template.argument(2)
    zone = template.named.get("timezone", "")
    if zone and is_true(zone):
        text += " UTC" if zone in ("y", "yes", "Y") else f" {zone}"
    if age and parsed is not None and page.date is not None:
        years = age_between(parsed, Date(*page.date))
        return (second or text) + write_age(years, page.lang)
    return second or text


def death_text_and_age(template: Template, page: PageFacts) -> str:
    """Returns the date of death with the age: ``{{death-date and age|date of death|date of birth}}``."""
    text = template.argument(1)
    end, start = read_date(text, page.lang), read_date(template.argument(2), page.lang)
    return text + write_age(age_between(start, end), page.lang, is_dead=True) if end and start else template.shown()


def birth_and_age(template: Template, page: PageFacts, *, order: str = "ymd") -> str:
    """Returns ``January 2, 1990 (age 26)``, with the age at the time of the revision."""
    found = _take(template.stripped(), page.lang, order)
    if found is None:
        return text_date(template, page, age=True)
    return _written(found, template, page) + _age_behind(found, page)


def death_and_age(template: Template, page: PageFacts, *, order: str = "ymd", birth_first: bool = False) -> str:
    """Returns ``April 15, 1865 (aged 56)`` from date of death and date of birth."""
    values = template.stripped()
    first, second = _take(values[:3], page.lang, order), _take(values[3:6], page.lang, order)
    end, start = (second, first) if birth_first else (first, second)
    if end is None:
        return death_text_and_age(template, page)
    text = _written(end, template, page)
    return text + write_age(age_between(start, end), page.lang, is_dead=True) if start is not None else text


def death_year_and_age(template: Template, page: PageFacts) -> str:
    """Returns ``1999 (aged 48–49)`` from year of death and year of birth."""
    values = template.filled()
    years = [read_int(value, _LONGEST_YEAR) for value in values[:2]]
    if len(years) < 2 or years[0] is None or years[1] is None:
        return template.shown()
    month = read_month(values[2], page.lang) if len(values) > 2 else 0
    died, born = Date(years[0], month), Date(years[1])
    return write_date(died, page.lang) + write_age(age_between(born, Date(died.year)), page.lang, is_dead=True)


def birth_year_and_age(template: Template, page: PageFacts) -> str:
    """Returns ``1950 (age 65–66)``."""
    year = read_int(template.argument(1), _LONGEST_YEAR)
    if year is None or page.date is None:
        return template.shown()
    month = read_month(template.argument(2), page.lang)
    born = Date(year, month)
    return write_date(born, page.lang) + _age_behind(born, page)


def age(template: Template, page: PageFacts, *, order: str = "ymd", after: str = "") -> str:
    """Returns the full years from one date to another, or to the revision."""
    start, end = _two_dates(template, page, order)
    return age_between(start, end) + after if start is not None and end is not None else ""


def _two_dates(template: Template, page: PageFacts, order: str) -> tuple[Date | None, Date | None]:
    values = template.stripped()
    start = _take(values[:3], page.lang, order)
    if start is None:
        texts = template.filled()
        start = read_date(texts[0], page.lang) if texts else None
        end = read_date(texts[1], page.lang) if len(texts) > 1 else None
    else:
        end = _take(values[3:6], page.lang, order)
    if end is None and page.date is not None:
        end = Date(*page.date)
    return start, end


def _two_days(template: Template, page: PageFacts) -> tuple[Date, Date] | None:
    start, end = _two_dates(template, page, "ymd")
    return (start, end) if start is not None and end is not None and start.day and end.day else None


def age_in_days(template: Template, page: PageFacts) -> str:
    """Returns the number of days between two dates, or from one to the revision."""
    found = _two_days(template, page)
    return "" if found is None else group_digits(str(abs(_days_between(*found))), page.lang)


def age_in_years_and_days(template: Template, page: PageFacts) -> str:
    """Returns ``26 years, 48 days``."""
    found = _two_days(template, page)
    if found is None or found[1] < found[0]:
        return ""
    start, end = found
    years = int(age_between(start, end))
    days = _days_between(Date(start.year + years, start.month, start.day), end)
    words = f"{_counted(years, 'year')}, " if years else ""
    return words + _counted(days, "day")


def age_in_months_and_days(template: Template, page: PageFacts) -> str:
    """Returns ``8 years, 4 months and 15 days``."""
    found = _two_days(template, page)
    if found is None or found[1] < found[0]:
        return ""
    start, end = found
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    counts = (
        (months // 12, "year"),
        (months % 12, "month"),
        (_days_between(Date(year, month + 1, start.day), end), "day"),
    )
    words = [_counted(count, word) for count, word in counts if count]
    return " and ".join(words) if len(words) < 3 else f"{words[0]}, {words[1]} and {words[2]}"


def _counted(count: int, word: str, space: str = " ") -> str:
    return f"{count}{space}{word}{'' if count == 1 else 's'}"


def _days_between(start: Date, end: Date) -> int:
    try:
        first = datetime.date(start.year, start.month, min(start.day, 28)).toordinal() + max(start.day - 28, 0)
        return datetime.date(end.year, end.month, end.day).toordinal() - first
    except ValueError:
        return 0


def as_of(template: Template, page: PageFacts) -> str:
    """Returns ``As of 8 June 2013``. Source: https://en.wikipedia.org/wiki/Template:As_of"""
    if template.named.get("alt"):
        return template.named["alt"]
    values = template.stripped()
    found = _take(values, page.lang, "ymd")
    if found is None:
        when = template.shown()
    else:
        is_american = template.named.get("df", "").lower() in ("us", "mdy")
        when = write_date(found, page.lang, is_day_first=not is_american)
    if is_true(template.named.get("bare", "")):
        return when
    word = "since" if is_true(template.named.get("since", "")) else "as of"
    if not is_true(template.named.get("lc", "")):
        word = word[0].upper() + word[1:]
    return f"{word} {when}" if when else word


def sortable_date(template: Template, page: PageFacts) -> str:
    """Returns ``{{dts|1777|12|16}}`` with the month first, which is the template's default, unless ``format=dmy``."""
    values = template.stripped()
    found = _take(values, page.lang, "ymd")
    if found is None:
        return template.argument(1)
    form = template.named.get("format", "").lower()
    if found.month and not found.day and form in ("md", "dm"):
        months = date_forms(page.lang).months
        return months[found.month - 1] if months else str(found.month)
    return write_date(found, page.lang, is_day_first=form in ("dmy", "dm"))


def old_style_date(template: Template, page: PageFacts, *, form: str = "{new} [O.S. {old}] {year}") -> str:
    """Returns ``3 May [O.S. 22 April] 1469``."""
    new, year, old = template.padded(3)[:3]
    return form.format(new=new, old=old, year=year).strip() if old else f"{new} {year}".strip()


def film_dates(template: Template, page: PageFacts) -> str:
    """Returns release dates with their places: ``July 1, 2009 (London); July 8, 2009 (United States)``."""
    values = template.stripped()
    texts: list[str] = []
    for start in range(0, len(values), 4):
        found = _take(values[start : start + 3], page.lang, "ymd")
        if found is None:
            texts.extend(value for value in values[start : start + 4] if value)
            continue
        place = values[start + 3] if start + 3 < len(values) else ""
        text = _written(found, template, page)
        texts.append(f"{text} ({place})" if place else text)
    return "; ".join(texts)


def formatted_date(template: Template, page: PageFacts) -> str:
    """Returns a date in the named form: ``{{date|2001-02-03|mdy}}``."""
    values = template.filled()
    if not values:
        return ""
    parsed = read_date(values[0], page.lang)
    if parsed is None or not parsed.month or len(values) > 2:
        return template.shown()
    form = values[1].lower() if len(values) > 1 else "dmy"
    if form == "iso":
        return f"{parsed.year:04d}-{parsed.month:02d}-{parsed.day:02d}" if parsed.day else values[0]
    return write_date(parsed, page.lang, is_day_first=form != "mdy")


_MONTH_AND_DAY = r"(?P<month>[^\W\d_]+\.?)[ _](?P<day>\d{1,2})"
_DAY_AND_MONTH = r"(?P<day>\d{1,2})[ _](?P<month>[^\W\d_]+\.?)"
_BEHIND = r"(?: *, *| +)"
_YEAR_OF_ERA = r"(?P<year>\d{1,4}(?:[ _]BC)?)"
# Forms of {{#formatdate:}} by the form of the input: pattern and output.
_WRITTEN_FORMS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (name, re.compile(pattern, re.IGNORECASE), shown)
    for name, pattern, shown in (
        ("dmy", _DAY_AND_MONTH + _BEHIND + _YEAR_OF_ERA, "{day} {month} {year}"),
        ("ydm", _YEAR_OF_ERA + _BEHIND + _DAY_AND_MONTH, "{year}, {day} {month}"),
        ("mdy", _MONTH_AND_DAY + _BEHIND + _YEAR_OF_ERA, "{month} {day}, {year}"),
        ("ymd", _YEAR_OF_ERA + _BEHIND + _MONTH_AND_DAY, "{year} {month} {day}"),
        ("dm", _DAY_AND_MONTH, "{day} {month}"),
        ("md", _MONTH_AND_DAY, "{month} {day}"),
        ("iso 8601", r"(?P<year>-?\d{4})-(?P<month>\d{2})-(?P<day>\d{2})", ""),
    )
)
_SHOWN_FORMS = {name: shown for name, _, shown in _WRITTEN_FORMS}


def preferred_date(template: Template, page: PageFacts) -> str:
    """Returns a date in the named form, ``{{#formatdate:2009-03-24|mdy}}``; without a form, the written one is tidied.

    Source: DateFormatter of MediaWiki 1.39.
    """
    text, wanted = template.padded(2)[:2]
    for written, pattern, _ in _WRITTEN_FORMS:
        found = pattern.fullmatch(text)
        month = read_month(found["month"], page.lang) if found else 0
        names = date_forms(page.lang).alone
        if found is None or not month or not names:
            continue
        form = wanted.lower() if wanted.lower() in ("dmy", "mdy", "ymd", "iso 8601") else written
        if written in ("dm", "md"):
            form = {"dmy": "dm", "mdy": "md"}.get(form, written)
        year = found.groupdict().get("year", "").replace("_", " ")
        number = 1 - int(year[:-3]) if year.endswith("BC") else int(year or 0)
        if form == "iso 8601":
            return (
                text
                if written == form
                else f"{'-' * (number < 0)}{abs(number):04d}-{month:02d}-{int(found['day']):02d}"
            )
        if written == "iso 8601":
            year = str(number) if number > 0 else f"{1 - number} BC"
        return _SHOWN_FORMS[form].format(day=int(found["day"]), month=names[month - 1], year=year)
    return text


def parts_of_date(template: Template, page: PageFacts, *, age: bool = False) -> str:
    """Returns ``{{date|4|mars|1790}}`` and ``{{date|4 mars 1790}}`` as written; a topic after the year is left out.

    With ``age``, the age follows if the use requests it (``âge=oui``).
    """
    age = age and is_true(template.argument(0, "âge", "age"))
    values = template.stripped()
    if values and not values[0]:
        values = values[1:]
    texts = [value for value in values if value]
    if not texts:
        return ""
    if len(parts := texts[0].split()) == 3 and all(map(str.isdecimal, parts)):  # {{date|17 11 1994}}
        texts[:1] = parts
    parsed = read_date(texts[0], page.lang)
    if parsed is not None and (not texts[0].isdecimal() or len(texts) == 1):
        text = write_date(parsed, page.lang) if parsed.day and texts[0][-1:].isdecimal() else texts[0]
        return text + _age_behind(parsed, page) if age else text
    taken = texts[:3]
    for position, value in enumerate(taken):
        if value.isdecimal() and len(value) > 2:
            taken = taken[: position + 1]
            break
    found = _take(taken, page.lang, "dmy") if len(taken) == 3 else None
    if found is not None and found.day:
        text = write_date(found, page.lang)
        return text + _age_behind(found, page) if age else text
    if taken[0] == "1":
        taken[0] = date_forms(page.lang).first_day
    return " ".join(taken)


def _age_behind(born: Date, page: PageFacts) -> str:
    return write_age(age_between(born, Date(*page.date)), page.lang) if page.date is not None else ""
