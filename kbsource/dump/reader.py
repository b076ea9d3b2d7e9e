"""A range of a dump -> its pages, and what could not be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from kbsource.dump.compressed.bzip2 import Damage
from kbsource.dump.compressed.streams import UTF8, Piece, iter_pieces, read_tail
from kbsource.dump.pagexml import TIMESTAMP, PageAssembler, Revision, XmlPageReader, page_key
from kbsource.dump.ranges import DumpRange
from kbsource.dump.splitter import MAX_PAGE_BYTES, WHOLE_PAGE_BYTES, PagePart, PageSplitter
from kbsource.errors import RecordError, SetupError
from kbsource.files import ReadableStorage, base_name
from kbsource.records import BadRecord, RawPage
from kbsource.site import Site

# The root's end tag and the white space around it fit in many times over.
TAIL_BYTES = 1 << 14
_DETAIL_CHARS = 1000


def read_range(
    dump_range: DumpRange,
    storage: ReadableStorage,
    site: Site,
    *,
    as_of: str | None = None,
    text_namespaces: frozenset[int] | None = None,
    on_progress: Callable[[int], None] | None = None,
    on_damage: Callable[[int], None] | None = None,
    whole_bytes: int = WHOLE_PAGE_BYTES,
    max_bytes: int = MAX_PAGE_BYTES,
) -> Iterator[RawPage | BadRecord]:
    """Yields the pages that begin in a range, and a BadRecord for everything that cannot be read, in order.

    What the ranges of a file yield, one after the other, is what one range over the whole file yields, whatever
    the cuts. With other ``text_namespaces`` the same pages and rejects come, only with other texts left empty.

    Args:
        dump_range: from ``plan_ranges``.
        storage: where the file is.
        site: facts of the wiki; decides the namespace of pages that do not tell.
        as_of: ``2019-08-01T00:00:00Z``: of each page, the newest revision not after it; None for the newest.
        text_namespaces: numbers of the namespaces whose texts are wanted, all others come with an empty text; None
            asks for all texts.
        on_progress: told, bit by bit, how many further stored bytes of the range were read; all in all its size.
        on_damage: told of each damage how many stored bytes it made unreadable.
        whole_bytes: pages larger than this are read revision by revision.
        max_bytes: a revision larger than this is given up.

    Reasons of the BadRecords (stage ``read``): ``page_cut``, ``page_too_large``, ``malformed_xml``, ``xml_entity``,
    ``invalid_characters``, ``missing_field``, ``invalid_field``, ``text_deleted``, ``text_missing`` (the last two for
    the main namespace only), ``no_revision_as_of``, and for the file: ``damaged_block``, ``damaged_gzip``,
    ``trailing_garbage``, ``truncated_dump``.

    Raises:
        SetupError: ``as_of`` is no timestamp.
    """
    if as_of is not None and not TIMESTAMP.fullmatch(as_of):
        raise SetupError(f"{as_of!r} is no time to read a dump as of. Write it like 2019-08-01T00:00:00Z.")
    file_name = base_name(dump_range.path)
    assembler = PageAssembler(site, file=file_name, as_of=as_of, text_namespaces=text_namespaces)
    pages = _PageReader(assembler, dump_range.prefix, file=file_name)
    splitter = PageSplitter(
        end=_content_end(dump_range), prefix=dump_range.prefix, whole_bytes=whole_bytes, max_bytes=max_bytes
    )
    ending = _Ending()
    progress = _Progress(dump_range, on_progress)
    with storage.open_read(dump_range.path) as file:
        pieces = iter_pieces(
            file, compression=dump_range.compression, encoding=dump_range.encoding, start=dump_range.start
        )
        for item in splitter.split(progress.watch(ending.watch(pieces))):
            if not isinstance(item, Damage):
                yield from pages.read(item)
            elif item.reason != "truncated":  # that the last range finds out
                if on_damage is not None:
                    on_damage(item.n_bytes)
                yield BadRecord("read", "", item.reason, item.detail[:_DETAIL_CHARS], file_name, item.offset)
        if dump_range.is_last:
            detail = _missing_end(dump_range, file, ending)
            if detail:
                offset = ending.offset if dump_range.compression == "gzip" else dump_range.n_bytes
                yield BadRecord("read", "", "truncated_dump", detail, file_name, offset)
    progress.finish()


def _content_end(dump_range: DumpRange) -> int:
    """Gives the offset at which the next range's pages begin; no page is foreign to the last range."""
    return 1 << 62 if dump_range.is_last else dump_range.end


