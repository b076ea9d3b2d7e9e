"""The build: a dump becomes a release.

Two pipelines of independent tasks, each task one file or a few, and short work on one machine between and
after them (``kbsource.assembly``). Reports of tasks are files, since not every runner gives metrics back.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kbsource.assembly import DataError, Indexes, assemble, build_indexes, check_rejects
from kbsource.dump.check import CheckReport, Finding, check_dump
from kbsource.dump.ranges import DumpRange, expand_inputs, plan_ranges
from kbsource.dump.siteinfo import merge_siteinfo_json, read_siteinfo_json
from kbsource.errors import SetupError
from kbsource.files import LocalStorage, base_name, join, sha256_of
from kbsource.page_items import check_site
from kbsource.release.commit import commit_release
from kbsource.release.layout import MANIFEST, begin_release
from kbsource.release.manifest import InputFile, Manifest
from kbsource.shards import Shard, ShardReport, plan_shards, read_shard_report
from kbsource.site import Site
from kbsource.staging import ScanReport, read_report, write_json
from kbsource.title_index import TitleIndex
from kbsource.titles import normalise_title
from kbsource.wikidata.reader import WikidataTables
from pipelines.options import BuildOptions
from pipelines.progress import Done, Progress, beats_of
from pipelines.stages import Stages
from pipelines.storage import absolute, is_local, storage_for
from pipelines.task_runs import Work, workers_line
from pipelines.tasks import PAGES, SCAN, Job, copy_file, index_files

MAX_RANGE_BYTES = 32 << 20
MIN_RANGE_BYTES = 1 << 20
RANGES_WANTED = 32
"""Ranges that a middling dump is cut into, so that a handful of workers end at about the same time."""

# What allowing a truncated dump makes no error of: all that a file that breaks off is bound to show.
_SIGNS_OF_TRUNCATION = frozenset({"truncated_dump", "size_mismatch", "checksum_mismatch", "index_beyond_end"})
# Damage in the content is counted, recorded, and judged by the ceiling.
_DAMAGE = frozenset({"damaged_block", "damaged_gzip", "trailing_garbage"})


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


class BadDumpError(DataError):
    """The check of the dump found errors; nothing was written."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        super().__init__("The dump is not in order, nothing was built.")
        self.findings = tuple(findings)


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


