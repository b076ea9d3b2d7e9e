"""The alignment of datasets: their examples with the evidence found again in a release.

One pipeline, whether there is one dataset or all of a configuration: datasets are read, each by one worker; only the
pages that are needed are read, each once for all evidences of all datasets; outcomes go back to the chunks of their
records, which are filtered and written. No text is shuffled, and memory holds a chunk.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError, told_fault
from kbsource.files import is_local, join, read_json, write_json
from kbsource.release.layout import MANIFEST, check_output
from kbsource.release.manifest import ListingManifest
from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.runtime.chunks import Key, Stored
from mapping.search.resolve import read_moves
from mapping.write.kind import ALIGNMENT, ALIGNMENTS, REPORT
from pipelines.alignment.dataset_part import DatasetPart, alignment_facts, evidence_files, input_facts, search_settings
from pipelines.alignment.many_datasets import AllSummary, Planned, check_all, failure, write_reports
from pipelines.alignment.output import record_files
from pipelines.alignment.verify import check_model
from pipelines.options.map import MapOptions
from pipelines.progress import Done, Progress, beats_in
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute, storage_for
from pipelines.transforms.align_spans import AlignSpans
from pipelines.transforms.read_evidence import DATASETS, EVIDENCE, EXAMPLES, FAULTS, REJECTED, ReadEvidence
from pipelines.transforms.resolve_pages import ResolvePages
from pipelines.transforms.write_alignment import JoinOutcomes, WriteAlignment

_FAULTS, _BEATS = "faults", "beats"


@dataclass(frozen=True, slots=True)
class MapSummary:
    """What an alignment made.

    Attributes:
        output: folder of the alignment.
        report: as written to ``report.json``.
        manifest: as written.
        seconds: wall time.
    """

    output: str
    report: dict[str, Any]
    manifest: ListingManifest
    seconds: float


def map_dataset(options: MapOptions, *, flags: Sequence[str], progress: Progress) -> MapSummary:
    """Aligns a dataset.

    Args:
        options: what to align.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: too many records cannot be used, or a law of the counts does not hold.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    check_paths(flags, options.kb, *options.inputs, options.output)
    folder = absolute(options.output.rstrip("/") or "/")
    storage = storage_for(folder)
    check_output(folder, storage)
    check_dataset(options)
    release = PAGES_RELEASE.read(options.kb, storage_for(options.kb))
    progress.note("inputs: hashing")
    part = DatasetPart(options, alignment_facts(options, release, input_facts(options)))
    with ReleaseFolder(folder, storage, kind=ALIGNMENT, job=part.facts, further=record_files(options)) as output:
        if faults := _align(pipeline, [part], output.staging, progress):
            raise faults[0]
    report = read_json(storage, join(folder, REPORT))
    return MapSummary(options.output, report, ALIGNMENT.read(folder, storage), time.monotonic() - started)


