"""Writes the alignment of a dataset: KILT lines, tables and counts, as its options require."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
from msgspec import structs

from kbsource.columns import batch_of, rows_of
from kbsource.errors import DataError
from kbsource.files import CHUNK_BYTES, Folder, absolute, base_name, join
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import FileEntry, code_facts, input_files
from kbsource.release.output import commit
from kbsource.release.pages.kind import PagesManifest
from kbsource.release.reader import row_groups
from kbsource.release.sql import with_counts
from kbsource.release.writer import GROUP_ROWS, write_batches, write_lines, write_rows
from kbsource.rows import Row
from kbsource.runtime.chunks import BatchRef, ChunkKey, once_value, read_batches, read_rows
from mapping.decide import Cuts
from mapping.entail.model import model_facts
from mapping.entail.verification import verification_values
from mapping.records import (
    MISSED,
    Alignment,
    OutputOutcome,
    Place,
    RecordFate,
    ReleasedExample,
    iter_evidence,
    released_span,
)
from mapping.schema import TABLES, Crossing, KiltSide
from mapping.search.tokens import tokeniser_name
from mapping.sources.raw_records import is_integer
from mapping.sources.source import Tally
from mapping.write.kilt import ID_FILES, file_name, kilt_line, without_answers, without_input
from mapping.write.kind import ALIGNMENT, write_report
from mapping.write.report import evidence_faults, report_values
from pipelines.alignment.reading import ReadRecord
from pipelines.alignment.settling import AlignedChunk, AlignedRecord, filter_records
from pipelines.options.map_dataset import MapOptions

InputFacts = dict[str, list[dict[str, Any]]]
_DECIDING = frozenset(("threshold", "accept", "strips_section"))
"""Options that only affect which of the found spans are written, and how."""


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """One dataset of a job."""

    options: MapOptions  # options of its alignment
    facts: dict[str, Any]  # facts for the manifest, see ``alignment_facts``

    @property
    def search_facts(self) -> dict[str, Any]:
        """Returns the facts that determine the search; the other facts affect only how its scores are used."""
        options = {name: value for name, value in self.facts["options"].items() if name not in _DECIDING}
        return {**self.facts, "options": options}

    @property
    def output(self) -> str:
        """Returns the folder of the alignment."""
        return absolute(self.options.output.rstrip("/") or "/")

    @property
    def is_sampled(self) -> bool:
        """Returns whether the dataset has no predefined splits, see ``mapping.decide``."""
        return self.options.choices.sample_records is not None


def file_stem(options: MapOptions) -> str:
    """Returns the start of the KILT file's name."""
    if options.stem is not None:
        return options.stem
    if options.dataset != "kilt":
        return options.dataset
    name = base_name(options.inputs[0])
    known = name.partition(f"-{options.split}")[0]
    return known if known != name else options.policy_name


def input_facts(options: MapOptions, known: dict[str, list[dict[str, Any]]] | None = None) -> InputFacts:
    """Returns the size and hash of every input file, by its role. Reads all files.

    ``known`` caches the facts by path, because datasets share references.
    """
    given = {"records": options.inputs, "references": options.references}
    if options.labels:
        given["labels"] = options.labels
    if options.title_map is not None:
        given["title_map"] = (options.title_map,)
    known = {} if known is None else known
    for path in (path for paths in given.values() for path in paths if path not in known):
        known[path] = [asdict(entry) for entry in input_files((path,))]
    return {name: [entry for path in paths for entry in known[path]] for name, paths in given.items()}


