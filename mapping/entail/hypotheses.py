"""What a piece of evidence is asked to entail: the claim, the answered question, the triple, or its own old text."""

from __future__ import annotations

from typing import Literal, NamedTuple

from mapping.entail.declarative import state_answer
from mapping.entail.triples import state_triple
from mapping.records import PARTIAL, Evidence, EvidenceKey, Example

HypothesisKind = Literal["claim", "answer", "triple", "evidence"]
"""``claim``: the record's input. ``answer``: question and answer as a sentence. ``triple``: subject, relation and
object as a sentence. ``evidence``: the text that the dataset quotes."""

DATASET_HYPOTHESES: dict[str, HypothesisKind] = {
    "fever": "claim",
    "nq": "answer",
    "hotpotqa": "answer",
    "triviaqa": "answer",
    "trex": "triple",
    "structured_zeroshot": "triple",
    "jsonl": "answer",
    "kilt": "answer",
}
"""Dataset -> what is judged; the others' answers are talk or titles, so there the evidence is."""

_REFUTES = frozenset(("refutes", "refuted", "refute"))
# Of such a claim the dataset says nothing.
_OPEN = frozenset(("not enough info", "not_enough_info", "nei"))


class Hypothesis(NamedTuple):
    """A sentence to be judged.

    Attributes:
        text: of the sentence.
        kind: what it was made from, where the kind that was asked for cannot be had the evidence.
        expects: what the dataset says of it: ``entailment``, or ``contradiction`` for a claim that is refuted.
    """

    text: str
    kind: HypothesisKind
    expects: Literal["entailment", "contradiction"] = "entailment"


def make_hypothesis(example: Example, key: EvidenceKey, evidence: Evidence, kind: HypothesisKind) -> Hypothesis | None:
    """Gives what an evidence should entail.

    Args:
        example: its record.
        key: its place in the record; partial evidence has no answer of its own.
        evidence: the evidence.
        kind: what is wanted. Without the input, the answer or the separator it takes, the evidence's own text stands
            in.

    Returns:
        None where that has no text either.
    """
    answer = None if key[0] == PARTIAL else example.outputs[key[0]].answer
    made = _made(example.input, answer, kind)
    if made is None and evidence.text is not None and evidence.text.strip():
        made = Hypothesis(" ".join(evidence.text.split()), "evidence")
    return made


def _made(given: str | None, answer: str | None, kind: HypothesisKind) -> Hypothesis | None:
    if given is None or not given.strip() or kind == "evidence":
        return None
    if kind == "claim":
        verdict = "" if answer is None else answer.strip().lower()
        if verdict in _OPEN:
            return None
        is_refuted = verdict in _REFUTES
        return Hypothesis(" ".join(given.split()), kind, "contradiction" if is_refuted else "entailment")
    if answer is None or not answer.strip(" \t\r\n."):
        return None
    text = state_triple(given, answer) if kind == "triple" else state_answer(given, answer)
    return None if text is None else Hypothesis(text, kind)
