"""Which passages people are shown of a question, out of what several systems found.

Source: Petroni et al., KILT (2021), section 4: four passages of four systems, each with a tenth of the tokens of a
gold answer; how tokens are counted is not said there and settled here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from kbsource.identity import stable_sha256
from mapping.metrics.answer_lists import answer_form
from mapping.options import Checked, option

_ID_CHARS = 16


@dataclass(frozen=True, slots=True)
class CandidateOptions(Checked):
    """Which passages are taken."""

    per_question: int = option(4, "passages of a question", metavar="N", lowest=1)
    least_overlap: float = option(
        0.1,
        "least share of the tokens of a gold answer that a passage must hold",
        metavar="X",
        lowest=0,
        highest=1,
        remedy="give a share from 0 to 1",
    )
    language: str = option("en", "whose stop words are no tokens", flag="--lang", metavar="CODE")
    stop_words: bool = option(False, "count stop words too", flag="--count-stop-words")
    with_gold: bool = option(
        False, "put the passage of the gold provenance among them, to see who reads; needs --kb", flag="--with-gold"
    )
    seed: str = option("kilt", "of the order in which passages are shown", metavar="TEXT")


class Passage(NamedTuple):
    """A passage that a system found.

    Attributes:
        page_id: of its page.
        title: of its page; empty where the run does not say.
        paragraphs: first and last, in KILT's numbering; None where they are not known.
        text: the passage.
    """

    page_id: str
    title: str
    paragraphs: tuple[int, int] | None
    text: str


class Candidate(NamedTuple):
    """A passage that people are shown.

    Attributes:
        passage_id: of question, page and text; tells nothing of where it comes from.
        passage: the passage.
        systems: that found it, by number; empty where none did.
        is_gold: it is the gold provenance.
        overlap: share of the tokens of a gold answer that it holds.
    """

    passage_id: str
    passage: Passage
    systems: tuple[int, ...]
    is_gold: bool
    overlap: float


def token_overlap(answers: Iterable[str], text: str, stop_words: Collection[str]) -> float:
    """Gives the highest share, over the answers, of an answer's distinct tokens that a text holds.

    Tokens are those of the form of answers, without stop words; an answer of nothing else has no share.

    >>> token_overlap(["the Lake of Miravel"], "It rises in Miravel.", {"of", "in"})
    0.5
    """
    held = set(answer_form(text).split())
    sought = (set(answer_form(answer).split()) - set(stop_words) for answer in answers)
    return max((len(tokens & held) / len(tokens) for tokens in sought if tokens), default=0.0)


def choose_candidates(
    question_id: str,
    answers: Sequence[str],
    runs: Sequence[Sequence[Passage]],
    gold: Passage | None,
    *,
    options: CandidateOptions,
    stop_words: Collection[str],
) -> list[Candidate]:
    """Gives the passages that people are shown of a question, in the order in which they are shown.

    The gold passage first, then the best of every system, the second best of every system, and so on, until there are
    enough; a passage that is there already, or holds too little of the answers, is passed over.

    Args:
        question_id: seeds ids and order.
        answers: gold answers.
        runs: passages of each system, best first.
        gold: that is among them whatever it holds; None for none.
        options: how many, and how alike to an answer.
        stop_words: in lower case.
    """
    chosen: list[tuple[Passage, list[int], bool, float]] = []
    if gold is not None:
        chosen.append((gold, [], True, token_overlap(answers, gold.text, stop_words)))
    for of_rank in zip_longest(*runs):
        for system, passage in enumerate(of_rank):
            if passage is None:
                continue
            same = next((entry for entry in chosen if is_same(entry[0], passage)), None)
            if same is not None:
                if system not in same[1]:
                    same[1].append(system)
            elif len(chosen) < options.per_question:
                overlap = token_overlap(answers, passage.text, stop_words)
                if overlap >= options.least_overlap:
                    chosen.append((passage, [system], False, overlap))
    candidates = [
        Candidate(
            stable_sha256(question_id, passage.page_id, passage.text)[:_ID_CHARS],
            passage,
            tuple(sorted(systems)),
            is_gold,
            overlap,
        )
        for passage, systems, is_gold, overlap in chosen
    ]
    return sorted(candidates, key=lambda candidate: stable_sha256(options.seed, question_id, candidate.passage_id))


def is_same(first: Passage, second: Passage) -> bool:
    """Says whether two passages of a page share a paragraph, or, where these are not known, one holds the other."""
    if first.page_id != second.page_id:
        return False
    if first.paragraphs is not None and second.paragraphs is not None:
        return first.paragraphs[0] <= second.paragraphs[1] and second.paragraphs[0] <= first.paragraphs[1]
    forms = answer_form(first.text), answer_form(second.text)
    return forms[0] in forms[1] or forms[1] in forms[0]
