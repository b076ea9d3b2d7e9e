"""What becomes of a record and its outputs, by the policy of its dataset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from math import inf
from typing import Any, Literal, NamedTuple

from msgspec.structs import replace

from kbsource.errors import SetupError
from mapping.records import PARTIAL, SCORED, Alignment, EvidenceKey, Example, ReleasedExample, iter_evidence
from mapping.sources.source import EVIDENCE_SPAN, Policy, Split

THRESHOLD = 0.5
_PLACED = ("exact", "near", "weak", "page_only")


def with_outcome(aligned: Alignment, threshold: float) -> Alignment:
    """An evidence as the search left it, or decided before, with the outcome that a threshold gives it.

    What the search only scored is ``near`` from the threshold on, ``weak`` below it and without a span.
    """
    if aligned.outcome != SCORED:
        return aligned
    return replace(aligned, outcome="weak" if aligned.score is None or aligned.score < threshold else "near")


class OutputFate(NamedTuple):
    """What becomes of one output."""

    form: Literal["whole", "answer_only", "dropped"]  # ``whole``, ``answer_only`` or ``dropped``
    reason: str | None  # why it is not whole; None where it is
    kept: tuple[int, ...]  # indexes of the evidence that is written


class Decision(NamedTuple):
    """What becomes of a record."""

    reason: str | None  # why it is dropped; None where it is written
    outputs: tuple[OutputFate, ...]  # one fate an output
    partial: tuple[int, ...] = ()
    """Indexes of the partial evidence that is written: all that has a place and is not weak."""
    by_paragraph: frozenset[EvidenceKey] = frozenset()
    """Written evidence of which the paragraphs are named and no characters."""


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
    example: Example, found: Mapping[EvidenceKey, Alignment], policy: Policy, *, threshold: float = THRESHOLD
) -> Decision:
    """What becomes of a record and each of its outputs.

    A record without outputs (a test file without answers) is written as it is. A dropped record's reason is
    ``below_threshold`` (``not_accepted`` with a rule in its place) where an output would have stood with a lower
    threshold, else the reason of its first output that was lost: so the share that the threshold drops compares with
    the paper's.
    """
    by_paragraph = frozenset(
        key
        for key, evidence in iter_evidence(example)
        if EVIDENCE_SPAN in (evidence.meta or {})
        and _is_by_paragraph(found[key], _highest_by_paragraph(example, key, policy, threshold))
    )
    faults = {key: _evidence_fault(one, key in by_paragraph, policy, threshold) for key, one in found.items()}
    partial = tuple(index for index in range(len(example.partial)) if faults[PARTIAL, index] is None)
    if not example.outputs:
        return Decision(None, (), partial, by_paragraph)
    fates: list[OutputFate] = []
    reason: str | None = None
    for index, output in enumerate(example.outputs):
        of_set = (faults[index, place] for place in range(len(output.evidence)))
        # What has no place at all is the stronger fault.
        fault = min((one for one in of_set if one is not None), key=lambda one: one in _WEAK, default=None)
        if fault is None:
            fates.append(OutputFate("whole", None, tuple(range(len(output.evidence)))))
            continue
        if policy.lost == "drop_record" and reason is None:
            reason = fault
        stays = policy.lost == "keep_answer" and output.answer is not None
        fates.append(OutputFate("answer_only" if stays else "dropped", fault, ()))
    if policy.prefers_exact and not isinstance(example, ReleasedExample):
        fates = _exact_once(example, fates, found)
    fates = _without_repeats(example, fates)
    if reason is None and not any(fate.kept for fate in fates) and not _is_published_bare(example):
        reason = _why_nothing_is_left(fates, policy)
    return Decision(reason, tuple(fates), partial, by_paragraph)


def _is_published_bare(example: Example) -> bool:
    """Whether a published record has answers alone: moved to another snapshot it loses nothing."""
    return isinstance(example, ReleasedExample) and not any(output.evidence for output in example.outputs)


def _highest_by_paragraph(example: Example, key: EvidenceKey, policy: Policy, threshold: float) -> float:
    """The score below which a highlight is named by its paragraphs alone."""
    if policy.highlights is None:
        return 0.0
    if isinstance(example, ReleasedExample):
        return threshold
    # The published files name partial evidence, and all of Natural Questions, by paragraphs.
    return inf if policy.highlights == "paragraphs" or key[0] == PARTIAL else threshold


def _is_by_paragraph(found: Alignment, highest: float) -> bool:
    if found.is_accepted is not None:
        # The rule says what was found; paragraphs are then only named where there never are characters.
        return found.is_accepted and highest == inf
    # A score of 0 names a likely place, not one that was found.
    return found.score is not None and 0 < found.score < highest


def _evidence_fault(found: Alignment, is_by_paragraph: bool, policy: Policy, threshold: float) -> str | None:
    """Why an evidence cannot be written, None where it can."""
    if found.outcome not in _PLACED:
        return found.outcome
    if found.outcome != "page_only" and found.place is None:
        return "no_match" if found.span is None else "no_kilt_paragraph"
    if is_by_paragraph:
        return None
    if found.is_accepted is not None:
        return None if found.is_accepted else "not_accepted"
    is_weak = policy.has_threshold and found.score is not None and found.score < threshold
    return "below_threshold" if is_weak else None


def _exact_once(example: Example, fates: list[OutputFate], found: Mapping[EvidenceKey, Alignment]) -> list[OutputFate]:
    """Takes provenance away that is not exact, where one is, and drops what says the same answer at the same place."""
    sets = [[found[index, place] for place in fate.kept] for index, fate in enumerate(fates)]
    exact = [bool(pieces) and all(piece.outcome == "exact" for piece in pieces) for pieces in sets]
    said: set[tuple[str | None, tuple[Any, ...]]] = set()
    result = []
    for output, fate, pieces, is_exact in zip(example.outputs, fates, sets, exact, strict=True):
        says = output.answer, tuple((one.outcome, one.page_id, one.place, one.score, one.is_accepted) for one in pieces)
        if pieces and any(exact) and not is_exact:
            fate = OutputFate("dropped" if output.answer is None else "answer_only", "not_exact", ())
        elif pieces and says in said:
            fate = OutputFate("dropped", "answer_kept_elsewhere", ())
        said.add(says)
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


def write_places_once(decision: Decision, found: Mapping[EvidenceKey, Alignment]) -> Decision:
    """A decision by which no place comes twice into a set because of a rescue.

    Evidences of a set are mostly judged by one hypothesis, so that the likeliest sentence of a page is that of all that
    are weak. Where several stand there, the first that was found stays, else the first that was rescued; what the
    search found twice without a model is written twice, as the dataset has it.
    """
    if not any(one.is_rescued for one in found.values()):
        return decision

    def where(key: EvidenceKey) -> tuple[Any, ...]:
        place = found[key].place
        if place is not None and key in decision.by_paragraph:
            return found[key].page_id, place.start_paragraph_id, place.end_paragraph_id
        return found[key].page_id, place

    def once(index: int, kept: Iterable[int]) -> tuple[int, ...]:
        keys = [(index, place) for place in kept]
        seen = {where(key) for key in keys if not found[key].is_rescued}
        result = []
        for key in keys:
            if found[key].is_rescued:
                if where(key) in seen:
                    continue
                seen.add(where(key))
            result.append(key[1])
        return tuple(result)

    outputs = tuple(fate._replace(kept=once(index, fate.kept)) for index, fate in enumerate(decision.outputs))
    return decision._replace(outputs=outputs, partial=once(PARTIAL, decision.partial))


class Cuts(NamedTuple):
    """Where the draw ends: numbers of the last record of dev and of the last of test; -1 where there is none."""

    dev: int
    test: int

    def takes(self, ordinal: int, split: Split, *, stands: bool) -> bool:
        """Whether a record, which stands the filter of dev and test or not, is for a split to filter and to write."""
        if split == "train":
            return not stands or ordinal > self.test
        return ordinal <= self.dev if split == "dev" else self.dev < ordinal <= self.test


def cut(standing: Iterable[int], n_records: int) -> Cuts:
    """Where dev and test, of ``n_records`` each, end: ``standing`` are the records that stand their filter, in
    ascending order; no more are read than are needed. Raises SetupError: there are not enough."""
    if not n_records:
        return Cuts(-1, -1)
    found = list(islice(standing, 2 * n_records))
    if len(found) == 2 * n_records:
        return Cuts(found[n_records - 1], found[-1])
    raise SetupError(
        f"{len(found)} records stand the filter of dev and test, {2 * n_records} are to be drawn: give a smaller"
        " --sample, or a larger --sample-pool if the dataset has more."
    )
