"""Numbers as templates read and write them: parsing, digit groups per language, rounding, superscript digits."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

from kbsource.wikitext.functions.arguments import read_rules
from kbsource.wikitext.markers import CUT

NBSP = "\u00a0"
MINUS = "\u2212"

_SUPERSCRIPTS = str.maketrans("0123456789+-−=()nixy", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱˣʸ")
_RAISABLE = frozenset("0123456789+-−=()nixy")

_VULGAR = {
    text[0]: (int(text[1]), int(text[3]))
    for text in "½1/2 ⅓1/3 ⅔2/3 ¼1/4 ¾3/4 ⅕1/5 ⅖2/5 ⅗3/5 ⅘4/5 ⅙1/6 ⅚5/6 ⅛1/8 ⅜3/8 ⅝5/8 ⅞7/8".split()
}

_SPACES_AND_MARKS = str.maketrans({NBSP: None, "\u202f": None, "\u2009": None, " ": None, ",": None, "'": None})
# White space, and the markers that the parser leaves where it cut a reference or a comment.
_BLANKS = " \t\n\u00a0\u2009\u202f\x01\x02"
_LONGEST = 48  # in characters; no number in an article is longer
_EXACT_DIGITS = 15  # of a float
_LARGEST = 1e80  # more than the number of atoms; keeps every conversion within floats
_PLAIN = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3}))?")
_FRACTION = re.compile(r"([+-]?)(?:(\d+)(?:[ +]|-)?)??(\d+) ?(?:/{1,2}|⁄) ?(\d+)")
_DIGIT_RUN = re.compile(r"(?<![\d.])(-?)(\d+(?:\.\d*)?)([eE][+-]?\d{1,3})?")
_BLANK_GROUPS = str.maketrans({NBSP: None, "\u202f": None})


class Number(NamedTuple):
    """A number as written."""

    value: float  #: the number
    clean: str  #: digits without sign and separators, ``1250.50`` or ``1.2e6``, which determine the precision
    shown: str  #: as shown, with digit groups and a true minus sign
    denominator: int = 0  #: denominator of a written fraction; otherwise 0


class NumberForm(NamedTuple):
    """How a language writes numbers; see rules/numbers.toml."""

    group: str  #: separator between groups of digits
    decimal: str  #: decimal mark
    minimum: int  #: minimum number of digits for using groups
    size: int  #: size of all groups but the last, which has three digits
    native: dict[int, int]  #: native digits, for ``str.translate``
    plain: dict[int, int]  #: plain digits for native ones, for ``str.translate``


_ENGLISH = NumberForm(",", ".", 4, 3, {}, {})


@cache
def _number_forms() -> dict[str, NumberForm]:
    forms: dict[str, NumberForm] = {}
    for row in read_rules("numbers")["format"]:
        digits = row.get("digits", "")
        native, plain = (
            (str.maketrans("0123456789", digits), str.maketrans(digits, "0123456789")) if digits else ({}, {})
        )
        form = NumberForm(row["group"], row["decimal"], row.get("minimum", 4), row.get("size", 3), native, plain)
        forms |= dict.fromkeys(row["langs"].split(), form)
    return forms


def number_form(lang: str) -> NumberForm:
    """Returns how a language writes numbers; unknown languages are treated like English."""
    forms = _number_forms()
    return forms.get(lang) or forms.get(lang.split("-", 1)[0]) or _ENGLISH


def group_digits(digits: str, lang: str = "en") -> str:
    """Returns unsigned plain digits (``1234567.5``) with a language's digits, digit groups and decimal mark.

    >>> group_digits("1234567.5", "de"), group_digits("1234567", "hi")
    ('1.234.567,5', '12,34,567')
    """
    whole, dot, decimals = digits.partition(".")
    group, mark, minimum, size, native, _ = number_form(lang)
    if len(whole) >= minimum and len(whole) > 3:
        parts = [whole[max(end - size, 0) : end] for end in range(len(whole) - 3, 0, -size)]
        whole = group.join((*reversed(parts), whole[-3:]))
    text = f"{whole}{mark}{decimals}" if dot else whole
    return text.translate(native) if native else text


def local_digits(text: str, lang: str) -> str:
    """Returns a text with the digits of a language."""
    native = number_form(lang).native
    return text.translate(native) if native else text


def format_number(text: str, lang: str) -> str:
    """Returns a text with its plain numbers in the language's form, as ``{{formatnum:}}`` does; other text is
    unchanged.
    """
    return _DIGIT_RUN.sub(lambda found: _formatted(found, lang), text)


def _formatted(found: re.Match[str], lang: str) -> str:
    sign, digits, exponent = found.groups()
    if exponent or len(digits) > _EXACT_DIGITS:  # a float: only the first 17 digits count
        value = float(digits + (exponent or ""))
        if value > _LARGEST:
            return found[0]
        places = 3 if exponent else len(digits.partition(".")[2])
        rounded = f"{Decimal(repr(value)):.{places}f}"
        digits = rounded.rstrip("0").rstrip(".") if exponent and places else rounded
    return (MINUS if sign else "") + group_digits(digits, lang)


def unformat_number(text: str, lang: str) -> str:
    """Returns a formatted number as plain digits: the ``R`` form of ``{{formatnum:}}``."""
    group, mark, _, _, _, plain = number_form(lang)
    text = text.replace(MINUS, "-").replace("&nbsp;", "").translate(_BLANK_GROUPS)
    return text.translate(plain).replace(group, "").replace(mark, ".").replace(",", "")


def plain_minus(text: str) -> str:
    """Returns a text with all minus signs and minus entities as ``-`` and space entities as spaces."""
    if "&" in text:
        text = text.replace("&minus;", "-").replace("&#8722;", "-").replace("&nbsp;", " ").replace("&thinsp;", "")
        text = text.replace("&#160;", " ").replace("&frasl;", "/").replace("&frac12;", "½").replace("&plus;", "+")
    return text.replace(MINUS, "-") if not text.isascii() else text


def parse_number(text: str, lang: str = "en") -> Number | None:
    """Returns the number in an argument; None if the argument is anything but one number.

    Supported forms: ``1,250.5``, ``−3``, ``1.2e6``, ``1/2``, ``2+1/2``, ``2-1/2``, ``½``, ``2½``. Digit groups with a
    comma are read by English rules in every language, because templates expect plain numbers.
    """
    return _parse_number(text, lang) if len(text) <= 2 * _LONGEST else None


@lru_cache(maxsize=1 << 14)
def _parse_number(text: str, lang: str) -> Number | None:
    plain = plain_minus(text).strip(_BLANKS)
    if not plain or len(plain) > _LONGEST:
        return None
    match = _PLAIN.fullmatch(plain) or _PLAIN.fullmatch(plain.translate(_SPACES_AND_MARKS))
    if match:
        sign, digits, exponent = match.groups()
        digits = ("0" + digits if digits[0] == "." else digits).rstrip(".")
        value = float(digits + ("e" + exponent if exponent else ""))
        if value > _LARGEST:
            return None
        shown = group_digits(digits, lang)
        clean = digits
        if exponent:
            clean = f"{digits}e{int(exponent)}"
            shown += exponent_text(str(int(exponent)))
        return Number(-value, clean, MINUS + shown) if sign == "-" else Number(value, clean, sign + shown)
    if plain[-1] in _VULGAR and (len(plain) == 1 or plain[:-1].strip().isdecimal()):
        numerator, denominator = _VULGAR[plain[-1]]
        whole = plain[:-1].strip()
        return Number(int(whole or 0) + numerator / denominator, whole or "0", plain, denominator)
    match = _FRACTION.fullmatch(" ".join(plain.replace(CUT, " ").split()) if CUT in plain else plain)
    if match and int(match.group(4)):
        sign, whole, top, bottom = match.groups()
        value = int(whole or 0) + int(top) / int(bottom)
        shown = f"{group_digits(whole, lang)}+{top}⁄{bottom}" if whole else f"{top}⁄{bottom}"
        if sign == "-":
            value, shown = -value, MINUS + shown
        return Number(value, whole or "0", shown, int(bottom))
    return None


def round_digits(value: float, precision: int) -> str:
    """Returns a non-negative value as digits, rounded to ``precision`` decimals; negative precision rounds to tens,
    hundreds.

    A tiny amount is added first, so that values that have no exact binary form are rounded as people expect.

    Source: cvtround in https://en.wikipedia.org/wiki/Module:Convert
    """
    if precision >= 0:
        return f"{value + 2e-14 if precision <= 8 else value:.{min(precision, 60)}f}"
    shift = 10.0 ** min(-precision, 300)
    digits = f"{value / shift:.0f}"
    return digits + "0" * min(-precision, 300) if digits != "0" else "0"


def round_significant(value: float, digits: int) -> str:
    """Returns a non-negative value as plain digits with ``digits`` significant digits."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{max(digits, 1) - 1}e}".partition("e")[2])
    return round_digits(value, digits - 1 - exponent)


