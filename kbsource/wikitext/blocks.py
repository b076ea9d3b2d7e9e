"""Last step: lines of plain text -> title, headings, paragraphs and list items, with links moved along."""

from __future__ import annotations

from typing import NamedTuple

from kbsource.records import Element
from kbsource.titles import Target
from kbsource.wikitext.markers import HEADING, LIST, PLACE, PRE
from kbsource.wikitext.walk import Link


class RawAnchor(NamedTuple):
    """A link in an element whose target is not yet looked up."""

    element: int
    start: int
    end: int
    text: str
    target: Target
    written: str


class Blocks(NamedTuple):
    """What a page's body holds. ``places`` gives for ``T3`` or ``I0`` the index of the element before it."""

    elements: list[Element]
    anchors: list[RawAnchor]
    places: dict[str, int]


Line = tuple[str, int, list[Link]]  # text, offset in the body, links
_NO_LINKS: list[Link] = []
_LAST_MARK = "\x08"


class BlockBuilder:
    """Collects the blocks of one page; call ``add_body`` once."""

    def __init__(self, title: str) -> None:
        self.elements: list[Element] = [Element("title", 1, None, "", (), title)]
        self.anchors: list[RawAnchor] = []
        self.places: dict[str, int] = {}
        self._headings: list[tuple[int, str]] = []
        self._section: tuple[str, ...] = ()
        self._list: list[list[int | str]] = []  # for every depth: marker character, items so far

    def add_body(self, text: str, links: list[Link]) -> Blocks:
        """Gives the blocks of the body's plain text with its links."""
        parts: list[Line] = []  # the lines of the paragraph at work
        is_pre = False
        state = self._list
        offset = next_link = 0
        n_links = len(links)
        beyond = len(text) + 1
        next_start = links[0].start if links else beyond
        for line in text.split("\n"):
            end = offset + len(line)
            line_links = _NO_LINKS
            if next_start < end:
                first_link = next_link
                while next_link < n_links and links[next_link][0] < end:
                    next_link += 1
                line_links = links[first_link:next_link]
                next_start = links[next_link][0] if next_link < n_links else beyond
            if line > _LAST_MARK:  # the most frequent case first: a line of text
                if state:
                    state.clear()
                if is_pre and parts:
                    self._emit_paragraph(parts)
                    parts = []
                is_pre = False
                if not line.isspace():
                    parts.append((line, offset, line_links))
                elif parts:
                    self._emit_paragraph(parts)
                    parts = []
            elif line and line[0] == PRE:
                state.clear()
                if not is_pre and parts:
                    self._emit_paragraph(parts)
                    parts = []
                is_pre = True
                if not line[1:].isspace():
                    parts.append((line[1:], offset + 1, line_links))
            elif line and line[0] == PLACE and line[1] == "I":
                self.places[line[1:]] = len(self.elements) - (not parts)
            else:
                if parts:
                    self._emit_paragraph(parts)
                    parts = []
                if line and line[0] == LIST:
                    self._add_item(line, offset, line_links)
                else:
                    if state:
                        state.clear()
                    if line:
                        if line[0] == HEADING:
                            self._add_heading(line, offset, line_links)
                        else:
                            self.places[line[1:]] = len(self.elements) - 1
            offset = end + 1
        if parts:
            self._emit_paragraph(parts)
        return Blocks(self.elements, self.anchors, self.places)

    def _add_heading(self, line: str, offset: int, links: list[Link]) -> None:
        level = int(line[1])
        headings = self._headings
        text = line[2:].strip()
        if not text:
            return
        while headings and headings[-1][0] >= level:
            headings.pop()
        headings.append((level, text))
        self._section = tuple([heading for _, heading in headings])
        self._emit("heading", level, None, "", line[2:], offset + 2, links)

    def _add_item(self, line: str, offset: int, links: list[Link]) -> None:
        after = line.index(LIST, 1)
        marker = line[1:after]
        ordinal = self._count_item(marker)
        self._emit("list_item", after - 1, ordinal, marker, line[after + 1 :], offset + after + 1, links)

    def _count_item(self, marker: str) -> int | None:
        """Gives the number of a ``#`` item: lists go on as long as their prefix does, ``#:`` goes on within an item."""
        state = self._list
        same = 0
        for kept, character in zip(state, marker, strict=False):
            if kept[0] != character and {kept[0], character} != {";", ":"}:
                break
            same += 1
        del state[max(same, 0) :]
        if same == len(marker):
            state[-1][1] = int(state[-1][1]) + 1
        else:
            for character in marker[same:]:
                state.append([character, 1])
        return int(state[-1][1]) if marker[-1] == "#" else None

    def _emit_paragraph(self, parts: list[Line]) -> None:
        if len(parts) == 1:
            self._emit("paragraph", 0, None, "", *parts[0])
            return
        texts: list[str] = []
        moved: list[Link] = []
        length = 0
        for line, offset, links in parts:
            text = line.strip()
            if text:
                if links:
                    moved += move_links(links, offset + len(line) - len(line.lstrip()) - length)
                texts.append(text)
                length += len(text) + 1
        self._add("paragraph", 0, None, "", " ".join(texts), moved, 0)

    def _emit(
        self, kind: str, level: int, ordinal: int | None, marker: str, line: str, offset: int, links: list[Link]
    ) -> None:
        text = line.strip()
        if text:
            self._add(kind, level, ordinal, marker, text, links, offset + len(line) - len(line.lstrip()))

    def _add(
        self, kind: str, level: int, ordinal: int | None, marker: str, text: str, links: list[Link], shift: int
    ) -> None:
        """Adds an element and its anchors; ``shift`` is where its text begins in the text of the links' offsets."""
        if links:
            index = len(self.elements)
            new = tuple.__new__  # what a NamedTuple's constructor calls after a Python frame of its own
            self.anchors += [
                new(RawAnchor, (index, start - shift, end - shift, text[start - shift : end - shift], target, written))
                for start, end, target, written in links
            ]
        self.elements.append(Element(kind, level, ordinal, marker, self._section, text))


def move_links(links: list[Link], shift: int) -> list[Link]:
    """Gives links with offsets in a text that begins at ``shift`` in theirs."""
    return [Link(start - shift, end - shift, target, written) for start, end, target, written in links]
