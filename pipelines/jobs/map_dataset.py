"""Aligns datasets: finds the evidence of their examples in a release.

One pipeline aligns one dataset, or all datasets of a configuration. Each dataset is read by one worker, which also
finds the pages of its evidence. Only the necessary pages are read, each once for the evidence of all datasets. Outcomes
are joined with the chunks of their records, which are then filtered and written. Texts are not shuffled. Memory: one
chunk, or one file of sorted evidence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam
import orjson

from kbsource.errors import DataError, SetupError, told_fault
from kbsource.files import Folder, absolute, glob, is_local, join
from kbsource.release.layout import EXTRA, MANIFEST, MARKS, STAGING, stored_files
from kbsource.release.manifest import ListingManifest
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import file_fault
from kbsource.release.writer import write_lines
from kbsource.runtime.chunks import BatchRef, ChunkKey
from mapping.acceptance import check_signals
from mapping.entail.model import model_facts
from mapping.search.resolve import read_moves
from mapping.search.tokens import tokeniser_name
from mapping.write.kind import ALIGNMENT, ALIGNMENTS, REPORT, TEXT_REPORT
from mapping.write.report import FinishedAlignment, overview_text, overview_values, page_values
from pipelines.alignment.reading import check_files
from pipelines.alignment.writing import (
    MERGED,
    DatasetPart,
    alignment_facts,
    input_facts,
    record_files,
)
from pipelines.jobs.shared_inputs import MadeRelease, output_folder
from pipelines.options.map_dataset import MapOptions, PlannedAlignment
from pipelines.progress import Done, Progress, beats_in
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import do
from pipelines.transforms.align import (
    DATASETS,
    EVIDENCE,
    EXAMPLES,
    FAULTS,
    REJECTED,
    AlignSpans,
    JoinOutcomes,
    ReadEvidence,
    WriteAlignment,
)

_FAULTS, _BEATS, _DECIDED = "faults", "beats", "decided.json"


def failure(failed: Sequence[tuple[PlannedAlignment, SetupError]], n_planned: int) -> SetupError:
    """Returns an error that lists why each dataset failed."""
    kind = DataError if any(isinstance(error, DataError) for _, error in failed) else SetupError
    return kind(
        f"{len(failed)} of {n_planned} could not be aligned. The others are complete. Fix these errors and run the "
        f"same command again:\n" + "\n".join(f"  {run.folder}: {error}" for run, error in failed)
    )


def check_all(
    planned: Sequence[PlannedAlignment],
    release: PagesManifest,
    output: str,
    *,
    check: Callable[[MapOptions], None],
    known: dict[str, list[dict[str, Any]]],
    progress: Progress,
) -> list[str]:
    """Checks all inputs and outputs, and returns the folders that are finished; ``check`` checks the others.

    Raises:
        SetupError: lists all problems.
    """
    own = (*ALIGNMENTS.owned, *EXTRA, MANIFEST, *MARKS)
    folders = (f"{STAGING}/", *(f"{part.folder}/" for part in planned))
    odd = [file for file in stored_files(output) if file not in own and not file.startswith(folders)]
    faults = [f"{output} contains {odd[0]}, which is not one of these datasets; choose another folder."] if odd else []
    done = []
    for number, run in enumerate(planned, 1):
        try:
            if Folder.of(join(run.options.output, MANIFEST)).exists():
                _check_done(run.options, release, known)
                progress.note(f"{run.folder} ({number} of {len(planned)}): already complete")
                done.append(run.folder)
            else:
                check(run.options)
        except SetupError as error:
            faults.append(f"{run.where}: {error}")
    if Folder.of(join(output, MANIFEST)).exists() and len(done) < len(planned) and not faults:
        faults.append(f"{output} is a finished release with fewer datasets; choose another folder.")
    if faults:
        raise SetupError(
            "nothing was aligned, because of these errors:\n" + "\n".join(f"  {fault}" for fault in faults)
        )
    return done


def _check_done(options: MapOptions, release: PagesManifest, known: dict[str, list[dict[str, Any]]]) -> None:
    """Raises SetupError if a finished alignment differs from what would be made now, or is incomplete."""
    manifest = ALIGNMENT.read(options.output)
    facts = orjson.loads(orjson.dumps(alignment_facts(options, release, input_facts(options, known))))
    if differing := [name for name in facts if manifest.facts.get(name) != facts[name]]:
        raise SetupError(
            f"{options.output} is a finished alignment that differs in {', '.join(differing)}; remove it, and run "
            f"the command again."
        )
    for entry in manifest.entries():
        if file_fault(options.output, entry, hashes=False) is not None:
            path = join(options.output, entry.file)
            raise SetupError(f"{path} is damaged or changed; remove {options.output} and run the command again.")


def write_reports(planned: Sequence[PlannedAlignment], release: PagesManifest, output: str) -> dict[str, Any]:
    """Writes the report on all alignments and the final manifest, and returns the report."""
    aligned, manifests = [], []
    for part in planned:
        manifest = ALIGNMENT.read(part.options.output)
        manifests.append({"folder": part.folder, "manifest_sha256": manifest.sha256})
        names = tuple(entry.file for entry in manifest.files if entry.file.endswith("-kilt.jsonl"))
        aligned.append(
            FinishedAlignment(part.name, part.folder, ALIGNMENT.read_document(part.options.output, REPORT), names)
        )
    report = overview_values(aligned, page_values(aligned, output=output, n_pages=release.n_rows("pages")))
    contents = {
        REPORT: orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE),
        TEXT_REPORT: f"{overview_text(report)}\n".encode(),
    }
    written = (write_lines([content], name, output=output) for name, content in contents.items())
    files = [replace(entry, rows=None) for entry in written]
    facts = {"release": release.facts(), "alignments": manifests}
    commit(ALIGNMENTS, ALIGNMENTS.listing(files, facts), output, kept=[part.folder for part in planned])
    return report


def map_dataset(options: MapOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Aligns a dataset.

    Raises:
        DataError: too many records cannot be used, or the counts violate an invariant.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    check_paths(flags, options.kb, *options.inputs, options.output)
    folder = output_folder(options.output)
    release = PAGES_RELEASE.read(options.kb)
    tokeniser_name(release.site.lang)  # fails before reading inputs if the tokeniser is not installed
    check_dataset(options)
    progress.note("inputs: hashing")
    part = DatasetPart(options, alignment_facts(options, release, input_facts(options)))
    with ReleaseFolder(folder, kind=ALIGNMENT, job=part.search_facts, further=record_files(options)) as output:
        faults, steps = _align(pipeline, [part], output.staging, progress)
        if faults:
            raise faults[0]
    report = ALIGNMENT.read_document(folder, REPORT)
    return MadeRelease(options.output, ALIGNMENT.read(folder), time.monotonic() - started, steps, report)


def map_all(
    planned: Sequence[PlannedAlignment], *, kb: str, output: str, flags: Sequence[str], progress: Progress
) -> MadeRelease[ListingManifest]:
    """Aligns datasets. No output folder may contain another.

    Raises:
        DataError: the data of at least one dataset are wrong; the other datasets are finished.
        SetupError: a file, an option or a folder is wrong. This is raised before anything runs if possible, otherwise
            after the other datasets are finished.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    check_paths(flags, kb, *(path for plan in planned for path in plan.options.inputs), output)
    folder = absolute(output)
    release = PAGES_RELEASE.read(kb)
    tokeniser_name(release.site.lang)  # as above
    known: dict[str, list[dict[str, Any]]] = {}
    done = check_all(planned, release, folder, check=check_dataset, known=known, progress=progress)
    pending = [plan for plan in planned if plan.folder not in done]
    steps: dict[str, float] = {}
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
        job = {run.folder: part.search_facts for run, part in zip(pending, parts, strict=True)}
        with ReleaseFolder(folder, kind=ALIGNMENTS, job=job, further=owned, kept=done) as locked:
            faults, steps = _align(pipeline, parts, locked.staging, progress)
            if faults:
                raise failure([(pending[part], fault) for part, fault in sorted(faults.items())], len(planned))
    report = write_reports(planned, release, folder)
    made = ALIGNMENTS.read(folder)
    return MadeRelease(output, made, time.monotonic() - started, steps, report, tuple(done))