def raise_text(text: str) -> str:
    """Returns a text in superscript characters if all its characters have one, else the text itself."""
    return text.translate(_SUPERSCRIPTS) if text and _RAISABLE.issuperset(text) else text


def exponent_text(exponent: str) -> str:
    """Returns ``×10`` with a superscript exponent."""
    return f"×10{raise_text(plain_minus(exponent).strip())}"


_ROMAN = ((1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
          (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))  # fmt: skip


def roman_numeral(number: int) -> str:
    """Returns a number in Roman numerals; in digits if it cannot be written so (0, 10,001 and above)."""
    if not 0 < number <= 10_000:
        return str(number)
    pieces: list[str] = []
    for value, sign in _ROMAN:
        count, number = divmod(number, value)
        pieces.append(sign * count)
    return "".join(pieces)


_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_FRACTIONS = {0.5: "one-half", 0.25: "one-quarter", 0.75: "three-quarters"}
_LARGE = (
    (1_000_000_000, "billion", " "),
    (1_000_000, "million", " "),
    (1000, "thousand", " "),
    (100, "hundred", " and "),
)


def spell_number(value: float) -> str:
    """Returns a number in English words; empty if it has no short words (most fractions, 10¹² and above)."""
    if value in _FRACTIONS:
        return _FRACTIONS[value]
    if value != int(value) or abs(value) >= 1e12:
        return ""
    number = int(value)
    return f"negative {_in_words(-number)}" if number < 0 else _in_words(number)


def _in_words(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens]}-{_SMALL[ones]}" if ones else _TENS[tens]
    size, word, joint = next(large for large in _LARGE if number >= large[0])
    head, rest = divmod(number, size)
    text = f"{_in_words(head)} {word}"
    return f"{text}{joint}{_in_words(rest)}" if rest else text


