"""What becomes of outputs and records whose evidence was not found, was found badly, or stands on a missing page.

One table says it for every dataset and split: ``POLICIES``. Source: section 4 of the KILT paper (outputs of dev and
test with BLEU below 0.5 on any span are dropped, entity linking is not filtered) and the published files: in train
every record stays, and an evidence set with a span that is weak or has no place loses its provenance and keeps its
answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, NamedTuple

from mapping.records import PARTIAL, EvidenceKey, Example, ReleasedExample, iter_evidence
from mapping.search.numbering import Placed
from mapping.sources.reading.base import EVIDENCE_SPAN, Split

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
        keeps_bare: but not one that never had any provenance.
        needs_page: a record is dropped when no page of its evidence is there, even if it needs no provenance.
        answer_is_title: the answer is the title of the page in the snapshot (entity linking).
        input_meta: keys of the record's ``meta`` that files without answers keep; the others give answers away.
        highlights: how evidence that annotators highlighted (``meta.evidence_span``) is written. ``offsets``: like
            any other, or with its paragraphs alone when its score is below the threshold and not 0; partial
            evidence always with its paragraphs alone. ``paragraphs``: all with their paragraphs alone. None: like any
            other. Records that were read from a KILT file keep the form they have.
        prefers_exact: outputs are many names of one answer, each looked for on each page. Where one is found word for
            word, others that are not have no provenance; what one name has on one page of two titles counts once.
            Records that were read from a KILT file keep what they have.
        has_section_third: ``section`` of a span stands behind its title, as T-REx is published.
        found_first: answers with provenance are written in front of answers alone, provenance alone comes last.
    """

    has_threshold: bool
    unplaced: Fate = "drop_output"
    weak: Fate = "drop_output"
    needs_provenance: bool = True
    keeps_bare: bool = False
    needs_page: bool = False
    answer_is_title: bool = False
    input_meta: tuple[str, ...] = ()
    highlights: Literal["offsets", "paragraphs"] | None = None
    prefers_exact: bool = False
    found_first: bool = False
    has_section_third: bool = False


def _splits(held_out: Policy, *, train: Policy | None = None) -> dict[Split, Policy]:
    """Gives one policy for dev and test; train is the same, but keeps every answer, where nothing is said."""
    keeps = replace(held_out, unplaced="keep_answer", weak="keep_answer", needs_provenance=False)
    return {"train": train or keeps, "dev": held_out, "test": held_out}


_LINKING = Policy(False, answer_is_title=True, input_meta=("left_context", "mention", "right_context"))
_ANSWERS_STAY = Policy(True, unplaced="keep_answer", weak="keep_answer")

