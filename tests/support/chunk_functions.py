"""Chunk functions for tests of the engine: some go wrong on purpose."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kbsource.records import BadRecord
from kbsource.runtime.chunks import Work
from tests.support.guarded_work import misbehave

NUMBERS = pa.schema([pa.field("n", pa.int64(), nullable=False)])


@dataclass(frozen=True)
class Doubling:
    """Doubles numbers; negative ones are rejected, and some end the process.

    Attributes:
        moods: number -> what happens to it, see ``misbehave``.
        once: folder where it is noted that a number has gone wrong, so that it does so once only.
        plus: added to each.
    """

    moods: tuple[tuple[int, str], ...] = ()
    once: str | None = None

    schema = NUMBERS

    def __call__(self, plus: int = 0) -> Doubler:
        return Doubler(dict(self.moods), self.once, plus)


class Doubler:
    schema = NUMBERS

    def __init__(self, moods: dict[int, str], once: str | None, plus: int) -> None:
        self._moods, self._once, self._plus = moods, once, plus

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        for first, batch in rows:
            made = []
            for number, value in enumerate(batch["n"].to_pylist(), first):
                if number in work.verdicts:
                    times, how = work.verdicts[number]
                    work.report.rejected.append(BadRecord("double", str(value), f"{how}_{times}", "", "", number))
                    continue
                work.beat.enter(number)
                self._go_wrong(value)
                work.beat.leave()
                if value < 0:
                    work.report.rejected.append(BadRecord("double", str(value), "negative", "", "", number))
                else:
                    made.append(2 * value + self._plus)
            work.report.counts["made"] += len(made)
            yield pa.record_batch({"n": made}, schema=NUMBERS)

    def _go_wrong(self, value: int) -> None:
        if (mood := self._moods.get(value)) is None:
            return
        if self._once is not None:
            mark = Path(self._once, str(value))
            if mark.exists():
                return
            mark.touch()
        if mood == "kill":
            os.kill(os.getpid(), 9)
        misbehave(mood)
