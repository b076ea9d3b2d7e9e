"""Decides which questions pass the filter, for which split they are eligible, and which are sampled.

Every sample orders by the SHA-256 of a seed and the query's key. So it depends neither on the order of the input
nor on the machine.

Source: QAMPARI (2022), sections 3.4 and 3.5 and appendix.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
from cyclopts import Parameter

from kbsource.errors import SetupError
from kbsource.identity import stable_sha256
from kbsource.runtime.chunks import rows_batch
from kbsource.temporary import TemporaryFolder
from mapping.options import AtLeast0, AtLeast1, Choices, Share, check_options
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.sources.source import Split

MOST_SUBJECTS = 3000
"""Queries with more subjects are skipped. Source: the released code of QAMPARI."""
KEPT = "kept"
OUTCOMES: dict[str, str] = {
    KEPT: "it is a question",
    "too_many_answers": "the query has so many answers that the filter would drop it even if all were validated",
    "entity_unnamed": "the entity that the query is about has neither a name in English nor a page",
    "too_few_found": "too few of its answers, or too small a share, are near a name of the entity",
    "too_few_validated": "too few validated answers",
    "too_many_validated": "too many validated answers",
    "share_too_low": "too small a share of its answers is validated",
    "wider_type": "a query with a more specific type has the same validated answers (by option)",
}
"""Outcomes of queries: outcome -> meaning. The first that applies, in this order, is assigned."""

Side = Literal["train", "test"]
CompositionBase = Literal["kept", "all"]
"""Simple queries that compositions are made from: only the questions, or all queries with enough answers."""
QAMPARI_CHOICES: Choices = {
    "paper": {
        "relation_list": "paper",
        "composition_base": "all",
        "table_rows": "all",
        "key_rule": "any",
        "sentences_before": 2,
        "least": 5,
        "most": 200,
        "share": 0.8,
        "all_proofs": False,
        "most_specific_types": False,
        "redirect_aliases": False,
        "mixed": "train",
        "is_released_case": False,
        "is_released_wording": False,
    },
    "released": {
        "relation_list": "released",
        "composition_base": "kept",
        "table_rows": "linked",
        "key_rule": "not-last",
        "sentences_before": 1,
        "least": 5,
        "most": 300,
        "share": 0.8,
        "all_proofs": False,
        "most_specific_types": False,
        "redirect_aliases": False,
        "mixed": "train",
        "is_released_case": True,
        "is_released_wording": True,
    },
}
"""Settings for making questions: as in section 3 of the paper, or as in the code at 30bed95."""
Mixed = Literal["train", "drop"]


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Selects questions that have enough answers, and enough of them with evidence."""

    least: Annotated[AtLeast1, Parameter("--least-answers")] = 5
    """Minimum number of validated answers of a question."""
    most: Annotated[AtLeast1, Parameter("--most-answers")] = 200
    """Maximum number of validated answers."""
    share: Annotated[Share, Parameter("--least-share")] = 0.8
    """Minimum share of all answers that must be validated."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and if the minimum exceeds the maximum."""
        check_options(self)
        if self.least > self.most:
            raise SetupError(
                f"--least-answers is {self.least} and --most-answers is {self.most}; give --most-answers at least "
                f"{self.least}."
            )

    def may_keep(self, n_answers: int) -> bool:
        """Returns whether a question with this number of answers could be kept, if enough of them were validated."""
        return n_answers >= self.least and self.keeps(min(n_answers, self.most), n_answers)

    def keeps(self, n_validated: int, n_answers: int) -> bool:
        """Returns whether a question is kept, given its numbers of validated and of all answers; the latter is at least
        one."""
        return self.outcome(n_validated, n_answers) == KEPT

    def outcome(self, n_validated: int, n_answers: int, *, n_pairs: tuple[int, int] | None = None) -> str:
        """Returns the outcome of a question, a key of ``OUTCOMES``.

        Args:
            n_validated: number of distinct validated answers.
            n_answers: number of all answers, at least one.
            n_pairs: for compositions, the numbers of validated and of all pairs of subject and value; the share is
                computed from these.
        """
        if n_validated < self.least:
            return "too_few_validated"
        if n_validated > self.most:
            return "too_many_validated"
        n_right, n_all = n_pairs or (n_validated, n_answers)
        return KEPT if n_right / n_all >= self.share else "share_too_low"


