"""A chunk of records joined with what became of their evidences: filtered, written, counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

from kbsource.beat import Beat
from kbsource.errors import SetupError
from kbsource.files import Storage, atomic_write, join
from kbsource.release.manifest import FileEntry
from kbsource.staging import read_batches, read_json, write_json
from mapping.outcomes import MISSED
from mapping.places import Place, Placed
from mapping.policy import POLICIES, Decision, decide
from mapping.records import Alignment, Evidence, Example, Span
from mapping.report import Counts
from mapping.sources.base import PARTIAL, EvidenceKey, ReleasedExample, iter_evidence, released_span
from mapping.staged import example_from_json
from mapping.tables import table_path, write_table
from mapping.writer import WriteOptions, kilt_example, kilt_line, without_answers
from pipelines.map_staging import MapJob, read_settled, staged
from pipelines.storage import storage_for

_OLD_PLACE = ("start_paragraph_id", "start_character", "end_paragraph_id", "end_character")


@dataclass(slots=True)
class _Settled:
    """What became of one evidence, as it is stored."""

    row: tuple[Any, ...]
    alignment: Alignment
    placed: Placed


@dataclass(slots=True)
class _Rows:
    """Rows of the tables of one chunk."""

    alignments: list[tuple[Any, ...]] = field(default_factory=list)
    misses: list[tuple[Any, ...]] = field(default_factory=list)
    crosswalk: list[tuple[Any, ...]] = field(default_factory=list)


def merge_chunk(staging: str, number: int, job: MapJob, beat: Beat) -> None:
    """Writes the KILT lines of a chunk, its part of every table, and its report.

    Raises:
        SetupError: an evidence has no outcome: the job is broken.
    """
    storage = storage_for(staging)
    n_chunks = len(read_json(storage, join(staging, "plan.json"))["starts"])
    settled = _settled(staging, number, storage)
    policy = POLICIES[job.dataset][job.split]
    write_options = WriteOptions(strips_section=job.strips_section)
    counts, rows = Counts(), _Rows()
    with atomic_write(storage, staged(staging, "merged", number, "kilt")) as lines:
        for ordinal, text in _examples(staging, number, storage):
            example = example_from_json(text)
            found = _of_example(example, ordinal, settled)
            placed = {key: one.placed for key, one in found.items()}
            decision = decide(example, placed, policy, threshold=job.threshold)
            if decision.reason is None:
                record = kilt_example(example, placed, decision, policy, options=write_options)
                lines.write(kilt_line(without_answers(record, policy) if job.split == "test" else record))
            _count(example, found, decision, counts, job.threshold)
            _add_rows(rows, example, ordinal, found, decision, _suggestions(staging))
            beat.done(pages=0, n_bytes=len(text))
    if settled:
        raise SetupError(f"chunk {number}: {len(settled)} outcomes belong to no evidence. Report this, it is a defect.")
    tables = {"alignments": rows.alignments, "misses": rows.misses}
    if job.has_crosswalk:
        tables["crosswalk"] = rows.crosswalk
    entries = [
        write_table(table_rows, table, output=job.output, file=table_path(table, number, n_chunks), storage=storage)
        for table, table_rows in tables.items()
    ]
    report = {"counts": counts.to_json(), "files": [asdict(entry) for entry in entries]}
    write_json(storage, staged(staging, "merged", number, "json"), report)


def read_chunk_report(staging: str, number: int, storage: Storage) -> tuple[Counts, list[FileEntry]]:
    """Gives counts and files of a chunk.

    Raises:
        SetupError: the chunk was not finished.
    """
    path = staged(staging, "merged", number, "json")
    if not storage.exists(path):
        raise SetupError(f"{path}: chunk {number} was not finished by any worker; run the job again.")
    value = read_json(storage, path)
    return Counts.from_json(value["counts"]), [FileEntry(**entry) for entry in value["files"]]


def _examples(staging: str, number: int, storage: Storage) -> Iterator[tuple[int, str]]:
    for batch in read_batches(storage, staged(staging, "examples", number)):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _settled(staging: str, chunk: int, storage: Storage) -> dict[tuple[int, int, int], _Settled]:
    """Gives what became of the evidences of a chunk, by record, output and evidence."""
    result: dict[tuple[int, int, int], _Settled] = {}
    for path, batches in _indexes(staging):
        for row in read_settled(storage, path, batches, chunk):
            if row[:3] in result:
                raise SetupError(f"{path}: evidence {row[:3]} has two outcomes. Report this, it is a defect.")
            result[row[:3]] = _read(row)
    return result


@lru_cache(maxsize=1)
def _indexes(staging: str) -> list[tuple[str, dict[str, int]]]:
    storage = storage_for(staging)
    paths = [*storage.glob(join(staging, "aligned", "*.json")), join(staging, "settled.json")]
    return [(path.removesuffix("json") + "arrow", read_json(storage, path)) for path in paths]


@lru_cache(maxsize=1)
def _suggestions(staging: str) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = read_json(storage_for(staging), join(staging, "suggestions.json"))
    return found


def _read(row: tuple[Any, ...]) -> _Settled:
    outcome, page_id, title, found_by, hops, section = row[3:9]
    start, start_char, end, end_char, score, match, text = row[9:16]
    span = None if start is None else Span(start, start_char, end, end_char, score, match)
    place = None if row[16] is None else Place(*row[16:20])
    alignment = Alignment(outcome, page_id, title, found_by, hops, section, span, text)
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


def _add_rows(
    rows: _Rows,
    example: Example,
    ordinal: int,
    found: dict[EvidenceKey, _Settled],
    decision: Decision,
    suggestions: dict[str, list[tuple[str, float]]],
) -> None:
    for key, evidence in iter_evidence(example):
        one = found[key]
        alignment = one.alignment
        known = _known(example, ordinal, key, evidence, alignment)
        if alignment.outcome in MISSED:
            asked = one.row[20]
            similar = suggestions.get(asked, []) if asked else []
            rows.misses.append((*known, [{"title": title, "score": score} for title, score in similar]))
        else:
            rows.alignments.append((*known, *one.row[8:20], _is_written(key, decision)))
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
