"""Splits the decompressed bytes of any range of a dump into pages.

A page begins at every ``<page``. As ``<`` is escaped in text, a reader that starts in the middle of a file finds the
same pages as one that starts at its beginning. (An exception would be ``<page>`` in a comment or in CDATA, which no
exporter writes. The page around it is rejected, never silently shortened.) A ``<title`` or ``<revision`` outside a page
belongs to a page whose beginning is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import Piece

# A page larger than this is yielded revision by revision.
WHOLE_PAGE_BYTES = 8 << 20
# On Wikimedia's wikis, a revision has at most 2 MB of wikitext ($wgMaxArticleSize), which may take six times as many
# bytes if all of it is escaped.
MAX_PAGE_BYTES = 256 << 20

_AFTER_NAME = b" >/\t\r\n"
_KEY_BYTES = 4096


class PagePart(NamedTuple):
    """A page, or a part of a large page.

    Attributes:
        kind: ``page`` (a whole page); for a large page ``outer`` (the parts outside its revisions), ``revision`` and
            ``end``; ``cut`` (the page breaks off; the data is its head, unless it was already yielded); ``too_large``
            (as ``cut``, because a tag in the page is not closed); ``headless`` (the rest of a page whose beginning is
            lost).
        offset: defined as in ``records.BadRecord``.
        data: the XML of the part.
    """

    kind: str
    offset: int
    data: bytes


class PageSplitter:
    """Splits a range of a dump into pages. Each object is for one range."""

    def __init__(
        self,
        *,
        end: int,
        is_open: Callable[[bytes], bool] | None = None,
        prefix: str = "",
        whole_bytes: int = WHOLE_PAGE_BYTES,
        max_bytes: int = MAX_PAGE_BYTES,
    ) -> None:
        """Prepares for the range that ends before offset ``end``.

        Args:
            end: first offset of the next range; pages that begin there or later belong to that range.
            is_open: a function that returns, from the first bytes of the range, whether a page begins before the range
                and ends in it; None for the first range of a file. It is called if a title or a revision comes before
                any page tag.
            prefix: namespace prefix of the elements.
            whole_bytes: pages larger than this are yielded in parts.
            max_bytes: larger page heads and revisions are rejected.
        """
        name = f"{prefix}:" if prefix else ""
        self._end = end
        self._page = f"<{name}page".encode("ascii")
        self._page_close = f"</{name}page".encode("ascii")
        self._revision = f"<{name}revision".encode("ascii")
        self._revision_close = f"</{name}revision".encode("ascii")
        self._heads = f"<{name}title".encode("ascii"), self._revision
        self._whole_bytes = min(whole_bytes, max_bytes)
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._dropped = 0  # number of bytes of the stream before the buffer
        # For each segment in the buffer: its start in the stream, its offset in the file, and whether it is a block.
        self._marks: list[tuple[int, int, bool]] = []
        self._open_at = -1  # offset of the open page; -1 if none is open
        self._is_open = is_open
        # True if a title or a revision would belong to a headless page; None if ``is_open`` must be called to find out.
        self._is_outside = None if is_open else True
        self._first = b""
        self._is_in_parts = False
        # position in the buffer: start of the part of the open page that was not yet yielded; without an open page,
        # start of the part that was not yet searched
        self._position = 0
        self._searched = 0  # position in the buffer before which the open page does not end

    def split(self, items: Iterable[Piece | Damage]) -> Iterator[PagePart | Damage]:
        """Yields the pages and the damage that belong to the range, in order.

        Reads beyond the end of the range, up to the end of the last page that begins in it.
        """
        for item in items:
            if isinstance(item, Damage):
                yield from self._break_off()
                if item.owner >= self._end:
                    return
                yield item
                continue
            if item.offset >= self._end and self._open_at < 0 and not self._may_begin_page():
                return
            self._first += item.data[: len(self._revision_close) - len(self._first)]
            self._marks.append((self._dropped + len(self._buffer), item.offset, item.is_block))
            self._buffer += item.data
            while True:
                if self._open_at < 0:
                    yield from self._find_page()
                if self._open_at < 0:
                    break
                if self._open_at >= self._end:
                    return
                yield from self._read_page()
                if self._open_at >= 0:
                    break
            self._drop()
        yield from self._break_off()

    def _may_begin_page(self) -> bool:
        rest = bytes(self._buffer)
        tags = (self._page, *self._heads)
        return any(rest.endswith(tag[:length]) for tag in tags for length in range(1, len(tag) + 1))

    def _drop(self) -> None:
        """Drops bytes that were yielded or searched."""
        del self._buffer[: self._position]
        self._dropped += self._position
        self._searched = max(0, self._searched - self._position)
        self._position = 0
        while len(self._marks) > 1 and self._marks[1][0] <= self._dropped:
            del self._marks[0]

    def _offset(self, position: int) -> int:
        """Returns the file offset of a byte of the buffer."""
        place = self._dropped + position
        start, offset, is_block = next(mark for mark in reversed(self._marks) if mark[0] <= place)
        return offset if is_block else offset + place - start

    def _find_tag(self, name: bytes, start: int, stop: int) -> int:
        """Returns the position of the next tag with a name in the part [start, stop) of the buffer, or -1.

        A tag whose name is cut off by the end of the buffer is not found.
        """
        found = self._buffer.find(name, start, stop)
        while found >= 0:
            after = found + len(name)
            if after < len(self._buffer) and self._buffer[after] in _AFTER_NAME:
                return found
            found = self._buffer.find(name, after, stop)
        return -1

    def _tag_end(self, start: int) -> int:
        """Returns the end of the tag that begins at ``start``. A tag without > ends at the next tag. Returns 0 if the
        buffer ends first.
        """
        end = self._buffer.find(b">", start) + 1
        following = self._buffer.find(b"<", start + 1, end or len(self._buffer))
        return following if following >= 0 else end

    def _find_page(self) -> Iterator[PagePart]:
        """Opens the next page in the buffer, if there is one. Yields headless pages before it."""
        size = len(self._buffer)
        found = self._find_tag(self._page, self._position, size)
        stop = found if found >= 0 else size
        while places := [at for tag in self._heads if (at := self._find_tag(tag, self._position, stop)) >= 0]:
            place = min(places)
            if self._find_tag(self._page_close, self._position, place) >= 0:
                self._is_outside = True
            elif self._is_outside is None and self._is_open is not None:
                self._is_outside = not self._is_open(self._first[: self._dropped + place])
            self._position = place + 1
            if self._is_outside and (offset := self._offset(place)) < self._end:
                yield PagePart("headless", offset, b"")
            self._is_outside = False  # it is in a headless page
        if self._find_tag(self._page_close, self._position, stop) >= 0:
            self._is_outside = True
        if found < 0:
            self._position = max(self._position, size - len(self._revision))
            return
        self._open_at = self._offset(found)
        self._is_in_parts = False
        self._position = found
        self._searched = found + len(self._page)

    def _read_page(self) -> Iterator[PagePart]:
        """Yields the parts of the open page that are in the buffer, and its end if it is there too."""
        size = len(self._buffer)
        close = self._find_tag(self._page_close, self._searched, size)
        following = self._find_tag(self._page, self._searched, close if close >= 0 else size)
        page_end = following if following >= 0 else self._tag_end(close) if close >= 0 else 0
        # Everything before this belongs to the open page.
        known = max(self._searched, size - len(self._page_close))
        known = following if following >= 0 else close if close >= 0 else known
        if self._is_in_parts or (page_end or known) - self._position > self._whole_bytes:
            yield from self._parts(known)
        if (page_end or known) - self._position > self._max_bytes:
            yield from self._close("too_large", page_end or known)
        elif following >= 0:
            yield from self._close("cut", following)
        elif page_end == 0:
            self._searched = known
        elif self._is_in_parts:
            yield PagePart("outer", self._open_at, bytes(self._buffer[self._position : page_end]))
            yield PagePart("end", self._open_at, b"")
            self._leave(page_end, is_outside=True)
        else:
            yield PagePart("page", self._open_at, bytes(memoryview(self._buffer)[self._position : page_end]))
            self._leave(page_end, is_outside=True)

    def _parts(self, stop: int) -> Iterator[PagePart]:
        """Yields the complete revisions before ``stop``, and the parts between them."""
        self._is_in_parts = True
        while (start := self._find_tag(self._revision, self._position, stop)) >= 0:
            if start - self._position > self._max_bytes:
                break
            if start > self._position:
                yield PagePart("outer", self._open_at, bytes(self._buffer[self._position : start]))
            self._position = start
            close = self._find_tag(self._revision_close, start, stop)
            end = self._buffer.find(b">", close, stop) + 1 if close >= 0 else 0
            if end == 0 or end - start > self._max_bytes:
                break
            yield PagePart("revision", self._open_at, bytes(self._buffer[start:end]))
            self._position = end
        self._searched = max(self._searched, self._position)

    def _close(self, kind: str, position: int) -> Iterator[PagePart]:
        head = bytes(self._buffer[self._position : min(self._position + _KEY_BYTES, position)])
        yield PagePart(kind, self._open_at, head)
        self._leave(position, is_outside=False)

    def _leave(self, position: int, *, is_outside: bool) -> None:
        self._open_at = -1
        self._position = position
        self._is_outside = is_outside

    def _break_off(self) -> Iterator[PagePart]:
        """Handles damage or the end of the file: yields the open page as cut, and empties the buffer."""
        if self._open_at >= 0:
            yield from self._close("cut", len(self._buffer))
        self._is_outside = False  # the next bytes may be the rest of a page whose beginning is lost in the damage
        self._dropped += len(self._buffer)
        self._buffer.clear()
        self._marks.clear()
        self._position = self._searched = 0
