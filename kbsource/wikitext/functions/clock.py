"""``{{#time:}}`` and the variables of "now", which is the time of the revision.

Source: https://www.mediawiki.org/wiki/Help:Extension:ParserFunctions#.23time
"""

from __future__ import annotations

import datetime
import re

from kbsource.wikitext.functions.arguments import Moment, PageFacts, Template
from kbsource.wikitext.functions.dates import Date, date_forms, read_date, write_date

_CODE = re.compile(r'"[^"]*"|\\.|x[nNrg]|.', re.DOTALL)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_LONGEST = 120  # characters; no date with its steps is longer
_HOURS = re.compile(r"(?<![\d:])(\d{1,2}):(\d\d)(?::(\d\d))?(?![\d:])\s*([ap]\.?m\b)?", re.IGNORECASE)
_ZONE = re.compile(r"(?:(?<=\d)t?|\b)\s*(?:utc|z)?\s*$")  # of a day or an hour, and the t between them
_STEP = re.compile(
    r"([+-])\s*(\d{1,6})\s*(second|sec|minute|min|hour|day|week|fortnight|month|year)s?\b", re.IGNORECASE
)
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
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")


def time(template: Template, page: PageFacts) -> str:
    """``{{#time:j F Y|1969-07-16}}``; without a date, of the revision; what is no date stays as it is.

    A date whose month or day is unknown is given in the usual form of the language where the format asks for it.
    """
    values = template.stripped()
    written = values[1] if len(values) > 1 else ""
    if "BC" in written:
        return written
    found = read_moment(written, page)
    if found is None:
        return written
    date, moment = found
    codes = _codes(date, moment, page)
    pieces: list[str] = []
    for code in _CODE.findall(values[0] if values else ""):
        if len(code) > 1 and code not in codes:  # of those with x the others ask for plain numbers
            pieces.append(code.strip('"').removeprefix("\\") if code[0] != "x" else "")
        elif code not in codes:
            pieces.append(code)
        elif codes[code] is None:
            return write_date(date, page.lang)
        else:
            pieces.append(str(codes[code]))
    return "".join(pieces).strip()


def read_moment(written: str, page: Moment) -> tuple[Date, datetime.datetime] | None:
    """The date that is meant, and the moment, of which month and day may be made up; None where there is none.

    ``1969-07-16 13:32``, ``16 July 1969 + 3 days``, ``now``, ``@0``; empty for the time of the revision.
    """
    if len(written) > _LONGEST:
        return None
    text = written.casefold().strip()
    if unix := _UNIX.fullmatch(text):
        moment = _EPOCH + datetime.timedelta(seconds=int(unix[1]))
        return Date(moment.year, moment.month, moment.day), moment
    if stamp := _STAMP.fullmatch(text):
        text = "{}-{}-{} {}:{}:{}".format(*stamp.groups())
    steps = _STEP.findall(text)
    text = _STEP.sub("", text)
    hours = _HOURS.search(text)
    text = _ZONE.sub("", _HOURS.sub("", text)).strip(" ,")
    if text in _TODAY or not text:
        if page.date is None:
            return None
        date = Date(*page.date)
        steps.append(("+", _TODAY.get(text, 0), "day"))
        if not hours and text in ("", "now"):
            hours = _HOURS.search(page.timestamp[11:19])
    else:
        found = read_date(text, page.lang)
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
            moment = _step(moment, int(f"{sign}{count}"), unit.lower())
    except (ValueError, OverflowError):
        return None
    return (Date(moment.year, moment.month, moment.day) if steps and date.month else date), moment


def _step(moment: datetime.datetime, count: int, unit: str) -> datetime.datetime:
    """The moment so many units later; a day that the month does not have runs over, as in PHP."""
    if unit in ("month", "year"):
        months = moment.year * 12 + moment.month - 1 + count * (12 if unit == "year" else 1)
        first = moment.replace(year=months // 12, month=months % 12 + 1, day=1)
        return first + datetime.timedelta(days=moment.day - 1)
    seconds = {"sec": 1, "second": 1, "min": 60, "minute": 60, "hour": 3600, "week": 604800, "fortnight": 1209600}
    return moment + datetime.timedelta(seconds=count * seconds.get(unit, 86400))


def _codes(date: Date, moment: datetime.datetime, page: PageFacts) -> dict[str, str | int | None]:
    """What the letters of a format stand for; None for what is not known of the date."""
    forms = date_forms(page.lang)
    weekday = moment.isoweekday() % 7 if date.day else None
    iso_year, iso_week, _ = moment.isocalendar()
    is_leap = date.year % 4 == 0 and (date.year % 100 != 0 or date.year % 400 == 0)
    next_month = (moment.replace(day=28) + datetime.timedelta(days=4)).replace(day=1)
    days_in_month = (next_month - datetime.timedelta(days=1)).day if moment.year < 9999 else 31
    return {
        "Y": date.year,
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
        "c": moment.isoformat() if date.day else None,
    }


def _name(names: tuple[str, ...], number: int) -> str | None:
    return names[number] if names and number >= 0 else None


def part_of_now(template: Template, page: PageFacts, *, part: str) -> str:
    """A part of the time of the revision: ``{{CURRENTYEAR}}``, ``{{CURRENTMONTHNAME}}``.

    Of a month whose name is not known it is the number.
    """
    now = page.date
    if now is None:
        return ""
    year, month, day = now
    if part in _FORMATS:
        found = read_moment("", page)
        codes = _codes(*found, page) if found else {}
        value = codes.get(_FORMATS[part])
        return str((month if part.startswith("month") else "") if value is None else value)
    values = {
        "year": str(year),
        "day": str(day),
        "day2": f"{day:02d}",
        "month": f"{month:02d}",
        "month1": str(month),
        "hour": page.timestamp[11:13],
        "timestamp": "".join(filter(str.isdecimal, page.timestamp)),
    }
    return values.get(part, page.timestamp[11:16])
