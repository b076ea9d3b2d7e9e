"""What became of the sections of a page."""

from __future__ import annotations

import pytest

from kbsource.diff.elements import match_elements
from kbsource.diff.page_texts import PageText
from kbsource.diff.sections import match_sections

LONG = "The river Tey rises in the hills and flows to the sea."
OTHER = "Goats of the island are kept for milk, which is sold in spring."


def _page(*parts: str) -> PageText:
    """Gives a page of paragraphs, and of headings, which begin with ``=``: as many as its level."""
    page = PageText(["T"], [[]], [False])
    path: list[str] = []
    for part in parts:
        head = part.lstrip("=")
        level = len(part) - len(head)
        path = [*path[: level - 1], head] if level else path
        for column, value in zip(page, (head, path, level > 0), strict=True):
            column.append(value)  # type: ignore[arg-type]  # each its own
    return page


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (["a", "=B", "b"], ["a", "=B", "b"], [(0, 0, "same", 1.0), (1, 1, "same", 1.0)]),
        (["a"], ["x"], [(0, 0, "changed", 0.0)]),
        (["=A", LONG, OTHER], ["=A", LONG, "x"], [(0, 0, "same", 1.0), (1, 1, "changed", 54 / 117)]),
        (["=A", LONG], ["=B", LONG], [(0, 0, "same", 1.0), (1, 1, "renamed", 1.0)]),
        (["=A", LONG], ["=B", "==A", LONG], [(0, 0, "same", 1.0), (1, 2, "moved", 1.0), (None, 1, "added", None)]),
        (
            ["=A", "a", "=B", "b"],
            ["=B", "b", "=A", "a"],
            [(0, 0, "same", 1.0), (1, 2, "moved", 1.0), (2, 1, "same", 1.0)],
        ),
        (["=A", "a"], ["=B", "b"], [(0, 0, "same", 1.0), (1, None, "gone", 0.0), (None, 1, "added", None)]),
        (["=A", "a", "=A", "b"], ["=A", "a"], [(0, 0, "same", 1.0), (1, 1, "same", 1.0), (2, None, "gone", 0.0)]),
    ],
)
def test_sections_become(old: list[str], new: list[str], wanted: list[tuple[object, ...]]) -> None:
    before, after = _page(*old), _page(*new)
    found = match_sections(before, after, match_elements(before.texts, after.texts).pieces)
    assert [(one.old_number, one.new_number, one.outcome, one.kept) for one in found] == wanted