def check_dataset(options: MapOptions) -> None:
    """Checks for errors that can be detected before anything runs.

    Raises:
        SetupError: a file or the model is missing or invalid.
    """
    check_files(options)
    if options.verify is not None:
        labels = model_facts(options.verify.model)["labels"]
        if options.accept is not None:
            check_signals(options.accept, labels, model=options.verify.model.model)
    if options.title_map is not None:
        read_moves(options.title_map)


def _align(
    pipeline: Any, parts: Sequence[DatasetPart], staging: str, progress: Progress
) -> tuple[dict[int, SetupError], dict[str, float]]:
    """Runs the pipeline that aligns datasets. Returns the faults of unfinished datasets, and the seconds that each step
    worked."""
    Folder.of(join(staging, _FAULTS)).delete()
    decided, facts = join(staging, _DECIDED), orjson.loads(orjson.dumps([part.facts for part in parts]))
    if not Folder.of(decided).exists() or Folder.of(decided).read_json() != facts:
        # Search results are cached: another threshold needs no new search.
        Folder.of(join(staging, MERGED)).delete()
        Folder.of(decided).write_json(facts)
    align_datasets(pipeline, parts, staging)
    with progress.stage("map", _poll(staging)):
        steps = run_pipeline(pipeline, "map")
    paths = glob(join(staging, _FAULTS, "*.json"))
    return {int(value["part"]): told_fault(value) for value in (Folder.of(path).read_json() for path in paths)}, steps


