"""The normal form under which evidence and page are compared, the same for both sides.

Lower case, punctuation deleted, letters of every script kept. Source: the released matcher of KILT lower-cases, deletes
ASCII punctuation and every character of three or more bytes in UTF-8; the latter deletes whole languages and is left
out, and in its stead all that Unicode calls punctuation goes, so that curly quotes and dashes match straight ones.
"""

from __future__ import annotations

import string
import unicodedata
from functools import cache

_ASCII_FORM = {ord(char): None for char in string.punctuation} | {
    number: None for number in (*range(0x20), 0x7F) if not chr(number).isspace()
}
# The minus sign is the typographic form of an ASCII character that is deleted.
_TYPOGRAPHIC = frozenset("\u2212")
# Raised and lowered signs read as those on the line: 10¹⁸ as the 1018 of corpora that lost what was raised.
_ON_THE_LINE = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸ₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓ", "0123456789+-=()nixy0123456789+-=()aeox")
# Category Cf holds what nobody sees: soft hyphens, joiners, direction marks. Cc are the control characters.
_INVISIBLE = frozenset({"Cc", "Cf"})


def on_the_line(text: str) -> str:
    """Gives a text with raised and lowered signs as those on the line, one for one."""
    return text.translate(_ON_THE_LINE)


@cache
def is_void(char: str) -> bool:
    """Says whether a character is deleted from normal forms: punctuation, or invisible and not white space."""
    return all(_is_deleted(part) for part in unicodedata.normalize("NFD", on_the_line(char)))


@cache
def _is_deleted(char: str) -> bool:
    if char in string.punctuation or char in _TYPOGRAPHIC:
        return True
    category = unicodedata.category(char)
    return category.startswith("P") or (category in _INVISIBLE and not char.isspace())


def normal_form(token: str) -> str:
    """Gives a token's normal form: case folded, void characters deleted, composed (NFC); empty for punctuation.

    The form is empty exactly when every character of the token is void. Case folding rather than lower case,
    because the lower case of a Greek sigma hangs on what stands around it.

    Source: definition D145 (canonical caseless matching) of the Unicode Standard.

    >>> normal_form("Hodgenville,"), normal_form("U.S."), normal_form("—"), normal_form("10⁻¹⁸")
    ('hodgenville', 'us', '', '1018')
    """
    if token.isascii():
        return token.translate(_ASCII_FORM).lower()
    token = on_the_line(token)
    kept = [char for char in unicodedata.normalize("NFD", token) if not _is_deleted(char)]
    return unicodedata.normalize("NFC", "".join(kept).casefold())
