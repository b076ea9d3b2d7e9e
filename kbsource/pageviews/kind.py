"""The release of page views: what its manifest says, its kind and its laws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kbsource.pageviews.sums import NO_PAGE, OTHER_NAMESPACES, PAGEVIEWS, USED, row_key
from kbsource.release.kind import Kind
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import TypedManifest, row_faults, sum_faults
from kbsource.release.verify import Checking
from kbsource.runtime.chunks import Report
from kbsource.schema import REJECTED, SCHEMA_VERSION

FORMAT = "kbsource-pageviews-1"
RULES = {"views_law": "a row of page views is not in its place, or has a number that is none of views"}


@dataclass(frozen=True, slots=True)
class LineCounts:
    """What became of the lines of the wiki; law: lines_read = used + other_namespaces + no_page + rejected.

    Attributes:
        no_page: lines with a title that no page can have, or with views whose page is not known.
    """

    lines_read: int = 0
    used: int = 0
    other_namespaces: int = 0
    no_page: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    @property
    def n_rejected(self) -> int:
        """Lines rejected, for any reason."""
        return sum(self.rejected.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PageviewsManifest(TypedManifest):
    """Everything that is known about a release of page views, which has tables alone.

    Attributes:
        counts, totals: per input file by base name, and their sum.
        views: of the lines used.
        findings: with damage of a file ``damaged_bytes`` and ``estimated_lost``, lines of the wiki.
    """

    counts: dict[str, LineCounts]
    totals: LineCounts
    views: int
    findings: dict[str, int] = field(default_factory=dict)
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION


def line_counts(report: Report) -> LineCounts:
    """Gives what became of the lines of a range."""
    became = {name: report.counts[name] for name in (USED, OTHER_NAMESPACES, NO_PAGE)}
    rejected = Counter(bad.reason for bad in report.rejected)
    return LineCounts(sum(became.values()) + rejected.total(), **became, rejected=dict(rejected))


def count_faults(manifest: PageviewsManifest) -> list[str]:
    """Gives every way in which the counts disagree with each other or with the tables' rows."""
    faults = sum_faults(manifest.counts, manifest.totals, LineCounts())
    return faults + row_faults(manifest, {"rejected": manifest.totals.n_rejected})


def check_views(checking: Checking[PageviewsManifest]) -> Mapping[str, int]:
    """Checks that rows are sorted, that none comes twice, and that their views are those of the manifest."""
    before: tuple[str, int] | None = None
    n_rows = n_views = 0
    for entry, batch in checking.batches("pageviews"):
        for title, page_id, views in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            key = row_key((title, page_id, views))
            if views < 0 or not title or (page_id is not None and page_id < 0) or (before and key <= before):
                checking.found.add(entry.file, "views_law", f"{title!r}, page {page_id}, {views} views")
            before, n_views = key, n_views + views
        n_rows += batch.num_rows
    if checking.is_intact("pageviews") and n_views != checking.manifest.views:
        example = f"the rows have {n_views} views, {checking.manifest.views} are claimed"
        checking.found.add(MANIFEST, "counts", example)
    return {"titles with views": n_rows}


PAGEVIEWS_RELEASE: Kind[PageviewsManifest] = Kind(
    name="release of page views",
    format=FORMAT,
    made_by="kbsource pageviews",
    manifest=PageviewsManifest,
    tables={"pageviews": PAGEVIEWS, "rejected": REJECTED},
    required=("pageviews", "rejected"),
    schema_version=SCHEMA_VERSION,
    count_faults=count_faults,
    rules=RULES,
    check=check_views,
    shown_by=("pageviews", "title"),
)
