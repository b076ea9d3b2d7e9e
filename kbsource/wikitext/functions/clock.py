"""``{{#time:}}`` and the variables of "now", which is the time of the revision.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions#.23time and sprintfDate of MediaWiki 1.39
"""

from __future__ import annotations

import datetime
import email.utils
import re
from functools import cache
from typing import Any

from kbsource.wikitext.functions.arguments import PageFacts, Template, read_rules
from kbsource.wikitext.functions.conditions import ERROR
from kbsource.wikitext.functions.dates import Date, date_forms, read_date, write_date
from kbsource.wikitext.functions.numbers import local_digits, roman_numeral

_CODE = re.compile(r'"[^"]*"|\\.|x(?:[kot]Y|.)|.', re.DOTALL)
_WORDS = frozenset({"F", "M", "xg", "D", "l", "a", "A", "e", "T", "O", "P", "c", "r"})  # codes that produce no number
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONGEST = 120  # in characters; no date with its steps is longer
_HOURS = re.compile(r"(?<![\d:])(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,]\d{1,9})?)?(?![\d:])\s*([ap]\.?m\b)?", re.IGNORECASE)
_ZONE = re.compile(
    r"(?:(?<=\d)t?|\b)\s*(?:utc|gmt|z)?\s*$"
)  # a time zone after a day or an hour, with the t between them
_OFFSET = re.compile(r"\s*(?:utc|gmt)?\s*([+-])(\d{1,2})(?::?(\d\d))?(?![\d:])")
_NAMED_ZONE = re.compile(r"(?<=[\s\d])([a-z]{3,4}|[a-z_]{1,20}(?:/[a-z_+-]{1,30}){1,2})$")
# Offsets from UTC in hours. Source: timelib of PHP, as of 2024-06.
_ZONES = {"wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "ist": 5.5, "jst": 9,
          "kst": 9, "aest": 10, "aedt": 11, "nst": -3.5, "ast": -4, "adt": -3, "est": -5, "edt": -4, "cst": -6,
          "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "hst": -10}  # fmt: skip
# Eras by their first days; before 1873 Japan did not use today's calendar.
_NENGO = (((2019, 5, 1), "令和"), ((1989, 1, 8), "平成"), ((1926, 12, 25), "昭和"), ((1912, 7, 30), "大正"),
          ((1873, 1, 1), "明治"))  # fmt: skip
_NENGO_BEFORE = {"明治": 1867}  # the year before the first year of the era, if it began before 1873
_UNIT = r"(second|sec|minute|min|hour|day|week|fortnight|month|year)s?\b"
_STEP = re.compile(rf"([+-])\s*(\d{{1,6}})\s*{_UNIT}")
_AGO = re.compile(rf"\b(\d{{1,6}})\s*{_UNIT}\s+ago\b")
_NEXT = re.compile(rf"\b(next|last|previous)\s+{_UNIT}")
_FORMATS = {
    "month_name": "F",
    "month_genitive": "xg",
    "month_abbreviation": "M",
    "weekday": "w",
    "day_name": "l",
    "week": "W",
}
_TODAY = {"now": 0, "today": 0, "midnight": 0, "tomorrow": 1, "yesterday": -1}
_UNIX = re.compile(r"@(-?\d{1,11})")
_FIRST_SECOND = -62_135_596_800  # first second of the year 1
# Year, month and day, or month, day and year. Source: Date Formats of PHP.
_SLASHES = re.compile(r"(?<![\d/])(?:(\d{4})/(\d{1,2})/(\d{1,2})|(\d{1,2})/(\d{1,2})/(\d{4}))(?![\d/])")
_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")


def time(template: Template, page: PageFacts) -> str:
    """Returns ``{{#time:j F Y|1969-07-16|de}}``; without a date, the time of the revision; an error if the date is
    invalid.

    If the format needs a month or day that is unknown, the date is written in the language's usual form.
    """
    written_form, written, lang = template.padded(3)[:3]
    return write_moment(written_form, written, page, lang or page.lang)


def time_in_form(template: Template, page: PageFacts) -> str:
    """Returns the time of ``{{#timef:1969-07-16|date}}`` in the language's usual form: date and time, or only one of
    them.
    """
    written, kind, lang = template.padded(3)[:3]
    form = _forms_of_moments().get(lang or page.lang, {}).get(kind or "both") or _ENGLISH_FORMS.get(kind or "both")
    return ERROR if form is None else write_moment(form, written, page, lang or page.lang)


_ENGLISH_FORMS = {"time": "H:i", "date": "j F Y", "both": "H:i, j F Y", "pretty": "j F"}


@cache
def _forms_of_moments() -> dict[str, dict[str, str]]:
    return {lang: row for row in read_rules("moments")["form"] for lang in row["langs"].split()}


def write_moment(form: str, written: str, page: PageFacts, lang: str) -> str:
    """Returns a time in a format of ``{{#time:}}`` codes, in the words of a language."""
    if "BC" in written:
        return written
    found = read_moment(written, page)
    if found is None:
        return ERROR if written else ""
    date, moment = found
    codes = _codes(date, moment, lang)
    pieces: list[str] = []
    is_raw = is_raw_next = is_roman = False
    for code in _CODE.findall(form):
        if code == "xN":
            is_raw = not is_raw
        elif code == "xn":
            is_raw_next = True
        elif code == "xr":
            is_roman = True
        elif code == "xx":
            pieces.append("x")
        elif code not in codes:
            if len(code) == 1 or code[0] != "x":  # other codes with x are for calendars not supported here
                pieces.append(code.strip('"').removeprefix("\\") if len(code) > 1 else code)
        elif (value := codes[code]) is None:
            return write_date(date, lang)
        elif code in _WORDS:
            pieces.append(str(value))
        else:
            text = roman_numeral(int(value)) if is_roman and str(value).isdecimal() else str(value)
            pieces.append(text if is_raw or is_raw_next else local_digits(text, lang))
            is_raw_next = is_roman = False
    return "".join(pieces).strip()


def read_moment(written: str, page: PageFacts) -> tuple[Date, datetime.datetime] | None:
    """Returns the date and the moment that a text names; None if the text names no date.

    If the month or the day is unknown in the date, the moment has a filled-in value. Examples of texts: ``1969-07-16
    13:32``, ``16 July 1969 + 3 days``, ``next month``, ``@0``; an empty text is the time of the revision.
    """
    if len(written) > _LONGEST:
        return None
    text = written.casefold().strip()
    if unix := _UNIX.fullmatch(text):
        seconds = int(unix[1])
        if seconds < _FIRST_SECOND:
            return None
        moment = _EPOCH + datetime.timedelta(seconds=seconds)
        return Date(moment.year, moment.month, moment.day), moment
    if stamp := _STAMP.fullmatch(text):
        text = "{}-{}-{} {}:{}:{}".format(*stamp.groups())
    text = _NEXT.sub(lambda found: f"{'+' if found[1] == 'next' else '-'}1 {found[2]}", _AGO.sub(r"-\1 \2", text))
    text = _SLASHES.sub(
        lambda found: "{}-{}-{}".format(*(found.group(1, 2, 3) if found[1] else found.group(6, 4, 5))), text
    )
    steps = _STEP.findall(text)
    text = _STEP.sub("", text)
    hours = _HOURS.search(text)
    text, hours_from_utc, zone = _cut_zone(text, hours)
    text = _ZONE.sub("", _HOURS.sub("", text)).strip(" ,")
    if text in _TODAY or not text:
        if page.date is None:
            return None
        date = Date(*page.date)
        days = _TODAY.get(text, 0)
        steps.append(("-" if days < 0 else "+", abs(days), "day"))
        if not hours and text in ("", "now"):
            hours = _HOURS.search(page.timestamp[11:19])
    else:
        month = _MONTH.fullmatch(text)
        found = Date(int(month[1]), int(month[2]), 0) if month else read_date(text, page.lang)
        if found is None:
            return None
        date = found
    if not 0 < date.year < 9999:
        return (date, _EPOCH) if not steps else None
    try:
        moment = datetime.datetime(date.year, date.month or 1, date.day or 1, tzinfo=datetime.UTC)
        if hours:
            hour = int(hours[1]) % 12 + 12 * (hours[4][0] in "pP") if hours[4] else int(hours[1])
            moment = moment.replace(hour=hour, minute=int(hours[2]), second=int(hours[3] or 0))
        for sign, count, unit in steps:
            moment = _step(moment, int(f"{sign}{count}"), unit)
        moment -= datetime.timedelta(hours=hours_from_utc)
        if zone is not None:
            moment = zone.localize(moment.replace(tzinfo=None)).astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None
    is_moved = bool(steps or hours_from_utc or zone) and bool(date.month)
    return (Date(moment.year, moment.month, moment.day) if is_moved else date), moment


def _cut_zone(text: str, hours: re.Match[str] | None) -> tuple[str, float, Any]:
    """Returns a text without its time zone, the zone's offset from UTC in hours, and the zone if it is named by a
    place.
    """
    if hours and (offset := _OFFSET.match(text, hours.end())):
        distance = int(offset[2]) + int(offset[3] or 0) / 60
        return text[: offset.start()] + text[offset.end() :], distance if offset[1] == "+" else -distance, None
    found = _NAMED_ZONE.search(text)
    if found is None:
        return text, 0, None
    if "/" in found[1]:
        zone = _zone_of_place(found[1])
        return (text, 0, None) if zone is None else (text[: found.start()], 0, zone)
    return (text[: found.start()], _ZONES[found[1]], None) if found[1] in _ZONES else (text, 0, None)


@cache
def _zone_of_place(name: str) -> Any:
    """Returns the time zone of ``europe/paris``, or None."""
    import pytz  # has its own history of all zones; the system's may differ

    try:
        return pytz.timezone(name)
    except pytz.UnknownTimeZoneError:
        return None


def _step(moment: datetime.datetime, count: int, unit: str) -> datetime.datetime:
    """Returns the time ``count`` units later; a day that the month does not have overflows into the next month, as
    in PHP.
    """
    if unit in ("month", "year"):
        months = moment.year * 12 + moment.month - 1 + count * (12 if unit == "year" else 1)
        first = moment.replace(year=months // 12, month=months % 12 + 1, day=1)
        return first + datetime.timedelta(days=moment.day - 1)
    seconds = {"sec": 1, "second": 1, "min": 60, "minute": 60, "hour": 3600, "week": 604800, "fortnight": 1209600}
    return moment + datetime.timedelta(seconds=count * seconds.get(unit, 86400))


def _codes(date: Date, moment: datetime.datetime, lang: str) -> dict[str, str | int | None]:
    """Returns the values of the codes of a format; None for an unknown part of the date."""
    forms = date_forms(lang)
    weekday = moment.isoweekday() % 7 if date.day else None
    iso_year, iso_week, _ = moment.isocalendar()
    is_leap = date.year % 4 == 0 and (date.year % 100 != 0 or date.year % 400 == 0)
    next_month = (moment.replace(day=28) + datetime.timedelta(days=4)).replace(day=1)
    days_in_month = (next_month - datetime.timedelta(days=1)).day if moment.year < 9999 else 31
    return {
        "Y": f"{date.year:04d}",
        "xkY": date.year + 543 - (1912 <= date.year <= 1940 and 0 < date.month < 4),
        "xoY": date.year - 1911,
        "xtY": _nengo(date),
        "o": iso_year if date.day else date.year,
        "y": f"{date.year % 100:02d}",
        "n": date.month or None,
        "m": f"{date.month:02d}" if date.month else None,
        "F": _name(forms.alone, date.month - 1),
        "M": _name(forms.short, date.month - 1),
        "xg": _name(forms.months, date.month - 1),
        "j": date.day or None,
        "d": f"{date.day:02d}" if date.day else None,
        "D": None if weekday is None else _name(forms.short_days, weekday),
        "l": None if weekday is None else _name(forms.days, weekday),
        "w": weekday,
        "N": None if weekday is None else weekday or 7,
        "z": moment.timetuple().tm_yday - 1 if date.day else None,
        "W": f"{iso_week:02d}" if date.day else None,
        "t": days_in_month if date.month else None,
        "L": int(is_leap),
        "H": f"{moment.hour:02d}",
        "G": moment.hour,
        "h": f"{moment.hour % 12 or 12:02d}",
        "g": moment.hour % 12 or 12,
        "i": f"{moment.minute:02d}",
        "s": f"{moment.second:02d}",
        "a": "pm" if moment.hour > 11 else "am",
        "A": "PM" if moment.hour > 11 else "AM",
        "U": (moment - _EPOCH) // datetime.timedelta(seconds=1),
        "e": "UTC",
        "T": "UTC",
        "O": "+0000",
        "P": "+00:00",
        "Z": 0,
        "I": 0,
        "c": moment.isoformat() if date.day else None,
        "r": email.utils.format_datetime(moment) if date.day else None,
    }


def _nengo(date: Date) -> str:
    """Returns the year in the Japanese era system, ``昭和44``; earlier years as they are."""
    for first, era in _NENGO:
        if date >= first:
            year = date.year - _NENGO_BEFORE.get(era, first[0] - 1)
            return f"{era}{'元' if year == 1 else year}"
    return str(date.year)


def _name(names: tuple[str, ...], number: int) -> str | None:
    return names[number] if names and number >= 0 else None


def part_of_now(template: Template, page: PageFacts, *, part: str) -> str:
    """Returns a part of the time of the revision: ``{{CURRENTYEAR}}``, ``{{CURRENTMONTHNAME}}``.

    If the name of a month is unknown, its number is returned.
    """
    now = page.date
    if now is None:
        return ""
    year, month, day = now
    if part == "timestamp":
        return "".join(filter(str.isdecimal, page.timestamp))
    if part in _FORMATS:
        found = read_moment("", page)
        codes = _codes(*found, page.lang) if found else {}
        value = codes.get(_FORMATS[part])
        text = str((month if part.startswith("month") else "") if value is None else value)
        return local_digits(text.lstrip("0") if part == "week" else text, page.lang)
    values = {
        "year": str(year),
        "day": str(day),
        "day2": f"{day:02d}",
        "month": f"{month:02d}",
        "month1": str(month),
        "hour": page.timestamp[11:13],
    }
    return local_digits(values.get(part, page.timestamp[11:16]), page.lang)


def part_of_revision(template: Template, page: PageFacts, *, part: str) -> str:
    """Returns a part of the time of the page's revision; empty for other pages, whose revision is unknown."""
    return part_of_now(template, page, part=part) if template.argument(1).replace("_", " ") == page.title else ""
