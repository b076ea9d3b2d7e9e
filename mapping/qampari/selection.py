"""Which questions are kept, which side of the split they are on, and which are drawn.

Every draw goes by the sha256 of a seed and the query's key, so that it hangs neither on order nor on machine.

Source: QAMPARI (2022), sections 3.4 and 3.5 and appendix.
"""

from __future__ import annotations

import os
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
from mapping.options import AtLeast0, AtLeast1, Choices, Share, check_options
from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, SUBSETS, TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.sources.source import Split

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

Side = Literal["train", "test"]
CompositionBase = Literal["kept", "all"]
"""Simple queries that compositions are made of: those that are questions, or all with enough answers."""
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
"""What questions are made by: as section 3 of the paper says, or as the code at 30bed95 does."""
Mixed = Literal["train", "drop"]


@dataclass(frozen=True, slots=True)
class AnswerFilter:
    """Which questions have enough answers, and enough of them with evidence."""

    least: Annotated[AtLeast1, Parameter("--least-answers")] = 5
    """Validated answers that a question needs."""
    most: Annotated[AtLeast1, Parameter("--most-answers")] = 200
    """Validated answers that it may have."""
    share: Annotated[Share, Parameter("--least-share")] = 0.8
    """Share of all answers that must be validated."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for numbers of answers that nothing has."""
        check_options(self)
        if self.least > self.most:
            raise SetupError(
                f"From {self.least} to {self.most} answers: for --least-answers and --most-answers give the smaller "
                "number first."
            )

    def may_keep(self, n_answers: int) -> bool:
        """Whether a question with so many answers could be kept if all that is needed were validated."""
        return n_answers >= self.least and self.keeps(min(n_answers, self.most), n_answers)

    def keeps(self, n_validated: int, n_answers: int) -> bool:
        """Whether a question is kept, of whose answers, at least one, so many are validated."""
        return self.outcome(n_validated, n_answers) == KEPT

    def outcome(self, n_validated: int, n_answers: int, *, n_pairs: tuple[int, int] | None = None) -> str:
        """What becomes of a question, a key of ``OUTCOMES``.

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


POOL_SIZES: Mapping[str, int] = {
    SIMPLE: 830,
    COMPOSITION: 400,
    INTERSECTION: 400,
    TABLE_SIMPLE: 170,
    TABLE_COMPOSITION: 200,
}
"""Questions of development and test set together, by subset, as published."""


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """How many questions are drawn."""

    pool: Annotated[Mapping[str, int], Parameter(parse=False)] = field(default_factory=lambda: dict(POOL_SIZES))
    """Questions of development and test set together, by subset."""
    train_per_relation: AtLeast0 = 1000
    """Most training questions that rest on one relation."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for a pool that is none."""
        check_options(self)
        if self.pool.keys() != set(SUBSETS) or min(self.pool.values()) < 0:
            raise SetupError(
                f"The pool has {dict(self.pool)}: for each --pool-… give a number from 0 on; there are "
                f"{', '.join(SUBSETS)}."
            )


class PoolQuestion(NamedTuple):
    """A question that can be drawn."""

    key: str  # of its query; unique within the subset
    subset: str  # one of ``SUBSETS``
    property_ids: tuple[str, ...] = ()  # the relations that it rests on; none for tables
    place: int = 0  # where it stands among all questions, for those who draw to find it again


def split_relations(property_ids: Iterable[str], seed: str) -> dict[str, Side]:
    """The side of each simple relation: two halves, drawn; an odd one is for training."""
    drawn = sorted(
        set(property_ids), key=lambda property_id: (stable_sha256(seed, "relation", property_id), property_id)
    )
    n_test = len(drawn) // 2
    return {one: "test" if number < n_test else "train" for number, one in enumerate(drawn)}


