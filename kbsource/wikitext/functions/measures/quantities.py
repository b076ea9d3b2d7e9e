"""Numbers with their surroundings: fractions, uncertainties, money, heights, ordinals, percentages."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbsource.wikitext.functions.arguments import (
    PageFacts,
    Template,
    argument,
    filled,
    padded,
    shown,
    stripped,
)
from kbsource.wikitext.functions.measures.numbers import (
    MINUS,
    NBSP,
    format_number,
    group_digits,
    parse_number,
    plain_minus,
    power_of_ten,
    raise_text,
    round_digits,
    round_significant,
    unformat_number,
)
from kbsource.wikitext.functions.measures.units import find_unit

_PLAIN_DIGITS = re.compile(r"(\D*)(\d+(?:\.\d+)?)(.*)", re.DOTALL)
_UNIT_POWER = re.compile(r"(?<=[^\W\d_Ωμ°])([-−]?\d)(?![\d])")


def formatnum(template: Template, page: PageFacts) -> str:
    """Gives a number with the digit groups of the language; ``|R`` takes them away, ``|NOSEP`` leaves them out."""
    value = argument(template, 1, "num", "number")
    mode = argument(template, 2).upper()
    if mode == "R":
        return unformat_number(value, page.lang)
    if mode == "NOSEP":
        return value
    return format_number(value, page.lang)


def plain_number(template: Template, page: PageFacts, *, position: int = 1) -> str:
    """Gives ``{{nts|1234}}`` and ``{{number|…}}``: the number with digit groups, other text as it is."""
    text = argument(template, position)
    number = parse_number(text, page.lang)
    before, after = template.named.get("prefix", ""), template.named.get("suffix", "")
    return f"{before}{number.shown if number is not None else text}{after}"


def number_with_unit(template: Template, page: PageFacts) -> str:
    """Gives a number in the language's form with the words behind it: ``{{unité|1000|km|2}}``, ``{{nombre|20|ans}}``.

    A number after a unit is its power (``{{unité|30|km||h|-1}}``); all else is shown in order.
    """
    values = stripped(template)
    if not values:
        return ""
    head = values[0]
    match = _PLAIN_DIGITS.match(head)
    text = format_number(_comma_to_dot(head, page.lang), page.lang) if match else head
    power = template.named.get("e", "")
    if power:
        text += power_of_ten(power)
    rest = values[1:]
    unit = ""
    position = 0
    while position < len(rest):
        name = rest[position]
        exponent = rest[position + 1] if position + 1 < len(rest) else ""
        if _is_power(exponent):
            if name:
                unit += ("⋅" if unit else "") + name + raise_text(plain_minus(exponent))
            position += 2
        elif name and exponent and not unit and len(rest) == 2:
            unit = f"{name} {exponent}"
            position += 2
        else:
            if name:
                unit += ("⋅" if unit else "") + name
            position += 1 if exponent else 2
    return f"{text}{NBSP}{unit}" if unit else text


def _is_power(text: str) -> bool:
    plain = plain_minus(text)
    return plain.removeprefix("-").isdecimal() and len(plain) <= 3


def _comma_to_dot(text: str, lang: str) -> str:
    """Gives ``8,37 m`` as ``8.37 m`` where a comma is the decimal mark of the language."""
    if lang == "en" or "," not in text or text.count(",") != 1:
        return text
    return re.sub(r"(\d),(\d)", r"\1.\2", text)


def fraction(template: Template, page: PageFacts) -> str:
    """Gives ``1⁄2``, ``3+1⁄2``, or ``1⁄x`` of one argument. Source: https://en.wikipedia.org/wiki/Template:Frac"""
    return _fraction(filled(template), "⁄") or "⁄"


def stacked_fraction(template: Template, page: PageFacts) -> str:
    """Gives ``a/b`` or ``n+a/b`` of ``{{sfrac}}``."""
    return _fraction([f"({value})" if " " in value else value for value in filled(template)], "/")


def _fraction(values: Sequence[str], bar: str) -> str:
    if len(values) >= 3:
        return f"{values[0]}+{values[1]}{bar}{values[2]}"
    if len(values) == 2:
        return f"{values[0]}{bar}{values[1]}"
    return f"1{bar}{values[0]}" if values else ""


def val(template: Template, page: PageFacts) -> str:
    """Gives a value with uncertainty, power of ten and unit: ``1.234(5)×10⁶ m/s``.

    Source: https://en.wikipedia.org/wiki/Template:Val
    """
    values = padded(template, 3)
    named = template.named
    text, uncertainty, lower = values[0], values[1], values[2]
    number = parse_number(text, page.lang)
    body = number.shown if number is not None else text
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
    power = power_of_ten(exponent) if exponent else ""
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


