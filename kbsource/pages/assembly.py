"""The steps of a build that run on one machine: the indexes, which are built between the two passes, and then the
checks, the small tables and the manifest.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of
from kbsource.dump.dates import written_date
from kbsource.dump.rejects import DUPLICATE, check_rejects
from kbsource.dump.sql import read_page_props
from kbsource.errors import DataError
from kbsource.files import Files, Folder
from kbsource.index.definition_store import KEYS_FILE
from kbsource.index.mapped_files import read_index_file
from kbsource.index.page_props import CLAIMS_FILE, PagePropsReport, build_page_props
from kbsource.index.redirects import redirect_batches
from kbsource.index.title_index import ARTICLES_FILE, TITLES_FILE, TitleIndex
from kbsource.index.title_index_build import (
    DROPPED_FILE,
    TITLE_ROWS,
    TitleIndexReport,
    build_title_index,
    dropped_sources,
    read_dropped,
)
from kbsource.pages.page_items import Sitelinks, write_page_items
from kbsource.pages.shards import FALLBACKS_NAMED, ShardReport, merged_templates, read_shard
from kbsource.pages.staging import ScanReport, lost_pages, part_path, read_staged_batches
from kbsource.records import BadRecord, DefinitionHash, Fallback, RedirectRow, TemplateRow
from kbsource.release.manifest import InputFile, code_facts, sum_counts
from kbsource.release.pages.kind import Counts, Dump, PagesManifest, TemplateCount
from kbsource.release.pages.locations import PAGES_FILE, QIDS_FILE
from kbsource.release.pages.writing import publish_index, write_locations
from kbsource.release.reader import read_table
from kbsource.release.writer import SMALL_GROUP_ROWS, write_batches, write_small_batches, write_small_table
from kbsource.site import Site
from kbsource.wikidata.kind import WikidataTables

UNKNOWN_TEMPLATES_LISTED = 1000
"""Number of unknown templates listed in the manifest; the ``templates`` table has all of them."""

INDEXES_FILE = "indexes.json"


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of a dump. They are built when all titles have been read."""

    folder: str  #: local folder of the index files
    titles: TitleIndexReport  #: report of the title index
    #: report of the items from page_props and sitelinks; None if there is no source of items
    page_props: PagePropsReport | None
    #: numbers of Wikidata's sitelinks to redirects and to missing pages; None without Wikidata
    sitelinks: tuple[int, int] | None
    n_bad_props: int  #: number of rows of page_props that could not be read

    def write(self) -> None:
        """Writes the report that ``read`` reads. It is the last file, so if it exists, all files are complete."""
        Folder.of(os.path.join(self.folder, INDEXES_FILE)).write_json(msgspec.to_builtins(self))

    @classmethod
    def read(cls, folder: str) -> Indexes:
        """Returns the report that ``write`` wrote, with ``folder`` set to this local folder."""
        value = Folder.of(os.path.join(folder, INDEXES_FILE)).read_json()
        return replace(msgspec.convert(value, cls), folder=folder)


def build_indexes(
    titles: Iterable[pa.RecordBatch],
    *,
    folder: str,
    scratch: str,
    page_props: str | None,
    props_files: Files = Folder.of,
    wikidata: WikidataTables | None,
    site: Site,
    max_share: float,
    are_stated: bool = False,
) -> Indexes:
    """Builds the title index and the page_props index of a scanned dump in a local folder.

    ``titles`` has the schema ``TITLE_ROWS`` or ``STATED_TITLES``. ``page_props`` is the path of the SQL dump of this
    table, which ``props_files`` opens. Without it, and if ``are_stated`` is true, pages get the items stated in
    ``titles``. At most ``max_share`` of the titles may be left out because their page ids are not unique.

    Raises:
        SetupError: page_props cannot be read.
        DataError: page_props is damaged, or too many page ids are not unique.
    """
    stated = _StatedItems(titles, are_kept=are_stated and page_props is None)
    built = build_title_index(stated.titles(), folder, scratch=scratch)
    check_rejects(
        Counter({DUPLICATE: built.n_dropped}),
        built.n_titles + built.n_dropped,
        max_share=max_share,
        allow_truncated=True,
        what="titles",
    )
    os.replace(built.dropped_path, os.path.join(folder, DROPPED_FILE))
    props, links, n_bad = None, None, 0
    if page_props is not None or wikidata is not None or are_stated:
        index = TitleIndex.open(folder)
        links = Sitelinks(wikidata, site, index) if wikidata is not None else None
        rows = _PropRows(page_props, props_files)
        props = build_page_props(
            chain(rows, stated.rows()),
            folder,
            scratch=scratch,
            is_article=index.has_articles,
            sitelinks=() if links is None else links,
        )
        os.replace(props.claims_path, os.path.join(folder, CLAIMS_FILE))
        n_bad = rows.n_bad
    found = None if links is None else (links.n_redirects, links.n_missing)
    indexes = Indexes(folder, built, props, found, n_bad)
    indexes.write()
    return indexes