def side_of(candidate: PoolQuestion, sides: Mapping[str, Side], *, mixed: Mixed = "train") -> Side | None:
    """The side of a question, None for one that is dropped.

    A simple question is on the side of its relation. A composition is on the test side when one of its two relations
    is; a relation that is no simple one has no side. An intersection is when both are. Questions about tables have no
    relations and no side of their own: the test pool is drawn from them first, and the rest is for training.

    Args:
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
    """What candidates of a subset are ordered by to be drawn; anew for each purpose."""
    return stable_sha256(seed, purpose, candidate.subset, candidate.key), candidate.key


def draw_pool(candidates: Iterable[PoolQuestion], sizes: SampleSizes, seed: str) -> list[PoolQuestion]:
    """The questions of development and test set together, in the order of the subsets and then as drawn.

    Simple questions are dealt by relation in turn (by number of the property), so that the relations have as many each
    as can be; the others are drawn alike. A subset that has too few gives all.

    Args:
        candidates: of the test side, in any order, each once; memory holds no more of each relation than can be drawn.
    """
    hands: defaultdict[tuple[str, str], list[tuple[tuple[str, str], PoolQuestion]]] = defaultdict(list)
    for one in candidates:
        # Everything that can be drawn is among the first of its hand.
        hand, most = hands[one.subset, one.property_ids[0] if one.subset == SIMPLE else ""], sizes.pool[one.subset]
        placed = draw_key(one, seed, "pool"), one
        if len(hand) < most or (hand and placed < hand[-1]):
            insort(hand, placed)
            del hand[most:]
    pool: list[PoolQuestion] = []
    for subset in SUBSETS:
        names = sorted((name for found, name in hands if found == subset), key=lambda one: (len(one), one))
        pool += _deal([[one for _, one in hands[subset, name]] for name in names], sizes.pool[subset])
    return pool


def _deal(hands: list[list[PoolQuestion]], n: int) -> list[PoolQuestion]:
    rounds = max(map(len, hands), default=0)
    dealt = [hand[number] for number in range(rounds) for hand in hands if number < len(hand)]
    return dealt[:n]


def draw_train(candidates: Iterable[PoolQuestion], sizes: SampleSizes) -> Iterator[PoolQuestion]:
    """The training questions: each that comes while all of its relations have room.

    A question counts for every relation that it rests on; questions about tables have none and are all taken.

    Args:
        candidates: of the training side, in the order of ``draw_key``.
    """
    n_taken: Counter[str] = Counter()
    for candidate in candidates:
        rests_on = set(candidate.property_ids)
        if all(n_taken[name] < sizes.train_per_relation for name in rests_on):
            n_taken.update(rests_on)
            yield candidate


_TABLES = (TABLE_SIMPLE, TABLE_COMPOSITION)
_DIGITS = 15
"""Hexadecimal digits of a sha256 that a number of 63 bits holds."""
_WAITING = pa.schema(
    [
        pa.field("digest", pa.int64(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("key", "subset")),
        pa.field("property_ids", pa.list_(pa.string()), nullable=False),
        pa.field("place", pa.int64(), nullable=False),
    ]
)
"""Candidates for training; the beginning of the digest is what they are ordered by."""
_ROWS_AT_ONCE = 1024


class Drawn(NamedTuple):
    """What became of a question: its side and the split that it was drawn for, None where there is none."""

    side: Side | None
    split: Split | None


_UNDRAWN = {side: Drawn(side, None) for side in (None, "train", "test")}
_TRAIN, _DEV, _TEST = Drawn("train", "train"), Drawn("test", "dev"), Drawn("test", "test")


def draw_questions(
    candidates: Iterable[PoolQuestion],
    relations: Iterable[str],
    *,
    sizes: SampleSizes,
    seed: str,
    mixed: Mixed,
    scratch: str,
) -> list[Drawn]:
    """Side and split of each question, in the order of the candidates.

    First the pool is drawn on the test side and halved; what is left of the training side, and of the questions about
    tables, is drawn for training. The order of the candidates changes nothing of what becomes of them. Memory: 8 bytes
    a question.

    Args:
        candidates: every question that passed the filter, each once, in any order; read once.
        scratch: local folder for scratch files, 200 bytes a question.
    """
    sides = split_relations(relations, seed)
    draws: list[Drawn] = []
    from kbsource.runtime.sorted_runs import SortedRuns  # brings numpy; the options of commands are read without it

    with SortedRuns(os.path.join(scratch, "waiting"), _WAITING, by="digest") as waiting:
        held: list[tuple[Any, ...]] = []

        def of_test_side() -> Iterator[PoolQuestion]:
            for place, one in enumerate(candidates):
                side = side_of(one, sides, mixed=mixed)
                # Those about tables that the pool has no room for are for training, which has no limit for them.
                draws.append(_TRAIN if one.subset in _TABLES else _UNDRAWN[side])
                if side == "test":
                    yield one._replace(place=place)
                elif side == "train":
                    digest, _ = draw_key(one, seed, "train")
                    held.append((int(digest[:_DIGITS], 16), *one._replace(place=place)))
                    if len(held) == _ROWS_AT_ONCE:
                        waiting.add(*rows_batch(held, _WAITING).columns)
                        held.clear()

        # Two halves, drawn over all subsets; an odd question is for testing.
        pool = draw_pool(of_test_side(), sizes, seed)
        drawn = sorted(pool, key=lambda question: (draw_key(question, seed, "half"), question.subset))
        dev, test = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
        waiting.add(*rows_batch(held, _WAITING).columns)
        for question in dev:
            draws[question.place] = _DEV
        for question in test:
            draws[question.place] = _TEST
        in_order = (row for batch in waiting.read_sorted(_ROWS_AT_ONCE) for row in batch.to_pylist())
        of_train = (PoolQuestion(**{name: row[name] for name in PoolQuestion._fields}) for row in in_order)
        for question in draw_train(of_train, sizes):
            draws[question.place] = _TRAIN
    return draws
