"""A page's elements, tables and infoboxes as HTML; everything that is text is escaped."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup, escape

from kbsource.records import Anchor, Cell, CellLink, Element, Infobox, Page, Table
from mapping.inspector.marking import Link, Marked, Span, mark_text, shown
from mapping.inspector.opened import Opened, section_id
from mapping.inspector.pages.page_parts import TABLE_ROWS, Part, Piece

_DEEPEST = 8
"""Lists are indented so many times at most."""
_MOST_COLUMNS = 1_000


class Document:
    """One page of a release.

    Args:
        opened: the release.
        page: the page.
        spans: places that are marked.
    """

    def __init__(self, opened: Opened, page: Page, spans: Sequence[Span] = ()) -> None:
        self._opened, self._page, self._spans = opened, page, spans
        self._anchor_elements = [anchor.element for anchor in page.anchors]
        self._tables: dict[int, list[tuple[int, Table]]] = defaultdict(list)
        for number, table in enumerate(page.tables):
            self._tables[table.element].append((number, table))
        self._infoboxes: dict[int, list[Infobox]] = defaultdict(list)
        for infobox in page.infoboxes:
            self._infoboxes[infobox.element].append(infobox)
        self._named: set[str] = set()

    def html(self, part: Part) -> Markup:
        """Gives a part of the page as HTML."""
        return Markup("\n".join(self._blocks(part)))

    def _blocks(self, part: Part) -> Iterator[str]:
        lists: list[str] = []  # tags of those that are open
        for piece in part:
            element = self._page.elements[piece.element]
            if element.kind == "list_item":
                yield from _enter_item(lists, element)
                yield self._text("span", piece)
            else:
                yield from _leave_lists(lists, 0)
                yield self._heading(piece) if element.kind in ("title", "heading") else self._text("p", piece)
            if piece.end == len(element.text) and (piece.element in self._tables or piece.element in self._infoboxes):
                yield from _leave_lists(lists, 0)
                yield from map(self._infobox, self._infoboxes.get(piece.element, ()))
                yield from (self._table(number, table) for number, table in self._tables.get(piece.element, ()))
        yield from _leave_lists(lists, 0)

    def _heading(self, piece: Piece) -> str:
        element = self._page.elements[piece.element]
        level = 1 if element.kind == "title" else min(max(element.level, 2), 6)
        name = section_id(element.text)
        target = ""
        if element.kind == "heading" and name not in self._named:
            self._named.add(name)
            target = f'<span class="target" id="{escape(shown(name))}"></span>'
        return target + self._text(f"h{level}", piece)

    def _text(self, tag: str, piece: Piece) -> str:
        number, start, end = piece
        element = self._page.elements[number]
        text = element.text[start:end] if end - start < len(element.text) else element.text
        links = self._links(number, start, end)
        marked = []
        for span in self._spans:
            if (inside := span.inside(number, len(element.text))) is not None:
                first, last = max(inside[0], start), min(inside[1], end)
                if first < last:
                    marked.append(Marked(first - start, last - start, span.label or _place(number, *inside)))
        first_of_element = f' id="e{number}"' if start == 0 else f' data-from="{start}"'
        return f'<{tag}{first_of_element} data-e="{number}" dir="auto">{mark_text(text, links, marked)}</{tag}>'

    def _links(self, number: int, start: int, end: int) -> list[Link]:
        first, last = bisect_left(self._anchor_elements, number), bisect_right(self._anchor_elements, number)
        own = [anchor for anchor in self._page.anchors[first:last] if start <= anchor.start and anchor.end <= end]
        return [self._anchor_link(anchor, start) for anchor in own]

    def _anchor_link(self, anchor: Anchor, before: int) -> Link:
        place = _place(anchor.element, anchor.start, anchor.end)
        return self._link(anchor, place, before=before)

    def _link(self, link: Anchor | CellLink, place: str, *, before: int = 0) -> Link:
        title = link.target_title + (f"#{link.target_fragment}" if link.target_fragment else "")
        if link.target_page_id is None:
            return Link(
                link.start - before, link.end - before, None, f"{place} → {title}, which the dump does not have"
            )
        url = self._opened.page_url(link.target_page_id, section=link.target_fragment)
        return Link(link.start - before, link.end - before, url, f"{place} → {title}")

    def _cell_text(self, text: str, links: Iterable[CellLink]) -> Markup:
        return mark_text(text, [self._link(link, f"[{link.start}, {link.end})") for link in links])

    def _infobox(self, infobox: Infobox) -> str:
        rows = "".join(
            f'<tr><th scope="row" dir="auto">{escape(shown(field.name)).replace("_", Markup("_<wbr>"))}</th>'
            f'<td dir="auto">{self._cell_text(field.text, field.links)}</td></tr>'
            for field in infobox.fields
        )
        name = escape(shown(infobox.name))
        return f'<table class="infobox"><caption dir="auto">{name}</caption><tbody>{rows}</tbody></table>'

    def _table(self, number: int, table: Table) -> str:
        rest = Markup()
        if (more := len(table.rows) - TABLE_ROWS) > 0:
            url = self._opened.url(f"page/{self._page.page_id}/table/{number}", **{"from": TABLE_ROWS})
            rest = Markup(f'<p class="more"><a href="{escape(url)}">{more:,} more rows of this table</a></p>')
        return self.table_html(number, table, 0, TABLE_ROWS) + rest

    def table_html(self, number: int, table: Table, start: int, end: int) -> Markup:
        """Gives a table with its rows from ``start`` up to ``end``, behind its caption and header."""
        if not (table.caption or any(table.header) or any(cell.text for row in table.rows for cell in row)):
            return Markup(f'<p class="more quiet" id="t{number}">A table without text.</p>')
        caption = "" if table.caption is None else f'<caption dir="auto">{escape(shown(table.caption))}</caption>'
        head = "".join(f'<th scope="col" dir="auto">{escape(shown(text))}</th>' for text in table.header)
        shown_rows = table.rows[start:end]
        body = "".join(
            f"<tr>{''.join(self._cell(cell, len(shown_rows) - place) for cell in row)}</tr>"
            for place, row in enumerate(shown_rows)
        )
        head = f"<thead><tr>{head}</tr></thead>" if head else ""
        label = escape(shown(table.caption or f"Table {number + 1}"))
        return Markup(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{label}" id="t{number}">'
            f"<table>{caption}{head}<tbody>{body}</tbody></table></div>"
        )

    def _cell(self, cell: Cell, rows_left: int) -> str:
        tag = "th" if cell.is_header else "td"
        columns = f' colspan="{min(cell.colspan, _MOST_COLUMNS)}"' if cell.colspan > 1 else ""
        rows = f' rowspan="{min(cell.rowspan, rows_left)}"' if min(cell.rowspan, rows_left) > 1 else ""
        return f'<{tag}{columns}{rows} dir="auto">{self._cell_text(cell.text, cell.links)}</{tag}>'


def _place(element: int, start: int, end: int) -> str:
    return f"element {element}, [{start}, {end})"


def _enter_item(lists: list[str], element: Element) -> Iterator[str]:
    """Opens and closes lists up to where an item stands, and begins it."""
    tag = "ol" if element.ordinal is not None else "ul"
    depth = min(max(element.level, 1), _DEEPEST)
    yield from _leave_lists(lists, depth)
    if len(lists) == depth:
        yield "</li>"
        if lists[-1] != tag:
            yield f"</{lists.pop()}>"
    while len(lists) < depth:
        lists.append(tag)
        yield f"<{tag}{_style(element)}>"
        if len(lists) < depth:
            yield '<li class="deeper">'
    yield "<li>" if element.ordinal is None else f'<li value="{element.ordinal}">'


def _leave_lists(lists: list[str], depth: int) -> Iterator[str]:
    while len(lists) > depth:
        yield f"</li></{lists.pop()}>"


def _style(element: Element) -> str:
    """Gives the class of lists without bullets: terms and what is indented."""
    return {";": ' class="terms"', ":": ' class="indented"'}.get(element.marker[-1:], "")
