"""Writes and reads the folder of a passage corpus.

::

    passages/passages-00000-of-00012.parquet    passages of the pages file with the same number, in its order
    pyserini/passages-00000-of-00012.jsonl      the same passages as lines, if requested
    dpr/passages.tsv                            the same passages in one file, if requested; also kilt/, beir/, colbert/
    manifest.json                               written last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import starmap
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import batch_of, rebatched, rows_of, schema_of
from kbsource.dump.digests import CheckedFiles, hash_file
from kbsource.elements import Cell, Table
from kbsource.errors import DataError, RecordError, SetupError
from kbsource.files import Folder, join
from kbsource.kilt import is_in_kilt
from kbsource.records import Page
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.pages.reading import pages_of
from kbsource.release.reader import row_groups
from kbsource.release.sql import add_tables, connected
from kbsource.release.writer import LinesFile, write_batches, write_lines
from kbsource.runtime.chunks import BatchRef, Work, read_stored
from mapping.passages.cut import TITLE_KINDS, CutOptions, PageText, Passage, check_passages
from mapping.passages.forms import KiltPages, LineForm, line_forms

TABLE, PASSAGES = "passages", schema_of(Passage)
COUNTS = ("pages", "pages_without_text", "passages", "words", "long_passages")
"""The counts of a corpus. A long passage is a single sentence of more than ``max_words`` words."""
GROUP_ROWS = 2048
"""Passages per row group, about 1.5 MB."""

_CELL_FIELDS = ("text", "is_header", "colspan", "rowspan")
_CELL = "rows.list.element.list.element"
PAGE_COLUMNS = (
    "page_id",
    "title",
    *(f"elements.list.element.{name}" for name in ("kind", "marker", "section", "text")),
)
"""Columns of the table ``pages`` that are read."""
TABLE_COLUMNS = tuple(
    f"tables.list.element.{name}"
    for name in ("element", "caption", "header", *(f"{_CELL}.{leaf}" for leaf in _CELL_FIELDS))
)
"""Further columns that are read if tables are cut too."""
CHUNK_WEIGHT = 4 << 20
"""Minimum bytes of pages that are cut together."""
Base: TypeAlias = Mapping[str, tuple[str, tuple[str, ...]]]
"""An earlier corpus and its release: for ``pages`` and for ``passages``, the folder and the files in it."""
_DECLARED = {"pages": PAGES_RELEASE.schemas("pages"), TABLE: [PASSAGES]}
_MEMORY_MB = 250
"""Memory of the database that looks up passages of the earlier corpus."""
_SAME = """select page_id from batch join pages using (page_id, title)
    where page_id between ? and ? and batch.elements = list_transform(pages.elements,
        lambda element: {kind: element.kind, marker: element.marker, section: element.section, text: element.text})"""
_SAME_TABLES = f"""
        and batch.tables = list_transform(pages.tables, lambda one: {{element: one.element, caption: one.caption,
        header: one.header, rows: list_transform(one.rows, lambda cells: list_transform(cells,
        lambda cell: {{{", ".join(f"{leaf}: cell.{leaf}" for leaf in _CELL_FIELDS)}}}))}})"""
_KNOWN = "select * from passages where page_id between ? and ? and page_id in (from same)"


def read_page_chunks(file: str | Folder, *, has_tables: bool = False) -> Iterator[pa.RecordBatch]:
    """Reads ``PAGE_COLUMNS`` of a pages file, in its order, ``CHUNK_WEIGHT`` bytes at a time.

    Args:
        has_tables: also read ``TABLE_COLUMNS``.
    """
    held: list[pa.Table] = []
    for group in row_groups(file, PAGE_COLUMNS + TABLE_COLUMNS if has_tables else PAGE_COLUMNS):
        held.append(group)
        if sum(table.nbytes for table in held) >= CHUNK_WEIGHT:
            yield from pa.concat_tables(held).combine_chunks().to_batches()
            held = []
    if held:
        yield from pa.concat_tables(held).combine_chunks().to_batches()


def read_page_texts(file: str | Folder, options: CutOptions) -> Iterator[PageText]:
    """Reads the text to cut for each page of a pages file, in its order."""
    for batch in read_page_chunks(file, has_tables=options.tables):
        yield from _page_texts(batch, options)


def read_pages(file: str | Folder) -> Iterator[Page]:
    """Reads the pages of a pages file, in its order."""
    for group in row_groups(file):
        for batch in group.to_batches():
            yield from pages_of(batch)


def _page_texts(batch: pa.RecordBatch, options: CutOptions) -> Iterator[PageText]:
    elements = batch["elements"]
    offsets, items = elements.offsets.to_pylist(), elements.flatten()
    kinds, markers, sections, texts = (items.field(name).to_pylist() for name in ("kind", "marker", "section", "text"))
    left_out = TITLE_KINDS if options.has_lists else TITLE_KINDS | {"list_item"}

    def is_running(place: int) -> bool:
        if kinds[place] in left_out:
            return False
        return options.is_by_sentence or is_in_kilt(texts[place], markers[place])

    tables = batch["tables"].to_pylist() if options.tables else ()
    first = offsets[0]
    for row, (page_id, title) in enumerate(zip(batch["page_id"].to_pylist(), batch["title"].to_pylist(), strict=True)):
        start, end = offsets[row] - first, offsets[row + 1] - first
        running = list(filter(is_running, range(start, end)))
        numbered = tuple((place - start, texts[place]) for place in running)
        own_tables = tuple(map(_table, tables[row])) if tables else ()
        yield PageText(
            page_id,
            title,
            numbered,
            tuple(tuple(sections[place]) for place in running),
            own_tables,
            tuple(tuple(sections[start + table.element]) for table in own_tables),
        )


def _table(value: Mapping[str, Any]) -> Table:
    """Returns a table without the links of its cells."""
    rows = tuple(
        tuple(Cell(**{leaf: cell[leaf] for leaf in _CELL_FIELDS}, links=()) for cell in row) for row in value["rows"]
    )
    return Table(value["element"], value["caption"], tuple(value["header"]), rows)


def read_passages(path: str) -> Iterator[Passage]:
    """Reads the passages of a file in order. Memory: one row group."""
    for group in row_groups(path):
        yield from rows_of(group, Passage)


def checked_pages(kb: str, entry: FileEntry) -> Folder:
    """Returns a pages file after reading all of it and comparing it with the manifest of its release.

    Raises:
        DataError: the content differs from the manifest.
    """
    path = join(kb, entry.file)
    hashed = hash_file(path)
    if hashed.sha256 != entry.sha256:
        raise DataError(
            f"{path} is damaged or changed. Check the release with kbsource verify, and download or build it again."
        )
    return CheckedFiles({path: hashed})(path)


class PassageChunks:
    """Cuts pages.

    A chunk function from ``PAGE_COLUMNS``, and ``TABLE_COLUMNS`` if tables are cut, to ``PASSAGES``. Its counts are
    listed in ``COUNTS``.
    """

    schema = PASSAGES

    def __init__(self, options: CutOptions, lang: str, base: Base | None = None) -> None:
        self._options, self._cut_page = options, options.cutter(lang)
        self._same = _SAME + _SAME_TABLES if options.tables else _SAME
        self._open, self._base = ExitStack(), None
        if base is not None:
            folders = [folder for folder, _ in base.values()]
            self._base = self._open.enter_context(connected(reads=folders, memory_mb=_MEMORY_MB, threads=1))
            for table, (folder, files) in base.items():
                add_tables(self._base, _DECLARED, {table: files}, folder)

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        """Cuts each batch of pages into one batch of passages.

        Raises:
            SetupError: a page violates an invariant of ``check_passages``.
        """
        counts = work.report.counts
        counts.update(dict.fromkeys(COUNTS, 0))
        for _, batch in rows:
            passages, n_known = self._passages(batch, work)
            counts["taken_over"] += n_known
            counts["pages"] += batch.num_rows
            counts["pages_without_text"] += batch.num_rows - len(passages["page_id"].unique())
            counts["passages"] += passages.num_rows
            for n_words in passages["n_words"].to_pylist():
                counts["words"] += n_words
                counts["long_passages"] += n_words > self._options.limit
            yield passages

    def _passages(self, batch: pa.RecordBatch, work: Work) -> tuple[pa.RecordBatch, int]:
        """Returns the passages of the pages, and the number of pages whose passages were copied from the earlier
        corpus."""
        if self._base is None:
            return batch_of(self._cut(batch, work), Passage), 0
        page_ids = batch["page_id"]
        least, most = (bound.as_py() for bound in pc.min_max(page_ids).values())  # limits which row groups are read
        self._base.register("batch", pa.Table.from_batches([batch]))
        same = self._base.sql(self._same, params=[least, most]).to_arrow_table()["page_id"].combine_chunks()
        work.beat.done(pages=len(same), amount=len(same))
        self._base.register("same", pa.table({"page_id": same}))
        known = self._base.sql(_KNOWN, params=[least, most]).to_arrow_table()
        new = batch_of(self._cut(batch.filter(pc.invert(pc.is_in(page_ids, same))), work), Passage)
        table = pa.concat_tables([known.cast(PASSAGES), pa.Table.from_batches([new])])
        places = pa.table({"page": pc.index_in(table["page_id"], page_ids), "number": table["number"]})
        order = pc.sort_indices(places, [("page", "ascending"), ("number", "ascending")])
        columns = [column.combine_chunks() for column in table.take(order).columns]
        return pa.RecordBatch.from_arrays(columns, schema=PASSAGES), len(same)

    def _cut(self, batch: pa.RecordBatch, work: Work) -> Iterator[Passage]:
        for page in _page_texts(batch, self._options):
            passages = self._cut_page(page)
            try:
                check_passages(page, passages, self._options.join)
            except RecordError as error:
                raise SetupError(
                    f"page {page.page_id} ({page.title}) cannot be cut ({error.reason}: {error.detail}); "
                    "check the release with kbsource verify."
                ) from error
            yield from passages
            work.beat.done(pages=1, amount=1)


def write_shard(
    chunks: Iterable[BatchRef],
    number: int,
    n_shards: int,
    *,
    output: str,
    parts: str,
    formats: Sequence[str],
    pages: KiltPages,
) -> list[FileEntry]:
    """Writes the passages of a file of pages.

    Returns the manifest entries: the table's entry, then the entries of the line files in the order of ``line_forms``.
    Memory: one chunk.

    Args:
        chunks: chunks with schema ``PASSAGES``, in order.
        number, n_shards: number of the pages file, and how many the release has.
        formats: keys of ``FORMS``.
        pages: pages of the pages file, for formats that need them.
    """
    with ExitStack() as stack:
        lines = [
            (form.line, stack.enter_context(LinesFile(*_line_place(form, number, n_shards, output, parts))))
            for form in line_forms(formats)
        ]

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in (batch for chunk in chunks for batch in read_stored(chunk)):
                for passage in rows_of(batch, Passage) if lines else ():
                    for line_of, target in lines:
                        if line := line_of(passage, pages):
                            target.write(line)
                yield batch

        groups, file = rebatched(batches(), GROUP_ROWS), shard_path(TABLE, number, n_shards)
        table = write_batches(groups, TABLE, PASSAGES, output=output, file=file)
    return [table, *(target.entry for _, target in lines)]


def line_path(form: LineForm, number: int, n_shards: int) -> str:
    """Returns the path of a format's file in the corpus."""
    name = form.name if form.is_joined else f"{form.name}-{number:05d}-of-{n_shards:05d}"
    return f"{form.folder}/{name}.{form.suffix}"


def _line_place(form: LineForm, number: int, n_shards: int, output: str, parts: str) -> tuple[str, str]:
    if form.is_joined:
        return parts, f"{form.folder}/{form.name}-{number:05d}.{form.suffix}"
    return output, line_path(form, number, n_shards)


def join_parts(form: LineForm, entries: Sequence[FileEntry], *, output: str, parts: str) -> FileEntry:
    """Joins the parts of a format, in order, into its one file and returns the manifest entry."""

    def lines() -> Iterator[bytes]:
        for entry in entries:
            with Folder.of(join(parts, entry.file)).open() as part:
                yield from part

    def blocks() -> Iterator[bytes]:
        yield form.head
        yield from lines() if form.numbered is None else starmap(form.numbered, enumerate(lines()))
        yield form.tail

    n_lines = sum(entry.rows or 0 for entry in entries) + (form.head + form.tail).count(b"\n")
    return write_lines(blocks(), line_path(form, 0, 1), output=output, n_rows=n_lines)
