"""Examples as their dataset has them, and the row that each piece of evidence is from its dataset to its outcome."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from kbsource.rows import Columns, Int32, Row

OUTCOMES: Mapping[str, str] = {
    "exact": "the text stands in the page, case and punctuation apart",
    "near": "the text that is most like it reaches the threshold",
    "weak": "the text that is most like it stays below the threshold",
    "page_only": "only the page was asked for, and it is there",
    "page_missing": "the page is not in the snapshot",
    "page_ambiguous": "the page is a disambiguation page",
    "empty_evidence": "the evidence has no text",
    "search_timeout": "the search took too long twice",
    "search_crash": "the search ended its process twice",
    "search_error": "the search failed twice with an error",
}
"""Everything that can become of an evidence, with its meaning; each ends in exactly one."""
MISSED = frozenset(OUTCOMES) - {"exact", "near", "weak", "page_only"}
"""Those of them that lead to nothing that could be named."""
SCORED = "scored"
"""What the search says of an evidence whose words it compared; ``mapping.decide`` makes ``near`` or ``weak`` of it."""
NOWHERE = -1
"""Position of a page that cannot be asked for."""

EvidenceKey = tuple[int, int]
"""Output's index and the evidence's index in it; ``PARTIAL`` in the first place for record-level partial evidence."""

PARTIAL = -1


class PageKey(Row):
    """How a dataset names a page."""

    kind: Annotated[str, "how the dataset names the page: title | url | page_id | qid"]
    value: Annotated[str, "that name as written"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of gold evidence."""

    page: PageKey  # the page it was taken from, as the dataset names it
    text: str | None
    """The evidence text, as the dataset has it after its escapes are undone; None where the dataset names only the page
    (entity linking)."""
    meta: dict[str, Any] | None = None
    """The span's own ``meta`` as it is released, key order kept; None for no ``meta`` key at all."""
    fallback: PageKey | None = None  # another name of the same page, tried when the first leads nowhere


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
    """One record of a dataset before alignment."""

    example_id: str  # id as released; unique in the file that is written
    input: str | None  # the question, claim, …; None where the released file has no ``input``
    outputs: tuple[Output, ...]  # in released order; empty for test files without answers
    meta: dict[str, Any] | None  # record-level ``meta``, key order kept; None for no ``meta`` key
    # base name and 1-based line (or record number in array files) it was read from
    file: str
    line: int
    partial: tuple[Evidence, ...] = ()
    """Evidence that holds part of what is needed; it is written as ``meta.partial_evidence``."""


@dataclass(frozen=True, slots=True)
class ReleasedExample(Example):
    """A record that already has KILT's form."""

    released: dict[str, Any] = field(kw_only=True)
    """The record as read. ``released["output"][i]["provenance"][j]`` is ``outputs[i].evidence[j]``; the record is
    written back over it, so that keys, their order and what is not known here stay.
    ``released["meta"]["partial_evidence"][i]`` is ``partial[i]``."""


def iter_evidence(example: Example) -> Iterator[tuple[EvidenceKey, Evidence]]:
    """Every evidence of an example with its key, outputs first, then partial evidence."""
    for index, output in enumerate(example.outputs):
        for place, evidence in enumerate(output.evidence):
            yield (index, place), evidence
    for place, evidence in enumerate(example.partial):
        yield (PARTIAL, place), evidence


def released_span(example: ReleasedExample, key: EvidenceKey) -> dict[str, Any]:
    """The span as it was read, for a crosswalk from the old knowledge source to the new."""
    index, place = key
    spans = (
        example.released["meta"]["partial_evidence"]
        if index == PARTIAL
        else example.released["output"][index]["provenance"]
    )
    span: dict[str, Any] = spans[place]
    return span


class Span(Row):
    """Where an evidence stands in a page, in the numbering of the release's elements, half-open.

    ``end_element`` differs from ``start_element`` only for spans that cross elements.
    """

    start_element: Annotated[Int32, "element of the release where the span begins"]
    start_char: Annotated[Int32, "first code point in that element's text"]
    end_element: Annotated[Int32, "element where it ends"]
    end_char: Annotated[Int32, "one past the last code point in that element's text"]
    score: Annotated[float, "BLEU, 0.0 to 1.0"]
    match: Annotated[str, "exact | normalised | bleu | rescued"]


class Place(Row):
    """A span in the numbering of the file that is written, half-open."""

    start_paragraph_id: Annotated[Int32, "paragraph in the numbering of the file that is written"]
    start_character: Annotated[Int32, "first code point in that paragraph"]
    end_paragraph_id: Annotated[Int32, "paragraph where the span ends"]
    end_character: Annotated[Int32, "one past the last code point in that paragraph"]


class Suggestion(Row):
    """A title that is like one that is missing."""

    title: Annotated[str, "title that leads to an article"]
    score: Annotated[float, "likeness, 0 to 100"]


class Question(Row):
    """A text of a page that a model judges a hypothesis by, and the span that it stands for where it is another one
    than that which was found; ``core`` is what matters in it."""

    premise: str
    core_start: Int32
    core_end: Int32
    section: str | None = None
    span: Annotated[Span | None, Columns()] = None
    text: str | None = None
    place: Annotated[Place | None, Columns()] = None


