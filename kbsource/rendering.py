"""Renders a page as one text: plain, Markdown or HTML, whole or in parts. Formulas are TeX between dollar signs."""

from __future__ import annotations

import re
import urllib.parse
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import groupby
from typing import Literal, NamedTuple

from kbsource.elements import Anchor, Cell, CellLink, Element, Infobox, PageContent, Table
from kbsource.parts import Without
from kbsource.web_addresses import web_address

Links = Sequence[Anchor | CellLink]
TextForm = Literal["plain", "body", "markdown"]
_LEFT_OUT: dict[TextForm, tuple[str, ...]] = {
    "plain": ("infoboxes", "tables", "lists"),
    "body": ("infoboxes",),
    "markdown": (),
}
_DEEPEST = 8
"""Maximum depth to which list items are indented."""
_STYLES = {";": ' class="terms"', ":": ' class="indented"'}
_MOST_COLUMNS = 1_000
_MOST_FILLED = 100
"""Maximum number of columns of a table in which the columns that a cell spans are filled with empty cells. The limit
keeps the time linear in the length of the text.
"""


class Block(NamedTuple):
    """Text between two empty lines: a heading, a paragraph, a table or an infobox; or one item of a list."""

    kind: str  #: as ``Element.kind``, or ``table`` or ``infobox``
    section: tuple[str, ...]  #: headings above it, as ``Element.section``
    text: str  #: one line; tables and infoboxes have several


def join_blocks(blocks: Iterable[Block]) -> str:
    """Returns the blocks as one text. They are separated by empty lines, and items of a list by a newline."""
    parts: list[str] = []
    before = ""
    for kind, _, text in blocks:
        if parts:
            parts.append("\n" if kind == before == "list_item" else "\n\n")
        parts.append(text)
        before = kind
    return "".join(parts)


def title_url(base: str, title: str, fragment: str | None = None) -> str:
    """Returns the URL of a title on a wiki. ``base`` is the permanent link to any page of the wiki.

    >>> title_url("https://en.wikipedia.org/w/index.php?title=A&oldid=1", "Mercury (planet)", "Orbit")
    'https://en.wikipedia.org/wiki/Mercury_%28planet%29#Orbit'
    """
    url = f"{_wiki_of(base)}/wiki/{_quoted(title)}"
    return f"{url}#{_quoted(fragment)}" if fragment else url


_NO_MARKS = str.maketrans({"(": "%28", ")": "%29"})
"""Escapes the characters that would end a link in Markdown."""


@lru_cache(maxsize=16)
def _wiki_of(base: str) -> str:
    """Returns the URL of a wiki without a path; empty if the page's URL is not a web address."""
    wiki = (web_address(base) or "").partition("/w/index.php")[0]
    return wiki.translate(_NO_MARKS)


def _quoted(text: str) -> str:
    return urllib.parse.quote(text.replace(" ", "_"), safe="/:,;@!~$-._", errors="replace")


