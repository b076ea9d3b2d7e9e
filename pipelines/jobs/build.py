"""The build: a dump becomes a release, by one pipeline.

The dump is scanned in ranges; one worker builds the index of all titles; articles are parsed chunk by chunk with it,
and put together in files; one worker adds the small tables and, last of all, the manifest.
"""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam

from kbsource.dump.digests import write_hashes
from kbsource.dump.rejects import check_rejects
from kbsource.errors import named_faults
from kbsource.files import join
from kbsource.index.title_index import TitleIndex
from kbsource.pages.assembly import assemble
from kbsource.pages.indexes import Indexes
from kbsource.pages.shards import Shard, ShardReport, plan_shards, read_shard, write_page_shard
from kbsource.pages.staging import ScanReport, Selection, lost_pages, part_path, read_report
from kbsource.release.layout import INDEX, check_output
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.runtime.chunks import Key, Stored
from kbsource.wikidata.reader import WikidataTables
from pipelines.jobs.build_inputs import BuildInputs, read_inputs
from pipelines.options.build import BuildOptions
from pipelines.primitives.together import Together
from pipelines.progress import Done, Progress, beats_in
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute, storage_for
from pipelines.transforms.parse_wikitext import ParseWikitext
from pipelines.transforms.read_dump import Scanning, ScanRanges
from pipelines.transforms.title_index import BuildDefinitions, BuildTitleIndex, Items, index_to_work_on, local_index

