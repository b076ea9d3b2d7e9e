"""Numbers with their context: fractions, uncertainties, money, heights, ordinals, percentages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from kbsource.numerals import read_int
from kbsource.wikitext.functions.arguments import PageFacts, Template, table, wikitext_link
from kbsource.wikitext.functions.numbers import (
    MINUS,
    NBSP,
    exponent_text,
    format_number,
    group_digits,
    local_digits,
    number_form,
    parse_number,
    plain_minus,
    raise_text,
    round_digits,
    round_significant,
    unformat_number,
)
from kbsource.wikitext.functions.units import find_unit

_PLAIN_DIGITS = re.compile(r"(\D*)(\d+(?:\.\d+)?)(.*)", re.DOTALL)
_UNIT_POWER = re.compile(r"(?<=[^\W\d_Ωμ°])([-−]?\d)(?![\d])")


def formatnum(template: Template, page: PageFacts) -> str:
    """Returns a number with the digit groups of the language; ``|R`` removes them, ``|NOSEP`` leaves them out.

    ``|LOSSLESS`` leaves a number unchanged if MediaWiki's precision is too low for it.
    """
    value = template.argument(1, "num", "number")
    modes = [mode.upper() for mode in template.stripped()[1:]]
    if "LOSSLESS" in modes and format_number(value, "en").replace(",", "") != value:
        return value
    if "R" in modes[:1]:
        return unformat_number(value, page.lang)
    if "NOSEP" in modes[:1]:
        return local_digits(value, page.lang)
    return format_number(value, page.lang)


def plain_number(template: Template, page: PageFacts) -> str:
    """Returns the number of ``{{nts|1234}}`` and ``{{number|…}}`` with digit groups; other text unchanged."""
    before, after = template.named.get("prefix", ""), template.named.get("suffix", "")
    return f"{before}{_shown(template.argument(1), page)}{after}"


_FOUR_DIGITS = re.compile(r"\A(\W?[0-9])([0-9]{3})(?![0-9])")


_BETWEEN = frozenset(("à", "et", "ou", "-", "–", "x", "×"))


def number_with_unit(template: Template, page: PageFacts, *, groups_four: bool = False) -> str:
    """Returns a number in the language's form with the words after it: ``{{unité|1000|km|2}}``, ``{{nombre|20|ans}}``.

    A number after a unit is its power (``{{unité|30|km||h|-1}}``); everything else is shown in order. ``groups_four``:
    four digits are grouped too.
    """
    values = template.stripped()
    if not values:
        return ""
    head = values[0]
    text = head
    if _PLAIN_DIGITS.match(head):
        # 8,37 is 8.37 if the language has a decimal comma.
        has_comma = page.lang != "en" and head.count(",") == 1
        text = format_number(re.sub(r"(\d),(\d)", r"\1.\2", head) if has_comma else head, page.lang)
        if groups_four:
            text = _FOUR_DIGITS.sub(rf"\1{number_form(page.lang).group}\2", text)
    power = template.named.get("e", "")
    if power:
        text += exponent_text(power)
    rest = values[1:]
    if len(rest) > 1 and rest[0] in _BETWEEN and _PLAIN_DIGITS.match(rest[1]):  # {{unité|5|à|10|m}}
        sign, rest = rest[0], [rest[1], *rest[2:]]
        between = "–" if sign in "-–" else f"{NBSP}×{NBSP}" if sign in "x×" else f" {sign} "
        return f"{text}{between}{number_with_unit(template._replace(positional=tuple(rest)), page)}"
    unit = ""
    position = 0
    while position < len(rest):
        name = rest[position]
        exponent = rest[position + 1] if position + 1 < len(rest) else ""
        plain = plain_minus(exponent)
        if plain.removeprefix("-").isdecimal() and len(plain) <= 3:
            if name:
                unit += ("⋅" if unit else "") + name + raise_text(plain)
            position += 2
        elif name and exponent and not unit and len(rest) == 2:
            unit = f"{name} {exponent}"
            position += 2
        else:
            if name:
                unit += ("⋅" if unit else "") + name
            position += 1 if exponent else 2
    return f"{text}{NBSP}{unit}" if unit else text


def fraction(template: Template, page: PageFacts) -> str:
    """Returns ``1⁄2``, ``3+1⁄2``, or ``1⁄x`` for one argument. Source: https://en.wikipedia.org/wiki/Template:Frac"""
    return _fraction(template.filled(), "⁄") or "⁄"


