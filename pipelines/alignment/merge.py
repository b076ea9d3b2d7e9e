"""A chunk of records joined with what became of their evidences: filtered, written, counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

from kbsource.beat import Beat
from kbsource.errors import SetupError
from kbsource.files import Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from kbsource.staging import read_json, write_json
from mapping.outcomes import MISSED
from mapping.policy import POLICIES, Decision, decide
from mapping.records import Evidence
from mapping.report import Counts
from mapping.rescue import write_places_once
from mapping.sample import Cuts
from mapping.schema import VERIFICATION
from mapping.sources.base import PARTIAL, EvidenceKey, ReleasedExample, iter_evidence, released_span
from mapping.tables import table_path, write_table
from mapping.verification import VerificationCounts
from mapping.writer import WriteOptions, kilt_example, kilt_line, without_answers
from pipelines.alignment.settled import Settled, SettledRecord, judged_records
from pipelines.alignment.staging import CUTS, MapJob, read_starts, staged
from pipelines.storage import storage_for

LINES, ANSWERED = "kilt", "answers"
"""Endings of a chunk's lines, and of those of a test file with their answers."""

_OLD_PLACE = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")


def merge_chunk(staging: str, number: int, job: MapJob, beat: Beat) -> None:
    """Writes the KILT lines of a chunk, its part of every table, and its report.

    Records of test are written without their answers, and where there are labels with them as well.

    Raises:
        DataError: an evidence has no outcome: the job is broken.
    """
    storage = storage_for(staging)
    policy = POLICIES[job.dataset][job.split]
    options = WriteOptions(strips_section=job.strips_section)
    cuts = Cuts(**read_json(storage, join(staging, CUTS))) if job.is_sampled else None
    merged = _Merged(job)
    with ExitStack() as stack:
        lines = stack.enter_context(atomic_write(storage, staged(staging, "merged", number, LINES)))
        answered = None
        if job.has_labels:
            answered = stack.enter_context(atomic_write(storage, staged(staging, "merged", number, ANSWERED)))
        for one in judged_records(staging, number, job):
            placed = one.placed()
            decision = decide(one.example, placed, policy, threshold=job.threshold)
            if cuts is not None and not cuts.takes(one.ordinal, job.split, stands=_stands(one, job)):
                decision = decision._replace(reason="other_split")
            written = write_places_once(decision, placed, one.rescued())
            if decision.reason is None:
                record = kilt_example(one.example, placed, written, policy, options=options)
                merged.counts.add_written(record)
                lines.write(kilt_line(without_answers(record, policy) if job.split == "test" else record))
                if answered is not None:
                    answered.write(kilt_line(record))
            merged.add(one, decision, written)
            beat.done(pages=0, n_bytes=one.n_chars)
    entries = merged.write_tables(number, len(read_starts(staging, storage)), storage)
    report = {
        "counts": merged.counts.to_json(),
        "files": [asdict(entry) for entry in entries],
        "verification": merged.verification.to_json(),
    }
    write_json(storage, staged(staging, "merged", number, "json"), report)


def iter_standing(staging: str, n_chunks: int, job: MapJob) -> Iterator[int]:
    """Gives the number of every record that stands the filter of dev and test, in order."""
    for number in range(n_chunks):
        for one in judged_records(staging, number, job):
            if _stands(one, job):
                yield one.ordinal


def sum_reports(staging: str, n_chunks: int, storage: Storage) -> tuple[Counts, VerificationCounts, list[FileEntry]]:
    """Gives counts and files of all chunks together.

    Raises:
        SetupError: a chunk was not finished.
    """
    counts, verification, files = Counts(), VerificationCounts(), []
    for number in range(n_chunks):
        path = staged(staging, "merged", number, "json")
        if not storage.exists(path):
            raise SetupError(f"{path}: chunk {number} was not finished by any worker; run the job again.")
        report = read_json(storage, path)
        counts.add(Counts.from_json(report["counts"]))
        verification.merge(VerificationCounts.from_json(report["verification"]))
        files += [FileEntry(**entry) for entry in report["files"]]
    return counts, verification, files


