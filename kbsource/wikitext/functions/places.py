"""Countries of flags, coordinates, ships: links that replace the pictures that templates draw."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from kbsource.wikitext.functions.arguments import (
    PageFacts,
    Template,
    is_true,
    read_rules,
    read_section,
    table,
    wikitext_link,
)
from kbsource.wikitext.functions.numbers import MINUS, NBSP, parse_number, plain_minus, raise_text
from kbsource.wikitext.markers import APOSTROPHE


@cache
def _countries() -> tuple[dict[str, str], dict[str, str]]:
    """Returns English article titles by two- or three-letter code, and the shorter names that are shown."""
    data: dict[str, dict[str, str]] = read_rules("countries")
    return {**data["short"], **data["codes"], **data["other"]}, data["shown"]


@cache
def _country_names(lang: str) -> dict[str, str]:
    """Returns names in another language by English article title."""
    return {_countries()[0][code]: name for code, name in read_section("country_names", lang).items()}


def country_name(code: str, lang: str) -> str:
    """Returns the name of a country in a language from its ISO, IOC or FIFA code; the code if it is unknown."""
    return _country_names(lang).get(_countries()[0].get(code, ""), code)


def country_codes() -> frozenset[str]:
    """Returns the three-letter codes that are names of flag templates: ``GBR``. ``EUR`` is excluded, because it is
    usually the currency.
    """
    return frozenset(code for code in _countries()[0] if len(code) >= 3) - {"EUR"}


def _country(code: str) -> tuple[str, str]:
    """Returns article title and shown name from a code or a name."""
    titles, shown_as = _countries()
    title = titles.get(code, code)
    return title, shown_as.get(title, title)


def flag(template: Template, page: PageFacts) -> str:
    """Returns the country of ``{{flag|France}}`` or ``{{flagcountry|FRA}}`` as a link; the picture is not text."""
    name = template.argument(1)
    if not name or "[[" in name:
        return name
    if page.lang not in ("en", "simple"):
        known = country_name(name, page.lang)
        return wikitext_link(name) if known == name else known
    title, label = _country(name)
    return wikitext_link(title, template.named.get("name", "") or label)


def flag_text(template: Template, page: PageFacts, *, position: int = 2) -> str:
    """Returns the text next to a flag, ``{{flagu|France}}``; ``{{flagdeco|France}} …`` shows no text."""
    return template.argument(position) or _country(template.argument(1))[1]


def country_by_name(template: Template, page: PageFacts) -> str | None:
    """Returns the country named by the template's own name: ``{{GBR}}``, ``{{BE-VLAG}}``.

    In languages other than English, it is only the name, without a link; ``{{DEU|#}}`` is only the flag.
    """
    name = template.name
    if page.lang not in ("en", "simple"):
        label = template.argument(1)
        return None if label == "#" else label or country_name(name, page.lang)
    title, label = _country(name)
    return wikitext_link(title, template.named.get("name", "") or label)


def region_flag(template: Template, page: PageFacts) -> str:
    """Returns the place next to the flag of ``{{BE-vlag|Antwerpen|geenlink}}``, as a link unless the use forbids it."""
    values = template.filled()
    if not values:
        return ""
    return values[0] if len(values) > 1 else wikitext_link(values[0])


def team(template: Template, page: PageFacts, *, after: str = "") -> str:
    """Returns a national team's link: ``{{fb|FRA}}`` -> ``[[France national football team|France]]``."""
    title, label = _country(template.argument(1))
    if page.lang not in ("en", "simple"):
        return title
    return wikitext_link(f"{title}{after}", label if after.endswith("team") else "") if title else ""


def coordinates(template: Template, page: PageFacts) -> str | None:
    """Returns ``48°51′N 2°21′E`` for ``{{coord|…}}``; None if they are shown only next to the title.

    Source: https://en.wikipedia.org/wiki/Template:Coord
    """
    display = template.named.get("display", "").lower().replace(" ", "")
    if display in ("title", "t"):
        return None
    values = [value for value in template.stripped() if ":" not in value]
    return angles(values, page.lang, template.named.get("format", ""))


def angles(values: list[str], lang: str, form: str = "") -> str:
    """Returns latitude and longitude as text, from the values of ``{{coord}}``: decimal, or degrees with letters. The
    letters of directions depend on the language: ``13°24′O`` is east in German.
    """
    values = [value for value in values if value]
    letters = [position for position, value in enumerate(values) if value.upper() in ("N", "S", "E", "W", "O")]
    if len(letters) >= 2:
        first, second = letters[0], letters[1]
        sides = values[: first + 1], values[first + 1 : second + 1]
        return _joined_sides(_degrees(sides[0], lang), _degrees(sides[1], lang), lang)
    if len(values) < 2:
        return " ".join(values)
    latitude, longitude = plain_minus(values[0]), plain_minus(values[1])
    write = _from_decimal if form == "dms" else _signed
    return _joined_sides(write(latitude, "N", "S", lang), write(longitude, "E", "W", lang), lang)


def _joined_sides(latitude: str, longitude: str, lang: str) -> str:
    return f"{latitude}{_compass(lang).get('between', ' ')}{longitude}"


def _compass(lang: str) -> dict[str, str]:
    """Returns how a language writes coordinates; empty if it does so as English does."""
    found: dict[str, str] = table("compass").get(lang.partition("-")[0], {})
    return found


def _direction(letter: str, lang: str) -> str:
    compass = _compass(lang)
    return compass.get("gap", compass.get("before", "")) + compass.get(letter, letter)


def _degrees(values: list[str], lang: str) -> str:
    gap = _compass(lang).get("gap", "")
    marks = ("°", "′", "″")
    letter = values[-1].upper()
    if letter == "O":  # as written: east in German, west in Romance languages
        letter = "E" if _compass(lang).get("E") == "O" else "W"
    text = gap.join(f"{value}{mark}" for value, mark in zip(values[:-1], marks, strict=False))
    return text + _direction(letter, lang)


def _signed(text: str, positive: str, negative: str, lang: str) -> str:
    is_negative = text.startswith("-")
    number = text[1:] if is_negative else text
    return f"{number}°{_direction(negative if is_negative else positive, lang)}"


def _from_decimal(text: str, positive: str, negative: str, lang: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    if not abs(value) <= 360:
        return text.replace("-", MINUS)
    seconds = round(abs(value) * 3600)
    letter = negative if value < 0 else positive
    zeros = _compass(lang).get("zeros", "2")  # minutes have at least so many digits
    return _degrees(
        [str(seconds // 3600), *(f"{n:0{zeros}}" for n in (seconds // 60 % 60, seconds % 60)), letter], lang
    )


def named_coordinates(template: Template, page: PageFacts) -> str | None:
    """Returns the coordinates of ``{{Coordinate|NS=…|EW=…|text=…}}``; None if the use shows none in the text."""
    named = template.named
    if named.get("text", "") in ("", "-", "0") and "article" not in named:
        return None
    north, east = named.get("NS", ""), named.get("EW", "")
    if "/" in north:
        sides = (north.rstrip("/").split("/"), "N"), (east.rstrip("/").split("/"), "E")
        parts = [part for side, letter in sides for part in (side if side[-1].isalpha() else [*side, letter])]
        return angles(parts, page.lang)
    form = "dms" if "DM" in named.get("text", "") + named.get("article", "") else ""
    return angles([north, east], page.lang, form) if north and east else template.shown()


Value = Callable[..., str]
_VOWELS = "aeiouàèéìòù"
_UNO = ("z", "x", "y", "gn", "ps", "pn")


def lead_of_biography(template: Template, page: PageFacts) -> str:
    """Returns the sentence with which ``{{Bio}}`` begins an article.

    ``Dante Alighieri (Firenze, 1265 – Ravenna, 14 settembre 1321) è stato un poeta e scrittore italiano.``
    """

    def value(*names: str) -> str:
        return template.argument(0, *names)

    name = " ".join(filter(None, (value("Titolo"), value("Nome"), value("Cognome"))))
    if value("CognomePrima"):
        name = " ".join(filter(None, (value("Titolo"), value("Cognome"), value("Nome"))))
    if value("Pseudonimo"):
        name += f", noto come {value('Pseudonimo')}"
    name += value("PostCognome") if value("PostCognome")[:1] in (",", "") else f" {value('PostCognome')}"
    birth = _place_and_date(value, "Nascita", "LuogoNascita")
    death = _place_and_date(value, "Morte", "LuogoMorte")
    life = f"{birth or '…'} – {death}" if death else birth
    before = value("PreData")
    inside = "; ".join(filter(None, (before, life)))
    head = f"'''{name}'''{f' ({inside})' if inside else ''}" if name else ""
    end = value("FineIncipit")
    if end:
        return f"{head}{'' if end[0] in ',;' else ' '}{end}{_stop(value, end)}".strip()
    is_woman, is_dead = value("Sesso").upper() == "F", bool(death) or bool(value("AnnoMorte"))
    work = [found for key in ("Attività", "Attività2", "Attività3") if (found := value(key))]
    others = value("AttivitàAltre")
    if not head or not work:
        return f"{head}{others}"
    verb = ("è stata" if is_woman else "è stato") if is_dead else "è"
    words = f"{', '.join(work[:-1])} e {work[-1]}" if len(work) > 1 and not others else ", ".join(work)
    nation = " ".join(filter(None, (value("Nazionalità"), value("NazionalitàNaturalizzato"))))
    sentence = f"{head} {verb} {_article(work[0], is_woman=is_woman)}{words}{others} {nation}{_after(value)}".rstrip()
    return sentence + _stop(value, sentence)


def _place_and_date(value: Value, what: str, place: str) -> str:
    day, year = value(f"GiornoMese{what}"), value(f"Anno{what}")
    date = " ".join(filter(None, (wikitext_link(day), wikitext_link(year) if year[:1].isdecimal() else year)))
    where = wikitext_link(value(f"{place}Link") or value(place), value(f"{place}Alt") or value(place))
    return ", ".join(filter(None, (where, date)))


def _after(value: Value) -> str:
    text = value("PostNazionalità")
    return text if not text or text[0] in ",;" else f" {text}"


def _stop(value: Value, sentence: str) -> str:
    return "" if value("Punto").lower() == "no" or sentence.endswith((".", ":")) else "."


def _article(word: str, *, is_woman: bool) -> str:
    first = word.lstrip("['").rpartition("|")[2].lower()
    if is_woman:
        return f"un{APOSTROPHE}" if first[:1] in _VOWELS else "una "
    is_hard = first.startswith(_UNO) or (first[:1] == "s" and first[1:2] not in _VOWELS)
    return "uno " if is_hard else "un "


_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")


def measure(template: Template, page: PageFacts) -> str:
    """Returns a number with exponent, prefix and unit: ``{{M|1234.5|k|m}}``, ``{{M|3|e=6|ul=Hz}}``."""
    values = template.padded(3)
    written = values[0]
    if "," in written or _THOUSANDS.fullmatch(written):  # decimal comma and groups, as people write them in Italian
        written = written.replace(".", "").replace(",", ".")
    number = parse_number(written, page.lang)
    text = values[0] if number is None else number.shown
    if exponent := template.named.get("e", ""):
        text = f"{text}×10{raise_text(exponent.replace('-', '−'))}" if text else f"10{raise_text(exponent)}"
    unit = template.argument(0, "ul", "u") or values[1] + values[2]
    if per := template.argument(0, "upl", "up"):
        unit = f"{unit}/{per}"
    return f"{text}{NBSP}{unit}" if unit and text else text or unit


def power_of_ten(template: Template, page: PageFacts) -> str:
    """Returns ``7,7×10¹⁵`` from ``{{Exp|7,7|15}}``, ``×10⁷`` from ``{{Exp|7}}``."""
    values = template.filled()
    exponent = raise_text(values[-1].replace("-", "−")) if values else ""
    return f"{values[0] if len(values) > 1 else ''}×10{exponent}" if exponent else ""


def italian_flag(template: Template, page: PageFacts) -> str | None:
    """Returns the name next to a flag if ``{{bandiera|ITA|nome}}`` requests a name; a flag without a name is only a
    picture.
    """
    values = template.padded(2)
    if not values[1] and not is_true(template.named.get("nome", "")):
        return None
    return country_name(values[0], page.lang)


def national_team(template: Template, page: PageFacts) -> str:
    """Returns the country of ``{{Naz|CA|ITA}}``, whose first argument is a code of the sport."""
    values = template.padded(2)
    return country_name(values[1] or values[0], page.lang)


def twin_town(template: Template, page: PageFacts) -> str:
    """Returns ``Parigi, dal 1956`` from ``{{Gemellaggio|FRA|Parigi|1956}}``; the country is a flag."""
    _, town, since = template.padded(3)[:3]
    return ", ".join(filter(None, (town, f"dal {since}" if since[:1].isdecimal() else since)))
