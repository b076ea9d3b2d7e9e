"""Ways to tamper with diffs of releases."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.release.layout import table_of
from tests.support.diff_worlds import made_diff
from tests.support.tampered.edits import (
    COUNTED,
    MANIFEST,
    Edit,
    Group,
    Place,
    Released,
    Tampered,
    again,
    at,
    drop,
    reverse,
    rows,
)
from tests.support.verified import seal

PAGE_CHANGES, SECTION_CHANGES, SPAN_CHANGES, REDIRECT_CHANGES = (
    f"{name}_changes/{name}_changes-00000-of-00001.parquet" for name in ("page", "section", "span", "redirect")
)


def _diff(folder: Path, release: Path) -> Released:
    made_diff(folder, 3, 40)
    return Released(folder / "diff", {name: folder / name / "release" for name in ("old", "new")})


def first(values: dict[str, Any], **wanted: Any) -> Callable[[list[Any]], None]:
    """Sets columns of the first row that has the wanted values."""
    return lambda changed: _first(changed, **wanted).update(values)


def _first(changed: list[Any], **wanted: Any) -> dict[str, Any]:
    row: dict[str, Any] = next(row for row in changed if all(row[name] == value for name, value in wanted.items()))
    return row


def _with_counts(edit: Edit) -> Edit:
    """Makes the manifest count the outcomes that a table has after the edit."""
    table = table_of(edit.file)
    assert table is not None

    def apply(folder: Path) -> None:
        edit.apply(folder)
        outcomes = pq.read_table(folder / edit.file, columns=["outcome"])["outcome"].to_pylist()
        counts = json.loads((folder / MANIFEST).read_text())["counts"]
        counts[table] = {name: outcomes.count(name) for name in counts[table]}
        seal(folder, counts=counts)

    return Edit(edit.file, apply)


def _change(
    what: str,
    file: str,
    invariant: str,
    text: str,
    *edits: Callable[[list[Any]], object],
    also: tuple[Place, ...] = (),
    is_compared: bool = False,
) -> Tampered:
    """Returns a table of a diff that was changed."""
    return Tampered(what, _with_counts(rows(file, *edits)), invariant, text, also=also, is_compared=is_compared)


def _name_page_twice(changed: list[Any]) -> None:
    _first(changed, outcome="added")["new_page_id"] = _first(changed, outcome="changed")["new_page_id"]


_CONTRADICTED = "which the other columns contradict"
_DIFF = (
    _change(
        "rows are in another order",
        PAGE_CHANGES,
        "invalid_change 2",
        "pages 11 and none: out of order, or duplicated",
        reverse,
    ),
    *(
        _change(what, PAGE_CHANGES, "invalid_change", f"{text}, {_CONTRADICTED}", first(values, outcome=outcome))
        for what, outcome, values, text in (
            ("an unchanged page has another title", "unchanged", {"title_changed": True}, "pages 2 and 2: unchanged"),
            ("a page that is gone has an id", "gone", {"new_page_id": 1}, "pages 5 and 1: gone"),
            ("how much was kept is missing", "changed", {"kept_share": None}, "pages 32 and 32: changed"),
            ("an added page has an origin", "added", {"origin_page_id": 1}, "pages none and 95: added"),
            ("an added page has the same text", "added", {"text_changed": False}, "pages none and 95: added"),
        )
    ),
    _change(
        "a new page is named twice", PAGE_CHANGES, "page_row_count 2", "new page 32 has two rows", _name_page_twice
    ),
    _change(
        "an old page is named twice",
        PAGE_CHANGES,
        "page_row_count",
        "old page 2 has two rows",
        again(0),
        also=((PAGE_CHANGES, "invalid_change 2"), (PAGE_CHANGES, "page_row_count 2")),
    ),
    _change(
        "more of a section was kept than all",
        SECTION_CHANGES,
        "invalid_change 3",
        "page 8: same",
        at(0, kept_share=1.5),
    ),
    _change(
        "the outcome of a piece is unknown",
        SPAN_CHANGES,
        "invalid_change 4",
        "page 8: x",
        first({"outcome": "x"}, outcome="same"),
        also=COUNTED,
    ),
    _change(
        "the outcome of a redirect is unknown",
        REDIRECT_CHANGES,
        "invalid_change 5",
        "page Page 22: x",
        at(0, outcome="x"),
        also=COUNTED,
    ),
    _change(
        "a piece begins behind the end of the last",
        SPAN_CHANGES,
        "invalid_segment 2",
        "page 8, element 0, [1, 6)",
        first({"old_start": 1, "new_start": 1}, outcome="same"),
    ),
    _change(
        "a piece that is gone is on a page",
        SPAN_CHANGES,
        "invalid_segment",
        "page 5, element 0, [0, 6)",
        first({"new_page_id": 1}, outcome="gone"),
    ),
    _change(
        "a piece is of no page", SPAN_CHANGES, "invalid_segment 3", "page 1000000 has no row", at(-1, old_page_id=10**6)
    ),
    _change(
        "an old page has no row",
        PAGE_CHANGES,
        "page_row_count 3",
        "old page 2",
        lambda changed: changed.remove(_first(changed, outcome="unchanged")),
        also=((PAGE_CHANGES, "page_row_count 4"),),
        is_compared=True,
    ),
    _change(
        "a new page has no row",
        PAGE_CHANGES,
        "page_row_count 4",
        "new page 95",
        lambda changed: changed.remove(_first(changed, outcome="added")),
        is_compared=True,
    ),
    _change(
        "a page that changed is said to be the same",
        PAGE_CHANGES,
        "change_differs",
        "page 32",
        first({"outcome": "unchanged", "text_changed": False}, outcome="changed"),
        also=((SPAN_CHANGES, "invalid_segment 3"), (SPAN_CHANGES, "invalid_segment 4")),
        is_compared=True,
    ),
    _change(
        "a piece is of another element",
        SPAN_CHANGES,
        "segment_differs",
        "page 8, element 1, [0, 6): Part 0 is not there",
        first({"new_element": 0}, outcome="same", old_element=1),
        is_compared=True,
    ),
    _change(
        "a piece ends behind its element",
        SPAN_CHANGES,
        "segment_differs",
        "page 8, element 4, [0, 59): ",
        first({"new_end": 10**6}, outcome="edited"),
        is_compared=True,
    ),
    _change(
        "the last piece is missing",
        SPAN_CHANGES,
        "invalid_segment 4",
        "page 46: segments do not cover its elements",
        drop(-1),
        is_compared=True,
    ),
)

GROUPS = {
    "diff": Group(RELEASE_DIFF, _diff, _DIFF),
}