def scientific(template: Template, page: PageFacts) -> str:
    """Gives ``×10¹⁸``: ``{{e|18}}``."""
    return power_of_ten(argument(template, 1, default="0"))


def times_ten(template: Template, page: PageFacts) -> str:
    """Gives ``5.1×10⁹`` of value and exponent, with a unit where given: ``{{esp|5.1|9}}``."""
    values = filled(template)
    if len(values) < 2:
        return shown(template)
    unit = f"{NBSP}{values[2]}" if len(values) > 2 else ""
    return f"{_shown(values[0], page)}{power_of_ten(values[1])}{unit}"


def percentage(template: Template, page: PageFacts) -> str:
    """Gives ``37%`` of part, whole and decimals. Source: https://en.wikipedia.org/wiki/Template:Percentage"""
    values = padded(template, 3)
    part, whole = parse_number(values[0], page.lang), parse_number(values[1], page.lang)
    if part is None or whole is None or not whole.value:
        return shown(template)
    decimals = int(values[2]) if values[2].isdecimal() else 0
    result = 100.0 * part.value / whole.value
    digits = round_digits(abs(result), min(decimals, 12))
    return f"{MINUS if result < 0 else ''}{group_digits(digits, page.lang)}%"


def currency(template: Template, page: PageFacts, *, symbol: str, after: bool = False, space: bool = False) -> str:
    """Gives ``US$1,200``: the sign and the amount as given; the sign alone without one."""
    amount = argument(template, 1)
    if not amount:
        return symbol
    if page.lang not in ("en", "simple"):
        text = format_number(amount, page.lang)
    else:
        text = _shown(amount, page) if len(amount) > 4 and amount.isdecimal() else amount
    gap = NBSP if space or after else ""
    return f"{text}{gap}{symbol}" if after else f"{symbol}{gap}{text}"


_SCALES = {
    "k": "thousand",
    "l": "lakh",
    "m": "million",
    "c": "crore",
    "b": "billion",
    "t": "trillion",
    "lc": "lakh crore",
}


def scaled_currency(template: Template, page: PageFacts, *, symbol: str) -> str:
    """Gives ``₹5 crore`` of ``{{INRConvert|5|c}}``; what it is in dollars of that day would need rates."""
    scale = _SCALES.get(argument(template, 2).lower(), "")
    amount = currency(template, page, symbol=symbol)
    return f"{amount}{NBSP}{scale}" if scale else amount


def old_pounds(template: Template, page: PageFacts) -> str:
    """Gives ``£5 3s 2d`` of ``{{£sd|l=5|s=3|d=2}}``. Source: https://en.wikipedia.org/wiki/Template:%C2%A3sd"""
    signs = {"l": ("£", ""), "s": ("", "s"), "d": ("", "d")}
    values = ((template.named.get(key, ""), *around) for key, around in signs.items())
    return NBSP.join(f"{before}{value}{after}" for value, before, after in values if value) or shown(template)


_SIGNS = {
    "USD": "US$",
    "US": "US$",
    "GBP": "£",
    "UK": "£",
    "EUR": "€",
    "JPY": "¥",
    "CNY": "CN¥",
    "INR": "₹",
    "AUD": "A$",
    "CAD": "C$",
    "NZD": "NZ$",
    "HKD": "HK$",
    "KRW": "₩",
    "RUB": "₽",
    "CHF": "CHF",
    "BRL": "R$",
    "MXN": "Mex$",
    "PHP": "₱",
    "ILS": "₪",
    "TRY": "₺",
    "UAH": "₴",
    "NGN": "₦",
    "VND": "₫",
    "THB": "฿",
    "SGD": "S$",
    "ZAR": "R",
}


def money(template: Template, page: PageFacts) -> str:
    """Gives ``{{currency|1200|USD}}``: the sign of the code and the amount."""
    amount = argument(template, 1, "amount")
    code = argument(template, 2, "type", "currency", default="USD")
    number = parse_number(amount, page.lang)
    sign = _SIGNS.get(code.upper(), code)
    return f"{sign}{' ' if sign.isalpha() and len(sign) > 2 else ''}{number.shown if number is not None else amount}"


def price(template: Template, page: PageFacts) -> str:
    """Gives ``{{format price|3160384}}`` with digit groups, or in millions: ``$3.16 million``."""
    text = argument(template, 1)
    number = parse_number(text, page.lang)
    if number is None:
        return text
    digits = number.clean.partition(".")[0]
    for zeros, word in ((12, "trillion"), (9, "billion"), (6, "million")):
        if len(digits) > zeros:
            return f"{abs(number.value) / 10**zeros:.2f}{NBSP}{word}" if page.lang == "en" else number.shown
    return number.shown


