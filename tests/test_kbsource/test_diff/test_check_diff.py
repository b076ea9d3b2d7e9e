"""What ``kbsource verify`` finds wrong with a diff."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbsource.diff.kind import TABLES
from kbsource.errors import SetupError
from kbsource.release.writer import write_rows
from tests.support.diff_worlds import made_diff
from tests.support.tables import read_table
from tests.support.verified import seal, verified

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_diff(tmp_path_factory.mktemp("diff"), 3, 40)


def _rules(made: Path, folder: Path, table: str, change: Callable[[Rows], object], *, compared: bool) -> set[str]:
    """Gives the rules that a diff breaks whose table was changed, with a manifest that fits it."""
    shutil.copytree(made / "diff", folder / "diff")
    rows = list(read_table(str(folder / "diff"), table))
    change(rows)
    values = [[row[name] for name in TABLES[table].names] for row in rows]
    write_rows(values, table, TABLES[table], output=str(folder / "diff"))
    counts = json.loads((folder / "diff" / "manifest.json").read_bytes())["counts"]
    counts[table] = {name: sum(row["outcome"] == name for row in rows) for name in counts[table]}
    seal(folder / "diff", counts=counts)
    sources = {"old": made / "old" / "release", "new": made / "new" / "release"} if compared else {}
    return {finding.rule for finding in verified(folder / "diff", **sources).findings}


def _first(rows: Rows, **wanted: Any) -> dict[str, Any]:
    return next(row for row in rows if all(row[name] == value for name, value in wanted.items()))


@pytest.mark.parametrize(
    ("table", "change", "rule"),
    [
        ("page_changes", lambda rows: rows.reverse(), "change_law"),
        ("page_changes", lambda rows: _first(rows, outcome="unchanged").update(title_changed=True), "change_law"),
        ("page_changes", lambda rows: _first(rows, outcome="gone").update(new_page_id=1), "change_law"),
        ("page_changes", lambda rows: _first(rows, outcome="changed").update(kept=None), "change_law"),
        ("page_changes", lambda rows: _first(rows, outcome="added").update(origin_page_id=1), "change_law"),
        ("page_changes", lambda rows: _first(rows, outcome="added").update(text_changed=False), "change_law"),
        (
            "page_changes",
            lambda rows: _first(rows, outcome="added").update(
                new_page_id=_first(rows, outcome="changed")["new_page_id"]
            ),
            "page_unnamed",
        ),
        ("section_changes", lambda rows: rows[0].update(kept=1.5), "change_law"),
        ("span_changes", lambda rows: _first(rows, outcome="same").update(old_start=1, new_start=1), "piece_law"),
        ("span_changes", lambda rows: _first(rows, outcome="gone").update(new_page_id=1), "piece_law"),
        ("span_changes", lambda rows: rows[-1].update(old_page_id=10**6), "piece_law"),
    ],
)
def test_tables_that_contradict_themselves_are_found(
    made: Path, tmp_path: Path, table: str, change: Callable[[Rows], object], rule: str
) -> None:
    assert rule in _rules(made, tmp_path, table, change, compared=False)


@pytest.mark.parametrize(
    ("table", "change", "rule"),
    [
        ("page_changes", lambda rows: rows.remove(_first(rows, outcome="unchanged")), "page_unnamed"),
        ("page_changes", lambda rows: rows.remove(_first(rows, outcome="added")), "page_unnamed"),
        (
            "page_changes",
            lambda rows: _first(rows, outcome="changed").update(outcome="unchanged", text_changed=False),
            "change_differs",
        ),
        (
            "span_changes",
            lambda rows: _first(rows, outcome="same", old_element=1).update(new_element=0),
            "piece_differs",
        ),
        ("span_changes", lambda rows: _first(rows, outcome="edited").update(new_end=10**6), "piece_differs"),
        ("span_changes", lambda rows: rows.pop(), "piece_law"),
    ],
)
def test_what_the_pages_say_otherwise_is_found(
    made: Path, tmp_path: Path, table: str, change: Callable[[Rows], object], rule: str
) -> None:
    found = _rules(made, tmp_path / "a", table, change, compared=True)
    assert rule in found


def test_other_releases_are_refused(made: Path) -> None:
    with pytest.raises(SetupError, match="was made from another release than"):
        verified(made / "diff", old=made / "new" / "release", new=made / "old" / "release")
    with pytest.raises(SetupError, match="--old and --new are for a diff of releases; give both"):
        verified(made / "diff", old=made / "old" / "release")
