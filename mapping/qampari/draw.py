"""The split that each question is drawn for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from kbsource.files import LocalStorage
from kbsource.runtime.chunks import Key, Report, Stored, chunk_path, write_chunk
from kbsource.runtime.regroup import merge_group
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.selection import (
    Mixed,
    PoolQuestion,
    SampleSizes,
    Side,
    draw_key,
    draw_pool,
    draw_train,
    halve_pool,
    side_of,
    split_relations,
)
from mapping.sources.reading.base import Split

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


_OUTCOMES = (
    Drawn(None, None),
    Drawn("train", None),
    Drawn("test", None),
    Drawn("train", "train"),
    Drawn("test", "dev"),
    Drawn("test", "test"),
)
"""All that can become of a question."""


class Draws:
    """What became of questions, in the order in which they came. Memory: a byte each."""

    def __init__(self) -> None:
        self._numbers = bytearray()

    def __len__(self) -> int:
        """Gives the number of questions."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[Drawn]:
        """Gives what became of each."""
        return (_OUTCOMES[number] for number in self._numbers)

    def append(self, drawn: Drawn) -> None:
        """Takes what becomes of the next question, as far as is known."""
        self._numbers.append(_OUTCOMES.index(drawn))

    def __setitem__(self, place: int, drawn: Drawn) -> None:
        """Takes what became of a question, by its place."""
        self._numbers[place] = _OUTCOMES.index(drawn)


def draw_questions(
    candidates: Iterable[PoolQuestion],
    relations: Iterable[str],
    *,
    sizes: SampleSizes,
    seed: str,
    mixed: Mixed,
    scratch: str,
    run_rows: int = 1 << 15,
) -> Draws:
    """Gives side and split of each question, in the order of the candidates.

    First the pool is drawn on the test side and halved; what is left of the training side, and of the questions about
    tables, is drawn for training. The order of the candidates changes nothing of what becomes of them.

    Args:
        candidates: every question that passed the filter, each once, in any order; read once.
        relations: simple ones, of which half are for testing.
        sizes: how many are drawn.
        seed: of every draw.
        mixed: see ``selection.side_of``.
        scratch: local folder for scratch files, 200 bytes a question.
        run_rows: memory holds so many of those that wait to be drawn for training, and a part of as many more.
    """
    sides = split_relations(relations, seed)
    draws = Draws()
    waiting = _Waiting(scratch, run_rows)

    def of_test_side() -> Iterator[PoolQuestion]:
        for place, one in enumerate(candidates):
            side = side_of(one, sides, mixed=mixed)
            # Those about tables that the pool has no room for are for training, which has no limit for them.
            draws.append(Drawn("train", "train") if one.subset in _TABLES else Drawn(side, None))
            if side == "test":
                yield one._replace(place=place)
            elif side == "train":
                waiting.add(draw_key(one, seed, "train")[0], one._replace(place=place))

    dev, test = halve_pool(draw_pool(of_test_side(), sizes, seed), seed)
    for question in dev:
        draws[question.place] = Drawn("test", "dev")
    for question in test:
        draws[question.place] = Drawn("test", "test")
    for question in draw_train(waiting.in_order(), sizes):
        draws[question.place] = Drawn("train", "train")
    return draws


class _Waiting:
    """Candidates put in order of a digest, through sorted files."""

    def __init__(self, folder: str, run_rows: int) -> None:
        self._folder, self._run_rows = folder, run_rows
        self._pending: list[tuple[Any, ...]] = []
        self._runs: list[Stored] = []

    def add(self, digest: str, pool_question: PoolQuestion) -> None:
        """Takes one."""
        self._pending.append(
            (
                int(digest[:_DIGITS], 16),
                pool_question.key,
                pool_question.subset,
                pool_question.property_ids,
                pool_question.place,
            )
        )
        if len(self._pending) == self._run_rows:
            self._flush()

    def _flush(self) -> None:
        path = chunk_path(self._folder, Key(0, len(self._runs)))
        self._pending.sort()
        parts = (self._pending[start : start + _ROWS_AT_ONCE] for start in range(0, len(self._pending), _ROWS_AT_ONCE))
        batches = (
            pa.RecordBatch.from_arrays(
                [pa.array(*column) for column in zip(zip(*part, strict=True), _WAITING.types, strict=True)],
                schema=_WAITING,
            )
            for part in parts
        )
        self._runs.append(write_chunk(batches, _WAITING, Report(), path=path, storage=LocalStorage()))
        self._pending = []

    def in_order(self) -> Iterator[PoolQuestion]:
        """Gives all of them; after the last was added."""
        if self._pending:
            self._flush()
        for batch in merge_group(self._runs, LocalStorage(), ["digest"]) if self._runs else ():
            columns = (column.to_pylist() for column in batch.columns[1:])
            for key, subset, property_ids, place in zip(*columns, strict=True):
                yield PoolQuestion(key, subset, tuple(property_ids), place)
