"""Pages that no wiki should hold, for what shows pages: markup as text, odd letters, and far too much of everything."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from kbsource.records import Anchor, Cell, CellLink, Element, Infobox, InfoboxField, Loss, Page, Table, TemplateUse

FIRST_ID = 1_000
TARGET_ID = 1
LONG_TABLE_ROWS = 3_000
_SCRIPT = "<script>alert(1)</script>"
_IMAGE = "<img src=x onerror=alert(1)>"

TITLES = (
    f"{_SCRIPT}",
    f'"{_IMAGE}',
    "javascript:alert(1)",
    "</title><script>alert(2)</script>",
    "'><svg onload=alert(1)>",
    "A/B/../../etc/passwd",
    "..",
    "100% %3Cscript%3E %00 %",
    "Quotes \" and ' and ` and &amp; &lt;",
    "?q=1#fragment&x=2;y",
    "مرحبا بالعالم",
    "\u202eright to left override",
    "W" * 250,
    "Z̸̡͎̤̃a̷͙̓l̵̢̾ģ̵͌o̷̧͝ " * 8,
    "👩‍👩‍👧‍👦🏳️‍🌈 emoji",
    "\u2028line\u2029separators\u0085 and \x7f\x9f",
    "\ufeff\u200b\u200d zero width",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \U0010ffff \ufffe",
    "{{ 7 * 7 }} {% raw %} ${7*7} #{7*7}",
    "<!-- comment --> <![CDATA[ x ]]> <?php ?>",
    "con: nul",
    "data:text/html,<script>alert(1)</script>",
    "main",
    "q",
)


def _anchored(text: str, target: str, page_id: int | None) -> Anchor:
    return Anchor(1, 0, len(text), text, target, f'"><b>{_SCRIPT}', page_id, target)


def hostile_page(
    number: int,
    title: str,
    texts: tuple[str, ...] = (),
    *,
    tables: tuple[Table, ...] = (),
    infoboxes: tuple[Infobox, ...] = (),
    kind: str = "paragraph",
) -> Page:
    """A page whose every text is ``title`` or one of ``texts``; its first paragraph is a link."""
    level = int(kind == "list_item")
    elements = [
        Element("title", 1, None, "", (), title),
        Element("paragraph", 0, None, "", (), title),
        Element("heading", 2, None, "", (title,), title),
        *(Element(kind, level, None, "*" * level, (title,), text) for text in texts),
    ]
    cell = Cell(title, False, 1, 1, (CellLink(0, len(title), title, title, TARGET_ID),))
    return Page(
        page_id=FIRST_ID + number,
        title=title,
        qid=None,
        is_disambiguation=False,
        revision_id=1,
        parent_revision_id=None,
        timestamp=datetime(2019, 7, 1, 20, 0, 53, tzinfo=UTC),
        url="javascript:alert(3)",
        elements=tuple(elements),
        anchors=(_anchored(title, title, TARGET_ID if number % 2 else None),),
        categories=(title, _IMAGE),
        template_categories=(_IMAGE,),
        category_sort_keys=(_SCRIPT, " "),
        redirects=(),
        tables=(Table(2, title, (title, _SCRIPT), ((cell, cell),)), *tables),
        infoboxes=(
            Infobox(1, title, (InfoboxField(title, title, cell.links), InfoboxField("x", _IMAGE, ()))),
            *infoboxes,
        ),
        templates=(TemplateUse(title, "unknown", 1), TemplateUse(_SCRIPT, "dropped", 2)),
        losses=(Loss(_IMAGE, 1),),
        parse_status="ok",
    )


def hostile_pages() -> Iterator[Page]:
    """30 pages: one for each of ``TITLES``, and those that are far too large."""
    for number, title in enumerate(TITLES):
        yield hostile_page(number, title, (_SCRIPT, _IMAGE, "javascript:alert(1)", title * 3))
    plain, linked = Cell("cell", False, 1, 1, ()), Cell("link", True, 1, 1, (CellLink(0, 4, "T", None, TARGET_ID),))
    wide = Cell("wide", False, 2**31 - 1, 2**31 - 1, ())
    row = (plain, linked, plain, plain)
    words = " ".join(f"word{number}" for number in range(20_000))
    at = len(TITLES)
    yield hostile_page(
        at, "A table of 3,000 rows", tables=(Table(2, None, ("a", "b", "c", "d"), (row,) * LONG_TABLE_ROWS),)
    )
    yield hostile_page(at + 1, "A cell over everything", tables=(Table(2, None, (), ((wide, plain), row)),))
    yield hostile_page(at + 2, "10 MB in one paragraph", ("long words " * 950_000,))
    yield hostile_page(at + 3, "10 MB in many paragraphs", (words,) * 60)
    yield hostile_page(at + 4, "A word without an end", ("x" * 100_000,))
    deep = hostile_page(at + 5, "Lists in lists", ("item",) * 127, kind="list_item")
    items = tuple(
        replace(element, level=number % 127 + 1) if element.kind == "list_item" else element
        for number, element in enumerate(deep.elements)
    )
    yield replace(deep, elements=items)
