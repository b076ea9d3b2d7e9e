"""A dataset's examples before alignment, and the row that follows each piece of evidence from its dataset to its
outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from kbsource.errors import DataError
from kbsource.rows import Columns, Int32, Row

OUTCOMES: Mapping[str, str] = {
    "exact": "the page contains the text, apart from case and punctuation",
    "near": "the most similar text reaches the threshold",
    "weak": "the most similar text stays below the threshold",
    "page_only": "the dataset names only a page, and the page exists",
    "page_missing": "the page is not in the snapshot",
    "page_ambiguous": "the page is a disambiguation page",
    "empty_evidence": "the evidence has no text",
    "search_timeout": "the search took too long twice",
    "search_crash": "the search ended its process twice",
    "search_error": "the search failed twice with an error",
}
"""Every outcome of a piece of evidence, with its meaning. Each piece of evidence ends in exactly one."""
MISSED = frozenset(OUTCOMES) - {"exact", "near", "weak", "page_only"}
"""The outcomes of evidence without a page or a span."""
SCORED = "scored"
"""Outcome that the search assigns when it only scored the evidence's words; ``mapping.decide`` turns it into ``near``
or ``weak``."""
NOWHERE = -1
"""Stands for the position of a page where there is no page to search."""

EvidenceKey = tuple[int, int]
"""Index of the output and index of the evidence in it. The first is ``PARTIAL`` for record-level partial evidence."""

PARTIAL = -1


class PageKey(Row):
    """The name that a dataset uses for a page."""

    kind: Annotated[str, "how the dataset names the page: title | url | page_id | qid"]
    value: Annotated[str, "the name as written in the dataset"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of gold evidence."""

    page: PageKey  # the page it was taken from, as the dataset names it
    text: str | None
    """The evidence text as the dataset has it, with escapes undone. None where the dataset names only the page (entity
    linking)."""
    meta: dict[str, Any] | None = None
    """The span's own ``meta`` as released, in its key order. None if there is no ``meta`` key."""
    fallback: PageKey | None = None  # another name of the same page, tried when the first does not resolve


@dataclass(frozen=True, slots=True)
class Output:
    """One valid output: an answer, a set of evidence (all of it needed together), or both.

    Without an ``answer`` key, ``answer`` is None; without a ``provenance`` key, ``evidence`` is empty.
    """

    answer: str | None
    evidence: tuple[Evidence, ...] = ()
    meta: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """One record of a dataset before alignment."""

    example_id: str  # id as released; unique in the file that is written
    input: str | None  # the question, claim, …; None where the released file has no ``input``
    outputs: tuple[Output, ...]  # in released order; empty for test files without answers
    meta: dict[str, Any] | None  # record-level ``meta`` in its key order; None if there is no ``meta`` key
    # base name and 1-based line (or record number in array files) it was read from
    file: str
    line: int
    partial: tuple[Evidence, ...] = ()
    """Evidence that contains only a part of the needed information. It is written as ``meta.partial_evidence``."""


@dataclass(frozen=True, slots=True)
class ReleasedExample(Example):
    """A record that already has KILT's form."""

    released: dict[str, Any] = field(kw_only=True)
    """The record as read. ``released["output"][i]["provenance"][j]`` is ``outputs[i].evidence[j]``, and
    ``released["meta"]["partial_evidence"][i]`` is ``partial[i]``. The new record is written over this one, so keys,
    their order and unknown fields are preserved."""


def iter_evidence(example: Example) -> Iterator[tuple[EvidenceKey, Evidence]]:
    """Iterates over every piece of evidence of an example with its key: outputs first, then partial evidence."""
    for index, output in enumerate(example.outputs):
        for place, evidence in enumerate(output.evidence):
            yield (index, place), evidence
    for place, evidence in enumerate(example.partial):
        yield (PARTIAL, place), evidence


def released_span(example: ReleasedExample, key: EvidenceKey) -> dict[str, Any]:
    """Returns the span as it was read, for a crosswalk from the old knowledge source to the new one."""
    index, place = key
    spans = (
        example.released["meta"]["partial_evidence"]
        if index == PARTIAL
        else example.released["output"][index]["provenance"]
    )
    span: dict[str, Any] = spans[place]
    return span


