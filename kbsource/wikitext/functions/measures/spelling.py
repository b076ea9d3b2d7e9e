"""English number words, for templates that spell values out."""

from __future__ import annotations

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_FRACTIONS = {0.5: "one-half", 0.25: "one-quarter", 0.75: "three-quarters"}
_LARGE = ((1_000_000_000, "billion"), (1_000_000, "million"), (1000, "thousand"))


def spell_number(value: float) -> str:
    """Gives a number in English words; empty for what has no short words (most fractions, 10¹² and above)."""
    if value in _FRACTIONS:
        return _FRACTIONS[value]
    if value != int(value) or abs(value) >= 1e12:
        return ""
    number = int(value)
    if number < 0:
        return f"negative {_below_million_million(-number)}"
    return _below_million_million(number)


def _below_million_million(number: int) -> str:
    if number < 1000:
        return _below_thousand(number)
    for size, word in _LARGE:
        if number >= size:
            head, rest = divmod(number, size)
            text = f"{_below_million_million(head)} {word}"
            return f"{text} {_below_million_million(rest)}" if rest else text
    return ""


def _below_thousand(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return f"{_TENS[tens]}-{_SMALL[ones]}" if ones else _TENS[tens]
    hundreds, rest = divmod(number, 100)
    return f"{_SMALL[hundreds]} hundred and {_below_thousand(rest)}" if rest else f"{_SMALL[hundreds]} hundred"