_TOKEN = re.compile(r"[ \t\r\n]*+(?:([0-9.]+)|([A-Za-z]+)|(<=|>=|<>|!=|[-+*/^()<>=]))[ \t\r\n]*+")
_LEADING_NUMBER = re.compile(r"[0-9]*\.?[0-9]*")
_MOST_WAITING = 100  # operands or operators, as in MediaWiki
_MAX_LENGTH = 2000  # in tokens; an article's expressions have a few dozen
_BINARY: dict[str, tuple[int, Callable[[float, float], float]]] = {
    "e": (10, lambda left, right: left * _power(10.0, right)),
    "^": (8, lambda left, right: _power(left, right)),
    "*": (7, operator.mul),
    "/": (7, operator.truediv),
    "div": (7, operator.truediv),
    "mod": (7, lambda left, right: int(math.fmod(int(left), int(right)))),
    "fmod": (7, math.fmod),
    "+": (6, operator.add),
    "-": (6, operator.sub),
    "round": (5, lambda left, right: _round(left, int(right))),
    "=": (4, lambda left, right: int(left == right)),
    "!=": (4, lambda left, right: int(left != right)),
    "<>": (4, lambda left, right: int(left != right)),
    "<": (4, lambda left, right: int(left < right)),
    ">": (4, lambda left, right: int(left > right)),
    "<=": (4, lambda left, right: int(left <= right)),
    ">=": (4, lambda left, right: int(left >= right)),
    "and": (3, lambda left, right: int(bool(left) and bool(right))),
    "or": (2, lambda left, right: int(bool(left) or bool(right))),
}
_UNARY: dict[str, tuple[int, Callable[[float], float]]] = {
    "-": (10, operator.neg),
    "+": (10, operator.pos),
    "not": (9, lambda value: int(not value)),
    "abs": (9, abs),
    "ceil": (9, lambda value: float(math.ceil(value)) if math.isfinite(value) else value),
    "floor": (9, lambda value: float(math.floor(value)) if math.isfinite(value) else value),
    "trunc": (9, lambda value: math.trunc(value) if abs(value) < _LARGEST_INTEGER else value),
    "sqrt": (9, math.sqrt),
    "exp": (9, lambda value: _power(math.e, value) if abs(value) > 700 else math.exp(value)),
    "ln": (9, math.log),
    "sin": (9, math.sin),
    "cos": (9, math.cos),
    "tan": (9, math.tan),
    "asin": (9, math.asin),
    "acos": (9, math.acos),
    "atan": (9, math.atan),
}
_LARGEST_INTEGER = 2**63
_CONSTANTS = {"pi": math.pi, "e": math.e}


