"""Selects the parts of a page to leave out of a text: infoboxes, tables, lists, headings, and sections by heading."""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import NamedTuple
from unicodedata import normalize

from kbsource.elements import Element, Infobox, PageContent, Table
from kbsource.errors import SetupError

KINDS = ("infoboxes", "tables", "lists", "headings")
_ELEMENT_KINDS = {"lists": "list_item", "headings": "heading"}
_NO_HEADING = 1 << 8
"""Higher than the level of any heading."""


class Box(NamedTuple):
    """An infobox or a table of a page, with its number among the page's infoboxes or tables."""

    number: int
    content: Infobox | Table


class Parts(NamedTuple):
    """The parts of a page that are shown."""

    elements: Sequence[int]  #: indexes of elements, in order
    boxes: dict[int, list[Box]]  #: index of the element they follow -> infoboxes and tables in order


class Without:
    """Selects the parts of each page that a text contains, and counts the sections that are left out.

    A section is left out with its subsections and everything in them. If anything is left out, headings with nothing
    below them are left out too. If a table or infobox follows an element that is left out because of its kind, it
    follows the previous element instead.

    Args:
        names: names from ``KINDS``, or headings of sections in the wiki's language. Case and spaces do not matter. A
            string is split at its commas as in ``split_names``.
        kinds: further names from ``KINDS``.

    Raises:
        SetupError: a string cannot be split.
    """

    def __init__(self, names: str | Iterable[str] = (), *, kinds: Iterable[str] = ()) -> None:
        given = split_names(names) if isinstance(names, str) else names
        folded = {_folded(name): name for name in (*given, *kinds) if name.strip()}
        self._has_infoboxes, self._has_tables = "infoboxes" not in folded, "tables" not in folded
        self._element_kinds = frozenset(kind for name, kind in _ELEMENT_KINDS.items() if name in folded)
        self._is_whole = not folded
        self._names = {key: name for key, name in folded.items() if key not in KINDS}
        self.n_sections = dict.fromkeys(self._names.values(), 0)
        """Number of sections left out so far, by name as passed in."""

    def parts(self, page: PageContent) -> Parts:
        """Returns the parts of a page that are shown. The title is always shown."""
        infoboxes: Sequence[Infobox] = page.infoboxes if self._has_infoboxes else ()
        tables: Sequence[Table] = page.tables if self._has_tables else ()
        boxes: dict[int, list[Box]] = {}
        for box in (*starmap(Box, enumerate(infoboxes)), *starmap(Box, enumerate(tables))):
            boxes.setdefault(box.content.element, []).append(box)
        if self._is_whole:
            return Parts(range(len(page.elements)), boxes)
        outside = self._outside_sections(page.elements) if self._names else range(len(page.elements))
        shown = self._shown(page.elements, outside, boxes)
        if not boxes:
            return Parts(shown, boxes)
        moved: dict[int, list[Box]] = {}
        inside = set(outside)
        for number in sorted(boxes):
            if number in inside and (at := bisect_right(shown, number)):
                moved.setdefault(shown[at - 1], []).extend(boxes[number])
        return Parts(shown, moved)

    def _outside_sections(self, elements: Sequence[Element]) -> Sequence[int]:
        """Returns the indexes of the elements outside the named sections, and counts these sections."""
        outside: list[int] = []
        section: tuple[str, ...] = ()
        is_out = False
        for number, element in enumerate(elements):
            if element.kind == "heading" and (name := self._names.get(_folded(element.text))) is not None:
                self.n_sections[name] += 1
            if element.section != section:
                section = element.section
                is_out = any(_folded(heading) in self._names for heading in section)
            if not is_out:
                outside.append(number)
        return outside

    def _shown(self, elements: Sequence[Element], numbers: Sequence[int], boxes: dict[int, list[Box]]) -> list[int]:
        """Returns the indexes of the elements that are shown: no kind that is left out, and no heading without
        content.
        """
        shown: list[int] = []
        outermost = 0  # the outermost heading level before the next text; 0 if no text follows
        for number in reversed(numbers):
            kind = elements[number].kind
            is_shown = kind not in self._element_kinds
            if number in boxes or (is_shown and kind in ("paragraph", "list_item") and elements[number].text.strip()):
                outermost = _NO_HEADING
            if is_shown and kind == "heading":
                level = elements[number].level
                is_shown, outermost = level < outermost, min(level, outermost)
            if is_shown:
                shown.append(number)
        shown.reverse()
        return shown


def split_names(text: str) -> list[str]:
    """Returns the names in a comma-separated list. A name that contains a comma must be in double quotes.

    >>> split_names('lists, "Honours, awards and legacy", see also')
    ['lists', 'Honours, awards and legacy', 'see also']

    Raises:
        SetupError: a quote is not closed, or appears in the middle of a name.
    """
    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError) as error:
        raise SetupError(
            f"{text!r} is not a list of names: put commas between names, and a name with a comma in double quotes "
            f"({error})."
        ) from error
    return [name.strip() for name in names if name.strip()]


def _folded(name: str) -> str:
    """Returns a heading normalised for comparison: case, spaces and the encoding of accents are ignored."""
    return normalize("NFC", " ".join(normalize("NFC", name).casefold().split()))