def height(template: Template, page: PageFacts) -> str:
    """Gives ``1.83 m (6 ft 0 in)`` or ``6 ft 0 in (1.83 m)``. Source: https://en.wikipedia.org/wiki/Template:Height"""
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
        return " ".join(f"{value} {name}" for name, value in named.items() if value and value[0].isdecimal()) or shown(
            template
        )
    size = whole.value * 0.3048 + (rest.value * 0.0254 if rest is not None else 0.0)
    return f"{whole.shown}{NBSP}ft {inches}{NBSP}in ({size:.2f}{NBSP}m)"


def ordinal(template: Template, page: PageFacts) -> str:
    """Gives ``1st``, ``22nd``, ``13th``."""
    text = argument(template, 1)
    if not text.isdecimal():
        return text
    number = int(text)
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{group_digits(text, page.lang)}{ending}"


def rail_gauge(template: Template, page: PageFacts) -> str:
    """Gives a track gauge in millimetres and in feet and inches. Source: https://en.wikipedia.org/wiki/Template:Track_gauge"""
    code = argument(template, 1)
    plain = code.replace(" ", "").replace(",", "").lower()
    known = _GAUGES.get(plain)
    if known is None:
        number = parse_number(plain.removesuffix("mm"), page.lang)
        if number is None:
            return code
        inches = number.value / 25.4
        whole = int(inches // 12)
        known = f"{number.shown}{NBSP}mm", f"{whole}{NBSP}ft {inches - 12 * whole:.1f}".removesuffix(".0") + f"{NBSP}in"
    first, second = known if plain.endswith("mm") or plain[:1].isalpha() else (known[1], known[0])
    return first if template.named.get("disp") == "1" else f"{first} ({second})"


_STANDARD = (f"1,435{NBSP}mm", f"4{NBSP}ft 8+1⁄2{NBSP}in")
_CAPE = (f"1,067{NBSP}mm", f"3{NBSP}ft 6{NBSP}in")
_METRE = (f"1,000{NBSP}mm", f"3{NBSP}ft 3+3⁄8{NBSP}in")
_IBERIAN = (f"1,668{NBSP}mm", f"5{NBSP}ft 5+21⁄32{NBSP}in")
_RUSSIAN = (f"1,520{NBSP}mm", f"4{NBSP}ft 11+27⁄32{NBSP}in")
_BROAD = (f"1,676{NBSP}mm", f"5{NBSP}ft 6{NBSP}in")
_IRISH = (f"1,600{NBSP}mm", f"5{NBSP}ft 3{NBSP}in")
_NARROW = (f"914{NBSP}mm", f"3{NBSP}ft")
_GAUGES = {
    "1435mm": _STANDARD,
    "standard": _STANDARD,
    "sg": _STANDARD,
    "4ft8.5in": _STANDARD,
    "1067mm": _CAPE,
    "42": _CAPE,
    "3ft6in": _CAPE,
    "1000mm": _METRE,
    "metre": _METRE,
    "metregauge": _METRE,
    "1668mm": _IBERIAN,
    "1520mm": _RUSSIAN,
    "russian": _RUSSIAN,
    "1676mm": _BROAD,
    "5ft6in": _BROAD,
    "1600mm": _IRISH,
    "5ft3in": _IRISH,
    "914mm": _NARROW,
    "3ft": _NARROW,
}


def population_density(template: Template, page: PageFacts) -> str:
    """Gives ``5.7/km² (15/sq mi)`` of inhabitants, area, its unit and another: ``{{pop density|900|157|km2|sqmi}}``."""
    values = padded(template, 5)
    people, area = parse_number(values[0], page.lang), parse_number(values[1], page.lang)
    unit, other = find_unit(values[2] or "km2"), find_unit(values[3]) if values[3] else None
    if people is None or area is None or unit is None or not area.value:
        return shown(template)
    wish = template.named.get("prec", "")
    decimals = int(wish) if wish.isdecimal() and len(wish) == 1 else None
    in_units = [(area.value, unit)]
    if other is not None and other.kind == unit.kind:
        in_units.append((area.value * unit.scale / other.scale, other))
    texts = []
    for size, one in in_units:
        value = abs(people.value / size)
        digits = round_significant(value, 2) if decimals is None else round_digits(value, decimals)
        texts.append(f"{group_digits(digits, page.lang)}/{one.symbol}")
    return f"{texts[0]} ({texts[1]})" if len(texts) > 1 else texts[0]


def significant(template: Template, page: PageFacts) -> str:
    """Gives a number rounded to so many significant digits."""
    values = padded(template, 2)
    number = parse_number(values[0], page.lang)
    if number is None or not values[1].isdecimal() or len(values[1]) > 2:
        return values[0]
    digits = round_significant(abs(number.value), int(values[1]))
    return f"{MINUS if number.value < 0 else ''}{group_digits(digits, page.lang)}"
