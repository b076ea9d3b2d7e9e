"""The laws of a diff, checked in its tables, and with the two releases in their pages: every page has its row, and what
is said to be the same text is the same text."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np

from kbsource.diff.page_texts import PageTexts
from kbsource.diff.schema import PAGE_OUTCOMES, REDIRECT_OUTCOMES, SECTION_OUTCOMES, SPAN_OUTCOMES, TABLES
from kbsource.files import join
from kbsource.release.intact import check_hashes
from kbsource.release.layout import MANIFEST, shard_path
from kbsource.release.manifest import ListingManifest, row_faults
from kbsource.release.reader import row_groups
from kbsource.release.verify import Checking

RULES = {
    "change_law": "a row contradicts itself, or is out of order",
    "change_differs": "a page is not what its row says",
    "page_unnamed": "pages of a release are not named as often as they must be",
    "piece_law": "the pieces of an element do not cover it in order, or lead nowhere",
    "piece_differs": "a piece is not where it is said to be",
}
"""Every law and what it means that it is broken."""

_OUTCOMES = dict(zip(TABLES, (PAGE_OUTCOMES, SECTION_OUTCOMES, SPAN_OUTCOMES, REDIRECT_OUTCOMES), strict=True))
_PAGES, _SPANS = (shard_path(table, 0, 1) for table in ("page_changes", "span_changes"))
_ONLY_NEW = ("added", "split")
_Row = dict[str, Any]


def count_faults(manifest: ListingManifest) -> list[str]:
    """Gives every way in which the counts of a manifest contradict its files."""
    try:
        counts = {
            table: {name: int(manifest.facts["counts"][table][name]) for name in _OUTCOMES[table]} for table in TABLES
        }
    except (KeyError, TypeError, ValueError) as error:
        return [f"counts are not those of a diff ({error!r})"]
    return row_faults(manifest, {table: sum(own.values()) for table, own in counts.items()})


def check_diff(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every law and gives the number of pages; None where the files do not allow it.

    Memory: a row group, and 8 bytes a page.
    """
    if count_faults(checking.manifest) or not checking.has_files(shard_path(table, 0, 1) for table in TABLES):
        return None
    with ExitStack() as stack:
        sources: dict[str, PageTexts] = {}
        for side, path in checking.sources.items():
            sha256 = checking.manifest.facts[side]["manifest_sha256"]
            sources[side] = stack.enter_context(PageTexts(path, checking.storage, sha256=sha256))
            check_hashes(path, sources[side].manifest.tables["pages"], checking.storage)
        return _DiffChecks(checking, sources).run()


