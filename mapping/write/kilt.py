"""Writes aligned examples in KILT's format: one JSON object per line, with the fields in the order of the published
files.

As in the published files, the keys of records, outputs and spans have a fixed order, lines are written by
``json.dumps`` with its defaults (a space after comma and colon, ASCII only), ids are strings, and ``section`` ends in
the newline of its heading. Source: the published files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict

from kbsource.kilt import LEAD
from mapping.decide import Decision
from mapping.records import PARTIAL, Alignment, Evidence, EvidenceKey, Example, Place, ReleasedExample
from mapping.sources.source import EVIDENCE_SPAN, PARTIAL_EVIDENCE, Policy, Split

# Keys that the alignment sets in a span. The values of these keys in the released record are replaced.
_SPAN_KEYS = ("wikipedia_id", "title", *Place.__struct_fields__, "bleu_score", "section")
# Keys of the published files for a passage that annotators chose, in order.
_PARAGRAPH_KEYS = ("wikipedia_id", "title", "section", "start_paragraph_id", "end_paragraph_id")
# Keys, in order, of a span with characters and without ``meta``; spans of T-REx have the same keys.
_SECTION_THIRD = ("wikipedia_id", "title", "section", *Place.__struct_fields__, "bleu_score")
ID_FILES = frozenset({"triviaqa"})
"""Datasets whose questions may not be redistributed by everyone. Their files are also written without inputs."""


def file_name(stem: str, split: Split, *, with_answers: bool = False, with_input: bool = True) -> str:
    """Returns the published name of a split's file. The test split also has a file ``with_answers``, for holders of its
    labels.

    >>> file_name("fever", "test")
    'fever-test_without_answers-kilt.jsonl'
    >>> file_name("triviaqa", "test", with_answers=True, with_input=False)
    'triviaqa-test_id-kilt.jsonl'
    """
    bare = "_without_answers" if split == "test" and not with_answers else ""
    return f"{stem}-{split}{'' if with_input else '_id'}{bare}-kilt.jsonl"


def kilt_line(record: Mapping[str, Any]) -> bytes:
    """Returns a record as a line of a KILT file."""
    return json.dumps(record).encode("ascii") + b"\n"


def without_input(line: bytes) -> bytes:
    """Returns a line of a KILT file without the input of the record."""
    return kilt_line({key: value for key, value in json.loads(line).items() if key != "input"})


def kilt_example(
    example: Example,
    found: Mapping[EvidenceKey, Alignment],
    decision: Decision,
    policy: Policy,
    *,
    strips_section: bool = False,
) -> dict[str, Any]:
    """Returns the KILT record of an example that is written, with its outputs.

    With ``strips_section``, ``section`` has no newline at its end. An example that was read from a KILT file keeps its
    keys, their order, and values that this project does not know.
    """
    newline = "" if strips_section else "\n"
    outputs = [
        _output(example, index, decision, found, policy, newline) for index in _kept_outputs(example, decision, policy)
    ]
    if isinstance(example, ReleasedExample):
        record = dict(example.released)
        if outputs:
            record["output"] = outputs
        if example.partial:
            record["meta"] = _moved_meta(example, found, decision, newline)
            if not record["meta"]:
                del record["meta"]
        return record
    record = {"id": example.example_id}
    if example.input is not None:
        record["input"] = example.input
    if outputs:
        record["output"] = outputs
    meta = example.meta
    if decision.partial:
        spans = [
            _span(
                example.partial[index],
                found[PARTIAL, index],
                policy,
                newline,
                is_by_paragraph=(PARTIAL, index) in decision.by_paragraph,
            )
            for index in decision.partial
        ]
        meta = {**(meta or {}), PARTIAL_EVIDENCE: spans}
    if meta is not None:
        record["meta"] = meta
    return record


def _kept_outputs(example: Example, decision: Decision, policy: Policy) -> list[int]:
    """Returns the indexes of the outputs that are written, in order."""
    kept = [index for index, fate in enumerate(decision.outputs) if fate.form != "dropped"]
    if policy.found_first:
        kept.sort(key=lambda index: (example.outputs[index].answer is None, not decision.outputs[index].kept))
    return kept


def without_answers(record: Mapping[str, Any], policy: Policy) -> dict[str, Any]:
    """Returns a record as test files contain it: without outputs, and in ``meta`` only with values that do not reveal
    an answer.

    A record without outputs was published that way and stays unchanged.
    """
    if "output" not in record:
        return dict(record)
    shown = {key: value for key, value in record.items() if key not in ("output", "meta")}
    meta = {key: value for key, value in (record.get("meta") or {}).items() if key in policy.input_meta}
    if meta:
        shown["meta"] = meta
    return shown


def _output(
    example: Example,
    index: int,
    decision: Decision,
    found: Mapping[EvidenceKey, Alignment],
    policy: Policy,
    newline: str,
) -> dict[str, Any]:
    output, fate = example.outputs[index], decision.outputs[index]
    answer = output.answer
    if policy.answer_is_title and fate.kept:
        answer = found[index, fate.kept[0]].title
    released: dict[str, Any] = {}
    if isinstance(example, ReleasedExample):
        released = example.released["output"][index]
    spans = []
    for place in fate.kept:
        where, is_by_paragraph = found[index, place], (index, place) in decision.by_paragraph
        if released:
            old = released["provenance"][place]
            spans.append(_moved_span(old, where, newline, is_by_paragraph=is_by_paragraph))
        else:
            spans.append(_span(output.evidence[place], where, policy, newline, is_by_paragraph=is_by_paragraph))
    if released:
        result = dict(released)
        if "answer" in released:
            result["answer"] = answer
        if fate.form == "answer_only":
            result.pop("provenance", None)
        elif output.evidence:
            result["provenance"] = spans
        return result
    result = {}
    if answer is not None:
        result["answer"] = answer
    if spans:
        result["provenance"] = spans
    if output.meta is not None:
        result["meta"] = output.meta
    return result


def _span(
    evidence: Evidence, where: Alignment, policy: Policy, newline: str, *, is_by_paragraph: bool
) -> dict[str, Any]:
    values = _values(where, newline)
    meta = {} if evidence.meta is None else {"meta": evidence.meta}
    if is_by_paragraph:
        return {key: values[key] for key in _PARAGRAPH_KEYS} | meta
    if policy.has_section_third or (policy.highlights is not None and EVIDENCE_SPAN in (evidence.meta or {})):
        return {key: values[key] for key in _SECTION_THIRD if key in values}
    # The published order: meta before section.
    return (
        {key: values[key] for key in _SPAN_KEYS[:-1] if key in values}
        | meta
        | ({"section": values["section"]} if "section" in values else {})
    )


def _moved_span(
    released: Mapping[str, Any], where: Alignment, newline: str, *, is_by_paragraph: bool
) -> dict[str, Any]:
    """Returns a span of the released record with its location in the new release."""
    values = _values(where, newline)
    if is_by_paragraph:
        values = {key: values[key] for key in _PARAGRAPH_KEYS}
    moved = {}
    for key, value in released.items():
        if key not in _SPAN_KEYS:
            moved[key] = value
        elif key in values:
            moved[key] = values[key]
    return moved


def _values(where: Alignment, newline: str) -> dict[str, Any]:
    values: dict[str, Any] = {"wikipedia_id": str(where.page_id), "title": where.title}
    if where.place is not None:
        values |= asdict(where.place)
        values["bleu_score"] = where.score
        values["section"] = section_value(where.section or LEAD, newline)
    return values


def section_value(section: str, newline: str) -> str:
    """Returns the name of a section as it is written in a span."""
    # KILT's name for the lead section is not a paragraph of the page, so it does not end in a newline.
    return section if section == LEAD else section + newline


def _moved_meta(
    example: ReleasedExample, found: Mapping[EvidenceKey, Alignment], decision: Decision, newline: str
) -> dict[str, Any]:
    meta = dict(example.meta or {})
    spans = meta.pop(PARTIAL_EVIDENCE)
    moved = [
        _moved_span(
            spans[index], found[PARTIAL, index], newline, is_by_paragraph=(PARTIAL, index) in decision.by_paragraph
        )
        for index in decision.partial
    ]
    return {key: moved if key == PARTIAL_EVIDENCE else meta[key] for key in example.meta or {} if moved or key in meta}
