"""Views of diffs: every page of two worlds beside what became of it, and what is said before pages count as gone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kbsource.diff.kind import RELEASE_DIFF, doubts
from kbsource.diff.making import diff_report_text
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from mapping.inspector.about import release_name
from mapping.inspector.beside import collapsed_runs, lines_of
from mapping.inspector.opened import close_releases, open_releases
from tests.support.diff_worlds import WorldPage, made_diff
from tests.support.inspected import client_of
from tests.support.tables import read_table


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_diff(tmp_path_factory.mktemp("drift"), 7, 60, n_moves=6)


def paths(made: Path) -> list[str]:
    return [str(made / "diff"), str(made / "old" / "release"), str(made / "new" / "release")]


@pytest.fixture(scope="module")
def client(made: Path) -> Iterator[TestClient]:
    releases = open_releases(paths(made))
    yield client_of(*releases)
    close_releases(releases)


def test_every_element_of_both_versions_stands_in_one_line_in_order(made: Path) -> None:
    _, old, new = paths(made)
    spans: dict[int, list[dict[str, object]]] = {}
    for span in read_table(str(made / "diff"), "span_changes"):
        spans.setdefault(span["old_page_id"], []).append(span)
    outcomes = set()
    with KnowledgeSource.open(old) as before, KnowledgeSource.open(new) as after:
        for row in read_table(str(made / "diff"), "page_changes"):
            first = None if row["old_page_id"] is None else before.by_id(row["old_page_id"])
            second = None if row["new_page_id"] is None else after.by_id(row["new_page_id"])
            second = None if row["outcome"] == "merged" else second
            lines = lines_of(first, second, spans.get(row["old_page_id"], ()))
            for page, side in ((first, "old"), (second, "new")):
                versions = [version for line in lines if (version := getattr(line, side)) is not None]
                texts = [element.text for element in page.elements] if page else []
                assert [version.number for version in versions] == list(range(len(texts)))
                assert ["".join(piece.text for piece in version.pieces) for version in versions] == texts
            assert [line for _, run in collapsed_runs(lines) for line in run] == lines
            outcomes |= {line.outcome for line in lines}
    assert outcomes >= {"same", "edited", "moved", "gone", "added", "other_page"}


def page(*texts: str) -> Page:
    return WorldPage(1, "Lake", texts).page()


def span(element: int, outcome: str, new_element: int | None, **others: object) -> dict[str, object]:
    place = {"old_element": element, "old_start": 0, "old_end": 9, "new_page_id": 1, "new_element": new_element}
    return {**place, "outcome": outcome, **others}


def test_what_moved_stands_on_both_sides_and_each_knows_the_other() -> None:
    old, new = page("The first.", "The second.", "The third."), page("The third.", "The first.", "The second.")
    spans = [span(0, "same", 0), span(1, "same", 2), span(2, "same", 3), span(3, "moved", 1)]
    lines = lines_of(old, new, spans)
    assert [(line.outcome, line.old and line.old.number, line.new and line.new.number) for line in lines] == [
        ("same", 0, 0),
        ("moved", None, 1),
        ("same", 1, 2),
        ("same", 2, 3),
        ("moved", 3, None),
    ]
    assert lines[1].comes_from == 3
    assert lines[4].leads_to is spans[3]


def test_of_edits_that_cross_one_stands_beside_and_the_other_on_both_sides() -> None:
    old, new = page("a red house here", "a blue boat there"), page("a blue ship there", "a red barn here")
    spans = [span(0, "same", 0), span(1, "edited", 2), span(2, "edited", 1)]
    lines = lines_of(old, new, spans)
    assert [(line.outcome, line.old and line.old.number, line.new and line.new.number) for line in lines] == [
        ("same", 0, 0),
        ("edited", 1, None),
        ("edited", 2, 1),
        ("moved", None, 2),
    ]
    marked = [
        [piece.text for piece in version.pieces if piece.is_marked]
        for version in (lines[1].old, lines[2].old, lines[2].new, lines[3].new)
        if version is not None
    ]
    assert marked == [["house"], ["boat"], ["ship"], ["barn"]]


def test_unchanged_elements_far_from_a_change_are_folded() -> None:
    old, new = page(*"abcdef", "the end is here"), page(*"abcdef", "the end was here")
    spans = [*(span(number, "same", number) for number in range(7)), span(7, "edited", 7)]
    runs = list(collapsed_runs(lines_of(old, new, spans)))
    assert [(is_far, len(run)) for is_far, run in runs] == [(False, 1), (True, 5), (False, 2)]
    changed = runs[-1][1][-1]
    assert changed.old is not None
    assert [piece.text for piece in changed.old.pieces if piece.is_marked] == ["is"]


def test_every_page_has_a_card_that_leads_to_both_releases(made: Path, client: TestClient) -> None:
    for number, row in enumerate(read_table(str(made / "diff"), "page_changes")):
        answer = client.get(f"/r/diff/tables/page_changes/{number}")
        assert answer.status_code == 200
        for slug, side in (("release", "old"), ("release-2", "new")):
            if row[f"{side}_page_id"] is not None:
                assert f'href="/r/{slug}/page/{row[f"{side}_page_id"]}"' in answer.text
        assert re.search(r'class="line (?!same)', answer.text) or row["kept_share"] in (1.0, None)


def test_pieces_elsewhere_lead_to_where_they_stand_marked(made: Path, client: TestClient) -> None:
    moved = next(row for row in read_table(str(made / "diff"), "span_changes") if row["outcome"] == "other_page")
    found = client.get("/r/diff/tables/page_changes", params={"old_page_id": moved["old_page_id"]})
    number = found.text.partition('<a class="row" href="/r/diff/tables/page_changes/')[2].partition("?")[0]
    answer = client.get(f"/r/diff/tables/page_changes/{number}")
    place = f"{moved['new_element']}%3A{moved['new_start']}-{moved['new_element']}%3A{moved['new_end']}"
    assert f'href="/r/release-2/page/{moved["new_page_id"]}?hl={place}' in answer.text


def test_overview_and_measures_say_what_the_tables_count(made: Path, client: TestClient) -> None:
    counts = json.loads((made / "diff" / "manifest.json").read_bytes())["counts"]["page_changes"]
    overview, measures = client.get("/r/diff/").text, client.get("/r/diff/measures").text
    assert all(f'<td dir="auto" class="num">{n}</td>' in overview for n in counts.values())
    assert "Pages that lost the most text" in overview
    assert "Text kept by first infobox" in measures


def test_without_its_releases_a_card_says_which_to_open(made: Path) -> None:
    releases = open_releases(paths(made)[:1])
    client = client_of(*releases)
    manifest = json.loads((made / "diff" / "manifest.json").read_bytes())
    answer = client.get("/r/diff/tables/page_changes/0")
    assert all(manifest[side]["manifest_sha256"][:12] in answer.text for side in ("old", "new"))
    assert "Open the older release too" in client.get("/r/diff/measures").text
    close_releases(releases)


def test_what_makes_pages_look_gone_is_said_first(client: TestClient) -> None:
    whole = {"wiki": "enwiki", "dump_date": "20190801", "rejected": {}, "limits": {}}
    cut = {**whole, "dump_date": "20261001", "rejected": {"truncated_dump": 1, "malformed_xml": 2}}
    limited = {**whole, "limits": {"limit_pages": 100}}
    assert list(doubts({"old": whole, "new": whole})) == []
    assert list(doubts({"old": limited, "new": cut})) == [
        "The newer release, enwiki of 20261001, was made from a truncated dump: the missing pages count as "
        "gone or merged.",
        "The newer release, enwiki of 20261001, lacks pages: 2 records were rejected, and their pages count as "
        "gone or merged.",
        "The older release, enwiki of 20190801, was limited (limit_pages=100): pages that were left out count as added "
        "or split.",
    ]


def test_releases_of_dumps_without_a_date_are_of_unknown_date(made: Path) -> None:
    report = json.loads((made / "diff" / "report.json").read_bytes())
    undated = {side: {**report[side], "dump_date": None, "limits": {"limit_pages": 1}} for side in ("old", "new")}
    assert diff_report_text({**report, **undated}).startswith("# enwiki: unknown date and unknown date\n")
    assert all("enwiki of unknown date, was limited" in doubt for doubt in doubts(undated))
    assert release_name(RELEASE_DIFF, undated) == "Diff of releases, enwiki, unknown date to unknown date"
