"""A chunk of records joined with what became of their evidences: filtered, written, counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kbsource.beat import Beat
from kbsource.errors import SetupError
from kbsource.files import Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from kbsource.staging import read_batches, read_json, write_json
from mapping.acceptance import read_rule
from mapping.outcomes import MISSED
from mapping.places import Place, Placed
from mapping.policy import POLICIES, Decision, decide
from mapping.records import Alignment, Evidence, Example, Span
from mapping.report import Counts
from mapping.sample import Cuts
from mapping.schema import VERIFICATION
from mapping.sources.base import PARTIAL, EvidenceKey, ReleasedExample, iter_evidence, released_span
from mapping.staged import example_from_json
from mapping.tables import table_path, write_table
from mapping.verification import NOT_VERIFIED, VerificationCounts, Verified
from mapping.writer import WriteOptions, kilt_example, kilt_line, without_answers
from pipelines.map_staging import CUTS, MapJob, read_settled, staged
from pipelines.map_verify import END_SPAN_COLUMN, FIRST_SPAN_COLUMN, read_standing
from pipelines.storage import storage_for

LINES, ANSWERED = "kilt", "answers"
"""Endings of a chunk's lines, and of those of a test file with their answers."""

_OLD_PLACE = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")


@dataclass(slots=True)
class _Settled:
    """What became of one evidence, as it is stored."""

    row: tuple[Any, ...]
    alignment: Alignment
    placed: Placed
    verified: Verified = NOT_VERIFIED


@dataclass(slots=True)
class _Rows:
    """Rows of the tables of one chunk."""

    alignments: list[tuple[Any, ...]] = field(default_factory=list)
    misses: list[tuple[Any, ...]] = field(default_factory=list)
    crosswalk: list[tuple[Any, ...]] = field(default_factory=list)


def merge_chunk(staging: str, number: int, job: MapJob, beat: Beat) -> None:
    """Writes the KILT lines of a chunk, its part of every table, and its report.

    Records of test are written without their answers, and where there are labels with them as well.

    Raises:
        SetupError: an evidence has no outcome: the job is broken.
    """
    storage = storage_for(staging)
    n_chunks = len(read_json(storage, join(staging, "plan.json"))["starts"])
    settled = _judged(_settled(staging, number, storage), staging, number, job)
    policy = POLICIES[job.dataset][job.split]
    write_options = WriteOptions(strips_section=job.strips_section)
    cuts = Cuts(**read_json(storage, join(staging, CUTS))) if job.is_sampled else None
    counts, rows, verification = Counts(), _Rows(), VerificationCounts()
    with ExitStack() as stack:
        lines = stack.enter_context(atomic_write(storage, staged(staging, "merged", number, LINES)))
        answered = None
        if job.has_labels:
            answered = stack.enter_context(atomic_write(storage, staged(staging, "merged", number, ANSWERED)))
        for ordinal, text in read_examples(staging, number, storage):
            example = example_from_json(text)
            found = _of_example(example, ordinal, settled)
            placed = {key: one.placed for key, one in found.items()}
            decision = decide(example, placed, policy, threshold=job.threshold)
            if cuts is not None and not cuts.takes(ordinal, job.split, stands=_stands(example, placed, job)):
                decision = decision._replace(reason="other_split")
            if decision.reason is None:
                record = kilt_example(example, placed, decision, policy, options=write_options)
                counts.add_written(record)
                lines.write(kilt_line(without_answers(record, policy) if job.split == "test" else record))
                if answered is not None:
                    answered.write(kilt_line(record))
            _count(example, found, decision, counts, job.threshold)
            _add_rows(rows, example, ordinal, found, decision, is_verified=job.hypothesis is not None)
            _count_verified(example, ordinal, found, verification, job.threshold)
            beat.done(pages=0, n_bytes=len(text))
    if settled:
        raise SetupError(f"chunk {number}: {len(settled)} outcomes belong to no evidence. Report this, it is a defect.")
    tables = {"alignments": rows.alignments, "misses": rows.misses}
    if job.has_crosswalk:
        tables["crosswalk"] = rows.crosswalk
    entries = [
        write_table(
            table_rows,
            table,
            output=job.output,
            file=table_path(table, number, n_chunks),
            storage=storage,
            further=VERIFICATION if table == "alignments" and job.hypothesis is not None else (),
        )
        for table, table_rows in tables.items()
    ]
    report = {
        "counts": counts.to_json(),
        "files": [asdict(entry) for entry in entries],
        "verification": verification.to_json(),
    }
    write_json(storage, staged(staging, "merged", number, "json"), report)


