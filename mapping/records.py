"""Frozen rows of alignment: examples as their dataset has them, and where each evidence stands in a snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

EvidenceKey = tuple[int, int]
"""Output's index and the evidence's index in it; ``PARTIAL`` in the first place for record-level partial evidence."""

PARTIAL = -1


@dataclass(frozen=True, slots=True)
class PageKey:
    """How a dataset names a page: ``kind`` is ``title``, ``url``, ``page_id`` or ``qid``; ``value`` as written."""

    kind: str
    value: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of gold evidence.

    Attributes:
        page: the page it was taken from, as the dataset names it.
        text: the evidence text, as the dataset has it after its escapes are undone; None where the dataset names only
            the page (entity linking).
        meta: the span's own ``meta`` as it is released, key order kept; None for no ``meta`` key at all.
        fallback: another name of the same page, tried when the first leads nowhere.
    """

    page: PageKey
    text: str | None
    meta: dict[str, Any] | None = None
    fallback: PageKey | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """One valid output: an answer, an evidence set (all of it needed together), or both.

    ``answer`` None: no ``answer`` key. ``evidence`` empty: no ``provenance`` key.
    """

    answer: str | None
    evidence: tuple[Evidence, ...] = ()
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One record of a dataset before alignment.

    Attributes:
        example_id: id as released; unique in the file that is written.
        input: the question, claim, …; None where the released file has no ``input``.
        outputs: in released order; empty for test files without answers.
        meta: record-level ``meta``, key order kept; None for no ``meta`` key.
        file, line: base name and 1-based line (or record number in array files) it was read from.
        partial: evidence that holds part of what is needed; it is written as ``meta.partial_evidence``.
    """

    example_id: str
    input: str | None
    outputs: tuple[Output, ...]
    meta: dict[str, Any] | None
    file: str
    line: int
    partial: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ReleasedExample(Example):
    """A record that already has KILT's form.

    Attributes:
        released: the record as read. ``released["output"][i]["provenance"][j]`` is ``outputs[i].evidence[j]``; the
            record is written back over it, so that keys, their order and what is not known here stay.
            ``released["meta"]["partial_evidence"][i]`` is ``partial[i]``.
    """

    released: dict[str, Any] = field(kw_only=True)


def iter_evidence(example: Example) -> Iterator[tuple[EvidenceKey, Evidence]]:
    """Gives every evidence of an example with its key, outputs first, then partial evidence."""
    for index, output in enumerate(example.outputs):
        for place, evidence in enumerate(output.evidence):
            yield (index, place), evidence
    for place, evidence in enumerate(example.partial):
        yield (PARTIAL, place), evidence


def released_span(example: ReleasedExample, key: EvidenceKey) -> dict[str, Any]:
    """Gives the span as it was read, for a crosswalk from the old knowledge source to the new."""
    index, place = key
    spans = (
        example.released["meta"]["partial_evidence"]
        if index == PARTIAL
        else example.released["output"][index]["provenance"]
    )
    span: dict[str, Any] = spans[place]
    return span


@dataclass(frozen=True, slots=True)
class Span:
    """Where an evidence stands in a page of the knowledge source, in the numbering of the release's elements.

    ``end_element`` differs from ``start_element`` only for spans that cross elements. Offsets are half-open, in code
    points of the element's stored text. ``score`` is BLEU, 0.0 to 1.0; ``match`` is ``exact``, ``normalised``,
    ``bleu`` or ``rescued``.
    """

    start_element: int
    start_char: int
    end_element: int
    end_char: int
    score: float
    match: str


@dataclass(frozen=True, slots=True)
class Alignment:
    """What became of one evidence. Every evidence ends in exactly one outcome.

    Attributes:
        outcome: ``exact``, ``near`` (score at or above the threshold), ``weak`` (below it), ``page_only`` (no text
            was asked for and the page is there), ``page_missing``, ``page_ambiguous`` (a disambiguation page) or
            ``empty_evidence``.
        page_id, title: the page found; None when there is none.
        found_by: how the page was found: ``title``, ``redirect``, ``url``, ``page_id``, ``qid``, ``title_map`` or
            ``fuzzy``; None when it was not.
        hops: redirects followed.
        section: KILT section string of the span's place, without the trailing newline; None without a span.
        span: where the text stands; None without one.
        text: the matched text; None without a span.
        suggestions: (title, score 0-100) of similar titles for a missing page, best first; never used silently.
    """

    outcome: str
    page_id: int | None
    title: str | None
    found_by: str | None
    hops: int
    section: str | None
    span: Span | None
    text: str | None
    suggestions: tuple[tuple[str, float], ...] = field(default=())
