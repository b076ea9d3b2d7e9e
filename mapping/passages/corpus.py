"""The folder of a corpus of passages: how it is written and read, file by file.

::

    passages/passages-00000-of-00012.parquet    the passages of the pages file with that number, in its order
    pyserini/passages-00000-of-00012.jsonl      the same as lines, where asked for
    dpr/passages.tsv                            the same in one file, where asked for
    manifest.json                               written last, see mapping.output
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.errors import DataError, RecordError, SetupError
from kbsource.files import CHUNK_BYTES, HashingWriter, Storage, atomic_write, join, sha256_of
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry
from mapping.passages.cut import MAX_WORDS, TITLE_KINDS, PageText, Passage, Span, check_passages, cut_page
from mapping.passages.forms import FORMS, LineForm
from mapping.passages.schema import PASSAGES
from mapping.qampari.release_files import check_files, read_listing
from mapping.tables import table_path, write_table

FORMAT = "kbsource-passages-1"
TABLE = "passages"
COUNTS = ("pages", "pages_without_text", "passages", "words", "long_passages")
"""What a corpus counts; a long passage is a sentence of more than ``max_words``."""
GROUP_ROWS = 2048
"""Passages in a row group: about a megabyte and a half."""

_PAGE_COLUMNS = ["page_id", "title", "elements.list.element.kind", "elements.list.element.text"]


@dataclass(frozen=True, slots=True)
class CutOptions:
    """How pages are cut; stands in the manifest under ``options``.

    Attributes:
        max_words: most words of a passage.
        split_long: longer sentences are cut; else each is a passage by itself.
    """

    max_words: int = MAX_WORDS
    split_long: bool = False

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the value and what it may be.
        """
        if self.max_words < 1:
            raise SetupError(f"--max-words is {self.max_words}; give at least 1.")

    def cut(self, page: PageText) -> list[Passage]:
        """Gives the passages of a page."""
        return cut_page(page, max_words=self.max_words, split_long=self.split_long)


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What became of one file of pages.

    Attributes:
        files: those that were written under their final name.
        parts: of forms that are joined, by form.
        counts: by name in ``COUNTS``.
    """

    files: tuple[FileEntry, ...]
    parts: dict[str, FileEntry]
    counts: dict[str, int]

    def to_json(self) -> dict[str, Any]:
        """Gives the report as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ShardReport:
        """Gives back what ``to_json`` gave."""
        files = tuple(FileEntry(**one) for one in value["files"])
        return cls(files, {name: FileEntry(**one) for name, one in value["parts"].items()}, value["counts"])


def read_page_texts(path: str, storage: Storage) -> Iterator[PageText]:
    """Gives the running text of the pages of a file of a release, in its order. Memory: one row group."""
    with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            for batch in parquet.read_row_group(group, columns=_PAGE_COLUMNS, use_threads=False).to_batches():
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
    with storage.open_read(path) as file, pq.ParquetFile(file) as parquet:
        for group in range(parquet.metadata.num_row_groups):
            yield from passages_of(parquet.read_row_group(group, use_threads=False))


def passages_of(table: pa.Table) -> Iterator[Passage]:
    """Gives the passages of a table of theirs."""
    for batch in table.to_batches():
        *plain, spans = (batch[name] for name in PASSAGES.names)
        items = spans.flatten()
        places = list(map(Span._make, zip(*(column.to_pylist() for column in items.flatten()), strict=True)))
        offsets = spans.offsets.to_pylist()
        first = offsets[0]
        for row, values in enumerate(zip(*(column.to_pylist() for column in plain), strict=True)):
            spans_here = tuple(places[offsets[row] - first : offsets[row + 1] - first])
            yield Passage._make((*values, spans_here))


def check_pages(kb: str, entry: FileEntry, storage: Storage) -> None:
    """Raises where a file of pages is not what the manifest of its release says; reads all of it.

    Raises:
        DataError: it has another content.
    """
    path = join(kb, entry.file)
    if sha256_of(storage, path) != entry.sha256:
        raise DataError(
            f"{path} is not as it was written. Check the release with kbsource verify, and fetch or build it again."
        )


