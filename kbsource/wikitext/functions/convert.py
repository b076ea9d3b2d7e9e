"""``{{convert}}``: reads numbers, units, outputs and options of a use, and renders the conversion."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from kbsource.numerals import read_int
from kbsource.wikitext.functions.arguments import PageFacts, Template, table
from kbsource.wikitext.functions.numbers import (
    MINUS,
    NBSP,
    Number,
    exponent_text,
    group_digits,
    number_form,
    parse_number,
    plain_minus,
    round_digits,
    round_significant,
    spell_number,
)
from kbsource.wikitext.functions.units import Unit, find_unit, output_units, subunits_in

UNIT_ON_EACH = frozenset({"x", "×", "by(x)"})
_WORDS_IN_VALUE = (" to ", " and ", " or ", " by ", " x ", " × ", "×", "–", "±", "x", "-")
_OUTPUT_ONLY = frozenset({"output only", "out", "output", "output number only", "number", "num", "unit2"})
_NUMBER_ONLY = frozenset({"output number only", "number", "num"})


@dataclass(slots=True)
class Options:
    """The options set by the named arguments."""

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
class Quantity:
    """The input: numbers with the words between them, in one unit, or in several units that form one measure."""

    numbers: list[Number]
    words: list[str]
    unit: Unit
    parts: list[tuple[Number, Unit]] = field(default_factory=list)


def read_options(named: dict[str, str], lang: str, abbr: str) -> Options:
    options = Options(lang=lang)
    if abbr:
        options.abbr, options.has_abbr = abbr, True
    given = named.get("abbr", "")
    if given == "values":
        options.has_values_only = True
    elif given:
        options.abbr, options.has_abbr = {"unit": "on", "~": "on", "h0": "on", "mos": "on"}.get(given, given), True
    if lang != "en" and lang != "simple":
        options.abbr, options.has_abbr = "on", True
    display = named.get("disp", "")
    options.is_flipped = display == "flip" or named.get("order", "") in ("flip", "out")
    if display in table("joins"):
        before, behind = table("joins")[display]
        options.join = before, behind
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
    options.is_american = named.get("sp", "").lower() == "us"
    if significant := read_int(named.get("sigfig", "")):
        options.significant = min(max(significant, 0), 15)
    if rounding := named.get("round", ""):
        options.round_to = {"5": 5.0, "10": 10.0, "25": 25.0, "50": 50.0, "half": 0.5, "0.5": 0.5}.get(rounding, 0.0)
    if fraction := read_int(named.get("frac", "")):
        options.fraction = min(max(fraction, 0), 1000)
    options.comma = named.get("comma", "")
    options.spell = named.get("spell", "")
    return options


def read_input(arguments: list[str], lang: str) -> tuple[Quantity, list[str]] | None:
    """Returns the input measure and the arguments after it; None if there is no number with a unit."""
    words: list[str] = []
    numbers: list[Number] = []
    position = 0
    while True:
        found = _values(arguments[position], lang) if position + 1 < len(arguments) else None
        if found is None:
            return None
        numbers.extend(found[0])
        words.extend(found[1])
        position += 1
        word = plain_minus(arguments[position]).strip()
        if word in table("ranges") and position + 1 < len(arguments) and _values(arguments[position + 1], lang):
            words.append(word)
            position += 1
            continue
        break
    code = arguments[position].strip()
    unit = find_unit(code) or Unit(code, code, 0.0, code, code, code, is_symbol_only=True)
    position += 1
    measure = Quantity(numbers, words, unit)
    if len(numbers) == 1:
        position = _read_parts(measure, arguments, position, lang)
    return measure, arguments[position:]


def _read_parts(measure: Quantity, arguments: list[str], position: int, lang: str) -> int:
    """Reads ``4|in`` after ``6|ft``; returns the position after it."""
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
    """Returns the numbers in an argument with the range words between them: usually one, two for ``10-20``."""
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


def read_rest(rest: list[str], options: Options, measure: Quantity) -> tuple[tuple[Unit, ...], ...]:
    """Reads output units, precision and inserted words; returns the outputs, empty if none can be determined."""
    position = 0
    code = ""
    if rest:
        options.precision = _precision(rest[0])
        position = 1
        if options.precision is None:
            code = rest[0].strip()
            options.precision = _precision(rest[1]) if len(rest) > 1 else None
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
            first, second = [*rest[position : position + 2], "", ""][:2]
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


def _default_output(measure: Quantity) -> str:
    if measure.parts:
        first = measure.parts[0][1].code
        return {"ft": "m", "yd": "m", "mi": "km", "st": "kg", "lb": "kg", "hand": "cm"}.get(first, "") or (
            measure.parts[-1][1].default
        )
    return measure.unit.default


def _precision(text: str) -> int | None:
    plain = plain_minus(text).strip()
    return read_int(plain, 2) if plain.isascii() else None


_LONGEST_REPEATED = 64  # in characters, of a unit that is repeated after each value; a longer unit is written once


def convert(template: Template, page: PageFacts, *, abbr: str = "") -> str | None:
    """Returns the output of ``{{convert}}``: ``5 miles (8.0 km)``; input that cannot be converted is returned as
    written.
    """
    arguments = list(template.positional)
    options = read_options(template.named, page.lang, abbr)
    taken = read_input(arguments, page.lang)
    if taken is None:
        return template.shown()
    measure, rest = taken
    outputs = read_rest(rest, options, measure)
    sides = _sides(options)
    if options.is_output_only and outputs:
        return "; ".join(_output(measure, units, options, by_name=sides[1]) for units in outputs)
    left = _input(measure, options, by_name=sides[1] if options.is_flipped else sides[0])
    by_name = sides[0] if options.is_flipped else sides[1]
    texts = [_output(measure, units, options, by_name=by_name) for units in outputs]
    right = "; ".join(text for text in texts if text)
    opening, closing = options.join
    if right and options.is_flipped:
        left, right = right, left
    left += options.middle  # the words of adj=mid follow the measure that is shown first
    return f"{left}{opening}{right}{closing}" if right else left


def _sides(options: Options) -> tuple[bool, bool]:
    """Returns whether the first and the second measure are shown with unit names instead of symbols."""
    if options.wants_all_names and not options.has_abbr:
        return True, True
    abbr = options.abbr
    return abbr in ("off", "out", "none"), abbr in ("off", "in", "none")


def _input(measure: Quantity, options: Options, *, by_name: bool) -> str:
    """Returns the input as shown: ``6 feet 4 inches``, ``10–20 km``, ``1,150-mile``."""
    if measure.parts:
        hyphen = "-" if options.is_adjective and by_name else " " if by_name else NBSP
        gap = "-" if options.is_adjective and by_name else " "
        pieces = [
            f"{_written(number, options)}{hyphen}"
            f"{_unit_text(unit, options, by_name=by_name, is_singular=_is_one(number))}"
            for number, unit in measure.parts
        ]
        return gap.join(pieces)
    values = [_written(number, options) for number in measure.numbers]
    return _with_unit(
        values, measure.words, measure.unit, options, by_name=by_name, is_singular=_is_one(measure.numbers[-1])
    )


def _written(number: Number, options: Options) -> str:
    if options.spell in ("in", "In", "on", "On"):
        word = spell_number(number.value)
        if word:
            return word[0].upper() + word[1:] if options.spell[0].isupper() else word
    if options.comma in ("off", "gaps", "gap", "5"):
        group = number_form(options.lang).group
        digits = sum(character.isdecimal() for character in number.shown.partition(".")[0])
        if options.comma == "off" or (options.comma == "5" and digits < 5):
            return number.shown.replace(group, "")
        if options.comma.startswith("gap"):
            return number.shown.replace(group, "\u2009")
    return number.shown


def _is_one(number: Number) -> bool:
    return abs(number.value) == 1.0 or (number.denominator > 0 and abs(number.value) < 1.0)


def _with_unit(
    values: list[str],
    words: list[str],
    unit: Unit,
    options: Options,
    *,
    by_name: bool,
    is_singular: bool,
    output: bool = False,
) -> str:
    """Returns values with their unit: the unit after the last value, or after each in ``2 m × 3 m``."""
    by_name = by_name and not unit.is_symbol_only
    is_bare = options.has_values_only or options.is_number_only
    text = "" if is_bare else _unit_text(unit, options, by_name=by_name, is_singular=is_singular)
    gap = "" if is_bare else " " if by_name else NBSP
    if unit.multiple:
        if not by_name if output else options.abbr == "on":
            values = [value + exponent_text(str(unit.power)) for value in values]
        else:
            gap = f"{'-' if options.is_adjective else NBSP}{unit.multiple}{gap}"
    is_hyphenated = options.is_adjective and by_name and not options.has_values_only
    if is_hyphenated:
        text = text.replace(" ", "-")
        gap = gap.replace(" ", "-")
    before = options.before[1 if output else 0]
    if before:
        gap = " "
        text = before + text
    result = values[0]
    for word, value in zip(words, values[1:], strict=True):
        with_names, with_symbols, before_hyphen = table("ranges").get(word, (f" {word} ",) * 3)
        between = before_hyphen if is_hyphenated else with_names if by_name else with_symbols
        if word in UNIT_ON_EACH and not by_name and 0 < len(text) <= _LONGEST_REPEATED:
            result += gap + text
        if between == "–" and value.startswith(MINUS):
            between = " to "
        result += between + value
    if text.startswith("/"):
        gap = ""
    return f"{result}{gap}{text}"


def _unit_text(unit: Unit, options: Options, *, by_name: bool, is_singular: bool) -> str:
    if not by_name or unit.is_symbol_only:
        return unit.symbol_plural if unit.symbol_plural and not (is_singular and not unit.multiple) else unit.symbol
    name = unit.name if options.is_adjective or (is_singular and not unit.multiple) else unit.plural
    return unit.american(name) if options.is_american else name


def _output(measure: Quantity, units: tuple[Unit, ...], options: Options, *, by_name: bool) -> str:
    """Returns one converted measure: ``8.0 km``, ``5 ft 11 in``, ``3–6 mi``."""
    if measure.parts:
        source = measure.parts[-1][1]
        total = sum(abs(number.value) * unit.scale for number, unit in measure.parts) / source.scale
        sign = -1.0 if measure.parts[0][0].value < 0 else 1.0
        numbers = [measure.parts[-1][0]._replace(value=sign * total)]
    else:
        source = measure.unit
        numbers = measure.numbers
    smallest = units[-1]
    results = [_convert_value(number.value, source, smallest) for number in numbers]
    precision = options.precision
    if precision is None:
        precision = max(
            _default_precision(number, abs(result), source, smallest, is_composite=bool(measure.parts))
            for number, result in zip(numbers, results, strict=True)
        )
    if len(units) > 1:
        texts = [_split_output(result, units, precision, options, by_name=by_name) for result in results]
        joined = texts[0]
        for word, text in zip(measure.words, texts[1:], strict=True):
            joined += table("ranges").get(word, (f" {word} ",) * 3)[1] + text
        return joined
    values = [_rounded(result, precision, options) for result in results]
    if options.spell in ("on", "On", "out"):
        values = [spell_number(float(value)) or value if value.isdecimal() else value for value in values]
    is_singular = values[-1] == "1" or values[-1].rstrip("0") == "1."
    shown_values = [_signed(result, value, options) for result, value in zip(results, values, strict=True)]
    return _with_unit(
        shown_values, measure.words, smallest, options, by_name=by_name, is_singular=is_singular, output=True
    )


def _signed(result: float, value: str, options: Options) -> str:
    text = value if "⁄" in value or not value[:1].isdecimal() else group_digits(value, options.lang)
    if options.comma == "off":
        text = text.replace(number_form(options.lang).group, "")
    return MINUS + text if result < 0 and value.strip("0.") else text


def _rounded(result: float, precision: int, options: Options) -> str:
    value = abs(result)
    if not math.isfinite(value):
        return "∞"
    if options.fraction:
        return _as_fraction(value, options.fraction)
    if options.precision is None:
        if options.significant:
            return round_significant(value, options.significant)
        if options.round_to == 0.5:
            half = math.floor(2 * value + 0.5) / 2
            return f"{half:.0f}" if half == int(half) else f"{half:.1f}"
        if options.round_to:
            return f"{math.floor(value / options.round_to + 0.5) * options.round_to:.0f}"
    return round_digits(value, precision)


def _as_fraction(value: float, denominator: int) -> str:
    whole, top = divmod(math.floor(value * denominator + 0.5), denominator)
    if not top:
        return str(whole)
    divisor = math.gcd(top, denominator)
    fraction = f"{top // divisor}⁄{denominator // divisor}"
    return f"{whole}+{fraction}" if whole else fraction


def _split_output(result: float, units: tuple[Unit, ...], precision: int, options: Options, *, by_name: bool) -> str:
    """Returns a value in several units: ``6 ft 4 in``; only the last may have decimals."""
    decimals = max(precision, 0)
    rest = float(_rounded(result, decimals, options)) if not options.fraction else abs(result)
    pieces: list[str] = []
    hyphen = "-" if options.is_adjective and by_name else " " if by_name else NBSP
    for position, unit in enumerate(units):
        if position + 1 < len(units):
            factor = round(unit.scale / units[-1].scale)
            whole = math.floor(rest / factor + 1e-9)
            rest -= whole * factor
            if whole == 0 and not pieces:
                continue
            value = str(whole)
        elif options.fraction:
            value = _as_fraction(rest, options.fraction)
        else:
            value = round_digits(abs(rest), decimals)
        name = _unit_text(unit, options, by_name=by_name, is_singular=value == "1")
        pieces.append(f"{group_digits(value, options.lang) if '⁄' not in value else value}{hyphen}{name}")
    sign = MINUS if result < 0 else ""
    return sign + ("-" if options.is_adjective and by_name else " ").join(pieces)


def _convert_value(value: float, source: Unit, target: Unit) -> float:
    if source.offset is not None and target.offset is not None:
        return (value - source.offset) * (source.scale / target.scale) + target.offset
    if source.is_inverse != target.is_inverse:
        return 1.0 / (value * source.scale * target.scale) if value else 0.0
    return value * (source.scale / target.scale)


def _default_precision(number: Number, result: float, source: Unit, target: Unit, *, is_composite: bool) -> int:
    """Returns the number of decimals of a result, negative for rounding to tens and more.

    The result is as precise as the input, judging by the trailing zeros and decimals of the input, but has at least two
    significant digits; temperatures have three in kelvin.

    Source: default_precision in Module:Convert.
    """
    if number.denominator:
        precision = max(math.log10(number.denominator), 1.0)
    else:
        digits, _, exponent = number.clean.partition("e")
        whole, dot, decimals = digits.partition(".")
        if dot:
            precision = float(len(decimals))
        elif is_composite:
            precision = 0.0
        else:
            precision = float(len(whole.rstrip("0")) - len(whole))
        if exponent:
            precision -= int(exponent)
    value = number.value
    if source.offset is not None and target.offset is not None:
        kelvin = abs((value - source.offset) * source.scale)
        minimum = 2 if kelvin < 1e-8 else 2 - math.floor(math.log10(kelvin) + 1e-14)
        return max(math.floor(precision), minimum)
    if value == 0 or result <= 0 or not math.isfinite(result):
        return 0
    if target.more == "integer" and value == math.floor(value):
        adjust = -math.log10(source.scale)
    elif is_composite and source.more == "subunit":
        adjust = math.log10(target.scale) + 2
    else:
        adjust = math.log10(abs(value / result))
    minimum = 1 - math.floor(math.log10(result) + 1e-14)
    return max(math.floor(precision + adjust + math.log10(2)), minimum)
