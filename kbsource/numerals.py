"""Reads whole numbers and character references as people write them. A number with too many digits is not read as a
number.
"""

from __future__ import annotations

import html
import re
from html.entities import html5

MAX_DIGITS = 18
"""Longer numbers are never meant as numbers; numbers of this length fit 64 bits."""
# Python converts at most 4,300 decimal digits to a number. Source: sys.int_info of Python 3.11.
_OVERLONG = re.compile(r"&#[0-9]{1000,};")
_REFERENCE = re.compile(r"&(?:#[0-9]+|#[xX][0-9a-fA-F]+|[0-9A-Za-z]+);")


def read_int(text: str, max_digits: int = MAX_DIGITS) -> int | None:
    """Returns the whole number in a text, with or without a minus sign; None if the text is not a number or has too
    many digits.

    >>> read_int("1066"), read_int("-5"), read_int("1e3"), read_int("9" * 5000)
    (1066, -5, None, None)
    """
    digits = text.removeprefix("-")
    return int(text) if len(digits) <= max_digits and digits.isdecimal() else None


def unescape(text: str) -> str:
    """Returns the text with its character references resolved. A number that is not a character becomes U+FFFD.

    A reference ends with a semicolon. Source: CHAR_REFS_REGEX of MediaWiki's Sanitizer.

    >>> unescape("?a=1&copy=2&amp;b"), unescape("&copy;&unknown;&#33")
    ('?a=1&copy=2&b', '©&unknown;&#33')
    >>> unescape("&lt;&#233;") + str(len(unescape("&#" + "1" * 5000 + ";")))
    '<é1'
    """
    return _REFERENCE.sub(_character, _OVERLONG.sub("\ufffd", text) if "&#" in text else text)


def _character(found: re.Match[str]) -> str:
    return html5.get(found[0][1:], found[0]) if found[0][1] != "#" else html.unescape(found[0])
