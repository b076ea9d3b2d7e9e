"""Builds the elements, tables and infoboxes of a page from its text and links, for every input format. It joins the
lines of paragraphs, counts the items of numbered lists, and computes the offsets of links.

The wikitext parser passes the whole text with the markers of ``kbsource.wikitext.markers``. For formats in which
templates are already expanded, ``PageBuilder`` collects such a text segment by segment.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from kbsource.elements import Anchor, Cell, CellLink, Element, Infobox, InfoboxField, Table
from kbsource.titles import Target
from kbsource.wikitext.blocks import RawCell, RawTable
from kbsource.wikitext.markers import ANY_CONTROL, BREAK, FRAGMENT, HEADING, LIST, PLACE, PRE, single_spaces
from kbsource.wikitext.walk import Link


class Blocks(NamedTuple):
    """The content of a page's body. ``places`` maps the placeholder of a table or infobox (``T3``, ``I0``) to the index
    of the element before it.
    """

    elements: list[Element]
    anchors: list[Anchor]
    places: dict[str, int]


Line = tuple[str, int, list[Link]]  # text, offset in the body, links
CellText = tuple[str, tuple[CellLink, ...]]  # text of a cell, a caption or an infobox value, with its links
NO_LINKS: list[Link] = []
LINE_PREFIX = re.compile(f"{LIST}[^{LIST}]*{LIST}|{HEADING}[0-9]|{PRE}|{PLACE}[TI][0-9]+")
_FRAGMENT_LENGTH = len(FRAGMENT)
_LAST_MARK = "\x08"


def build_blocks(text: str, links: list[Link], *, title: str) -> Blocks:
    """Returns the blocks of a page's body, whose lines have the markers of ``kbsource.wikitext.markers``; links must
    be in order.
    """
    # After the loop over links, the parser spends the most time in this one, so it uses only local variables.
    elements: list[Element] = [Element("title", 1, None, "", (), title)]
    anchors: list[Anchor] = []
    places: dict[str, int] = {}
    add_element, add_anchor = elements.append, anchors.append
    headings: list[tuple[int, str]] = []
    section: tuple[str, ...] = ()
    lines: list[Line] = []  # of the current paragraph
    is_pre = False
    numbering: list[list[int | str]] = []  # of the current list, see count_item
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
                wanted, fragment = target[2], target[3]
                add_anchor(Anchor(index, start, end, shown[start:end], wanted, fragment, None, written, is_made))
        add_element(Element(kind, level, ordinal, marker, section, shown))

    def end_paragraph() -> None:
        line, at, own = lines[0] if len(lines) == 1 else join_lines(lines)
        emit("paragraph", 0, None, "", line, at, own)
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
        if first == " " and line.isspace():  # the remains of links that show nothing
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
            is_begun = any(text.strip() for text, _, _ in lines)  # a paragraph that will become an element
            places[line[1:]] = len(elements) - (not is_begun)
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
    """Returns the lines of a paragraph joined by single spaces, and its links with their new offsets."""
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
    """Returns the number of a ``#`` item, or None for another item. Items with the same beginning of the prefix are in
    one list.

    ``numbering`` contains the marker character and the number of items so far for every depth of the current list, and
    is updated. ``#:`` continues an item, so the next ``#`` item gets the next number.
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


def split_cells(text: str, links: list[Link]) -> tuple[str, list[Link], list[CellText]]:
    """Splits a text into the body and the fragments after it. Returns the body, its links, and the fragments as cells.
    ``links`` must be in order.
    """
    end = text.index(FRAGMENT)
    n_links = bisect_left(links, (end,))
    cells = build_cells(text, end + _FRAGMENT_LENGTH, links[n_links:])
    return text[:end], links[:n_links], cells


