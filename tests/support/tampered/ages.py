"""Ways to tamper with the age of a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mapping.age import AGE
from tests.support.derived_releases import write_age, write_pages_release
from tests.support.pages import synthetic_pages
from tests.support.tampered.edits import COUNTED, Group, Place, Released, Tampered, at, drop, reverse, rows

FATES = "fates/fates-00000-of-00001.parquet"


def _age(folder: Path, release: Path) -> Released:
    made_from = write_pages_release(folder, [*synthetic_pages(2)])
    return Released(write_age(folder / "age", ["a", "b", "c"], made_from=made_from), {})


def _fate(
    what: str, invariant: str, text: str, *edits: Callable[[list[Any]], object], also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a changed table of fates."""
    return Tampered(what, rows(FATES, *edits), invariant, text, also=also)


_AGE = (
    _fate(
        "evidence is newly lost in the first release",
        "invalid_fate",
        "record a, release 0: the fate exact does not fit the other columns",
        at(0, newly_lost=True),
        also=((FATES, "invalid_fate 2"),),
    ),
    _fate("a fate is unknown", "invalid_fate", "record a, release 1: the fate lost", at(1, fate="lost"), also=COUNTED),
    _fate(
        "a page that was searched is none", "invalid_fate", "record a, release 1: the fate weak", at(1, page_id=None)
    ),
    _fate(
        "rows are in another order",
        "invalid_fate 2",
        "record a, release 0: out of order, or a wrong newly_lost",
        reverse,
    ),
    _fate("a loss is not marked", "invalid_fate 2", "record a, release 1: out of order", at(1, newly_lost=False)),
    _fate("the last row is missing", "evidence_row_count", "record c, evidence 0, 0", drop(-1), also=COUNTED),
)

GROUPS = {"age": Group(AGE, _age, _AGE)}
