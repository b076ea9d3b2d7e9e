"""Whole releases made from made-up pages, for tests and benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import schema_of
from kbsource.index.redirects import redirect_batches
from kbsource.index.title_index import ARTICLES_FILE, TITLES_FILE, TitleIndex
from kbsource.index.title_index_build import TITLE_ROWS, build_title_index
from kbsource.pages.shards import TemplateCounts
from kbsource.records import BadRecord, Conflict, Page, RedirectRow, TemplateRow
from kbsource.release.layout import shard_path
from kbsource.release.manifest import InputFile
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, Counts, Dump, PagesManifest
from kbsource.release.pages.locations import PAGES_FILE, QIDS_FILE
from kbsource.release.pages.writing import publish_index, write_locations
from kbsource.release.writer import write_small_batches, write_small_table
from kbsource.site import Site
from tests.support.pages import write_pages

CODE = {"kbsource": "0", "python": "3", "pyarrow": "0", "mwparserfromhell": "0"}


class TitleRow(NamedTuple):
    """One row of the titles table."""

    page_id: int
    title: str
    revision_id: int = 1
    is_redirect: bool = False
    target_title: str | None = None
    target_namespace: int | None = None
    target_fragment: str | None = None
    source: int = 0


def redirect_to(page_id: int, title: str, target: str, *, fragment: str | None = None) -> TitleRow:
    """Gives a redirect to a title of the main namespace."""
    return TitleRow(page_id, title, 1, True, target, 0, fragment)


def title_batches(rows: Iterable[TitleRow], *, size: int = 10_000) -> Iterator[pa.RecordBatch]:
    """Gives rows as batches of the titles table, numbered in their order."""
    pending: list[TitleRow] = []
    for source, row in enumerate(rows):
        pending.append(row._replace(source=source))
        if len(pending) == size:
            yield _batch(pending)
            pending = []
    yield _batch(pending)


def _batch(rows: Sequence[TitleRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(TITLE_ROWS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, TITLE_ROWS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=TITLE_ROWS)


def write_release(
    folder: Path,
    pages: Iterable[Page],
    *,
    titles: Iterable[TitleRow],
    rejected: Sequence[BadRecord] = (),
    rows_per_shard: int = 100,
    n_shards: int = 2,
    wiki: str = "enwiki",
    date: str = "20190801",
    conflicts: Sequence[Conflict] = (),
) -> PagesManifest:
    """Writes a finished release under ``folder / "release"`` and gives its manifest.

    Args:
        folder: also takes scratch files.
        pages: pages in order; the last shard takes what is left over. Their ``redirects`` are filled in.
        titles: rows of the title index: all pages, and redirects.
        wiki: name of its database.
        date: of its dump.
        conflicts: items that two pages claim.
    """
    output, index_folder = str(folder / "release"), str(folder / "index")
    with ReleaseFolder(output, kind=PAGES_RELEASE):
        pass
    report = build_title_index(title_batches(titles), index_folder, scratch=str(folder / "scratch"))
    index = TitleIndex.open(index_folder)
    source = iter(pages)
    entries, statuses, templates = [], Counter[str](), TemplateCounts()
    for shard in range(n_shards):
        own = [
            replace(page, redirects=index.redirects_to(page.page_id))
            for page in islice(source, rows_per_shard if shard < n_shards - 1 else None)
        ]
        statuses.update(page.parse_status for page in own)
        for page in own:
            templates.add(TemplateRow(use.name, use.outcome, use.uses, 1, 0, 0, None, None) for use in page.templates)
        entries.append(write_pages(own, output, shard_path("pages", shard, n_shards)))
    files = [entry.file for entry in entries]
    page_order = write_locations(output, files, index_folder, scratch=str(folder / "scratch"))
    n_pages = sum(statuses.values())
    counts = Counts(
        pages_read=n_pages + report.n_titles - report.n_articles + len(rejected) + 3,
        articles=n_pages,
        redirects=report.n_titles - report.n_articles,
        other_namespaces=3,
        rejected=dict(Counter(bad.reason for bad in rejected)),
    )
    manifest = PagesManifest(
        code=CODE,
        inputs=(InputFile("dump.xml", 10, "0" * 64),),
        dump=Dump(date, "0.10", Site(dbname=wiki).to_json()),
        options={"limit_pages": None},
        tables={
            "pages": tuple(entries),
            "redirects": write_small_batches(
                redirect_batches(index_folder, scratch=str(folder / "scratch")),
                "redirects",
                schema_of(RedirectRow),
                output=output,
            ),
            "rejected": write_small_table(rejected, BadRecord, output, "rejected"),
            "templates": write_small_table(templates.rows(), TemplateRow, output, "templates"),
        },
        files=publish_index(index_folder, [TITLES_FILE, ARTICLES_FILE, PAGES_FILE, QIDS_FILE], output),
        counts={"dump.xml": counts},
        totals=counts,
        parse_statuses=dict(statuses),
        unknown_templates=(),
        qid_conflicts=tuple(conflicts),
        findings={"duplicate_titles": report.n_shadowed},
        page_order=page_order,
    )
    commit(PAGES_RELEASE, manifest, output)
    return manifest
