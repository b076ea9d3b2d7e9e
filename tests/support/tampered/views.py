"""Ways to tamper with page views."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbsource.pageviews import PAGEVIEWS_RELEASE
from pipelines.cli import main
from tests.support.tampered.edits import COUNTED, MANIFEST, Group, Place, Released, Tampered, again, at, reverse, rows

VIEWS = "pageviews/pageviews-00000-of-00001.parquet"


def _views(folder: Path, release: Path) -> Released:
    (folder / "views.txt").write_text("en.wikipedia A 1 desktop 3 A3\nen.wikipedia B 2 desktop 5 B5\n")
    made = folder / "views"
    assert main(["pageviews", str(folder / "views.txt"), "--site", "enwiki", "--output", str(made)]) == 0
    return Released(made, {})


def _view(
    what: str,
    invariant: str,
    text: str,
    *edits: Callable[[list[Any]], object],
    file: str = "",
    also: tuple[Place, ...] = (),
) -> Tampered:
    """Returns a changed table of page views."""
    return Tampered(what, rows(VIEWS, *edits), invariant, text, file, also)


_VIEWS = (
    _view("rows are in another order", "invalid_views 2", "A, page 1 is out of order", reverse),
    _view("a title is there twice", "invalid_views 2", "B, page 2 is out of order", again(1), also=COUNTED),
    _view(
        "a title without a page comes last",
        "invalid_views 2",
        "A, page none is out of order",
        at(1, title="A", page_id=None),
    ),
    _view("views are negative", "invalid_views", "A, -8 views", at(0, views=-8), also=COUNTED),
    _view("a title is empty", "invalid_views", ", 3 views", at(0, title="")),
    _view("a page has a negative id", "invalid_views", "B, 5 views", at(1, page_id=-2)),
    _view("a page has fewer views", "counts", "views: 7 counted, 8 written", at(0, views=2), file=MANIFEST),
)

GROUPS = {"pageviews": Group(PAGEVIEWS_RELEASE, _views, _VIEWS)}
