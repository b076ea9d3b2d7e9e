"""The kind of release that a diff of two releases of pages is.

::

    page_changes/       what became of every page of either release
    section_changes/    what became of the sections of pages whose text changed
    span_changes/       where the elements of pages stand that are not what they were
    redirect_changes/   redirects that lead elsewhere, are new or gone
    title_map.tsv       old titles that do not lead to what their page is now, for ``kbsource map --title-map``
    report.json, report.md
    manifest.json       written last
"""

from __future__ import annotations

from kbsource.diff.check_diff import RULES, check_diff, count_faults
from kbsource.diff.schema import TABLES
from kbsource.release.kind import ListingKind

REPORT, TEXT_REPORT, TITLE_MAP_FILE = "report.json", "report.md", "title_map.tsv"
RELEASE_DIFF = ListingKind(
    name="diff of releases",
    format="kbsource-diff-1",
    made_by="kbsource diff",
    tables=TABLES,
    required=tuple(TABLES),
    files=(REPORT, TEXT_REPORT, TITLE_MAP_FILE),
    count_faults=count_faults,
    rules=RULES,
    check=check_diff,
    made_from=("old", "new"),
)
