"""Date, age and time templates. "Now" is the time of the revision: the same dump always gives the same text."""

from __future__ import annotations

import datetime

from kbsource.wikitext.functions.arguments import (
    PageFacts,
    Template,
    argument,
    filled,
    is_true,
    padded,
    shown,
    stripped,
)
from kbsource.wikitext.functions.measures.numbers import NBSP, group_digits, plain_minus
from kbsource.wikitext.functions.times.calendar_forms import (
    Date,
    age_between,
    checked_date,
    date_forms,
    read_date,
    read_month,
    write_age,
    write_date,
)

_SLOTS = {"ymd": (0, 1, 2), "dmy": (2, 1, 0), "mdy": (2, 0, 1)}


def _take(values: list[str], lang: str, order: str) -> Date | None:
    """Gives the date of up to three arguments in a given order; None when the year is no number."""
    slots = _SLOTS[order]
    padded = values[:3] + [""] * (3 - len(values[:3]))
    year_text = plain_minus(padded[slots[0]])
    if not year_text.removeprefix("-").isdecimal() or len(year_text) > 6:
        return None
    month = read_month(padded[slots[1]], lang)
    day = padded[slots[2]]
    return checked_date(int(year_text), month, int(day) if day.isdecimal() and len(day) <= 2 else 0)


def _is_day_first(template: Template, default: bool = False) -> bool:
    named = template.named
    if "df" in named:
        return named["df"].lower() in ("y", "yes", "dmy", "true", "1", "d")
    if "mf" in named:
        return False
    return named.get("format", "").lower() == "dmy" or default


def date(template: Template, page: PageFacts, *, order: str = "ymd", ago: bool = False, time: bool = True) -> str:
    """Gives ``July 16, 1969`` from year, month and day; with hours and minutes where given.

    Args:
        order: order of the arguments.
        ago: adds ``; 23 years ago``, counted to the revision.
        time: whether the arguments after the day are a time of day.
    """
    values = stripped(template)
    found = _take(values, page.lang, order)
    if found is None:
        text = shown(template)
        parsed = read_date(text, page.lang) if len(filled(template)) == 1 else None
        return text if not ago or parsed is None else text + _ago(parsed, page)
    text = write_date(found, page.lang, is_day_first=_is_day_first(template))
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
        return f"; {count}{NBSP}{word}{'' if count == 1 else 's'} ago" if count >= 0 else ""
    return f"; {years}{NBSP}year{'' if years == '1' else 's'} ago"


def text_date(template: Template, page: PageFacts, *, ago: bool = False, age: bool = False) -> str:
    """Gives a date written out in the first argument as it is: ``{{birth-date and age|2 January 1990}}``."""
    text = argument(template, 1)
    parsed = read_date(text, page.lang)
    second = argument(template, 2)
    zone = template.named.get("timezone", "")
    if zone and is_true(zone):
        text += " UTC" if zone in ("y", "yes", "Y") else f" {zone}"
    if age and parsed is not None and page.date is not None:
        years = age_between(parsed, Date(*page.date))
        return (second or text) + write_age(years, page.lang)
    if ago and parsed is not None:
        return text + _ago(parsed, page)
    return second or text


def death_text_and_age(template: Template, page: PageFacts) -> str:
    """Gives ``{{death-date and age|date of death|date of birth}}``."""
    text = argument(template, 1)
    end, start = read_date(text, page.lang), read_date(argument(template, 2), page.lang)
    return text + write_age(age_between(start, end), page.lang, is_dead=True) if end and start else shown(template)


def birth_and_age(template: Template, page: PageFacts, *, order: str = "ymd") -> str:
    """Gives ``January 2, 1990 (age 26)``, the age at the time of the revision."""
    found = _take(stripped(template), page.lang, order)
    if found is None:
        return text_date(template, page, age=True)
    text = write_date(found, page.lang, is_day_first=_is_day_first(template))
    if page.date is None:
        return text
    return text + write_age(age_between(found, Date(*page.date)), page.lang)


