"""The folder of a corpus of passages: how it is written and read, file by file.

::

    passages/passages-00000-of-00012.parquet    the passages of the pages file with that number, in its order
    pyserini/passages-00000-of-00012.jsonl      the same as lines, where asked for
    dpr/passages.tsv                            the same in one file, where asked for; so kilt/, beir/, colbert/
    manifest.json                               written last
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import starmap

import pyarrow as pa

from kbsource.dump.digests import CheckedStorage, hash_file
from kbsource.errors import DataError, RecordError, SetupError
from kbsource.files import ReadableStorage, Storage, join
from kbsource.kilt import is_in_kilt
from kbsource.records import Page
from kbsource.release.columns import batch_to_pages
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry
from kbsource.release.reader import row_groups
from kbsource.release.writer import LinesFile, write_batches, write_lines
from kbsource.runtime.chunks import Stored, Work, read_stored, rows_batch
from mapping.passages.cut import TITLE_KINDS, CutOptions, PageText, Passage, PassageSpan, check_passages
from mapping.passages.forms import KiltPages, LineForm, line_forms
from mapping.passages.schema import PASSAGES

TABLE = "passages"
COUNTS = ("pages", "pages_without_text", "passages", "words", "long_passages")
"""What a corpus counts; a long passage is a sentence of more than ``max_words``."""
GROUP_ROWS = 2048
"""Passages in a row group: about a megabyte and a half."""

PAGE_COLUMNS = (
    "page_id",
    "title",
    *(f"elements.list.element.{name}" for name in ("kind", "marker", "section", "text")),
)
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


def read_page_texts(path: str, storage: ReadableStorage, options: CutOptions) -> Iterator[PageText]:
    """Gives what of the pages of a file of a release is cut, in its order."""
    for batch in read_page_chunks(path, storage):
        yield from _page_texts(batch, options)


def read_pages(path: str, storage: ReadableStorage) -> Iterator[Page]:
    """Gives the pages of a file of a release, in its order."""
    for group in row_groups(path, storage):
        for batch in group.to_batches():
            yield from batch_to_pages(batch)


def _page_texts(batch: pa.RecordBatch, options: CutOptions) -> Iterator[PageText]:
    elements = batch["elements"]
    offsets, items = elements.offsets.to_pylist(), elements.flatten()
    kinds, markers, sections, texts = (items.field(name).to_pylist() for name in ("kind", "marker", "section", "text"))
    left_out = TITLE_KINDS if options.has_lists else TITLE_KINDS | {"list_item"}

    def is_running(place: int) -> bool:
        if kinds[place] in left_out:
            return False
        return options.is_by_sentence or is_in_kilt(texts[place], markers[place])

    first = offsets[0]
    for row, (page_id, title) in enumerate(zip(batch["page_id"].to_pylist(), batch["title"].to_pylist(), strict=True)):
        start, end = offsets[row] - first, offsets[row + 1] - first
        running = list(filter(is_running, range(start, end)))
        numbered = tuple((place - start, texts[place]) for place in running)
        yield PageText(page_id, title, numbered, tuple(tuple(sections[place]) for place in running))


def read_passages(path: str, storage: Storage) -> Iterator[Passage]:
    """Gives the passages of a file in order. Memory: one row group."""
    for group in row_groups(path, storage):
        yield from passages_of(group)


def passages_of(table: pa.Table) -> Iterator[Passage]:
    """Gives the passages of a table of theirs."""
    for batch in table.to_batches():
        *plain, spans, sections = (batch[name] for name in PASSAGES.names)
        items = spans.flatten()
        places = list(map(PassageSpan._make, zip(*(column.to_pylist() for column in items.flatten()), strict=True)))
        offsets = spans.offsets.to_pylist()
        first = offsets[0]
        rows = zip(*(column.to_pylist() for column in (*plain, sections)), strict=True)
        for row, (*values, section) in enumerate(rows):
            spans_here = tuple(places[offsets[row] - first : offsets[row + 1] - first])
            yield Passage._make((*values, spans_here, tuple(section)))


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
        lang: language of the wiki.
    """

    schema = PASSAGES

    def __init__(self, options: CutOptions, lang: str) -> None:
        self._options, self._cut_page = options, options.cutter(lang)

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
        for page in _page_texts(batch, self._options):
            passages = self._cut_page(page)
            _check(page, passages)
            counts["pages"] += 1
            counts["pages_without_text"] += not passages
            for passage in passages:
                counts["passages"] += 1
                counts["words"] += passage.n_words
                counts["long_passages"] += passage.n_words > self._options.limit
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
    pages: KiltPages,
    storage: Storage,
) -> list[FileEntry]:
    """Writes the passages of one file of pages, and gives the entries of the files: of the table, and of lines in the
    order of ``line_forms``. Memory: a chunk.

    Args:
        chunks: of schema ``PASSAGES``, in order.
        number, n_shards: number of the file among all of the release.
        output: folder of the corpus.
        parts: folder for the parts of files that are joined.
        formats: keys of ``FORMS``.
        pages: of the file of pages, for forms that need them.
        storage: of everything.
    """
    with ExitStack() as stack:
        lines = [
            (form.line, stack.enter_context(LinesFile(*_line_place(form, number, n_shards, output, parts), storage)))
            for form in line_forms(formats)
        ]

        def batches() -> Iterator[pa.RecordBatch]:
            for batch in (batch for chunk in chunks for batch in read_stored(chunk, storage)):
                for passage in passages_of(pa.Table.from_batches([batch])) if lines else ():
                    for line_of, target in lines:
                        if line := line_of(passage, pages):
                            target.write(line)
                yield batch

        groups, file = _regrouped(batches(), GROUP_ROWS), shard_path(TABLE, number, n_shards)
        table = write_batches(groups, TABLE, PASSAGES, output=output, storage=storage, file=file)
    return [table, *(target.entry for _, target in lines)]


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


def _check(page: PageText, passages: Sequence[Passage]) -> None:
    try:
        check_passages(page, passages)
    except RecordError as error:
        raise SetupError(
            f"page {page.page_id} ({page.title}) cannot be cut ({error.reason}: {error.detail}); "
            "is the release sound? kbsource verify says."
        ) from error


def line_path(form: LineForm, number: int, n_shards: int) -> str:
    """Gives the path of a form's file in the corpus."""
    name = form.name if form.is_joined else f"{form.name}-{number:05d}-of-{n_shards:05d}"
    return f"{form.folder}/{name}.{form.suffix}"


def _line_place(form: LineForm, number: int, n_shards: int, output: str, parts: str) -> tuple[str, str]:
    if form.is_joined:
        return parts, f"{form.folder}/{form.name}-{number:05d}.{form.suffix}"
    return output, line_path(form, number, n_shards)


def join_lines(form: LineForm, entries: Sequence[FileEntry], *, output: str, parts: str, storage: Storage) -> FileEntry:
    """Writes the one file of a form out of its parts, in order, and gives the manifest's entry."""

    def lines() -> Iterator[bytes]:
        for entry in entries:
            with storage.open_read(join(parts, entry.file)) as part:
                yield from part

    def blocks() -> Iterator[bytes]:
        yield form.head
        yield from lines() if form.numbered is None else starmap(form.numbered, enumerate(lines()))
        yield form.tail

    n_lines = sum(entry.rows or 0 for entry in entries) + (form.head + form.tail).count(b"\n")
    return write_lines(blocks(), line_path(form, 0, 1), output=output, storage=storage, n_rows=n_lines)