def iter_standing(staging: str, job: MapJob) -> Iterator[int]:
    """Gives the number of every record that stands the filter of dev and test, in order."""
    storage = storage_for(staging)
    for number in range(len(read_json(storage, join(staging, "plan.json"))["starts"])):
        settled = _judged(_settled(staging, number, storage), staging, number, job)
        for ordinal, text in read_examples(staging, number, storage):
            example = example_from_json(text)
            placed = {key: one.placed for key, one in _of_example(example, ordinal, settled).items()}
            if _stands(example, placed, job):
                yield ordinal


def _stands(example: Example, placed: Mapping[EvidenceKey, Placed], job: MapJob) -> bool:
    return decide(example, placed, POLICIES[job.dataset]["dev"], threshold=job.threshold).reason is None


def read_chunk_report(
    staging: str, number: int, storage: Storage
) -> tuple[Counts, VerificationCounts, list[FileEntry]]:
    """Gives counts and files of a chunk.

    Raises:
        SetupError: the chunk was not finished.
    """
    path = staged(staging, "merged", number, "json")
    if not storage.exists(path):
        raise SetupError(f"{path}: chunk {number} was not finished by any worker; run the job again.")
    value = read_json(storage, path)
    files = [FileEntry(**entry) for entry in value["files"]]
    return Counts.from_json(value["counts"]), VerificationCounts.from_json(value["verification"]), files


def read_examples(staging: str, number: int, storage: Storage) -> Iterator[tuple[int, str]]:
    """Gives the records of a chunk as JSON, with their numbers."""
    for batch in read_batches(storage, staged(staging, "examples", number)):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def read_alignments(staging: str, number: int, storage: Storage) -> dict[tuple[int, int, int], Alignment]:
    """Gives what the search made of the evidences of a chunk, by record, output and evidence."""
    return {key: one.alignment for key, one in _settled(staging, number, storage).items()}


def _settled(staging: str, chunk: int, storage: Storage) -> dict[tuple[int, int, int], _Settled]:
    """Gives what became of the evidences of a chunk, by record, output and evidence."""
    result: dict[tuple[int, int, int], _Settled] = {}
    for path, chunks in _chunks_of_batches(staging):
        if len(numbers := np.flatnonzero(chunks == chunk)):
            for row in read_settled(storage, path, numbers.tolist()):
                if row[:3] in result:
                    raise SetupError(f"{path}: evidence {row[:3]} has two outcomes. Report this, it is a defect.")
                result[row[:3]] = _read(row)
    return result


def _judged(
    settled: dict[tuple[int, int, int], _Settled], staging: str, number: int, job: MapJob
) -> dict[tuple[int, int, int], _Settled]:
    """Gives evidences with what a model says of them, and with the verdict of the job's rule."""
    rule = None if job.accept is None else read_rule(job.accept)
    if job.hypothesis is not None:
        scores = {key: one.placed.score for key, one in settled.items()}
        standing = read_standing(staging, number, storage_for(staging), scores=scores, rule=rule)
        for key, (verified, span_columns) in standing.items():
            row = settled[key].row
            if span_columns is not None:
                row = (*row[:FIRST_SPAN_COLUMN], *span_columns, *row[END_SPAN_COLUMN:])
            settled[key] = replace(_read(row), verified=verified)
    if rule is not None:
        for key, one in settled.items():
            if one.placed.score is not None:
                is_accepted = rule.holds(one.verified.signals(one.placed.score))
                settled[key] = replace(one, placed=one.placed._replace(is_accepted=is_accepted))
    return settled


