"""Countries behind flags, coordinates, ships: what stands as a link where a template draws a picture."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, link, padded, shown, stripped
from kbsource.wikitext.functions.measures.numbers import MINUS, plain_minus


@cache
def _countries() -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """Gives English article titles by three-letter code, by two-letter code, and the shorter shown names."""
    text = resources.files("kbsource.wikitext").joinpath("rules/countries.toml").read_text("utf-8")
    data: dict[str, dict[str, str]] = tomllib.loads(text)
    return {**data["codes"], **data["other"]}, data["short"], data["shown"]


@cache
def _country_names() -> dict[str, dict[str, str]]:
    """Gives names in other languages by English article title and language."""
    text = resources.files("kbsource.wikitext").joinpath("rules/country_names.toml").read_text("utf-8")
    return {_countries()[0][code]: names for code, names in tomllib.loads(text).items()}


def country_name(code: str, lang: str) -> str:
    """Gives the name of a country in a language by its code of ISO, the IOC or FIFA; the code where it is not known."""
    long, short, _ = _countries()
    return _country_names().get(long.get(code) or short.get(code, ""), {}).get(lang, code)


def country_codes() -> frozenset[str]:
    """Gives the three-letter codes that are names of flag templates: ``GBR``; ``EUR`` is the currency more often."""
    return frozenset(code for code in _countries()[0] if len(code) >= 3) - {"EUR"}


def _country(code: str) -> tuple[str, str]:
    """Gives article title and shown name by a code or a name."""
    long, short, shown_as = _countries()
    title = long.get(code) or short.get(code) or code
    return title, shown_as.get(title, title)


def flag(template: Template, page: PageFacts) -> str:
    """Gives the country of ``{{flag|France}}`` or ``{{flagcountry|FRA}}`` as a link; the picture is not text."""
    name = argument(template, 1)
    if not name or "[[" in name:
        return name
    if page.lang not in ("en", "simple"):
        known = country_name(name, page.lang)
        return link(name) if known == name else known
    title, label = _country(name)
    return link(title, template.named.get("name", "") or label)


def flag_text(template: Template, page: PageFacts, *, position: int = 2) -> str:
    """Gives the text beside a flag: ``{{flagu|France}}``, ``{{flagdeco|France}} …`` has none."""
    return argument(template, position) or _country(argument(template, 1))[1]


def country_by_name(template: Template, page: PageFacts, *, code: str = "") -> str | None:
    """Gives the country that the template's own name stands for: ``{{GBR}}``, ``{{BE-VLAG}}``.

    In other languages than English it is the name alone, without a link; ``{{DEU|#}}`` is the flag alone.
    """
    name = code or template.name
    if page.lang not in ("en", "simple"):
        label = argument(template, 1)
        return None if label == "#" else label or country_name(name, page.lang)
    title, label = _country(name)
    return link(title, template.named.get("name", "") or label)


def region_flag(template: Template, page: PageFacts) -> str:
    """Gives the place beside the flag of ``{{BE-vlag|Antwerpen|geenlink}}``, as a link unless it asks for none."""
    values = filled(template)
    if not values:
        return ""
    return values[0] if len(values) > 1 else link(values[0])


def team(template: Template, page: PageFacts, *, before: str = "", after: str = "") -> str:
    """Gives a national team's link: ``{{fb|FRA}}`` -> ``[[France national football team|France]]``."""
    title, label = _country(argument(template, 1))
    if page.lang not in ("en", "simple"):
        return title
    return link(f"{before}{title}{after}", label if after.endswith("team") else "") if title else ""


def ship(template: Template, page: PageFacts, *, prefix: str = "") -> str:
    """Gives a ship as a link, its name in italics: ``{{USS|Arizona|BB-39}}`` -> USS *Arizona* (BB-39).

    With no fixed prefix the template's first argument is it: ``{{ship|HMS|Victory}}``.
    Source: https://en.wikipedia.org/wiki/Template:Ship
    """
    values = stripped(template)
    if prefix:
        values = [prefix, *values]
    values += ["", "", "", ""]
    kind, name, identifier, display = values[:4]
    full = f"{kind} {name}".strip()
    title = f"{full} ({identifier})" if identifier else full
    style = display or template.named.get("up", "")
    if style in ("1", "5"):
        shown_name = f"''{name}''"
    elif style == "2":
        shown_name = f"{kind} ''{name}''"
    elif style == "3":
        return link(title, f"''{name}'' ({identifier})")
    else:
        label = f"{kind} ''{name}''" if kind else f"''{name}''"
        year_only = identifier.isdecimal() and len(identifier) == 4
        return link(title, f"{label} ({identifier})" if identifier and not year_only else label)
    return link(title, shown_name)


def ship_class(template: Template, page: PageFacts) -> str:
    """Gives ``Nimitz-class aircraft carrier`` from ``{{sclass|Nimitz|aircraft carrier}}``."""
    values = padded(template, 3)
    name, kind = values[0], values[1]
    title = f"{name}-class {kind}".strip()
    return link(title, f"''{name}''-class {kind}".strip()) if name else ""


def coordinates(template: Template, page: PageFacts) -> str | None:
    """Gives ``48°51′N 2°21′E`` of ``{{coord|…}}``; None where they are shown beside the title only.

    Source: https://en.wikipedia.org/wiki/Template:Coord
    """
    display = template.named.get("display", "").lower().replace(" ", "")
    if display in ("title", "t"):
        return None
    return angles([value for value in stripped(template) if ":" not in value], template.named.get("format", ""))


def angles(values: list[str], form: str = "") -> str:
    """Gives latitude and longitude as text from the values of ``{{coord}}``: decimal, or degrees with letters."""
    values = [value for value in values if value]
    letters = [position for position, value in enumerate(values) if value.upper() in ("N", "S", "E", "W", "O")]
    if len(letters) >= 2:
        first, second = letters[0], letters[1]
        sides = values[: first + 1], values[first + 1 : second + 1]
        return f"{_degrees(sides[0])} {_degrees(sides[1])}"
    if len(values) < 2:
        return " ".join(values)
    latitude, longitude = plain_minus(values[0]), plain_minus(values[1])
    if form == "dms":
        return f"{_from_decimal(latitude, 'N', 'S')} {_from_decimal(longitude, 'E', 'W')}"
    return f"{_signed(latitude, 'N', 'S')} {_signed(longitude, 'E', 'W')}"


def _degrees(values: list[str]) -> str:
    marks = ("°", "′", "″")
    text = "".join(f"{value}{mark}" for value, mark in zip(values[:-1], marks, strict=False))
    return text + values[-1].upper()


def _signed(text: str, positive: str, negative: str) -> str:
    return f"{text[1:]}°{negative}" if text.startswith("-") else f"{text}°{positive}"


def _from_decimal(text: str, positive: str, negative: str) -> str:
    try:
        value = float(text)
    except ValueError:
        return text
    if not abs(value) <= 360:
        return text.replace("-", MINUS)
    seconds = round(abs(value) * 3600)
    letter = negative if value < 0 else positive
    return f"{seconds // 3600}°{seconds // 60 % 60:02d}′{seconds % 60:02d}″{letter}"


def named_coordinates(template: Template, page: PageFacts) -> str | None:
    """Gives the coordinates of ``{{Coordinate|NS=…|EW=…|text=…}}``; None unless a text in the line is asked for."""
    named = template.named
    if named.get("text", "") in ("", "-", "0") and "article" not in named:
        return None
    north, east = named.get("NS", ""), named.get("EW", "")
    if "/" in north:
        parts = [*north.split("/"), *east.split("/")]
        return angles(parts)
    return angles([north, east]) if north and east else shown(template)


def named_after_country(template: Template, page: PageFacts) -> str:
    """Gives the country that has the template's own name, as flag templates of many editions do: ``{{France}}``."""
    return link(template.name)