class Span(Row):
    """The location of a piece of evidence in a page: half-open, in the numbering of the release's elements.

    ``end_element`` differs from ``start_element`` only for spans that cross elements.
    """

    start_element: Annotated[Int32, "element of the release where the span starts"]
    start_char: Annotated[Int32, "first code point of the span in the element's text"]
    end_element: Annotated[Int32, "element where the span ends"]
    end_char: Annotated[Int32, "end of the span in the element's text, one past its last code point"]
    score: Annotated[float, "BLEU, 0.0 to 1.0"]
    match: Annotated[str, "exact | normalised | bleu | model"]


class Place(Row):
    """The location of a span in the numbering of the output file, half-open."""

    start_paragraph_id: Annotated[Int32, "paragraph in the numbering of the output file"]
    start_character: Annotated[Int32, "first code point of the span in the paragraph"]
    end_paragraph_id: Annotated[Int32, "paragraph where the span ends"]
    end_character: Annotated[Int32, "end of the span in the paragraph, one past its last code point"]


class Suggestion(Row):
    """An existing title that is similar to a missing one."""

    title: Annotated[str, "title that resolves to an article"]
    score: Annotated[float, "similarity, 0 to 100"]


class EntailmentQuestion(Row):
    """A passage of a page (``premise``), and a hypothesis: a model judges whether the passage entails it.

    ``core`` is the relevant part of the passage. ``span`` is set if the passage belongs to another span than the one
    that the search found."""

    premise: str
    core_start: Int32
    core_end: Int32
    section: str | None = None
    span: Annotated[Span | None, Columns()] = None
    text: str | None = None
    place: Annotated[Place | None, Columns()] = None


class Alignment(Row):
    """One piece of evidence, with its page, span and outcome in the release. Each step of alignment fills in columns.

    Columns with a meaning are columns of the table ``alignments``, in this order, unless ``mapping.schema`` lists them
    otherwise.

    The reader of the dataset fills in the columns up to ``expected_verdict``, the resolver the columns of the page, the
    search the span with its score, and the model its verdict. The last step decides whether the evidence is written,
    and sets ``outcome`` and ``is_written``.
    """

    page: Annotated[PageKey, Columns("page_")]
    evidence_text: Annotated[str | None, "text that was searched for; null if the dataset names only a page"]
    part: Int32 = 0
    """Together with ``chunk``, the key of the record's chunk."""
    chunk: Int32 = 0
    ordinal: Annotated[int, "number of the record among the readable records, from 0"] = 0
    example_id: Annotated[str, "id of the record"] = ""
    output: Annotated[Int32, "number of the output in the record as read, from 0; -1 for partial evidence"] = 0
    evidence: Annotated[Int32, "number of the evidence in its output, from 0"] = 0
    file: Annotated[str, "base name of the input file"] = ""
    line: Annotated[int, "line of the file, or number of the element in an array"] = 0
    fallback: Annotated[PageKey | None, Columns("fallback_")] = None
    hypothesis: Annotated[str | None, "sentence that a model judged the span against"] = None
    hypothesis_kind: Annotated[str | None, "source of the hypothesis: claim | answer | triple | evidence"] = None
    expected_verdict: Annotated[str | None, "verdict that the dataset expected_verdict: entailment | contradiction"] = (
        None
    )
    position: int = NOWHERE
    """Number of the page in the release. Below 0 if there is no page; equal titles then have equal numbers."""
    requested: str | None = None
    """Title to look up similar titles for, see ``mapping.search.resolve.Resolved``."""
    page_id: Annotated[int | None, "page id; null if the page is missing"] = None
    title: Annotated[str | None, "title of the page"] = None
    found_by: Annotated[str | None, "title | redirect | url | page_id | qid | title_map | fuzzy"] = None
    hops: Annotated[Int32, "redirects followed"] = 0
    outcome: Annotated[str, "outcome of the evidence"] = ""
    section: Annotated[str | None, "KILT's name for the section, without newline"] = None
    span: Annotated[Span | None, Columns()] = None
    text: Annotated[str | None, "the text of the span"] = None
    place: Annotated[Place | None, Columns()] = None
    suggestions: Annotated[
        tuple[Suggestion, ...], "similar titles for a missing page, best first; the alignment uses them only on request"
    ] = ()
    questions: tuple[EntailmentQuestion, ...] = ()
    entailment: Annotated[float | None, "probability that the text entails the hypothesis; null if not judged"] = None
    neutral: Annotated[
        float | None,
        "probability that the text neither entails nor contradicts the hypothesis; null where the model does not "
        "report it",
    ] = None
    contradiction: Annotated[
        float | None, "probability that the text contradicts the hypothesis; null where the model does not report it"
    ] = None
    unjudged_reason: Annotated[str | None, "why it was not judged"] = None
    is_chosen_by_model: Annotated[bool, "the span is a sentence that the model chose"] = False
    is_accepted: bool | None = None
    """True if the rule of --accept accepts the span; None where the threshold decides."""
    is_written: Annotated[bool, "the span is in the KILT file"] = False

    @property
    def key(self) -> EvidenceKey:
        """The position of the evidence in its record."""
        return self.output, self.evidence

    @property
    def score(self) -> float | None:
        """BLEU of its span; None if there is no span."""
        return None if self.span is None else self.span.score


