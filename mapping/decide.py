"""Decides which records and outputs of a dataset are written to the KILT file, according to the dataset's
``Policy``.
"""

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
    """Returns an alignment with its outcome at a threshold.

    The outcome ``scored`` becomes ``near`` if the score reaches the threshold, and ``weak`` if it does not or if there
    is no span. Other outcomes do not change.
    """
    if aligned.outcome != SCORED:
        return aligned
    return replace(aligned, outcome="weak" if aligned.score is None or aligned.score < threshold else "near")


class OutputFate(NamedTuple):
    """The decision about one output."""

    form: Literal["whole", "answer_only", "dropped"]  # ``whole``, ``answer_only`` or ``dropped``
    reason: str | None  # why the output is not written completely; None if it is written completely
    kept: tuple[int, ...]  # indexes of the pieces of evidence that are written


class Decision(NamedTuple):
    """The decision about a record."""

    reason: str | None  # why the record is dropped; None for a written record
    outputs: tuple[OutputFate, ...]  # one decision for each output of the record
    partial: tuple[int, ...] = ()
    """Indexes of the partial evidence that is written: every piece that has a position and is not weak."""
    by_paragraph: frozenset[EvidenceKey] = frozenset()
    """Evidence that is written with its paragraphs only, without characters."""


REASONS: dict[str, str] = {
    "answer_kept_elsewhere": "another kept output has the same answer",
    "below_threshold": "a span's score is below the threshold",
    "empty_evidence": "a piece of evidence has no text",
    "no_kilt_paragraph": "the best span is in an element without a paragraph in KILT's form",
    "no_match": "no token of a piece of evidence is in its page",
    "no_provenance": "the record never had any provenance, and the split requires it",
    "not_accepted": "a span does not satisfy the rule of --accept",
    "not_exact": "the evidence of another output was found verbatim, but not the evidence of this output",
    "other_split": "the record was drawn for another split",
    "page_ambiguous": "a page is a disambiguation page",
    "page_missing": "a page is not in the snapshot",
    "search_crash": "the search for a piece of evidence ended its process twice, by a signal or for lack of memory",
    "search_error": "the search for a piece of evidence failed twice with an error, which is a bug",
    "search_timeout": "the search for a piece of evidence took too long twice",
}
"""Reasons for dropping outputs and records: reason -> meaning."""
_WEAK = ("below_threshold", "not_accepted")
_NO_PAGE = frozenset({"page_missing", "page_ambiguous", "answer_kept_elsewhere"})


def decide(
    example: Example, found: Mapping[EvidenceKey, Alignment], policy: Policy, *, threshold: float = THRESHOLD
) -> Decision:
    """Decides whether a record and each of its outputs are written.

    A record without outputs, as in a test file without answers, is written unchanged. If a lower threshold would have
    kept an output of a dropped record, the reason is ``below_threshold`` (``not_accepted`` if a rule replaces the
    threshold), so that the share that the threshold drops can be compared with the paper's. Otherwise it is the reason
    of the first output that was lost.
    """
    by_paragraph = frozenset(
        key
        for key, evidence in iter_evidence(example)
        if EVIDENCE_SPAN in (evidence.meta or {})
        and _is_by_paragraph(found[key], _highest_by_paragraph(example, key, policy, threshold))
    )
    faults = {
        key: _evidence_fault(alignment, key in by_paragraph, policy, threshold) for key, alignment in found.items()
    }
    partial = tuple(index for index in range(len(example.partial)) if faults[PARTIAL, index] is None)
    if not example.outputs:
        return Decision(None, (), partial, by_paragraph)
    fates: list[OutputFate] = []
    reason: str | None = None
    for index, output in enumerate(example.outputs):
        of_set = (faults[index, place] for place in range(len(output.evidence)))
        # Evidence without any position is the more serious fault.
        fault = min(
            (piece_fault for piece_fault in of_set if piece_fault is not None),
            key=lambda piece_fault: piece_fault in _WEAK,
            default=None,
        )
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
    """Returns whether a published record has answers but no evidence. Nothing of it can be lost in another snapshot."""
    return isinstance(example, ReleasedExample) and not any(output.evidence for output in example.outputs)


