"""The pages that changed, read again, and what became of their elements: narrow tables for the joins that come last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pyarrow as pa

from kbsource.diff.elements import Piece, gone_elements, match_elements
from kbsource.diff.fingerprints import text_hash
from kbsource.diff.page_texts import PageTexts
from kbsource.diff.schema import SECTION_CHANGES, SPAN_CHANGES
from kbsource.diff.sections import match_sections
from kbsource.files import LocalStorage
from kbsource.release.writer import GROUP_ROWS, TableFile
from kbsource.runtime.chunks import rows_batch

LONG_CHARS = 80
"""Code points of a text that is looked for in other pages, at least; shorter ones may be the same by chance."""
_HASH = pa.field("text_hash", pa.binary())
STAGED: dict[str, pa.Schema] = {
    "pieces": pa.schema([*SPAN_CHANGES, _HASH]),
    "unclaimed": pa.schema([("page_id", pa.int64()), ("element", pa.int32()), _HASH]),
    "kept": pa.schema([("old_page_id", pa.int64()), ("n_kept", pa.int64())]),
    "sections": SECTION_CHANGES,
}
"""Pieces of old elements, those gone with the hash of their text where it is long; new elements that no piece leads to;
code points of each page that was kept; sections."""


class Compared(NamedTuple):
    """A row of ``joins.COMPARED``."""

    old_page_id: int | None
    new_page_id: int | None
    outcome: str
    text_changed: bool | None
    old_shard: int | None
    old_row: int | None
    new_shard: int | None
    new_row: int | None


COMPARED_SCHEMA = pa.schema(
    [
        ("old_page_id", pa.int64()),
        ("new_page_id", pa.int64()),
        ("outcome", pa.string()),
        ("text_changed", pa.bool_()),
        *((name, pa.int32()) for name in Compared._fields[4:]),
    ]
)


class _Table:
    """Rows on their way into a staged file."""

    def __init__(self, folder: str, table: str, stack: ExitStack) -> None:
        self._schema, self._rows = STAGED[table], list[tuple[Any, ...]]()
        file = TableFile(folder, f"{table}.parquet", table, LocalStorage(), schema=self._schema, is_plain=True)
        self._file = stack.enter_context(file)

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows += rows
        if len(self._rows) >= GROUP_ROWS:
            self.flush()

    def flush(self) -> None:
        if self._rows:
            self._file.write(rows_batch(self._rows, self._schema))
            self._rows.clear()


def compare_pages(
    pages: Iterable[Compared], old: PageTexts, new: PageTexts, *, folder: str, on_page: Callable[[], None]
) -> None:
    """Writes the tables of ``STAGED`` into a local folder. Memory: a few row groups of pages.

    Args:
        pages: in the order of the old release, those of the new one alone behind them.
        old, new: the releases.
        folder: for the files.
        on_page: called behind each page.
    """
    with ExitStack() as stack:
        tables = {table: _Table(folder, table, stack) for table in STAGED}
        for page in pages:
            for table, rows in _rows(page, old, new):
                tables[table].add(rows)
            on_page()
        for staged in tables.values():
            staged.flush()


def _rows(page: Compared, old: PageTexts, new: PageTexts) -> Iterator[tuple[str, Iterable[tuple[Any, ...]]]]:
    """Gives rows of a page by table."""
    before = None if page.old_shard is None or page.old_row is None else old.at(page.old_shard, page.old_row)
    after = None if page.new_shard is None or page.new_row is None else new.at(page.new_shard, page.new_row)
    if before is None:
        assert after is not None
        yield "unclaimed", _long_texts(page.new_page_id, after.texts, range(1, len(after.texts)))
    elif after is None:
        yield "pieces", _piece_rows(page, before.texts, gone_elements(before.texts))
    elif not page.text_changed:
        yield "pieces", _piece_rows(page, before.texts, match_elements(before.texts[:1], after.texts[:1]).pieces)
    else:
        pieces, unclaimed = match_elements(before.texts, after.texts)
        yield "pieces", _piece_rows(page, before.texts, pieces)
        n_kept = sum(piece.n_kept for piece in pieces if piece.old_element)
        yield "kept", [(page.old_page_id, n_kept)]
        if page.outcome != "merged":
            yield "unclaimed", _long_texts(page.new_page_id, after.texts, unclaimed)
            yield (
                "sections",
                (
                    (page.old_page_id, *change[:2], page.new_page_id, *change[2:])
                    for change in match_sections(before, after, pieces)
                ),
            )


def _piece_rows(page: Compared, texts: Sequence[str], pieces: Iterable[Piece]) -> Iterator[tuple[Any, ...]]:
    for piece in pieces:
        number, start, end = piece[:3]
        is_sought = piece.new_element is None and number and end - start >= LONG_CHARS
        new_page_id = None if piece.new_element is None else page.new_page_id
        sought = text_hash(texts[number][start:end]) if is_sought else None
        yield (page.old_page_id, number, start, end, new_page_id, *piece[3:8], sought)


def _long_texts(page_id: int | None, texts: Sequence[str], elements: Iterable[int]) -> Iterator[tuple[Any, ...]]:
    return ((page_id, number, text_hash(texts[number])) for number in elements if len(texts[number]) >= LONG_CHARS)
