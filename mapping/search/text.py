"""Normalises text for comparisons: normal forms, case folding, and the search for whole names.

Evidence and page are compared in the same normal form: lower case, punctuation deleted, letters of every script kept.
Source: the released matcher of KILT lower-cases, and deletes ASCII punctuation and every character of three or more
bytes in UTF-8. The last rule deletes whole languages and is left out. Instead, all characters that Unicode classifies
as punctuation are deleted, so curly quotes and dashes match straight ones.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator
from functools import cache

_ASCII_FORM = {ord(char): None for char in string.punctuation} | {
    number: None for number in (*range(0x20), 0x7F) if not chr(number).isspace()
}
# The minus sign is the typographic form of an ASCII character that is deleted.
_TYPOGRAPHIC = frozenset("\u2212")
# Superscripts and subscripts are read as normal characters: 10¹⁸ as the 1018 of corpora that lost the superscript.
_ON_THE_LINE = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣʸ₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓ", "0123456789+-=()nixy0123456789+-=()aeox")
# Category Cf contains invisible characters: soft hyphens, joiners, direction marks. Cc are the control characters.
_INVISIBLE = frozenset({"Cc", "Cf"})


def on_the_line(text: str) -> str:
    """Returns a text in which superscripts and subscripts are normal characters, one for one: ``10⁶`` is ``106``."""
    return text.translate(_ON_THE_LINE)


@cache
def is_void(char: str) -> bool:
    """Returns whether normal forms omit a character: punctuation, and invisible characters other than white space."""
    return all(_is_deleted(part) for part in unicodedata.normalize("NFD", on_the_line(char)))


@cache
def _is_deleted(char: str) -> bool:
    if char in string.punctuation or char in _TYPOGRAPHIC:
        return True
    category = unicodedata.category(char)
    return category.startswith("P") or (category in _INVISIBLE and not char.isspace())


def normal_form(token: str) -> str:
    """Returns a token's normal form: case folded, void characters deleted, composed (NFC); empty for punctuation.

    The form is empty exactly when every character of the token is void. The token is case folded rather than
    lower-cased, because the lower case of a Greek sigma depends on the letters around it.

    Source: definition D145 (canonical caseless matching) of the Unicode Standard.

    >>> normal_form("Hodgenville,"), normal_form("U.S."), normal_form("—"), normal_form("10⁻¹⁸")
    ('hodgenville', 'us', '', '1018')
    """
    if token.isascii():
        return token.translate(_ASCII_FORM).lower()
    token = on_the_line(token)
    kept = [char for char in unicodedata.normalize("NFD", token) if not _is_deleted(char)]
    return unicodedata.normalize("NFC", "".join(kept).casefold())


# Letters that re.IGNORECASE treats as equal although their lower cases differ: Unicode's simple case folding beyond
# str.lower. Each replaces one code point by one.
_SAME = (
    ("ı", "i"),
    ("ſ", "s"),
    ("µ", "μ"),
    ("\u0345", "ι"),
    ("\u1fbe", "ι"),
    ("\u1fd3", "\u0390"),
    ("\u1fe3", "\u03b0"),
    ("ϐ", "β"),
    ("ϵ", "ε"),
    ("ϑ", "θ"),
    ("ϰ", "κ"),
    ("ϖ", "π"),
    ("ϱ", "ρ"),
    ("ς", "σ"),
    ("ϕ", "φ"),
    ("\u1c80", "в"),
    ("\u1c81", "д"),
    ("\u1c82", "о"),
    ("\u1c83", "с"),
    ("\u1c84", "т"),
    ("\u1c85", "т"),
    ("\u1c86", "ъ"),
    ("\u1c87", "ѣ"),
    ("\u1c88", "ꙋ"),
    ("ẛ", "ṡ"),
    ("ﬅ", "ﬆ"),
)


def fold_case(text: str) -> str:
    """Returns a text with case differences removed, code point for code point.

    Two texts are folded to the same exactly when one, as a pattern, matches the other with ``re.IGNORECASE``.

    >>> fold_case("İZMİR, ΟΔΥΣΣΕΥΣ, 300 K") == fold_case("izmir, οδυσσευς, 300 k")
    True
    """
    if text.isascii():
        return text.lower()
    folded = text.replace("İ", "i").lower()  # the only letter whose lower case is two code points
    for variant, other in _SAME:
        folded = folded.replace(variant, other)
    return folded


def find_whole(name: str, text: str, folded: str) -> Iterator[int]:
    """Finds the positions where a folded, non-empty name starts as a whole word, in text order: no letter, digit or
    underscore is next to it. Matches do not overlap, and each is as long as the name."""
    at = folded.find(name)
    while at >= 0:
        end = at + len(name)
        is_whole = not (at and _is_word(text[at - 1])) and not (end < len(text) and _is_word(text[end]))
        if is_whole:
            yield at
        at = folded.find(name, end if is_whole else at + 1)


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
