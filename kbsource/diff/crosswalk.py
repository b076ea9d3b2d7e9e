"""Opens a diff with its two releases, to find the positions of old spans in the new release."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from kbsource.diff.kind import RELEASE_DIFF
from kbsource.diff.matching import move_segment
from kbsource.diff.page_texts import ComparedPages


class MovedSpan(NamedTuple):
    """The position of a span in the new release."""

    #: ``page_id``, ``element``, ``start``, ``end``: the new span, half-open, in code points of the element's text; None
    #: if it is gone
    page_id: int | None
    element: int | None
    start: int | None
    end: int | None
    #: ``same``: both spans have the same text, possibly at another position; ``edited``: the span was replaced by
    #: another text; ``gone``
    outcome: str


_GONE = MovedSpan(None, None, None, None, "gone")


class ReleaseDiff:
    """A diff with its two releases. Use it as a context manager, which closes the files at the end. Memory: a few row
    groups.

    Raises:
        SetupError: one of them is missing, or is not the release that the diff was made from.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, old: str | os.PathLike[str], new: str | os.PathLike[str]
    ) -> None:
        self._path = os.fspath(path)
        self._manifest = RELEASE_DIFF.read(self._path)
        facts = self._manifest.facts
        self._old, self._new = (
            ComparedPages(os.fspath(folder), sha256=facts[side]["manifest_sha256"])
            for side, folder in (("old", old), ("new", new))
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._old, self._new:
            pass

    def page(self, page_id: int) -> dict[str, Any] | None:
        """Returns the row of ``page_changes`` for an old page; None if the old release has no such page."""
        return next(self._rows("page_changes", page_id), None)

    def _rows(self, table: str, page_id: int) -> Iterator[dict[str, Any]]:
        return RELEASE_DIFF.rows_with(self._path, self._manifest, table, "old_page_id", page_id)

    def move_span(self, page_id: int, element: int, start: int, end: int) -> MovedSpan:
        """Returns the position of a span of an old page in the new release.

        If parts of the span have moved to different positions, the position of its largest part is returned.

        Args:
            start, end: the span, half-open, in code points of that element's text.

        Raises:
            ValueError: the old release has no such span.
        """
        row, old = self.page(page_id), self._old.by_id(page_id)
        if row is None or old is None or not 0 <= element < len(old.texts):
            raise ValueError(f"page {page_id}, element {element}: the old release has no such element")
        text = old.texts[element]
        if not 0 <= start <= end <= len(text):
            raise ValueError(
                f"page {page_id}, element {element}: [{start}, {end}) is outside of its {len(text)} characters"
            )
        segments = [segment for segment in self._rows("span_changes", page_id) if segment["old_element"] == element]
        if not segments:
            return MovedSpan(row["new_page_id"], element, start, end, "same")
        best = max(segments, key=lambda segment: min(end, segment["old_end"]) - max(start, segment["old_start"]))
        return self._moved(best, text, start, end)

    def _moved(self, segment: dict[str, Any], text: str, start: int, end: int) -> MovedSpan:
        page_id, element, first = (segment[name] for name in ("new_page_id", "new_element", "old_start"))
        found = None if page_id is None else self._new.by_id(page_id)
        if found is None:
            return _GONE
        own_start, own_end = max(start, first), min(end, segment["old_end"])
        new_start, new_end = own_start - first, own_end - first
        if segment["outcome"] == "edited":
            new_start, new_end = move_segment(text, found.texts[element], own_start, own_end)
        new_start, new_end = segment["new_start"] + new_start, segment["new_start"] + new_end
        if new_start == new_end and start < end:
            return _GONE
        is_same = found.texts[element][new_start:new_end] == text[start:end]
        return MovedSpan(page_id, element, new_start, new_end, "same" if is_same else "edited")