class _StatedItems:
    """Passes on the titles for an index, and collects the items stated in them as rows of page_props."""

    def __init__(self, titles: Iterable[pa.RecordBatch], *, are_kept: bool) -> None:
        self._titles, self._are_kept = titles, are_kept
        self._kept: list[pa.RecordBatch] = []

    def titles(self) -> Iterator[pa.RecordBatch]:
        """Iterates over rows of ``TITLE_ROWS``."""
        for batch in self._titles:
            if self._are_kept and "qid" in batch.schema.names:
                self._kept.append(batch.select(["page_id", "qid"]).filter(pc.is_valid(batch["qid"])))
            yield batch.select(TITLE_ROWS.names)

    def rows(self) -> Iterator[tuple[int, str, str]]:
        for batch in self._kept:
            for page_id, qid in zip(batch["page_id"].to_pylist(), batch["qid"].to_pylist(), strict=True):
                yield page_id, "wikibase_item", qid


class _PropRows:
    """Reads the rows of page_props, if there is such a file. Rows that cannot be read are counted; damage to the file
    is an error.
    """

    def __init__(self, path: str | None, files: Files) -> None:
        self._path, self._files = path, files
        self.n_bad = 0

    def __iter__(self) -> Iterator[tuple[int, str, str]]:
        if self._path is None:
            return
        names = frozenset({"wikibase_item", "disambiguation"})
        for row in read_page_props(self._path, names=names, files=self._files):
            if not isinstance(row, BadRecord):
                yield row
            elif row.reason == "malformed_row":
                self.n_bad += 1
            else:
                raise DataError(
                    f"{self._path}: {row.reason} at byte {row.offset}: {row.detail}. Download the file again, or "
                    f"build without --page-props."
                )


def dropped_rows(path: str, reports: Sequence[ScanReport], staging: str) -> tuple[tuple[BadRecord, bool], ...]:
    """Yields, for every dropped row in the order of range and row, its record and whether it is a redirect."""
    sources = dropped_sources(path)
    rows = {dropped.source: dropped for dropped in read_dropped(path)}
    files = {report.part: report.file for report in reports}
    found: list[tuple[BadRecord, bool]] = []
    for part in np.unique(sources >> 32).tolist():
        own = sources[sources >> 32 == part]
        is_redirect = _redirects_at(own & 0xFFFFFFFF, part_path(staging, "titles", part))
        for source, flag in zip(own.tolist(), is_redirect.tolist(), strict=True):
            page_id, title = rows[source].page_id, rows[source].title
            detail = (
                f"{title!r}: another page with the same page id has a newer revision, or the same revision and "
                f"an earlier position"
            )
            record = BadRecord("scan", str(page_id), DUPLICATE, detail, files[part], -1)
            found.append((record, flag))
    return tuple(found)


def _redirects_at(rows: npt.NDArray[np.int64], path: str) -> npt.NDArray[np.bool_]:
    """Returns those of the rows of a titles file that are redirects. ``rows`` must be ascending."""
    flags, start = [], 0
    for batch in read_staged_batches(path):
        own = rows[(rows >= start) & (rows < start + batch.num_rows)] - start
        flags.append(batch["is_redirect"].to_numpy(zero_copy_only=False)[own])
        start += batch.num_rows
    return np.concatenate([np.empty(0, np.bool_), *flags])


