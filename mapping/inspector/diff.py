"""Shows diffs of two releases: outcomes of pages, sections and redirects, and old and new versions of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kbsource.diff.kind import (
    PAGE_OUTCOMES,
    REDIRECT_OUTCOMES,
    SECTION_OUTCOMES,
    SPAN_OUTCOMES,
    doubts,
)
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.wikitext.reference_rows import Reference
from mapping.document import (
    Block,
    Chart,
    Charts,
    Facts,
    Link,
    Paragraph,
    Section,
    Share,
    Table,
    bars,
    binned,
    share,
    sql_table,
)
from mapping.inspector.about import about_sections, other_values
from mapping.inspector.beside import came_and_went, folded, lines_of
from mapping.inspector.frame import KindViews, paging
from mapping.inspector.listing import Card, Listing, Row, Rows, render_card
from mapping.inspector.marking import Span
from mapping.inspector.opened import Opened

_KEPT = ("none", "< 25 %", "25–50 %", "50–75 %", "75–100 %", "all")
_SIZES = ("below 1,000", "1,000–5,000", "5,000–20,000", "20,000 and more")
_WORST, _TOPICS = 20, 20
_RUNS_A_PAGE, _NAMES = 400, 100
SIDES = ("old", "new")


def about_diff(opened: Opened) -> Iterator[Section]:
    """Yields the outcomes of pages, sections, pieces and redirects."""
    yield Section("What became of the pages", tuple(_pages(opened)))
    pieces = (
        Paragraph("Of pages that are in both releases and whose text changed."),
        _outcomes(opened, "section_changes", "Sections", SECTION_OUTCOMES),
        _outcomes(opened, "span_changes", "Pieces of paragraphs, headings and items", SPAN_OUTCOMES),
    )
    yield Section("Sections and pieces", pieces)
    yield Section("Redirects", (_outcomes(opened, "redirect_changes", "Redirects", REDIRECT_OUTCOMES),))
    yield from about_sections(opened, has_counts=True)
    yield other_values(opened, ("counts", *SIDES))


def _pages(opened: Opened) -> Iterator[Block]:
    yield from (Paragraph(doubt, is_warning=True) for doubt in doubts(opened.values))
    [(n_old, n_chars, n_kept, n_changed, n_moved)] = opened.db.execute(
        """select count(old_page_id), coalesce(sum(old_chars), 0), coalesce(sum(old_chars * kept), 0),
            count_if(text_changed), count_if(qid_moved) from page_changes"""
    ).fetchall()
    changed = Link(n_changed, opened.url("tables/page_changes", text_changed="true"))
    moved = Link(n_moved, opened.url("tables/page_changes", qid_moved="true"))
    yield Facts(
        (
            ("pages of the older release", n_old),
            ("of their text is kept", share(n_kept, n_chars)),
            ("pages whose text changed", changed),
            ("items that another page has now", moved),
        )
    )
    counts = opened.values["counts"]["page_changes"]
    rows = [(outcome.replace("_", " "), counts[outcome]) for outcome in PAGE_OUTCOMES]
    by_bin = dict(
        opened.db.execute(
            f"""select {binned("kept", (1e-9, 0.25, 0.5, 0.75, 1), 0)} as bin, count(*) from page_changes
            where old_page_id is not null group by bin"""
        ).fetchall()
    )
    yield Charts(
        (
            *bars("Pages by what became of them", ("outcome", "pages"), rows, "Every page is counted once.").charts,
            Chart(
                table=Table(
                    "Pages of the older release by the share of their text that is kept",
                    ("text kept", "pages"),
                    tuple((name, by_bin.get(number, 0)) for number, name in enumerate(_KEPT)),
                ),
                about="Of a paragraph that was edited the words count that both versions have.",
            ),
        )
    )
    yield _outcomes(opened, "page_changes", "Pages", PAGE_OUTCOMES)
    worst = opened.db.execute(
        """select coalesce(new_title, old_title), old_page_id, outcome, old_chars, new_chars, kept, _file_number, _row
        from page_changes where kept < 1 and outcome <> 'merged'
        order by old_chars * (1 - kept) desc, old_page_id limit ?""",
        [_WORST],
    ).fetchall()
    files = opened.tables["page_changes"]
    if worst:
        yield Table(
            "Pages that lost most text",
            ("page", "id", "outcome", "characters", "now", "kept"),
            tuple(
                (
                    Link(title, opened.url(f"tables/page_changes/{files.number(file, row)}")),
                    str(page_id),
                    outcome,
                    before,
                    after,
                    Share(own),
                )
                for title, page_id, outcome, before, after, own, file, row in worst
            ),
        )


def _outcomes(opened: Opened, table: str, caption: str, meanings: Mapping[str, str]) -> Table:
    counts = opened.values["counts"][table]
    total = sum(counts.values())
    rows = tuple((name, counts[name], share(counts[name], total), meaning) for name, meaning in meanings.items())
    return Table(f"{caption} by outcome", ("outcome", "number", "share", "meaning"), rows).linked(
        outcome=lambda row: opened.url(f"tables/{table}", outcome=row["outcome"])
    )


def measured_diff(opened: Opened) -> Iterator[Section]:
    """Yields how much was kept by size of pages and, if the older release is open, by topic of pages."""
    kept = 'sum(old_chars * kept) / nullif(sum(old_chars), 0) as "share kept"'
    gone = "count_if(outcome = 'gone') as gone, count_if(text_changed) as \"text changed\""
    named = " ".join(f"when {number} then '{name}'" for number, name in enumerate(_SIZES))
    by_size = sql_table(
        opened.db,
        "Text kept by size of the older page",
        f"""select case {binned("old_chars", (1_000, 5_000, 20_000), 0)} {named} end as characters,
            count(*) as pages, {gone}, {kept} from page_changes where old_page_id is not null
            group by characters order by min(old_chars)""",
    )
    yield Section("By size", (by_size,))
    if (old := opened.sources.get("old")) is None:
        said = "Open the older release too, and what was kept is told by the kind of page."
        yield Section("By kind of page", (Paragraph(said),))
        return
    db = opened.db
    old.database.of(old)  # makes its tables available
    by_kind = sql_table(
        db,
        f"Text kept by first infobox, the {_TOPICS} most frequent ones",
        f"""select coalesce(infobox, 'none') as infobox, count(*) as pages, {gone}, {kept}
            from page_changes join (
                select page_id, infoboxes[1].name as infobox from "{old.slug}".pages
            ) on page_id = old_page_id group by infobox order by pages desc, infobox limit ?""",
        [_TOPICS],
    )
    yield Section("By kind of page", (by_kind,))


def show_change(request: Request, opened: Opened, card: Card) -> Response:
    """Shows a page of a diff: its old and new version, what moved where, and changes outside the text."""
    row = card.row
    pages = {side: _page(opened, side, row[f"{side}_page_id"]) for side in SIDES}
    merged = row["outcome"] == "merged"
    spans = _rows(opened, "span_changes", row["old_page_id"])
    is_open = all(row[f"{side}_page_id"] is None or pages[side] is not None for side in SIDES)
    lines = lines_of(pages["old"], None if merged else pages["new"], spans) if is_open else []
    runs = list(folded(lines))
    shown = paging(request, len(runs), n_rows=_RUNS_A_PAGE)
    old, new = (_sources(opened, side, row[f"{side}_page_id"]) for side in SIDES)
    # References that one release does not store have not been removed.
    sources = ((), ()) if old is None or new is None else (old, new)
    beside = came_and_went(pages["old"], pages["new"], sources) if is_open and not merged else []
    return render_card(
        request,
        opened,
        card,
        "change.html",
        title=row["new_title"] or row["old_title"],
        meaning=PAGE_OUTCOMES[row["outcome"]],
        sections=[
            change for change in _rows(opened, "section_changes", row["old_page_id"]) if change["outcome"] != "same"
        ],
        section_meanings=SECTION_OUTCOMES,
        span_meanings=SPAN_OUTCOMES,
        facts={side: opened.values.get(side) or {} for side in SIDES},
        is_open=is_open,
        is_merged=merged,
        runs=runs[shown.start : shown.end],
        paging=shown,
        moved_to=lambda span: _moved_to(opened, span),
        page_url=lambda side, page_id, spans=(): _page_url(opened, side, page_id, spans),
        beside=beside,
        n_names=_NAMES,
    )


def _page(opened: Opened, side: str, page_id: int | None) -> Page | None:
    source: KnowledgeSource | None = opened.sources[side].source if side in opened.sources else None
    return None if source is None or page_id is None else source.by_id(page_id)


def _sources(opened: Opened, side: str, page_id: int | None) -> tuple[Reference, ...] | None:
    """Returns the references of a page; None if its release stores no references."""
    release = opened.sources.get(side)
    if release is None or release.source is None or "refs" not in release.tables:
        return None
    return () if page_id is None else release.source.references(page_id).refs


def _page_url(opened: Opened, side: str, page_id: int | None, spans: Any = ()) -> str | None:
    if page_id is None or side not in opened.sources:
        return None
    return opened.sources[side].page_url(page_id, spans)


def _moved_to(opened: Opened, span: Mapping[str, Any]) -> str | None:
    """Returns the URL of the new location of a piece, with the piece marked."""
    place = Span(span["new_element"], span["new_start"], span["new_element"], span["new_end"], span["outcome"])
    return _page_url(opened, "new", span["new_page_id"], [place])


def _rows(opened: Opened, table: str, old_page_id: int | None) -> list[Row]:
    """Returns the rows of an old page, in order."""
    return [] if old_page_id is None else Rows.of(opened, table, {}).with_value(old_page_id=old_page_id)


def _links(*, has_card: bool = False) -> dict[str, Any]:
    """Returns the link targets of the ids in a table: the pages in the release of each id."""
    sides = {
        f"{side}_page_id": lambda opened, row, side=side: _page_url(opened, side, row[f"{side}_page_id"])
        for side in SIDES
    }
    to_card = {"old_element": lambda opened, row: opened.url("tables/page_changes", old_page_id=row["old_page_id"])}
    return {**sides, **to_card} if has_card else sides


DIFF_VIEWS = KindViews(
    about=about_diff,
    measured=measured_diff,
    listings={
        "page_changes": Listing(
            label="Pages",
            columns=("page", "outcome", "kept", "old_chars", "new_chars", "matched_by", "old_page_id", "new_page_id"),
            facets=("outcome", "matched_by", "text_changed", "title_changed", "qid_moved"),
            searched=("old_title", "new_title"),
            computed={"page": "coalesce(new_title, old_title)"},
            led_by="page",
            links=_links(),
            notes=lambda row: {"page": f"was {row['old_title']}"} if row["title_changed"] else {},
            card=show_change,
        ),
        "section_changes": Listing(
            label="Sections",
            columns=("old_page_id", "old_section", "new_section", "outcome", "kept"),
            facets=("outcome",),
            links=_links(),
        ),
        "span_changes": Listing(
            label="Pieces",
            columns=(
                "old_page_id",
                "old_element",
                "old_start",
                "old_end",
                "new_page_id",
                "new_element",
                "outcome",
                "score",
            ),
            facets=("outcome",),
            links=_links(has_card=True),
        ),
        "redirect_changes": Listing(label="Redirects", facets=("outcome",), searched=("title",)),
    },
)