def stacked_fraction(template: Template, page: PageFacts) -> str:
    """Returns ``a/b`` or ``n+a/b`` for ``{{sfrac}}``."""
    return _fraction([f"({value})" if " " in value else value for value in template.filled()], "/")


def _fraction(values: Sequence[str], bar: str) -> str:
    if len(values) >= 3:
        return f"{values[0]}+{values[1]}{bar}{values[2]}"
    if len(values) == 2:
        return f"{values[0]}{bar}{values[1]}"
    return f"1{bar}{values[0]}" if values else ""


def val(template: Template, page: PageFacts) -> str:
    """Returns a value with uncertainty, power of ten and unit: ``1.234(5)×10⁶ m/s``.

    Source: https://en.wikipedia.org/wiki/Template:Val
    """
    values = template.padded(3)
    named = template.named
    text, uncertainty, lower = values[0], values[1], values[2]
    body = _shown(text, page)
    end = named.get("end", "")
    spread = ""
    if uncertainty.startswith("("):
        spread = uncertainty
    elif uncertainty and lower:
        up, down = plain_minus(uncertainty).lstrip("+"), plain_minus(lower).lstrip("-")
        spread = f"+{_shown(up, page)}{MINUS}{_shown(down, page)}"
    elif uncertainty and uncertainty.startswith("-") is False:
        spread = f"±{_shown(uncertainty.lstrip('+'), page)}"
    elif uncertainty:
        spread = uncertainty
    more = [value for value in template.positional[3:] if value.strip()]
    exponent = named.get("e", "")
    power = exponent_text(exponent) if exponent else ""
    if spread.startswith(("±", "+")) and (power or named.get("u") or named.get("ul")):
        body = f"({body}{spread})" if power else f"{body}{spread}"
    else:
        body += spread
    before = named.get("p", "")
    unit = _unit_symbol(named.get("u", "") or named.get("ul", ""))
    per = _unit_symbol(named.get("up", "") or named.get("upl", ""))
    text = f"{before}{body}{''.join(more)}{power}{end}{named.get('s', '')}"
    if per:
        unit = f"{unit}/{per}" if unit else f"/{per}"
    if not unit:
        return text
    return f"{text}{'' if unit.startswith(('%', '°', '′', '″')) and unit not in ('°C', '°F') else NBSP}{unit}"


def _shown(text: str, page: PageFacts) -> str:
    number = parse_number(text, page.lang)
    return number.shown if number is not None else text


def _unit_symbol(code: str) -> str:
    if not code:
        return ""
    unit = find_unit(code)
    if unit is not None and code not in ("a", "c", "ch", "h", "b"):
        return unit.symbol
    return _UNIT_POWER.sub(lambda found: raise_text(plain_minus(found.group(1))), code)


def times_ten(template: Template, page: PageFacts) -> str:
    """Returns ``5.1×10⁹`` from value and exponent, with a unit if given: ``{{esp|5.1|9}}``."""
    values = template.filled()
    if len(values) < 2:
        return template.shown()
    unit = f"{NBSP}{values[2]}" if len(values) > 2 else ""
    return f"{_shown(values[0], page)}{exponent_text(values[1])}{unit}"


def percentage(template: Template, page: PageFacts) -> str:
    """Returns ``37%`` from part, whole and decimals. Source: https://en.wikipedia.org/wiki/Template:Percentage"""
    values = template.padded(3)
    part, whole = parse_number(values[0], page.lang), parse_number(values[1], page.lang)
    if part is None or whole is None or not whole.value:
        return template.shown()
    decimals = max(read_int(values[2]) or 0, 0)
    result = 100.0 * part.value / whole.value
    digits = round_digits(abs(result), min(decimals, 12))
    return f"{MINUS if result < 0 else ''}{group_digits(digits, page.lang)}%"


def currency(template: Template, page: PageFacts, *, symbol: str, after: bool = False, space: bool = False) -> str:
    """Returns ``US$1,200``: the sign and the amount as given; only the sign if there is no amount."""
    amount = template.argument(1)
    if not amount:
        return symbol
    if page.lang not in ("en", "simple"):
        text = format_number(amount, page.lang)
    else:
        text = _shown(amount, page) if len(amount) > 4 and amount.isdecimal() else amount
    gap = NBSP if space or after else ""
    return f"{text}{gap}{symbol}" if after else f"{symbol}{gap}{text}"


