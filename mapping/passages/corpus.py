"""The folder of a corpus of passages: how it is written and read, file by file.

::

    passages/passages-00000-of-00012.parquet    the passages of the pages file with that number, in its order
    pyserini/passages-00000-of-00012.jsonl      the same as lines, where asked for
    dpr/passages.tsv                            the same in one file, where asked for
    manifest.json                               written last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack

import pyarrow as pa

from kbsource.dump.digests import CheckedStorage, hash_file
from kbsource.errors import DataError, RecordError, SetupError
from kbsource.files import CHUNK_BYTES, ReadableStorage, Storage, join
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import row_groups
from kbsource.release.writer import LinesFile, write_batches, write_lines
from kbsource.runtime.chunks import Stored, Work, read_stored, rows_batch
from mapping.passages.cut import TITLE_KINDS, CutOptions, PageText, Passage, PassageSpan, check_passages
from mapping.passages.forms import FORMS, LineForm
from mapping.passages.schema import PASSAGES

TABLE = "passages"
COUNTS = ("pages", "pages_without_text", "passages", "words", "long_passages")
"""What a corpus counts; a long passage is a sentence of more than ``max_words``."""
GROUP_ROWS = 2048
"""Passages in a row group: about a megabyte and a half."""

PAGE_COLUMNS = ("page_id", "title", "elements.list.element.kind", "elements.list.element.text")
"""What of the table ``pages`` is needed."""
CHUNK_WEIGHT = 4 << 20
"""Bytes of pages that are cut together, at least."""


def read_page_chunks(path: str, storage: ReadableStorage) -> Iterator[pa.RecordBatch]:
    """Gives ``PAGE_COLUMNS`` of the pages of a file of a release, in its order, ``CHUNK_WEIGHT`` at a time."""
    held: list[pa.Table] = []
    for group in row_groups(path, storage, PAGE_COLUMNS):
        held.append(group)
        if sum(table.nbytes for table in held) >= CHUNK_WEIGHT:
            yield from pa.concat_tables(held).combine_chunks().to_batches()
            held = []
    if held:
        yield from pa.concat_tables(held).combine_chunks().to_batches()


def read_page_texts(path: str, storage: ReadableStorage) -> Iterator[PageText]:
    """Gives the running text of the pages of a file of a release, in its order."""
    for batch in read_page_chunks(path, storage):
        yield from _page_texts(batch)


def _page_texts(batch: pa.RecordBatch) -> Iterator[PageText]:
    elements = batch["elements"]
    offsets, items = elements.offsets.to_pylist(), elements.flatten()
    kinds, texts = (items.field(name).to_pylist() for name in ("kind", "text"))
    first = offsets[0]
    for row, (page_id, title) in enumerate(zip(batch["page_id"].to_pylist(), batch["title"].to_pylist(), strict=True)):
        start, end = offsets[row] - first, offsets[row + 1] - first
        running = (place for place in range(start, end) if kinds[place] not in TITLE_KINDS)
        yield PageText(page_id, title, tuple((place - start, texts[place]) for place in running))


def read_passages(path: str, storage: Storage) -> Iterator[Passage]:
    """Gives the passages of a file in order. Memory: one row group."""
    for group in row_groups(path, storage):
        yield from passages_of(group)


def passages_of(table: pa.Table) -> Iterator[Passage]:
    """Gives the passages of a table of theirs."""
    for batch in table.to_batches():
        *plain, spans = (batch[name] for name in PASSAGES.names)
        items = spans.flatten()
        places = list(map(PassageSpan._make, zip(*(column.to_pylist() for column in items.flatten()), strict=True)))
        offsets = spans.offsets.to_pylist()
        first = offsets[0]
        for row, values in enumerate(zip(*(column.to_pylist() for column in plain), strict=True)):
            spans_here = tuple(places[offsets[row] - first : offsets[row + 1] - first])
            yield Passage._make((*values, spans_here))


def checked_pages(kb: str, entry: FileEntry, storage: ReadableStorage) -> CheckedStorage:
    """Gives a storage that reads a file of pages, as what the manifest of its release says; all of it is read.

    Raises:
        DataError: it has another content.
    """
    path = join(kb, entry.file)
    hashed = hash_file(path, storage)
    if hashed.sha256 != entry.sha256:
        raise DataError(
            f"{path} is not as it was written. Check the release with kbsource verify, and fetch or build it again."
        )
    return CheckedStorage(storage, {path: hashed})


class PassageChunks:
    """Cuts pages; a chunk function from ``PAGE_COLUMNS`` to ``PASSAGES`` that counts what ``COUNTS`` names.

    Args:
        options: how pages are cut.
    """

    schema = PASSAGES

    def __init__(self, options: CutOptions) -> None:
        self._options = options

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        """Gives a batch for each one.

        Raises:
            SetupError: a page breaks a law of ``check_passages``.
        """
        counts = work.report.counts
        counts.update(dict.fromkeys(COUNTS, 0))
        for _, batch in rows:
            yield rows_batch(self._cut(batch, work), PASSAGES)

    def _cut(self, batch: pa.RecordBatch, work: Work) -> Iterator[Passage]:
        counts = work.report.counts
        for page in _page_texts(batch):
            passages = _checked(page, self._options)
            counts["pages"] += 1
            counts["pages_without_text"] += not passages
            for one in passages:
                counts["passages"] += 1
                counts["words"] += one.n_words
                counts["long_passages"] += one.n_words > self._options.max_words
            yield from passages
            work.beat.done(pages=1, amount=1)


def write_shard(
    chunks: Iterable[Stored],
    number: int,
    n_shards: int,
    *,
    output: str,
    parts: str,
    formats: Sequence[str],
    storage: Storage,
) -> dict[str, FileEntry]:
    """Writes the passages of one file of pages, and gives the entries of the files: that of the table under its name,
    those of lines by form. Memory: a chunk.

    Args:
        chunks: of schema ``PASSAGES``, in order.
        number, n_shards: number of the file among all of the release.
        output: folder of the corpus.
        parts: folder for the parts of files that are joined.
        formats: keys of ``FORMS``.
        storage: of everything.
    """
    with ExitStack() as stack:
        lines = {
            name: stack.enter_context(LinesFile(*_line_place(FORMS[name], number, n_shards, output, parts), storage))
            for name in formats
        }

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in (batch for chunk in chunks for batch in read_stored(chunk, storage)):
                for one in passages_of(pa.Table.from_batches([batch])) if lines else ():
                    for name, target in lines.items():
                        target.write(FORMS[name].line(one))
                yield batch

        groups, file = _regrouped(batches(), GROUP_ROWS), shard_path(TABLE, number, n_shards)
        table = write_batches(groups, TABLE, PASSAGES, output=output, storage=storage, file=file)
    return {TABLE: table, **{name: target.entry for name, target in lines.items()}}


def _regrouped(batches: Iterable[pa.RecordBatch], n_rows: int) -> Iterator[pa.RecordBatch]:
    """Gives the same rows in batches of so many, fewer in the last."""
    held = pa.Table.from_batches([], PASSAGES)
    for batch in batches:
        held = pa.concat_tables([held, pa.Table.from_batches([batch])])
        while held.num_rows >= n_rows:
            yield from held.slice(0, n_rows).combine_chunks().to_batches()
            held = held.slice(n_rows)
    if held.num_rows:
        yield from held.combine_chunks().to_batches()


def _checked(page: PageText, options: CutOptions) -> list[Passage]:
    passages = options.cut(page)
    try:
        check_passages(page, passages)
    except RecordError as error:
        raise SetupError(
            f"page {page.page_id} ({page.title}) cannot be cut ({error.reason}: {error.detail}); "
            "is the release sound? kbsource verify says."
        ) from error
    return passages


def line_path(form: LineForm, number: int, n_shards: int) -> str:
    """Gives the path of a form's file in the corpus."""
    name = TABLE if form.is_joined else f"{TABLE}-{number:05d}-of-{n_shards:05d}"
    return f"{form.folder}/{name}.{form.suffix}"


def _line_place(form: LineForm, number: int, n_shards: int, output: str, parts: str) -> tuple[str, str]:
    if form.is_joined:
        return parts, f"{form.folder}/{number:05d}.{form.suffix}"
    return output, line_path(form, number, n_shards)


def join_lines(name: str, entries: Sequence[FileEntry], *, output: str, parts: str, storage: Storage) -> FileEntry:
    """Writes the one file of a form out of its parts, in order, and gives the manifest's entry."""
    form = FORMS[name]

    def blocks() -> Iterator[bytes]:
        yield form.head
        for entry in entries:
            with storage.open_read(join(parts, entry.file)) as part:
                yield from iter(lambda: part.read(CHUNK_BYTES), b"")

    n_lines = sum(entry.rows or 0 for entry in entries) + form.head.count(b"\n")
    return write_lines(blocks(), line_path(form, 0, 1), output=output, storage=storage, n_rows=n_lines)
