"""Last step: lines of plain text -> title, headings, paragraphs, list items and cells, with links moved along."""

from __future__ import annotations

import re
from typing import NamedTuple

from kbsource.records import Element
from kbsource.titles import Target
from kbsource.wikitext.markers import FRAGMENT, HEADING, LIST, PLACE, PRE
from kbsource.wikitext.walk import Link


class RawAnchor(NamedTuple):
    """A link in an element whose target is not yet looked up; ``is_made``: a template made it."""

    element: int
    start: int
    end: int
    text: str
    target: Target
    written: str
    is_made: bool


class RawLink(NamedTuple):
    """A link in a cell or infobox value whose target is not yet looked up."""

    start: int
    end: int
    target: Target


class TextCell(NamedTuple):
    """A cell or an infobox value as text with its links."""

    text: str
    links: tuple[RawLink, ...]


class Blocks(NamedTuple):
    """What a page's body holds. ``places`` gives for ``T3`` or ``I0`` the index of the element before it."""

    elements: list[Element]
    anchors: list[RawAnchor]
    places: dict[str, int]


Line = tuple[str, int, list[Link]]  # text, offset in the body, links
NO_LINKS: list[Link] = []
_LINE_PREFIX = re.compile(f"{LIST}[^{LIST}]*{LIST}|{HEADING}[0-9]|{PRE}|{PLACE}[TI][0-9]+")
_FRAGMENT_LENGTH = len(FRAGMENT)
_LAST_MARK = "\x08"


def build_blocks(text: str, links: list[Link], *, title: str) -> Blocks:
    """Gives the blocks of a page's body.

    Args:
        text: plain text, its lines marked as in ``kbsource.wikitext.markers``.
        links: links with offsets in it, in order.
        title: title of the page.
    """
    # The hottest loop of the parser but for the links' own: everything in it is a local.
    elements: list[Element] = [Element("title", 1, None, "", (), title)]
    anchors: list[RawAnchor] = []
    places: dict[str, int] = {}
    add_element, add_anchor = elements.append, anchors.append
    headings: list[tuple[int, str]] = []
    section: tuple[str, ...] = ()
    lines: list[Line] = []  # of the paragraph at work
    is_pre = False
    numbering: list[list[int | str]] = []  # of the list at work, see count_item
    last_marker = ""
    offset = next_link = 0
    n_links = len(links)
    beyond = len(text) + 1
    next_start = links[0][0] if links else beyond

    def emit(kind: str, level: int, ordinal: int | None, marker: str, line: str, at: int, own: list[Link]) -> None:
        shown = line.strip()
        if not shown:
            return
        if own:
            shift = at if len(shown) == len(line) else at + len(line) - len(line.lstrip())
            index = len(elements)
            for start, end, target, written, is_made in own:
                start -= shift
                end -= shift
                add_anchor(RawAnchor(index, start, end, shown[start:end], target, written, is_made))
        add_element(Element(kind, level, ordinal, marker, section, shown))

    def end_paragraph() -> None:
        if len(lines) == 1:
            emit("paragraph", 0, None, "", *lines[0])
        else:
            emit("paragraph", 0, None, "", *join_lines(lines))
        lines.clear()

    for line in text.split("\n"):
        line_end = offset + len(line)
        own = NO_LINKS
        if next_start < line_end:
            first_link = next_link
            while next_link < n_links and links[next_link][0] < line_end:
                next_link += 1
            own = links[first_link:next_link]
            next_start = links[next_link][0] if next_link < n_links else beyond
        first = line[:1]
        if first == " " and line.isspace():  # left of links that show nothing
            first = ""
        if first > _LAST_MARK or first == PRE:  # the most frequent case first: a line of text
            if (first == PRE) != is_pre:
                if lines:
                    end_paragraph()
                is_pre = not is_pre
            if is_pre:
                lines.append((line[1:], offset + 1, own))
            else:
                lines.append((line, offset, own))
            if numbering:
                numbering.clear()
        elif first == PLACE and line[1] == "I":
            places[line[1:]] = len(elements) - (not lines)
        else:
            if lines:
                end_paragraph()
            if first == LIST:
                after = line.index(LIST, 1)
                marker = line[1:after]
                if marker == last_marker and numbering:
                    n_items = numbering[-1][1] = int(numbering[-1][1]) + 1
                    ordinal = n_items if marker[-1] == "#" else None
                else:
                    ordinal = count_item(numbering, marker)
                    last_marker = marker
                emit("list_item", after - 1, ordinal, marker, line[after + 1 :], offset + after + 1, own)
            else:
                if numbering:
                    numbering.clear()
                if first == HEADING:
                    level = int(line[1])
                    if heading := line[2:].strip():
                        while headings and headings[-1][0] >= level:
                            headings.pop()
                        headings.append((level, heading))
                        section = tuple([name for _, name in headings])
                        emit("heading", level, None, "", line[2:], offset + 2, own)
                elif first:
                    places[line[1:]] = len(elements) - 1
        offset = line_end + 1
    if lines:
        end_paragraph()
    return Blocks(elements, anchors, places)