def money(template: Template, page: PageFacts) -> str:
    """Returns the sign of the currency code and the amount: ``{{currency|1200|USD}}``."""
    amount = template.argument(1, "amount")
    code = template.argument(2, "type", "currency", default="USD")
    sign = table("currency_signs").get(code.upper(), code)
    return f"{sign}{' ' if sign.isalpha() and len(sign) > 2 else ''}{_shown(amount, page)}"


def price(template: Template, page: PageFacts) -> str:
    """Returns ``{{format price|3160384}}`` with digit groups, or in millions: ``$3.16 million``."""
    text = template.argument(1)
    number = parse_number(text, page.lang)
    if number is None:
        return text
    digits = number.clean.partition(".")[0]
    for zeros, word in ((12, "trillion"), (9, "billion"), (6, "million")):
        if len(digits) > zeros:
            return f"{abs(number.value) / 10**zeros:.2f}{NBSP}{word}" if page.lang == "en" else number.shown
    return number.shown


def height(template: Template, page: PageFacts) -> str:
    """Returns ``1.83 m (6 ft 0 in)`` or ``6 ft 0 in (1.83 m)``. Source:
    https://en.wikipedia.org/wiki/Template:Height
    """
    named = template.named
    metres, feet = named.get("m", ""), named.get("ft", "")
    centimetres, inches = named.get("cm", ""), named.get("in", "0") or "0"
    number = parse_number(metres or centimetres, page.lang)
    if number is not None:
        metric = f"{number.shown}{NBSP}{'m' if metres else 'cm'}"
        total = round(number.value * (1.0 if metres else 0.01) / 0.0254)
        return f"{metric} ({total // 12}{NBSP}ft {total % 12}{NBSP}in)"
    whole, rest = parse_number(feet, page.lang), parse_number(inches, page.lang)
    if whole is None:
        measures = [f"{value} {name}" for name, value in named.items() if value and value[0].isdecimal()]
        return " ".join(measures) or template.shown()
    size = whole.value * 0.3048 + (rest.value * 0.0254 if rest is not None else 0.0)
    return f"{whole.shown}{NBSP}ft {inches}{NBSP}in ({size:.2f}{NBSP}m)"


def ordinal(template: Template, page: PageFacts) -> str:
    """Returns ``1st``, ``22nd``, ``13th``."""
    text = template.argument(1)
    if not text.isdecimal():
        return text
    number = int(text[-2:])
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{group_digits(text, page.lang)}{ending}"


