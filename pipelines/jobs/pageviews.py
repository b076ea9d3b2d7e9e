"""The release of page views: one pipeline sums files of views into one table.

The files are read in ranges, and each range is summed. One worker sums the ranges with SQL and finally writes the
manifest.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import apache_beam as beam

from kbsource.columns import schema_of
from kbsource.dump.digests import CheckedFiles, HashedFile
from kbsource.dump.lines import LineRange, plan_lines
from kbsource.dump.rejects import DAMAGED_BYTES
from kbsource.dump.siteinfo import language_of_dbname
from kbsource.errors import DataError, SetupError
from kbsource.files import base_name, join
from kbsource.pageviews import (
    PAGEVIEWS_RELEASE,
    TOTALS,
    LineCounts,
    PageviewsManifest,
    TitleViews,
    line_counts,
    projects_of,
    sum_range,
)
from kbsource.release.manifest import InputFile, code_facts, sum_counts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_batches, write_rejected
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, keep_chunk, read_chunk_report, write_chunk
from kbsource.runtime.database import ordered_batches
from kbsource.runtime.warehouse import StoredTable, warehouse
from kbsource.site import Site
from pipelines.jobs.shared_inputs import MadeRelease, line_files, line_findings
from pipelines.options.pageviews import PageviewsOptions
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Progress, chunks_done
from pipelines.runners.counters import count
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do

READ = "read"
"""Folder in the staging folder for the sums of the ranges."""
_GROUP_ROWS = 1 << 14
_AGENT = re.compile(r"-(automated|spider)\b")
_TIME = re.compile(r"\d{6,8}")


def make_pageviews(
    options: PageviewsOptions, *, flags: Sequence[str], progress: Progress
) -> MadeRelease[PageviewsManifest]:
    """Makes a release of page views.

    Raises:
        DataError: too much of the files cannot be used, or no line belongs to the wiki.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    given = line_files(
        options.input,
        options.output,
        options.range_bytes,
        plan=plan_lines,
        check=check_views_files,
        flags=flags,
        progress=progress,
    )
    output, hashed, ranges, inputs = given
    with ReleaseFolder(output, kind=PAGEVIEWS_RELEASE, job=given.job(options.data_options())) as out:
        site = Site(language_of_dbname(options.site), options.site)
        projects = projects_of(site.edition, all_access=options.all_access)
        sums = (
            pipeline
            | "ranges" >> beam.Create(ranges, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "sum" >> do(_sum_range, hashed=hashed, projects=projects, site=site, folder=join(out.staging, READ))
        )
        finish = partial(_commit, options=options, inputs=inputs, output=output)
        _ = sums | "release" >> CollectSorted(finish)
        sizes = [part.end - part.start for part in ranges]
        with progress.stage("views", chunks_done(out.staging, join(out.staging, READ), sizes)):
            steps = run_pipeline(pipeline, "pageviews")
    return MadeRelease(options.output, PAGEVIEWS_RELEASE.read(output), time.monotonic() - started, steps)


def check_views_files(paths: Sequence[str]) -> None:
    """Rejects files whose views must not be summed, because they would be counted twice or are not by users.

    Raises:
        SetupError: views by programs, or views of a day together with views of its month.
    """
    times: defaultdict[str, str] = defaultdict(str)
    for name in map(base_name, paths):
        if agent := _AGENT.search(name):
            raise SetupError(
                f"{name} counts views by programs ({agent[1]}); give the files that count users, ….-user.bz2."
            )
        if found := _TIME.search(name):
            times[found[0]] = name
    for day, name in times.items():
        if len(day) == 8 and day[:6] in times:
            raise SetupError(f"{name} is a day of the month that {times[day[:6]]} covers; give only one of the two.")


def _sum_range(
    element: LineRange, *, hashed: Mapping[str, HashedFile], projects: frozenset[str], site: Site, folder: str
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Sums the views in a range.

    A range -> (key, ``BatchRef`` of its sums).
    """
    key = ChunkKey(element.index, 0)

    def make(path: str) -> None:
        report = Report()
        batches = sum_range(element, projects, site, report, files=CheckedFiles(hashed))
        write_chunk(batches, schema_of(TitleViews), report, path=path)

    stored = keep_chunk(folder, key, make)
    count(read_chunk_report(stored.path)[1].counts)
    yield key, stored


def _commit(
    ranges: list[tuple[ChunkKey, BatchRef]],
    *,
    options: PageviewsOptions,
    inputs: Sequence[InputFile],
    output: str,
) -> Iterator[str]:
    """Sums the ranges and finally writes the manifest."""
    chunks = [BatchRef(*stored) for _, stored in ranges]
    reports = [read_chunk_report(chunk.path)[1] for chunk in chunks]
    counts: dict[str, LineCounts] = {input_.name: LineCounts() for input_ in inputs}
    for report in reports:
        file = report.facts["file"]
        counts[file] = sum_counts([counts[file], line_counts(report)], LineCounts())
    totals = sum_counts(counts.values(), LineCounts())
    damaged_bytes = sum(report.counts[DAMAGED_BYTES] for report in reports)
    every = (bad for report in reports for bad in report.rejected)
    findings = line_findings(totals, inputs, damaged_bytes, options, every)
    if not totals.used:
        rest = "" if options.all_access else " --all-access also reads the names in older files, such as en."
        raise DataError(f"No line counts views of an article of {options.site}. Check --site and --input.{rest}")
    schema = schema_of(TitleViews)
    with warehouse({"sums": StoredTable(schema, chunks)}, memory_mb=options.memory) as db:
        rows = ordered_batches(db, TOTALS, schema, n_rows=_GROUP_ROWS)
        entry = write_batches(rows, "pageviews", schema, output=output)
    rejected = chain.from_iterable(report.rejected for report in reports)
    manifest = PageviewsManifest(
        code=code_facts(),
        inputs=tuple(inputs),
        options=options.data_options(),
        tables={"pageviews": (entry,), "rejected": (write_rejected(rejected, output=output),)},
        counts=counts,
        totals=totals,
        views=sum(report.counts["views"] for report in reports),
        findings=findings,
    )
    commit(PAGEVIEWS_RELEASE, manifest, output)
    yield output
