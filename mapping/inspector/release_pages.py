"""Views of releases of pages: whether their counts agree, and how their tables are listed."""

from __future__ import annotations

from collections.abc import Iterator

from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from mapping.document import Paragraph, Section
from mapping.inspector.frame import Tab, redirect_to
from mapping.inspector.listing import KindViews, Listing
from mapping.inspector.opened import OpenRelease
from mapping.inspector.page_view import PAGE_VIEWS


def about_pages(opened: OpenRelease) -> Iterator[Section]:
    """Shows whether the counts of the manifest agree."""
    assert isinstance(opened.manifest, PagesManifest)
    faults = PAGES_RELEASE.count_faults(opened.manifest)
    said = [Paragraph(f"The counts do not add up: {fault}.", is_warning=True) for fault in faults]
    agree = "All counts agree: files with their total, tables with the counts, parse statuses with both."
    yield Section("Counts", tuple(said) or (Paragraph(agree),))


PAGES_VIEWS = KindViews(
    about=about_pages,
    apart=("counts", "totals", "dump", "parse_statuses", "unknown_templates", "qid_conflicts", "findings", "fallbacks"),
    listings={
        "pages": Listing(
            label="Pages",
            columns=("title", "page_id", "qid", "parse_status", "timestamp", "url"),
            facets=("parse_status", "is_disambiguation"),
            searched=("title",),
            led_by="title",
            card=lambda request, opened, card: redirect_to(request, opened.page_url(card.row["page_id"])),
        ),
        "redirects": Listing(
            label="Redirects",
            facets=("status",),
            searched=("title", "final_title"),
            links={"page_id": lambda opened, row: None},  # the template's own page, which is not an article
        ),
        "templates": Listing(label="Templates", facets=("outcome",), searched=("name",)),
        "rejected": Listing(label="Rejected", facets=("stage", "reason")),
    },
    views=PAGE_VIEWS,
    tabs=(Tab("Random page", "random"),),
)