def rail_gauge(template: Template, page: PageFacts) -> str:
    """Returns a track gauge in millimetres and in feet and inches. Source:
    https://en.wikipedia.org/wiki/Template:Track_gauge
    """
    code = template.argument(1)
    plain = code.replace(" ", "").replace(",", "").lower()
    known = table("gauges").get(plain)
    if known is None:
        number = parse_number(plain.removesuffix("mm"), page.lang)
        if number is None:
            return code
        inches = number.value / 25.4
        whole = int(inches // 12)
        known = f"{number.shown}{NBSP}mm", f"{whole}{NBSP}ft {inches - 12 * whole:.1f}".removesuffix(".0") + f"{NBSP}in"
    first, second = known if plain.endswith("mm") or plain[:1].isalpha() else (known[1], known[0])
    return first if template.named.get("disp") == "1" else f"{first} ({second})"


def population_density(template: Template, page: PageFacts) -> str:
    """Returns ``5.7/km² (15/sq mi)`` from inhabitants, area, its unit and another unit: ``{{pop
    density|900|157|km2|sqmi}}``.
    """
    values = template.padded(5)
    people, area = parse_number(values[0], page.lang), parse_number(values[1], page.lang)
    unit, other = find_unit(values[2] or "km2"), find_unit(values[3]) if values[3] else None
    if people is None or area is None or unit is None or not area.value:
        return template.shown()
    wish = template.named.get("prec", "")
    decimals = read_int(wish) if len(wish) == 1 else None
    in_units = [(area.value, unit)]
    if other is not None and other.kind == unit.kind:
        in_units.append((area.value * unit.scale / other.scale, other))
    texts = []
    for size, area_unit in in_units:
        value = abs(people.value / size)
        digits = round_significant(value, 2) if decimals is None else round_digits(value, decimals)
        texts.append(f"{group_digits(digits, page.lang)}/{area_unit.symbol}")
    return f"{texts[0]} ({texts[1]})" if len(texts) > 1 else texts[0]


def significant(template: Template, page: PageFacts) -> str:
    """Returns a number rounded to a number of significant digits."""
    values = template.padded(2)
    number = parse_number(values[0], page.lang)
    n_digits = read_int(values[1], 2)
    if number is None or n_digits is None or n_digits < 0:
        return values[0]
    digits = round_significant(abs(number.value), n_digits)
    return f"{MINUS if number.value < 0 else ''}{group_digits(digits, page.lang)}"


_CHARGE = re.compile(r"([0-9]*)([+\-−–])")
_CHEM2_CHARGE = re.compile(r"(?:\((\d*[+-])\)|(?<=[A-Za-z\d\])])(\d?[+-]))(?=$|[\s\])])")


@cache
def _atomic_numbers() -> dict[str, int]:
    return {symbol: number for number, symbol in enumerate(table("elements", "symbols").values(), 1)}


def _element(name: str) -> str:
    """Returns the symbol of an element by its English name; other text unchanged."""
    symbols: dict[str, str] = table("other_elements", "symbols") | table("elements", "symbols")
    return symbols.get(name.lower(), name)


def formula(template: Template, page: PageFacts) -> str:
    """Returns a formula of ``{{chem|H|2|O}}``, one argument after the other: charges raised, numbers on the line (H2O).

    Source: https://en.wikipedia.org/wiki/Template:Chem
    """
    pieces: list[str] = []
    values = template.stripped()
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
    """Returns a formula written as one argument: ``{{chem2|Fe2(SO4)3}}``, ``{{chem2|SO4(2-)}}``."""
    text = template.argument(1, "formula")
    text = plain_minus(text).replace("*", "·").replace("->", "→")
    if "[[" in text:
        return text
    return _CHEM2_CHARGE.sub(lambda found: raise_text(found.group(1) or found.group(2)), text)


def isotope(template: Template, page: PageFacts) -> str:
    """Returns ``⁷Li`` from an element by name or symbol and its mass number."""
    values = template.filled()
    if not values:
        return ""
    charge = raise_text(plain_minus(template.named.get("charge", "")))
    element = _element(values[0])
    mass = raise_text(values[1]) if len(values) > 1 else ""
    text = f"{mass}{element}{charge}"
    is_linked = template.named.get("link", "").lower() in ("y", "yes")
    return wikitext_link(f"{values[0]}-{values[1]}".capitalize(), text) if is_linked and len(values) > 1 else text


def element_symbol(template: Template, page: PageFacts) -> str:
    """Returns ``²³⁸92U`` from mass number, atomic number and symbol, in this or the other order."""
    values = template.filled()
    numbers = [value for value in values if value.isdecimal()]
    symbols = [value for value in values if not value.isdecimal()]
    if not symbols:
        return template.shown()
    symbol = _element(symbols[0])
    numbers.sort(key=lambda number: read_int(number) or 0, reverse=True)
    low = numbers[1] if len(numbers) > 1 else str(_atomic_numbers().get(symbol, ""))
    return f"{raise_text(numbers[0]) if numbers else ''}{low}{symbol}"


def particle(template: Template, page: PageFacts) -> str:
    """Returns the symbol of a particle: ``{{subatomic particle|electron}}`` -> e⁻."""
    name = template.argument(1)
    text = table("particles", "symbols").get(name.lower(), name)
    return (
        wikitext_link(name.rstrip("+-0").capitalize(), text) if template.named.get("link", "") in ("y", "yes") else text
    )


def music(template: Template, page: PageFacts) -> str:
    """Returns the symbol of ``{{music|flat}}``, a time signature as ``3/4``, and other text as written."""
    values = template.filled()
    if not values:
        return ""
    if values[0] == "time" and len(values) > 2:
        return f"{values[1]}/{values[2]}"
    if values[0] in ("chord", "scale") and len(values) > 1:
        return values[1]
    sign: str = table("music", "symbols").get(values[0].lower().replace("-", ""), values[0])
    return sign + "".join(values[1:])


def square_root(template: Template, page: PageFacts) -> str:
    """Returns ``√2``, ``³√2``."""
    values = template.padded(2)
    value = values[0] if len(values[0]) <= 1 or values[0].isalnum() else f"({values[0]})"
    return f"{raise_text(values[1])}√{value}"


def formula_text(template: Template, page: PageFacts) -> str:
    """Returns the content of ``{{math|…}}``; the argument ``1=`` is used if the formula contains an equals sign."""
    return "".join(value.strip("\n") for value in template.positional) or template.argument(0, "1", "big")
