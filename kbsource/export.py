"""Writes the pages of a release to files: plain text, Markdown, HTML, or JSON Lines of pages, sections or chunks."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple

import orjson
import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.files import HashingWriter, base_name
from kbsource.lookup import KnowledgeSource
from kbsource.parts import Without
from kbsource.records import Page, instant_text
from kbsource.release.output import output_file
from kbsource.rendering import Block, HtmlPage, TextForm, join_blocks, text_form
from kbsource.sentences import sentence_spans

Format = Literal["text", "markdown", "html", "jsonl"]
By = Literal["page", "section"]
COMPRESSIONS = {"gz": "gzip", "zst": "zstd", "bz2": "bz2"}
_BLOCK_BYTES = 1 << 20
_EVERY = 1_000
# A token is a word or another sign or, in scripts without spaces between words, a character.
_UNSPACED = "\u0e00-\u0eff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_HEADS = ("title", "heading")
_FURTHER_FACTS = ("qid", "revision_id", "timestamp")
"""Columns that become fields of JSON Lines with Markdown."""
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Options for writing each page."""

    format: Format = "text"
    #: form of the text; None for the default: plain in text files, Markdown in JSON Lines. Other formats ignore it
    text: TextForm | None = None
    without: tuple[str, ...] = ()  #: parts to leave out, see ``kbsource.parts.Without``
    has_links: bool = False  #: true if links are written; for Markdown, HTML, and JSON Lines with Markdown
    by: By = "page"  #: content of a line of JSON Lines
    #: maximum size of a chunk of a page or section in JSON Lines, in tokens as counted by ``n_tokens``
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        """Raises SetupError for an option that the format does not support."""
        if self.format != "jsonl" and (self.by != "page" or self.max_tokens is not None):
            raise SetupError(
                "only JSON Lines can contain sections and chunks: give --format jsonl with --by and --max-tokens."
            )
        if self.text is not None and self.format not in ("text", "jsonl"):
            raise SetupError(f"--text works only with --format text and jsonl, not with {self.format}: leave it out.")
        if self.format == "text" and self.text == "markdown":
            raise SetupError("--format text has no Markdown: give --format markdown, or --text plain or body.")
        if self.has_links and self.form != "markdown":
            raise SetupError("plain text has no links: leave --links out, or give --format markdown.")

    @property
    def form(self) -> TextForm:
        """The form of the text. For HTML, it is the Markdown form, because both include the same parts."""
        return self.text or ("plain" if self.format == "text" else "markdown")

    @property
    def columns(self) -> list[str]:
        """The columns of the pages that must be read."""
        columns = ["page_id", "title", "url", "elements"]
        if self.form != "plain":
            columns.append("tables")
        if self.form == "markdown":
            columns += ("infoboxes", *_FURTHER_FACTS)
        return [*columns, "anchors"] if self.has_links else columns


class ExportCounts(NamedTuple):
    """Counts of the pages and files written."""

    n_pages: int
    n_records: int  #: number of lines of JSON Lines; in other formats, of pages
    n_bytes: int  #: number of bytes before compression
    files: tuple[str, ...]
    n_sections: dict[str, int]  #: number of sections left out, by the name in the options


def n_tokens(text: str) -> int:
    """Returns the number of tokens: words and other signs, and characters of scripts without spaces.

    >>> n_tokens("It isn't 東京."), n_tokens("$x^2$")
    (7, 5)
    """
    return sum(1 for _ in _TOKEN.finditer(text))


class PageWriter:
    """Writes pages according to the options.

    Args:
        options: the parts of each page to write, and the format.
    """

    def __init__(self, options: ExportOptions) -> None:
        self.options = options
        self._form = text_form(options.form, options.without, has_links=options.has_links)

    @property
    def without(self) -> Without:
        """The parts that are left out, with counts for the pages written so far."""
        return self._form.without

    def records(self, page: Page) -> Iterator[dict[str, Any]]:
        """Yields the lines of JSON Lines for a page.

        Sections and chunks that contain only headings are skipped, unless the page contains nothing else.
        """
        options, blocks = self.options, self._form.blocks(page)
        facts: dict[str, Any] = {"url": page.url, "title": page.title}
        if options.form == "markdown":
            own = {"page_id": page.page_id, "qid": page.qid, "revision_id": page.revision_id}
            facts |= own | {"timestamp": instant_text(page.timestamp)}
        if options.by == "page" and options.max_tokens is None:
            yield {"id": str(page.page_id), **facts, "text": join_blocks(blocks)}
            return
        whole = [*blocks]
        runs = [whole]
        if options.by == "section":
            runs = [[*own] for _, own in groupby(whole, lambda block: block.section)]
        if options.max_tokens is not None:
            runs = [piece for run in runs for piece in cut_blocks(run, options.max_tokens)]
        kept = [run for run in runs if any(block.kind not in _HEADS for block in run)] or [*runs, []][:1]
        for number, run in enumerate(kept):
            section = list(run[-1].section) if run else []
            yield {"id": f"{page.page_id}-{number}", **facts, "section": section, "text": join_blocks(run)}

    def encoded(self, page: Page) -> tuple[bytes, int]:
        """Returns the bytes to write for a page, and the number of records in them. A text ends with empty lines."""
        if self.options.format == "jsonl":
            lines = [orjson.dumps(record) + b"\n" for record in self.records(page)]
            return b"".join(lines), len(lines)
        if self.options.format == "html":
            html = HtmlPage(page, self.without, has_links=self.options.has_links).text()
            return f'<article id="page-{page.page_id}">\n{html}\n</article>\n'.encode(), 1
        return f"{self._form.text(page)}\n\n\n".encode(), 1