def assemble_boxes(
    tables: Sequence[RawTable],
    infoboxes: Sequence[tuple[str, Sequence[tuple[str, str]]]],
    cells: Sequence[CellText],
    *,
    places: Mapping[str, int],
    hidden_places: Collection[str] = (),
    on_box: Callable[[str, Sequence[int], int, int], None] | None = None,
) -> tuple[tuple[Table, ...], tuple[Infobox, ...]]:
    """Returns the tables and infoboxes with the texts of their fragments, each with its position in the body.

    Tables at ``hidden_places`` are left out, with the tables nested in them, which follow and have no position.
    ``on_box`` receives the placeholder of each table or infobox (``T3``), the numbers of the notes in it, its index in
    the result, and the index of the element before it.
    """
    taken = iter(cells)
    found: list[Table] = []
    place = 0
    is_hidden = False
    for number, table in enumerate(tables):
        place = places.get(f"T{number}", place)
        is_hidden = f"T{number}" in hidden_places or (is_hidden and f"T{number}" not in places)
        caption = None if table.caption is None else next(taken)[0] or None
        rows = [
            tuple(
                [
                    Cell(text, cell.is_header, cell.colspan, cell.rowspan, own)
                    for cell, (text, own) in zip(row, taken, strict=False)  # a row has as many texts as cells
                ]
            )
            for row in table.rows
            if row
        ]
        kept = tuple(rows)
        if (kept or caption) and not is_hidden:
            if on_box is not None:
                on_box(f"T{number}", table.numbers, len(found), place)
            found.append(Table(place, caption, (), kept))
    boxes: list[Infobox] = []
    for number, (name, fields) in enumerate(infoboxes):
        values = [InfoboxField(field, *next(taken)) for field, _ in fields]
        place = places.get(f"I{number}", 0)
        if on_box is not None:
            on_box(f"I{number}", (), number, place)
        boxes.append(Infobox(place, name, tuple([value for value in values if value.text])))
    return tuple(found), tuple(boxes)


def build_cells(text: str, offset: int, links: list[Link]) -> list[CellText]:
    """Returns the fragments in a text from ``offset`` on as cells. ``links`` contains only links in these fragments."""
    cells: list[CellText] = []
    add = cells.append
    first = 0
    n_links = len(links)
    beyond = len(text) + 1
    next_start = links[0][0] if links else beyond
    for piece in text[offset:].split(FRAGMENT):
        end = offset + len(piece)
        own = NO_LINKS
        if next_start < end:
            last = first + 1
            while last < n_links and links[last][0] < end:
                last += 1
            own = links[first:last]
            first = last
            next_start = links[first][0] if first < n_links else beyond
        if not piece.isprintable():
            add(_cell(piece, offset, own))
        elif own:  # a printable text has one line and no markers, like most cells
            add(_line_cell(piece, offset, own))
        else:
            add((piece.strip(), ()))
        offset = end + _FRAGMENT_LENGTH
    return cells


_LOOSE_LINE = re.compile(r"\n(?:\s|(?<=\s\n))")  # a line that is empty or has white space around it


def _line_cell(text: str, offset: int, links: list[Link]) -> CellText:
    """Returns the text and links of a cell that needs only stripping: it contains no list markers, and has white space
    around lines only at its beginning and end.
    """
    stripped = text.strip()
    shift = offset if len(stripped) == len(text) else offset + len(text) - len(text.lstrip())
    return stripped, tuple([_cell_link(link, shift) for link in links])


def _cell_link(link: Link, shift: int) -> CellLink:
    start, end, target, _, _ = link
    return CellLink(start - shift, end - shift, target.title, target.fragment, None)


def _cell(text: str, offset: int, links: list[Link]) -> CellText:
    """Returns the text of a cell: its non-empty lines without list markers, joined by newlines.

    A line break begins a line, except inside a link.
    """
    if BREAK in text:
        for link in links:
            start, end = link[0] - offset, link[1] - offset
            if text.find(BREAK, start, end) >= 0:
                text = text[:start] + text[start:end].replace(BREAK, " ") + text[end:]
        text = text.replace(BREAK, "\n")
    has_marks = LIST in text or PRE in text or HEADING in text or PLACE in text
    if not has_marks:
        if not links:
            return "\n".join(filter(None, map(str.strip, text.split("\n")))) if "\n" in text else text.strip(), ()
        if not _LOOSE_LINE.search(text.strip()):
            return _line_cell(text, offset, links)
    lines: list[str] = []
    found: list[CellLink] = []
    length = 0
    waiting = iter(links)
    following = next(waiting, None)
    for line in text.split("\n"):
        end = offset + len(line)
        prefix = LINE_PREFIX.match(line) if has_marks else None
        content = line[prefix.end() :] if prefix else line
        piece = content.strip()
        if piece and lines:
            length += 1
        if following is not None and following[0] < end:
            shift = end - len(content.lstrip()) - length
            while following is not None and following[0] < end:
                if piece:
                    found.append(_cell_link(following, shift))
                following = next(waiting, None)
        if piece:
            lines.append(piece)
            length += len(piece)
        offset = end + 1
    return "\n".join(lines), tuple(found)