POOL_SIZES: Mapping[str, int] = {
    SIMPLE: 830,
    COMPOSITION: 400,
    INTERSECTION: 400,
    TABLE_SIMPLE: 170,
    TABLE_COMPOSITION: 200,
}
"""Published number of questions in development and test set together, by subset."""


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """The numbers of questions that are drawn."""

    pool: Annotated[Mapping[str, int], Parameter(parse=False)] = field(default_factory=lambda: dict(POOL_SIZES))
    """Number of questions in development and test set together, by subset."""
    train_per_relation: AtLeast0 = 1000
    """Maximum number of training questions that depend on one relation."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for an invalid pool."""
        check_options(self)
        if self.pool.keys() != set(SUBSETS) or min(self.pool.values()) < 0:
            raise SetupError(
                f"The pool has {dict(self.pool)}; give a number of at least 0 for each of {', '.join(SUBSETS)}."
            )


class PoolQuestion(NamedTuple):
    """A question that can be drawn."""

    key: str  # key of its query; unique within the subset
    subset: str  # subset of the question, one of ``SUBSETS``
    property_ids: tuple[str, ...] = ()  # the relations that it depends on; empty for tables
    place: int = 0  # position among all questions, by which the caller identifies the question


def split_relations(property_ids: Iterable[str], seed: str) -> dict[str, Side]:
    """Returns for each simple relation whether its questions are for train or for test. The relations are divided into
    two random halves; if their number is odd, train gets one more.
    """
    drawn = sorted(
        set(property_ids), key=lambda property_id: (stable_sha256(seed, "relation", property_id), property_id)
    )
    n_test = len(drawn) // 2
    return {relation: "test" if number < n_test else "train" for number, relation in enumerate(drawn)}


