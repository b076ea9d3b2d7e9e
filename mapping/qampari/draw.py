"""The split that each question is drawn for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import (
    Candidate,
    Mixed,
    SampleSizes,
    Side,
    draw_key,
    draw_pool,
    draw_train,
    halve_pool,
    side_of,
    split_relations,
)
from mapping.sources.base import Split

_TABLES = (TABLE_SIMPLE, TABLE_COMPOSITION)


class Drawn(NamedTuple):
    """What became of a question: its side and the split that it was drawn for, None where there is none."""

    side: Side | None
    split: Split | None


def draw_questions(
    candidates: Sequence[Candidate], relations: Iterable[str], *, sizes: SampleSizes, seed: str, mixed: Mixed
) -> dict[tuple[str, str], Drawn]:
    """Gives side and split of each question, by subset and key.

    First the pool is drawn on the test side and halved; what is left of the training side, and of the questions about
    tables, is drawn for training.

    Args:
        candidates: every question that passed the filter, each once, in any order.
        relations: simple ones, of which half are for testing.
        sizes: how many are drawn.
        seed: of every draw.
        mixed: see ``selection.side_of``.
    """
    sides = split_relations(relations, seed)
    drawn = {(one.subset, one.key): Drawn(side_of(one, sides, mixed=mixed), None) for one in candidates}

    def side(one: Candidate) -> Side | None:
        return drawn[one.subset, one.key].side

    pool = draw_pool((one for one in candidates if side(one) == "test"), sizes, seed)
    halves: Mapping[Split, list[Candidate]] = dict(zip(("dev", "test"), halve_pool(pool, seed), strict=True))
    for split, half in halves.items():
        for one in half:
            drawn[one.subset, one.key] = Drawn("test", split)
    for one in candidates:
        if one.subset in _TABLES and drawn[one.subset, one.key].split is None:
            drawn[one.subset, one.key] = Drawn("train", None)
    waiting = sorted(
        (one for one in candidates if side(one) == "train"),
        key=lambda one: (draw_key(one, seed, "train"), one.subset),
    )
    for one in draw_train(waiting, sizes):
        drawn[one.subset, one.key] = Drawn("train", "train")
    return drawn