def alignment_facts(
    options: MapOptions, release: PagesManifest, inputs: Mapping[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    """Returns the part of the manifest that is known before reading. The same facts produce the same bytes."""
    return {
        "dataset": options.dataset,
        "policy": options.policy_name,
        "split": options.split,
        "release": release.facts(),
        "inputs": inputs,
        "options": options.data_options(),
        "code": {**code_facts(), "tokeniser": tokeniser_name(release.site.lang)},
        **({} if options.verify is None else {"model": model_facts(options.verify.model)}),
    }


MERGED = "merged"
"""Subfolder of the staging folder for files that depend on the decisions about records."""
LINES, ANSWERED = "kilt", "answers"
"""Suffixes of a chunk's lines, and of a test file's lines with answers."""

_INT32 = 1 << 31


def alignment_chunk_path(staging: str, key: ChunkKey, ending: str) -> str:
    """Returns the path of a chunk's lines or report."""
    return join(staging, MERGED, f"{key.part:05d}-{key.chunk:05d}.{ending}")


@dataclass(frozen=True, slots=True)
class MergedChunk:
    """The written output of a chunk."""

    chunk: int  # number of the chunk
    outcomes: dict[str, int]  # pieces of evidence by outcome
    files: tuple[FileEntry, ...]  # files with the chunk's rows of each table


def merge_chunk(
    chunk: AlignedChunk, part: DatasetPart, key: ChunkKey, *, n_chunks: int, cuts: Cuts | None, staging: str
) -> MergedChunk:
    """Writes the KILT lines of a chunk to the staging folder, and its part of every table.

    Test records are written without their answers, and with labels also with them. A chunk that was written before is
    not written again.

    Raises:
        DataError: a piece of evidence has no outcome, so the job is broken.
    """
    make = partial(_merge_chunk, chunk, part, key, n_chunks=n_chunks, cuts=cuts, staging=staging)
    return once_value(alignment_chunk_path(staging, key, "json"), make, MergedChunk)


def _merge_chunk(
    chunk: AlignedChunk, part: DatasetPart, key: ChunkKey, *, n_chunks: int, cuts: Cuts | None, staging: str
) -> MergedChunk:
    options, split = part.options, part.options.split
    policy = options.policies[split]
    merged = _Merged(part)
    with ExitStack() as stack:
        lines = stack.enter_context(Folder.of(alignment_chunk_path(staging, key, LINES)).create())
        answered = None
        if options.labels:
            answered = stack.enter_context(Folder.of(alignment_chunk_path(staging, key, ANSWERED)).create())
        for aligned in filter_records(chunk, options, cuts):
            merged.add(aligned)
            if aligned.record is not None:
                record = without_answers(aligned.record, policy) if split == "test" else aligned.record
                lines.write(kilt_line(record))
                if answered is not None:
                    answered.write(kilt_line(aligned.record))
    entries = merged.write_tables(chunk.examples, key.chunk, n_chunks)
    return MergedChunk(key.chunk, merged.outcomes, tuple(entries))


class _Merged:
    """A chunk's output besides its lines: rows of tables, and counts."""

    def __init__(self, part: DatasetPart) -> None:
        self._output = part.output
        self._is_verified = part.options.verify is not None
        self._has_crosswalk = part.options.dataset == "kilt"
        self._records: dict[int, RecordFate] = {}
        self._alignments: list[Alignment] = []
        self._misses: list[Alignment] = []
        self._crosswalk: list[Crossing] = []

    def add(self, record: AlignedRecord) -> None:
        """Adds a record and all its evidence."""
        example, decision, found = record.example, record.decision, record.found
        for key, _ in iter_evidence(example):
            aligned = found[key]
            if aligned.outcome in MISSED:
                self._misses.append(aligned)
            else:
                self._alignments.append(aligned)
            if isinstance(example, ReleasedExample):
                self._crosswalk.append(_crossing(released_span(example, key), aligned))
        sets = [
            [found[index, place] for place in range(len(output.evidence))]
            for index, output in enumerate(example.outputs)
            if output.evidence
        ]
        is_kept, written = decision.reason is None, record.written.outputs
        # A complete evidence set has the lowest score of its spans; take the best set.
        spans = ([piece.span for piece in evidence_set] for evidence_set in sets)
        best_score = max(
            (min(span.score for span in spans_of_set if span) for spans_of_set in spans if all(spans_of_set)),
            default=None,
        )
        self._records[record.ordinal] = RecordFate(
            ordinal=record.ordinal,
            example_id=example.example_id,
            file=example.file,
            line=example.line,
            outcome="written" if is_kept else "dropped",
            reason=decision.reason,
            score=best_score,
            n_outputs=len(example.outputs),
            n_outputs_written=sum(is_kept and fate.form != "dropped" for fate in decision.outputs),
            n_evidences=len(found),
            n_evidences_written=sum(aligned.is_written for aligned in found.values()),
            n_spans=sum(len(output.kept) for output in written) + len(record.written.partial) if is_kept else None,
            n_answers=None if record.record is None else len(_answers(record.record)),
            outputs=tuple(OutputOutcome(output.form, output.reason, len(output.kept)) for output in written)
            if is_kept
            else None,
            input=None if is_kept else example.input,
        )

    @property
    def outcomes(self) -> dict[str, int]:
        """Returns the number of pieces of evidence by outcome."""
        return dict(Counter(alignment.outcome for alignment in chain(self._alignments, self._misses)))

    def write_tables(self, examples: BatchRef, number: int, n_chunks: int) -> list[FileEntry]:
        """Writes the chunk's part of every table; ``examples`` contains its records as read."""
        read = read_rows(examples, ReadRecord)
        records = [record.left if record.ordinal is None else self._records[record.ordinal] for record in read]
        tables: dict[str, tuple[type[Row], Sequence[Any]]] = {
            "records": (RecordFate, records),
            "alignments": (Alignment, self._alignments),
            "misses": (Alignment, self._misses),
        }
        if self._has_crosswalk:
            tables["crosswalk"] = Crossing, self._crosswalk
        entries = []
        for table, (row, rows) in tables.items():
            schema = ALIGNMENT.schemas(table)[-1 if self._is_verified else 0]
            file = shard_path(table, number, n_chunks)
            batches = _groups(rows, row, schema)
            entries.append(write_batches(batches, table, schema, output=self._output, file=file))
        return entries


def _answers(record: Mapping[str, Any]) -> set[str]:
    """Returns the distinct answers of a record in KILT's form."""
    return {output["answer"] for output in record.get("output", ()) if "answer" in output}


def _groups(rows: Sequence[Any], row: type[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Groups rows into a table with some of their columns."""
    for start in range(0, len(rows), GROUP_ROWS):
        yield batch_of(rows[start : start + GROUP_ROWS], row).select(schema.names)


def _crossing(old: dict[str, Any], new: Alignment) -> Crossing:
    page_id, title, section = (old.get(name) for name in ("wikipedia_id", "title", "section"))
    place: dict[str, Any] = {
        name: value if is_integer(value := old.get(name)) and abs(value) < _INT32 else None
        for name in Place.__struct_fields__
    }
    return Crossing(
        new.example_id,
        *new.key,
        new.outcome,
        new.score,
        old=KiltSide(
            None if page_id is None else str(page_id),
            title if isinstance(title, str) else None,
            section.rstrip("\n") if isinstance(section, str) else None,
            text=new.evidence_text,
            **place,
        ),
        new=KiltSide(
            None if new.page_id is None else str(new.page_id),
            new.title,
            new.section,
            text=new.text,
            **(dict.fromkeys(Place.__struct_fields__) if new.place is None else structs.asdict(new.place)),
        ),
    )


def record_files(options: MapOptions) -> tuple[str, ...]:
    """Returns the names of the files of records that an alignment may write."""
    stem = file_stem(options)
    return tuple(
        file_name(stem, options.split, with_answers=answers, with_input=has_input)
        for has_input in (True, False)
        for answers in (False, True)
    )


def commit_part(
    part: DatasetPart,
    number: int,
    merged: Sequence[MergedChunk],
    *,
    tally: Tally,
    rejected: Sequence[BatchRef],
    staging: str,
) -> None:
    """Writes the remaining files of an alignment, its manifest last. An alignment with a manifest is not changed.

    Raises:
        DataError: the counts violate an invariant.
    """
    if Folder.of(join(part.output, MANIFEST)).exists():
        return
    files = [file for chunk in merged for file in chunk.files]
    facts = with_counts(ALIGNMENT, files, {**part.facts, "records": {"read": tally.records}}, part.output)
    report = _report(part.options, tally, facts)
    if part.options.verify is not None:
        judged = (
            row
            for entry in files
            if entry.file.startswith("alignments/")
            for group in row_groups(join(part.output, entry.file))
            for row in rows_of(group, Alignment)
        )
        report["verification"] = verification_values(judged, threshold=part.options.threshold)
    files += _write_records(part, number, staging, n_chunks=len(merged), n_records=facts["counts"]["written"])
    bad = (tuple(row.values()) for stored in rejected for batch in read_batches(stored) for row in batch.to_pylist())
    files.append(write_rows(bad, "rejected", TABLES["rejected"], output=part.output))
    files.append(write_report(report, output=part.output))
    commit(ALIGNMENT, ALIGNMENT.listing(files, facts), part.output)


def _report(options: MapOptions, tally: Tally, facts: Mapping[str, Any]) -> dict[str, Any]:
    if broken := evidence_faults(tally.evidences, facts["counts"]):
        raise DataError("The counts do not add up, so no release was made: " + "; ".join(broken) + ".")
    report = report_values(tally, facts, dataset=options.policy_name, split=options.split)
    if options.accept is not None:
        report["accept"] = {"rule": options.accept, "dropped": facts["counts"]["dropped"].get("not_accepted", 0)}
        report["dropped_by_threshold"] = None
    return report


def _write_records(part: DatasetPart, number: int, staging: str, *, n_chunks: int, n_records: int) -> list[FileEntry]:
    """Joins the lines of all chunks into the file of the split, for test without answers, and returns the files.

    With labels, the test records are also written with answers. If the dataset is published without inputs, every file
    is also written without them.
    """
    options, output = part.options, part.output
    stem = file_stem(options)
    files = []
    for with_answers in (False, True) if options.labels else (False,):
        ending = ANSWERED if with_answers else LINES
        parts = [alignment_chunk_path(staging, ChunkKey(number, chunk), ending) for chunk in range(n_chunks)]
        # KILT publishes files without inputs under a different name.
        has_ids_alone = options.dataset == "kilt" and f"-{options.split}_id" in base_name(options.inputs[0])
        name = file_name(stem, options.split, with_answers=with_answers, with_input=not has_ids_alone)
        files.append(write_lines(_blocks(parts), name, output=output, n_rows=n_records))
        if options.dataset in ID_FILES:
            id_name = file_name(stem, options.split, with_answers=with_answers, with_input=False)
            with Folder.of(join(output, name)).open() as lines:
                files.append(write_lines(map(without_input, lines), id_name, output=output))
    return files


def _blocks(paths: Iterable[str]) -> Iterator[bytes]:
    for path in paths:
        with Folder.of(path).open() as part:
            while block := part.read(CHUNK_BYTES):
                yield block