def map_all(
    planned: Sequence[Planned], *, kb: str, output: str, flags: Sequence[str], progress: Progress
) -> AllSummary:
    """Aligns datasets.

    Args:
        planned: what to align; no folder twice.
        kb: folder of the release.
        output: folder of all.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: at least one dataset failed for its data; the others are done.
        SetupError: something is wrong with a file, an option or a folder; before anything has run, or, where
            it could not be seen before, after the other datasets are done.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    check_paths(flags, kb, *(path for plan in planned for path in plan.options.inputs), output)
    folder = absolute(output)
    storage = storage_for(folder)
    release = PAGES_RELEASE.read(kb, storage_for(kb))
    known: dict[str, list[dict[str, Any]]] = {}
    done = check_all(planned, release, folder, storage, check=check_dataset, known=known, progress=progress)
    pending = [plan for plan in planned if plan.folder not in done]
    if pending:
        progress.note("inputs: hashing")
        parts = [
            DatasetPart(plan.options, alignment_facts(plan.options, release, input_facts(plan.options, known)))
            for plan in pending
        ]
        owned = [
            join(plan.folder, name)
            for plan in pending
            for name in (*ALIGNMENT.owned, *record_files(plan.options), MANIFEST)
        ]
        job = {one.folder: part.facts for one, part in zip(pending, parts, strict=True)}
        with ReleaseFolder(folder, storage, kind=ALIGNMENTS, job=job, further=owned, kept=done) as locked:
            faults = _align(pipeline, parts, locked.staging, progress)
            if faults:
                raise failure([(pending[part], fault) for part, fault in sorted(faults.items())], len(planned))
    report = write_reports(planned, release, folder, storage)
    return AllSummary(output, report, tuple(done), time.monotonic() - started)


def check_dataset(options: MapOptions) -> None:
    """Looks for what can be seen to be wrong before anything runs.

    Raises:
        SetupError: a file or the model is missing or not what it should be.
    """
    evidence_files(options).check()
    check_model(options)
    if options.title_map is not None:
        read_moves(options.title_map, storage_for(options.title_map))


def _align(pipeline: Any, parts: Sequence[DatasetPart], staging: str, progress: Progress) -> dict[int, SetupError]:
    """Runs the pipeline that aligns datasets; gives what kept which of them from being finished."""
    storage = storage_for(staging)
    storage.delete_tree(join(staging, _FAULTS))
    align_datasets(pipeline, parts, staging)
    with progress.stage("map", _poll(staging)):
        run_pipeline(pipeline, "map")
    paths = storage.glob(join(staging, _FAULTS, "*.json"))
    return {int(value["part"]): told_fault(value) for value in (read_json(storage, path) for path in paths)}


def align_datasets(pipeline: Any, parts: Sequence[DatasetPart], staging: str) -> None:
    """Puts together what aligns datasets to a release and writes each into its folder.

    Args:
        pipeline: an empty one.
        parts: the datasets.
        staging: folder for what is only needed while the job runs; for one job with one input only.
    """
    options = dict(enumerate(part.options for part in parts))
    kb = absolute(parts[0].options.kb)
    read = pipeline | ReadEvidence([evidence_files(own) for own in options.values()], staging)
    title_maps = {part: one.title_map for part, one in options.items()}
    resolved = read[EVIDENCE] | ResolvePages(kb, title_map=title_maps, folder=join(staging, "resolved"))
    outcomes = []
    for timeout_s in sorted({own.evidence_timeout_s for own in options.values()}):
        settings = {part: search_settings(one) for part, one in options.items() if one.evidence_timeout_s == timeout_s}
        outcomes.append(
            resolved
            | f"of at most {timeout_s:g} s" >> beam.Filter(_is_of, frozenset(settings))
            | f"AlignSpans within {timeout_s:g} s"
            >> AlignSpans(
                kb,
                settings=settings,
                folder=join(staging, f"aligned-{timeout_s:g}"),
                timeout_s=timeout_s,
                memory_bytes=parts[0].options.worker_memory_bytes,
                beats=join(staging, _BEATS),
            )
        )
    models = {part: one.verify.model for part, one in options.items() if one.verify is not None}
    chunks = (read[EXAMPLES], *outcomes) | JoinOutcomes(join(staging, "by_chunk"), models=models)
    written = (chunks, read[DATASETS], read[REJECTED]) | WriteAlignment(parts, staging)
    faults = (read[FAULTS], written[FAULTS]) | "all faults" >> beam.Flatten()
    _ = faults | "note" >> beam.ParDo(_NoteFault(staging))


def _is_of(chunk: tuple[Key, Stored], parts: frozenset[int]) -> bool:
    return chunk[0][0] in parts


class _NoteFault(WorkerDoFn):
    """(dataset, fault) -> a file in the staging folder, for the driver."""

    def __init__(self, staging: str) -> None:
        super().__init__()
        self._folder = join(staging, _FAULTS)

    def process(self, element: tuple[int, Mapping[str, str]]) -> None:
        part, fault = element
        path = join(self._folder, f"{part:05d}.json")
        write_json(storage_for(path), path, {"part": part, **fault})


def _poll(staging: str) -> Callable[[], Done]:
    """Gives a poll of how many pieces of evidence have been read, and searched for; in local folders they are seen."""
    storage, beats, n_read = storage_for(staging), beats_in(join(staging, _BEATS), ""), 0

    def poll() -> Done:
        nonlocal n_read
        if is_local(staging):
            read = [read_json(storage, path) for path in storage.glob(join(staging, "read", "*.json"))]
            n_read = max(n_read, sum(summary["tally"]["evidences"] for summary in read))
        return Done(beats().amount_done, n_read, unit="pieces of evidence")

    return poll