class OutputOutcome(Row):
    """The outcome of an output of a record."""

    form: Annotated[str, "whole | answer_only | dropped"]
    reason: Annotated[str | None, "reason why the output is not whole; null if it is whole"]
    n_spans: Annotated[Int32, "number of spans in the file"]


class RecordFate(Row):
    """The outcome of a record."""

    ordinal: Annotated[
        int | None,
        "number of the record in alignments and misses; null if the record is not an example",
    ]
    example_id: Annotated[
        str | None,
        "id of the record; for a merged record, the id of the record into which it was merged; null without an id",
    ]
    file: Annotated[str, "base name of the input file"]
    line: Annotated[int, "line of the file, or number of the element in an array"]
    outcome: Annotated[str, "written | dropped | excluded | rejected | merged"]
    reason: Annotated[str | None, "reason why the record is not written; null for written and merged records"] = None
    score: Annotated[float | None, "score of the best evidence set, which is the score of the worst span in it"] = None
    n_outputs: Annotated[Int32 | None, "number of outputs as read; null if the record is not an example"] = None
    n_outputs_written: Annotated[
        Int32 | None,
        "number of outputs in the written file; null if the record is not an example",
    ] = None
    n_evidences: Annotated[
        Int32 | None,
        "number of pieces of evidence as read, partial evidence included; null if the record is not an example",
    ] = None
    n_evidences_written: Annotated[
        Int32 | None, "number of pieces of evidence in the written file; null if the record is not an example"
    ] = None
    n_spans: Annotated[
        Int32 | None,
        "number of spans in the file, including partial evidence; null unless the record is written",
    ] = None
    n_answers: Annotated[
        Int32 | None,
        "number of distinct answers in the file; null unless the record is written",
    ] = None
    outputs: Annotated[
        tuple[OutputOutcome, ...] | None, "outcome of each output as read; null unless the record is written"
    ] = None
    input: Annotated[
        str | None, "question or claim of a dropped record; null for other records, as the written file has theirs"
    ] = None


def example_to_json(example: Example) -> str:
    """Returns an example as JSON, to be passed between steps of a job. The order of keys and all digits are preserved.

    Its evidence is passed in rows of ``Alignment``; of evidence, the JSON contains only ``meta``.
    """
    value = msgspec.to_builtins(example)
    for output in value["outputs"]:
        output["evidence"] = [evidence["meta"] for evidence in output["evidence"]]
    value["partial"] = [evidence["meta"] for evidence in value["partial"]]
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def example_from_json(text: str, rows: Mapping[EvidenceKey, Alignment]) -> Example:
    """Reads an example written by ``example_to_json``, with its evidence from rows.

    Raises:
        DataError: a piece of evidence has no row, so the job is broken.
    """
    value = json.loads(text)

    def evidence(index: int, metas: Sequence[dict[str, Any] | None]) -> tuple[Evidence, ...]:
        if missing := [place for place in range(len(metas)) if (index, place) not in rows]:
            raise DataError(
                f"{value['file']}, line {value['line']}: evidence {index}, {missing[0]} has no outcome. This is a bug; "
                f"please report it."
            )
        found = (rows[index, place] for place in range(len(metas)))
        return tuple(
            Evidence(row.page, row.evidence_text, meta, row.fallback) for row, meta in zip(found, metas, strict=True)
        )

    value["outputs"] = tuple(
        Output(output["answer"], evidence(index, output["evidence"]), output["meta"])
        for index, output in enumerate(value["outputs"])
    )
    value["partial"] = evidence(PARTIAL, value["partial"])
    return ReleasedExample(**value) if "released" in value else Example(**value)


def input_from_json(text: str) -> str | None:
    """Returns the input of an example written by ``example_to_json``."""
    found: str | None = json.loads(text)["input"]
    return found
