"""Reads the pages of a range of a dump, and reports what could not be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import iter_pieces
from kbsource.dump.pagexml import PageAssembler, Revision, XmlPageReader, page_key
from kbsource.dump.ranges import BROKEN_ENDS, DumpRange, RangeReading
from kbsource.dump.snapshots import read_snapshot
from kbsource.dump.splitter import MAX_PAGE_BYTES, WHOLE_PAGE_BYTES, PagePart, PageSplitter
from kbsource.errors import RecordError, SetupError
from kbsource.files import Files, Folder, base_name
from kbsource.records import BadRecord, RawPage, instant
from kbsource.site import Site

_DETAIL_CHARS = 1000
_BEFORE = 1 << 20
"""Number of bytes read before a range to see whether a page is open there. At least one whole bzip2 block begins in
them.
"""


def read_range(
    dump_range: DumpRange,
    site: Site,
    *,
    files: Files = Folder.of,
    as_of: str | None = None,
    text_namespaces: frozenset[int] | None = None,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    whole_bytes: int = WHOLE_PAGE_BYTES,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Iterator[RawPage | BadRecord]:
    """Yields the pages that begin in a range, and a BadRecord for everything that cannot be read, in order.

    The ranges of a file together yield the same as a single range over the whole file, wherever the file is divided.

    The newest revision of each page is selected or, if ``as_of`` is a time such as ``2019-08-01T00:00:00Z``, the newest
    up to this time. Pages outside ``text_namespaces`` get an empty text, which changes nothing else in the output; None
    reads all texts. ``on_progress`` and ``on_damage`` are described in ``lines.read_lines``. Pages of more than
    ``whole_bytes`` are read revision by revision, and a revision of more than ``max_bytes`` is rejected.

    Reasons of the BadRecords (stage ``read``): ``page_cut``, ``page_too_large``, ``malformed_xml``, ``xml_entity``,
    ``invalid_characters``, ``missing_field``, ``invalid_field``, ``text_deleted``, ``text_missing`` (the last two only
    for the main namespace), ``no_revision_as_of``, and for the file: those of ``DAMAGES``,
    ``trailing_garbage``, ``truncated_dump``. Snapshots of HTML are read by ``snapshots.read_snapshot``.

    Raises:
        SetupError: ``as_of`` is not a timestamp.
    """
    if as_of is not None:
        try:
            instant(as_of)
        except RecordError as error:
            message = f"{as_of!r} is not a time. Write it like 2019-08-01T00:00:00Z."
            raise SetupError(message) from error
    if dump_range.form != "xml":
        yield from read_snapshot(
            dump_range,
            site,
            files=files,
            as_of=as_of,
            text_namespaces=text_namespaces,
            on_progress=on_progress,
            on_damage=on_damage,
        )
        return
    file_name = base_name(dump_range.path)
    assembler = PageAssembler(site, file=file_name, as_of=as_of, text_namespaces=text_namespaces)
    pages = _PageReader(assembler, dump_range.prefix, file=file_name)
    splitter = PageSplitter(
        end=dump_range.content_end,
        is_open=partial(_is_open, dump_range, files) if dump_range.start else None,
        prefix=dump_range.prefix,
        whole_bytes=whole_bytes,
        max_bytes=max_bytes,
    )
    reading = RangeReading(dump_range, on_progress, encoding=dump_range.encoding)
    with files(dump_range.path).open() as file:
        pieces = iter_pieces(
            file, compression=dump_range.compression, encoding=dump_range.encoding, start=dump_range.start
        )
        for item in splitter.split(reading.watch(pieces)):
            if not isinstance(item, Damage):
                yield from pages.read(item)
            elif item.reason != "truncated":  # a truncated file is reported by the last range
                if on_damage is not None:
                    on_damage(item.n_bytes)
                yield BadRecord("read", "", item.reason, item.detail[:_DETAIL_CHARS], file_name, item.offset)
        if dump_range.is_last:
            tail, damage, offset = reading.end(file)
            if detail := describe_missing_end(tail, damage, dump_range):
                yield BadRecord("read", "", "truncated_dump", detail, file_name, offset)
    reading.finish()


def _is_open(of: DumpRange, files: Files, first: bytes) -> bool:
    """Returns whether a page is open after the bytes before a range and its ``first`` bytes. Only the last bytes before
    the range are read.
    """
    name = f"{of.prefix}:" if of.prefix else ""
    tags = re.compile(rf"<(?:(/){name}page|{name}(?:page|title|revision))[ >/\t\r\n]".encode("ascii"))
    unknown = f"<{name}page>".encode("ascii")
    before = unknown if of.start > _BEFORE else b""
    with files(of.path).open() as file:
        for item in iter_pieces(file, compression=of.compression, start=max(0, of.start - _BEFORE)):
            if (item.owner if isinstance(item, Damage) else item.offset) >= of.start:
                break
            if isinstance(item, Damage):
                before = unknown
            else:
                before += item.data if item.is_block else item.data[: of.start - item.offset]
    found = tags.findall(before + first)
    return bool(found) and not found[-1]


def describe_missing_end(tail: bytes, damage: str | None, of: DumpRange) -> str:
    """Returns a description of how a truncated dump ends, from its last bytes and the damage there; empty if the dump
    is complete.
    """
    name = f"{of.prefix}:" if of.prefix else ""
    last_page = tail.rfind(f"<{name}page".encode("ascii"))
    is_ended = not of.has_root or re.search(rf"</{name}mediawiki\s*>".encode("ascii"), tail[last_page + 1 :])
    return BROKEN_ENDS.get(damage or "", "" if is_ended else f"</{name}mediawiki> is missing at the end")


class _PageReader:
    """Builds pages and rejects from the parts that a splitter yields."""

    def __init__(self, assembler: PageAssembler, prefix: str, *, file: str) -> None:
        self._assembler = assembler
        self._xml = XmlPageReader(prefix)
        self._file = file
        self._start_large()

    def _start_large(self) -> None:
        self._outer: list[bytes] = []
        self._best: Revision | None = None
        self._has_later = False
        self._error: RecordError | None = None

    def read(self, part: PagePart) -> Iterator[RawPage | BadRecord]:
        """Yields the page that a part completes, or the record of its rejection. A part in the middle of a page yields
        nothing.
        """
        if part.kind == "page":
            try:
                yield self._whole(part)
            except RecordError as error:
                yield self._reject(page_key(part.data), error, part.offset)
        elif part.kind == "outer":
            self._outer.append(part.data)
        elif part.kind == "revision":
            self._add_revision(part.data)
        elif part.kind == "headless":
            yield self._reject("", RecordError("page_cut", "the page has no beginning (<page>)"), part.offset)
        else:
            key = page_key(self._outer[0] if self._outer else part.data)
            try:
                yield self._end_large(part)
            except RecordError as error:
                yield self._reject(key, error, part.offset)
            self._start_large()

    def _reject(self, key: str, error: RecordError, offset: int) -> BadRecord:
        return BadRecord("read", key, error.reason, error.detail[:_DETAIL_CHARS], self._file, offset)

    def _whole(self, part: PagePart) -> RawPage:
        head, revisions = self._xml.read_page(part.data)
        best = None
        for revision in revisions:
            best = self._assembler.newer(best, revision)
        has_later = any(map(self._assembler.is_later, revisions))
        return self._assembler.assemble(head, best, has_later=has_later, offset=part.offset)

    def _add_revision(self, data: bytes) -> None:
        if self._error is not None:
            return
        try:
            revision = self._xml.read_revision(data)
        except RecordError as error:
            self._error = error
            return
        self._has_later |= self._assembler.is_later(revision)
        self._best = self._assembler.newer(self._best, revision)

    def _end_large(self, part: PagePart) -> RawPage:
        if part.kind == "cut":
            raise RecordError("page_cut", "the page has no end (</page>)")
        if part.kind == "too_large":
            raise RecordError("page_too_large", "a revision is too long, or a tag in the page is not closed")
        if self._error is not None:
            raise self._error
        head = self._xml.read_outer(b"".join(self._outer))
        return self._assembler.assemble(head, self._best, has_later=self._has_later, offset=part.offset)
