"""A chunk of records written: KILT lines, a part of every table, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from kbsource.files import atomic_write, join, read_json, write_json
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.writer import write_rows
from kbsource.runtime.chunks import Key, Stored
from mapping.decide.policy import POLICIES, Decision
from mapping.decide.sample import Cuts
from mapping.entail.verification import VerificationCounts
from mapping.outcomes import MISSED
from mapping.records import PARTIAL, Alignment, Evidence, EvidenceKey, ReleasedExample, iter_evidence, released_span
from mapping.schema import RECORDS
from mapping.sources.reading.fields import is_integer
from mapping.write.kilt import kilt_line, without_answers
from mapping.write.kind import ALIGNMENT
from mapping.write.report import AlignmentCounts
from pipelines.alignment.dataset_part import DatasetPart, filter_options
from pipelines.alignment.filtering import Filtered, filter_records
from pipelines.alignment.rows import stored_rows
from pipelines.alignment.settled import AlignedChunk, Settled, SettledRecord
from pipelines.stores.storage import storage_for

N_OF_EXAMPLE = len(RECORDS) - RECORDS.get_field_index("score")
"""Columns of ``records`` that only an example has."""
LINES, ANSWERED = "kilt", "answers"
"""Endings of a chunk's lines, and of those of a test file with their answers."""

_INT32 = 1 << 31
_OLD_PLACE = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")


def lines_path(staging: str, key: Key, ending: str) -> str:
    """Gives the path of a chunk's lines, or of its report."""
    return join(staging, "merged", f"{key.part:05d}-{key.chunk:05d}.{ending}")


def merge_chunk(
    chunk: AlignedChunk, part: DatasetPart, key: Key, *, n_chunks: int, cuts: Cuts | None, staging: str
) -> dict[str, Any]:
    """Writes the KILT lines of a chunk into the staging folder, its part of every table, and gives its report.

    Records of test are written without their answers, and where there are labels with them as well. A chunk that was
    written before is taken as it is.

    Raises:
        DataError: an evidence has no outcome: the job is broken.
    """
    storage, done = storage_for(staging), lines_path(staging, key, "json")
    if storage.exists(done):
        found: dict[str, Any] = read_json(storage, done)
        return found
    split = part.options.split
    options = filter_options(part.options)
    policy = POLICIES[options.policy][split]
    merged = _Merged(part)
    with ExitStack() as stack:
        lines = stack.enter_context(atomic_write(storage, lines_path(staging, key, LINES)))
        answered = None
        if part.options.labels:
            answered = stack.enter_context(atomic_write(storage, lines_path(staging, key, ANSWERED)))
        for filter_record in filter_records(chunk, options, cuts):
            if filter_record.record is not None:
                merged.counts.add_written(filter_record.record)
                lines.write(
                    kilt_line(
                        without_answers(filter_record.record, policy) if split == "test" else filter_record.record
                    )
                )
                if answered is not None:
                    answered.write(kilt_line(filter_record.record))
            merged.add(filter_record)
    entries = merged.write_tables(chunk.examples, key.chunk, n_chunks)
    report = {
        "chunk": key.chunk,
        "counts": merged.counts.to_json(),
        "files": [asdict(entry) for entry in entries],
        "verification": merged.verification.to_json(),
    }
    write_json(storage, done, report)
    return report


def sum_reports(reports: Iterable[dict[str, Any]]) -> tuple[AlignmentCounts, VerificationCounts, list[FileEntry]]:
    """Gives counts and files of all chunks together, from their reports in order."""
    counts, verification, files = AlignmentCounts(), VerificationCounts(), []
    for report in reports:
        counts.add(AlignmentCounts.from_json(report["counts"]))
        verification.merge(VerificationCounts.from_json(report["verification"]))
        files += [FileEntry(**entry) for entry in report["files"]]
    return counts, verification, files


