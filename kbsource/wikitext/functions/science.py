"""Formulas, isotopes, particles, notes of music, time spans of the earth's history."""

from __future__ import annotations

import re

from kbsource.wikitext.functions.arguments import PageFacts, Template, argument, filled, link, shown, stripped
from kbsource.wikitext.functions.numbers import NBSP, lower_text, plain_minus, raise_text

# Source: IUPAC periodic table of the elements, 2022. Names as in English nuclide templates.
_SYMBOLS = """H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y
Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb Lu Hf Ta W Re Os Ir Pt Au
Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts
Og""".split()
_NAMES = """hydrogen helium lithium beryllium boron carbon nitrogen oxygen fluorine neon sodium magnesium aluminium silicon
phosphorus sulfur chlorine argon potassium calcium scandium titanium vanadium chromium manganese iron cobalt nickel copper
zinc gallium germanium arsenic selenium bromine krypton rubidium strontium yttrium zirconium niobium molybdenum technetium
ruthenium rhodium palladium silver cadmium indium tin antimony tellurium iodine xenon caesium barium lanthanum cerium
praseodymium neodymium promethium samarium europium gadolinium terbium dysprosium holmium erbium thulium ytterbium
lutetium hafnium tantalum tungsten rhenium osmium iridium platinum gold mercury thallium lead bismuth polonium astatine
radon francium radium actinium thorium protactinium uranium neptunium plutonium americium curium berkelium californium
einsteinium fermium mendelevium nobelium lawrencium rutherfordium dubnium seaborgium bohrium hassium meitnerium
darmstadtium roentgenium copernicium nihonium flerovium moscovium livermorium tennessine oganesson""".split()
_SYMBOL_BY_NAME = dict(zip(_NAMES, _SYMBOLS, strict=True)) | {
    "cesium": "Cs",
    "aluminum": "Al",
    "sulphur": "S",
    "deuterium": "H",
    "tritium": "H",
    "ununennium": "Uue",
    "unbinilium": "Ubn",
    "ununtrium": "Uut",
    "ununpentium": "Uup",
    "ununseptium": "Uus",
    "ununoctium": "Uuo",
}
_NUMBER_BY_SYMBOL = {symbol: number for number, symbol in enumerate(_SYMBOLS, 1)}

_PARTICLES = {
    "alpha": "α",
    "beta": "β",
    "beta+": "β⁺",
    "beta-": "β⁻",
    "gamma": "γ",
    "photon": "γ",
    "electron": "e⁻",
    "positron": "e⁺",
    "muon": "μ⁻",
    "antimuon": "μ⁺",
    "tau": "τ⁻",
    "antitau": "τ⁺",
    "neutrino": "ν",
    "antineutrino": "ν̅",
    "electron neutrino": "νₑ",
    "electron antineutrino": "ν̅ₑ",
    "muon neutrino": "ν_μ",
    "muon antineutrino": "ν̅_μ",
    "tau neutrino": "ν_τ",
    "proton": "p",
    "proton+": "p⁺",
    "antiproton": "p̅",
    "neutron": "n",
    "neutron0": "n⁰",
    "antineutron": "n̅",
    "pion": "π",
    "pion+": "π⁺",
    "pion-": "π⁻",
    "pion0": "π⁰",
    "kaon": "K",
    "kaon+": "K⁺",
    "kaon-": "K⁻",
    "kaon0": "K⁰",
    "up quark": "u",
    "down quark": "d",
    "strange quark": "s",
    "charm quark": "c",
    "bottom quark": "b",
    "top quark": "t",
    "w boson": "W",
    "w boson+": "W⁺",
    "w boson-": "W⁻",
    "z boson": "Z",
    "z boson0": "Z⁰",
    "gluon": "g",
    "higgs boson": "H",
    "lambda0": "Λ⁰",
}
_NOTES = {
    "flat": "♭",
    "b": "♭",
    "sharp": "♯",
    "#": "♯",
    "natural": "♮",
    "n": "♮",
    "doubleflat": "𝄫",
    "double flat": "𝄫",
    "bb": "𝄫",
    "doublesharp": "𝄪",
    "double sharp": "𝄪",
    "##": "𝄪",
    "x": "𝄪",
    "halfflat": "𝄳",
    "halfsharp": "𝄲",
    "quarter": "♩",
    "quarternote": "♩",
    "crotchet": "♩",
    "eighth": "♪",
    "eighthnote": "♪",
    "quaver": "♪",
    "half": "𝅗𝅥",
    "halfnote": "𝅗𝅥",
    "whole": "𝅝",
    "wholenote": "𝅝",
    "sixteenth": "𝅘𝅥𝅯",
    "treble": "𝄞",
    "bass": "𝄢",
    "alto": "𝄡",
    "time": "",
    "segno": "𝄋",
    "coda": "𝄌",
    "fermata": "𝄐",
    "dim": "o",
    "dimslash": "ø",
    "halfdim": "ø",
    "delta": "Δ",
    "p": "p",
    "f": "f",
}
_CHARGE = re.compile(r"([0-9]*)([+\-−–])")
_CHEM2_NUMBER = re.compile(r"(?<=[A-Za-z\])])(\d+)")
_CHEM2_CHARGE = re.compile(r"(?:\((\d*[+-])\)|(?<=[A-Za-z\d\])])(\d?[+-]))(?=$|[\s\])])")


