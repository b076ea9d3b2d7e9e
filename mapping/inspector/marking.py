"""Text as HTML, with links and marked spans; everything that is text is escaped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markupsafe import Markup, escape

_SPAN = re.compile(r"([0-9]{1,9}):([0-9]{1,9})-([0-9]{1,9}):([0-9]{1,9})(?:,(.*))?", re.DOTALL)
_UNSEEN = {number: 0x2400 + number for number in range(32) if chr(number) not in "\t\n"} | {127: 0x2421}
MAX_SPANS = 200
"""Spans that are marked on a page at most."""


class Span(NamedTuple):
    """A place in a page, half-open in code points: from ``start`` of ``element`` up to ``end`` of ``end_element``.

    Attributes:
        label: what it is, shown where the pointer rests on it.
    """

    element: int
    start: int
    end_element: int
    end: int
    label: str = ""

    def inside(self, element: int, n_chars: int) -> tuple[int, int] | None:
        """Gives the part of the span that is in an element of so many characters; None where there is none."""
        if not self.element <= element <= self.end_element:
            return None
        start = self.start if element == self.element else 0
        end = min(self.end if element == self.end_element else n_chars, n_chars)
        return (start, end) if start < end else None


class Link(NamedTuple):
    """A link in a text: its place, where it leads, and what is said of it where the pointer rests on it.

    Attributes:
        url: None for a link that leads nowhere.
    """

    start: int
    end: int
    url: str | None
    note: str


class Marked(NamedTuple):
    """A place in a text that is marked, and what it is."""

    start: int
    end: int
    label: str


def spans_query(spans: Sequence[Span]) -> list[str]:
    """Gives spans as values of ``hl`` in an address.

    >>> spans_query([Span(3, 0, 3, 12, "answer")])
    ['3:0-3:12,answer']
    """
    return [
        f"{span.element}:{span.start}-{span.end_element}:{span.end}" + (f",{span.label}" if span.label else "")
        for span in spans
    ]


def read_spans(values: Iterable[str]) -> tuple[Span, ...]:
    """Gives back the spans of ``spans_query``, in their order; what is no span is left out."""
    found = [match for value in values if (match := _SPAN.fullmatch(value))]
    return tuple(
        Span(int(match[1]), int(match[2]), int(match[3]), int(match[4]), match[5] or "") for match in found[:MAX_SPANS]
    )


def shown(text: str) -> str:
    """Gives a text, code point for code point, with signs for the control characters that HTML cannot hold.

    >>> shown("a\\x00b")
    'a␀b'
    """
    return text.translate(_UNSEEN)


def mark_text(text: str, links: Sequence[Link] = (), marked: Sequence[Marked] = ()) -> Markup:
    """Gives a text as HTML whose own text is the same, code point for code point.

    Args:
        text: any.
        links: in order; they do not overlap. Marked places may begin and end in them.
        marked: in any order; they may overlap.
    """
    parts: list[str] = []
    at = 0
    for link in links:
        if not at <= link.start < link.end <= len(text):
            continue
        parts.append(_marked_part(text, at, link.start, marked))
        inner = _marked_part(text, link.start, link.end, marked)
        note = escape(shown(link.note))
        if link.url is None:
            parts.append(f'<span class="dead" title="{note}">{inner}</span>')
        else:
            parts.append(f'<a href="{escape(link.url)}" title="{note}">{inner}</a>')
        at = link.end
    parts.append(_marked_part(text, at, len(text), marked))
    return Markup("".join(parts))  # its parts are escaped


def _marked_part(text: str, start: int, end: int, marked: Sequence[Marked]) -> str:
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
            said = escape(shown("; ".join(filter(None, labels))))
            piece = Markup(f'<mark title="{said}">{piece}</mark>')
        parts.append(str(piece))
    return "".join(parts)