class PlainText:
    """Writes pages as plain text without titles. The only markup is list markers, and bars between table cells."""

    has_links = False
    _has_title = False
    _indent = "  "
    _line_end = "; "

    def __init__(self, without: Without) -> None:
        self.without = without

    def text(self, page: PageContent) -> str:
        """Returns the text of the whole page."""
        return join_blocks(self.blocks(page))

    def blocks(self, page: PageContent) -> Iterator[Block]:
        """Yields the non-empty blocks of a page in order. A table comes after the element that it follows."""
        numbers, boxes = self.without.parts(page)
        links: dict[int, Links] = {}
        base = ""
        if self.has_links:
            links = {number: [*own] for number, own in groupby(page.anchors, lambda anchor: anchor.element)}
            base = page.url
        depth = 0
        for number in numbers:
            element = page.elements[number]
            if element.text.strip() and (self._has_title or element.kind != "title"):
                text = self._inline(element.text, links.get(number, ()), base)
                kind = element.kind
                if kind == "list_item":
                    before, depth = depth, max(min(element.level, depth + 1, _DEEPEST), 1)
                    text = self._item(element, text, depth, is_first=depth > before)
                    if element.marker[-1:] in (";", ":"):  # a term or an indented line cannot contain other items
                        kind, depth = "paragraph", depth - 1
                else:
                    depth = 0
                    text = self._paragraph(text) if kind == "paragraph" else self._heading(element, text)
                yield Block(kind, element.section, text)
            for _, box in boxes.get(number, ()):
                depth = 0
                kind, lines = (
                    ("table", self._table(box, base))
                    if isinstance(box, Table)
                    else ("infobox", self._infobox(box, base))
                )
                if rows := "\n".join(lines):
                    yield Block(kind, element.section, rows)

    def _inline(self, text: str, links: Links, base: str) -> str:
        return text

    def _paragraph(self, text: str) -> str:
        return text

    def _heading(self, element: Element, text: str) -> str:
        return text

    def _item(self, element: Element, text: str, depth: int, *, is_first: bool) -> str:
        """Returns the text of a list item at a depth from 1. Terms and indented lines have no marker."""
        mark = f"{element.ordinal}. " if element.ordinal is not None else "- "
        if element.marker[-1:] in (";", ":"):
            mark = ""
        return self._indent * (depth - 1) + mark + self._paragraph(text)

    def _cell(self, text: str, links: Links, base: str) -> str:
        """Returns the text of a cell or field on one line, with a separator between its lines."""
        return self._inline(text, links, base).replace("\n", self._line_end)

    def _rows(self, table: Table, base: str) -> Iterator[list[str]]:
        for row in _grid(table):
            cells = ["" if cell is None else self._cell(cell.text, cell.links, base) for cell in row]
            if any(cells):
                yield cells

    def _table(self, table: Table, base: str) -> Iterator[str]:
        if table.caption:
            yield self._cell(table.caption, (), base)
        header = [self._cell(text, (), base) for text in table.header]
        for cells in [header, *self._rows(table, base)] if any(header) else self._rows(table, base):
            yield " | ".join(filter(None, cells))

    def _infobox(self, infobox: Infobox, base: str) -> Iterator[str]:
        for field in infobox.fields:
            yield f"{self._cell(field.name, (), base)}: {self._cell(field.text, field.links, base)}"


def text_form(form: TextForm, without: str | Iterable[str], *, has_links: bool = False) -> PlainText:
    """Returns the writer of a text form; ``without`` is as for ``Page.plain``.

    Raises:
        SetupError: ``without`` is a text that cannot be split.
    """
    parts = Without(without, kinds=_LEFT_OUT[form])
    return Markdown(parts, has_links=has_links) if form == "markdown" else PlainText(parts)


# Matches a formula, whose dollar signs touch its text and whose second dollar sign is not followed by a digit (Pandoc's
# rule), or else a character that CommonMark or HTML would read as markup.
_MARKS = re.compile(r"(\$(?! )[^$\n]+(?<! )\$(?!\d))|[\\`*\[\]<]|(?<!\w)_|_(?!\w)|&(?=#?\w{1,32};)")
_MAYBE_MARK = re.compile(r"[\\`*_\[\]<&$|]")  # a fast search, because most texts contain none of these
_MARKS_IN_CELL = re.compile(_MARKS.pattern + r"|\|")
_LINE_START = re.compile(r"[#>+\-~=]|\d{1,9}(?=[.)](?:\s|$))")
_IN_FORMULA = re.compile(r"<(?=[A-Za-z/!?])")


