"""Which questions are kept, which side of the split they are on, and which are drawn.

Every draw goes by the sha256 of a seed and the query's key, so that it hangs neither on order nor on machine.

Source: QAMPARI (2022), sections 3.4 and 3.5 and appendix.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kbsource.errors import SetupError
from kbsource.identity import stable_sha256
from mapping.options import between, check_options, option
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE

MOST_SUBJECTS = 3000
"""Queries with more subjects are skipped. Source: the released code of QAMPARI."""
KEPT = "kept"
OUTCOMES: dict[str, str] = {
    KEPT: "it is a question",
    "too_many_answers": "it has so many answers that the filter could not keep it if all were validated",
    "entity_unnamed": "what it is about has neither a name in English nor a page",
    "too_few_found": "too few of its answers stand near a name of the entity, or too small a share",
    "too_few_validated": "too few validated answers",
    "too_many_validated": "too many validated answers",
    "share_too_low": "too small a share of its answers is validated",
    "wider_type": "a query with a more specific type has the same validated answers (by option)",
}
"""What becomes of queries: outcome -> meaning. The first that holds, in this order, is the one."""

_SPARE = 256
"""Candidates that are held beyond those that can be drawn, before they are put in order."""

Side = Literal["train", "test"]
Mixed = Literal["train", "drop"]


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which questions have enough answers, and enough of them with evidence."""

    least: int = option(5, "validated answers that a question needs", flag="--least-answers")
    most: int = option(200, "validated answers that it may have", flag="--most-answers")
    share: float = between(
        0,
        1,
        0.8,
        "share of all answers that must be validated",
        of="a share of the answers",
        flag="--least-share",
        metavar="SHARE",
    )

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for numbers of answers that nothing has."""
        check_options(self)
        if not 1 <= self.least <= self.most:
            raise SetupError(
                f"From {self.least} to {self.most} answers: for --least-answers and --most-answers give numbers from "
                "1 on, the smaller first."
            )

    def may_keep(self, n_answers: int) -> bool:
        """Says whether a question with so many answers could be kept if all that is needed were validated."""
        return n_answers >= self.least and self.keeps(min(n_answers, self.most), n_answers)

    def keeps(self, n_validated: int, n_answers: int) -> bool:
        """Says whether a question is kept, of whose answers, at least one, so many are validated."""
        return self.outcome(n_validated, n_answers) == KEPT

    def outcome(self, n_validated: int, n_answers: int, *, n_pairs: tuple[int, int] | None = None) -> str:
        """Gives what becomes of a question, a key of ``OUTCOMES``.

        Args:
            n_validated: distinct answers that are validated.
            n_answers: all, at least one.
            n_pairs: for compositions validated pairs of subject and value, and all of them: the share is theirs.
        """
        if n_validated < self.least:
            return "too_few_validated"
        if n_validated > self.most:
            return "too_many_validated"
        n_right, n_all = n_pairs or (n_validated, n_answers)
        return KEPT if n_right / n_all >= self.share else "share_too_low"


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """How many questions are drawn.

    Attributes:
        pool: questions of development and test set together, by subset.
    """

    pool: Mapping[str, int] = field(
        default_factory=lambda: {
            SIMPLE: 830,
            COMPOSITION: 400,
            INTERSECTION: 400,
            TABLE_SIMPLE: 170,
            TABLE_COMPOSITION: 200,
        }
    )
    train_per_relation: int = option(1000, "most training questions that rest on one relation", lowest=0)

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for a pool that is none."""
        check_options(self)
        if self.pool.keys() != set(SUBSETS) or min(self.pool.values()) < 0:
            raise SetupError(
                f"The pool has {dict(self.pool)}: for each --pool-… give a number from 0 on; there are "
                f"{', '.join(SUBSETS)}."
            )


class PoolQuestion(NamedTuple):
    """A question that can be drawn.

    Attributes:
        key: of its query; unique within the subset.
        subset: one of ``SUBSETS``.
        property_ids: the relations that it rests on; none for tables.
        place: where it stands among all questions, for those who draw to find it again.
    """

    key: str
    subset: str
    property_ids: tuple[str, ...] = ()
    place: int = 0


def split_relations(property_ids: Iterable[str], seed: str) -> dict[str, Side]:
    """Gives each simple relation its side: two halves, drawn; an odd one is for training."""
    drawn = sorted(
        set(property_ids), key=lambda property_id: (stable_sha256(seed, "relation", property_id), property_id)
    )
    n_test = len(drawn) // 2
    return {one: "test" if number < n_test else "train" for number, one in enumerate(drawn)}


