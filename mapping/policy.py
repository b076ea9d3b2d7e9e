"""What becomes of outputs and records whose evidence was not found, was found badly, or stands on a missing page.

One table says it for every dataset and split: ``POLICIES``. Source: section 4 of the KILT paper (outputs of dev and
test with BLEU below 0.5 on any span are dropped, train keeps all, entity linking is not filtered) and, for pages that
are missing, the published files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from mapping.places import Placed
from mapping.records import Example
from mapping.sources.base import PARTIAL, EvidenceKey, ReleasedExample, Split

THRESHOLD = 0.5

Fate = Literal["drop_output", "drop_record", "keep_answer"]
"""Of an output: it is dropped; the whole record is; or its answer is kept without provenance, if it has one."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of one dataset and split.

    Attributes:
        has_threshold: a span with a score strictly below the threshold makes its output weak.
        unplaced: fate of an output with a span that has no place: page missing or ambiguous, evidence empty, no
            match.
        weak: fate of an output that is weak.
        needs_provenance: a record is dropped when no output with provenance is left.
        skips_empty: evidence without text is left out of its set, the others stay (annotation noise).
        answer_is_title: the answer is the title of the page in the snapshot (entity linking).
        input_meta: keys of the record's ``meta`` that files without answers keep; the others give answers away.
    """

    has_threshold: bool
    unplaced: Fate = "drop_output"
    weak: Fate = "drop_output"
    needs_provenance: bool = True
    skips_empty: bool = False
    answer_is_title: bool = False
    input_meta: tuple[str, ...] = ()


def _splits(held_out: Policy, *, train: Policy | None = None) -> dict[Split, Policy]:
    """Gives one policy for dev and test; train has no threshold and is else the same where nothing is said."""
    return {"train": train or replace(held_out, has_threshold=False), "dev": held_out, "test": held_out}


_LINKING = Policy(False, answer_is_title=True, input_meta=("left_context", "mention", "right_context"))
_ANSWERS_STAY = Policy(True, unplaced="keep_answer", weak="keep_answer")

POLICIES: dict[str, dict[Split, Policy]] = {
    # A set of sentences counts only as a whole; claims without one left are dropped, in train too.
    "fever": _splits(Policy(True)),
    # One set; a sentence that does not exist is passed over, a missing page drops the question, in train too.
    "hotpotqa": _splits(Policy(True, unplaced="drop_record", weak="drop_record", skips_empty=True)),
    "aidayago2": _splits(_LINKING),
    "wned": _splits(_LINKING),
    "cweb": _splits(_LINKING),
    "trex": _splits(Policy(True, input_meta=("subj_aliases", "sub_surface"))),
    # Train may keep answers of pages that are gone.
    "structured_zeroshot": _splits(
        Policy(True, input_meta=("template_questions",)),
        train=Policy(False, "keep_answer", needs_provenance=False, input_meta=("template_questions",)),
    ),
    # Short answers that are not found stay as answers; train keeps records without any provenance.
    "nq": _splits(_ANSWERS_STAY, train=replace(_ANSWERS_STAY, has_threshold=False, needs_provenance=False)),
    # Valid as soon as one alias is found; the other aliases stay as answers.
    "triviaqa": _splits(_ANSWERS_STAY),
    # Answers come without provenance and train has none at all.
    "eli5": _splits(_ANSWERS_STAY, train=replace(_ANSWERS_STAY, has_threshold=False, needs_provenance=False)),
    "wow": _splits(Policy(True)),
    # Anyone's own data: as the paper filters, and train keeps its answers.
    "jsonl": _splits(Policy(True), train=Policy(False, "keep_answer", needs_provenance=False)),
    "kilt": _splits(Policy(True), train=Policy(False, "keep_answer", needs_provenance=False)),
}
"""Dataset's file stem -> split -> policy. ``kilt`` is for KILT files of no dataset named here."""


def dataset_named(file: str) -> str:
    """Gives the dataset that the name of a KILT file begins with, ``kilt`` for none that is known.

    >>> dataset_named("structured_zeroshot-dev-kilt.jsonl")
    'structured_zeroshot'
    """
    stem = file.partition("-")[0]
    return stem if stem in POLICIES else "kilt"


class OutputFate(NamedTuple):
    """What becomes of one output.

    Attributes:
        form: ``whole``, ``answer_only`` or ``dropped``.
        reason: why it is not whole; None where it is.
        kept: indexes of the evidence that is written.
    """

    form: Literal["whole", "answer_only", "dropped"]
    reason: str | None
    kept: tuple[int, ...]