class Markdown(PlainText):
    """Writes pages as CommonMark with GitHub's tables. Characters of the text that would be markup are escaped."""

    _has_title = True
    _indent = "    "
    _line_end = "<br>"

    def __init__(self, without: Without, *, has_links: bool = False) -> None:
        super().__init__(without)
        self.has_links = has_links

    def _inline(self, text: str, links: Links, base: str, marks: re.Pattern[str] = _MARKS) -> str:
        if not (links and self.has_links):
            return marks.sub(_escaped, text) if _MAYBE_MARK.search(text) else text
        parts: list[str] = []
        at = 0
        for link in links:
            if at <= link.start < link.end <= len(text):
                url = title_url(base, link.target_title, link.target_fragment)
                shown = marks.sub(_escaped, text[link.start : link.end])
                parts += (marks.sub(_escaped, text[at : link.start]), f"[{shown}]({url})")
                at = link.end
        parts.append(marks.sub(_escaped, text[at:]))
        return "".join(parts)

    def _paragraph(self, text: str) -> str:
        text = text.lstrip()  # four spaces would make it a code block
        if (start := _LINE_START.match(text)) is None:
            return text
        at = start.end() if start[0].isdigit() else 0
        return f"{text[:at]}\\{text[at:]}"

    def _heading(self, element: Element, text: str) -> str:
        if text[-1:] == "#":
            text = f"{text[:-1]}\\#"
        return f"{'#' * (1 if element.kind == 'title' else min(max(element.level, 2), 6))} {text}"

    def _item(self, element: Element, text: str, depth: int, *, is_first: bool) -> str:
        if element.marker[-1:] == ";":
            text = f"**{text.strip()}**"
        item = super()._item(element, text, depth, is_first=is_first)
        # After a line of text, a list can only start with the number 1.
        return f"\n{item}" if is_first and depth > 1 and element.ordinal not in (None, 1) else item

    def _cell(self, text: str, links: Links, base: str) -> str:
        return self._inline(text, links, base, _MARKS_IN_CELL).replace("\n", self._line_end)

    def _table(self, table: Table, base: str) -> Iterator[str]:
        rows = [*self._rows(table, base)]
        header = [self._cell(text, (), base) for text in table.header]
        if caption := self._cell(table.caption or "", (), base).strip():
            yield f"**{caption}**\n"
        if rows or any(header):
            yield from _pipes(header, rows)

    def _infobox(self, infobox: Infobox, base: str) -> Iterator[str]:
        rows = [
            [self._cell(field.name, (), base), self._cell(field.text, field.links, base)] for field in infobox.fields
        ]
        yield from _pipes([self._cell(infobox.name, (), base)], rows)


def _escaped(found: re.Match[str]) -> str:
    if found[1] is None:
        return f"\\{found[0]}"
    return _IN_FORMULA.sub(r"\\lt ", found[1]).replace("\\|", "\\Vert ").replace("|", "\\vert ")


def _pipes(header: list[str], rows: Sequence[list[str]]) -> Iterator[str]:
    width = max(len(header), *map(len, rows), 1)
    for cells in (header + [""] * (width - len(header)), ["---"] * width, *rows):
        yield f"| {' | '.join(cells)} |"


def _grid(table: Table) -> Iterator[list[Cell | None]]:
    """Yields the cells of each row by column, with None where a cell from another column or row covers it."""
    reaching: dict[int, int] = {}  # remaining rows that a cell above still spans, by column
    for row in table.rows:
        cells: list[Cell | None] = []
        for cell in row:
            while reaching.get(len(cells)):
                cells.append(None)
            column, n_columns = len(cells), max(min(cell.colspan, _MOST_FILLED - len(cells)), 1)
            cells += (cell, *[None] * (n_columns - 1))
            if cell.rowspan > 1 and column < _MOST_FILLED:
                reaching |= dict.fromkeys(range(column, column + n_columns), cell.rowspan)
        if reaching:
            reaching = {column: n - 1 for column, n in reaching.items() if n > 1}
        yield cells


class ElementPiece(NamedTuple):
    """The characters of an element from ``start`` up to ``end``; usually the whole element."""

    element: int
    start: int
    end: int