def write_shard(
    source: str,
    number: int,
    n_shards: int,
    *,
    output: str,
    parts: str,
    options: CutOptions,
    formats: Sequence[str],
    storage: Storage,
    on_page: Callable[[], None] | None = None,
) -> ShardReport:
    """Writes the passages of one file of pages. Memory: ``GROUP_ROWS`` passages and one row group of pages.

    Args:
        source: path of the file of pages.
        number, n_shards: number of the file among all of the release.
        output: folder of the corpus.
        parts: folder for the parts of files that are joined.
        options: how pages are cut.
        formats: keys of ``FORMS``.
        storage: of everything.
        on_page: called for every page.

    Raises:
        SetupError: a page breaks a law of ``check_passages``.
    """
    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    sinks: dict[str, HashingWriter] = {}
    with ExitStack() as stack:
        for name in formats:
            folder, file = _line_place(FORMS[name], number, n_shards, output=output, parts=parts)
            sinks[name] = HashingWriter(stack.enter_context(atomic_write(storage, join(folder, file))))

        def rows() -> Iterator[Passage]:
            for page in read_page_texts(source, storage):
                passages = _checked(page, options)
                counts["pages"] += 1
                counts["pages_without_text"] += not passages
                for one in passages:
                    counts["passages"] += 1
                    counts["words"] += one.n_words
                    counts["long_passages"] += one.n_words > options.max_words
                    for name, sink in sinks.items():
                        sink.write(FORMS[name].line(one))
                    yield one
                if on_page is not None:
                    on_page()

        table = write_table(
            rows(),
            TABLE,
            output=output,
            file=table_path(TABLE, number, n_shards),
            storage=storage,
            schema=PASSAGES,
            group_rows=GROUP_ROWS,
        )
    files, joined = [table], {}
    for name, sink in sinks.items():
        _, file = _line_place(FORMS[name], number, n_shards, output=output, parts=parts)
        entry = FileEntry(file, table.rows, sink.n_bytes, sink.hexdigest())
        if FORMS[name].is_joined:
            joined[name] = entry
        else:
            files.append(entry)
    return ShardReport(tuple(files), joined, dict(counts))


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


def _line_place(form: LineForm, number: int, n_shards: int, *, output: str, parts: str) -> tuple[str, str]:
    if form.is_joined:
        return parts, f"{form.folder}/{number:05d}.{form.suffix}"
    return output, line_path(form, number, n_shards)


def join_lines(name: str, reports: Sequence[ShardReport], *, output: str, parts: str, storage: Storage) -> FileEntry:
    """Writes the one file of a form out of its parts, in order, and gives the manifest's entry."""
    form = FORMS[name]
    file = line_path(form, 0, 1)
    with atomic_write(storage, join(output, file)) as raw:
        sink = HashingWriter(raw)
        sink.write(form.head)
        for report in reports:
            with storage.open_read(join(parts, report.parts[name].file)) as part:
                while block := part.read(CHUNK_BYTES):
                    sink.write(block)
    n_lines = sum(report.parts[name].rows for report in reports) + form.head.count(b"\n")
    return FileEntry(file, n_lines, sink.n_bytes, sink.hexdigest())


def read_corpus(output: str, storage: Storage) -> dict[str, Any]:
    """Gives the manifest of a finished corpus.

    Raises:
        SetupError: there is none, it is that of something else, or not as it was written.
    """
    path = join(output, MANIFEST)
    if not storage.exists(path):
        raise SetupError(
            f"{output}: no {MANIFEST}, so no finished corpus of passages; make it, or name another folder."
        )
    manifest = read_listing(output, storage, FORMAT)
    if manifest is None:
        raise SetupError(f"{path}: not the manifest of a corpus of passages ({FORMAT}); name the folder of one.")
    return manifest


def check_tables(output: str, manifest: Mapping[str, Any], storage: Storage) -> None:
    """Raises where a file of the table is not what the manifest says; reads all of them.

    Raises:
        SetupError: a file is missing, or has another size or content.
    """
    files = set(table_files(manifest))
    check_files(output, {"files": [one for one in manifest["files"] if one["file"] in files]}, storage)


def table_files(manifest: Mapping[str, Any]) -> list[str]:
    """Gives the paths of the files of the table in the order of their numbers."""
    return sorted(one["file"] for one in manifest["files"] if one["file"].endswith(".parquet"))
