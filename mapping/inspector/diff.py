"""Views of diffs: single pages, with the old and the new version side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kbsource.diff.kind import PAGE_OUTCOMES, SECTION_OUTCOMES, SPAN_OUTCOMES
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.wikitext.reference_rows import Reference
from mapping.inspector.beside import changed_values, collapsed_runs, lines_of
from mapping.inspector.frame import paging
from mapping.inspector.listing import Card, KindViews, Listing, Row, Rows, render_card, row_values
from mapping.inspector.marking import MarkedRange
from mapping.inspector.opened import OpenRelease

_RUNS_A_PAGE, _NAMES = 400, 100
SIDES = ("old", "new")


def show_change(request: Request, opened: OpenRelease, card: Card) -> Response:
    """Shows a page of a diff: its old and new version, the new position of moved text, and changes outside the text."""
    row = card.row
    pages = {side: _page(opened, side, row[f"{side}_page_id"]) for side in SIDES}
    merged = row["outcome"] == "merged"
    spans = _rows(opened, "span_changes", row["old_page_id"])
    is_open = all(row[f"{side}_page_id"] is None or pages[side] is not None for side in SIDES)
    lines = lines_of(pages["old"], None if merged else pages["new"], spans) if is_open else []
    runs = list(collapsed_runs(lines))
    shown = paging(request, len(runs), n_rows=_RUNS_A_PAGE)
    old, new = (_sources(opened, side, row[f"{side}_page_id"]) for side in SIDES)
    # References that one release does not store have not been removed.
    sources = ((), ()) if old is None or new is None else (old, new)
    beside = changed_values(pages["old"], pages["new"], sources) if is_open and not merged else []
    return render_card(
        request,
        opened,
        card,
        "change.html",
        title=row["new_title"] or row["old_title"],
        data={
            "section_changes": list(map(row_values, _rows(opened, "section_changes", row["old_page_id"]))),
            "span_changes": list(map(row_values, spans)),
        },
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


def _page(opened: OpenRelease, side: str, page_id: int | None) -> Page | None:
    source: KnowledgeSource | None = opened.sources[side].source if side in opened.sources else None
    return None if source is None or page_id is None else source.by_id(page_id)


def _sources(opened: OpenRelease, side: str, page_id: int | None) -> tuple[Reference, ...] | None:
    """Returns the references of a page; None if its release stores no references."""
    release = opened.sources.get(side)
    if release is None or release.source is None or "refs" not in release.tables:
        return None
    return () if page_id is None else release.source.references(page_id).refs


def _page_url(opened: OpenRelease, side: str, page_id: int | None, spans: Any = ()) -> str | None:
    if page_id is None or side not in opened.sources:
        return None
    return opened.sources[side].page_url(page_id, spans)


def _moved_to(opened: OpenRelease, span: Mapping[str, Any]) -> str | None:
    """Returns the URL of the new location of a segment, with the segment marked."""
    place = MarkedRange(span["new_element"], span["new_start"], span["new_element"], span["new_end"], span["outcome"])
    return _page_url(opened, "new", span["new_page_id"], [place])


def _rows(opened: OpenRelease, table: str, old_page_id: int | None) -> list[Row]:
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
    apart=("counts", *SIDES),
    listings={
        "page_changes": Listing(
            label="Pages",
            columns=(
                "page",
                "outcome",
                "kept_share",
                "old_chars",
                "new_chars",
                "matched_by",
                "old_page_id",
                "new_page_id",
            ),
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
            columns=("old_page_id", "old_section", "new_section", "outcome", "kept_share"),
            facets=("outcome",),
            links=_links(),
        ),
        "span_changes": Listing(
            label="Segments",
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
