"""What a build does between and after its passes, on one machine: laws, indexes, the small tables, the
manifest."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.dump.rejects import DUPLICATE
from kbsource.errors import DataError
from kbsource.files import Storage, base_name
from kbsource.index.redirects import redirect_rows
from kbsource.index.title_index import ARTICLES_FILE, TITLES_FILE
from kbsource.index.title_index_build import (
    DROPPED_FILE,
    dropped_sources,
    read_dropped,
)
from kbsource.pages.indexes import Indexes
from kbsource.pages.page_items import write_page_items
from kbsource.pages.shards import ShardReport, merge_templates, read_shard
from kbsource.pages.staging import ScanReport, lost_pages, part_path, read_batches
from kbsource.pages.template_counts import TemplateRow
from kbsource.records import BadRecord
from kbsource.release.manifest import InputFile, code_facts, sum_counts
from kbsource.release.pages.kind import Conflict, Counts, Dump, PagesManifest, TemplateCount
from kbsource.release.pages.locations import PAGES_FILE, QIDS_FILE
from kbsource.release.pages.locations_build import publish_index, write_locations
from kbsource.release.writer import write_small_table
from kbsource.runtime.chunks import read_stored
from kbsource.schema import TEMPLATES
from kbsource.site import Site
from kbsource.wikidata.reader import WikidataTables

UNKNOWN_TEMPLATES_LISTED = 1000
"""Unknown templates named in the manifest; the ``templates`` table has all of them."""

_DATE = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)(?=[-.])")


def dropped_rows(
    path: str, reports: Sequence[ScanReport], storage: Storage, staging: str
) -> tuple[tuple[BadRecord, bool], ...]:
    """Gives (record, is a redirect) of every dropped row, by range and row."""
    sources = dropped_sources(path)
    rows = {dropped.source: dropped for dropped in read_dropped(path)}
    files = {report.part: report.file for report in reports}
    found: list[tuple[BadRecord, bool]] = []
    for part in np.unique(sources >> 32).tolist():
        own = sources[sources >> 32 == part]
        is_redirect = _redirects_at(own & 0xFFFFFFFF, storage, part_path(staging, "titles", part))
        for source, flag in zip(own.tolist(), is_redirect.tolist(), strict=True):
            detail = f"{rows[source].title!r}: another row has the page id with a newer revision, or had it first"
            record = BadRecord("scan", str(rows[source].page_id), DUPLICATE, detail, files[part], -1)
            found.append((record, flag))
    return tuple(found)


def _redirects_at(rows: npt.NDArray[np.int64], storage: Storage, path: str) -> npt.NDArray[np.bool_]:
    """Says of rows of a titles file, ascending, whether they are redirects."""
    flags, start = [], 0
    for batch in read_batches(storage, path):
        own = rows[(rows >= start) & (rows < start + batch.num_rows)] - start
        flags.append(batch["is_redirect"].to_numpy(zero_copy_only=False)[own])
        start += batch.num_rows
    return np.concatenate([np.empty(0, np.bool_), *flags])


def count_pages(
    reports: Sequence[ScanReport], shards: Sequence[ShardReport], dropped: Iterable[tuple[BadRecord, bool]]
) -> dict[str, Counts]:
    """Gives what became of the pages of each input file.

    Raises:
        DataError: articles were staged and neither written nor rejected.
    """
    articles: Counter[str] = Counter()
    redirects: Counter[str] = Counter()
    rejected: dict[str, Counter[str]] = {report.file: Counter() for report in reports}
    pages: Counter[str] = Counter()
    others: Counter[str] = Counter()
    staged: Counter[str] = Counter()
    for report in reports:
        pages[report.file] += report.n_pages - report.n_unselected
        others[report.file] += report.n_other
        redirects[report.file] += report.n_redirects
        staged[report.file] += report.n_articles
        rejected[report.file].update(report.rejected)
    for shard in shards:
        articles.update(shard.articles)
        for file, reasons in shard.rejected.items():
            rejected[file].update(reasons)
    for record, is_redirect in dropped:
        rejected[record.file][record.reason] += 1
        (redirects if is_redirect else staged)[record.file] -= 1
    for file, n_staged in staged.items():
        n_rejected = sum(shard_total for s in shards for shard_total in s.rejected.get(file, {}).values())
        if n_staged != articles[file] + n_rejected:
            raise DataError(
                f"{file}: {n_staged} articles staged, {articles[file]} written and {n_rejected} rejected; pages were "
                "lost or doubled. Build again, and report it if it happens twice."
            )
    return {
        file: Counts(pages[file], articles[file], redirects[file], others[file], dict(sorted(rejected[file].items())))
        for file in pages
    }


def dump_date(files: Sequence[str]) -> str | None:
    """Gives the date in the names of dump files, as written there; None when they have none or several."""
    dates = {found[1] for file in files if (found := _DATE.search(f"-{base_name(file)}"))}
    return dates.pop() if len(dates) == 1 else None


def assemble(
    reports: Sequence[ScanReport],
    shard_reports: Sequence[ShardReport],
    indexes: Indexes,
    storage: Storage,
    *,
    output: str,
    staging: str,
    scratch: str,
    site: Site,
    schema_version: str,
    inputs: Sequence[InputFile],
    options: dict[str, Any],
    wikidata: WikidataTables | None,
) -> PagesManifest:
    """Writes everything of a release but its pages and its manifest, and gives the manifest.

    Args:
        reports, shard_reports: what both passes did, in order.
        indexes: from ``build_indexes``.
        output, staging: folders of the release and of the staged files.
        scratch: local folder for scratch files.
        site, schema_version: what the dump says about itself.
        inputs: files read, the dump's first.
        options: options that decide the bytes.
        wikidata: release of Wikidata, None without one.

    Raises:
        DataError: pages were lost.
    """
    dropped = dropped_rows(os.path.join(indexes.folder, DROPPED_FILE), reports, storage, staging)
    counts = count_pages(reports, shard_reports, dropped)
    entries = tuple(report.entry for report in shard_reports)
    files = [entry.file for entry in entries]
    locations = write_locations(output, files, indexes.folder, storage=storage, scratch=scratch)
    index_files = (TITLES_FILE, ARTICLES_FILE, PAGES_FILE, QIDS_FILE)
    index = publish_index(indexes.folder, index_files, output, storage=storage)
    redirects = redirect_rows(indexes.folder, scratch=scratch)
    templates = merge_templates(
        pa.Table.from_batches(read_stored(read_shard(storage, staging, shard.number)[0], storage), TEMPLATES)
        for shard in shard_reports
    )
    tables = {
        "pages": entries,
        "redirects": write_small_table(redirects, output, "redirects", storage=storage),
        "rejected": write_small_table(
            _rejected(reports, shard_reports, dropped, storage, staging), output, "rejected", storage=storage
        ),
        "templates": write_small_table(_template_rows(templates), output, "templates", storage=storage),
    }
    props = indexes.page_props
    findings = _findings(reports, shard_reports, indexes)
    if wikidata is not None and props is not None:
        tables["page_items"], agreements = write_page_items(
            props.claims_path,
            os.path.join(indexes.folder, PAGES_FILE),
            wikidata,
            storage,
            output=output,
            scratch=scratch,
        )
        findings = dict(sorted({**findings, **{f"items_{name}": n for name, n in agreements.items()}}.items()))
    return PagesManifest(
        code=code_facts(),
        inputs=tuple(inputs),
        dump=Dump(dump_date([report.file for report in reports]), schema_version, site.to_json()),
        options=options,
        tables=tables,
        files=index,
        counts=counts,
        totals=sum_counts(counts.values(), Counts()),
        parse_statuses=_summed(report.statuses for report in shard_reports),
        unknown_templates=_most_used(templates),
        qid_conflicts=tuple(Conflict(*conflict) for conflict in props.conflicts) if props else (),
        findings=findings,
        page_order=locations.page_order,
    )


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


def _rejected(
    reports: Sequence[ScanReport],
    shards: Sequence[ShardReport],
    dropped: Iterable[tuple[BadRecord, bool]],
    storage: Storage,
    staging: str,
) -> Iterator[BadRecord]:
    """Gives every rejected record: as scanned, then dropped, then as parsed."""
    for report in reports:
        for batch in read_batches(storage, part_path(staging, "rejected", report.part)):
            yield from map(BadRecord, *(column.to_pylist() for column in batch.columns))
    for record, _ in dropped:
        yield record
    for shard in shards:
        yield from read_shard(storage, staging, shard.number)[1]


def _template_rows(templates: pa.Table) -> Iterator[TemplateRow]:
    for batch in templates.to_batches(max_chunksize=1 << 16):
        for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            yield TemplateRow(*values)


def _most_used(templates: pa.Table) -> tuple[TemplateCount, ...]:
    """Gives the unknown templates by falling number of uses, then by name."""
    unknown = templates.filter(pc.equal(templates["outcome"], "unknown"))
    ordered = unknown.sort_by([("uses", "descending"), ("name", "ascending")]).slice(0, UNKNOWN_TEMPLATES_LISTED)
    columns = (ordered[name].to_pylist() for name in ("name", "uses", "pages"))
    return tuple(TemplateCount(*values) for values in zip(*columns, strict=True))
