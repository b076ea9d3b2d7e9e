"""The build: a dump becomes a release.

Two pipelines of independent tasks, each task one file or a few, and short work on one machine between and
after them (``kbsource.assembly``). Reports of tasks are files, since not every runner gives metrics back.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kbsource.assembly import Indexes, assemble, build_indexes, check_rejects
from kbsource.files import LocalStorage, join
from kbsource.release.commit import commit_release
from kbsource.release.layout import begin_release, check_output
from kbsource.release.manifest import Manifest
from kbsource.shards import Shard, ShardReport, plan_shards, read_shard_report
from kbsource.staging import ScanReport, read_report, write_json
from kbsource.title_index import TitleIndex
from pipelines.build_inputs import BuildInputs, read_inputs
from pipelines.options import BuildOptions
from pipelines.progress import Progress
from pipelines.shown_stages import ShownStages, Task
from pipelines.stages import Stages
from pipelines.storage import absolute, is_local, storage_for
from pipelines.tasks import PAGES, RUN_TASK, SCAN, Job, copy_file, index_files


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a build made.

    Attributes:
        output: folder of the release.
        manifest: as written.
        titles_not_found: titles of ``only_titles`` that the dump does not have, in order of the alphabet.
        seconds: wall time.
    """

    output: str
    manifest: Manifest
    titles_not_found: tuple[str, ...]
    seconds: float


def build(options: BuildOptions, *, flags: Sequence[str], progress: Progress) -> BuildSummary:
    """Builds a release.

    Args:
        options: what to build.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        BadDumpError: the dump has errors.
        DataError: too much of the dump cannot be used, or a law does not hold.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    with Stages(flags) as stages:
        stages.check_paths(*options.dump, options.output)
        manifest, missing = _Build(options, stages, progress).run()
    return BuildSummary(options.output, manifest, missing, time.monotonic() - started)


class _Build:
    """One build, step by step."""

    def __init__(self, options: BuildOptions, stages: Stages, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._output = absolute(options.output.rstrip("/") or "/")
        self._stages = stages
        self._storage = storage_for(self._output, *options.dump)

    def run(self) -> tuple[Manifest, tuple[str, ...]]:
        options, storage = self._options, self._storage
        check_output(self._output, storage)
        inputs = read_inputs(options, storage=storage, progress=self._progress)
        staging = begin_release(self._output, storage)
        job = Job(
            output=self._output,
            site=inputs.site,
            ranges=inputs.ranges,
            as_of=options.as_of,
            limit_pages=options.limit_pages,
            has_titles=inputs.titles is not None,
            has_page_props=self._has_items,
            parser=options.parser,
        )
        job.write(staging, storage)
        if inputs.titles is not None:
            write_json(storage, join(staging, "titles.json"), sorted(inputs.titles))
        tasks = ShownStages(RUN_TASK, staging, self._stages, self._progress, options.worker_memory_bytes)
        scans = self._scan(tasks, inputs)
        with _local_folder(staging) as folder:
            indexes = self._index(staging, folder, scans, inputs)
            shards, shard_reports = self._pages(tasks, scans, indexes)
            self._check_rejects(scans, shard_reports, indexes)
            self._progress.note("finish: indexes, small tables and manifest")
            manifest = assemble(
                scans,
                shards,
                shard_reports,
                indexes,
                storage,
                output=self._output,
                staging=staging,
                site=inputs.site,
                schema_version=inputs.schema_version,
                inputs=inputs.files,
                options=options.data_options(),
                wikidata=inputs.wikidata,
            )
            missing = _titles_not_found(inputs.titles, TitleIndex.open(folder))
        commit_release(self._output, manifest, storage=storage)
        return manifest, missing

    @property
    def _has_items(self) -> bool:
        return self._options.page_props is not None or self._options.wikidata is not None

    def _scan(self, tasks: ShownStages, inputs: BuildInputs) -> list[ScanReport]:
        """Scans the dump, each range by a task, or all by one where pages are counted out."""
        sizes = [one.end - one.start for one in inputs.ranges]
        if self._options.limit_pages is not None:
            sizes = [sum(sizes)]
        tasks.run(SCAN, [Task(number, size) for number, size in enumerate(sizes)])
        reports = [read_report(self._storage, tasks.staging, part) for part in range(len(inputs.ranges))]
        self._check_rejects(reports, (), None)
        return reports

    def _index(self, staging: str, folder: str, scans: Sequence[ScanReport], inputs: BuildInputs) -> Indexes:
        self._progress.note("index: titles, redirects and items")
        page_props = self._options.page_props
        indexes = build_indexes(
            scans,
            storage_for(staging, page_props or staging),
            staging=staging,
            folder=folder,
            scratch=os.path.join(os.path.dirname(folder), "scratch"),
            page_props=page_props,
            wikidata=inputs.wikidata,
            site=inputs.site,
            max_share=self._options.max_rejects,
        )
        if not is_local(staging):
            for name in index_files(has_page_props=self._has_items):
                target = join(staging, "index", name)
                copy_file(LocalStorage(), os.path.join(folder, name), self._storage, target)
        return indexes

    def _pages(
        self, tasks: ShownStages, scans: Sequence[ScanReport], indexes: Indexes
    ) -> tuple[list[Shard], list[ShardReport]]:
        shards = plan_shards([chunk for report in scans for chunk in report.chunks])
        work = [
            Task(shard.number, shard.raw_bytes, {"shard": shard.to_json(), "skipped": _skipped(shard, indexes)})
            for shard in shards
        ]
        tasks.run(PAGES, work, page_timeout_s=self._options.page_timeout_s)
        return shards, [read_shard_report(self._storage, tasks.staging, shard.number) for shard in shards]

    def _check_rejects(
        self, scans: Sequence[ScanReport], shards: Sequence[ShardReport], indexes: Indexes | None
    ) -> None:
        rejected: Counter[str] = Counter()
        for report in scans:
            rejected.update(report.rejected)
        for shard in shards:
            for reasons in shard.rejected.values():
                rejected.update(reasons)
        if indexes is not None:
            rejected.update(record.reason for record, _ in indexes.dropped)
        check_rejects(
            rejected,
            sum(report.n_pages for report in scans),
            max_share=self._options.max_rejects,
            allow_truncated=self._options.allow_truncated,
        )


def _skipped(shard: Shard, indexes: Indexes) -> list[int]:
    """Gives the sources of the pages that the index left out, of the parts that a shard is made of."""
    parts = dict.fromkeys(chunk.part for chunk in shard.chunks)
    return [source for part in parts for source in indexes.skipped.get(part, ())]


def _titles_not_found(titles: frozenset[str] | None, index: TitleIndex) -> tuple[str, ...]:
    return tuple(sorted(title for title in titles or () if index.find(title) is None))


@contextmanager
def _local_folder(staging: str) -> Iterator[str]:
    """Gives a local folder for the index: in the staging folder, or a temporary one where that is remote."""
    if is_local(staging):
        yield join(staging, "index")
    else:
        with tempfile.TemporaryDirectory(prefix="kbsource-") as folder:
            yield os.path.join(folder, "index")
