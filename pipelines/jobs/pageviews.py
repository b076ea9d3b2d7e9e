"""The release of page views: files of views become one table of sums, by one pipeline.

The files are read in ranges, each of which is summed; the sums are put together in groups of titles and summed again;
one worker merges the groups and writes the manifest, last of all.
"""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import apache_beam as beam

from kbsource.dump.digests import CheckedStorage, HashedFile
from kbsource.dump.lines import LineRange, plan_lines
from kbsource.dump.rejects import DAMAGED_BYTES, check_rejects, loss_findings
from kbsource.dump.siteinfo import language_of_dbname
from kbsource.errors import DataError, SetupError, named_faults
from kbsource.files import join
from kbsource.pageviews.kind import PAGEVIEWS_RELEASE, LineCounts, PageviewsManifest, line_counts
from kbsource.pageviews.sums import MERGED_ROWS, PAGEVIEWS, TitleGroups, merge_groups, sum_group, sum_range
from kbsource.release.manifest import InputFile, code_facts, sum_counts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.writer import write_rejected, write_rows
from kbsource.runtime.chunks import Key, Report, Stored, chunk_path, read_chunk_report, read_stored, write_chunk
from kbsource.site import Site
from pipelines.jobs.shared_inputs import line_files
from pipelines.options.pageviews import PageviewsOptions
from pipelines.primitives.group_map import GroupMap, GroupWork
from pipelines.primitives.regroup import Regroup
from pipelines.primitives.together import Together
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for

READ = "read"
"""Folder in the staging folder for the sums of the ranges."""
_BYTES_OF_GROUP = 32 << 20
"""Of the files, for each group of titles: a million rows where the wiki has most of the lines."""
_AGENT = re.compile(r"-(automated|spider)\b")
_TIME = re.compile(r"\d{6,8}")


@dataclass(frozen=True, slots=True)
class PageviewsSummary:
    """What was made.

    Attributes:
        output: folder of the release.
        manifest: as written.
        seconds: wall time.
    """

    output: str
    manifest: PageviewsManifest
    seconds: float


def make_pageviews(options: PageviewsOptions, *, flags: Sequence[str], progress: Progress) -> PageviewsSummary:
    """Makes a release of page views.

    Args:
        options: what to make.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: too much of the files cannot be used, or nothing is of the wiki.
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
    output, storage, hashed, ranges, inputs = given
    with ReleaseFolder(output, storage, kind=PAGEVIEWS_RELEASE, job=given.job(options.data_options())) as out:
        n_bytes = sum(file.bytes for file in inputs)
        groups = TitleGroups(1 + n_bytes // _BYTES_OF_GROUP)
        read = _SumRange(hashed, Site(language_of_dbname(options.site), options.site), join(out.staging, READ))
        finish = _Commit(options, inputs, output)
        sums = (
            pipeline
            | "ranges" >> beam.Create(ranges, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | beam.ParDo(read)
        )
        by_title = {"rows": sums | "by title" >> Regroup(join(out.staging, "titles"), groups)}
        summed = by_title | GroupMap(_sum_group, join(out.staging, "sums"), outputs={"pageviews": PAGEVIEWS})
        reports = beam.pvalue.AsSingleton(sums | "reports" >> Together())
        _ = summed["pageviews"] | "groups" >> Together() | "release" >> beam.ParDo(finish, reports)
        sizes = [part.end - part.start for part in ranges]
        with progress.stage("views", chunks_done(out.staging, join(out.staging, READ), sizes)):
            run_pipeline(pipeline, "pageviews")
    manifest = PAGEVIEWS_RELEASE.read(output, storage)
    return PageviewsSummary(options.output, manifest, time.monotonic() - started)


def check_views_files(names: Sequence[str]) -> None:
    """Finds files whose views are not to be summed.

    Raises:
        SetupError: views of programs, or of a day and of the month that it is in.
    """
    times: defaultdict[str, str] = defaultdict(str)
    for name in names:
        if agent := _AGENT.search(name):
            raise SetupError(f"{name} has views by programs ({agent[1]}); give the files of users, ….-user.bz2.")
        if found := _TIME.search(name):
            times[found[0]] = name
    for day, name in times.items():
        if len(day) == 8 and day[:6] in times:
            raise SetupError(f"{name} is a day of the month that {times[day[:6]]} sums up; give either of them.")


class _SumRange(WorkerDoFn):
    """A range -> (Key, ``Stored`` sums), once more only where it was not summed before."""

    def __init__(self, hashed: Mapping[str, HashedFile], site: Site, folder: str) -> None:
        super().__init__()
        self._hashed, self._site, self._folder = dict(hashed), site, folder

    def process(self, element: LineRange) -> Iterator[tuple[Key, Stored]]:
        key = Key(element.index, 0)
        path = chunk_path(self._folder, key)
        with named_faults():
            own = storage_for(path)
            if own.exists(path):
                stored, _ = read_chunk_report(path, own)
            else:
                report = Report()
                source = CheckedStorage(storage_for(element.path), self._hashed)
                batches = sum_range(element, source, self._site, report)
                stored = write_chunk(batches, PAGEVIEWS, report, path=path, storage=own)
        yield key, stored


def _sum_group(work: GroupWork) -> None:
    for batch in sum_group(work.table("rows", PAGEVIEWS)).to_batches(max_chunksize=MERGED_ROWS):
        work.write("pageviews", batch)


class _Commit(WorkerDoFn):
    """Merges the groups and writes the manifest, last of all."""

    def __init__(self, options: PageviewsOptions, inputs: Sequence[InputFile], output: str) -> None:
        super().__init__()
        self._options, self._inputs, self._output = options, tuple(inputs), output

    def process(self, element: list[tuple[Key, Stored]], ranges: list[tuple[Key, Stored]]) -> Iterator[str]:
        with named_faults():
            self._commit([Stored(*stored) for _, stored in element], [Stored(*stored).path for _, stored in ranges])
        yield self._output

    def _commit(self, groups: Sequence[Stored], ranges: Sequence[str]) -> None:
        options, output, storage = self._options, self._output, storage_for(self._output)
        reports = [read_chunk_report(path, storage)[1] for path in ranges]
        counts: dict[str, LineCounts] = {input_.name: LineCounts() for input_ in self._inputs}
        for report in reports:
            file = report.facts["file"]
            counts[file] = sum_counts([counts[file], line_counts(report)], LineCounts())
        totals = sum_counts(counts.values(), LineCounts())
        findings = loss_findings(
            totals.lines_read,
            n_bytes=sum(input_.bytes for input_ in self._inputs),
            damaged_bytes=sum(report.counts[DAMAGED_BYTES] for report in reports),
        )
        check_rejects(
            Counter(totals.rejected),
            totals.lines_read,
            max_share=options.max_rejects,
            allow_truncated=options.allow_truncated,
            what="lines",
            loss=findings,
        )
        if not totals.used:
            raise DataError(f"No line has views of an article of {options.site}. Check --site and --input.")
        rows = merge_groups(read_stored(group, storage) for group in groups)
        entry = write_rows(rows, "pageviews", PAGEVIEWS, output=output, storage=storage)
        rejected = chain.from_iterable(report.rejected for report in reports)
        manifest = PageviewsManifest(
            code=code_facts(),
            inputs=self._inputs,
            options=options.data_options(),
            tables={"pageviews": (entry,), "rejected": (write_rejected(rejected, output=output, storage=storage),)},
            counts=counts,
            totals=totals,
            views=sum(report.counts["views"] for report in reports),
            findings=findings,
        )
        commit(PAGEVIEWS_RELEASE, manifest, output, storage)
