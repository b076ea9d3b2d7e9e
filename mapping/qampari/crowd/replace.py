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
    for one in read_questions(release, storage):
        if one.split in POOL and one.qid is not None:
            numbers[str(one.split)] = max(numbers[str(one.split)], parse_qid(one.qid).n)
            if _n_distinct(_without(one, dropped)) < least:
                short[_hand(one)].append(one)
    hands: defaultdict[tuple[str, str], list[DrawnQuestion]] = defaultdict(list)
    for one in read_questions(release, storage) if short else ():
        hand = _hand(one)
        if hand in short and one.side == "test" and one.split is None and _n_distinct(one) >= least:
            hands[hand].append(one)
            if len(hands[hand]) >= 2 * len(short[hand]) + 64:
                hands[hand] = _first_drawn(hands[hand], seed)[: len(short[hand])]
    come: dict[tuple[str, str], tuple[Split, str]] = {}
    for hand, leaving in sorted(short.items()):
        for gone, new in zip(_first_drawn(leaving, seed), _first_drawn(hands[hand], seed), strict=False):
            assert gone.split is not None
            numbers[gone.split] += 1
            come[_place(new)] = gone.split, qid_of(numbers[gone.split], new.question.subset, gone.split)
    return Replacements(frozenset(_place(one) for leaving in short.values() for one in leaving), come)


def _hand(one: DrawnQuestion) -> tuple[str, str]:
    """Gives what a question is drawn within, as ``selection.draw_pool`` deals."""
    return one.question.subset, one.question.property_ids[0] if one.question.subset == SIMPLE else ""


def _place(one: DrawnQuestion) -> tuple[str, str]:
    return one.question.subset, one.question.key


def _first_drawn(hand: Sequence[DrawnQuestion], seed: str) -> list[DrawnQuestion]:
    return sorted(hand, key=lambda one: draw_key(candidate_of(one), seed, "pool"))


def _n_distinct(one: DrawnQuestion) -> int:
    return len({answer.text.casefold() for answer in one.question.answers})


def _without(one: DrawnQuestion, dropped: Dropped) -> DrawnQuestion:
    gone = dropped.get(one.qid or "", set())
    left = tuple(answer for number, answer in enumerate(one.question.answers) if number not in gone)
    return one._replace(question=one.question._replace(answers=left), n_dropped=one.n_dropped + len(gone))


def revise_questions(
    release: str,
    storage: Storage,
    dropped: Dropped,
    paraphrases: Mapping[str, str],
    replacements: Replacements,
    counts: Counter[str],
) -> Iterator[DrawnQuestion]:
    """Gives the questions as they are now, in the order of the table, and counts what was changed."""
    for one in read_questions(release, storage):
        revised = _without(one, dropped)
        counts["answers_dropped"] += revised.n_dropped - one.n_dropped
        if _place(one) in replacements.left:
            yield revised._replace(split=None, qid=None, paraphrase=None)
        elif _place(one) in replacements.come:
            split, qid = replacements.come[_place(one)]
            yield revised._replace(split=split, qid=qid)
        elif one.qid is not None and (paraphrase := paraphrases.get(one.qid)) is not None:
            counts["paraphrases_used"] += 1
            counts["without_entity"] += any(about.text not in paraphrase for about in one.question.entities)
            yield revised._replace(paraphrase=paraphrase)
        else:
            yield revised