def cut_blocks(blocks: Iterable[Block], max_tokens: int) -> Iterator[list[Block]]:
    """Groups consecutive blocks into chunks of at most ``max_tokens`` tokens.

    A block that is too long is divided after a line or a sentence if possible, or else between two words. A heading is
    in the same chunk as the text below it.
    """
    run: list[Block] = []
    sizes: list[int] = []
    n_held = 0
    for block in blocks:
        above = takewhile(lambda held: held[0].kind in _HEADS, zip(reversed(run), reversed(sizes), strict=True))
        room = max_tokens - sum(size for _, size in above)
        for text, size in _cut_text(block.text, max_tokens, first_tokens=room if 2 * room > max_tokens else max_tokens):
            if run and n_held + size > max_tokens:
                first = len(run)
                while first > 1 and run[first - 1].kind == "heading":
                    first -= 1
                if run[first - 1].kind == "heading" or sum(sizes[first:]) + size > max_tokens:
                    first = len(run)
                yield run[:first]
                run, sizes = run[first:], sizes[first:]
                n_held = sum(sizes)
            run.append(block._replace(text=text))
            sizes.append(size)
            n_held += size
    if run:
        yield run


def _cut_text(text: str, max_tokens: int, *, first_tokens: int) -> Iterator[tuple[str, int]]:
    spans = [found.span() for found in _TOKEN.finditer(text)]
    first, at, room = 0, 0, first_tokens
    sentence_ends = [end for _, end in sentence_spans(text)] if len(spans) > room else []
    while len(spans) - first > room:
        end = spans[first + room - 1][1]
        half = spans[first + (room - 1) // 2][0]
        n_ended = bisect_right(sentence_ends, end)
        cut = sentence_ends[n_ended - 1] if n_ended and sentence_ends[n_ended - 1] > half else end
        after = bisect_left(spans, (cut, 0), first + 1)
        yield text[at:cut].strip(), after - first
        first, at, room = after, cut, max_tokens
    yield text[at:].rstrip() if not at else text[at:].strip(), len(spans) - first


def export_pages(
    source: KnowledgeSource,
    output: str,
    options: ExportOptions,
    *,
    titles: Sequence[str] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> ExportCounts:
    """Writes the pages of a release in its order, or only the pages in ``titles``, in the order of this argument.

    Memory: one row group of pages.

    Args:
        output: file, or ``-`` for the standard output. The ending ``.gz``, ``.zst`` or ``.bz2`` of the name selects the
            compression. If the name contains a ``*``, one file is written for each file of pages, with its number
            instead of the ``*``.
        titles: titles, page ids, URLs or items of the pages to write; all pages if empty.

    Raises:
        SetupError: a page does not exist, or ``titles`` is used with several output files.
    """
    columns, writer = options.columns, PageWriter(options)
    n_files = len(source.manifest.tables["pages"])
    if "*" in base_name(output):
        if titles:
            raise SetupError(
                "pages that are named on the command line are written to one file: leave out the * in --output."
            )
        number_of = (str(number).zfill(5) for number in range(n_files))
        files = {output[::-1].replace("*", number[::-1], 1)[::-1]: (n,) for n, number in enumerate(number_of)}
        parts = [(file, source.pages(columns=columns, files=own)) for file, own in files.items()]
    else:
        parts = [(output, (_page_named(source, name) for name in titles) if titles else source.pages(columns=columns))]
    total = len(titles) or len(source)
    n_pages = n_records = n_bytes = 0
    for file, pages in parts:
        with opened_output(file) as sink:
            held = bytearray(_head(source) if options.format == "html" else b"")
            for page in pages:
                written, n = writer.encoded(page)
                held += written
                n_pages, n_records = n_pages + 1, n_records + n
                if len(held) >= _BLOCK_BYTES:
                    n_bytes += sink.write(held)
                    held = bytearray()
                if on_progress is not None and n_pages % _EVERY == 0:
                    on_progress(n_pages, total)
            if options.format == "html":
                held += b"</body>\n</html>\n"
            n_bytes += sink.write(held)
    return ExportCounts(n_pages, n_records, n_bytes, tuple(file for file, _ in parts), writer.without.n_sections)


def _page_named(source: KnowledgeSource, name: str) -> Page:
    page = source.get(name) or source.by_qid(name)
    if page is None:
        raise SetupError(f"{name}: the release has no such page; kbsource show prints the reason and similar titles.")
    return page


def _head(source: KnowledgeSource) -> bytes:
    title = escape(" ".join(filter(None, (source.site.name or source.site.dbname, source.manifest.dump.date))))
    lang = escape(source.site.lang)
    head = f'<head><meta charset="utf-8"><title>{title}</title></head>'
    return f'<!DOCTYPE html>\n<html lang="{lang}">\n{head}\n<body>\n'.encode()


@contextmanager
def opened_output(path: str) -> Iterator[Any]:
    """Opens a file for writing, compressed according to its name. It gets its name when it is complete. ``-`` is the
    standard output.
    """
    if path in ("-", "/dev/stdout"):
        yield sys.stdout.buffer
        return
    with output_file(path) as file:
        name = COMPRESSIONS.get(path.rpartition(".")[2])
        if name is None:
            yield file
        else:
            with pa.CompressedOutputStream(pa.PythonFile(HashingWriter(file), "w"), name) as stream:
                yield _Compressing(stream)


class _Compressing:
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, data: bytes) -> int:
        self._stream.write(bytes(data))
        return len(data)
