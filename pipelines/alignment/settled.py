"""The records of a chunk with what became of their evidences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from kbsource.errors import DataError
from kbsource.runtime.chunks import Stored
from mapping.decide.acceptance import read_rule
from mapping.entail.signal import Refused, Verdict
from mapping.entail.verification import NOT_VERIFIED, Verified
from mapping.records import Alignment, EvidenceKey, Example, Span, iter_evidence
from mapping.search.numbering import Place, Placed
from mapping.staged import example_from_json
from pipelines.alignment.rows import END_SPAN_COLUMN, FIRST_SPAN_COLUMN, SETTLED, stored_rows
from pipelines.alignment.verify import read_standing

_PLACED = ("outcome", "page_id", "title", "section", "score")
_SPAN = ("start_element", "start_char", "end_element", "end_char", "score", "match")
_PLACE = ("start_paragraph", "start_in", "end_paragraph", "end_in")
_DEFECT = "Report this, it is a defect."


class AlignedChunk(NamedTuple):
    """A chunk of records, what became of their evidences, and what a model answered about them.

    Attributes:
        examples: where the records are.
        outcomes: where rows of ``OUTCOMES`` are, pieces in any order.
        answers: to the questions of ``verify.read_pairs``, in their order; empty where none were asked.
    """

    examples: Stored
    outcomes: tuple[Stored, ...]
    answers: tuple[Verdict | Refused, ...] = ()


class Settled(NamedTuple):
    """What became of one evidence.

    Attributes:
        row: its columns ``SETTLED``.
        alignment, placed: what the row says.
        verified: what a model says of it.
    """

    row: tuple[Any, ...]
    alignment: Alignment
    placed: Placed
    verified: Verified = NOT_VERIFIED

    @property
    def span_columns(self) -> tuple[Any, ...]:
        """The columns of the span, of its text and of its place."""
        return self.row[FIRST_SPAN_COLUMN:END_SPAN_COLUMN]


class SettledRecord(NamedTuple):
    """One record of a chunk.

    Attributes:
        ordinal: its number in the dataset.
        example: the record.
        found: what became of its evidences, in their order.
    """

    ordinal: int
    example: Example
    found: dict[EvidenceKey, Settled]

    def placed(self) -> dict[EvidenceKey, Placed]:
        """Gives what the rules of a dataset look at."""
        return {key: one.placed for key, one in self.found.items()}

    def rescued(self) -> frozenset[EvidenceKey]:
        """Gives the evidences whose span is a sentence that a model chose."""
        return frozenset(key for key, one in self.found.items() if one.verified.is_rescued)


_Chunk = dict[tuple[int, int, int], Settled]
"""By record, output and evidence."""


def settled_records(chunk: AlignedChunk, *, is_verified: bool, accept: str | None) -> Iterator[SettledRecord]:
    """Gives the records of a chunk, in order, each with what became of its evidences.

    Args:
        chunk: the records.
        is_verified: a model was asked about them.
        accept: rule that says which spans are kept; None without.

    Raises:
        DataError: an evidence has no outcome, or two: the job is broken.
    """
    settled = _settled(chunk.outcomes)
    if is_verified or accept is not None:
        settled = _judged(settled, chunk, is_verified=is_verified, accept=accept)
    for ordinal, text in stored_rows(chunk.examples, ("ordinal", "example")):
        if ordinal is None:
            continue
        example = example_from_json(text)
        found = {}
        for key, _ in iter_evidence(example):
            one = settled.pop((ordinal, *key), None)
            if one is None:
                raise DataError(
                    f"{example.file}, line {example.line}: evidence {key[0]}, {key[1]} has no outcome. {_DEFECT}"
                )
            found[key] = one
        yield SettledRecord(ordinal, example, found)
    if settled:
        raise DataError(f"{chunk.examples.path}: {len(settled)} outcomes belong to no evidence. {_DEFECT}")


def _settled(pieces: Iterable[Stored]) -> _Chunk:
    result: _Chunk = {}
    for piece in pieces:
        for row in stored_rows(piece, SETTLED):
            if row[:3] in result:
                raise DataError(f"{piece[0]}: evidence {row[:3]} has two outcomes. {_DEFECT}")
            result[row[:3]] = _read(row)
    return result


def _judged(settled: _Chunk, chunk: AlignedChunk, *, is_verified: bool, accept: str | None) -> _Chunk:
    rule = None if accept is None else read_rule(accept)
    if is_verified:
        scores = {key: one.placed.score for key, one in settled.items()}
        for key, (verified, span_columns) in read_standing(chunk.outcomes, chunk.answers, scores=scores, rule=rule):
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
    value = dict(zip(SETTLED, row, strict=True))
    outcome, page_id, title, section, score = (value[name] for name in _PLACED)
    span = place = None
    if value["start_element"] is not None:
        span = Span(*(value[name] for name in _SPAN))
    if value["start_paragraph"] is not None:
        place = Place(*(value[name] for name in _PLACE))
    similar = tuple((title["title"], title["score"]) for title in value["suggestions"] or ())
    alignment = Alignment(
        outcome, page_id, title, value["found_by"], value["hops"], section, span, value["text"], similar
    )
    return Settled(row, alignment, Placed(outcome, page_id, title, section, place, score))
