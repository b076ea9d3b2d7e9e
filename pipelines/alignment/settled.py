"""The records of a chunk with what became of their evidences, read again from the staging folder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kbsource.errors import DataError
from kbsource.files import join
from kbsource.staging import read_json
from mapping.acceptance import read_rule
from mapping.places import Place, Placed
from mapping.records import Alignment, Example, Span
from mapping.sources.base import EvidenceKey, iter_evidence
from mapping.staged import example_from_json
from mapping.verification import NOT_VERIFIED, Verified
from pipelines.alignment.staging import MapJob, read_rows, read_settled, staged
from pipelines.alignment.verify import END_SPAN_COLUMN, FIRST_SPAN_COLUMN, read_standing
from pipelines.storage import storage_for

_DEFECT = "Report this, it is a defect."


class Settled(NamedTuple):
    """What became of one evidence.

    Attributes:
        row: as it is stored, of schema ``SETTLED``.
        alignment, placed: what the row says.
        verified: what a model says of it.
    """

    row: tuple[Any, ...]
    alignment: Alignment
    placed: Placed
    verified: Verified = NOT_VERIFIED


class SettledRecord(NamedTuple):
    """One record of a chunk.

    Attributes:
        ordinal: its number in the dataset.
        example: the record.
        found: what became of its evidences, in their order.
        n_chars: length of the record as it is staged.
    """

    ordinal: int
    example: Example
    found: dict[EvidenceKey, Settled]
    n_chars: int

    def placed(self) -> dict[EvidenceKey, Placed]:
        """Gives what the rules of a dataset look at."""
        return {key: one.placed for key, one in self.found.items()}

    def rescued(self) -> frozenset[EvidenceKey]:
        """Gives the evidences whose span is a sentence that a model chose."""
        return frozenset(key for key, one in self.found.items() if one.verified.is_rescued)


_Chunk = dict[tuple[int, int, int], Settled]
"""By record, output and evidence."""


def searched_records(staging: str, number: int) -> Iterator[SettledRecord]:
    """Gives the records of a chunk, in order, as the search left their evidences.

    Raises:
        DataError: an evidence has no outcome, or two: the job is broken.
    """
    return _records(staging, number, _settled(staging, number))


def judged_records(staging: str, number: int, job: MapJob) -> Iterator[SettledRecord]:
    """Gives the same with what a model says of the evidences, and with the verdict of the job's rule.

    Raises:
        DataError: as ``searched_records``.
    """
    return _records(staging, number, _judged(_settled(staging, number), staging, number, job))


def _records(staging: str, number: int, settled: _Chunk) -> Iterator[SettledRecord]:
    for ordinal, text in read_rows(storage_for(staging), staged(staging, "examples", number)):
        example = example_from_json(text)
        found = {}
        for key, _ in iter_evidence(example):
            one = settled.pop((ordinal, *key), None)
            if one is None:
                raise DataError(
                    f"{example.file}, line {example.line}: evidence {key[0]}, {key[1]} has no outcome. {_DEFECT}"
                )
            found[key] = one
        yield SettledRecord(ordinal, example, found, len(text))
    if settled:
        raise DataError(f"chunk {number}: {len(settled)} outcomes belong to no evidence. {_DEFECT}")


def _settled(staging: str, number: int) -> _Chunk:
    storage = storage_for(staging)
    result: _Chunk = {}
    for path, chunks in _chunks_of_batches(staging):
        if len(batches := np.flatnonzero(chunks == number)):
            for row in read_settled(storage, path, batches.tolist()):
                if row[:3] in result:
                    raise DataError(f"{path}: evidence {row[:3]} has two outcomes. {_DEFECT}")
                result[row[:3]] = _read(row)
    return result


@lru_cache(maxsize=1)
def _chunks_of_batches(staging: str) -> list[tuple[str, npt.NDArray[np.int32]]]:
    storage = storage_for(staging)
    paths = [*storage.glob(join(staging, "aligned", "*.json")), join(staging, "settled.json")]
    return [(path.removesuffix("json") + "arrow", np.array(read_json(storage, path), np.int32)) for path in paths]


def _judged(settled: _Chunk, staging: str, number: int, job: MapJob) -> _Chunk:
    rule = None if job.accept is None else read_rule(job.accept)
    if job.hypothesis is not None:
        scores = {key: one.placed.score for key, one in settled.items()}
        standing = read_standing(staging, number, storage_for(staging), scores=scores, rule=rule)
        for key, (verified, span_columns) in standing.items():
            row = settled[key].row
            if span_columns is not None:
                row = (*row[:FIRST_SPAN_COLUMN], *span_columns, *row[END_SPAN_COLUMN:])
            settled[key] = _read(row)._replace(verified=verified)
    if rule is not None:
        for key, one in settled.items():
            if one.placed.score is not None:
                is_accepted = rule.holds(one.verified.signals(one.placed.score))
                settled[key] = one._replace(placed=one.placed._replace(is_accepted=is_accepted))
    return settled


def _read(row: tuple[Any, ...]) -> Settled:
    outcome, page_id, title, found_by, hops, section = row[3:9]
    start, start_char, end, end_char, score, match, text = row[9:16]
    span = None if start is None else Span(start, start_char, end, end_char, score, match)
    place = None if row[16] is None else Place(*row[16:20])
    similar = tuple((one["title"], one["score"]) for one in row[20] or ())
    alignment = Alignment(outcome, page_id, title, found_by, hops, section, span, text, similar)
    return Settled(row, alignment, Placed(outcome, page_id, title, section, place, score))