def join_lines(lines: list[Line]) -> Line:
    """Gives the lines of a paragraph as one, joined by single spaces, with its links moved along."""
    texts: list[str] = []
    moved: list[Link] = []
    length = 0
    for line, offset, links in lines:
        text = line.strip()
        if text:
            if links:
                shift = offset + len(line) - len(line.lstrip()) - length
                moved += [
                    (start - shift, end - shift, target, written, is_made)
                    for start, end, target, written, is_made in links
                ]
            texts.append(text)
            length += len(text) + 1
    return " ".join(texts), 0, moved


def count_item(numbering: list[list[int | str]], marker: str) -> int | None:
    """Gives the number of a ``#`` item, None for others; a list goes on as long as its prefix does.

    Args:
        numbering: for every depth of the list at work its marker character and the items so far; brought up to date.
        marker: the item's prefix. ``#:`` goes on within an item, so that the next ``#`` counts on.
    """
    same = 0
    for kept, character in zip(numbering, marker, strict=False):
        if kept[0] != character and {kept[0], character} != {";", ":"}:
            break
        same += 1
    del numbering[same:]
    if same == len(marker):
        numbering[-1][1] = int(numbering[-1][1]) + 1
    else:
        numbering += [[character, 1] for character in marker[same:]]
    return int(numbering[-1][1]) if marker[-1] == "#" else None


def build_cells(text: str, offset: int, links: list[Link]) -> list[TextCell]:
    """Gives the fragments that stand in a text from ``offset`` on; ``links`` are those in them."""
    cells: list[TextCell] = []
    add = cells.append
    first = 0
    n_links = len(links)
    beyond = len(text) + 1
    next_start = links[0][0] if links else beyond
    for piece in text[offset:].split(FRAGMENT):
        end = offset + len(piece)
        if next_start < end:
            last = first + 1
            while last < n_links and links[last][0] < end:
                last += 1
            add(_cell(piece, offset, links[first:last]))
            first = last
            next_start = links[first][0] if first < n_links else beyond
        elif "\n" in piece or LIST in piece or PRE in piece or HEADING in piece or PLACE in piece:
            add(_cell(piece, offset, NO_LINKS))
        else:
            add(TextCell(piece.strip(), ()))
        offset = end + _FRAGMENT_LENGTH
    return cells


def _cell(text: str, offset: int, links: list[Link]) -> TextCell:
    """Gives the text of a cell: its lines without list marks, blank ones left out, joined by newlines."""
    if not ("\n" in text or LIST in text or PRE in text or HEADING in text or PLACE in text):
        shift = offset + len(text) - len(text.lstrip())
        return TextCell(text.strip(), tuple([RawLink(link[0] - shift, link[1] - shift, link[2]) for link in links]))
    lines: list[str] = []
    found: list[RawLink] = []
    length = next_link = 0
    for line in text.split("\n"):
        end = offset + len(line)
        own: list[Link] = []
        while next_link < len(links) and links[next_link][0] < end:
            own.append(links[next_link])
            next_link += 1
        prefix = _LINE_PREFIX.match(line)
        content = line[prefix.end() :] if prefix else line
        piece = content.strip()
        if piece:
            if lines:
                length += 1
            shift = offset + len(line) - len(content.lstrip()) - length
            found += [RawLink(link[0] - shift, link[1] - shift, link[2]) for link in own]
            lines.append(piece)
            length += len(piece)
        offset = end + 1
    return TextCell("\n".join(lines), tuple(found))
