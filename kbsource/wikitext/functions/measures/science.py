"""Formulas, isotopes, particles, notes of music, time spans of the earth's history."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, link, padded, shown, stripped
from kbsource.wikitext.functions.measures.numbers import NBSP, plain_minus, raise_text

_CHARGE = re.compile(r"([0-9]*)([+\-−–])")
_CHEM2_CHARGE = re.compile(r"(?:\((\d*[+-])\)|(?<=[A-Za-z\d\])])(\d?[+-]))(?=$|[\s\])])")


@cache
def _symbols(kind: str) -> dict[str, str]:
    """Gives symbols by name: of ``elements``, ``other_elements``, ``particles`` or ``music``."""
    text = resources.files("kbsource.wikitext").joinpath("rules/symbols.toml").read_text("utf-8")
    return dict(tomllib.loads(text)[kind])


@cache
def _atomic_numbers() -> dict[str, int]:
    return {symbol: number for number, symbol in enumerate(_symbols("elements").values(), 1)}


def _element(name: str) -> str:
    """Gives the symbol of an element by its English name; another text as it is."""
    folded = name.lower()
    return _symbols("elements").get(folded) or _symbols("other_elements").get(folded, name)


def formula(template: Template, page: PageFacts) -> str:
    """Gives a formula of ``{{chem|H|2|O}}``: charges raised, numbers on the line (H2O), one argument after the other.

    Source: https://en.wikipedia.org/wiki/Template:Chem
    """
    pieces: list[str] = []
    values = stripped(template)
    if template.named.get("su"):
        values.append(template.named["su"])
    for position, value in enumerate(values):
        plain = plain_minus(value)
        charge = _CHARGE.fullmatch(plain)
        if (charge is not None and position) or (plain.isdecimal() and not position and len(values) > 1):
            pieces.append(raise_text(plain))
        else:
            pieces.append(value)
    return "".join(pieces)


def linear_formula(template: Template, page: PageFacts) -> str:
    """Gives a formula written in one piece: ``{{chem2|Fe2(SO4)3}}``, ``{{chem2|SO4(2-)}}``."""
    text = argument(template, 1, "formula")
    text = plain_minus(text).replace("*", "·").replace("->", "→")
    if "[[" in text:
        return text
    return _CHEM2_CHARGE.sub(lambda found: raise_text(found.group(1) or found.group(2)), text)


def isotope(template: Template, page: PageFacts, *, order: str = "name") -> str:
    """Gives ``⁷Li`` of an element by name or symbol and its mass number."""
    values = filled(template)
    if not values:
        return ""
    charge = raise_text(plain_minus(template.named.get("charge", "")))
    if order == "mass" and len(values) > 1:
        values = [values[1], values[0], *values[2:]]
    element = _element(values[0])
    mass = raise_text(values[1]) if len(values) > 1 else ""
    text = f"{mass}{element}{charge}"
    is_linked = template.named.get("link", "").lower() in ("y", "yes")
    return link(f"{values[0]}-{values[1]}".capitalize(), text) if is_linked and len(values) > 1 else text


def element_symbol(template: Template, page: PageFacts) -> str:
    """Gives ``²³⁸92U`` of mass number, atomic number and symbol in that or the other order."""
    values = filled(template)
    numbers = [value for value in values if value.isdecimal()]
    symbols = [value for value in values if not value.isdecimal()]
    if not symbols:
        return shown(template)
    symbol = _element(symbols[0])
    numbers.sort(key=int, reverse=True)
    low = numbers[1] if len(numbers) > 1 else str(_atomic_numbers().get(symbol, ""))
    return f"{raise_text(numbers[0]) if numbers else ''}{low}{symbol}"


def particle(template: Template, page: PageFacts) -> str:
    """Gives the sign of a particle: ``{{subatomic particle|electron}}`` -> e⁻."""
    name = argument(template, 1)
    text = _symbols("particles").get(name.lower(), name)
    return link(name.rstrip("+-0").capitalize(), text) if template.named.get("link", "") in ("y", "yes") else text


def music(template: Template, page: PageFacts) -> str:
    """Gives the sign of ``{{music|flat}}``; a time signature as ``3/4``; what has no sign as it is written."""
    values = filled(template)
    if not values:
        return ""
    if values[0] == "time" and len(values) > 2:
        return f"{values[1]}/{values[2]}"
    if values[0] in ("chord", "scale") and len(values) > 1:
        return values[1]
    return _symbols("music").get(values[0].lower().replace("-", ""), values[0]) + "".join(values[1:])


def fossil_range(template: Template, page: PageFacts) -> str:
    """Gives ``370–0 Ma`` or ``Late Silurian–Recent``."""
    values = filled(template)
    if not values:
        return ""
    numeric = all(plain_minus(value).replace(".", "").isdecimal() for value in values[:2])
    text = "–".join(values[:2])
    note = f" {values[2]}" if len(values) > 2 else ""
    return f"{text}{NBSP}Ma{note}" if numeric else f"{text}{note}"


def million_years(template: Template, page: PageFacts, *, word: str = "million years ago") -> str:
    """Gives ``65.5 million years ago``, two values as a span."""
    values = filled(template)
    return f"{'–'.join(values[:2])} {word}" if values else word


def disease_code(template: Template, page: PageFacts) -> str:
    """Gives ``F84.0`` of letter, number and decimal: ``{{ICD10|F|84|0|f|80}}``; the rest is only a target."""
    values = padded(template, 3)
    return f"{values[0]}{values[1]}{'.' + values[2] if values[2] else ''}"


def square_root(template: Template, page: PageFacts) -> str:
    """Gives ``√2``, ``³√2``."""
    values = padded(template, 2)
    value = values[0] if len(values[0]) <= 1 or values[0].isalnum() else f"({values[0]})"
    return f"{raise_text(values[1])}√{value}"


def overlined(template: Template, page: PageFacts) -> str:
    """Gives the argument with a line over each of its letters where it is short, else as it is."""
    text = argument(template, 1)
    return "".join(character + "\u0305" for character in text) if text.isalnum() and len(text) <= 8 else text


def formula_text(template: Template, page: PageFacts) -> str:
    """Gives the content of ``{{math|…}}``; an argument ``1=`` serves where the formula has an equals sign."""
    return "".join(value.strip("\n") for value in template.positional) or argument(template, 0, "1", "big")


def function_limits(template: Template, page: PageFacts, *, sign: str) -> str:
    """Gives ``∫`` or ``∑`` with its limits."""
    values = padded(template, 3)
    low = template.named.get("from", "") or template.named.get("sub", "")
    high = template.named.get("to", "") or template.named.get("sup", "")
    bounds = f"{low}{raise_text(high)}"
    return f"{sign}{bounds}{values[0]}"


def right_ascension(template: Template, page: PageFacts) -> str:
    """Gives ``12ʰ 34ᵐ 56.7ˢ`` as ``12h 34m 56.7s``."""
    return " ".join(f"{value}{mark}" for value, mark in zip(filled(template), ("h", "m", "s"), strict=False))


def declination(template: Template, page: PageFacts) -> str:
    """Gives ``−16° 42′ 58″``."""
    pieces = (f"{value}{mark}" for value, mark in zip(filled(template), ("°", "′", "″"), strict=False))
    return plain_minus(" ".join(pieces)).replace("-", "\u2212")


def dental_formula(template: Template, page: PageFacts) -> str:
    """Gives ``0.0.2-3.3/0.0.2.3``: the teeth of the upper and the lower jaw."""
    return f"{template.named.get('upper', '')}/{template.named.get('lower', '')}"