def _power(base: float, exponent: float) -> float:
    """Returns a power as in PHP: a result that is too large is infinite, and a result that is not real is NaN."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        is_negative = base < 0 and exponent % 2 == 1
        return -math.inf if is_negative else math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def _round(value: float, digits: int) -> float:
    scale = 10.0 ** max(min(digits, 20), -20)
    return math.copysign(math.floor(abs(value) * scale + 0.5 + 1e-12), value) / scale


def expression_value(text: str) -> float | None:
    """Returns the value of an expression, which may be infinite or NaN; None if the text is not an expression.

    Source: ExprParser of MediaWiki's ParserFunctions.
    """
    for written, sign in (("&lt;", "<"), ("&gt;", ">"), ("&minus;", "-"), (MINUS, "-")):
        text = text.replace(written, sign)
    tokens = _tokens(text)
    try:
        return _run(tokens) if tokens else None
    except (ArithmeticError, LookupError, ValueError):
        return None


def _tokens(text: str) -> list[str | float] | None:
    """Returns the numbers, words and signs of an expression; None if it contains anything else."""
    tokens: list[str | float] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or len(tokens) >= _MAX_LENGTH:
            return None
        number, word, sign = match.groups()
        if number is not None:  # up to its second point, as PHP reads it
            leading = _LEADING_NUMBER.match(number)
            digits = leading[0] if leading else ""
            tokens.append(float(digits) if digits.strip(".") else 0.0)
        else:
            tokens.append(sign or word.lower())
        position = match.end()
    return tokens


def _run(tokens: list[str | float]) -> float:
    """Evaluates tokens with Dijkstra's shunting yard algorithm.

    Raises:
        ArithmeticError, LookupError, ValueError: operands and operators do not match, or have no value.
    """
    values: list[float] = []
    waiting: list[tuple[int, str, bool]] = []  # rank, name, and whether it is unary; brackets have rank -1

    def reduce() -> None:
        _, name, is_unary = waiting.pop()
        last = values.pop()
        values.append(_UNARY[name][1](last) if is_unary else _BINARY[name][1](values.pop(), last))

    expects_operand = True
    for token in tokens:
        if len(values) > _MOST_WAITING or len(waiting) > _MOST_WAITING:
            raise ValueError("too many operands wait")
        if isinstance(token, str) and token in _CONSTANTS and (token == "pi" or expects_operand):
            token = _CONSTANTS[token]
        if isinstance(token, float):
            if not expects_operand:
                raise ValueError("an operator is missing")
            values.append(token)
            expects_operand = False
        elif token == "(" or (token in _UNARY and (expects_operand or token not in _BINARY)):
            if not expects_operand:
                raise ValueError("an operator is missing")
            waiting.append((-1, "(", False) if token == "(" else (_UNARY[token][0], token, True))
        elif token == ")":
            while waiting[-1][1] != "(":
                reduce()
            waiting.pop()
            expects_operand = False
        else:
            rank = _BINARY[token][0]
            if expects_operand:
                raise ValueError("an operand is missing")
            while waiting and waiting[-1][0] >= rank:
                reduce()
            waiting.append((rank, token, False))
            expects_operand = True
    while waiting:
        reduce()
    (value,) = values
    return value


_PRECISION = 14  # significant digits, PHP's default


def number_text(value: float) -> str:
    """Returns a value as PHP prints it: at most 14 significant digits, with a power of ten if it needs more places.

    >>> number_text(1e15), number_text(0.00001), number_text(0.25), number_text(12345678)
    ('1.0E+15', '1.0E-5', '0.25', '12345678')
    """
    if isinstance(value, int) and abs(value) < _LARGEST_INTEGER:
        return str(value)
    if not math.isfinite(value):
        return "NAN" if value != value else "INF" if value > 0 else "-INF"
    mantissa, _, exponent = f"{value:.{_PRECISION - 1}e}".partition("e")
    power = int(exponent)
    if -5 < power < _PRECISION:
        text = f"{value:.{max(_PRECISION - 1 - power, 0)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}{'0' if mantissa[-1] == '.' else ''}E{'+' if power > 0 else '-'}{abs(power)}"