def _stands(one: SettledRecord, job: MapJob) -> bool:
    policy = POLICIES[job.dataset]["dev"]
    return decide(one.example, one.placed(), policy, threshold=job.threshold).reason is None


class _Merged:
    """What comes of a chunk beside its lines.

    Attributes:
        counts: of records and evidences.
        verification: of evidences that a model was asked about.
    """

    def __init__(self, job: MapJob) -> None:
        self._job = job
        self.counts = Counts()
        self.verification = VerificationCounts()
        self._alignments: list[tuple[Any, ...]] = []
        self._misses: list[tuple[Any, ...]] = []
        self._crosswalk: list[tuple[Any, ...]] = []

    def add(self, one: SettledRecord, decision: Decision, written: Decision) -> None:
        """Takes a record and all its evidences.

        Args:
            one: the record.
            decision: what becomes of it; evidence whose place another one of its set has is written there too.
            written: the same by what is in the file, see ``write_places_once``.
        """
        for key, evidence in iter_evidence(one.example):
            self._add_evidence(one, key, evidence, is_written=_is_written(key, decision))
        sets = [
            [one.found[index, place].alignment for place in range(len(output.evidence))]
            for index, output in enumerate(one.example.outputs)
            if output.evidence
        ]
        self.counts.add_record(written, sets, threshold=self._job.threshold)

    def _add_evidence(self, one: SettledRecord, key: EvidenceKey, evidence: Evidence, *, is_written: bool) -> None:
        settled = one.found[key]
        alignment = settled.alignment
        self.counts.add_evidence(alignment)
        known = (
            one.ordinal,
            one.example.example_id,
            *key,
            one.example.file,
            one.example.line,
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
        elif self._job.hypothesis is None:
            self._alignments.append((*known, *settled.row[8:20], is_written))
        else:
            self._alignments.append((*known, *settled.row[8:20], is_written, *settled.verified.columns()))
            self._count_verified(one, key, settled)
        if isinstance(one.example, ReleasedExample):
            self._crosswalk.append(_crossing(one.example, key, settled))

    def _count_verified(self, one: SettledRecord, key: EvidenceKey, settled: Settled) -> None:
        output, place = key
        known = {"ordinal": one.ordinal, "example_id": one.example.example_id, "output": output, "evidence": place}
        known |= {"title": settled.alignment.title, "text": settled.alignment.text}
        self.verification.add(settled.verified, settled.placed.score, threshold=self._job.threshold, known=known)

    def write_tables(self, number: int, n_chunks: int, storage: Storage) -> list[FileEntry]:
        """Writes the chunk's part of every table."""
        tables = {"alignments": self._alignments, "misses": self._misses}
        if self._job.has_crosswalk:
            tables["crosswalk"] = self._crosswalk
        return [
            write_table(
                rows,
                table,
                output=self._job.output,
                file=table_path(table, number, n_chunks),
                storage=storage,
                further=VERIFICATION if table == "alignments" and self._job.hypothesis is not None else (),
            )
            for table, rows in tables.items()
        ]


def _is_written(key: EvidenceKey, decision: Decision) -> bool:
    index, place = key
    if decision.reason is not None:
        return False
    return place in (decision.partial if index == PARTIAL else decision.outputs[index].kept)


def _crossing(example: ReleasedExample, key: EvidenceKey, one: Settled) -> tuple[Any, ...]:
    old = released_span(example, key)
    old_id = old.get("wikipedia_id")
    place = one.placed.place
    return (
        example.example_id,
        *key,
        one.alignment.outcome,
        one.placed.score,
        None if old_id is None else str(old_id),
        old.get("title"),
        *(old.get(name) for name in _OLD_PLACE),
        None if one.alignment.page_id is None else str(one.alignment.page_id),
        one.alignment.title,
        *(place if place is not None else (None,) * 4),
    )
