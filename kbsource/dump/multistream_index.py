"""The index beside a multistream dump: ``byte_offset:page_id:title`` for every page.

Source: https://meta.wikimedia.org/wiki/Data_dumps/Dump_format#Multistream_dumps
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kbsource.dump.compressed.bzip2 import Damage
from kbsource.dump.compressed.streams import compression_of, iter_pieces, read_up_to
from kbsource.errors import RecordError
from kbsource.files import ReadableStorage

_LINE = re.compile(rb"(\d{1,18}):(\d{1,18}):(.+)")
STREAM_START = re.compile(rb"BZh[1-9]1AY&SY")


class IndexEntry(NamedTuple):
    """One line: the byte at which the stream with the page begins, the page's id, its title as written in XML."""

    offset: int
    page_id: int
    title: str


def read_index(path: str, storage: ReadableStorage) -> Iterator[IndexEntry]:
    """Yields the lines of an index, compressed or not, in order.

    Raises:
        RecordError: ``malformed_index`` (a line is none) or ``damaged_index`` (it cannot be decoded to its
            end).
    """
    rest = b""
    with storage.open_read(path) as file:
        head = read_up_to(file, 8)
        for piece in iter_pieces(file, compression=compression_of(head, path)):
            if isinstance(piece, Damage):
                raise RecordError("damaged_index", piece.detail)
            *lines, rest = (rest + piece.data).split(b"\n")
            for line in lines:
                yield _entry(line)
    if rest:
        yield _entry(rest)


def _entry(line: bytes) -> IndexEntry:
    found = _LINE.fullmatch(line)
    if found is None:
        raise RecordError("malformed_index", f"{line[:200]!r} is not offset:page_id:title")
    return IndexEntry(int(found[1]), int(found[2]), found[3].decode("utf-8", "replace"))