class _DiffChecks:
    """Checks of one diff."""

    def __init__(self, checking: Checking[ListingManifest], sources: Mapping[str, PageTexts]) -> None:
        self._checking, self._found, self._sources = checking, checking.found, sources
        self._counts: dict[str, Counter[str]] = {table: Counter() for table in TABLES}
        self._ids = {"old": array("q"), "new": array("q")}

    def run(self) -> Mapping[str, int]:
        """Checks every law and gives the number of pages."""
        spans = groupby(self._rows("span_changes"), key=itemgetter("old_page_id"))
        waiting = next(spans, None)
        before: tuple[bool, int, int] = (False, -1, -1)
        for row in self._rows("page_changes"):
            old, new = row["old_page_id"], row["new_page_id"]
            place = (old is None, old or 0, new or 0)
            fault = _row_fault(row) or (None if before < place else "it is out of order, or comes twice")
            if fault:
                self._found.add(_PAGES, "change_law", f"pages {old} and {new}: {fault}")
            before = place
            if old is not None:
                self._ids["old"].append(old)
            if new is not None and row["outcome"] != "merged":
                self._ids["new"].append(new)
            pieces: list[_Row] = []
            if waiting is not None and waiting[0] == old:
                pieces = list(waiting[1])
                waiting = next(spans, None)
            self._check_pieces(row, pieces)
        if waiting is not None:
            self._found.add(_SPANS, "piece_law", f"page {waiting[0]} has no row, or is out of order")
        for table in ("section_changes", "redirect_changes"):
            for row in self._rows(table):
                if not 0.0 <= (row.get("kept") or 0.0) <= 1.0:
                    self._found.add(
                        shard_path(table, 0, 1), "change_law", f"page {row['old_page_id']}: kept {row['kept']}"
                    )
        for table, counts in self._counts.items():
            claimed = {name: n for name, n in self._checking.manifest.facts["counts"][table].items() if n}
            if dict(counts) != claimed:
                self._found.add(MANIFEST, "counts", f"{table}: {dict(counts)} by outcome, {claimed} written")
        for side, own in self._ids.items():
            self._check_ids(side, np.frombuffer(own, np.int64))
        return {"pages": len(self._ids["old"])}

    def _rows(self, table: str) -> Iterator[_Row]:
        for entry, batch in self._checking.batches(table):
            for row in batch.to_pylist():
                if row["outcome"] not in _OUTCOMES[table]:
                    self._found.add(entry.file, "change_law", f"{row['outcome']!r} is no outcome")
                self._counts[table][row["outcome"]] += 1
                yield row

    def _check_ids(self, side: str, ids: Any) -> None:
        """Checks that no page is named twice, and with its release that every page is named."""
        distinct = np.unique(ids)
        if n_twice := len(ids) - len(distinct):
            self._found.add(_PAGES, "page_unnamed", f"{n_twice} of the {side} pages are named twice", n_twice)
        if side not in self._sources:
            return
        path, pages = self._checking.sources[side], self._sources[side].manifest.tables["pages"]
        own = [
            group["page_id"].to_numpy()
            for entry in pages
            for group in row_groups(join(path, entry.file), self._checking.storage, ["page_id"])
        ]
        odd = np.setxor1d(distinct, np.concatenate([*own, np.empty(0, np.int64)]))
        if len(odd):
            self._found.add(_PAGES, "page_unnamed", f"{side} page {odd[0]}", len(odd))

    def _check_pieces(self, row: _Row, pieces: list[_Row]) -> None:
        """Checks what is said of a page and its elements."""
        old = self._text("old", row["old_page_id"])
        if row["outcome"] == "unchanged" and pieces:
            self._found.add(_SPANS, "piece_law", f"page {row['old_page_id']}: unchanged, and it has pieces")
        if old is not None and (new := self._text("new", row["new_page_id"])) is not None:
            said = (row["title_changed"], row["text_changed"], row["old_chars"], row["new_chars"])
            found = (old[0] != new[0], old[1:] != new[1:], *(sum(map(len, texts[1:])) for texts in (old, new)))
            if said != found:
                self._found.add(_PAGES, "change_differs", f"page {row['old_page_id']}: {said} written, {found} found")
        at, before = dict[int, int](), -1
        for piece in pieces:
            element, start, end = (piece[name] for name in ("old_element", "old_start", "old_end"))
            is_next = start == at.setdefault(element, 0) <= end and before <= element
            if not is_next or (piece["new_page_id"] is None) != (piece["outcome"] == "gone"):
                self._found.add(_SPANS, "piece_law", _named(piece))
            at[element], before = end, element
            self._check_piece(piece, old)
        if old is not None:
            is_other = row["text_changed"] or row["outcome"] == "gone"
            wanted = old if is_other else old[:1] if row["title_changed"] else []
            if at != {number: len(text) for number, text in enumerate(wanted)}:
                self._found.add(_SPANS, "piece_law", f"page {row['old_page_id']}: pieces do not cover its elements")

    def _check_piece(self, piece: _Row, old: list[str] | None) -> None:
        if old is None or piece["new_page_id"] is None:
            return
        new = self._text("new", piece["new_page_id"])
        element, start, end = (piece[name] for name in ("new_element", "new_start", "new_end"))
        if new is None or not 0 <= element < len(new) or not 0 <= start <= end <= len(new[element]):
            self._found.add(_SPANS, "piece_differs", f"{_named(piece)}: there is no such place")
        elif piece["outcome"] != "edited":
            text = old[piece["old_element"]][piece["old_start"] : piece["old_end"]]
            if new[element][start:end] != text:
                self._found.add(_SPANS, "piece_differs", f"{_named(piece)}: {text[:80]!r} is not there")

    def _text(self, side: str, page_id: int | None) -> list[str] | None:
        """Gives the texts of a page; None where there is none, or its release was not given."""
        found = None if page_id is None or side not in self._sources else self._sources[side].by_id(page_id)
        return None if found is None else found.texts


def _named(piece: _Row) -> str:
    return "page {old_page_id}, element {old_element}, [{old_start}, {old_end})".format(**piece)


def _row_fault(row: _Row) -> str | None:
    """Gives how a row of pages contradicts itself; None where it does not."""
    outcome, kept = row["outcome"], row["kept"]
    has_old, has_new, is_pair = (row["old_page_id"] is not None, row["new_page_id"] is not None, outcome not in _LONE)
    if has_old == (outcome in _ONLY_NEW) or has_new == (outcome == "gone"):
        return f"{outcome} names other pages"
    if (row["origin_page_id"] is not None) != (outcome == "split"):
        return f"{outcome}, origin {row['origin_page_id']}"
    if (kept is not None) != has_old or not 0.0 <= (kept or 0.0) <= 1.0:
        return f"{outcome}, kept {kept}"
    if {row["text_changed"] is None, row["title_changed"] is None} != {not is_pair}:
        return f"{outcome}, text changed {row['text_changed']}, title changed {row['title_changed']}"
    if outcome in ("unchanged", "changed", "renamed") and (
        row["matched_by"] != "page_id"
        or row["old_page_id"] != row["new_page_id"]
        or row["title_changed"] != (outcome == "renamed")
        or (outcome != "renamed" and row["text_changed"] != (outcome == "changed"))
    ):
        return f"{outcome}, though {row['matched_by']} and what changed say otherwise"
    return None


_LONE = (*_ONLY_NEW, "gone")
