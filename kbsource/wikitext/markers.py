"""Characters that stand for structure while a page is worked on.

XML 1.0 forbids the control characters below U+0020 (but tab, newline and return), so no dump can hold them: a page
uses them freely between the strip and the walk, and none is left in what a page stores. Characters that would be
taken for markup but are text (inside ``<nowiki>``, from ``&#91;``) are swapped one to one with a control character,
which keeps every offset, and swapped back at the end.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

PIPE = "\x00"  # a pipe that came out of a template and separates no arguments, until the braces are done
TRAIL_STOP = "\x01"  # directly after ]] where something was cut: no link trail begins here
CUT = "\x02"  # something was cut here; keeps quotes and brackets on both sides apart
HEADING = "\x03"  # begins a heading line; the level as a digit follows
LIST = "\x04"  # around the prefix of a list line
EQUALS = "\x05"  # an equals sign that came out of a template and names no argument, until the braces are done
PLACE = "\x06"  # a line of its own: "\x06T3" or "\x06I0", the place of a table or an infobox
FRAGMENT = f"\n{PLACE}F\n"  # between the body and the fragments (cells, infobox values) walked with it
PRE = "\x07"  # begins a line of preformatted text
LINE = "\x0b"  # what stands behind it begins a line, until the braces are done
SAID = "\x0c"  # around a template that nobody knows and that may wrap words of a sentence
TEMPLATE_LINK = "\x1c"  # directly after [[ of a link that a template makes and no editor of the page wrote
NUMBER = "\x1d"  # behind a currency sign whose number a template had that shows nothing, until the braces are done
BREAK = "\x1e"  # a line break within a line: a newline in cells and infobox values, a space elsewhere
BLOCK = "\x1f"  # an element that ends the paragraph was cut here; in a link's label alone: it shows nothing
EMPTY_LABEL = f"|{BLOCK}]]"  # the end of a link whose label shows nothing
CURRENCY = frozenset("$£€¥₹₽₩")

# No document in UTF-8 can hold these either: the number of what was cut, in base 32, stands behind its CUT. All that
# looks at what stands beside a cut passes over them, so that a text is the same with and without. The first digit is
# always 0: one character is found many times as fast as any of 32.
DIGIT = "\\ud800-\\ud81f"  # for a character class
DIGITS = "".join(map(chr, range(0xD800, 0xD820)))
N_DIGITS = 5
ANY_DIGITS = re.compile(f"{DIGITS[0]}[{DIGIT}]*")
NUMBERED = re.compile(f"{DIGITS[0]}[{DIGIT}]{{{N_DIGITS - 1}}}")
CUTS = CUT + DIGITS
"""What is stripped off where a cut would be."""

BLANKS = " \t\n\r\x0b"
"""What PHP's trim strips, and so MediaWiki: no-break spaces stay. A null byte stands for a pipe here."""

_TEXT = "[]{}|<&='*#:;~_"
_CONTROLS = "\x08" + "".join(chr(code) for code in range(0x0E, 0x1C))  # \x1c to \x1f are blanks to str.split
assert len(_TEXT) == len(_CONTROLS)

LITERAL = str.maketrans(_TEXT, _CONTROLS)
"""Text -> characters that no later step takes for markup."""

LITERAL_OF = dict(zip(_TEXT, _CONTROLS, strict=True))
APOSTROPHE = LITERAL_OF["'"]

LITERALS = re.escape(_CONTROLS)
"""They, for a character class."""

ANY_CONTROL = re.compile("[\x00-\x08\x0b-\x1f]")
ANY_PLACE = re.compile(f"{PLACE}[TItiF]?[0-9]*")
"""The place of a table or an infobox, in whatever letter case a function has put it, or what a function left of it."""
_MARK = re.compile(f"{ANY_PLACE.pattern}|{ANY_CONTROL.pattern}")
_PAIRS = tuple(zip(_CONTROLS, _TEXT, strict=True))
_FORBIDDEN = tuple(chr(code) for code in range(0x20) if chr(code) not in "\t\n\r")


def literal(text: str) -> str:
    """Text that every later step takes as plain characters; newlines become spaces."""
    return text.translate(LITERAL).replace("\n", " ")