POLICIES: dict[str, dict[Split, Policy]] = {
    # A set of sentences counts only as a whole; claims without one left are dropped.
    "fever": _splits(Policy(True)),
    # One set; a missing page drops the question.
    "hotpotqa": _splits(Policy(True, unplaced="drop_record", weak="drop_record")),
    "aidayago2": _splits(_LINKING, train=_LINKING),
    "wned": _splits(_LINKING, train=_LINKING),
    "cweb": _splits(_LINKING, train=_LINKING),
    "trex": _splits(Policy(True, input_meta=("subj_aliases", "sub_surface"), has_section_third=True)),
    "structured_zeroshot": _splits(Policy(True, input_meta=("template_questions",))),
    # Short answers that are not found stay as answers.
    "nq": _splits(
        replace(_ANSWERS_STAY, highlights="paragraphs", found_first=True),
        train=replace(_ANSWERS_STAY, needs_provenance=False, found_first=True),
    ),
    # Valid as soon as one alias is found, in train as soon as there is a page; the other aliases stay as answers.
    "triviaqa": _splits(
        replace(_ANSWERS_STAY, prefers_exact=True),
        train=replace(_ANSWERS_STAY, needs_provenance=False, needs_page=True, prefers_exact=True),
    ),
    # Provenance is what annotators chose; train has none at all, nor have dev and test without a campaign.
    "eli5": _splits(
        replace(_ANSWERS_STAY, keeps_bare=True, highlights="offsets"),
        train=replace(_ANSWERS_STAY, needs_provenance=False),
    ),
    "wow": _splits(Policy(True)),
    # Anyone's own data.
    "jsonl": _splits(Policy(True)),
    "kilt": _splits(Policy(True)),
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
        by_paragraph: written evidence of which the paragraphs are named and no characters.
    """

    reason: str | None
    outputs: tuple[OutputFate, ...]
    partial: tuple[int, ...] = ()
    by_paragraph: frozenset[EvidenceKey] = frozenset()


REASONS: dict[str, str] = {
    "answer_kept_elsewhere": "another output that is kept has the same answer",
    "below_threshold": "a span's score is below the threshold",
    "empty_evidence": "an evidence has no text",
    "no_kilt_paragraph": "the best span is in an element that has no paragraph in KILT's form",
    "no_match": "not one token of an evidence is in its page",
    "no_provenance": "the record never had any provenance, and the split needs it",
    "not_accepted": "a span does not meet the rule of --accept",
    "not_exact": "another output of the record is found word for word, and this one is not",
    "other_split": "the record is drawn for another split",
    "page_ambiguous": "a page is a disambiguation page",
    "page_missing": "a page is not in the snapshot",
    "search_crash": "the search for an evidence ended its process twice, by a signal or for want of memory",
    "search_error": "the search for an evidence failed twice with an error, which is a defect",
    "search_timeout": "the search for an evidence took too long twice",
}
"""Why outputs and records are dropped: reason -> meaning."""
_WEAK = ("below_threshold", "not_accepted")
_NO_PAGE = frozenset({"page_missing", "page_ambiguous", "answer_kept_elsewhere"})


def decide(
    example: Example, placed: Mapping[EvidenceKey, Placed], policy: Policy, *, threshold: float = THRESHOLD
) -> Decision:
    """Gives what becomes of a record and each of its outputs.

    A record without outputs (a test file without answers) is written as it is. A dropped record's reason is
    ``below_threshold`` (``not_accepted`` with a rule in its place) where an output would have stood with a lower
    threshold, else the reason of its first output
    that was lost: so the share that the threshold drops compares with the paper's.

    Args:
        example: the record.
        placed: where each of its evidences stands, by output and place in it.
        policy: of its dataset and split.
        threshold: a span's lowest score that is kept.
    """
    by_paragraph = frozenset(
        key
        for key, evidence in iter_evidence(example)
        if EVIDENCE_SPAN in (evidence.meta or {})
        and _is_by_paragraph(placed[key], _highest_by_paragraph(example, key, policy, threshold))
    )
    faults = {key: _evidence_fault(place, key in by_paragraph, policy, threshold) for key, place in placed.items()}
    partial = tuple(index for index in range(len(example.partial)) if faults[PARTIAL, index] is None)
    if not example.outputs:
        return Decision(None, (), partial, by_paragraph)
    fates: list[OutputFate] = []
    reason: str | None = None
    for index, output in enumerate(example.outputs):
        fault = _worst([faults[index, place] for place in range(len(output.evidence))])
        if fault is None:
            fates.append(OutputFate("whole", None, tuple(range(len(output.evidence)))))
            continue
        fate = policy.weak if fault in _WEAK else policy.unplaced
        if fate == "drop_record" and reason is None:
            reason = fault
        stays = fate == "keep_answer" and output.answer is not None
        fates.append(OutputFate("answer_only" if stays else "dropped", fault, ()))
    if policy.prefers_exact and not isinstance(example, ReleasedExample):
        fates = _exact_once(example, fates, placed)
    fates = _without_repeats(example, fates)
    if reason is None and not any(fate.kept for fate in fates) and not _is_published_bare(example):
        reason = _why_nothing_is_left(fates, policy)
    return Decision(reason, tuple(fates), partial, by_paragraph)


def _is_published_bare(example: Example) -> bool:
    """Says whether a published record has answers alone: moved to another snapshot it loses nothing."""
    return isinstance(example, ReleasedExample) and not any(output.evidence for output in example.outputs)


def _highest_by_paragraph(example: Example, key: EvidenceKey, policy: Policy, threshold: float) -> float:
    """Gives the score below which a highlight is named by its paragraphs alone."""
    if policy.highlights is None:
        return 0.0
    if isinstance(example, ReleasedExample):
        return threshold
    # The published files name partial evidence, and all of Natural Questions, by paragraphs.
    return inf if policy.highlights == "paragraphs" or key[0] == PARTIAL else threshold


def _is_by_paragraph(place: Placed, highest: float) -> bool:
    if place.is_accepted is not None:
        # The rule says what was found; paragraphs are then only named where there never are characters.
        return place.is_accepted and highest == inf
    # A score of 0 names a likely place, not one that was found.
    return place.score is not None and 0 < place.score < highest


def _evidence_fault(place: Placed, is_by_paragraph: bool, policy: Policy, threshold: float) -> str | None:
    if place.fault is not None or is_by_paragraph:
        return place.fault
    if place.is_accepted is not None:
        return None if place.is_accepted else "not_accepted"
    is_weak = policy.has_threshold and place.score is not None and place.score < threshold
    return "below_threshold" if is_weak else None


def _worst(of_set: list[str | None]) -> str | None:
    """Gives why an evidence set does not stand, None where it does."""
    # What has no place at all is the stronger fault.
    return min((fault for fault in of_set if fault is not None), key=lambda fault: fault in _WEAK, default=None)


def _exact_once(example: Example, fates: list[OutputFate], placed: Mapping[EvidenceKey, Placed]) -> list[OutputFate]:
    """Takes provenance away that is not exact, where one is, and drops what says the same answer at the same place."""
    places = [[placed[index, place] for place in fate.kept] for index, fate in enumerate(fates)]
    exact = [bool(found) and all(row.outcome == "exact" for row in found) for found in places]
    said: set[tuple[str | None, tuple[Placed, ...]]] = set()
    result = []
    for output, fate, found, is_exact in zip(example.outputs, fates, places, exact, strict=True):
        if found and any(exact) and not is_exact:
            fate = OutputFate("dropped" if output.answer is None else "answer_only", "not_exact", ())
        elif found and (output.answer, tuple(found)) in said:
            fate = OutputFate("dropped", "answer_kept_elsewhere", ())
        said.add((output.answer, tuple(found)))
        result.append(fate)
    return result


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
    has_page = not policy.needs_page or not _NO_PAGE.issuperset(reasons)
    if not policy.needs_provenance and has_page and any(fate.form != "dropped" for fate in fates):
        return None
    if reasons:
        return next((reason for reason in reasons if reason in _WEAK), reasons[0])
    return None if policy.keeps_bare else "no_provenance"