class BuiltPage(NamedTuple):
    """The content of a page, as collected by ``PageBuilder``. ``places`` is described in ``Blocks``."""

    elements: list[Element]
    anchors: list[Anchor]
    tables: tuple[Table, ...]
    infoboxes: tuple[Infobox, ...]


_WHITE = re.compile("[ \t\n\r\f\v\u00a0]+")
_PARAGRAPH = "\n\n"


class _Run:
    """A text under construction: the body of the page, or a fragment of it."""

    __slots__ = ("ends_in_space", "following", "last_visible", "length", "line_start", "links", "opened", "pieces")

    def __init__(self, following: str | None) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.links: list[Link] = []
        self.ends_in_space = True
        self.following = following  # prefix of the line that the next text begins; None if the text continues a line
        self.line_start = self.last_visible = 0
        self.opened: list[tuple[int, int]] = []  # beginnings of open links, as numbers of pieces and of characters

    def append(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def begin_line(self, beginning: str) -> None:
        self.append(beginning)
        self.following = None
        self.ends_in_space = True
        self.line_start = self.last_visible = self.length
        self.opened = [(len(self.pieces), self.length)] * len(self.opened)  # links stay in one line


class PageBuilder:
    """Collects the text, links and reference markers of a page in reading order. The caller begins each line
    explicitly.

    White space, no-break spaces included, becomes single spaces. Control characters are removed and counted in
    ``losses``. The functions that join lines, count items and place tables are the same as for wikitext.
    """

    def __init__(self, losses: Counter[str]) -> None:
        self._losses = losses
        self._body = self._run = _Run(_PARAGRAPH)
        self._outer: list[_Run] = []
        self._tables: list[tuple[RawTable, list[_Run]]] = []  # with caption and cells, in order
        self._infoboxes: list[tuple[str, list[tuple[str, _Run]]]] = []
        self.n_visible_chars = 0  # number of characters added so far, without spaces

    @property
    def last_character(self) -> str:
        """The last character of the current line; empty at its beginning."""
        run = self._run
        return run.pieces[-1][-1:] if run.following is None and run.length > run.line_start else ""

    @property
    def is_in_cell(self) -> bool:
        """True within a cell, a caption or the value of an infobox."""
        return bool(self._outer)

    def heading(self, level: int) -> None:
        """Begins a heading. It ends at the end of the line."""
        self._run.begin_line(f"\n{HEADING}{level}")

    def item(self, prefix: str) -> None:
        """Begins a list item; its prefix is written as in wikitext."""
        self._run.begin_line(f"\n{LIST}{prefix}{LIST}")

    def paragraph(self) -> None:
        """Ends the line; the next text begins a paragraph."""
        self._run.following = _PARAGRAPH

    def space(self) -> None:
        """Adds a space, unless there already is one."""
        if self._run.following is None:
            self.text(" ")

    def line_break(self) -> None:
        """Adds a line break: a new line in a cell, a space elsewhere."""
        run = self._run
        if run is not self._body and run.following is None:
            run.append(BREAK)
            run.ends_in_space = True
        else:
            self.space()

    def text(self, text: str) -> None:
        """Adds text to the current line."""
        if not text:
            return
        run = self._run
        if not text.isprintable() or "  " in text or "\u00a0" in text:
            text = _WHITE.sub(" ", text)
            if ANY_CONTROL.search(text):
                text, n_controls = ANY_CONTROL.subn("", text)
                text = single_spaces(text)
                self._losses["control_character"] += n_controls
        if run.following is not None:
            text = text.lstrip(" ")
            if text:
                run.begin_line(run.following)
        elif run.ends_in_space and text[:1] == " ":
            text = text[1:]
        if text:
            self.n_visible_chars += len(text) - text.count(" ")
            run.append(text)
            run.ends_in_space = text[-1] == " "
            if not text.isspace():
                run.last_visible = run.length - len(text) + len(text.rstrip())

    def open_link(self) -> None:
        """Begins a link; links must not be nested."""
        run = self._run
        run.opened.append((len(run.pieces), run.length))

    def close_link(self, target: Target, written: str, *, is_made: bool) -> bool:
        """Ends the last link, and returns whether it has text in the current line."""
        run = self._run
        n_pieces, start = run.opened.pop()
        shown = "".join(run.pieces[n_pieces:])
        text = shown.strip()
        if not text or run.following is not None:
            return False
        start += shown.index(text)
        run.links.append((start, start + len(text), target, written, is_made))
        return True

    def mark(self, target: Target, written: str) -> None:
        """Places a reference marker after the last visible character of the current line. The marker is stored as a
        link over this character. If the line is empty, nothing is placed.
        """
        run = self._run
        if run.last_visible > run.line_start:
            run.links.append((run.last_visible - 1, run.last_visible, target, written, False))

    def open_table(self) -> int:
        """Adds a table and returns its number. The placeholder is added to the body, unless the table is in a cell."""
        self._tables.append((RawTable(), []))
        return self._place("T", len(self._tables) - 1)

    def open_infobox(self, name: str) -> int:
        """Adds an infobox and returns its number."""
        self._infoboxes.append((name, []))
        return self._place("I", len(self._infoboxes) - 1)

    def _place(self, kind: str, number: int) -> int:
        if self._run is self._body:
            self._body.begin_line(f"\n{PLACE}{kind}{number}")
        self.paragraph()
        return number

    def row(self, table: int) -> None:
        """Begins a row of a table."""
        self._tables[table][0].rows.append([])

    def open_cell(self, table: int, *, is_header: bool, colspan: int, rowspan: int) -> None:
        """Begins a cell. Text is added to it until ``close_cell`` is called."""
        raw, runs = self._tables[table]
        if not raw.rows:
            raw.rows.append([])
        raw.rows[-1].append(RawCell("", is_header, colspan, rowspan))
        runs.append(self._enter())

    def open_caption(self, table: int) -> None:
        """Begins a table's caption, which ``close_cell`` ends. If a table has several, the first is used."""
        raw, runs = self._tables[table]
        run = self._enter()
        if raw.caption is None:
            raw.caption = ""
            runs.insert(0, run)

    def open_field(self, infobox: int, name: str) -> None:
        """Begins the value of an infobox's field, which ``close_cell`` ends."""
        self._infoboxes[infobox][1].append((name, self._enter()))

    def _enter(self) -> _Run:
        self._outer.append(self._run)
        self._run = _Run("\n")
        return self._run

    def close_cell(self) -> None:
        """Ends a cell, a caption or a field."""
        self._run = self._outer.pop()

    def note_in_table(self, table: int, number: int) -> None:
        """Records the number of a note in a table."""
        self._tables[table][0].numbers.append(number)

    def build(
        self,
        title: str,
        *,
        on_box: Callable[[str, Sequence[int], int, int], None] | None = None,
    ) -> BuiltPage:
        """Returns the page. ``on_box`` is described in ``assemble_boxes``."""
        runs = [self._body]
        for raw, own in self._tables:
            runs += own if any(raw.rows) or raw.caption is not None else []
        for _, fields in self._infoboxes:
            runs += [run for _, run in fields]
        offset = 0
        links: list[Link] = []
        texts = []
        for run in runs:
            texts.append("".join(run.pieces))
            links += [
                (start + offset, end + offset, target, written, is_made)
                for start, end, target, written, is_made in sorted(run.links, key=_START)
            ]
            offset += run.length + _FRAGMENT_LENGTH
        cells: list[CellText] = []
        text = texts[0]
        if len(texts) > 1:
            text, links, cells = split_cells(FRAGMENT.join(texts), links)
        blocks = build_blocks(text, links, title=title)
        tables, infoboxes = assemble_boxes(
            [raw for raw, _ in self._tables],
            [(name, [(field, "") for field, _ in fields]) for name, fields in self._infoboxes],
            cells,
            places=blocks.places,
            on_box=on_box,
        )
        return BuiltPage(blocks.elements, blocks.anchors, tables, infoboxes)


_START = itemgetter(0)