class HtmlPage:
    """A page as HTML. A view overrides how texts, links, headings and tables are written.

    Args:
        without: parts to leave out; none by default.
        has_links: write links that point to the wiki.
    """

    def __init__(self, page: PageContent, without: Without | None = None, *, has_links: bool = False) -> None:
        self.page, self.has_links = page, has_links
        self._anchor_elements = [anchor.element for anchor in page.anchors] if has_links else []
        self._numbers, self._boxes = (without or Without()).parts(page)

    def text(self) -> str:
        """Returns the HTML of the whole page."""
        pieces = (ElementPiece(number, 0, len(self.page.elements[number].text)) for number in self._numbers)
        return "\n".join(self.blocks(pieces))

    def blocks(self, pieces: Iterable[ElementPiece]) -> Iterator[str]:
        """Renders these segments as HTML. The segments must be in order."""
        lists: list[str] = []  # tags of the open lists
        for piece in pieces:
            element = self.page.elements[piece.element]
            if element.kind == "list_item":
                yield from _enter_item(lists, element)
                yield self._text("span", piece)
            else:
                yield from _leave_lists(lists, 0)
                yield self._text("p", piece) if element.kind == "paragraph" else self._heading(piece)
            if piece.end == len(element.text) and piece.element in self._boxes:
                yield from _leave_lists(lists, 0)
                for number, box in self._boxes[piece.element]:
                    yield self._table(number, box) if isinstance(box, Table) else self._infobox(box)
        yield from _leave_lists(lists, 0)

    def anchors(self, piece: ElementPiece) -> list[Anchor]:
        """Returns the anchors inside a segment."""
        number, start, end = piece
        first, last = bisect_left(self._anchor_elements, number), bisect_right(self._anchor_elements, number)
        if first == last:
            return []
        return [anchor for anchor in self.page.anchors[first:last] if start <= anchor.start and anchor.end <= end]

    def _heading(self, piece: ElementPiece) -> str:
        element = self.page.elements[piece.element]
        return self._text("h1" if element.kind == "title" else f"h{min(max(element.level, 2), 6)}", piece)

    def _text(self, tag: str, piece: ElementPiece) -> str:
        """Returns a text in its tag."""
        text = self.page.elements[piece.element].text[piece.start : piece.end]
        return f'<{tag} dir="auto">{self._linked(text, self.anchors(piece))}</{tag}>'

    def _linked(self, text: str, links: Links) -> str:
        parts: list[str] = []
        at = 0
        for link in links if self.has_links else ():
            if at <= link.start < link.end <= len(text):
                url = escape(title_url(self.page.url, link.target_title, link.target_fragment))
                shown = escape(text[link.start : link.end])
                parts += (escape(text[at : link.start]), f'<a href="{url}">{shown}</a>')
                at = link.end
        return "".join((*parts, escape(text[at:])))

    def _name(self, text: str) -> str:
        """Returns the text of a caption, a header or a field name."""
        return escape(text)

    def _cell_text(self, text: str, links: Links) -> str:
        return self._linked(text, links).replace("\n", "<br>")

    def _infobox(self, infobox: Infobox) -> str:
        rows = "".join(
            f'<tr><th scope="row" dir="auto">{self._name(field.name).replace("_", "_<wbr>")}</th>'
            f'<td dir="auto">{self._cell_text(field.text, field.links)}</td></tr>'
            for field in infobox.fields
        )
        caption = f'<caption dir="auto">{self._name(infobox.name)}</caption>'
        return f'<table class="infobox">{caption}<tbody>{rows}</tbody></table>'

    def _table(self, number: int, table: Table) -> str:
        """Returns a table, given its number on the page."""
        return self.table_html(table, table.rows)

    def table_html(self, table: Table, rows: Sequence[Sequence[Cell]]) -> str:
        """Returns a table with its caption, its header and the given rows."""
        caption = "" if table.caption is None else f'<caption dir="auto">{self._name(table.caption)}</caption>'
        head = "".join(f'<th scope="col" dir="auto">{self._name(text)}</th>' for text in table.header)
        body = "".join(
            f"<tr>{''.join(self._cell(cell, len(rows) - place) for cell in row)}</tr>" for place, row in enumerate(rows)
        )
        head = f"<thead><tr>{head}</tr></thead>" if head else ""
        return f"<table>{caption}{head}<tbody>{body}</tbody></table>"

    def _cell(self, cell: Cell, rows_left: int) -> str:
        tag = "th" if cell.is_header else "td"
        columns = f' colspan="{min(cell.colspan, _MOST_COLUMNS)}"' if cell.colspan > 1 else ""
        rows = f' rowspan="{min(cell.rowspan, rows_left)}"' if min(cell.rowspan, rows_left) > 1 else ""
        return f'<{tag}{columns}{rows} dir="auto">{self._cell_text(cell.text, cell.links)}</{tag}>'


def _enter_item(lists: list[str], element: Element) -> Iterator[str]:
    """Opens and closes lists until the depth of an item is reached, and opens the item."""
    tag = "ol" if element.ordinal is not None else "ul"
    depth = min(max(element.level, 1), _DEEPEST)
    yield from _leave_lists(lists, depth)
    if len(lists) == depth:
        yield "</li>"
        if lists[-1] != tag:
            yield f"</{lists.pop()}>"
    while len(lists) < depth:
        lists.append(tag)
        # Terms and indented lines have no bullets.
        yield f"<{tag}{_STYLES.get(element.marker[-1:], '')}>"
        if len(lists) < depth:
            yield '<li class="deeper">'
    yield "<li>" if element.ordinal is None else f'<li value="{element.ordinal}">'


def _leave_lists(lists: list[str], depth: int) -> Iterator[str]:
    while len(lists) > depth:
        yield f"</li></{lists.pop()}>"
