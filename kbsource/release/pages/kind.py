"""The release of pages: what its manifest says, and its kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kbsource.release.kind import Kind
from kbsource.release.layout import INDEX, MANIFEST
from kbsource.release.manifest import TypedManifest, row_faults, sum_faults
from kbsource.schema import OPTIONAL_TABLES, SCHEMA_VERSION, TABLES
from kbsource.site import Site

if TYPE_CHECKING:
    from kbsource.release.verify import Checking

FORMAT = "kbsource-release-1"
RULES = {
    "offset_law": "a span does not hold what it claims",
    "page_law": "a page is not built as pages are",
    "duplicate_page_id": "two pages have one page id",
    "duplicate_qid": "two pages have one Wikidata item",
    "page_order": "page ids do not ascend though the manifest says so",
    "dangling_target": "a link leads to a page that is not there",
    "target_title": "a link names its page by another title",
    "redirects_disagree": "pages, redirects table and index tell different redirects",
    "items_disagree": "pages and the table of their items tell different items",
    "templates_disagree": "pages and the table of templates tell different uses, or what shows nothing shows text",
    "index_disagrees": "the index and the tables tell different things",
}
"""Every law and what it means that it is broken."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the pages read; law: pages_read = articles + redirects + other_namespaces + rejected."""

    pages_read: int = 0
    articles: int = 0
    redirects: int = 0
    other_namespaces: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    @property
    def n_rejected(self) -> int:
        """Pages rejected, for any reason."""
        return sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class Dump:
    """What the dump says about itself; ``date`` as in the files' names, None when they have none."""

    date: str | None
    export_version: str
    site: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TemplateCount:
    """How often an unknown template is used, and on how many pages."""

    name: str
    uses: int
    pages: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A Wikidata item that a page claimed and did not get, as ``page_id`` has it."""

    qid: str
    page_id: int
    refused_page_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PagesManifest(TypedManifest):
    """Everything that is known about a release of pages; the position of a pages file is its shard number.

    Attributes:
        counts, totals: per input file by base name, and their sum.
        parse_statuses: articles per ``parse_status``.
        unknown_templates: the most used ones; the ``templates`` table has all.
        qid_conflicts: all of them.
        findings: other counts that a reader should know of: ``duplicate_titles``, ``invalid_qids``, ….
        page_order: ``by_page_id`` when ids ascend within each shard, else ``as_dumped``.
    """

    dump: Dump
    counts: dict[str, Counts]
    totals: Counts
    parse_statuses: dict[str, int]
    unknown_templates: tuple[TemplateCount, ...]
    qid_conflicts: tuple[Conflict, ...]
    findings: dict[str, int]
    page_order: str
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION

    @property
    def site(self) -> Site:
        """The wiki's facts."""
        return Site.from_json(self.dump.site)

    def facts(self) -> dict[str, Any]:
        """Gives what names the release in the manifests of what is made from it."""
        return {
            "manifest": MANIFEST,
            "manifest_sha256": self.sha256,
            "wiki": self.site.dbname,
            "dump_date": self.dump.date,
        }


def count_faults(manifest: PagesManifest) -> list[str]:
    """Gives every way in which the counts disagree with each other or with the tables' rows."""
    totals = manifest.totals
    faults = sum_faults(manifest.counts, totals, Counts())
    expected = {"pages": totals.articles, "redirects": totals.redirects, "rejected": totals.n_rejected}
    faults += row_faults(manifest, expected)
    n_statuses = sum(manifest.parse_statuses.values())
    if n_statuses != totals.articles:
        faults.append(f"parse statuses sum up to {n_statuses}, articles are {totals.articles}")
    return faults


def _check(checking: Checking[PagesManifest]) -> Mapping[str, int]:
    from kbsource.release.pages.table_checks import check_tables  # needs numpy, which reading does not

    return check_tables(checking)


PAGES_RELEASE: Kind[PagesManifest] = Kind(
    name="release of pages",
    format=FORMAT,
    made_by="kbsource build",
    manifest=PagesManifest,
    tables={**TABLES, **OPTIONAL_TABLES},
    required=tuple(TABLES),
    schema_version=SCHEMA_VERSION,
    files=(INDEX,),
    count_faults=count_faults,
    rules=RULES,
    check=_check,
)
