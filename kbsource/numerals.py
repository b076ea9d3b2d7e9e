"""Whole numbers and character references as people write them, of any length: what is too long is none."""

from __future__ import annotations

import html
import re

MAX_DIGITS = 18
"""More digits are no number that is meant; so many fit 64 bits."""
# Python turns no more than 4,300 decimal digits into a number. Source: sys.int_info of Python 3.11.
_OVERLONG = re.compile(r"&#[0-9]{1000,};?")


def read_int(text: str, max_digits: int = MAX_DIGITS) -> int | None:
    """The whole number that a text is, with a minus sign or without; None where it is none, or has more digits.

    >>> read_int("1066"), read_int("-5"), read_int("1e3"), read_int("9" * 5000)
    (1066, -5, None, None)
    """
    digits = text.removeprefix("-")
    return int(text) if len(digits) <= max_digits and digits.isdecimal() else None


def unescape(text: str) -> str:
    """The text with its character references as what they stand for; a number that is no character is U+FFFD.

    >>> unescape("&lt;&#233;") + str(len(unescape("&#" + "1" * 5000 + ";")))
    '<é1'
    """
    return html.unescape(_OVERLONG.sub("\ufffd", text) if "&#" in text else text)
