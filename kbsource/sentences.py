"""Finds where the sentences of a text begin and end.

A sentence ends after ``.``, ``!``, ``?`` or ``…``, together with the quotation marks, brackets or formula's dollar sign
that close after it, if white space and something that can begin a sentence follow. It ends after ``。``, ``！``, ``？``
and the stops of Arabic, Urdu, Hindi, Armenian, Amharic, Burmese and Khmer wherever they occur, and at a line break. A
full stop after an abbreviation or an initial does not end a sentence.
"""

from __future__ import annotations

import re
from itertools import pairwise

_CLOSERS = "\"'”’»)\\]}$"
_STOPS = ".!?…"
_FULL_STOPS = "。！？\u061f\u06d4\u0964\u0965\u0589\u1362\u104b\u17d4\u17d5"
# A run of stops is matched once and as a whole, because some texts have runs of thousands of dots. Every match begins
# with one of few characters, which is searched many times as fast.
_END = re.compile(
    rf"[{_STOPS}{_FULL_STOPS}\n](?:(?<=[{_STOPS}])(?<![{_STOPS}]{{2}})(?P<more>[{_STOPS}]*+)[{_CLOSERS}]*+(?=\s)"
    rf"|(?<=[{_FULL_STOPS}])[{_FULL_STOPS}]*+[」』）”’»]*+|(?<=\n))"
)
_OPENERS = "\"'“‘«([{¿¡—–-"
# A full stop after these rarely ends a sentence. Compared in lower case. English, with a few from other languages.
_ABBREVIATIONS = frozenset(
    "adm approx apr aug ave bros bzw c ca capt cf co col corp dec dept dr ed eds est etc feb ft gen gov hon inc jan jr "
    "lt ltd maj mar mr mrs ms mt nov nr oct prof pt rep rev sen sep sept sgt sr st univ v vs".split()
)
# Only with a capital letter.
_DAYS = frozenset("Mon Tue Tues Wed Thu Thur Thurs Fri".split())
# Only before a number.
_COUNTERS = frozenset("art b ch d fig fl no nos op p pp r sat sun vol".split())
_INITIALS = re.compile(r"(?:\w\.)*[^\W\d_]")
_TO_LAST_WORD = re.compile(r"(?s:.)*[\s(\[\"'“‘«]")
_LONGEST_ABBREVIATION = 12
_CLOSING = "\"'”’»)]}」』）"
_MARKS = (*".!?…。！？:;,：；，、", *"\u061f\u061b\u060c\u06d4\u0964\u0965\u0589\u1362\u104b\u17d4\u17d5")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Returns the half-open spans of the sentences in order, without surrounding white space.

    >>> [t[a:b] for t in ["He met Dr. Smith. They left."] for a, b in sentence_spans(t)]
    ['He met Dr. Smith.', 'They left.']
    """
    ends = sentence_ends(text)
    return [span for start, end in pairwise((0, *ends)) if (span := trimmed(text, start, end)) is not None]


def sentence_ends(text: str) -> list[int]:
    """Returns the offsets at which the sentences end; the last is the end of the text. Each sentence begins where the
    previous one ends.
    """
    return [found.end() for found in _END.finditer(text) if found["more"] is None or _ends(text, found)] + [len(text)]


def _ends(text: str, found: re.Match[str]) -> bool:
    follows = text[found.end() : found.end() + 2].lstrip() or text[found.end() : found.end() + 20].lstrip()
    if follows and not (follows[0] in _OPENERS or not follows[0].islower()):
        return False
    if found[0][0] != "." or found["more"] or "$" in found[0]:
        return True
    start = max(0, found.start() - _LONGEST_ABBREVIATION)
    if (passed := _TO_LAST_WORD.match(text, start, found.start())) is not None:
        start = passed.end()
    written = text[start : found.start()]
    if not written:
        return True
    word = written.lower()
    if word in _COUNTERS and follows[:1].isdigit():
        return False
    is_noted = text[max(start - 1, 0)] == "("  # (r. Henry VIII)
    is_initials = _INITIALS.fullmatch(written) is not None and (len(word) > 1 or written.isupper() or is_noted)
    return not (is_initials or word in _ABBREVIATIONS or written in _DAYS)


def ends_with_mark(text: str) -> bool:
    """Returns whether a text ends with a punctuation mark, before quotation marks and brackets that close after it.

    >>> ends_with_mark('He said "No."'), ends_with_mark("They are:"), ends_with_mark("Norda (small)")
    (True, True, False)
    """
    return text.rstrip(_CLOSING).endswith(_MARKS)


def trimmed(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Returns a span without the white space at its ends; None if nothing is left."""
    piece = text[start:end].lstrip()
    return (end - len(piece), end - len(piece) + len(piece.rstrip())) if piece else None
