"""Prepares pages for a release: checks the invariants of each page, groups pages into row groups, and writes the index
of their locations.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import batch_of
from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.index.mapped_files import CHECKSUMS_FILE, checksums_file, summed_blocks, write_index_file
from kbsource.index.title_index import BATCH_ROWS
from kbsource.records import CellLink, Page
from kbsource.release.layout import index_path
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.locations import PAGES_FILE, PAGES_SCHEMA, QIDS_FILE, QIDS_SCHEMA
from kbsource.release.reader import parquet_file
from kbsource.release.writer import write_lines
from kbsource.runtime.database import ORDER_MB, connected, ordered_batches, streamed
from kbsource.wikitext.reference_rows import PageWithReferences

# ``kind.CONTROLS`` as escapes of JSON. An even number of backslashes before an escape are text. The first expression
# also matches text such as ``\beta``, but is five times as fast, because it begins with a fixed character.
_PERHAPS_CONTROL = re.compile(rb"\\(?:[bfr]|u00[01])")
_ESCAPED_CONTROL = re.compile(rb"(?<!\\)(?:\\\\)*\\(?:[bfr]|u00[01])")
MAX_INT = (1 << 31) - 1
"""Largest value of an offset, ordinal, rowspan or colspan, because they are stored as 32-bit integers."""


def check_page(page: Page) -> None:
    """Checks the invariants of a page.

    - Only element 0 is of kind ``title``, and no element contains a newline.
    - For every anchor, ``elements[a.element].text[a.start:a.end] == a.text``. Anchors are ordered by element and start.
    - Tables and infoboxes refer to an existing element. Links in cells and infobox values are within the text.
    - Categories added by templates are among the categories, and each category has a sort key, which may be empty.
    - Reference markers are within their elements, and never after white space.
    - The time is a whole second of UTC.

    Raises:
        RecordError: ``span_mismatch`` if a span does not match its text, ``invalid_page`` for every other invariant,
            ``bad_text`` for text that is not Unicode (a lone surrogate).
    """
    elements = page.elements
    if not elements or elements[0].kind != "title":
        raise RecordError("invalid_page", "element 0 is not the title")
    texts = [element.text for element in elements]
    joined = "\n".join(texts)
    if joined.count("\n") != len(texts) - 1:
        raise RecordError("invalid_page", "an element contains a newline")
    try:
        written = msgspec.json.encode(page)  # to check all text columns at once; control characters are escapes in it
    except UnicodeEncodeError as error:
        raise RecordError("bad_text", str(error)) from error
    if _PERHAPS_CONTROL.search(written) and (control := _ESCAPED_CONTROL.search(written)) is not None:
        around = written[max(control.start() - 20, 0) : control.end() + 20].decode("utf-8", "replace")
        raise RecordError("invalid_page", f"a control character in {around!r}")
    for number, element in enumerate(elements):
        if number and element.kind == "title":
            raise RecordError("invalid_page", f"element {number} is a second title")
        if element.ordinal is not None and not 0 <= element.ordinal <= MAX_INT:
            raise RecordError("invalid_page", f"element {number} has ordinal {element.ordinal}")
    if page.timestamp.utcoffset() != timedelta(0) or page.timestamp.microsecond:
        raise RecordError("invalid_page", f"{page.timestamp!r} is not a whole second of UTC")
    if not set(page.template_categories) <= set(page.categories):
        raise RecordError("invalid_page", "a template's category is not among the page's categories")
    if len(page.category_sort_keys) != len(page.categories):
        raise RecordError(
            "invalid_page", f"{len(page.category_sort_keys)} sort keys of {len(page.categories)} categories"
        )
    _check_anchors(page, texts)
    if isinstance(page, PageWithReferences):
        _check_uses(page, texts)
    for table in page.tables:
        _check_place(table.element, "table", len(texts))
        for row in table.rows:
            for cell in row:
                if not (0 < cell.colspan <= MAX_INT and 0 < cell.rowspan <= MAX_INT):
                    raise RecordError("invalid_page", f"cell spans {cell.colspan} x {cell.rowspan}")
                if cell.links:
                    _check_links(cell.links, len(cell.text))
    for infobox in page.infoboxes:
        _check_place(infobox.element, "infobox", len(texts))
        for field in infobox.fields:
            if field.links:
                _check_links(field.links, len(field.text))


def _check_anchors(page: Page, texts: list[str]) -> None:
    n_texts = len(texts)
    last = (0, 0)
    for anchor in page.anchors:
        number, start, end, text = anchor.element, anchor.start, anchor.end, anchor.text
        if not 0 <= number < n_texts:
            raise RecordError("span_mismatch", f"anchor {text!r} in element {number} of {n_texts}")
        # A slice accepts offsets out of range; the invariant does not.
        if texts[number][start:end] != text or not 0 <= start <= end <= len(texts[number]):
            raise RecordError("span_mismatch", f"anchor {text!r} at [{start}, {end}) of element {number}")
        if (number, start) < last:
            raise RecordError(
                "invalid_page", f"anchor {text!r} at [{start}, {end}) of element {number} is out of order"
            )
        last = (number, start)


def _check_uses(page: PageWithReferences, texts: list[str]) -> None:
    for use in page.ref_uses:
        if use.element is None or use.offset is None:
            continue
        text = texts[use.element] if 0 <= use.element < len(texts) else ""
        if not 0 <= use.offset <= len(text) or text[max(use.offset - 1, 0) : use.offset].isspace():
            raise RecordError("span_mismatch", f"a reference marker at {use.offset} of element {use.element}")


def _check_place(element: int, what: str, n_elements: int) -> None:
    if not 0 <= element < n_elements:
        raise RecordError("invalid_page", f"{what} after element {element} of {n_elements}")


def _check_links(links: Sequence[CellLink], length: int) -> None:
    for link in links:
        if not 0 <= link.start <= link.end <= length:
            raise RecordError(
                "span_mismatch", f"link to {link.target_title!r} at [{link.start}, {link.end}) of {length}"
            )


GROUP_ROWS = 512
GROUP_CHARS = 512 << 10
"""Maximum number of pages, and approximate number of characters, in a row group. With smaller groups, a single page is
read faster. With larger groups, writing is cheaper, because most of its cost is per group and column, and a file's
footer, which is in memory during reading and writing, is smaller: it grows by 6 KB per group.
"""


_ENCODING_FAULTS = (ArithmeticError, TypeError, ValueError, pa.ArrowException)


class PageFaultError(Exception):
    """A page satisfies the invariants but cannot be encoded. ``number`` identifies it, see ``PageGroups.add``."""

    def __init__(self, number: int, detail: str) -> None:
        super().__init__(f"page {number}: {detail}")
        self.number = number


class BatchRow(NamedTuple):
    """A page in a record batch, and its row."""

    batch: pa.RecordBatch
    row: int


class PageGroups:
    """Collects pages into row groups. The same pages always form the same groups. Memory: one group.

    ``add`` adds a page as a row object, and ``take`` adds a row of an existing record batch.
    """

    def __init__(self, row: type[Page] = Page) -> None:
        self._row = row
        self._pending: list[Page | BatchRow] = []
        self._numbers: list[int] = []
        self._pending_chars = 0

    def add(self, page: Page, number: int = 0) -> pa.RecordBatch | None:
        """Adds a page that has passed ``check_page``. If it does not fit into the current group, begins a new group and
        returns the old one.

        Args:
            number: identifies the page in a ``PageFaultError``.

        Raises:
            PageFaultError: a page of the group cannot be encoded.
        """
        return self._add(page, number, sum(len(element.text) for element in page.elements))

    def take(self, page: BatchRow, n_chars: int) -> pa.RecordBatch | None:
        """Adds a page from a batch, like ``add``. Its elements have ``n_chars`` code points."""
        return self._add(page, 0, n_chars)

    def _add(self, page: Page | BatchRow, number: int, n_chars: int) -> pa.RecordBatch | None:
        full = None
        if len(self._pending) == GROUP_ROWS or (self._pending and self._pending_chars + n_chars > GROUP_CHARS):
            full = self.rest()
        self._pending.append(page)
        self._numbers.append(number)
        self._pending_chars += n_chars
        return full

    def rest(self) -> pa.RecordBatch | None:
        """Returns the last group, if it has pages. Call it after the last page.

        Raises:
            PageFaultError: a page cannot be encoded.
        """
        if not self._pending:
            return None
        rows = [page for page in self._pending if not isinstance(page, BatchRow)]
        try:
            batch = batch_of(rows, self._row)
        except _ENCODING_FAULTS:
            for number, page in zip(self._numbers, self._pending, strict=True):
                try:
                    batch_of([] if isinstance(page, BatchRow) else [page], self._row)
                except _ENCODING_FAULTS as error:
                    raise PageFaultError(number, str(error)) from error
            raise
        batch = batch if len(rows) == len(self._pending) else self._mixed(batch)
        self._pending, self._numbers, self._pending_chars = [], [], 0
        return batch

    def _mixed(self, made: pa.RecordBatch) -> pa.RecordBatch:
        """Returns the current group with its pages in order, whether they were added as rows or from batches."""
        sources = {id(page.batch): page.batch for page in self._pending if isinstance(page, BatchRow)}
        starts = dict(zip(sources, accumulate(map(len, sources.values()), initial=made.num_rows), strict=False))
        new = iter(range(made.num_rows))
        rows = [
            starts[id(page.batch)] + page.row if isinstance(page, BatchRow) else next(new) for page in self._pending
        ]
        return pa.concat_batches([made, *sources.values()]).take(pa.array(rows))


_READ = pa.schema([*PAGES_SCHEMA, QIDS_SCHEMA.field("qid").with_nullable(True)])
_BY_ITEM = "select qid, page_id from pages where qid is not null order by qid, page_id"


def write_locations(output: str, files: Sequence[str], folder: str, *, scratch: str) -> str:
    """Writes the two location files, by page id and by item, and returns the manifest's ``page_order``.

    Holds in memory the footer of one file at a time, and ``ORDER_MB`` for sorting.

    Args:
        files: the pages files in order, relative to ``output``.
        scratch: local folder for temporary files, which take 32 bytes per page.

    Raises:
        SetupError: two pages have the same page id or the same Wikidata item.
    """
    os.makedirs(folder, exist_ok=True)
    is_ordered = True

    def pages() -> Iterator[pa.RecordBatch]:
        nonlocal is_ordered
        for shard, file in enumerate(files):
            with Folder.of(join(output, file)).open() as source:
                row, last = 0, -1
                columns = parquet_file(source).iter_batches(BATCH_ROWS, columns=["page_id", "qid"], use_threads=False)
                for batch in columns:
                    own = batch["page_id"].to_numpy()
                    is_ordered = is_ordered and own[0] > last and bool(np.all(own[1:] > own[:-1]))
                    rows = np.arange(row, row + len(own), dtype=np.int32)
                    qids = pc.utf8_slice_codeunits(batch["qid"], 1).cast(pa.int64())
                    yield pa.RecordBatch.from_arrays(
                        [own, np.full(len(own), shard, np.int32), rows, qids], schema=_READ
                    )
                    row, last = row + len(own), own[-1]

    with connected(scratch=scratch, memory_mb=ORDER_MB, threads=1) as db:
        with streamed(db, read=(pages(), _READ)):
            db.execute("create table pages as from read")
        for file, schema, query, what in (
            (PAGES_FILE, PAGES_SCHEMA, "select page_id, shard, row from pages order by page_id", "page id "),
            (QIDS_FILE, QIDS_SCHEMA, _BY_ITEM, "Wikidata item Q"),
        ):
            rows = ordered_batches(db, query, schema, n_rows=BATCH_ROWS)
            write_index_file(os.path.join(folder, file), schema, _distinct(rows, what))
    return "by_page_id" if is_ordered else "as_dumped"


def _distinct(batches: Iterable[pa.RecordBatch], what: str) -> Iterator[pa.RecordBatch]:
    """Yields the batches unchanged. Their first column must be ascending; raises SetupError if a value occurs twice."""
    last = np.empty(0, np.int64)
    for batch in batches:
        keys = np.concatenate([last, batch[0].to_numpy()])
        repeated = keys[1:][keys[1:] == keys[:-1]]
        if len(repeated):
            raise SetupError(f"{what}{repeated[0]} belongs to two pages, which is a defect of kbsource; report it")
        last = keys[-1:]
        yield batch


def publish_index(folder: str, files: Sequence[str], output: str) -> tuple[FileEntry, ...]:
    """Copies index files of a local folder into the release, with their checksums, and returns their manifest
    entries, sorted by name.
    """
    entries: dict[str, FileEntry] = {}
    checksums: dict[str, list[int]] = {}
    for name in sorted(files):
        with open(os.path.join(folder, name), "rb") as source:
            blocks = summed_blocks(source, checksums.setdefault(name, []))
            entries[name] = write_lines(blocks, index_path(name), output=output)
    content = checksums_file(checksums)
    entries[CHECKSUMS_FILE] = write_lines([content], index_path(CHECKSUMS_FILE), output=output)
    return tuple(replace(entry, rows=None) for _, entry in sorted(entries.items()))