def death_and_age(template: Template, page: PageFacts, *, order: str = "ymd", birth_first: bool = False) -> str:
    """Gives ``April 15, 1865 (aged 56)`` from date of death and date of birth."""
    values = stripped(template)
    first, second = _take(values[:3], page.lang, order), _take(values[3:6], page.lang, order)
    end, start = (second, first) if birth_first else (first, second)
    if end is None:
        return shown(template)
    text = write_date(end, page.lang, is_day_first=_is_day_first(template))
    return text + write_age(age_between(start, end), page.lang, is_dead=True) if start is not None else text


def death_year_and_age(template: Template, page: PageFacts) -> str:
    """Gives ``1999 (aged 48–49)`` from year of death and year of birth."""
    values = filled(template)
    if len(values) < 2 or not (values[0].isdecimal() and values[1].isdecimal()):
        return shown(template)
    month = read_month(values[2], page.lang) if len(values) > 2 else 0
    text = write_date(Date(int(values[0]), month), page.lang)
    return text + write_age(age_between(Date(int(values[1])), Date(int(values[0]))), page.lang, is_dead=True)


def birth_year_and_age(template: Template, page: PageFacts) -> str:
    """Gives ``1950 (age 65–66)``."""
    year = argument(template, 1)
    if not year.isdecimal() or page.date is None:
        return shown(template)
    month = read_month(argument(template, 2), page.lang)
    born = Date(int(year), month)
    return write_date(born, page.lang) + write_age(age_between(born, Date(*page.date)), page.lang)


def age(template: Template, page: PageFacts, *, order: str = "ymd", after: str = "") -> str:
    """Gives full years from one date to another, or to the revision."""
    start, end = _two_dates(template, page, order)
    return age_between(start, end) + after if start is not None and end is not None else ""


def _two_dates(template: Template, page: PageFacts, order: str) -> tuple[Date | None, Date | None]:
    values = stripped(template)
    start = _take(values[:3], page.lang, order)
    if start is None:
        texts = filled(template)
        start = read_date(texts[0], page.lang) if texts else None
        end = read_date(texts[1], page.lang) if len(texts) > 1 else None
    else:
        end = _take(values[3:6], page.lang, order)
    if end is None and page.date is not None:
        end = Date(*page.date)
    return start, end


def age_in_days(template: Template, page: PageFacts, *, unit: str = "") -> str:
    """Gives the number of days between two dates, or from one to the revision."""
    start, end = _two_dates(template, page, "ymd")
    if start is None or end is None or not (start.day and end.day):
        return ""
    days = group_digits(str(abs(_days_between(start, end))), page.lang)
    return f"{days}{NBSP}{unit}" if unit else days


def age_in_years_and_days(template: Template, page: PageFacts) -> str:
    """Gives ``26 years, 48 days``."""
    start, end = _two_dates(template, page, "ymd")
    if start is None or end is None or not (start.day and end.day) or end < start:
        return ""
    years = int(age_between(start, end))
    days = _days_between(Date(start.year + years, start.month, start.day), end)
    words = f"{years} year{'' if years == 1 else 's'}, " if years else ""
    return f"{words}{days} day{'' if days == 1 else 's'}"


