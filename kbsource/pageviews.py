"""The release of page views: its manifest, kind and invariants. Reads the files of page views."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from kbsource.columns import batch_of, schema_of
from kbsource.dump.lines import LineRange, read_lines
from kbsource.dump.rejects import DAMAGED_BYTES
from kbsource.files import Files, Folder, base_name
from kbsource.records import BadRecord
from kbsource.release.counts import TableCount
from kbsource.release.invariants import Invariant
from kbsource.release.kind import CardText, Kind
from kbsource.release.manifest import Count, InputCounts, TypedManifest, row_faults, sum_faults
from kbsource.rows import SCHEMA_VERSION, Row
from kbsource.runtime.chunks import Report
from kbsource.site import Site
from kbsource.titles import is_valid_title, normalise_title, split_namespace

FORMAT = "kbsource-pageviews-1"


class TitleViews(Row):
    """One row per title and page of the main namespace that has views, sorted by title in code-point order, then by
    page id with null first.
    """

    title: Annotated[str, "title as visited, in normal form, with spaces; may be the title of a redirect"]
    page_id: Annotated[int | None, "id of the visited page; null if the files do not state it"]
    views: Annotated[int, "number of views in all files, summed over the kinds of access"]

    @property
    def key(self) -> tuple[str, int]:
        """The sort key of the row."""
        return self.title, -1 if self.page_id is None else self.page_id


USED, OTHER_NAMESPACES, NO_PAGE = "used", "other_namespaces", "no_page"


@dataclass(frozen=True, slots=True)
class LineCounts(InputCounts):
    """Counts of the wiki's lines by outcome; invariant: lines_read = used + other_namespaces + no_page + rejected."""

    lines_read: Count = 0
    used: Count = 0
    other_namespaces: Count = 0
    no_page: Count = 0  #: lines whose title is not allowed, or whose page is unknown
    rejected: dict[str, Count] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageviewsManifest(TypedManifest):
    """The manifest of a release of page views, which consists of tables only."""

    #: ``counts``: by base name of the input file; ``totals``: their sum
    counts: dict[str, LineCounts]
    totals: LineCounts
    views: Count  #: views of the lines used
    #: if a file is damaged, ``damaged_bytes`` and ``estimated_lost`` (lines of the wiki)
    findings: dict[str, Count] = field(default_factory=dict)
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION


def line_counts(report: Report) -> LineCounts:
    """Returns the counts of the lines of a range by outcome."""
    became = {name: report.counts[name] for name in (USED, OTHER_NAMESPACES, NO_PAGE)}
    rejected = Counter(bad.reason for bad in report.rejected)
    return LineCounts(sum(became.values()) + rejected.total(), **became, rejected=dict(rejected))


def _count_faults(manifest: PageviewsManifest) -> list[str]:
    """Returns a message for each contradiction among the counts, or between counts and numbers of rows."""
    faults = sum_faults(manifest.counts, manifest.totals, LineCounts())
    return faults + row_faults(manifest, {"rejected": manifest.totals.n_rejected})


_MEANING = "a row of page views is out of order, or its number of views is impossible"
INVARIANTS = (
    Invariant(
        "invalid_views",
        _MEANING,
        "case when views < 0 or title = '' or page_id < 0 then [title || format(', {} views', views)] end",
        table="pageviews",
    ),
    Invariant(
        "invalid_views",
        _MEANING,
        """select _file, format('{}, page {} is out of order', title, coalesce(page_id::text, 'none')) from (
            select *, coalesce(page_id, -1) as id, lag(title) over placed as other, lag(id) over placed as other_id
            from pageviews window placed as (order by _file, _row)
        ) where title < other or (title = other and id <= other_id)""",
    ),
)

PAGEVIEWS_RELEASE: Kind[PageviewsManifest] = Kind(
    name="release of page views",
    format=FORMAT,
    made_by="kbsource pageviews",
    card=CardText(
        title="Page views of a wiki",
        summary="How often each page of the main namespace of a wiki was viewed, by title and page.",
        main="pageviews",
        holds=("pageviews",),
        tags=("wikipedia", "pageviews"),
        limits=("Views are counted by the requested title, so the views of a redirect are not added to its target.",),
    ),
    queries=(("most viewed pages", "select title, views from pageviews order by views desc, title limit 10"),),
    manifest=PageviewsManifest,
    tables={"pageviews": schema_of(TitleViews), "rejected": schema_of(BadRecord)},
    required=("pageviews", "rejected"),
    schema_version=SCHEMA_VERSION,
    counts=(
        TableCount("views", "select sum(views) from pageviews"),
        TableCount(None, "select count(*) from pageviews", summary="titles with views"),
    ),
    further_faults=_count_faults,
    invariants=INVARIANTS,
    shown_by=(("pageviews", "title"), ("pageviews", "page_id"), ("rejected", "key")),
)


ACCESS = frozenset({b"desktop", b"mobile-web", b"mobile-app"})
_MAX_LINE_BYTES = 1 << 20
_MAX_DIGITS = 15
"""Maximum number of views in a line. A larger number is not plausible, and sums of smaller ones fit into 64 bits."""
_MAX_PAGE_ID = (1 << 32) - 1
_NO_ID = b"null"
UNKNOWN_TITLE = "-"
"""The title in lines whose page is unknown. If the line has a page id, it belongs to the page with this title."""
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")