@lru_cache(maxsize=1)
def _chunks_of_batches(staging: str) -> list[tuple[str, npt.NDArray[np.int32]]]:
    storage = storage_for(staging)
    paths = [*storage.glob(join(staging, "aligned", "*.json")), join(staging, "settled.json")]
    return [(path.removesuffix("json") + "arrow", np.array(read_json(storage, path), np.int32)) for path in paths]


def _read(row: tuple[Any, ...]) -> _Settled:
    outcome, page_id, title, found_by, hops, section = row[3:9]
    start, start_char, end, end_char, score, match, text = row[9:16]
    span = None if start is None else Span(start, start_char, end, end_char, score, match)
    place = None if row[16] is None else Place(*row[16:20])
    similar = tuple((one["title"], one["score"]) for one in row[20] or ())
    alignment = Alignment(outcome, page_id, title, found_by, hops, section, span, text, similar)
    return _Settled(row, alignment, Placed(outcome, page_id, title, section, place, score))


def _of_example(
    example: Example, ordinal: int, settled: dict[tuple[int, int, int], _Settled]
) -> dict[EvidenceKey, _Settled]:
    """Takes what became of a record's evidences out of the chunk's."""
    found = {}
    for (output, place), _ in iter_evidence(example):
        one = settled.pop((ordinal, output, place), None)
        if one is None:
            raise SetupError(
                f"{example.file}, line {example.line}: evidence {output}, {place} has no outcome. "
                "Report this, it is a defect."
            )
        found[output, place] = one
    return found


def _count(
    example: Example, found: dict[EvidenceKey, _Settled], decision: Decision, counts: Counts, threshold: float
) -> None:
    for one in found.values():
        counts.add_evidence(one.alignment)
    sets = [
        [found[index, place].alignment for place in range(len(output.evidence))]
        for index, output in enumerate(example.outputs)
        if output.evidence
    ]
    counts.add_record(decision, sets, threshold=threshold)


def _count_verified(
    example: Example,
    ordinal: int,
    found: Mapping[EvidenceKey, _Settled],
    counts: VerificationCounts,
    threshold: float,
) -> None:
    for (output, place), one in found.items():
        alignment = one.alignment
        if alignment.outcome not in MISSED:
            known = {"ordinal": ordinal, "example_id": example.example_id, "output": output, "evidence": place}
            known |= {"title": alignment.title, "text": alignment.text}
            counts.add(one.verified, one.placed.score, threshold=threshold, known=known)


def _add_rows(
    rows: _Rows,
    example: Example,
    ordinal: int,
    found: dict[EvidenceKey, _Settled],
    decision: Decision,
    *,
    is_verified: bool,
) -> None:
    for key, evidence in iter_evidence(example):
        one = found[key]
        alignment = one.alignment
        known = _known(example, ordinal, key, evidence, alignment)
        if alignment.outcome in MISSED:
            similar = [{"title": title, "score": score} for title, score in alignment.suggestions]
            rows.misses.append((*known, similar))
        else:
            verified = one.verified.columns() if is_verified else ()
            rows.alignments.append((*known, *one.row[8:20], _is_written(key, decision), *verified))
        if isinstance(example, ReleasedExample):
            rows.crosswalk.append(_crossing(example, key, one))


def _known(
    example: Example, ordinal: int, key: EvidenceKey, evidence: Evidence, alignment: Alignment
) -> tuple[Any, ...]:
    return (
        ordinal,
        example.example_id,
        *key,
        example.file,
        example.line,
        evidence.page.kind,
        evidence.page.value,
        evidence.text,
        alignment.outcome,
        alignment.page_id,
        alignment.title,
        alignment.found_by,
        alignment.hops,
    )


def _is_written(key: EvidenceKey, decision: Decision) -> bool:
    index, place = key
    if decision.reason is not None:
        return False
    return place in (decision.partial if index == PARTIAL else decision.outputs[index].kept)


def _crossing(example: ReleasedExample, key: EvidenceKey, one: _Settled) -> tuple[Any, ...]:
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
