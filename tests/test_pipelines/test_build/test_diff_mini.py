"""``kbsource diff`` of the mini-wiki and of what it is a month later, edited by hand in every way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.diff.crosswalk import ReleaseDiff
from mapping.search.resolve import read_moves
from pipelines.cli import main
from tests.support import edited_wiki as edited
from tests.support.builds import build_mini, open_release
from tests.support.tables import read_table
from tests.support.verified import verified

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("later")
    dump, props = edited.write_edited(folder)
    build_mini(folder / "release", dump=dump, page_props=str(props))
    return folder / "release"


@pytest.fixture(scope="module")
def diff(release: Path, later: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff") / "diff"
    assert main(["diff", str(release), str(later), "--output", str(folder), "--threads", "1"]) == 0
    return folder


def _rows(diff: Path, table: str) -> Rows:
    return list(read_table(str(diff), table))


def test_every_page_is_what_became_of_it(diff: Path) -> None:
    rows = _rows(diff, "page_changes")
    found = {
        row["old_page_id"] or row["new_page_id"]: (row["outcome"], row["new_page_id"], row["matched_by"])
        for row in rows
        if row["outcome"] != "unchanged"
    }
    assert found == {
        24: ("changed", 24, "page_id"),
        27: ("changed", 27, "page_id"),
        48: ("changed", 48, "page_id"),
        234: ("changed", 234, "page_id"),
        edited.RENAMED: ("renamed", edited.RENAMED, "page_id"),
        edited.MERGED: ("merged", 48, "redirect"),
        edited.SPLIT: ("split", edited.SPLIT, "redirect"),
        edited.DELETED: ("gone", None, None),
        edited.DISAMBIGUATION: ("disambiguation", edited.DISAMBIGUATION, "page_id"),
        edited.RECREATED: ("recreated", edited.AGAIN, "title"),
        edited.REPLACED: ("recreated", edited.REPLACEMENT, "qid"),
        edited.NEW: ("added", edited.NEW, None),
    }
    by_id = {row["old_page_id"] or row["new_page_id"]: row for row in rows}
    assert [row["old_page_id"] for row in rows if row["qid_moved"]] == [edited.ITEM_GIVER]
    assert by_id[edited.ITEM_GIVER]["qid_page_id"] == edited.ITEM_TAKER
    assert by_id[edited.SPLIT]["origin_page_id"] == 12
    assert by_id[edited.MERGED]["kept_share"] == 1.0
    assert by_id[24]["kept_share"] == 1.0
    assert not by_id[edited.RENAMED]["text_changed"]


def test_every_redirect_is_what_became_of_it(diff: Path) -> None:
    found = {row["title"]: (row["outcome"], row["new_target_page_id"]) for row in _rows(diff, "redirect_changes")}
    assert found == {
        "Ferries of Halvane": ("now_article", None),
        "Halvane pound": ("was_article", edited.RENAMED),
        "HST": ("retargeted", 51),
        "Tide Cup": ("was_article", 48),
    }


def test_titles_that_lead_elsewhere_are_known_moves(diff: Path) -> None:
    moves = read_moves(str(diff / "title_map.tsv"))
    assert moves == {"Idris Pell": "Idris Pell (clockmaker)"}


def test_sections_and_pieces_are_found_again(diff: Path, release: Path, later: Path) -> None:
    sections = {
        tuple(row["old_section"] or ()): (row["outcome"], row["new_section"])
        for row in _rows(diff, "section_changes")
        if row["old_page_id"] == 234
    }
    assert sections == {
        (): ("same", []),
        ("Crossings",): ("renamed", ["Ferries"]),
        ("Crossings", "Tide race"): ("moved", ["Ferries", "Tide race"]),
    }
    with open_release(release) as old, open_release(later) as new, ReleaseDiff(diff, old=release, new=later) as walk:
        for page_id, text, place, outcome in (
            (24, "a town in Veldmark", 24, "same"),
            (234, "seven years after the battle", 234, "same"),
            (234, "has 152 steps", 234, "edited"),
            (27, "each of them wet", edited.SPLIT, "same"),
            (edited.MERGED, "since 1919", 48, "same"),
            (edited.REPLACED, "saw the monster", edited.REPLACEMENT, "same"),
        ):
            before = old.by_id(page_id)
            assert before is not None
            element = next(
                number for number, element_of_page in enumerate(before.elements) if text in element_of_page.text
            )
            start = before.elements[element].text.index(text)
            found = walk.move_span(page_id, element, start, start + len(text))
            assert (found.page_id, found.outcome) == (place, outcome)
            after = new.by_id(place)
            assert after is not None
            said = after.elements[found.element or 0].text[found.start : found.end]
            assert said == text.replace("152", "160")


def test_laws_hold_and_the_report_says_what_there_is(
    diff: Path, release: Path, later: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert verified(diff, old=release, new=later).findings == ()
    assert main(["verify", str(diff), "--old", str(release), "--new", str(later)]) == 0
    capsys.readouterr()
    assert main(["diff", str(release), str(later), "--output", str(tmp_path / "again"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (tmp_path / "again" / "manifest.json").read_bytes() == (diff / "manifest.json").read_bytes()
    assert {**json.loads((diff / "report.json").read_bytes()), "output": str(tmp_path / "again")} == report
    assert report["counts"]["page_changes"]["recreated"] == 2
    assert (report["old"]["dump_date"], report["new"]["dump_date"]) == ("20260101", edited.DATE)
    assert 0.97 < report["text"]["kept_share"] < 1.0


@pytest.mark.parametrize(("option", "least"), [("--memory", 100), ("--threads", 1)])
def test_a_limit_that_is_none_is_refused(
    option: str, least: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", "OLD", "NEW", "--output", str(tmp_path / "diff"), option, "0"]) == 2
    assert f"{option} is 0. Must be >= {least}." in capsys.readouterr().err


def test_show_says_what_became_of_a_page_and_which_words_changed(
    diff: Path, release: Path, later: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = ["--old", str(release), "--new", str(later)]
    assert main(["show", str(diff), "Ister Sound", *sides]) == 0
    said = capsys.readouterr().out
    assert "outcome     changed: same id and title, different text" in said
    assert "Crossings              Ferries              renamed" in said
    assert "- [-Crossings-]\n+ {+Ferries+}\n" in said
    assert "has [-152-] steps." in said
    assert "has {+160+} steps." in said
    assert main(["show", str(diff), str(edited.MERGED), *sides]) == 0
    assert "- Tide Cup → page 48, element 0\n" in capsys.readouterr().out
    assert main(["show", str(diff), "Nowhere"]) == 1
    assert main(["show", str(diff), "Ister Sound", "--old", str(later), "--new", str(later)]) == 2
    assert "not the release that the diff was made from" in capsys.readouterr().err
