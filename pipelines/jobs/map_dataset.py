"""The alignment of a dataset: its examples with the evidence found again in a release.

The driver reads the dataset, stages its records and looks the pages up in the index; only the pages that are needed are
then read, each once for all its evidences, by tasks over parts of the release; tasks over chunks of the dataset join
the outcomes with their records, filter and write. No text is shuffled, and memory holds a part or a chunk.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

import orjson

from kbsource.assembly import DataError
from kbsource.files import CHUNK_BYTES, HashingWriter, Storage, atomic_write, base_name, join
from kbsource.records import BadRecord
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, Manifest, code_facts
from kbsource.schema import REJECTED
from kbsource.staging import StagedRows, read_batches, staged_rows, write_json
from mapping.locate import locate_nowhere
from mapping.output import REPORT, begin_output, check_output, commit_output, input_files
from mapping.policy import dataset_named
from mapping.records import Example, PageKey
from mapping.report import Counts, faults, report_values
from mapping.resolve import Resolved, Resolver, open_manifest, read_moves
from mapping.sources import SOURCES
from mapping.sources.base import Inputs, ReleasedExample, Tally, iter_evidence, released_span
from mapping.sources.kilt import fallback_page
from mapping.staged import example_to_json
from mapping.suggest import suggest_titles
from mapping.tables import table_path, write_table
from mapping.tokens import Tokeniser
from mapping.writer import file_name
from pipelines.map_merge import read_chunk_report
from pipelines.map_staging import (
    EXAMPLES,
    MISSING,
    N_BUCKETS,
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

CHUNK_CHARS = 16 << 20
"""Characters of staged records after which a chunk ends, however few they are."""
_BATCH_CHARS = 1 << 20


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
            kb=options.kb,
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
        self._run_tasks(staging, MERGE, merges, [0])
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
            spread = _Spread(resolver, buckets, release)
            with self._progress.stage("read", lambda: Done(0, 0, tally.records)), ExitStack() as reading:
                missing = reading.enter_context(staged_rows(storage, join(staging, "missing.arrow"), MISSING))
                rejected = reading.enter_context(staged_rows(storage, join(staging, "rejected.arrow"), REJECTED))
                examples = reading.enter_context(_StagedExamples(staging, storage, options.chunk_records))
                for one in self._source.read(
                    self._inputs, options.split, storage=storage, options=options.source, tally=tally
                ):
                    if isinstance(one, BadRecord):
                        rejected.add((one.stage, one.key, one.reason, one.detail, one.file, one.offset))
                        _flush(rejected)
                    else:
                        spread.add(examples.add(one), one, missing)
                        _flush(missing)
            suggestions = self._suggestions(spread.asked, resolver)
            write_json(storage, join(staging, "suggestions.json"), suggestions)
            write_settled(
                self._settle(staging, suggestions, spread, examples.starts), storage, join(staging, "settled.arrow")
            )
        write_json(storage, join(staging, "plan.json"), {"starts": examples.starts})
        return _Read(tally, examples.starts, buckets.counts, buckets.n_bytes)

    def _suggestions(self, asked: set[str], resolver: Resolver) -> dict[str, tuple[tuple[str, float], ...]]:
        if asked:
            self._progress.note(f"suggest: titles like {len(asked):,} that are missing")
        return suggest_titles(asked, resolver.index)

    def _settle(
        self,
        staging: str,
        suggestions: Mapping[str, tuple[tuple[str, float], ...]],
        spread: _Spread,
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


class _StagedExamples:
    """Records on their way into chunks. A context: the last chunk is complete when it ends.

    Attributes:
        starts: number of the first record of each chunk; one chunk without records when there are none.
    """

    def __init__(self, staging: str, storage: Storage, chunk_records: int) -> None:
        self._staging, self._storage, self._chunk_records = staging, storage, chunk_records
        self._stack = ExitStack()
        self._rows: StagedRows | None = None
        self._n_records = self._n_chars = self._n_pending = 0
        self.starts: list[int] = []

    def __enter__(self) -> _StagedExamples:
        self._begin()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._stack.__exit__(*failure)

    def add(self, example: Example) -> int:
        """Takes a record and gives its number."""
        if self._n_records - self.starts[-1] == self._chunk_records or self._n_chars >= CHUNK_CHARS:
            self._stack.close()
            self._begin()
        assert self._rows is not None
        text = example_to_json(example)
        self._rows.add((self._n_records, text))
        self._n_chars += len(text)
        self._n_pending += len(text)
        if self._n_pending >= _BATCH_CHARS:
            self._rows.flush()
            self._n_pending = 0
        self._n_records += 1
        return self._n_records - 1

    def _begin(self) -> None:
        path = staged(self._staging, "examples", len(self.starts))
        self._rows = self._stack.enter_context(staged_rows(self._storage, path, EXAMPLES))
        self.starts.append(self._n_records)
        self._n_chars = self._n_pending = 0


class _Spread:
    """Sends evidences to the buckets of their pages.

    Attributes:
        resolver: of the release.
        asked: titles that are missing.
    """

    def __init__(self, resolver: Resolver, buckets: Buckets, release: Manifest) -> None:
        self.resolver = resolver
        self.asked: set[str] = set()
        self._buckets = buckets
        self._starts = list(accumulate((entry.rows for entry in release.tables["pages"]), initial=0))

    def add(self, ordinal: int, example: Example, missing: StagedRows) -> None:
        """Looks up the pages of a record's evidences; those that are not found become rows of ``missing``."""
        for key, evidence in iter_evidence(example):
            found = self.resolver.resolve(evidence.page, fallback=_fallback(example, key))
            if found.page_id is not None:
                self.put((ordinal, *key), found, evidence.text)
                continue
            missing.add((ordinal, *key, found.asked, evidence.text))
            if found.asked:
                self.asked.add(found.asked)

    def put(self, key: tuple[int, int, int], found: Resolved, text: str | None) -> None:
        """Sends one evidence to its page."""
        assert found.page_id is not None
        shard, row = self.resolver.location(found.page_id)
        n_pages = self._starts[-1]
        bucket = (self._starts[shard] + row) * N_BUCKETS // n_pages
        self._buckets.add(bucket, (*key, shard, row, *found[:4], text))


def _fallback(example: Example, key: tuple[int, int]) -> PageKey | None:
    return fallback_page(released_span(example, key)) if isinstance(example, ReleasedExample) else None


def _flush(rows: StagedRows) -> None:
    if rows.n_pending >= 1_000:
        rows.flush()
