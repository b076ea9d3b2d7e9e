"""Renders text as escaped HTML with links and marked spans, and compares the words of two texts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape
from rapidfuzz.distance import Indel

from mapping.document import TextPiece
from mapping.search.text import is_void, normal_form

_SPAN = re.compile(r"([0-9]{1,9}):([0-9]{1,9})-([0-9]{1,9}):([0-9]{1,9})(?:,(.*))?", re.DOTALL)
_UNSEEN = {number: 0x2400 + number for number in range(32) if chr(number) not in "\t\n"} | {127: 0x2421}
MAX_SPANS = 200
"""Maximum number of spans that are marked on a page."""


class MarkedRange(NamedTuple):
    """A half-open range of code points in a page: from ``start`` of ``element`` to ``end`` of ``end_element``."""

    element: int
    start: int
    end_element: int
    end: int
    label: str = ""  #: text of the tooltip

    def inside(self, element: int, n_chars: int) -> tuple[int, int] | None:
        """Returns the part of the span in an element with ``n_chars`` characters, or None."""
        if not self.element <= element <= self.end_element:
            return None
        start = self.start if element == self.element else 0
        end = min(self.end if element == self.end_element else n_chars, n_chars)
        return (start, end) if start < end else None


class TextLink(NamedTuple):
    """A link in a text: its location, its target, and its tooltip."""

    start: int
    end: int
    url: str | None  #: None for a link without target
    note: str


class Mark(NamedTuple):
    """A marked location in a text, and its meaning."""

    start: int
    end: int
    label: str


class Marker(NamedTuple):
    """A marker that is shown within a text but is not part of it: its location, label, tooltip and link target."""

    place: int
    label: str
    tooltip: str
    url: str | None  #: None for a marker without target


def spans_query(spans: Sequence[MarkedRange]) -> list[str]:
    """Returns spans as values of ``hl`` in a URL.

    >>> spans_query([MarkedRange(3, 0, 3, 12, "answer")])
    ['3:0-3:12,answer']
    """
    return [
        f"{span.element}:{span.start}-{span.end_element}:{span.end}" + (f",{span.label}" if span.label else "")
        for span in spans
    ]


def read_spans(values: Iterable[str]) -> tuple[MarkedRange, ...]:
    """Parses the values of ``spans_query`` into spans, in order. Malformed values are left out."""
    found = [match for value in values if (match := _SPAN.fullmatch(value))]
    return tuple(
        MarkedRange(int(match[1]), int(match[2]), int(match[3]), int(match[4]), match[5] or "")
        for match in found[:MAX_SPANS]
    )


def shown(text: str) -> str:
    """Returns a text with symbols for the control characters that HTML cannot contain; the number of code points stays
    the same.

    >>> shown("a\\x00b")
    'a␀b'
    """
    return text.translate(_UNSEEN)


def mark_text(
    text: str, links: Sequence[TextLink] = (), marked: Sequence[Mark] = (), notes: Sequence[Marker] = ()
) -> Markup:
    """Renders a text as HTML that contains exactly the same text, code point for code point. The style sheet displays
    notes, so that they add no text to the HTML.

    Links are in order and do not overlap. Marked locations may overlap, and may start and end within links. Notes are
    in order; a note within a link is placed after the link.
    """
    parts: list[str] = []
    at = n_noted = 0

    def write(end: int) -> None:
        nonlocal at, n_noted
        while n_noted < len(notes) and notes[n_noted].place <= end:
            place = max(notes[n_noted].place, at)
            parts.extend((_marked_part(text, at, place, marked), _note_html(notes[n_noted])))
            at, n_noted = place, n_noted + 1
        parts.append(_marked_part(text, at, end, marked))
        at = end

    for link in links:
        if not at <= link.start < link.end <= len(text):
            continue
        write(link.start)
        inner = _marked_part(text, link.start, link.end, marked)
        note = escape(shown(link.note))
        if link.url is None:
            parts.append(f'<span class="dead" title="{note}">{inner}</span>')
        else:
            parts.append(f'<a href="{escape(link.url)}" title="{note}">{inner}</a>')
        at = link.end
    write(len(text))
    return Markup("".join(parts))  # its parts are escaped


def _note_html(note: Marker) -> str:
    label, tooltip = escape(shown(note.label)), escape(shown(note.tooltip))
    tag, leads = ("span", "") if note.url is None else ("a", f' href="{escape(note.url)}"')
    role = ' role="note"' if note.url is None else ""
    return f'<{tag} class="fn"{leads}{role} data-label="{label}" aria-label="{tooltip}" title="{tooltip}"></{tag}>'


def _marked_part(text: str, start: int, end: int, marked: Sequence[Mark]) -> str:
    own = [place for place in marked if place.start < end and place.end > start]
    if not own:
        return str(escape(shown(text[start:end])))
    edges = {start, end}
    for place in own:
        edges |= {max(place.start, start), min(place.end, end)}
    cuts = sorted(edges)
    parts = []
    for first, last in itertools.pairwise(cuts):
        piece = escape(shown(text[first:last]))
        labels = dict.fromkeys(place.label for place in own if place.start <= first and last <= place.end)
        if labels:
            tooltip = escape(shown("; ".join(filter(None, labels))))
            piece = Markup(f'<mark title="{tooltip}">{piece}</mark>')
        parts.append(str(piece))
    return "".join(parts)


MOST_WORDS = 10_000
"""Maximum number of compared words per side, without common words at the start and the end: 12 MB, and 0.1 s. In longer
texts, everything between the common ends counts as changed."""

# Single characters in scripts without spaces; in other scripts the text between spaces, dashes and slashes.
_UNSPACED = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s/\u2012-\u2015{_UNSPACED}]+")


class _Word(NamedTuple):
    form: str
    start: int
    end: int


def changed_words(old: str, new: str) -> tuple[list[TextPiece], list[TextPiece]]:
    """Splits two texts into pieces, in which the words are marked that the other text does not have at the same
    position.

    Words are compared as in alignments: case and punctuation are ignored. The pieces of a text, joined, are the text.

    >>> [(piece.text, piece.is_marked) for piece in changed_words("The big lake.", "the lake")[0]]
    [('The ', False), ('big', True), (' lake.', False)]
    """
    words = list(_words(old)), list(_words(new))
    forms = [word.form for word in words[0]], [word.form for word in words[1]]
    shortest = min(map(len, words))
    first = next((at for at in range(shortest) if forms[0][at] != forms[1][at]), shortest)
    rest = shortest - first
    last = next((at for at in range(rest) if forms[0][-1 - at] != forms[1][-1 - at]), rest)
    middles = forms[0][first : len(forms[0]) - last], forms[1][first : len(forms[1]) - last]
    changed: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
    if max(map(len, middles)) > MOST_WORDS:
        changed = [(0, len(middles[0]))], [(0, len(middles[1]))]
    else:
        for step in Indel.opcodes(*middles):
            if step.tag != "equal":
                changed[0].append((step.src_start, step.src_end))
                changed[1].append((step.dest_start, step.dest_end))
    old_marks, new_marks = (
        [(own[first + start].start, own[first + end - 1].end) for start, end in runs if start < end]
        for own, runs in zip(words, changed, strict=True)
    )
    return marked_pieces(old, old_marks), marked_pieces(new, new_marks)


def marked_pieces(text: str, spans: Sequence[tuple[int, int]]) -> list[TextPiece]:
    """Splits a text into pieces, with the given spans marked. Parts of spans that are outside the text, or repeated,
    are ignored.

    >>> [piece.text for piece in marked_pieces("abcdef", [(1, 3), (2, 99)])]
    ['a', 'bc', 'def']
    """
    pieces, at = [], 0
    for start, end in sorted(spans):
        start, end = max(start, at), min(end, len(text))
        if start < end:
            pieces += [TextPiece(text[at:start], False), TextPiece(text[start:end], True)]
            at = end
    pieces.append(TextPiece(text[at:], False))
    return [piece for piece in pieces if piece.text]


def _words(text: str) -> Iterator[_Word]:
    for found in _WORD.finditer(text):
        if form := normal_form(found[0]):
            start, end = found.span()
            while is_void(text[start]):
                start += 1
            while is_void(text[end - 1]):
                end -= 1
            yield _Word(form, start, end)