class _Ending:
    """Remembers how the content that passes through ends."""

    def __init__(self) -> None:
        self.tail = b""
        self.offset = 0
        self.damage: str | None = None

    def watch(self, items: Iterable[Piece | Damage]) -> Iterator[Piece | Damage]:
        for item in items:
            if isinstance(item, Damage):
                self.damage = item.reason
            else:
                self.damage = None
                data = item.data
                self.offset = item.offset + len(data)
                self.tail = data[-TAIL_BYTES:] if len(data) >= TAIL_BYTES else (self.tail + data)[-TAIL_BYTES:]
            yield item


def _missing_end(dump_range: DumpRange, file: BinaryIO, ending: _Ending) -> str:
    """Says in what way the file ends before it should; "" when it ends well, or with a damage reported as such."""
    if dump_range.compression == "gzip" or dump_range.encoding != UTF8:
        tail, damage = ending.tail, ending.damage
    else:
        tail, damage = read_tail(file, compression=dump_range.compression, size=dump_range.n_bytes, count=TAIL_BYTES)
    return describe_missing_end(tail, damage, has_root=dump_range.has_root, prefix=dump_range.prefix)


def describe_missing_end(tail: bytes, damage: str | None, *, has_root: bool, prefix: str) -> str:
    """Says in what way a dump ends before it should, "" when it does not.

    Args:
        tail: last bytes of its content.
        damage: reason of the damage at its very end.
        has_root: it began with ``<mediawiki>``.
        prefix: namespace prefix of the elements.
    """
    name = f"{prefix}:" if prefix else ""
    if damage == "truncated":
        return "the compressed file ends in the middle"
    if damage == "damaged_gzip":
        return "nothing behind the damage can be decoded"
    if damage == "damaged_block" or not has_root:
        return ""
    last_page = tail.rfind(f"<{name}page".encode("ascii"))
    if re.search(rf"</{name}mediawiki\s*>".encode("ascii"), tail[last_page + 1 :]):
        return ""
    return f"</{name}mediawiki> is missing at the end"


class _Progress:
    """Tells how much of a range was read."""

    def __init__(self, dump_range: DumpRange, on_progress: Callable[[int], None] | None) -> None:
        self._done = dump_range.start
        self._end = dump_range.end
        self._on_progress = on_progress

    def watch(self, items: Iterable[Piece | Damage]) -> Iterator[Piece | Damage]:
        for item in items:
            if isinstance(item, Piece):
                self._reach(item.position)
            yield item

    def finish(self) -> None:
        self._reach(self._end)

    def _reach(self, position: int) -> None:
        position = min(position, self._end)
        if self._on_progress is not None and position > self._done:
            self._on_progress(position - self._done)
            self._done = position


class _PageReader:
    """Makes pages and rejects of the parts that a splitter yields."""

    def __init__(self, assembler: PageAssembler, prefix: str, *, file: str) -> None:
        self._assembler = assembler
        self._xml = XmlPageReader(prefix)
        self._file = file
        self._start_large()

    def _start_large(self) -> None:
        self._outer: list[bytes] = []
        self._best: Revision | None = None
        self._n_revisions = 0
        self._error: RecordError | None = None

    def read(self, part: PagePart) -> Iterator[RawPage | BadRecord]:
        """Yields the page that the part completes, or why there is none; nothing for a part in the middle."""
        if part.kind == "page":
            try:
                yield self._whole(part)
            except RecordError as error:
                yield self._reject(page_key(part.data), error, part.offset)
        elif part.kind == "outer":
            self._outer.append(part.data)
        elif part.kind == "revision":
            self._add_revision(part.data)
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
        return self._assembler.assemble(head, best, n_revisions=len(revisions), offset=part.offset)

    def _add_revision(self, data: bytes) -> None:
        if self._error is not None:
            return
        try:
            revision = self._xml.read_revision(data)
        except RecordError as error:
            self._error = error
            return
        self._n_revisions += 1
        self._best = self._assembler.newer(self._best, revision)

    def _end_large(self, part: PagePart) -> RawPage:
        if part.kind == "cut":
            raise RecordError("page_cut", "the page has no </page>")
        if part.kind == "too_large":
            raise RecordError("page_too_large", "something in the page does not end")
        if self._error is not None:
            raise self._error
        head = self._xml.read_outer(b"".join(self._outer))
        return self._assembler.assemble(head, self._best, n_revisions=self._n_revisions, offset=part.offset)
