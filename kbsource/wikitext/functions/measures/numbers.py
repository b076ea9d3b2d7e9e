"""Numbers as templates read and write them: parsing, digit groups per language, rounding, raised and lowered digits."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

NBSP = "\u00a0"
MINUS = "\u2212"

# Separators (group, decimal mark, digits from which groups are formed). Source: MediaWiki's messages files,
# $separatorTransformTable and $minimumGroupingDigits, as of 2024-06.
_ENGLISH = (",", ".", 4)
_FORMATS: dict[str, tuple[str, str, int]] = {
    lang: form
    for form, langs in (
        ((".", ",", 4), "de nl da id tr vi ro el"),
        (("\u202f", ",", 4), "fr"),
        ((NBSP, ",", 5), "es pt ru uk bg et pl hu lv"),
        ((".", ",", 5), "it ca"),
        ((NBSP, ",", 4), "sv no nb nn fi cs lt"),
    )
    for lang in langs.split()
}

_SUPERSCRIPTS = str.maketrans("0123456789+-−=()nixy", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱˣʸ")
_RAISABLE = frozenset("0123456789+-−=()nixy")

_VULGAR = {
    text[0]: (int(text[1]), int(text[3]))
    for text in "½1/2 ⅓1/3 ⅔2/3 ¼1/4 ¾3/4 ⅕1/5 ⅖2/5 ⅗3/5 ⅘4/5 ⅙1/6 ⅚5/6 ⅛1/8 ⅜3/8 ⅝5/8 ⅞7/8".split()
}

_SPACES_AND_MARKS = str.maketrans({NBSP: None, "\u202f": None, "\u2009": None, " ": None, ",": None, "'": None})
# White space, and the marks that the parser leaves where it cut a reference or a comment.
_BLANKS = " \t\n\u00a0\u2009\u202f\x01\x02"
_LONGEST = 48  # characters; no number of an article is longer
_LARGEST = 1e80  # more than there are atoms; keeps every conversion within floats
_PLAIN = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d{1,3}))?")
_FRACTION = re.compile(r"([+-]?)(?:(\d+)(?:[ +]|-)?)??(\d+) ?(?:/{1,2}|⁄) ?(\d+)")
_DIGIT_RUN = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")


class Number(NamedTuple):
    """A number as written.

    Attributes:
        value: the number.
        clean: digits without sign and separators, ``1250.50`` or ``1.2e6``: the precision is read from it.
        shown: as it is to be shown, with digit groups and a true minus sign.
        denominator: of a written fraction, 0 when there is none.
    """

    value: float
    clean: str
    shown: str
    denominator: int = 0


def number_format(lang: str) -> tuple[str, str, int]:
    """Gives a language's group separator, its decimal mark and the number of digits from which groups are formed."""
    return _FORMATS.get(lang) or _FORMATS.get(lang.split("-", 1)[0]) or _ENGLISH


def group_digits(digits: str, lang: str = "en") -> str:
    """Gives unsigned plain digits (``1234567.5``) with a language's digit groups and decimal mark."""
    whole, dot, decimals = digits.partition(".")
    group, mark, minimum = number_format(lang)
    if len(whole) >= minimum and len(whole) > 3:
        head = len(whole) % 3
        parts = [whole[:head]] if head else []
        parts.extend(whole[i : i + 3] for i in range(head, len(whole), 3))
        whole = group.join(parts)
    return f"{whole}{mark}{decimals}" if dot else whole


def format_number(text: str, lang: str) -> str:
    """Gives a text with its plain numbers in the language's form, as ``{{formatnum:}}`` does; other text stays."""
    return _DIGIT_RUN.sub(lambda found: group_digits(found.group(), lang), text)


def unformat_number(text: str, lang: str) -> str:
    """Gives a formatted number as plain digits: the ``R`` form of ``{{formatnum:}}``."""
    group, mark, _ = number_format(lang)
    plain = text.replace(group, "").replace("\u202f", "").replace(NBSP, "").replace("&nbsp;", "")
    return plain.replace(mark, ".") if mark != "." else plain


def plain_minus(text: str) -> str:
    """Gives a text with every minus sign and minus entity as ``-`` and space entities as spaces."""
    if "&" in text:
        text = text.replace("&minus;", "-").replace("&#8722;", "-").replace("&nbsp;", " ").replace("&thinsp;", "")
        text = text.replace("&#160;", " ").replace("&frasl;", "/").replace("&frac12;", "½").replace("&plus;", "+")
    return text.replace(MINUS, "-") if not text.isascii() else text


def parse_number(text: str, lang: str = "en") -> Number | None:
    """Gives the number that an argument holds; None when it is not one number and nothing else.

    Understood: ``1,250.5``, ``−3``, ``1.2e6``, ``1/2``, ``2+1/2``, ``2-1/2``, ``½``, ``2½``. Digit groups written with
    a comma are read by English rules in every language, since templates take plain numbers.
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
        if digits.startswith("."):
            digits = "0" + digits
        digits = digits.rstrip(".") if digits.endswith(".") else digits
        value = float(digits + ("e" + exponent if exponent else ""))
        if value > _LARGEST:
            return None
        shown = group_digits(digits, lang)
        clean = digits
        if exponent:
            clean = f"{digits}e{int(exponent)}"
            shown = f"{shown}×10{raise_text(str(int(exponent)))}"
        if sign == "-":
            return Number(-value, clean, MINUS + shown)
        return Number(value, clean, sign + shown)
    if plain[-1] in _VULGAR and (len(plain) == 1 or plain[:-1].strip().isdecimal()):
        top, bottom = _VULGAR[plain[-1]]
        whole = plain[:-1].strip()
        return Number(int(whole or 0) + top / bottom, whole or "0", plain, bottom)
    match = _FRACTION.fullmatch(plain)
    if match and int(match.group(4)):
        sign, whole_text, top_text, bottom_text = match.groups()
        value = int(whole_text or 0) + int(top_text) / int(bottom_text)
        shown = f"{top_text}⁄{bottom_text}"
        if whole_text:
            shown = f"{group_digits(whole_text, lang)}+{shown}"
        if sign == "-":
            return Number(-value, whole_text or "0", MINUS + shown, int(bottom_text))
        return Number(value, whole_text or "0", shown, int(bottom_text))
    return None


def round_digits(value: float, precision: int) -> str:
    """Gives a non-negative value as digits, rounded to ``precision`` decimals; negative ones round to tens, hundreds.

    A tiny amount is added first, so that values that binary fractions cannot hold are rounded as people expect.
    Source: cvtround in https://en.wikipedia.org/wiki/Module:Convert
    """
    if precision >= 0:
        return f"{value + 2e-14 if precision <= 8 else value:.{min(precision, 60)}f}"
    shift = 10.0 ** min(-precision, 300)
    digits = f"{value / shift:.0f}"
    return digits + "0" * min(-precision, 300) if digits != "0" else "0"


def round_significant(value: float, digits: int) -> str:
    """Gives a non-negative value as plain digits with so many significant ones."""
    if value == 0:
        return "0"
    exponent = int(f"{value:.{max(digits, 1) - 1}e}".partition("e")[2])
    return round_digits(value, digits - 1 - exponent)


def raise_text(text: str) -> str:
    """Gives a text in superscript characters where all of it has them, else the text itself."""
    return text.translate(_SUPERSCRIPTS) if text and _RAISABLE.issuperset(text) else text


def power_of_ten(exponent: str) -> str:
    """Gives ``×10`` with the exponent raised."""
    return f"×10{raise_text(plain_minus(exponent).strip())}"