_HASHES = "hashes.json"


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
    manifest: PagesManifest
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
        ModuleNotFoundError: modules are to be run, and ``kbsource[lua]`` is not installed.
    """
    started = time.monotonic()
    with (
        prepared_build(options, flags=flags, progress=progress) as (pipeline, inputs, out),
        progress.stage("build", _poll(inputs, out.staging)),
    ):
        run_pipeline(pipeline, "build")
    manifest = PAGES_RELEASE.read(out.folder, storage_for(out.folder))
    missing = _titles_not_found(inputs.titles, out.folder)
    return BuildSummary(options.output, manifest, missing, time.monotonic() - started)


@contextmanager
def prepared_build(
    options: BuildOptions, *, flags: Sequence[str], progress: Progress
) -> Iterator[tuple[beam.Pipeline, BuildInputs, ReleaseFolder]]:
    """Gives the pipeline of a build, ready to be run, with what it is made from and its folder, which is locked.

    Args, Raises: as ``build``.
    """
    if options.templates == "lua":
        importlib.import_module("lupa")  # here rather than where the first module is called
    pipeline = new_pipeline(flags)  # first of all else, since it says where stores are
    output = absolute(options.output.rstrip("/") or "/")
    storage = storage_for(output)
    check_paths(flags, *options.dump, options.output)
    check_output(output, storage)
    inputs = read_inputs(options, storage=storage_for(*options.dump), progress=progress)
    job = {"inputs": [asdict(file) for file in inputs.files], "options": options.data_options()}
    with ReleaseFolder(output, storage, kind=PAGES_RELEASE, job=job) as out:
        write_hashes(inputs.hashed, join(out.staging, _HASHES), storage)
        _ = pipeline | "build" >> BuildRelease(options, inputs, out.folder, out.staging)
        yield pipeline, inputs, out


class BuildRelease(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """What a build is made from -> the path of the release, once it is whole. Applied to a pipeline.

    Args:
        options: what to build.
        inputs: the ranges of the dump, and facts of all files.
        output: folder of the release, marked as unfinished.
        staging: folder in it for what is only needed meanwhile.
    """

    def __init__(self, options: BuildOptions, inputs: BuildInputs, output: str, staging: str) -> None:
        super().__init__()
        self._options, self._inputs, self._output, self._staging = options, inputs, output, staging

    def expand(self, pipeline: Any) -> Any:
        options, inputs, staging = self._options, self._inputs, self._staging
        beats = join(staging, "beats")
        hashes = join(staging, _HASHES)
        items = Items(inputs.site, _absolute(options.page_props), _absolute(options.wikidata), hashes)
        has_definitions = options.templates != "rules"
        selection = Selection(options.limit_pages, inputs.titles, has_definitions)
        dump = pipeline | "dump" >> ScanRanges(
            inputs.ranges, Scanning(inputs.site, options.as_of, selection, staging, hashes, beats)
        )
        checked = dump.counts | "checked" >> Together() | "ceiling" >> beam.ParDo(_CheckScan(options, inputs, staging))
        index = dump.titles | "index" >> BuildTitleIndex(
            join(staging, INDEX), items=items, max_duplicates=options.max_rejects, after=checked
        )
        definitions = (
            dump.definitions | "definitions" >> BuildDefinitions(join(staging, "store")) if has_definitions else None
        )
        pages = (
            dump.raw
            | "spread" >> beam.Reshuffle()
            | "pages"
            >> ParseWikitext(
                inputs.site,
                index,
                definitions=definitions,
                has_lua=options.templates == "lua",
                has_items=_has_items(options),
                parser=options.parser,
                folder=join(staging, "pages"),
                timeout_s=options.page_timeout_s,
                memory_bytes=options.worker_memory_bytes,
                beats=beats,
            )
        )
        return (
            pages.chunks
            | "in order" >> Together()
            | "plan" >> beam.FlatMap(_shards)
            | "spread files" >> beam.Reshuffle()
            | "write" >> beam.ParDo(_WriteShard(self._output, staging))
            | "written" >> Together()
            | "release" >> beam.ParDo(_Commit(options, inputs, self._output, staging), beam.pvalue.AsSingleton(index))
        )


class _CheckScan(WorkerDoFn):
    """Ends the job where too much of the dump cannot be used, before anything is parsed."""

    def __init__(self, options: BuildOptions, inputs: BuildInputs, staging: str) -> None:
        super().__init__()
        self._options, self._n_ranges, self._staging = options, len(inputs.ranges), staging

    def process(self, element: object) -> Iterator[None]:
        with named_faults():
            _check_rejects(self._options, _scans(self._staging, self._n_ranges), ())
        yield None


def _shards(chunks: list[tuple[Key, Stored]]) -> Iterator[Shard]:
    yield from plan_shards(chunks)


class _WriteShard(WorkerDoFn):
    def __init__(self, output: str, staging: str) -> None:
        super().__init__()
        self._output, self._staging = output, staging

    def process(self, element: Shard) -> Iterator[tuple[Key, int]]:
        with named_faults():
            write_page_shard(element, storage_for(self._output), output=self._output, staging=self._staging)
        yield Key(element.number, 0), element.number


class _Commit(WorkerDoFn):
    """Writes everything but the pages, and the manifest last."""

    def __init__(self, options: BuildOptions, inputs: BuildInputs, output: str, staging: str) -> None:
        super().__init__()
        self._options, self._site, self._schema_version = options, inputs.site, inputs.schema_version
        self._files, self._n_ranges = inputs.files, len(inputs.ranges)
        self._output, self._staging = output, staging

    def process(self, element: list[tuple[Key, int]], index: str) -> Iterator[str]:
        options, output, staging, storage = self._options, self._output, self._staging, storage_for(self._output)
        wikidata = _absolute(options.wikidata)
        with named_faults(), index_to_work_on(index) as (folder, scratch):
            scans = _scans(staging, self._n_ranges)
            shards = [read_shard(storage, staging, number)[2] for _, number in element]
            _check_rejects(options, scans, shards)
            manifest = assemble(
                scans,
                shards,
                Indexes.read(folder),
                storage,
                output=output,
                staging=staging,
                scratch=scratch,
                site=self._site,
                schema_version=self._schema_version,
                inputs=self._files,
                options=options.data_options(),
                wikidata=None if wikidata is None else WikidataTables.open(wikidata, storage_for(wikidata)),
            )
            commit(PAGES_RELEASE, manifest, output, storage)
        yield output


def _scans(staging: str, n_ranges: int) -> list[ScanReport]:
    return [read_report(storage_for(staging), staging, part) for part in range(n_ranges)]


def _check_rejects(options: BuildOptions, scans: Sequence[ScanReport], shards: Sequence[ShardReport]) -> None:
    rejected: Counter[str] = Counter()
    for report in scans:
        rejected.update(report.rejected)
    for shard in shards:
        for reasons in shard.rejected.values():
            rejected.update(reasons)
    check_rejects(
        rejected,
        sum(report.n_pages for report in scans),
        max_share=options.max_rejects,
        allow_truncated=options.allow_truncated,
        loss=lost_pages(scans),
    )


def _has_items(options: BuildOptions) -> bool:
    return options.page_props is not None or options.wikidata is not None


def _absolute(path: str | None) -> str | None:
    return None if path is None else absolute(path)


def _titles_not_found(titles: Iterable[str] | None, output: str) -> tuple[str, ...]:
    if titles is None:
        return ()
    index = TitleIndex.open(local_index(join(output, INDEX)))
    return tuple(sorted(title for title in titles if index.find(title) is None))


def _poll(inputs: BuildInputs, staging: str) -> Callable[[], Done]:
    """Says how much of the dump is scanned, and then how much of its text is parsed."""
    n_bytes = sum(part.end - part.start for part in inputs.ranges)
    scanned, parsed = beats_in(join(staging, "beats"), "scan-"), beats_in(join(staging, "beats"), "chunks-")
    text_bytes = 0

    def poll() -> Done:
        nonlocal text_bytes
        scan = scanned()
        if scan.amount_done < n_bytes:
            return Done(scan.amount_done, n_bytes, scan.pages_done)
        if not text_bytes and storage_for(staging).exists(part_path(staging, "scan", len(inputs.ranges) - 1)):
            text_bytes = sum(chunk.n_bytes for report in _scans(staging, len(inputs.ranges)) for chunk in report.chunks)
        pages = parsed()
        return Done(pages.amount_done, text_bytes, pages.pages_done)

    return poll