class Decision(NamedTuple):
    """What becomes of a record.

    Attributes:
        reason: why it is dropped; None where it is written.
        outputs: one fate an output.
        partial: indexes of the partial evidence that is written: all that has a place and is not weak.
    """

    reason: str | None
    outputs: tuple[OutputFate, ...]
    partial: tuple[int, ...] = ()


REASONS: dict[str, str] = {
    "answer_kept_elsewhere": "another output that is kept has the same answer",
    "below_threshold": "a span's score is below the threshold",
    "empty_evidence": "an evidence has no text",
    "no_kilt_paragraph": "the best span is in an element that has no paragraph in KILT's form",
    "no_match": "not one token of an evidence is in its page",
    "no_provenance": "the record never had any provenance, and the split needs it",
    "page_ambiguous": "a page is a disambiguation page",
    "page_missing": "a page is not in the snapshot",
}
"""Why outputs and records are dropped: reason -> meaning."""


def decide(
    example: Example, placed: Mapping[EvidenceKey, Placed], policy: Policy, *, threshold: float = THRESHOLD
) -> Decision:
    """Gives what becomes of a record and each of its outputs.

    A record without outputs (a test file without answers) is written as it is. A dropped record's reason is
    ``below_threshold`` where an output would have stood with a lower threshold, else the reason of its first output
    that was lost: so the share that the threshold drops compares with the paper's.

    Args:
        example: the record.
        placed: where each of its evidences stands, by output and place in it.
        policy: of its dataset and split.
        threshold: a span's lowest score that is kept.
    """
    if not example.outputs:
        return Decision(None, (), _partial(example, placed, policy, threshold))
    fates: list[OutputFate] = []
    reason: str | None = None
    for index, output in enumerate(example.outputs):
        places = [placed[index, place] for place in range(len(output.evidence))]
        fault, kept = _fault(places, policy, threshold)
        if fault is None:
            fates.append(OutputFate("whole", None, kept))
            continue
        fate = policy.weak if fault == "below_threshold" else policy.unplaced
        if fate == "drop_record" and reason is None:
            reason = fault
        stays = fate == "keep_answer" and output.answer is not None
        fates.append(OutputFate("answer_only" if stays else "dropped", fault, ()))
    fates = _without_repeats(example, fates)
    if reason is None and not any(fate.kept for fate in fates):
        reason = _why_nothing_is_left(fates, policy)
    return Decision(reason, tuple(fates), _partial(example, placed, policy, threshold))


def _partial(
    example: Example, placed: Mapping[EvidenceKey, Placed], policy: Policy, threshold: float
) -> tuple[int, ...]:
    if not isinstance(example, ReleasedExample):
        return ()
    each = range(len(example.partial))
    return tuple(one for one in each if _fault([placed[PARTIAL, one]], policy, threshold)[0] is None)


def _fault(places: list[Placed], policy: Policy, threshold: float) -> tuple[str | None, tuple[int, ...]]:
    """Gives why an evidence set does not stand, None where it does, and the evidence that is written."""
    faults: list[str] = []
    kept: list[int] = []
    skipped: list[str] = []
    for index, place in enumerate(places):
        fault = place.fault
        if fault == "empty_evidence" and policy.skips_empty:
            skipped.append(fault)
        elif fault is not None:
            faults.append(fault)
        elif policy.has_threshold and place.score is not None and place.score < threshold:
            faults.append("below_threshold")
        else:
            kept.append(index)
    if not kept and not faults:
        faults = skipped
    # What has no place at all is the stronger fault.
    faults.sort(key=lambda fault: fault == "below_threshold")
    return (faults[0], ()) if faults else (None, tuple(kept))


def _without_repeats(example: Example, fates: list[OutputFate]) -> list[OutputFate]:
    """Drops answers that lost their provenance where another output says the same."""
    said = {output.answer for output, fate in zip(example.outputs, fates, strict=True) if fate.form == "whole"}
    result = []
    for output, fate in zip(example.outputs, fates, strict=True):
        if fate.form == "answer_only":
            if output.answer in said:
                fate = OutputFate("dropped", "answer_kept_elsewhere", ())
            said.add(output.answer)
        result.append(fate)
    return result


def _why_nothing_is_left(fates: list[OutputFate], policy: Policy) -> str | None:
    reasons = [fate.reason for fate in fates if fate.reason is not None]
    if not policy.needs_provenance and any(fate.form != "dropped" for fate in fates):
        return None
    if "below_threshold" in reasons:
        return "below_threshold"
    return reasons[0] if reasons else "no_provenance"