def _highest_by_paragraph(example: Example, key: EvidenceKey, policy: Policy, threshold: float) -> float:
    """Returns the score below which a span that annotators highlighted is written with its paragraphs only."""
    if policy.highlights is None:
        return 0.0
    if isinstance(example, ReleasedExample):
        return threshold
    # The published files name paragraphs for partial evidence and for all of Natural Questions.
    return inf if policy.highlights == "paragraphs" or key[0] == PARTIAL else threshold


def _is_by_paragraph(found: Alignment, highest: float) -> bool:
    if found.is_accepted is not None:
        # With a rule instead of a threshold, only evidence that is never written with characters is written with
        # paragraphs only.
        return found.is_accepted and highest == inf
    # A score of 0 marks a likely location, not a match.
    return found.score is not None and 0 < found.score < highest


def _evidence_fault(found: Alignment, is_by_paragraph: bool, policy: Policy, threshold: float) -> str | None:
    """Returns why a piece of evidence cannot be written; None if it can."""
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
    """Removes inexact provenance from a record that has exact provenance, and drops outputs with the same answer at the
    same location."""
    sets = [[found[index, place] for place in fate.kept] for index, fate in enumerate(fates)]
    exact = [bool(pieces) and all(piece.outcome == "exact" for piece in pieces) for pieces in sets]
    said: set[tuple[str | None, tuple[Any, ...]]] = set()
    result = []
    for output, fate, pieces, is_exact in zip(example.outputs, fates, sets, exact, strict=True):
        says = (
            output.answer,
            tuple((piece.outcome, piece.page_id, piece.place, piece.score, piece.is_accepted) for piece in pieces),
        )
        if pieces and any(exact) and not is_exact:
            fate = OutputFate("dropped" if output.answer is None else "answer_only", "not_exact", ())
        elif pieces and says in said:
            fate = OutputFate("dropped", "answer_kept_elsewhere", ())
        said.add(says)
        result.append(fate)
    return result


def _without_repeats(example: Example, fates: list[OutputFate]) -> list[OutputFate]:
    """Drops answers that lost their provenance if another output has the same answer."""
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
    """Returns the decision without repeated sentences: a set contains each sentence that the model chose only once.

    The pieces of evidence in a set are usually judged against one hypothesis, so the model chooses the same sentence of
    a page for all weak ones. If several pieces have this location, the first one that the search itself found there is
    kept; if the search found none there, the first one for which the model chose it. Locations that the search found
    twice without a model are written twice, as in the dataset.
    """
    if not any(alignment.is_chosen_by_model for alignment in found.values()):
        return decision

    def where(key: EvidenceKey) -> tuple[Any, ...]:
        place = found[key].place
        if place is not None and key in decision.by_paragraph:
            return found[key].page_id, place.start_paragraph_id, place.end_paragraph_id
        return found[key].page_id, place

    def once(index: int, kept: Iterable[int]) -> tuple[int, ...]:
        keys = [(index, place) for place in kept]
        seen = {where(key) for key in keys if not found[key].is_chosen_by_model}
        result = []
        for key in keys:
            if found[key].is_chosen_by_model:
                if where(key) in seen:
                    continue
                seen.add(where(key))
            result.append(key[1])
        return tuple(result)

    outputs = tuple(fate._replace(kept=once(index, fate.kept)) for index, fate in enumerate(decision.outputs))
    return decision._replace(outputs=outputs, partial=once(PARTIAL, decision.partial))


class Cuts(NamedTuple):
    """Where dev and test end: the ordinals of their last records; -1 for an empty split."""

    dev: int
    test: int

    def takes(self, ordinal: int, split: Split, *, passes: bool) -> bool:
        """Returns whether a record belongs to a split. ``passes`` is true if the record passes the filter of dev and
        test.
        """
        if split == "train":
            return not passes or ordinal > self.test
        return ordinal <= self.dev if split == "dev" else self.dev < ordinal <= self.test


def split_ends(passing: Iterable[int], n_records: int) -> Cuts:
    """Returns the ends of dev and test, which have ``n_records`` records each. ``passing`` are the ordinals of the
    records that pass the filter, in ascending order; only the necessary number of them is read. Raises SetupError if
    there are too few.
    """
    if not n_records:
        return Cuts(-1, -1)
    found = list(islice(passing, 2 * n_records))
    if len(found) == 2 * n_records:
        return Cuts(found[n_records - 1], found[-1])
    raise SetupError(
        f"{len(found)} records pass the filter of dev and test, but {2 * n_records} are needed; give a smaller "
        f"--sample, or a larger --sample-pool if the dataset has more."
    )