def side_of(candidate: PoolQuestion, sides: Mapping[str, Side], *, mixed: Mixed = "train") -> Side | None:
    """Gives the side of a question, None for one that is dropped.

    A simple question is on the side of its relation. A composition is on the test side when one of its two relations
    is; a relation that is no simple one has no side. An intersection is when both are. Questions about tables have no
    relations and no side of their own: the test pool is drawn from them first, and the rest is for training.

    Args:
        candidate: the question.
        sides: of ``split_relations``.
        mixed: intersections of a training with a test relation: ``train`` as in the paper, although they show a test
            relation in training; or ``drop``.
    """
    found = {sides.get(property_id, "train") for property_id in candidate.property_ids}
    if candidate.subset == INTERSECTION:
        if len(found) > 1 and mixed == "drop":
            return None
        return "test" if found == {"test"} else "train"
    if candidate.subset in (TABLE_SIMPLE, TABLE_COMPOSITION):
        return "test"
    return "test" if "test" in found else "train"


def draw_key(candidate: PoolQuestion, seed: str, purpose: str) -> tuple[str, str]:
    """Gives what candidates of a subset are ordered by to be drawn; anew for each purpose."""
    return stable_sha256(seed, purpose, candidate.subset, candidate.key), candidate.key


def draw_pool(candidates: Iterable[PoolQuestion], sizes: SampleSizes, seed: str) -> list[PoolQuestion]:
    """Gives the questions of development and test set together, in the order of the subsets and then as drawn.

    Simple questions are dealt by relation in turn (by number of the property), so that the relations have as many each
    as can be; the others are drawn alike. A subset that has too few gives all.

    Args:
        candidates: of the test side, in any order, each once; memory holds few more of each relation than are drawn.
        sizes: how many.
        seed: of the draw.
    """
    hands: defaultdict[tuple[str, str], _Hand] = defaultdict(_Hand)
    for one in candidates:
        # Everything that can be drawn is among the first of its hand.
        hand = hands[one.subset, one.property_ids[0] if one.subset == SIMPLE else ""]
        hand.take(draw_key(one, seed, "pool"), one, sizes.pool[one.subset])
    pool: list[PoolQuestion] = []
    for subset in SUBSETS:
        names = sorted((name for found, name in hands if found == subset), key=lambda one: (len(one), one))
        pool += _deal([hands[subset, name].first(sizes.pool[subset]) for name in names], sizes.pool[subset])
    return pool


class _Hand:
    """Candidates with what they are ordered by, of which the first few are wanted."""

    def __init__(self) -> None:
        self._held: list[tuple[tuple[str, str], PoolQuestion]] = []
        self._end: tuple[str, str] | None = None

    def take(self, key: tuple[str, str], candidate: PoolQuestion, n: int) -> None:
        """Takes a candidate, unless it is known not to be among the first ``n``."""
        if self._end is None or key < self._end:
            self._held.append((key, candidate))
            if len(self._held) == n + _SPARE:
                self.first(n)
                self._end = self._held[-1][0] if n else ("", "")

    def first(self, n: int) -> list[PoolQuestion]:
        """Gives the first ``n`` in order, and holds no others any more."""
        self._held.sort()
        del self._held[n:]
        return [one for _, one in self._held]


def _deal(hands: list[list[PoolQuestion]], n: int) -> list[PoolQuestion]:
    rounds = max(map(len, hands), default=0)
    dealt = [hand[number] for number in range(rounds) for hand in hands if number < len(hand)]
    return dealt[:n]


def halve_pool(pool: Collection[PoolQuestion], seed: str) -> tuple[list[PoolQuestion], list[PoolQuestion]]:
    """Gives development and test set: two halves, drawn over all subsets; an odd question is for testing."""
    drawn = sorted(pool, key=lambda question: (draw_key(question, seed, "half"), question.subset))
    n_dev = len(drawn) // 2
    return drawn[:n_dev], drawn[n_dev:]


def draw_train(candidates: Iterable[PoolQuestion], sizes: SampleSizes) -> Iterator[PoolQuestion]:
    """Gives the training questions: each that comes while all of its relations have room.

    A question counts for every relation that it rests on; questions about tables have none and are all taken.

    Args:
        candidates: of the training side, in the order of ``draw_key``.
        sizes: how many a relation may have.
    """
    n_taken: Counter[str] = Counter()
    for candidate in candidates:
        rests_on = set(candidate.property_ids)
        if all(n_taken[name] < sizes.train_per_relation for name in rests_on):
            n_taken.update(rests_on)
            yield candidate
