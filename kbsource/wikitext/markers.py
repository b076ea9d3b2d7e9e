"""Control characters that represent structure while a page is processed.

XML 1.0 forbids the control characters below U+0020 (except tab, newline and return), so no dump contains them. They
appear in the text of a page from the first cleaning step to the walk, and never in the stored text. Characters that
look like markup but are text (inside ``<nowiki>``, or from ``&#91;``) are each replaced by one control character, so
that offsets stay the same, and are restored at the end.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

PIPE = "\x00"  # a pipe in a template's output, which is text and separates no arguments; until the braces are expanded
TRAIL_STOP = "\x01"  # directly after ]]: something was cut here, so letters after it are no link trail
CUT = "\x02"  # something was cut here; quotes or brackets before and after it do not combine
HEADING = "\x03"  # begins a heading line; followed by the level as a digit
LIST = "\x04"  # around the prefix of a list line
EQUALS = "\x05"  # an equals sign in a template's output, which names no argument; until the braces are expanded
PLACE = "\x06"  # a line of its own: "\x06T3" or "\x06I0", the placeholder of a table or an infobox
FRAGMENT = f"\n{PLACE}F\n"  # between the body and the fragments (cells, infobox values) walked with it
PRE = "\x07"  # begins a line of preformatted text
LINE = "\x0b"  # text follows that begins a line; until the braces are expanded
SAID = "\x0c"  # around an unknown template that may wrap words of a sentence
TEMPLATE_LINK = "\x1c"  # directly after [[ of a link that a template made and that is not in the page's own wikitext
# after a currency sign whose amount is in a template without output; until the braces are expanded
NUMBER = "\x1d"
BREAK = "\x1e"  # a line break within a line: a newline in cells and infobox values, a space elsewhere
BLOCK = "\x1f"  # an element that ends the paragraph was cut here; a link whose whole label is this marker shows nothing
EMPTY_LABEL = f"|{BLOCK}]]"  # the end of a link whose label shows nothing
CURRENCY = frozenset("$£€¥₹₽₩")

# A number in base 32 may follow CUT: the number of the removed note. Its digits are surrogates, which UTF-8 documents
# cannot contain either. Code that inspects the neighbours of a cut skips the digits, so the resulting text is the same
# with and without numbers. The first digit is always 0, because searching for one character is many times as fast as
# for any of 32.
DIGIT = "\\ud800-\\ud81f"  # for a character class
DIGITS = "".join(map(chr, range(0xD800, 0xD820)))
N_DIGITS = 5
ANY_DIGITS = re.compile(f"{DIGITS[0]}[{DIGIT}]*")
NUMBERED = re.compile(f"{DIGITS[0]}[{DIGIT}]{{{N_DIGITS - 1}}}")
_DIGITS_IN_A_ROW = re.compile(f"[{DIGIT}]+")
CUTS = CUT + DIGITS
"""The characters of cuts and their numbers, for stripping both."""

BLANKS = " \t\n\r\x0b"
"""Characters that MediaWiki strips with PHP's trim, except the null byte, which represents a pipe here. No-break spaces
are not stripped.
"""

_TEXT = "[]{}|<&='*#:;~_"
_CONTROLS = "\x08" + "".join(chr(code) for code in range(0x0E, 0x1C))  # \x1c to \x1f are white space to str.split
assert len(_TEXT) == len(_CONTROLS)

LITERAL = str.maketrans(_TEXT, _CONTROLS)
"""Text -> characters that no later step treats as markup."""

LITERAL_OF = dict(zip(_TEXT, _CONTROLS, strict=True))
APOSTROPHE = LITERAL_OF["'"]

LITERALS = re.escape(_CONTROLS)
"""The literal characters, escaped for a character class of a regular expression."""

DELETE = "\x7f"
"""The only control character of ASCII besides white space that XML allows. MediaWiki's parser uses it for placeholders,
and no page shows it.
"""
ANY_CONTROL = re.compile(f"[\x00-\x08\x0b-\x1f{DELETE}]")
ANY_PLACE = re.compile(f"{PLACE}[TItiF]?[0-9]*")
"""The placeholder of a table or an infobox, also if a parser function has changed its letter case or cut off its end.
"""
_MARK = re.compile(f"{ANY_PLACE.pattern}|{ANY_CONTROL.pattern}")
_PAIRS = tuple(zip(_CONTROLS, _TEXT, strict=True))
_FORBIDDEN = tuple(chr(code) for code in range(0x20) if chr(code) not in "\t\n\r")
_UNSHOWN = (*_FORBIDDEN, DELETE)


def literal(text: str) -> str:
    """Returns text that every later step treats as plain characters; newlines become spaces."""
    return text.translate(LITERAL).replace("\n", " ")


def unliteral(text: str) -> str:
    """Returns the text with its literal characters restored."""
    # str.replace is twenty times as fast as str.translate if there is little to replace
    for control, character in _PAIRS:
        if control in text:
            text = text.replace(control, character)
    return text


def without_marks(text: str) -> str:
    """Returns a name as stored: literal characters are restored, and structural markers are removed."""
    return _MARK.sub("", unliteral(text)) if ANY_CONTROL.search(text) else text


def as_read(wikitext: str) -> tuple[str, int]:
    """Returns wikitext with ``\\n`` for every line break and without control characters, and how many it had."""
    if "\r" in wikitext:
        wikitext = wikitext.replace("\r\n", "\n").replace("\r", "\n")
    if any(control in wikitext for control in _UNSHOWN):  # faster than a search for a character class
        return ANY_CONTROL.subn("", wikitext)
    return wikitext, 0


# Markers allowed in the output of a template: literal text, cuts, preformatted lines, and those used between templates.
_EXPANDED = frozenset(f"\t\n{PIPE}{CUT}{EQUALS}{PRE}{LINE}{TEMPLATE_LINK}{NUMBER}{BLOCK}{_CONTROLS}")
_NOT_EXPANDED = re.compile(
    f"{ANY_PLACE.pattern}|[" + "".join(f"\\x{code:02x}" for code in range(0x20) if chr(code) not in _EXPANDED) + "]"
)


def as_expanded(text: str) -> str:
    """Returns the output of a function or a module without the markers that only later steps insert."""
    return _NOT_EXPANDED.sub("", text) if _NOT_EXPANDED.search(text) else text


def find_marks(text: str) -> set[str]:
    """Returns the structural markers and literal characters in a text."""
    return {control for control in _FORBIDDEN if control in text} if ANY_CONTROL.search(text) else set()


def without_forged_marks(text: str, given: Collection[str]) -> str:
    """Returns the output of a module. Every character that XML forbids becomes U+FFFD, except the markers that the
    module received.

    Source: Scribunto cleans what modules return with UtfNormal's Validator::cleanUp. A lone carriage return stays: it
    is no line break to MediaWiki, and white space to a browser.
    """
    text = text.replace("\ufffe", "\ufffd").replace("\uffff", "\ufffd")
    if not ANY_CONTROL.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", " ")
    for control in _FORBIDDEN:  # faster than one search for all of them if there are many
        if control not in given and control in text:
            text = text.replace(control, "\ufffd")
    return text


def mark_separators(text: str) -> str:
    """Marks the pipes and equals signs in a template's output, so that an enclosing template does not read them as
    separators.
    """
    return text.replace("|", PIPE).replace("=", EQUALS)


def unmark_separators(text: str) -> str:
    """Returns the text with the pipes and equals signs from templates as plain characters."""
    return text.replace(PIPE, "|").replace(EQUALS, "=")


_SPACES = re.compile("   *")  # two spaces or more; a pattern that begins with two plain characters is searched faster


def single_spaces(text: str) -> str:
    """Returns the text with every run of spaces as a single space."""
    return " ".join(_SPACES.split(text)) if "  " in text else text


@lru_cache(maxsize=1 << 12)
def number_mark(number: int) -> str:
    """Returns the digits that represent a number.

    >>> mark_numbers(number_mark(77) + "a" + number_mark(3))
    [77, 3]
    """
    return "".join([DIGITS[number >> shift & 31] for shift in range(5 * N_DIGITS - 5, -1, -5)])


def mark_numbers(text: str) -> list[int]:
    """Returns the numbers in a text, in order."""
    return [*map(_number, NUMBERED.findall(text))]


@lru_cache(maxsize=1 << 12)
def _number(digits: str) -> int:
    return int("".join(map(_BASE_32.__getitem__, digits)), 32)


_BASE_32 = {digit: "0123456789abcdefghijklmnopqrstuv"[value] for value, digit in enumerate(DIGITS)}


def has_numbers(text: str) -> bool:
    """Returns whether a text contains a number."""
    return DIGITS[0] in text


def without_numbers(text: str) -> str:
    """Returns the text without numbers; the cuts before them stay."""
    return ANY_DIGITS.sub("", text) if has_numbers(text) else text


def reach_back(text: str, position: int, n_chars: int) -> int:
    """Returns the position that is ``n_chars`` characters before another; digits of numbers are not counted.

    >>> reach_back("abcdef", 5, 3)
    2
    >>> reach_back(f"abc{CUT}{DIGITS[0] * N_DIGITS}f", 9, 3)
    1
    """
    start = max(position - n_chars, 0)
    end = position
    while start and (n_uncounted := sum(map(len, _DIGITS_IN_A_ROW.findall(text, start, end)))):
        start, end = max(start - n_uncounted, 0), start
    return start


def reach_on(text: str, position: int, n_chars: int) -> int:
    """Returns the position that is ``n_chars`` characters after another; digits of numbers are not counted."""
    start, end = position, position + n_chars
    while n_uncounted := sum(map(len, _DIGITS_IN_A_ROW.findall(text, start, end))):
        start, end = end, end + n_uncounted
    return end


def cut_out(text: str | re.Match[str]) -> str:
    """Returns the replacement for a removed text: a cut with the numbers that the text contains."""
    text = text if isinstance(text, str) else text[0]
    return CUT + "".join(NUMBERED.findall(text)) if has_numbers(text) else CUT
