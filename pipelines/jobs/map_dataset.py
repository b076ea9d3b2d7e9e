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
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from kbsource.assembly import DataError
from kbsource.files import CHUNK_BYTES, HashingWriter, atomic_write, base_name, join
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, Manifest, code_facts
from kbsource.schema import REJECTED
from kbsource.staging import read_batches, staged_rows, write_json
from mapping.locate import locate_nowhere
from mapping.output import REPORT, begin_output, check_output, commit_output, input_files
from mapping.policy import dataset_named
from mapping.report import Counts, faults, report_values
from mapping.resolve import Resolved, Resolver, open_manifest, read_moves
from mapping.sources import SOURCES
from mapping.sources.base import Inputs, Tally
from mapping.suggest import suggest_titles
from mapping.tables import table_path, write_table
from mapping.tokens import Tokeniser
from mapping.writer import file_name
from pipelines.map_merge import read_chunk_report
from pipelines.map_reading import Spread, StagedExamples, flush_many
from pipelines.map_staging import (
    MISSING,
    Buckets,
    MapJob,
    bucket_groups,
    settled_row,
    staged,
    write_settled,
)
from pipelines.map_tasks import ALIGN, MERGE
from pipelines.options_map import MapOptions
from pipelines.progress import Done, Progress, beats_of
from pipelines.runners import pipeline_options, quiet_beam
from pipelines.storage import is_local, storage_for


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
    report, manifest = _Mapping(options, flags, progress).run()
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

    def __init__(self, options: MapOptions, flags: Sequence[str], progress: Progress) -> None:
        self._options = options
        self._progress = progress
        self._output = options.output.rstrip("/") or "/"
        self._storage = storage_for(self._output, *options.inputs, *options.references)
        self._source = SOURCES[options.dataset]
        self._inputs = Inputs(options.inputs, options.references)
        quiet_beam()
        self._beam_options = pipeline_options(flags)

    def run(self) -> tuple[dict[str, Any], dict[str, Any]]:
        options, storage = self._options, self._storage
        check_output(self._output, storage)
        release = open_manifest(options.kb)
        moves = read_moves(options.title_map, storage_for(options.title_map)) if options.title_map else None
        self._source.check(self._inputs, options.split, storage=storage, options=options.source)
        self._progress.note("inputs: hashing")
        inputs = self._input_entries()
        resolver = Resolver.open(options.kb, moves=moves)
        staging = begin_output(self._output, storage)
        job = MapJob(
            output=self._output,
            kb=os.path.abspath(options.kb),
            pages=tuple(entry.file for entry in release.tables["pages"]),
            lang=release.site.lang,
            dataset=self._dataset(),
            split=options.split,
            threshold=options.threshold,
            max_elements=options.max_elements,
            numbering=options.numbering,
            strips_section=options.strips_section,
            has_crosswalk=options.dataset == "kilt",
        )
        job.write(staging, storage)
        read = self._read(staging, resolver, release)
        self._check_rejects(read.tally)
        self._run_tasks(staging, ALIGN, self._align_tasks(staging, read.counts), read.n_bytes)
        merges = [{"kind": MERGE, "staging": staging, "number": number} for number in range(len(read.starts))]
        self._run_tasks(staging, MERGE, merges, read.n_chars)
        counts, files = self._collect(staging, len(read.starts))
        if broken := faults(read.tally, counts):
            raise DataError("The counts do not add up, so nothing was released: " + "; ".join(broken) + ".")
        report = report_values(read.tally, counts, dataset=job.dataset, split=options.split)
        files += [self._join_lines(staging, len(read.starts), counts.written), self._write_rejected(staging)]
        files.append(self._write_report(report))
        manifest = self._manifest(release, inputs, report, files)
        commit_output(self._output, manifest, files=files, storage=storage)
        return report, manifest

    def _dataset(self) -> str:
        """Gives the name that the policy goes by: for KILT files that of the dataset they hold."""
        if self._options.dataset == "kilt":
            return dataset_named(base_name(self._options.inputs[0]))
        return self._source.stem

    def _stem(self) -> str:
        options = self._options
        if options.stem is not None:
            return options.stem
        if options.dataset != "kilt":
            return self._source.stem
        name = base_name(options.inputs[0])
        known = name.partition(f"-{options.split}")[0]
        return known if known != name else self._dataset()

    def _input_entries(self) -> dict[str, list[dict[str, Any]]]:
        options = self._options
        given = {"records": options.inputs, "references": options.references}
        if options.title_map is not None:
            given["title_map"] = (options.title_map,)
        return {
            name: [asdict(entry) for entry in input_files(paths, storage_for(*paths) if paths else self._storage)]
            for name, paths in given.items()
        }

    def _read(self, staging: str, resolver: Resolver, release: Manifest) -> _Read:
        """Stages the dataset: records by chunk, evidences by where their pages lie."""
        options, storage, tally = self._options, self._storage, Tally()
        with ExitStack() as stack:
            buckets = stack.enter_context(Buckets(staging, storage))
            spread = Spread(resolver, buckets, release)
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
            suggestions = self._suggestions(spread.asked, resolver)
            write_json(storage, join(staging, "suggestions.json"), suggestions)
            write_settled(
                self._settle(staging, suggestions, spread, examples.starts), storage, join(staging, "settled.arrow")
            )
        write_json(storage, join(staging, "plan.json"), {"starts": examples.starts})
        self._progress.note(f"read: {tally.records:,} records, {tally.evidences:,} pieces of evidence")
        return _Read(tally, examples.starts, examples.n_chars, buckets.counts, buckets.n_bytes)

    def _suggestions(self, asked: set[str], resolver: Resolver) -> dict[str, tuple[tuple[str, float], ...]]:
        if asked:
            self._progress.note(f"suggest: titles like {len(asked):,} that are missing")
        return suggest_titles(asked, resolver.index)

    def _settle(
        self,
        staging: str,
        suggestions: Mapping[str, tuple[tuple[str, float], ...]],
        spread: Spread,
        starts: Sequence[int],
    ) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Gives the rows of evidences that no page is found for; those with an accepted likeness go to the pages."""
        chunk = 0
        accept = self._options.accept_fuzzy
        for batch in read_batches(self._storage, join(staging, "missing.arrow")):
            for ordinal, output, place, asked, text in zip(*(one.to_pylist() for one in batch.columns), strict=True):
                key = (ordinal, output, place)
                similar = suggestions.get(asked or "", ())
                if accept is not None and similar and similar[0][1] >= accept:
                    found = spread.resolver.resolve_similar(similar[0][0])
                    if found.page_id is not None:
                        spread.put(key, found, text)
                        continue
                while chunk + 1 < len(starts) and starts[chunk + 1] <= ordinal:
                    chunk += 1
                alignment = locate_nowhere(Resolved(None, None, None, 0, asked), text)
                yield chunk, settled_row(key, alignment, None, asked)

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
            for number, buckets in enumerate(bucket_groups(counts))
        ]

    def _run_tasks(self, staging: str, kind: str, tasks: Sequence[Mapping[str, Any]], n_bytes: Sequence[int]) -> None:
        """Runs one pipeline of tasks of one kind to its end.

        Raises:
            DataError: a task could not be done.
        """
        import apache_beam as beam

        from pipelines.transforms.run_tasks import RunTasks, Work, failures

        if not tasks:
            return
        work = Work("pipelines.map_tasks:run_task", staging, None, self._options.worker_memory_bytes)
        poll = beats_of(staging, kind, total_bytes=sum(n_bytes)) if is_local(staging) else lambda: Done(0, 0)
        with self._progress.stage(kind, poll):
            pipeline = beam.Pipeline(options=self._beam_options)
            _ = pipeline | kind >> RunTasks(tasks, work)
            try:
                pipeline.run().wait_until_finish()
            except RuntimeError as error:
                # Beam wraps whatever ends a worker, Ctrl-C in a worker of this process too.
                if str(error).startswith("KeyboardInterrupt"):
                    raise KeyboardInterrupt from error
                raise
        if failed := failures(staging):
            raise DataError(failed[0])

    def _collect(self, staging: str, n_chunks: int) -> tuple[Counts, list[FileEntry]]:
        counts, files = Counts(), []
        for number in range(n_chunks):
            chunk_counts, chunk_files = read_chunk_report(staging, number, self._storage)
            counts.add(chunk_counts)
            files += chunk_files
        return counts, files

    def _join_lines(self, staging: str, n_chunks: int, n_lines: int) -> FileEntry:
        name = file_name(self._stem(), self._options.split)
        with atomic_write(self._storage, join(self._output, name)) as raw:
            sink = HashingWriter(raw)
            for number in range(n_chunks):
                with self._storage.open_read(staged(staging, "merged", number, "kilt")) as part:
                    while block := part.read(CHUNK_BYTES):
                        sink.write(block)
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
        manifest_sha256 = orjson.loads(release.to_bytes())["manifest_sha256"]
        return {
            "dataset": self._options.dataset,
            "policy": self._dataset(),
            "split": self._options.split,
            "release": {
                "manifest": MANIFEST,
                "manifest_sha256": manifest_sha256,
                "wiki": release.site.dbname,
                "dump_date": release.dump.date,
            },
            "inputs": inputs,
            "options": self._options.data_options(),
            "code": {**asdict(code_facts()), "tokeniser": Tokeniser(release.site.lang).name},
            "files": [asdict(entry) for entry in sorted(files, key=lambda entry: entry.file)],
            "counts": report["counts"],
            "records": report["records"],
        }
