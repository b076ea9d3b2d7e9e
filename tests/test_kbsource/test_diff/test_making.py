"""Diffs of worlds that change by chance: every page as the slow diff has it, every piece where it is said to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.diff.making import make_diff
from kbsource.errors import SetupError
from tests.support.builds import contents
from tests.support.diff_worlds import Changes, World, WorldPage, outcomes, page_rows, redirect_rows, write_world
from tests.support.tables import read_table
from tests.support.verified import verified

SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))]


def _diff(old: Path, new: Path, output: Path, **options: Any) -> dict[str, Any]:
    return make_diff(str(old), str(new), str(output), **options)


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["old_page_id"] is None, row["old_page_id"], row["new_page_id"])


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_world_that_changed_all_is_as_the_slow_diff_has_it(seed: int, tmp_path: Path) -> None:
    changes = Changes(seed)
    before = changes.world.copy()
    changes.change(30)
    old, new = write_world(tmp_path / "old", before), write_world(tmp_path / "new", changes.world)
    _diff(old, new, tmp_path / "diff")

    wanted = sorted(page_rows(before, changes.world), key=_key)
    found = list(read_table(str(tmp_path / "diff"), "page_changes"))
    assert [{name: row[name] for name in wanted[0]} for row in found] == wanted
    places = {row["old_page_id"]: row["new_page_id"] for row in wanted if row["old_page_id"] is not None}
    redirects = {row["title"]: row["outcome"] for row in read_table(str(tmp_path / "diff"), "redirect_changes")}
    assert redirects == redirect_rows(before, changes.world, places)
    assert verified(tmp_path / "diff", old=old, new=new).findings == ()
    assert verified(tmp_path / "diff").is_sound


def test_threads_and_memory_change_no_byte(tmp_path: Path) -> None:
    changes = Changes(99, n_pages=60)
    old = write_world(tmp_path / "old", changes.world)
    changes.change(60)
    new = write_world(tmp_path / "new", changes.world)
    _diff(old, new, tmp_path / "a", threads=1)
    _diff(old, new, tmp_path / "b", threads=2, memory_mb=200)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_of_a_release_and_itself_all_is_unchanged(tmp_path: Path) -> None:
    changes = Changes(5)
    release = write_world(tmp_path, changes.world)
    report = _diff(release, release, tmp_path / "diff")
    manifest = RELEASE_DIFF.read(str(tmp_path / "diff"))
    assert outcomes(manifest) == {"unchanged": len(changes.world.pages)}
    assert all(outcomes(manifest, table) == {} for table in ("section_changes", "span_changes"))
    assert outcomes(manifest, "redirect_changes") == {}
    assert report["text"]["kept_share"] == 1.0
    assert report["most_changed"] == []


LONG = "A paragraph of more than eighty characters, so that it is looked for in every page that has new texts."
OLD = World(
    {
        1: WorldPage(1, "A|B", ("Kept.", LONG, "= Old head", "The text under this head is long enough."), "Q1"),
        2: WorldPage(2, "Other", ("Something.",), "Q2"),
        3: WorldPage(3, "Last", ("It is last.",)),
    }
)
NEW = World(
    {
        1: WorldPage(1, "A|B", ("Kept.", "= New head", "The text under this head is long enough."), "Q2"),
        2: WorldPage(2, "Other", ("Something.", LONG)),
        3: WorldPage(3, "Last", ("It is last.",)),
    }
)


def test_long_texts_are_found_in_other_pages_and_sections_under_other_heads(tmp_path: Path) -> None:
    old, new = write_world(tmp_path / "old", OLD), write_world(tmp_path / "new", NEW)
    report = _diff(old, new, tmp_path / "diff")
    pieces = {
        (row["old_page_id"], row["old_element"]): row for row in read_table(str(tmp_path / "diff"), "span_changes")
    }
    moved = pieces[1, 2]
    assert (moved["outcome"], moved["new_page_id"], moved["new_element"], moved["score"]) == ("other_page", 2, 2, 1.0)
    assert (moved["new_start"], moved["new_end"]) == (0, len(LONG))
    assert pieces[1, 1]["outcome"] == pieces[1, 4]["outcome"] == "same"
    sections = list(read_table(str(tmp_path / "diff"), "section_changes"))
    assert [(row["old_page_id"], row["old_section"], row["new_section"], row["outcome"]) for row in sections] == [
        (1, [], [], "changed"),
        (1, ["Old head"], ["New head"], "renamed"),
        (2, [], [], "changed"),
    ]
    assert sections[0]["kept_share"] == len("Kept.") / (len("Kept.") + len(LONG))
    [worst] = report["most_changed"]
    assert (worst["title"], worst["outcome"], worst["old_chars"]) == ("A|B", "changed", 155)
    assert report["flags"] == {"text_changed": 2, "title_changed": 0, "qid_moved": 1}
    assert "| A\\|B | 1 | changed | 155 | " in (tmp_path / "diff" / "report.md").read_text("utf-8")


def test_the_older_release_comes_first_unless_reversed(tmp_path: Path) -> None:
    old = str(write_world(tmp_path / "old", OLD, date="20190801"))
    new = str(write_world(tmp_path / "new", NEW, date="20261001"))
    with pytest.raises(SetupError, match=r"is of 20261001, which is later than .* of 20190801; .* add --reverse"):
        make_diff(new, old, str(tmp_path / "diff"))
    with pytest.raises(SetupError, match=r"is of 20190801, which is earlier than .* of 20261001; leave --reverse out"):
        make_diff(old, new, str(tmp_path / "diff"), reverse=True)
    assert not (tmp_path / "diff").exists()
    assert make_diff(new, old, str(tmp_path / "diff"), reverse=True)["old"]["dump_date"] == "20261001"


def test_releases_of_two_wikis_have_no_diff(tmp_path: Path) -> None:
    old, new = write_world(tmp_path / "old", OLD), write_world(tmp_path / "new", NEW, wiki="dewiki")
    with pytest.raises(
        SetupError, match=r"is a release of enwiki and .* of dewiki; name two releases of the same wiki"
    ):
        _diff(old, new, tmp_path / "diff")
    assert not (tmp_path / "diff").exists()


def test_a_folder_out_of_reach_of_joins_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="--output s3://bucket/diff: a diff is written to a local disk"):
        make_diff(str(tmp_path), str(tmp_path), "s3://bucket/diff")


def test_a_release_that_is_not_as_it_was_written_is_refused(tmp_path: Path) -> None:
    release = write_world(tmp_path, OLD)
    path = release / "redirects" / "redirects-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with pytest.raises(SetupError, match="is damaged or changed"):
        _diff(release, release, tmp_path / "diff")