class PageViews(NamedTuple):
    """Views of a page with one kind of access, in the period of the file."""

    title: str  #: title as visited, which may be that of a redirect; with spaces, and with percent escapes decoded
    page_id: int | None  #: None if the file does not name it
    views: int


def projects_of(edition: str, *, all_access: bool = False) -> frozenset[str]:
    """Returns the names that the files use for the Wikipedia of a language edition.

    Merged pagecounts use ``en.z``, and the authors of AmbER use only this name. ``all_access`` adds the names of the
    mobile site and of hourly files.

    >>> sorted(projects_of("en"))
    ['en.wikipedia', 'en.z']
    >>> sorted(projects_of("en", all_access=True))
    ['en', 'en.m', 'en.m.z', 'en.wikipedia', 'en.z', 'en.zero']
    """
    others = (edition, *(f"{edition}.{site}" for site in ("m", "zero", "m.z"))) if all_access else ()
    return frozenset({f"{edition}.wikipedia", f"{edition}.z", *others})


def read_views(
    line_range: LineRange,
    projects: frozenset[str],
    *,
    files: Files = Folder.of,
    on_damage: Callable[[int], None] | None = None,
) -> Iterator[PageViews | BadRecord]:
    """Reads the views of the pages of some projects, in the order of the file.

    A line in an unknown form is yielded as a BadRecord (stage ``read``, reason ``malformed_line``). Other lines are
    rejected for the reasons of ``kbsource.dump.lines.read_lines``, which also documents ``on_damage``. Lines cut off by
    damage are skipped. Memory use is constant.
    """
    wanted = frozenset(project.encode() for project in projects)
    name = base_name(line_range.path)
    for line in read_lines(line_range, files=files, max_bytes=_MAX_LINE_BYTES, on_damage=on_damage):
        if isinstance(line, BadRecord):
            yield line
            continue
        fields = line.data.removesuffix(b"\r").split(b" ")
        if fields[0] not in wanted:
            continue
        views = _views(fields)
        if views is None:
            detail = line.data[:1000].decode("utf-8", "replace")
            yield BadRecord("read", "", "malformed_line", detail, name, line.offset)
        else:
            yield views


def _views(fields: list[bytes]) -> PageViews | None:
    """Returns the views that a line records; None if its form is unknown."""
    if len(fields) in (5, 6) and fields[-3] in ACCESS:
        written_id, count = fields[2] if len(fields) == 6 else _NO_ID, _number(fields[-2])
    elif len(fields) in (3, 4):
        written_id, count = _NO_ID, _number(fields[2])
    else:
        return None
    page_id = None if written_id == _NO_ID else _number(written_id)
    is_id = written_id == _NO_ID or (page_id is not None and page_id <= _MAX_PAGE_ID)
    return PageViews(_title(fields[1]), page_id, count) if is_id and count is not None and fields[1] else None


def _number(written: bytes) -> int | None:
    return int(written) if written.isdigit() and len(written) <= _MAX_DIGITS else None


def _title(written: bytes) -> str:
    text = written.decode("utf-8", "replace")
    return (unquote(text) if _ESCAPE.search(written) else text).replace("_", " ")


_SUMS_AT_ONCE = 1 << 17
TOTALS = """
select title, page_id, sum(views)::bigint as views from sums group by title, page_id
order by title, page_id nulls first
"""
"""Query that adds up the rows of all ranges (the table ``sums``), in the order of the release."""


def sum_range(
    line_range: LineRange, projects: frozenset[str], site: Site, report: Report, *, files: Files = Folder.of
) -> Iterator[pa.RecordBatch]:
    """Adds up the views of the articles of a wiki in a range of a file, and yields rows of ``TitleViews``. A title may
    occur in several rows, which ``TOTALS`` adds up.

    Args:
        projects: names that the files use for the wiki.
        report: receives the counts of ``LineCounts``, the sum ``views``, the file's name, the rejected records, the
            bytes of the rows, and ``damaged_bytes`` as ``kbsource.dump.rejects`` counts them.
    """
    report.facts["file"] = base_name(line_range.path)

    @lru_cache(1 << 16)
    def fate_of(written: str) -> tuple[str, str]:
        """Returns the outcome of a line with this title, and the title in normal form."""
        title = normalise_title(written, site)
        if split_namespace(title, site)[0]:
            return OTHER_NAMESPACES, title
        return USED if is_valid_title(title) else NO_PAGE, title

    sums: Counter[tuple[str, int | None]] = Counter()
    damages: list[int] = []
    for row in read_views(line_range, projects, files=files, on_damage=damages.append):
        if isinstance(row, BadRecord):
            report.rejected.append(row)
            continue
        reason, title = fate_of(row.title)
        if row.title == UNKNOWN_TITLE and row.page_id is None:
            reason = NO_PAGE
        report.counts[reason] += 1
        if reason == USED:
            sums[title, row.page_id] += row.views
            report.counts["views"] += row.views
        if len(sums) == _SUMS_AT_ONCE:
            yield _batch(sums)
            sums.clear()
    report.counts[DAMAGED_BYTES] = sum(damages)
    if sums:
        yield _batch(sums)


def _batch(sums: Mapping[tuple[str, int | None], int]) -> pa.RecordBatch:
    return batch_of((TitleViews(*key, views) for key, views in sums.items()), TitleViews)
