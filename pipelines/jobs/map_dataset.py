"""The alignment of a dataset: its examples with the evidence found again in a release.

The driver reads the dataset, stages its records and looks the pages up in the index; only the pages that are needed are
then read, each once for all its evidences, by tasks over parts of the release; tasks over chunks of the dataset join
the outcomes with their records, filter and write. No text is shuffled, and memory holds a part or a chunk.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from kbsource.assembly import DataError
from kbsource.files import CHUNK_BYTES, HashingWriter, atomic_write, join
from kbsource.records import BadRecord
from kbsource.release.manifest import FileEntry, Manifest
from kbsource.schema import REJECTED
from kbsource.staging import read_batches, staged_rows, write_json
from mapping.entailment import ModelOptions
from mapping.entailment_model import model_facts
from mapping.locate import locate_nowhere
from mapping.output import REPORT, begin_output, check_output, commit_output
from mapping.report import Counts, faults, report_values
from mapping.resolve import Resolved, Resolver, open_manifest, read_moves
from mapping.sample import SAMPLED, cut
from mapping.sources import SOURCES
from mapping.sources.base import Inputs, Tally
from mapping.suggest import FEW
from mapping.tables import table_path, write_table
from mapping.verification import VerificationCounts
from mapping.writer import ID_FILES, file_name, id_file_name, without_input
from pipelines.buckets import bucket_groups
from pipelines.map_facts import alignment_facts, file_stem, hypothesis_kind, input_facts, policy_name
from pipelines.map_merge import ANSWERED, LINES, iter_standing, read_chunk_report
from pipelines.map_missing import MissingTitles, read_similar, similar_titles, stage_titles
from pipelines.map_reading import Spread, StagedExamples, flush_many
from pipelines.map_staging import (
    CUTS,
    MISSING,
    TASK_EVIDENCES,
    Buckets,
    MapJob,
    settled_row,
    staged,
    write_settled,
)
from pipelines.map_tasks import ALIGN, ASK, MERGE, RUN_TASK, SUGGEST
from pipelines.map_verify import judge_here
from pipelines.options_map import MapOptions
from pipelines.progress import Done, Progress, beats_of
from pipelines.stages import Stages
from pipelines.storage import absolute, is_local, storage_for
from pipelines.task_runs import Work, workers_line


@dataclass(frozen=True, slots=True)
class MapSummary:
    """What an alignment made.

    Attributes:
        output: folder of the alignment.
        report: as written to ``report.json``.
        manifest: as written, without its own hash.
        seconds: wall time.
    """

    output: str
    report: dict[str, Any]
    manifest: dict[str, Any]
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
    with Stages(flags) as stages:
        stages.check_paths(options.kb, options.output)
        report, manifest = _Mapping(options, stages, progress).run()
    return MapSummary(options.output, report, manifest, time.monotonic() - started)


@dataclass(slots=True)
class _Read:
    """What came of reading the dataset."""

    tally: Tally
    starts: list[int]
    n_chars: list[int]
    counts: list[int]
    n_bytes: list[int]


class _Mapping:
    """One alignment, step by step."""

    def __init__(self, options: MapOptions, stages: Stages, progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._output = absolute(options.output.rstrip("/") or "/")
        self._source = SOURCES[options.dataset]
        self._inputs = Inputs(options.inputs, options.references, options.labels)
        self._stages = stages
        self._storage = storage_for(self._output, *options.inputs, *options.references, *options.labels)

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        options, storage = self._options, self._storage
        check_output(self._output, storage)
        release = open_manifest(options.kb)
        moves = read_moves(options.title_map, storage_for(options.title_map)) if options.title_map else None
        self._source.check(self._inputs, options.split, storage=storage, options=options.source)
        if options.verify is not None:
            model_facts(options.verify.model)  # a model that is not there ends the job before hours of work
        self._progress.note("inputs: hashing")
        inputs = input_facts(options)
        resolver = Resolver.open(options.kb, moves=moves)
        staging = begin_output(self._output, storage)
        job = MapJob(
            output=self._output,
            kb=os.path.abspath(options.kb),
            pages=tuple(entry.file for entry in release.tables["pages"]),
            page_rows=tuple(entry.rows for entry in release.tables["pages"]),
            lang=release.site.lang,
            dataset=policy_name(options),
            split=options.split,
            has_labels=bool(options.labels),
            threshold=options.threshold,
            max_elements=options.max_elements,
            numbering=options.numbering,
            places_nothing=options.source.nq_null_long_answers == "released",
            strips_section=options.strips_section,
            has_crosswalk=options.dataset == "kilt",
            is_sampled=options.dataset in SAMPLED,
            hypothesis=hypothesis_kind(options),
            rescue_sentences=options.verify.rescue_sentences if options.verify is not None else 0,
            accept=options.accept,
        )
        job.write(staging, storage)
        read = self._read(staging, resolver, release)
        self._check_rejects(read.tally)
        aligns = self._align_tasks(staging, read.counts)
        self._run_tasks(staging, aligns, read.n_bytes, evidence_timeout_s=options.evidence_timeout_s)
        if options.verify is not None:
            self._verify(staging, read, options.verify.model)
        if job.is_sampled:
            write_json(storage, join(staging, CUTS), cut(iter_standing(staging, job), options.source.sample)._asdict())
        merges = [{"kind": MERGE, "staging": staging, "number": number} for number in range(len(read.starts))]
        self._run_tasks(staging, merges, read.n_chars, evidence_timeout_s=None)
        counts, verification, files = self._collect(staging, len(read.starts))
        if broken := faults(read.tally, counts):
            raise DataError("The counts do not add up, so nothing was released: " + "; ".join(broken) + ".")
        report = report_values(read.tally, counts, dataset=job.dataset, split=options.split)
        if options.accept is not None:
            report["accept"] = {"rule": options.accept, "dropped": counts.dropped["not_accepted"]}
            report["dropped_by_threshold"] = None
        if options.verify is not None:
            report["verification"] = verification.to_json()
        for with_answers in (False, True) if job.has_labels else (False,):
            files.append(self._join_lines(staging, len(read.starts), counts.written, with_answers=with_answers))
            if options.dataset in ID_FILES:
                files.append(self._write_ids(counts.written, with_answers=with_answers))
        files += [self._write_rejected(staging), self._write_report(report)]
        manifest = self._manifest(release, inputs, report, files)
        commit_output(self._output, manifest, files=files, storage=storage)
        return report, manifest

    def _read(self, staging: str, resolver: Resolver, release: Manifest) -> _Read:
        """Stages the dataset: records by chunk, evidences by where their pages lie."""
        options, storage, tally = self._options, self._storage, Tally()
        with ExitStack() as stack:
            buckets = stack.enter_context(Buckets(staging, storage))
            titles = stack.enter_context(MissingTitles(options.source.scratch))
            spread = Spread(resolver, buckets, titles, release)
            self._progress.note(f"read: {len(options.inputs)} files of {options.dataset}")
            with ExitStack() as reading:
                missing = reading.enter_context(staged_rows(storage, join(staging, "missing.arrow"), MISSING))
                rejected = reading.enter_context(staged_rows(storage, join(staging, "rejected.arrow"), REJECTED))
                examples = reading.enter_context(StagedExamples(staging, storage, options.chunk_records))
                for one in self._source.read(
                    self._inputs, options.split, storage=storage, options=options.source, tally=tally
                ):
                    if isinstance(one, BadRecord):
                        rejected.add((one.stage, one.key, one.reason, one.detail, one.file, one.offset))
                        flush_many(rejected)
                    else:
                        spread.add(examples.add(one), one, missing)
                        flush_many(missing)
            self._suggest(staging, titles, resolver)
            write_settled(self._settle(staging, spread, examples.starts), storage, join(staging, "settled.arrow"))
        write_json(storage, join(staging, "plan.json"), {"starts": examples.starts})
        self._progress.note(f"read: {tally.records:,} records, {tally.evidences:,} pieces of evidence")
        return _Read(tally, examples.starts, examples.n_chars, buckets.counts, buckets.n_bytes)

    def _suggest(self, staging: str, titles: MissingTitles, resolver: Resolver) -> None:
        """Looks for titles like the missing ones: a few here and now, more by tasks, for it takes memory."""
        if len(titles) <= FEW:
            for batch in titles.batches():
                titles.put(similar_titles(batch, resolver.index))
            return
        self._progress.note(f"suggest: titles like {len(titles):,} that are missing")
        counts = stage_titles(titles, staging, self._storage)
        tasks = [{"kind": SUGGEST, "staging": staging, "number": number} for number in range(len(counts))]
        self._run_tasks(staging, tasks, counts, evidence_timeout_s=None)
        for number in range(len(counts)):
            titles.put(read_similar(staging, number, self._storage))

    def _settle(self, staging: str, spread: Spread, starts: Sequence[int]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Gives the rows of evidences that no page is found for; those with an accepted likeness go to the pages."""
        chunk = 0
        accept = self._options.accept_fuzzy
        for batch in read_batches(self._storage, join(staging, "missing.arrow")):
            for ordinal, output, place, asked, text in zip(*(one.to_pylist() for one in batch.columns), strict=True):
                key = (ordinal, output, place)
                similar = spread.titles.similar(asked) if asked else ()
                if accept is not None and similar and similar[0][1] >= accept:
                    found = spread.resolver.resolve_similar(similar[0][0])
                    if found.page_id is not None:
                        spread.put(key, found, text)
                        continue
                while chunk + 1 < len(starts) and starts[chunk + 1] <= ordinal:
                    chunk += 1
                alignment = locate_nowhere(Resolved(None, None, None, 0, asked), text)
                yield chunk, settled_row(key, replace(alignment, suggestions=similar), None)

    def _check_rejects(self, tally: Tally) -> None:
        n_rejected, ceiling = tally.rejected.total(), self._options.max_rejects
        if tally.records and n_rejected / tally.records > ceiling:
            reasons = ", ".join(f"{count} {reason}" for reason, count in tally.rejected.most_common())
            raise DataError(
                f"{n_rejected} of {tally.records} records rejected, {n_rejected / tally.records:.3%}; the ceiling is "
                f"{ceiling:.3%} (by reason: {reasons}). If the files are as they should be, raise --max-rejects."
            )

    def _align_tasks(self, staging: str, counts: list[int]) -> list[dict[str, Any]]:
        return [
            {"kind": ALIGN, "staging": staging, "number": number, "buckets": buckets}
            for number, buckets in enumerate(bucket_groups(counts, least=TASK_EVIDENCES))
        ]

    def _run_tasks(
        self,
        staging: str,
        tasks: Sequence[Mapping[str, Any]],
        n_bytes: Sequence[int],
        *,
        evidence_timeout_s: float | None,
    ) -> None:
        """Runs one pipeline of tasks of one kind to its end.

        Raises:
            DataError: a task could not be done.
        """
        if not tasks:
            return
        kind = tasks[0]["kind"]
        work = Work(RUN_TASK, staging, evidence_timeout_s, self._options.worker_memory_bytes)
        poll = beats_of(staging, kind, total_bytes=sum(n_bytes)) if is_local(staging) else lambda: Done(0, 0)
        with self._progress.stage(kind, poll):
            workers = self._stages.run(tasks, work)
        if len(workers) > 1:
            self._progress.note(workers_line(kind, workers))

    def _verify(self, staging: str, read: _Read, model: ModelOptions) -> None:
        """Asks a model about every span that was found.

        On this machine alone one process judges: the libraries of models use all of its cores by themselves.
        """
        n_chunks = len(read.starts)
        asks = [{"kind": ASK, "staging": staging, "number": number} for number in range(n_chunks)]
        self._run_tasks(staging, asks, read.n_chars, evidence_timeout_s=None)
        self._progress.note(f"verify: {n_chunks:,} chunks put before {model.model}")
        if self._stages.is_here:
            judge_here(staging, n_chunks, model)
        else:
            from pipelines.transforms.judge_chunks import judge_chunks

            judge_chunks(staging, n_chunks, model, self._stages.beam_options)

    def _collect(self, staging: str, n_chunks: int) -> tuple[Counts, VerificationCounts, list[FileEntry]]:
        counts, verification, files = Counts(), VerificationCounts(), []
        for number in range(n_chunks):
            chunk_counts, chunk_verification, chunk_files = read_chunk_report(staging, number, self._storage)
            counts.add(chunk_counts)
            verification.merge(chunk_verification)
            files += chunk_files
        return counts, verification, files

    def _join_lines(self, staging: str, n_chunks: int, n_lines: int, *, with_answers: bool) -> FileEntry:
        name = file_name(file_stem(self._options), self._options.split, with_answers=with_answers)
        part_ending = ANSWERED if with_answers else LINES
        with atomic_write(self._storage, join(self._output, name)) as raw:
            sink = HashingWriter(raw)
            for number in range(n_chunks):
                with self._storage.open_read(staged(staging, "merged", number, part_ending)) as part:
                    while block := part.read(CHUNK_BYTES):
                        sink.write(block)
        return FileEntry(name, n_lines, sink.n_bytes, sink.hexdigest())

    def _write_ids(self, n_lines: int, *, with_answers: bool) -> FileEntry:
        """Writes the records again without their inputs."""
        stem, split = file_stem(self._options), self._options.split
        name = id_file_name(stem, split, with_answers=with_answers)
        full = file_name(stem, split, with_answers=with_answers)
        with (
            self._storage.open_read(join(self._output, full)) as lines,
            atomic_write(self._storage, join(self._output, name)) as raw,
        ):
            sink = HashingWriter(raw)
            for line in lines:
                sink.write(without_input(line))
        return FileEntry(name, n_lines, sink.n_bytes, sink.hexdigest())

    def _write_rejected(self, staging: str) -> FileEntry:
        rows = (
            row
            for batch in read_batches(self._storage, join(staging, "rejected.arrow"))
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        file = table_path("rejected", 0, 1)
        return write_table(rows, "rejected", output=self._output, file=file, storage=self._storage)

    def _write_report(self, report: dict[str, Any]) -> FileEntry:
        content = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
        with atomic_write(self._storage, join(self._output, REPORT)) as raw:
            sink = HashingWriter(raw)
            sink.write(content)
        return FileEntry(REPORT, 1, sink.n_bytes, sink.hexdigest())

    def _manifest(
        self,
        release: Manifest,
        inputs: dict[str, list[dict[str, Any]]],
        report: dict[str, Any],
        files: Sequence[FileEntry],
    ) -> dict[str, Any]:
        return {
            **alignment_facts(self._options, release, inputs),
            "files": [asdict(entry) for entry in sorted(files, key=lambda entry: entry.file)],
            "counts": report["counts"],
            "records": report["records"],
        }