def eligible_split_of(candidate: PoolQuestion, sides: Mapping[str, Side], *, mixed: Mixed = "train") -> Side | None:
    """Returns the split for which a question may be sampled: train, or test (dev included); None to drop the question.

    A simple question has the split of its relation. A composition is for test if at least one of its two relations is;
    a relation that is not simple does not count. An intersection is for test if both its relations are. Questions about
    tables have no relations: they are candidates for test first, and those that are not sampled are for training.

    Args:
        sides: the split of each simple relation, from ``split_relations``.
        mixed: how to treat intersections of a training and a test relation: ``train`` as in the paper, although this
            exposes a test relation in training; or ``drop``.
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
    """Returns the sort key that decides the draw from a subset; it differs for each purpose."""
    return stable_sha256(seed, purpose, candidate.subset, candidate.key), candidate.key


def draw_pool(candidates: Iterable[PoolQuestion], sizes: SampleSizes, seed: str) -> list[PoolQuestion]:
    """Returns the questions of development and test set together, ordered by subset and then as drawn.

    Simple questions are dealt in rounds over the relations (by property number), so that their numbers are as equal as
    possible; the others are drawn uniformly. From a subset with too few questions, all are drawn.

    Args:
        candidates: the questions that are eligible for test, in any order, without repeats. For each relation, no more
            are held in memory than can be drawn.
    """
    hands: defaultdict[tuple[str, str], list[tuple[tuple[str, str], PoolQuestion]]] = defaultdict(list)
    for candidate in candidates:
        # Only the first candidates of each group can be drawn.
        hand, most = (
            hands[candidate.subset, candidate.property_ids[0] if candidate.subset == SIMPLE else ""],
            sizes.pool[candidate.subset],
        )
        placed = draw_key(candidate, seed, "pool"), candidate
        if len(hand) < most or (hand and placed < hand[-1]):
            insort(hand, placed)
            del hand[most:]
    pool: list[PoolQuestion] = []
    for subset in SUBSETS:
        names = sorted((name for found, name in hands if found == subset), key=lambda name: (len(name), name))
        pool += _deal([[candidate for _, candidate in hands[subset, name]] for name in names], sizes.pool[subset])
    return pool


def _deal(hands: list[list[PoolQuestion]], n: int) -> list[PoolQuestion]:
    rounds = max(map(len, hands), default=0)
    dealt = [hand[number] for number in range(rounds) for hand in hands if number < len(hand)]
    return dealt[:n]


def draw_train(candidates: Iterable[PoolQuestion], sizes: SampleSizes) -> Iterator[PoolQuestion]:
    """Draws the training questions: each candidate is drawn unless one of its relations has reached its maximum.

    A question counts for every relation that it depends on. Questions about tables depend on no relation and are all
    taken.

    Args:
        candidates: the questions that are eligible for train, in the order of ``draw_key``.
    """
    n_taken: Counter[str] = Counter()
    for candidate in candidates:
        rests_on = set(candidate.property_ids)
        if all(n_taken[name] < sizes.train_per_relation for name in rests_on):
            n_taken.update(rests_on)
            yield candidate


_TABLES = (TABLE_SIMPLE, TABLE_COMPOSITION)
_WAITING = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("digest", "key", "subset")),
        pa.field("property_ids", pa.list_(pa.string()), nullable=False),
        pa.field("place", pa.int64(), nullable=False),
    ]
)
"""Candidates for training."""
_IN_ORDER = "select digest, key, subset, property_ids, place from waiting order by digest, key, subset"
"""The candidates in the order of ``draw_key``."""
_ROWS_AT_ONCE = 1 << 14
_MEMORY_MB = 200


class QuestionDraw(NamedTuple):
    """The result of sampling for a question: the split for which it was a candidate, and the split that it is in."""

    eligible_split: Side | None
    split: Split | None


_UNDRAWN = {side: QuestionDraw(side, None) for side in (None, "train", "test")}
_TRAIN, _DEV, _TEST = QuestionDraw("train", "train"), QuestionDraw("test", "dev"), QuestionDraw("test", "test")


def draw_questions(
    candidates: Iterable[PoolQuestion],
    relations: Iterable[str],
    *,
    sizes: SampleSizes,
    seed: str,
    mixed: Mixed,
) -> list[QuestionDraw]:
    """Returns the eligible split and the split of each question, in the order of the candidates.

    First the pool is drawn from the questions that are eligible for test, and divided into dev and test. Then the
    training questions are drawn from the questions that are eligible for train, and from the remaining questions about
    tables. The order of the candidates does not affect the result. Memory: 8
    bytes per question, and a database that spills to a temporary folder.

    Args:
        candidates: every question that passed the filter, without repeats, in any order; read once.
    """
    from kbsource.runtime.database import connected, insert, ordered_batches  # command options are read without it

    sides = split_relations(relations, seed)
    draws: list[QuestionDraw] = []
    with TemporaryFolder() as scratch, connected(memory_mb=_MEMORY_MB, threads=1, scratch=scratch) as db:
        held: list[tuple[Any, ...]] = []

        def store() -> None:
            insert(db, "waiting", [rows_batch(held, _WAITING)], _WAITING)
            held.clear()

        def of_test_side() -> Iterator[PoolQuestion]:
            for place, candidate in enumerate(candidates):
                side = eligible_split_of(candidate, sides, mixed=mixed)
                # Questions about tables that do not fit into the pool are for training, where they are not limited.
                draws.append(_TRAIN if candidate.subset in _TABLES else _UNDRAWN[side])
                if side == "test":
                    yield candidate._replace(place=place)
                elif side == "train":
                    digest, _ = draw_key(candidate, seed, "train")
                    held.append((digest, *candidate._replace(place=place)))
                    if len(held) == _ROWS_AT_ONCE:
                        store()

        # Two halves, drawn over all subsets; an odd question is for testing.
        pool = draw_pool(of_test_side(), sizes, seed)
        drawn = sorted(pool, key=lambda question: (draw_key(question, seed, "half"), question.subset))
        dev, test = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
        store()
        for question in dev:
            draws[question.place] = _DEV
        for question in test:
            draws[question.place] = _TEST
        batches = ordered_batches(db, _IN_ORDER, _WAITING, n_rows=_ROWS_AT_ONCE)
        in_order = (row for batch in batches for row in batch.to_pylist())
        of_train = (PoolQuestion(**{name: row[name] for name in PoolQuestion._fields}) for row in in_order)
        for question in draw_train(of_train, sizes):
            draws[question.place] = _TRAIN
    return draws
