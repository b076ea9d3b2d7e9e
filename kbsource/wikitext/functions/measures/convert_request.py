"""What a use of ``{{convert}}`` asks for: its numbers and units, the outputs, and how they are to be shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from kbsource.wikitext.functions.measures.numbers import NBSP, Number, parse_number, plain_minus
from kbsource.wikitext.functions.measures.units import Unit, find_unit, output_units, subunits_in

# What stands between the ends of a range: (with names, with symbols, before a hyphenated unit).
RANGES: dict[str, tuple[str, str, str]] = {
    "-": ("–", "–", "–"),
    "–": ("–", "–", "–"),
    "&ndash;": ("–", "–", "–"),
    "—": ("–", "–", "–"),
    "to": (" to ", " to ", "-to-"),
    "to(-)": (" to ", "–", "-to-"),
    "to about": (" to about ", " to about ", " to about "),
    "and": (" and ", " and ", "-and-"),
    "and(-)": (" and ", "–", "-and-"),
    "&": (" and ", " & ", "-and-"),
    "or": (" or ", " or ", "-or-"),
    "by": (" by ", " by ", "-by-"),
    "by(x)": (" by ", " × ", "-by-"),
    "x": (" by ", " × ", "-by-"),
    "×": (" by ", " × ", "-by-"),
    "*": (" × ", " × ", " × "),
    "xx": (" × ", " × ", " × "),
    "+": (" + ", " + ", " + "),
    "plus": (" plus ", " plus ", " plus "),
    "+/-": (" ± ", " ± ", " ± "),
    "±": (" ± ", " ± ", " ± "),
    ",": (", ", ", ", ", "),
    "and ": (" and ", " and ", " and "),
    "then": (" then ", " then ", " then "),
    "from": (" from ", " from ", " from "),
}
UNIT_ON_EACH = frozenset({"x", "×", "by(x)"})
_WORDS_IN_VALUE = (" to ", " and ", " or ", " by ", " x ", " × ", "×", "–", "±", "x", "-")
_JOINS = {
    "or": (" or ", ""),
    "slash": (NBSP + "/ ", ""),
    "/": (NBSP + "/ ", ""),
    "s": (NBSP + "/ ", ""),
    "comma": (", ", ""),
    ",": (", ", ""),
    "sqbr": (" [", "]"),
    "br": ("<br>", ""),
    "br()": ("<br>(", ")"),
    "table": ("\n|", ""),
    "tablecen": ("\n|", ""),
}
_OUTPUT_ONLY = frozenset({"output only", "out", "output", "output number only", "number", "num", "unit2"})
_NUMBER_ONLY = frozenset({"output number only", "number", "num"})


@dataclass(slots=True)
class Options:
    """What the named arguments ask for."""

    lang: str
    abbr: str = "out"
    has_abbr: bool = False
    join: tuple[str, str] = (" (", ")")
    wants_all_names: bool = False
    is_adjective: bool = False
    is_flipped: bool = False
    is_output_only: bool = False
    is_number_only: bool = False
    is_american: bool = False
    has_values_only: bool = False
    middle: str = ""
    precision: int | None = None
    significant: int | None = None
    round_to: float = 0.0
    fraction: int = 0
    comma: str = ""
    spell: str = ""
    before: tuple[str, str] = ("", "")
    separators: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Measure:
    """The input: numbers with the words between them, in one unit or in several that make up one measure."""

    numbers: list[Number]
    words: list[str]
    unit: Unit
    parts: list[tuple[Number, Unit]] = field(default_factory=list)


def read_options(named: dict[str, str], lang: str, abbr: str) -> Options:
    options = Options(lang=lang)
    if abbr:
        options.abbr, options.has_abbr = abbr, True
    if not named:
        if lang != "en" and lang != "simple":
            options.abbr, options.has_abbr = "on", True
        return options
    given = named.get("abbr", "")
    if given == "values":
        options.has_values_only = True
    elif given:
        options.abbr, options.has_abbr = {"unit": "on", "~": "on", "h0": "on"}.get(given, given), True
    if lang != "en" and lang != "simple":
        options.abbr, options.has_abbr = "on", True
    display = named.get("disp", "")
    options.is_flipped = display == "flip" or named.get("order", "") in ("flip", "out")
    if display in _JOINS:
        options.join = _JOINS[display]
        options.wants_all_names = display in ("or", "slash", "/", "s")
        options.has_values_only = display.startswith("table") and not given
    elif display in _OUTPUT_ONLY:
        options.is_output_only = True
        options.is_number_only = display in _NUMBER_ONLY
    elif display == "5":
        options.round_to = 5.0
    elif display in ("x", "preunit"):
        options.separators = [display]
    adjective = named.get("adj", "") or named.get("adjective", "")
    options.is_adjective = adjective in ("on", "mid", "1") or named.get("sing", "") == "on"
    if adjective in ("mid", "pre") or adjective.endswith("pre"):
        options.separators.append(adjective)
    if named.get("abbr") == "mos":
        options.abbr = "on"
    options.is_american = named.get("sp", "").lower() == "us"
    if named.get("sigfig", "").isdecimal():
        options.significant = min(int(named["sigfig"]), 15)
    rounding = named.get("round", "")
    if rounding:
        options.round_to = {"5": 5.0, "10": 10.0, "25": 25.0, "50": 50.0, "half": 0.5, "0.5": 0.5}.get(rounding, 0.0)
    if named.get("frac", "").isdecimal():
        options.fraction = min(int(named["frac"]), 1000)
    options.comma = named.get("comma", "")
    options.spell = named.get("spell", "")
    return options


def read_input(arguments: list[str], lang: str) -> tuple[Measure, list[str]] | None:
    """Gives the input measure and the arguments after it; None when there is no number with a unit."""
    words: list[str] = []
    numbers: list[Number] = []
    position = 0
    while True:
        if position >= len(arguments):
            return None
        found = _values(arguments[position], lang)
        if found is None:
            return None
        numbers.extend(found[0])
        words.extend(found[1])
        position += 1
        if position >= len(arguments):
            return None
        word = plain_minus(arguments[position]).strip()
        if word in RANGES and position + 1 < len(arguments) and _values(arguments[position + 1], lang):
            words.append(word)
            position += 1
            continue
        break
    code = arguments[position].strip()
    unit = find_unit(code) or Unit(code, code, 0.0, code, code, code, is_symbol_only=True)
    position += 1
    measure = Measure(numbers, words, unit)
    if len(numbers) == 1:
        position = _read_parts(measure, arguments, position, lang)
    return measure, arguments[position:]


def _read_parts(measure: Measure, arguments: list[str], position: int, lang: str) -> int:
    """Takes ``4|in`` after ``6|ft``; gives the position after it."""
    unit = measure.unit
    while position + 1 < len(arguments):
        more = parse_number(arguments[position], lang)
        smaller = find_unit(arguments[position + 1]) if more is not None else None
        if more is None or smaller is None or not subunits_in(unit, smaller):
            break
        if not measure.parts:
            measure.parts.append((measure.numbers[0], unit))
        measure.parts.append((more, smaller))
        unit = smaller
        position += 2
    return position


def _values(text: str, lang: str) -> tuple[list[Number], list[str]] | None:
    """Gives the numbers of one argument with the range words between them: mostly one, two for ``10-20``."""
    number = parse_number(text, lang)
    if number is not None:
        return [number], []
    plain = plain_minus(text).strip()
    for word in _WORDS_IN_VALUE:
        head, found, tail = plain.partition(word)
        if found and head.strip():
            first, second = parse_number(head, lang), parse_number(tail, lang)
            if first is not None and second is not None:
                return [first, second], [word.strip()]
    return None


def read_rest(
    rest: list[str], named: dict[str, str], options: Options, measure: Measure
) -> tuple[tuple[Unit, ...], ...]:
    """Reads output units, precision and inserted words; gives the outputs, empty when none can be worked out."""
    position = 0
    code = ""
    if rest:
        precision = _precision(rest[0])
        if precision is not None:
            options.precision = precision
        else:
            code = rest[0].strip()
        position = 1
        if options.precision is None and len(rest) > 1:
            options.precision = _precision(rest[1])
            position += options.precision is not None
    if "mid" in options.separators and code and position >= len(rest) and not output_units(code):
        code, position = "", position - 1
    for kind in options.separators:
        if kind == "mid" and position < len(rest):
            word = rest[position].strip()
            options.middle = word if word.startswith("-") else f" {word}" if word else ""
            position += 1
        elif kind.endswith("pre") and position < len(rest):
            options.before = (rest[position].strip() + " ", "")
            position += 1
        elif kind == "x":
            first = rest[position] if position < len(rest) else ""
            second = rest[position + 1] if position + 1 < len(rest) else ""
            options.join = (first, second) if first.strip() else (" [ ", " ]")
            position += 2
        elif kind == "preunit" and position < len(rest):
            words = [word.strip() for word in rest[position : position + 2]]
            options.before = (words[0] + " " if words[0] else "", words[-1] + " " if words[-1] else "")
            position += 2
    if options.precision is None and position < len(rest):
        options.precision = _precision(rest[position])
    last = measure.parts[-1][1] if measure.parts else measure.unit
    if not code:
        code = _default_output(measure)
    outputs = output_units(code)
    if not outputs or last.scale == 0.0:
        return ()
    return tuple(units for units in outputs if all(unit.kind == last.kind for unit in units))


def _default_output(measure: Measure) -> str:
    if measure.parts:
        first = measure.parts[0][1].code
        return {"ft": "m", "yd": "m", "mi": "km", "st": "kg", "lb": "kg", "hand": "cm"}.get(first, "") or (
            measure.parts[-1][1].default
        )
    return measure.unit.default


def _precision(text: str) -> int | None:
    plain = plain_minus(text).strip()
    digits = plain[1:] if plain.startswith("-") else plain
    return int(plain) if digits.isdecimal() and digits.isascii() and len(digits) <= 2 else None