def align_datasets(pipeline: Any, parts: Sequence[DatasetPart], staging: str) -> None:
    """Constructs the pipeline that aligns datasets to a release and writes each into its folder."""
    options = dict(enumerate(part.options for part in parts))
    kb = absolute(parts[0].options.kb)
    title_maps = {part: option.title_map for part, option in options.items()}
    read = pipeline | ReadEvidence([*options.values()], staging, release=kb, title_map=title_maps)
    outcomes = []
    for timeout_s in sorted({own.evidence_timeout_s for own in options.values()}):
        settings = {part: option.search for part, option in options.items() if option.evidence_timeout_s == timeout_s}
        outcomes.append(
            read[EVIDENCE]
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
    chunks = (read[EXAMPLES], *outcomes) | JoinOutcomes(join(staging, "by_chunk"), datasets=options)
    written = (chunks, read[DATASETS], read[REJECTED]) | WriteAlignment(parts, staging)
    faults = (read[FAULTS], written[FAULTS]) | "all faults" >> beam.Flatten()
    _ = faults | "note" >> do(_note_fault, folder=join(staging, _FAULTS))


def _is_of(chunk: tuple[ChunkKey, BatchRef], parts: frozenset[int]) -> bool:
    return chunk[0][0] in parts


def _note_fault(element: tuple[int, Mapping[str, str]], *, folder: str) -> Iterable[Any]:
    """Writes the fault of a dataset to a file that the driver reads.

    (dataset, fault) -> nothing.
    """
    part, fault = element
    path = join(folder, f"{part:05d}.json")
    Folder.of(path).write_json({"part": part, **fault})
    return ()


def _poll(staging: str) -> Callable[[], Done]:
    """Returns a function that counts the pieces of evidence read and searched so far; only for local folders."""
    beats, n_read = beats_in(join(staging, _BEATS), ""), 0

    def poll() -> Done:
        nonlocal n_read
        if is_local(staging):
            read = [Folder.of(path).read_json() for path in glob(join(staging, "read", "*.json"))]
            n_read = max(n_read, sum(summary["tally"]["evidences"] for summary in read))
        return Done(beats().amount_done, n_read, unit="pieces of evidence")

    return poll
