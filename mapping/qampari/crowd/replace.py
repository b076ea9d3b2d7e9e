"""Which questions of a release are replaced once people have judged answers, and what each question is then."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kbsource.files import Storage
from mapping.qampari.crowd.tasks import POOL, candidate_of, read_questions
from mapping.qampari.question_rows import DrawnQuestion
from mapping.qampari.questions import SIMPLE
from mapping.qampari.released import parse_qid, qid_of
from mapping.qampari.selection import draw_key
from mapping.sources.reading.base import Split

Dropped = Mapping[str, Collection[int]]
"""By qid the numbers of answers that people judged wrong."""


@dataclass(frozen=True, slots=True)
class Replacements:
    """Questions that leave the pool and those that come instead, by subset and key.

    Attributes:
        left: have too few answers.
        come: with split and qid.
    """

    left: frozenset[tuple[str, str]]
    come: dict[tuple[str, str], tuple[Split, str]]


def find_replacements(release: str, storage: Storage, *, dropped: Dropped, seed: str, least: int) -> Replacements:
    """Gives the questions that have too few answers without those dropped, and what comes in their place.

    What comes gets the numbers behind those that its split has.
    """
    short: defaultdict[tuple[str, str], list[DrawnQuestion]] = defaultdict(list)
    numbers: Counter[str] = Counter()
    for question in read_questions(release, storage):
        if question.split in POOL and question.qid is not None:
            numbers[str(question.split)] = max(numbers[str(question.split)], parse_qid(question.qid).n)
            if _n_distinct(_without(question, dropped)) < least:
                short[_hand(question)].append(question)
    hands: defaultdict[tuple[str, str], list[DrawnQuestion]] = defaultdict(list)
    for question in read_questions(release, storage) if short else ():
        hand = _hand(question)
        if hand in short and question.side == "test" and question.split is None and _n_distinct(question) >= least:
            hands[hand].append(question)
            if len(hands[hand]) >= 2 * len(short[hand]) + 64:
                hands[hand] = _first_drawn(hands[hand], seed)[: len(short[hand])]
    come: dict[tuple[str, str], tuple[Split, str]] = {}
    for hand, leaving in sorted(short.items()):
        for gone, new in zip(_first_drawn(leaving, seed), _first_drawn(hands[hand], seed), strict=False):
            assert gone.split is not None
            numbers[gone.split] += 1
            come[_place(new)] = gone.split, qid_of(numbers[gone.split], new.question.subset, gone.split)
    return Replacements(frozenset(_place(question) for leaving in short.values() for question in leaving), come)


def _hand(drawn_question: DrawnQuestion) -> tuple[str, str]:
    """Gives what a question is drawn within, as ``selection.draw_pool`` deals."""
    return drawn_question.question.subset, drawn_question.question.property_ids[
        0
    ] if drawn_question.question.subset == SIMPLE else ""


def _place(drawn_question: DrawnQuestion) -> tuple[str, str]:
    return drawn_question.question.subset, drawn_question.question.key


def _first_drawn(hand: Sequence[DrawnQuestion], seed: str) -> list[DrawnQuestion]:
    return sorted(hand, key=lambda one: draw_key(candidate_of(one), seed, "pool"))


def _n_distinct(drawn_question: DrawnQuestion) -> int:
    return len({answer.text.casefold() for answer in drawn_question.question.answers})


def _without(drawn_question: DrawnQuestion, dropped: Dropped) -> DrawnQuestion:
    gone = dropped.get(drawn_question.qid or "", set())
    left = tuple(answer for number, answer in enumerate(drawn_question.question.answers) if number not in gone)
    return drawn_question._replace(
        question=drawn_question.question._replace(answers=left), n_dropped=drawn_question.n_dropped + len(gone)
    )


def revise_questions(
    release: str,
    storage: Storage,
    dropped: Dropped,
    paraphrases: Mapping[str, str],
    replacements: Replacements,
    counts: Counter[str],
) -> Iterator[DrawnQuestion]:
    """Gives the questions as they are now, in the order of the table, and counts what was changed."""
    for question in read_questions(release, storage):
        revised = _without(question, dropped)
        counts["answers_dropped"] += revised.n_dropped - question.n_dropped
        if _place(question) in replacements.left:
            yield revised._replace(split=None, qid=None, paraphrase=None)
        elif _place(question) in replacements.come:
            split, qid = replacements.come[_place(question)]
            yield revised._replace(split=split, qid=qid)
        elif question.qid is not None and (paraphrase := paraphrases.get(question.qid)) is not None:
            counts["paraphrases_used"] += 1
            counts["without_entity"] += any(about.text not in paraphrase for about in question.question.entities)
            yield revised._replace(paraphrase=paraphrase)
        else:
            yield revised