def formula(template: Template, page: PageFacts) -> str:
    """Gives a formula of ``{{chem|H|2|O}}``: plain numbers lowered, charges raised, one argument after the other.

    Source: https://en.wikipedia.org/wiki/Template:Chem
    """
    pieces: list[str] = []
    values = stripped(template)
    if template.named.get("su"):
        values.append(template.named["su"])
    for position, value in enumerate(values):
        plain = plain_minus(value)
        charge = _CHARGE.fullmatch(plain)
        if charge is not None and position:
            pieces.append(raise_text(plain))
        elif position and (plain.isdecimal() or _is_count(plain)):
            pieces.append(lower_text(plain))
        elif plain.isdecimal() and len(values) > 1:
            pieces.append(raise_text(plain))
        else:
            pieces.append(value)
    return "".join(pieces)


def _is_count(text: str) -> bool:
    return bool(text) and set(text) <= set("0123456789n+-x.") and text not in ("x", "n", ".")


def linear_formula(template: Template, page: PageFacts) -> str:
    """Gives a formula written in one piece: ``{{chem2|Fe2(SO4)3}}``, ``{{chem2|SO4(2-)}}``."""
    text = argument(template, 1, "formula")
    text = plain_minus(text).replace("*", "·").replace("->", "→")
    if "[[" in text:
        return text
    text = _CHEM2_CHARGE.sub(lambda found: raise_text(found.group(1) or found.group(2)), text)
    return _CHEM2_NUMBER.sub(lambda found: lower_text(found.group(1)), text)


def isotope(template: Template, page: PageFacts, *, order: str = "name") -> str:
    """Gives ``⁷Li`` or ``⁷₃Li`` of an element by name or symbol and its mass number."""
    values = filled(template)
    if not values:
        return ""
    charge = raise_text(plain_minus(template.named.get("charge", "")))
    if order == "mass" and len(values) > 1:
        values = [values[1], values[0], *values[2:]]
    element = _SYMBOL_BY_NAME.get(values[0].lower(), values[0])
    mass = raise_text(values[1]) if len(values) > 1 else ""
    text = f"{mass}{element}{charge}"
    is_linked = template.named.get("link", "").lower() in ("y", "yes")
    return link(f"{values[0]}-{values[1]}".capitalize(), text) if is_linked and len(values) > 1 else text


def element_symbol(template: Template, page: PageFacts) -> str:
    """Gives ``²³⁸₉₂U`` of mass number, atomic number and symbol in that or the other order."""
    values = filled(template)
    numbers = [value for value in values if value.isdecimal()]
    symbols = [value for value in values if not value.isdecimal()]
    if not symbols:
        return shown(template)
    symbol = _SYMBOL_BY_NAME.get(symbols[0].lower(), symbols[0])
    numbers.sort(key=int, reverse=True)
    low = numbers[1] if len(numbers) > 1 else str(_NUMBER_BY_SYMBOL.get(symbol, ""))
    return f"{raise_text(numbers[0]) if numbers else ''}{lower_text(low)}{symbol}"


def particle(template: Template, page: PageFacts) -> str:
    """Gives the sign of a particle: ``{{subatomic particle|electron}}`` -> e⁻."""
    name = argument(template, 1)
    text = _PARTICLES.get(name.lower(), name)
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
    return _NOTES.get(values[0].lower().replace("-", ""), values[0]) + "".join(values[1:])


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


def square_root(template: Template, page: PageFacts) -> str:
    """Gives ``√2``, ``³√2``."""
    values = stripped(template) + ["", ""]
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
    values = stripped(template) + ["", "", ""]
    low = template.named.get("from", "") or template.named.get("sub", "")
    high = template.named.get("to", "") or template.named.get("sup", "")
    bounds = f"{lower_text(low)}{raise_text(high)}"
    return f"{sign}{bounds}{values[0]}"


def right_ascension(template: Template, page: PageFacts) -> str:
    """Gives ``12ʰ 34ᵐ 56.7ˢ`` as ``12h 34m 56.7s``."""
    return " ".join(f"{value}{mark}" for value, mark in zip(filled(template), ("h", "m", "s"), strict=False))


def declination(template: Template, page: PageFacts) -> str:
    """Gives ``−16° 42′ 58″``."""
    pieces = (f"{value}{mark}" for value, mark in zip(filled(template), ("°", "′", "″"), strict=False))
    return plain_minus(" ".join(pieces)).replace("-", "\u2212")