def range_size(n_bytes: int) -> int:
    """Gives the bytes per range that suit a dump of that size; depends on nothing else."""
    return min(MAX_RANGE_BYTES, max(MIN_RANGE_BYTES, -(-n_bytes // RANGES_WANTED)))


def fatal_findings(report: CheckReport, *, allow_truncated: bool) -> list[Finding]:
    """Gives the findings that forbid a build."""
    passed = _DAMAGE | _SIGNS_OF_TRUNCATION if allow_truncated else _DAMAGE
    return [one for one in report.findings if one.severity == "error" and one.code not in passed]


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
        self._check_set_up()
        paths = [absolute(path) for path in expand_inputs(options.dump, storage)]
        _check_names(paths)
        report = self._check(paths)
        site = self._site(report)
        wikidata = self._wikidata(site)
        titles = self._titles(site)
        ranges = self._ranges(paths)
        inputs = self._inputs(report, wikidata)
        staging = begin_release(self._output, storage)
        job = Job(
            output=self._output,
            site=site,
            ranges=tuple(ranges),
            as_of=options.as_of,
            limit_pages=options.limit_pages,
            has_titles=titles is not None,
            has_page_props=self._has_items,
            parser=options.parser,
        )
        job.write(staging, storage)
        if titles is not None:
            write_json(storage, join(staging, "titles.json"), sorted(titles))
        scans = self._scan(staging, ranges)
        with _local_folder(staging) as folder:
            indexes = self._index(staging, folder, scans, wikidata, site)
            shards, shard_reports = self._pages(staging, scans, indexes)
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
                site=site,
                schema_version=(report.header.schema_version if report.header else None) or "",
                inputs=inputs,
                options=options.data_options(),
                wikidata=wikidata,
            )
            missing = _titles_not_found(titles, TitleIndex.open(folder))
        commit_release(self._output, manifest, storage=storage)
        return manifest, missing

    def _check_set_up(self) -> None:
        """Finds before any long work what would stop the build after it."""
        if self._storage.exists(join(self._output, MANIFEST)):
            raise SetupError(
                f"{self._output} holds a finished release, which is never overwritten; choose another folder."
            )
        options = self._options
        for name, path in (
            ("--page-props", options.page_props),
            ("--wikidata", options.wikidata),
            ("--siteinfo", options.siteinfo),
            ("--only-titles", options.only_titles),
        ):
            if path is not None and not storage_for(path).exists(path):
                raise SetupError(f"{path} does not exist; check the path given with {name}.")

    def _check(self, paths: Sequence[str]) -> CheckReport:
        """Checks and hashes the dump."""
        done = 0

        def add(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes

        total = sum(self._storage.size(path) for path in paths)
        with self._progress.stage("check", lambda: Done(done, total)):
            report = check_dump(paths, self._storage, on_progress=add)
        fatal = fatal_findings(report, allow_truncated=self._options.allow_truncated)
        for finding in report.findings:
            if finding.severity != "info" and finding not in fatal:
                self._progress.note(f"{finding.severity}: {finding.file}: {finding.message} {finding.remedy}".rstrip())
        if fatal:
            raise BadDumpError(fatal)
        return report

    def _site(self, report: CheckReport) -> Site:
        assert report.header is not None  # a dump without a readable head has an error
        site, path = report.header.site, self._options.siteinfo
        return site if path is None else merge_siteinfo_json(site, read_siteinfo_json(path, storage_for(path)))

    @property
    def _has_items(self) -> bool:
        return self._options.page_props is not None or self._options.wikidata is not None

    def _wikidata(self, site: Site) -> WikidataTables | None:
        path = self._options.wikidata
        if path is None:
            return None
        tables = WikidataTables.open(path, storage_for(path))
        check_site(tables, site)
        return tables

    def _titles(self, site: Site) -> frozenset[str] | None:
        path = self._options.only_titles
        if path is None:
            return None
        with storage_for(path).open_read(path) as file:
            try:
                lines = file.read().decode("utf-8-sig").splitlines()
            except UnicodeDecodeError as error:
                raise SetupError(f"{path} is not in UTF-8 ({error}); convert it.") from error
        titles = frozenset(normalise_title(line, site) for line in lines if line.strip())
        if not titles:
            raise SetupError(f"{path} holds no title; write one a line.")
        return titles

    def _ranges(self, paths: Sequence[str]) -> list[DumpRange]:
        n_bytes = sum(self._storage.size(path) for path in paths)
        range_bytes = self._options.range_bytes or range_size(n_bytes)
        if self._options.limit_pages is not None:
            range_bytes = max(n_bytes, 1)
        return plan_ranges(paths, self._storage, range_bytes=range_bytes)

    def _inputs(self, report: CheckReport, wikidata: WikidataTables | None) -> list[InputFile]:
        """Gives the files read, for the manifest."""
        inputs = [InputFile(one.name, one.n_bytes, one.sha256) for one in report.inputs]
        for path in (self._options.page_props, self._options.siteinfo, self._options.only_titles):
            if path is not None:
                storage = storage_for(path)
                inputs.append(InputFile(base_name(path), storage.size(path), sha256_of(storage, path)))
        if wikidata is not None:
            storage, path = wikidata.storage, wikidata.manifest_path
            inputs.append(InputFile("wikidata/manifest.json", storage.size(path), sha256_of(storage, path)))
        return inputs

    def _scan(self, staging: str, ranges: Sequence[DumpRange]) -> list[ScanReport]:
        numbers = [0] if self._options.limit_pages is not None else range(len(ranges))
        tasks = [{"kind": SCAN, "staging": staging, "number": number} for number in numbers]
        sizes = [one.end - one.start for one in ranges]
        self._run_tasks(staging, tasks, sizes, page_timeout_s=None)
        reports = [read_report(self._storage, staging, part) for part in range(len(ranges))]
        self._check_rejects(reports, (), None)
        return reports

    def _index(
        self,
        staging: str,
        folder: str,
        scans: Sequence[ScanReport],
        wikidata: WikidataTables | None,
        site: Site,
    ) -> Indexes:
        self._progress.note("index: titles, redirects and items")
        page_props = self._options.page_props
        indexes = build_indexes(
            scans,
            storage_for(staging, page_props or staging),
            staging=staging,
            folder=folder,
            scratch=os.path.join(os.path.dirname(folder), "scratch"),
            page_props=page_props,
            wikidata=wikidata,
            site=site,
            max_share=self._options.max_rejects,
        )
        if not is_local(staging):
            for name in index_files(has_page_props=self._has_items):
                target = join(staging, "index", name)
                copy_file(LocalStorage(), os.path.join(folder, name), self._storage, target)
        return indexes

    def _pages(
        self, staging: str, scans: Sequence[ScanReport], indexes: Indexes
    ) -> tuple[list[Shard], list[ShardReport]]:
        shards = plan_shards([chunk for report in scans for chunk in report.chunks])
        tasks = [
            {
                "kind": PAGES,
                "staging": staging,
                "number": shard.number,
                "shard": shard.to_json(),
                "skipped": [
                    source
                    for part in dict.fromkeys(chunk.part for chunk in shard.chunks)
                    for source in indexes.skipped.get(part, ())
                ],
            }
            for shard in shards
        ]
        sizes = [shard.raw_bytes for shard in shards]
        self._run_tasks(staging, tasks, sizes, page_timeout_s=self._options.page_timeout_s)
        return shards, [read_shard_report(self._storage, staging, shard.number) for shard in shards]

    def _run_tasks(
        self,
        staging: str,
        tasks: Sequence[Mapping[str, Any]],
        sizes: Sequence[int],
        *,
        page_timeout_s: float | None,
    ) -> None:
        """Runs one pipeline of tasks of one kind to its end.

        Args:
            staging: staging folder.
            tasks: of one kind.
            sizes: bytes of work by number of the task, for the progress shown.
            page_timeout_s: seconds that one page may take.

        Raises:
            DataError: a task could not be done.
        """
        kind = tasks[0]["kind"]
        work = Work("pipelines.tasks:run_task", staging, page_timeout_s, self._options.worker_memory_bytes)
        poll = (
            beats_of(staging, kind, total_bytes=sum(sizes))
            if is_local(staging)
            else self._reports_of(staging, kind, sizes)
        )
        with self._progress.stage(kind, poll):
            workers = self._stages.run(tasks, work)
        if len(workers) > 1:
            self._progress.note(workers_line(kind, workers))

    def _reports_of(self, staging: str, kind: str, sizes: Sequence[int]) -> Any:
        folder = "scan" if kind == SCAN else "shards"

        def poll() -> Done:
            found = self._storage.glob(join(staging, folder, "*.json"))
            return Done(sum(sizes[int(base_name(path).partition(".")[0])] for path in found), sum(sizes))

        return poll

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


def _check_names(paths: Sequence[str]) -> None:
    repeated = [name for name, count in Counter(map(base_name, paths)).items() if count > 1]
    if repeated:
        raise SetupError(f"{repeated[0]} is given from two folders; counts are kept by name, so rename one of them.")


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