def count_pages(
    reports: Sequence[ScanReport],
    shards: Sequence[ShardReport],
    dropped: Iterable[tuple[BadRecord, bool]],
    relisted: Mapping[int, int],
) -> dict[str, Counts]:
    """Counts the pages of each input file by outcome. A snapshot of HTML may contain a redirect twice: as a record, and
    in the list of an article. It counts once; ``relisted`` is the number of such redirects by range.

    Raises:
        DataError: a staged article was neither written nor rejected.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rejected: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        n_relisted = relisted.get(report.part, 0)
        n_pages = report.n_pages - report.n_unselected - n_relisted
        others = {"redirects": report.n_redirects - n_relisted, "others": report.n_other}
        counts[report.file].update(pages=n_pages, staged=report.n_articles, **others)
        rejected[report.file].update(report.rejected)
    for shard in shards:
        for file, n_articles in shard.articles.items():
            counts[file]["articles"] += n_articles
        for file, reasons in shard.rejected.items():
            counts[file]["failed"] += sum(reasons.values())
            rejected[file].update(reasons)
    for record, is_redirect in dropped:
        rejected[record.file][record.reason] += 1
        counts[record.file]["redirects" if is_redirect else "staged"] -= 1
    for file, n in counts.items():
        if n["staged"] != n["articles"] + n["failed"]:
            raise DataError(
                f"{file}: {n['staged']} articles staged, {n['articles']} written and {n['failed']} rejected; pages "
                f"were lost or duplicated. Build again, and report the error if it happens twice."
            )
    return {
        file: Counts(n["pages"], n["articles"], n["redirects"], n["others"], dict(sorted(rejected[file].items())))
        for file, n in counts.items()
    }


def dump_date(files: Sequence[str]) -> str | None:
    """Returns the date in the names of dump files; None if they contain no date or several."""
    dates = {found for file in files if (found := written_date(file)) is not None}
    return dates.pop() if len(dates) == 1 else None


def snapshot_date(files: Sequence[str], as_of: str | None) -> str | None:
    """Returns the date of the snapshot, such as ``20261001``: from ``--as-of``, otherwise from the names of the dump's
    files.

    >>> snapshot_date(["enwiki-20261001-pages-meta-history1.xml"], "2019-08-01T00:00:00Z")
    '20190801'
    """
    return dump_date(files) if as_of is None else as_of[:10].replace("-", "")


def assemble(
    reports: Sequence[ScanReport],
    shard_reports: Sequence[ShardReport],
    indexes: Indexes,
    *,
    output: str,
    staging: str,
    scratch: str,
    site: Site,
    schema_version: str,
    inputs: Sequence[InputFile],
    options: dict[str, Any],
    wikidata: WikidataTables | None,
    content: str = "wikitext",
    code: dict[str, str] | None = None,
    definitions: str | None = None,
) -> PagesManifest:
    """Writes all files of a release except its pages and its manifest, and returns the manifest.

    ``reports`` and ``shard_reports`` are the results of the two passes, in order. ``inputs`` contains the input files,
    those of the dump first. ``content`` is the form of the pages in the dump (``wikitext`` or ``html``). ``options``
    contains the options that determine the output. ``scratch`` is a local folder. ``code`` describes the code that made
    the release (default: ``code_facts``). ``definitions`` is a local folder of definitions, if their hashes are to be
    recorded.

    Raises:
        DataError: pages were lost.
    """
    dropped = dropped_rows(os.path.join(indexes.folder, DROPPED_FILE), reports, staging)
    counts = count_pages(reports, shard_reports, dropped, dict(indexes.titles.relisted))
    entries = tuple(report.entry for report in shard_reports)
    files = [entry.file for entry in entries]
    page_order = write_locations(output, files, indexes.folder, scratch=scratch)
    index_files = (TITLES_FILE, ARTICLES_FILE, PAGES_FILE, QIDS_FILE)
    index = publish_index(indexes.folder, index_files, output)
    redirects = redirect_batches(indexes.folder, scratch=scratch)
    templates = merged_templates(staging, [shard.number for shard in shard_reports])
    tables = {
        "pages": entries,
        "redirects": write_small_batches(redirects, "redirects", schema_of(RedirectRow), output=output),
        "rejected": write_small_table(
            rejected_records(reports, shard_reports, dropped, staging), BadRecord, output, "rejected"
        ),
        "templates": write_small_table(templates, TemplateRow, output, "templates"),
    }
    if definitions is not None:
        hashes = chain.from_iterable(map(_definition_hashes, read_index_file(os.path.join(definitions, KEYS_FILE))))
        tables["definitions"] = (write_batches(hashes, "definitions", schema_of(DefinitionHash), output=output),)
    for table in shard_reports[0].others:
        tables[table] = tuple(report.others[table] for report in shard_reports)
    unknown = (
        row for row in read_table(output, tables["templates"], (schema_of(TemplateRow),)) if row["outcome"] == "unknown"
    )
    uses = (TemplateCount(row["name"], row["uses"], row["pages"]) for row in unknown)
    props = indexes.page_props
    findings = _findings(reports, shard_reports, indexes)
    if wikidata is not None and props is not None:
        tables["page_items"], agreements = write_page_items(
            os.path.join(indexes.folder, CLAIMS_FILE),
            os.path.join(indexes.folder, PAGES_FILE),
            wikidata,
            output=output,
            scratch=scratch,
        )
        findings = dict(sorted({**findings, **{f"items_{name}": n for name, n in agreements.items()}}.items()))
    return PagesManifest(
        code=code or code_facts(),
        inputs=tuple(inputs),
        dump=Dump(
            snapshot_date([report.file for report in reports], options.get("as_of")),
            schema_version,
            site.to_json(),
            content,
        ),
        options=options,
        tables=tables,
        files=index,
        counts=counts,
        totals=sum_counts(counts.values(), Counts()),
        parse_statuses=_summed(report.statuses for report in shard_reports),
        fallbacks=tuple(Fallback(*page) for page in chain.from_iterable(report.fallbacks for report in shard_reports))[
            :FALLBACKS_NAMED
        ],
        # Sorted by number of uses, then by name.
        unknown_templates=tuple(
            nsmallest(UNKNOWN_TEMPLATES_LISTED, uses, key=lambda template: (-template.uses, template.name))
        ),
        qid_conflicts=props.conflicts if props else (),
        findings=findings,
        page_order=page_order,
    )


def _definition_hashes(keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    columns = [pa.array(keys[name].to_numpy().view(np.int64)) for name in schema_of(DefinitionHash).names]
    hashes = pa.RecordBatch.from_arrays(columns, schema=schema_of(DefinitionHash))
    for start in range(0, len(hashes), SMALL_GROUP_ROWS):
        yield hashes.slice(start, SMALL_GROUP_ROWS)


def _summed(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))


def _findings(reports: Sequence[ScanReport], shards: Sequence[ShardReport], indexes: Indexes) -> dict[str, int]:
    found = _summed(report.facts for report in shards) | lost_pages(reports)
    found |= {f"loss_{kind}": count for kind, count in _summed(report.losses for report in shards).items()}
    found |= {f"redirects_{name}": n for name, n in indexes.titles.by_status.items() if name != "article"}
    found["duplicate_titles"] = indexes.titles.n_shadowed
    if n_definitions := sum(report.n_definitions for report in reports):
        found["template_definitions"] = n_definitions
    found["not_selected"] = sum(report.n_unselected for report in reports)
    if indexes.page_props is not None:
        found["invalid_qids"] = indexes.page_props.n_invalid_qids
        found["page_props_not_articles"] = indexes.page_props.n_not_articles
        found["page_props_malformed_rows"] = indexes.n_bad_props
    if indexes.sitelinks is not None:
        found["sitelinks_to_redirects"], found["sitelinks_to_missing_pages"] = indexes.sitelinks
    return dict(sorted(found.items()))


def rejected_records(
    reports: Sequence[ScanReport],
    shards: Sequence[ShardReport],
    dropped: Iterable[tuple[BadRecord, bool]],
    staging: str,
) -> Iterator[BadRecord]:
    """Yields all rejected records: those of the scan, then the dropped rows, then those of parsing."""
    for report in reports:
        for batch in read_staged_batches(part_path(staging, "rejected", report.part)):
            yield from map(BadRecord, *(column.to_pylist() for column in batch.columns))
    for record, _ in dropped:
        yield record
    for shard in shards:
        yield from read_shard(staging, shard.number)[0]