class _Merged:
    """What comes of a chunk beside its lines.

    Attributes:
        counts: of records and evidences.
        verification: of evidences that a model was asked about.
    """

    def __init__(self, part: DatasetPart) -> None:
        self._output = part.output
        self._records: dict[int, tuple[Any, ...]] = {}
        self._threshold = part.options.threshold
        self._is_verified = part.options.verify is not None
        self._has_crosswalk = part.options.dataset == "kilt"
        self.counts = AlignmentCounts()
        self.verification = VerificationCounts()
        self._alignments: list[tuple[Any, ...]] = []
        self._misses: list[tuple[Any, ...]] = []
        self._crosswalk: list[tuple[Any, ...]] = []

    def add(self, filtered: Filtered) -> None:
        """Takes a record and all its evidences."""
        one, decision = filtered.settled, filtered.decision
        n_written = 0
        for key, evidence in iter_evidence(one.example):
            is_written = _is_written(key, decision)
            n_written += is_written
            self._add_evidence(one, key, evidence, is_written=is_written)
        sets = [
            [one.found[index, place].alignment for place in range(len(output.evidence))]
            for index, output in enumerate(one.example.outputs)
            if output.evidence
        ]
        self.counts.add_record(filtered.written, sets, threshold=self._threshold)
        n_outputs = sum(fate.form != "dropped" for fate in decision.outputs) if decision.reason is None else 0
        self._records[one.ordinal] = (
            one.ordinal,
            one.example.example_id,
            one.example.file,
            one.example.line,
            "dropped" if decision.reason else "written",
            decision.reason,
            _score(sets),
            len(one.example.outputs),
            n_outputs,
            len(one.found),
            n_written,
        )

    def _add_evidence(
        self, settled_record: SettledRecord, key: EvidenceKey, evidence: Evidence, *, is_written: bool
    ) -> None:
        settled = settled_record.found[key]
        alignment = settled.alignment
        self.counts.add_evidence(alignment)
        known = (
            settled_record.ordinal,
            settled_record.example.example_id,
            *key,
            settled_record.example.file,
            settled_record.example.line,
            evidence.page.kind,
            evidence.page.value,
            evidence.text,
            alignment.outcome,
            alignment.page_id,
            alignment.title,
            alignment.found_by,
            alignment.hops,
        )
        if alignment.outcome in MISSED:
            similar = [{"title": title, "score": score} for title, score in alignment.suggestions]
            self._misses.append((*known, similar))
        elif not self._is_verified:
            self._alignments.append((*known, *settled.span_columns, is_written))
        else:
            self._alignments.append((*known, *settled.span_columns, is_written, *settled.verified.columns()))
            self._count_verified(settled_record, key, settled)
        if isinstance(settled_record.example, ReleasedExample):
            self._crosswalk.append(_crossing(settled_record.example, key, evidence, settled))

    def _count_verified(self, settled_record: SettledRecord, key: EvidenceKey, settled: Settled) -> None:
        output, place = key
        known = {
            "ordinal": settled_record.ordinal,
            "example_id": settled_record.example.example_id,
            "output": output,
            "evidence": place,
        }
        known |= {"title": settled.alignment.title, "text": settled.alignment.text}
        self.verification.add(settled.verified, settled.placed.score, threshold=self._threshold, known=known)

    def write_tables(self, examples: Stored, number: int, n_chunks: int) -> list[FileEntry]:
        """Writes the chunk's part of every table; ``examples`` has its records as they were read."""
        tables: dict[str, Iterable[tuple[Any, ...]]] = {
            "records": self._all_records(examples),
            "alignments": self._alignments,
            "misses": self._misses,
        }
        if self._has_crosswalk:
            tables["crosswalk"] = self._crosswalk
        return [
            write_rows(
                rows,
                table,
                ALIGNMENT.schemas(table)[-1 if self._is_verified else 0],
                output=self._output,
                file=shard_path(table, number, n_chunks),
                storage=storage_for(self._output),
            )
            for table, rows in tables.items()
        ]

    def _all_records(self, examples: Stored) -> Iterator[tuple[Any, ...]]:
        for ordinal, left in stored_rows(examples, ("ordinal", "left")):
            if ordinal is not None:
                yield self._records[ordinal]
            else:
                yield (None, *left.values(), *(None,) * N_OF_EXAMPLE)


def _is_written(key: EvidenceKey, decision: Decision) -> bool:
    index, place = key
    if decision.reason is not None:
        return False
    return place in (decision.partial if index == PARTIAL else decision.outputs[index].kept)


def _score(sets: Iterable[list[Alignment]]) -> float | None:
    """Gives the highest score of evidence sets that have a span for each piece: the lowest of these."""
    spans = ([piece.span for piece in evidence_set] for evidence_set in sets)
    return max((min(span.score for span in one if span) for one in spans if all(one)), default=None)


def _crossing(example: ReleasedExample, key: EvidenceKey, evidence: Evidence, settled: Settled) -> tuple[Any, ...]:
    old, new = released_span(example, key), settled.alignment
    old_id, old_title, old_section = (old.get(name) for name in ("wikipedia_id", "title", "section"))
    place = settled.placed.place
    return (
        example.example_id,
        *key,
        new.outcome,
        settled.placed.score,
        None if old_id is None else str(old_id),
        old_title if isinstance(old_title, str) else None,
        old_section.rstrip("\n") if isinstance(old_section, str) else None,
        *(value if is_integer(value := old.get(name)) and abs(value) < _INT32 else None for name in _OLD_PLACE),
        evidence.text,
        None if new.page_id is None else str(new.page_id),
        new.title,
        new.section,
        *(place if place is not None else (None,) * 4),
        new.text,
    )
