"""Spans of old pages, found in the new release."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbsource.diff.crosswalk import MovedSpan, ReleaseDiff
from kbsource.diff.making import make_diff
from kbsource.errors import SetupError
from tests.support.diff_worlds import Changes, World, WorldPage, write_world

LONG = "A paragraph of more than eighty characters, so that it is looked for in every page that has new texts."
EDITED = "The mill was built in 1901 and burnt in 1950; a bridge stands there."
OLD = World(
    {
        1: WorldPage(1, "Mill", (EDITED, LONG, "It is gone soon.")),
        2: WorldPage(2, "Other", ("Something.",)),
        3: WorldPage(3, "Gone", ("It was there.",)),
        4: WorldPage(4, "Same", ("All is as it was.",)),
    }
)
NEW = World(
    {
        1: WorldPage(1, "Mill", ("New.", EDITED.replace("burnt in 1950", "was burnt down in 1951"))),
        2: WorldPage(2, "Other", ("Something.", LONG)),
        4: WorldPage(4, "Same now", ("All is as it was.",)),
    }
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    folder = tmp_path_factory.mktemp("diff")
    old, new = write_world(folder / "old", OLD), write_world(folder / "new", NEW)
    make_diff(str(old), str(new), str(folder / "diff"))
    return folder / "diff", old, new


@pytest.fixture
def diff(folders: tuple[Path, Path, Path]) -> Iterator[ReleaseDiff]:
    with ReleaseDiff(folders[0], old=folders[1], new=folders[2]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("page_id", "element", "text", "place", "moved", "outcome"),
    [
        (1, 1, "built in 1901", (1, 2), "built in 1901", "same"),
        (1, 1, "a bridge", (1, 2), "a bridge", "same"),
        (1, 1, "burnt", (1, 2), "burnt", "same"),
        (1, 1, "1950", (1, 2), "1951", "edited"),
        (1, 1, EDITED, (1, 2), EDITED.replace("burnt in 1950", "was burnt down in 1951"), "edited"),
        (1, 2, "eighty characters", (2, 2), "eighty characters", "same"),
        (4, 1, "as it was", (4, 1), "as it was", "same"),
        (4, 0, "Same", (4, 0), "Same", "same"),
    ],
)
def test_a_span_stands(
    diff: ReleaseDiff, page_id: int, element: int, text: str, place: tuple[int, int], moved: str, outcome: str
) -> None:
    whole = OLD.pages[page_id].page().elements[element].text
    start = whole.index(text)
    found = diff.move_span(page_id, element, start, start + len(text))
    assert (found.page_id, found.element, found.outcome) == (*place, outcome)
    assert NEW.pages[place[0]].page().elements[place[1]].text[found.start : found.end] == moved


def test_what_is_gone_stands_nowhere(diff: ReleaseDiff) -> None:
    gone = MovedSpan(None, None, None, None, "gone")
    assert diff.move_span(3, 1, 0, 5) == gone
    assert diff.move_span(1, 3, 0, 2) == gone


def test_a_page_has_its_row(diff: ReleaseDiff) -> None:
    row = diff.page(4)
    assert row is not None
    assert (row["outcome"], row["new_title"], row["kept_share"]) == ("renamed", "Same now", 1.0)
    assert diff.page(7) is None


@pytest.mark.parametrize(("page_id", "element", "end"), [(9, 0, 0), (1, 9, 0), (2, 1, 99)])
def test_a_span_that_is_none_is_refused(diff: ReleaseDiff, page_id: int, element: int, end: int) -> None:
    with pytest.raises(ValueError, match=f"page {page_id}, element {element}"):
        diff.move_span(page_id, element, 0, end)


def test_other_releases_than_those_of_the_diff_are_refused(folders: tuple[Path, Path, Path]) -> None:
    with pytest.raises(SetupError, match="not the release that the diff was made from"):
        ReleaseDiff(folders[0], old=folders[2], new=folders[1])


@pytest.mark.slow  # many worlds
def test_what_is_said_to_be_the_same_is_the_same_in_worlds_that_change_by_chance(tmp_path: Path) -> None:
    changes = Changes(17)
    before = changes.world.copy()
    changes.change(40)
    old, new = write_world(tmp_path / "old", before), write_world(tmp_path / "new", changes.world)
    make_diff(str(old), str(new), str(tmp_path / "diff"))
    rng, found = random.Random(0), set()
    with ReleaseDiff(tmp_path / "diff", old=old, new=new) as diff:
        for _ in range(400):
            page = before.pages[rng.choice(sorted(before.pages))].page()
            element = rng.randrange(len(page.elements))
            text = page.elements[element].text
            start, end = sorted(rng.choices(range(len(text) + 1), k=2))
            span = diff.move_span(page.page_id, element, start, end)
            found.add(span.outcome)
            if span.outcome == "gone":
                continue
            assert span.page_id is not None
            assert span.element is not None
            there = changes.world.pages[span.page_id].page().elements[span.element].text
            assert 0 <= (span.start or 0) <= (span.end or 0) <= len(there)
            assert (there[span.start : span.end] == text[start:end]) == (span.outcome == "same")
    assert found == {"same", "edited", "gone"}