def unliteral(text: str) -> str:
    """The text with its literal characters as what they stand for."""
    for control, character in _PAIRS:  # str.replace beats str.translate twenty times where little is to be done
        if control in text:
            text = text.replace(control, character)
    return text


def without_marks(text: str) -> str:
    """A name as it is stored: literal characters as what they stand for, and no mark of structure."""
    return _MARK.sub("", unliteral(text)) if ANY_CONTROL.search(text) else text


def as_read(wikitext: str) -> tuple[str, int]:
    """Wikitext with newlines as one character each, without those that no XML document can hold, and their number."""
    if "\r" in wikitext:
        wikitext = wikitext.replace("\r\n", "\n").replace("\r", "\n")
    if any(control in wikitext for control in _FORBIDDEN):  # one after the other beats a character class
        return ANY_CONTROL.subn("", wikitext)
    return wikitext, 0


# What an expansion may hold: characters that are text, cuts, preformatted lines, what comes out of templates.
_EXPANDED = frozenset(f"\t\n{PIPE}{CUT}{EQUALS}{PRE}{LINE}{TEMPLATE_LINK}{NUMBER}{BLOCK}{_CONTROLS}")
_NOT_EXPANDED = re.compile(
    f"{ANY_PLACE.pattern}|[" + "".join(f"\\x{code:02x}" for code in range(0x20) if chr(code) not in _EXPANDED) + "]"
)


def as_expanded(text: str) -> str:
    """What a function or a module gives, without the marks that only later steps make."""
    return _NOT_EXPANDED.sub("", text) if _NOT_EXPANDED.search(text) else text


def find_marks(text: str) -> set[str]:
    """The marks of structure and literal characters in a text."""
    return {control for control in _FORBIDDEN if control in text} if ANY_CONTROL.search(text) else set()


def without_forged_marks(text: str, given: Collection[str]) -> str:
    """What a module writes, with U+FFFD for every control character that is no mark that it was given.

    Source: Scribunto cleans what modules return with UtfNormal's Validator::cleanUp. A lone carriage return is white
    space to a browser and no line break to MediaWiki.
    """
    if not ANY_CONTROL.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", " ")
    for control in _FORBIDDEN:  # one after the other beats a character class where there are many
        if control not in given and control in text:
            text = text.replace(control, "\ufffd")
    return text


def mark_separators(text: str) -> str:
    """What came out of a template so that one around it takes no pipe or equals sign of it for its own."""
    return text.replace("|", PIPE).replace("=", EQUALS)


def unmark_separators(text: str) -> str:
    """The text with the pipes and equals signs that came out of templates as plain ones."""
    return text.replace(PIPE, "|").replace(EQUALS, "=")


_SPACES = re.compile("   *")  # two spaces and more; written so that the search begins with two plain characters


def single_spaces(text: str) -> str:
    """The text with every run of spaces as one."""
    return " ".join(_SPACES.split(text))


@lru_cache(maxsize=1 << 12)
def number_mark(number: int) -> str:
    """The digits that stand for a number.

    >>> mark_numbers(number_mark(77) + "a" + number_mark(3))
    [77, 3]
    """
    return "".join([DIGITS[number >> shift & 31] for shift in range(5 * N_DIGITS - 5, -1, -5)])


def mark_numbers(text: str) -> list[int]:
    """The numbers that stand in a text, in order."""
    return [*map(_number, NUMBERED.findall(text))]


@lru_cache(maxsize=1 << 12)
def _number(digits: str) -> int:
    return int("".join(map(_BASE_32.__getitem__, digits)), 32)


_BASE_32 = {digit: "0123456789abcdefghijklmnopqrstuv"[value] for value, digit in enumerate(DIGITS)}


def has_numbers(text: str) -> bool:
    """Whether a number stands in a text."""
    return DIGITS[0] in text


def without_numbers(text: str) -> str:
    """The text without numbers; the cuts before them stay."""
    return ANY_DIGITS.sub("", text) if has_numbers(text) else text


def cut_out(text: str | re.Match[str]) -> str:
    """What stands for a text that goes: a cut, with the numbers in it."""
    text = text if isinstance(text, str) else text[0]
    return CUT + CUT.join(NUMBERED.findall(text)) if has_numbers(text) else CUT