def age_in_months_and_days(template: Template, page: PageFacts) -> str:
    """Gives ``8 years, 4 months and 15 days``."""
    start, end = _two_dates(template, page, "ymd")
    if start is None or end is None or not (start.day and end.day) or end < start:
        return ""
    months = (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    counts = (
        (months // 12, "year"),
        (months % 12, "month"),
        (_days_between(Date(year, month + 1, start.day), end), "day"),
    )
    words = [f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count]
    return " and ".join(words) if len(words) < 3 else f"{words[0]}, {words[1]} and {words[2]}"


def _days_between(start: Date, end: Date) -> int:
    try:
        first = datetime.date(start.year, start.month, min(start.day, 28)).toordinal() + max(start.day - 28, 0)
        return datetime.date(end.year, end.month, end.day).toordinal() - first
    except ValueError:
        return 0


def as_of(template: Template, page: PageFacts) -> str:
    """Gives ``As of 8 June 2013``. Source: https://en.wikipedia.org/wiki/Template:As_of"""
    if template.named.get("alt"):
        return template.named["alt"]
    values = stripped(template)
    found = _take(values, page.lang, "ymd")
    if found is None:
        when = shown(template)
    else:
        is_american = template.named.get("df", "").lower() in ("us", "mdy")
        when = write_date(found, page.lang, is_day_first=not is_american)
    if is_true(template.named.get("bare", "")):
        return when
    word = "since" if is_true(template.named.get("since", "")) else "as of"
    if not is_true(template.named.get("lc", "")):
        word = word[0].upper() + word[1:]
    if when:
        return f"{word} {when}"
    return word


def sortable_date(template: Template, page: PageFacts) -> str:
    """Gives ``{{dts|1777|12|16}}``: month first, as the template's own default is, unless ``format=dmy``."""
    values = stripped(template)
    found = _take(values, page.lang, "ymd")
    if found is None:
        return argument(template, 1)
    form = template.named.get("format", "").lower()
    if found.month and not found.day and form in ("md", "dm"):
        months = date_forms(page.lang).months
        return months[found.month - 1] if months else str(found.month)
    return write_date(found, page.lang, is_day_first=form in ("dmy", "dm"))


def old_style_date(template: Template, page: PageFacts, *, form: str = "{new} [O.S. {old}] {year}") -> str:
    """Gives ``3 May [O.S. 22 April] 1469``."""
    new, year, old = padded(template, 3)[:3]
    return form.format(new=new, old=old, year=year).strip() if old else f"{new} {year}".strip()


def old_style_date_with_year(template: Template, page: PageFacts) -> str:
    """Gives ``11 February [O.S. 31 January 1731] 1732`` and its kin: the last argument is the whole old date."""
    values = padded(template, 3)
    return f"{values[0]} {values[1]} [O.S. {values[2]}]".strip() if values[2] else f"{values[0]} {values[1]}".strip()


def film_dates(template: Template, page: PageFacts) -> str:
    """Gives release dates with their places: ``July 1, 2009 (London); July 8, 2009 (United States)``."""
    values = stripped(template)
    texts: list[str] = []
    for start in range(0, len(values), 4):
        found = _take(values[start : start + 3], page.lang, "ymd")
        if found is None:
            texts.extend(value for value in values[start : start + 4] if value)
            continue
        place = values[start + 3] if start + 3 < len(values) else ""
        text = write_date(found, page.lang, is_day_first=_is_day_first(template))
        texts.append(f"{text} ({place})" if place else text)
    return "; ".join(texts)


def formatted_date(template: Template, page: PageFacts) -> str:
    """Gives ``{{date|2001-02-03|mdy}}`` and ``{{#dateformat:…}}``: a date in the form that is named."""
    values = filled(template)
    if not values:
        return ""
    parsed = read_date(values[0], page.lang)
    if parsed is None or not parsed.month or len(values) > 2:
        return shown(template)
    form = values[1].lower() if len(values) > 1 else "dmy"
    if form == "iso":
        return f"{parsed.year:04d}-{parsed.month:02d}-{parsed.day:02d}" if parsed.day else values[0]
    return write_date(parsed, page.lang, is_day_first=form != "mdy")


def parts_of_date(template: Template, page: PageFacts, *, age: bool = False) -> str:
    """Gives ``{{date|4|mars|1790}}`` and ``{{date|4 mars 1790}}`` as written; a topic behind the year is left out.

    With ``age`` the age follows where the use asks for it (``âge=oui``).
    """
    age = age and is_true(argument(template, 0, "âge", "age"))
    values = stripped(template)
    if values and not values[0]:
        values = values[1:]
    texts = [value for value in values if value]
    if not texts:
        return ""
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
