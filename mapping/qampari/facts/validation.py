"""Facts beside the sentences that may say them: the first that an entailment model accepts is the proof."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from mapping.entail.signal import EntailmentModel, Pair, Refused
from mapping.qampari.facts.evidence import Candidate

LEAST_ENTAILMENT = 0.0019540872
"""A candidate whose probability of entailment is above this is accepted.

Source: the released code of QAMPARI, for its default model (``mapping.entail.signal.DEFAULT_MODEL``). There answer and
entity stand in each other's place in the hypothesis, and the paper says that the threshold drops 70 % of the wrong
candidates and 7.5 % of the right ones: choose it anew, on judged candidates, where that matters.
"""
FACTS_AT_ONCE = 4096


class Fact(NamedTuple):
    """What is to be proved.

    Attributes:
        query: key of the query that it belongs to.
        answer_id: of the answer; one name can be that of several answers.
        hypothesis: the fact as a sentence.
        candidates: in the order in which they are tried.
    """

    query: str
    answer_id: str
    hypothesis: str
    candidates: tuple[Candidate, ...]


class Proof(NamedTuple):
    """The outcome of a fact.

    Attributes:
        fact: what was to be proved.
        candidate: the first that was accepted; None where none was.
        entailment: its probability; None where no candidate was accepted.
        n_judged: candidates that the model was asked about; those behind the accepted one are not.
        n_refused: those of them that no model can judge, such as for their length.
    """

    fact: Fact
    candidate: Candidate | None
    entailment: float | None
    n_judged: int
    n_refused: int


def prove_facts(
    facts: Iterable[Fact],
    model: EntailmentModel,
    *,
    least: float = LEAST_ENTAILMENT,
    n_at_once: int = FACTS_AT_ONCE,
) -> Iterator[Proof]:
    """Gives the outcome of each fact, in their order.

    Args:
        facts: in any order; memory holds ``n_at_once`` of them.
        model: judges the candidates; the sentence that names the answer or entity is cut last.
        least: probability of entailment that an accepted candidate is above.
        n_at_once: facts that are worked on together; candidates are judged in rounds over these.
    """
    waiting = iter(facts)
    while group := list(islice(waiting, n_at_once)):
        yield from _prove_together(group, model, least)


def _prove_together(facts: list[Fact], model: EntailmentModel, least: float) -> list[Proof]:
    proofs = [Proof(fact, None, None, 0, 0) for fact in facts]
    pending = [number for number, one in enumerate(facts) if one.candidates]
    while pending:
        tried = [facts[number].candidates[proofs[number].n_judged] for number in pending]
        pairs = [
            Pair(one.text, facts[number].hypothesis, (one.sentence_char - one.start_char, len(one.text)))
            for number, one in zip(pending, tried, strict=True)
        ]
        for number, candidate, verdict in zip(pending, tried, model.judge(pairs), strict=True):
            before = proofs[number]
            if isinstance(verdict, Refused):
                after = before._replace(n_refused=before.n_refused + 1)
            elif verdict.entailment > least:
                after = before._replace(candidate=candidate, entailment=verdict.entailment)
            else:
                after = before
            proofs[number] = after._replace(n_judged=before.n_judged + 1)
        pending = [
            number
            for number in pending
            if proofs[number].candidate is None and proofs[number].n_judged < len(facts[number].candidates)
        ]
    return proofs