class Alignment(Row):
    """One piece of evidence on its way from its dataset to what became of it; each step fills in what it knows.

    The reader knows the columns up to ``expects``, the resolver those of the page, the search the span with its score,
    the model its verdict, and what is decided last is whether that is enough: ``outcome`` and ``is_written``.
    """

    page: Annotated[PageKey, Columns("page_")]
    evidence_text: Annotated[str | None, "text that was looked for; null where only the page is"]
    part: Int32 = 0
    """With ``chunk`` the key of the chunk of its record."""
    chunk: Int32 = 0
    ordinal: Annotated[int, "number of the record among those that could be read, from 0"] = 0
    example_id: Annotated[str, "id of the record"] = ""
    output: Annotated[Int32, "number of the output in the record as read, from 0; -1 for partial evidence"] = 0
    evidence: Annotated[Int32, "number of the evidence in the output, from 0"] = 0
    file: Annotated[str, "base name of the input file"] = ""
    line: Annotated[int, "line of that file, or number of the element in an array"] = 0
    fallback: Annotated[PageKey | None, Columns("fallback_")] = None
    hypothesis: Annotated[str | None, "sentence that a model judged the span by"] = None
    hypothesis_kind: Annotated[str | None, "what it was made from: claim | answer | triple | evidence"] = None
    expects: Annotated[str | None, "what the dataset says of it: entailment | contradiction"] = None
    position: int = NOWHERE
    """Number of the page in the release; below 0 for none, then equal titles have equal numbers."""
    asked: str | None = None
    """Title that similar ones are looked up for, see ``mapping.search.resolve.Resolved``."""
    page_id: Annotated[int | None, "the page; null without one"] = None
    title: Annotated[str | None, "its title"] = None
    found_by: Annotated[str | None, "title | redirect | url | page_id | qid | title_map | fuzzy"] = None
    hops: Annotated[Int32, "redirects followed"] = 0
    outcome: Annotated[str, "what became of it"] = ""
    section: Annotated[str | None, "KILT's name of the section, without newline"] = None
    span: Annotated[Span | None, Columns()] = None
    text: Annotated[str | None, "the text of the span"] = None
    place: Annotated[Place | None, Columns()] = None
    suggestions: Annotated[
        tuple[Suggestion, ...], "similar titles for a missing page, best first; never used unless asked for"
    ] = ()
    questions: tuple[Question, ...] = ()
    entailment: Annotated[float | None, "probability that the text says it; null where not judged"] = None
    neutral: Annotated[float | None, "that it leaves it open; null where a model does not tell"] = None
    contradiction: Annotated[float | None, "that it contradicts it; null where a model does not tell"] = None
    refusal: Annotated[str | None, "why it was not judged"] = None
    is_rescued: Annotated[bool, "the span is a sentence that the model chose"] = False
    is_accepted: bool | None = None
    """Whether the rule of --accept takes the span; None where the threshold decides."""
    is_written: Annotated[bool, "the span stands in the KILT file"] = False

    @property
    def key(self) -> EvidenceKey:
        """Its place in its record."""
        return self.output, self.evidence

    @property
    def score(self) -> float | None:
        """BLEU of its span; None without one."""
        return None if self.span is None else self.span.score


class OutputOutcome(Row):
    """What became of one output of a record."""

    form: Annotated[str, "whole | answer_only | dropped"]
    reason: Annotated[str | None, "why it is not whole; null where it is"]
    n_spans: Annotated[Int32, "spans in the file"]


class RecordFate(Row):
    """What became of a record."""

    ordinal: Annotated[int | None, "its number in alignments and misses; null where it is no example"]
    example_id: Annotated[str | None, "its id; of a merged record that of the whole; null for none"]
    file: Annotated[str, "base name of the input file"]
    line: Annotated[int, "line of that file, or number of the element in an array"]
    outcome: Annotated[str, "written | dropped | excluded | rejected | merged"]
    reason: Annotated[str | None, "why it is not written; null where it is, and for a merged one"] = None
    score: Annotated[float | None, "highest score of an evidence set: that of its worst span"] = None
    n_outputs: Annotated[Int32 | None, "outputs as read; null where it is no example"] = None
    n_outputs_written: Annotated[Int32 | None, "those of them that are in the file; null where it is no example"] = None
    n_evidences: Annotated[
        Int32 | None, "pieces of evidence as read, partial evidence too; null where it is no example"
    ] = None
    n_evidences_written: Annotated[Int32 | None, "those of them that are in the file; null where it is no example"] = (
        None
    )
    n_spans: Annotated[Int32 | None, "spans in the file, partial evidence too; null where it is not written"] = None
    n_answers: Annotated[Int32 | None, "distinct answers in the file; null where it is not written"] = None
    outputs: Annotated[
        tuple[OutputOutcome, ...] | None, "what became of each output as read; null where it is not written"
    ] = None


def example_to_json(example: Example) -> str:
    """An example as JSON text for between the steps of a job: the order of keys and all digits stay."""
    return json.dumps(msgspec.to_builtins(example), ensure_ascii=False, separators=(",", ":"))


def example_from_json(text: str) -> Example:
    """What ``example_to_json`` took."""
    value = json.loads(text)
    return msgspec.convert(value, ReleasedExample if "released" in value else Example)
