"""Records out of files: lines and JSON arrays, plain, gzip or bzip2, with the place of each."""

from __future__ import annotations

import bz2
import codecs
import gzip
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import BinaryIO, NamedTuple, cast

from kbsource.dump.compressed.streams import compression_of
from kbsource.errors import RecordError, SetupError
from kbsource.files import Storage, base_name
from kbsource.records import BadRecord
from mapping.sources.reading.fields import Json, parse_object

MAX_RECORD_BYTES = 64 << 20
"""A longer line or array element is rejected as ``record_too_long``; the longest real ones have some 10 MB."""

_READ_BYTES = 1 << 20
_HEAD_BYTES = 512
_N_PEEKED = 20
_DETAIL_CHARS = 1000
# Outside of strings only brackets matter; the last alternative is a string that has not ended yet.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|"', re.DOTALL)
_NEXT_OBJECT = re.compile(rb"\}\s*,\s*(?=\{)")
_AFTER_SCALAR = re.compile(rb"[,\]]")
# An object whose first members are scalars, up to the array under a key.
_MEMBER = rb'\s*+"[^"\\]*+"\s*+:\s*+'
_BEFORE_ARRAY = rb"\s*+\{(?:" + _MEMBER + rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]++)\s*+,)*+\s*+"%b"\s*+:\s*+(?=\[)'
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_BLANKS_AND_COMMAS = re.compile(rb"[ \t\r\n,]*+")


class RawRecord(NamedTuple):
    """One record as it stands in its file.

    Attributes:
        file: base name.
        line: 1-based line, or number of the element in an array.
        offset: byte of the decompressed file at which it begins; -1 for bzip2.
        data: its bytes; longer than MAX_RECORD_BYTES where it was too long, and then not all of it.
    """

    file: str
    line: int
    offset: int
    data: bytes

    def text(self) -> str:
        """Gives the record as text.

        Raises:
            RecordError: ``bad_encoding`` (not UTF-8), ``record_too_long``.
        """
        if len(self.data) > MAX_RECORD_BYTES:
            raise RecordError("record_too_long", f"more than {MAX_RECORD_BYTES} bytes")
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RecordError("bad_encoding", f"not UTF-8: {error}") from error

    def parse(self) -> Json:
        """Gives the JSON object; raises as ``text`` and ``parse_object``."""
        return parse_object(self.text())

    def bad(self, error: RecordError, *, key: str = "", stage: str = "source") -> BadRecord:
        """Gives the row that reports an error of this record; its place stands in the detail."""
        detail = f"line {self.line}: {error.detail}"[:_DETAIL_CHARS]
        return BadRecord(stage, key or f"line {self.line}", error.reason, detail, self.file, self.offset)


@contextmanager
def opened(storage: Storage, path: str, *, member: str | None = None) -> Iterator[tuple[BinaryIO, bool]]:
    """Opens a file for reading what is in it, decompressed; also says whether offsets count its plain bytes.

    Args:
        storage: holds the file.
        path: of the file.
        member: end of the path of the file that is read out of a tar archive; None where archives are not read.

    Raises:
        SetupError: there is no such file, it is empty, in a form that is not read, an archive or not in UTF-8, or it
            breaks off.
    """
    if not storage.exists(path):
        raise SetupError(f"{path}: no such file.")
    try:
        with storage.open_read(path) as stored:
            head = stored.read(_HEAD_BYTES)
            compression = compression_of(head, path)
            stored.seek(0)
            file = stored
            if compression == "gzip":
                file = cast(BinaryIO, gzip.GzipFile(fileobj=stored))
            elif compression == "bzip2":
                file = cast(BinaryIO, bz2.BZ2File(stored))
            head = file.read(_HEAD_BYTES)
            if head[257:262] == b"ustar":
                file.seek(0)
                with _opened_member(file, path, member) as inside:
                    yield inside, compression != "bzip2"
                return
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise SetupError(f"{path} is in UTF-16. Convert it to UTF-8 (iconv -f UTF-16 -t UTF-8).")
            file.seek(len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0)
            yield file, compression != "bzip2"
    except IsADirectoryError as error:
        raise SetupError(f"{path} is a folder; name a file.") from error
    except (EOFError, zlib.error, OSError, tarfile.TarError) as error:
        raise SetupError(f"{path} cannot be read to its end: {error}. Download it again.") from error


@contextmanager
def _opened_member(file: BinaryIO, path: str, name: str | None) -> Iterator[BinaryIO]:
    if name is None:
        raise SetupError(f"{path} is a tar archive. Unpack it (tar -xf) and give the files in it.")
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for info in archive:
            if f"/{info.name}".endswith(f"/{name}") and (inside := archive.extractfile(info)) is not None:
                yield cast(BinaryIO, inside)
                return
    raise SetupError(f"{path} is a tar archive without {name}.")


def iter_lines(storage: Storage, path: str, *, keep_blank: bool = False) -> Iterator[RawRecord]:
    """Gives the lines of a file without their ends; blank ones only where asked for. Raises as ``opened``."""
    name = base_name(path)
    with opened(storage, path) as (file, counts_plainly):
        number = 0
        offset = file.tell()
        while data := file.readline(MAX_RECORD_BYTES + 1):
            number += 1
            n_bytes = len(data)
            tail = data
            while len(tail) > MAX_RECORD_BYTES and not tail.endswith(b"\n"):
                tail = file.readline(MAX_RECORD_BYTES + 1)
                n_bytes += len(tail)
            if n_bytes <= MAX_RECORD_BYTES:
                data = data.rstrip(b"\r\n")
            if keep_blank or data.strip():
                yield RawRecord(name, number, offset if counts_plainly else -1, data)
            offset += n_bytes


def iter_array(
    storage: Storage, path: str, *, key: str | None = None, member: str | None = None
) -> Iterator[RawRecord]:
    """Gives the elements of a file that is one JSON array of objects, in flat memory.

    An element that is no JSON is given like the others. Where its brackets or quotes do not balance, it ends at the
    next place where one object can follow another.

    Args:
        storage: holds the file.
        path: of the file.
        key: where the file is one object, the key of the array; only scalars may stand in front of it.
        member: as for ``opened``.

    Raises:
        SetupError: as ``opened``; the file is no array.
    """
    name = base_name(path)
    with opened(storage, path, member=member) as (file, counts_plainly):
        buffer = bytearray()
        position = file.tell()  # of the buffer's first byte
        if key is not None:
            buffer += file.read(_READ_BYTES)
            n_before = array_start(buffer, key)
            if not n_before:
                raise SetupError(
                    f"{path} is no JSON object with an array {key!r}: it begins with {bytes(buffer[:60])!r}."
                )
            del buffer[:n_before]
            position += n_before
        number = 0
        has_begun = False
        while True:
            n_blank = _length(_BLANKS_AND_COMMAS if has_begun else _BLANKS, buffer)
            del buffer[:n_blank]
            position += n_blank
            if not buffer:
                buffer += file.read(_READ_BYTES)
                if not buffer:
                    raise SetupError(f"{path}: the array has no closing ']', the file breaks off. Download it again.")
            elif not has_begun:
                if buffer[:1] != b"[":
                    raise SetupError(f"{path} is no JSON array: it begins with {bytes(buffer[:60])!r}.")
                has_begun = True
                del buffer[:1]
                position += 1
            elif buffer[:1] == b"]":
                return
            else:
                end = _element_end(buffer, file)
                number += 1
                yield RawRecord(name, number, position if counts_plainly else -1, bytes(buffer[:end]))
                del buffer[:end]
                position += end


def array_start(head: bytes | bytearray, key: str) -> int:
    """Gives where the array under a key begins in a file that is one object; 0 for another file."""
    found = re.match(_BEFORE_ARRAY % re.escape(key.encode()), head)
    return found.end() if found else 0


def _length(pattern: re.Pattern[bytes], buffer: bytearray) -> int:
    found = pattern.match(buffer)
    return found.end() if found else 0


def _element_end(buffer: bytearray, file: BinaryIO) -> int:
    """Gives where the element at the buffer's beginning ends, reading on as far as it takes."""
    if buffer[0] not in b"{[":
        return _find(_AFTER_SCALAR, buffer, file)
    end = _balanced_end(buffer, file)
    # A stray quote can make several objects look like one.
    cut = _NEXT_OBJECT.search(buffer, 0, end)
    return cut.start() + 1 if cut and not _is_json(bytes(buffer[:end])) else end


def _balanced_end(buffer: bytearray, file: BinaryIO) -> int:
    """Gives where the first bracket is closed; the end of what can be read where it is not."""
    opening, closing = (b"{", b"}") if buffer[0] in b"{" else (b"[", b"]")
    depth = 0
    at = 0
    while True:
        for token in _TOKEN.finditer(buffer, at):
            if token[0] == b'"':
                at = token.start()
                break
            at = token.end()
            if token[0] == opening:
                depth += 1
            elif token[0] == closing:
                depth -= 1
                if not depth:
                    return at
        else:
            at = len(buffer)
        more = file.read(max(_READ_BYTES, len(buffer))) if len(buffer) <= MAX_RECORD_BYTES else b""
        if not more:
            return len(buffer)
        buffer += more


def _find(pattern: re.Pattern[bytes], buffer: bytearray, file: BinaryIO) -> int:
    """Gives where a pattern begins; the end of what can be read where it does not occur."""
    while True:
        if found := pattern.search(buffer):
            return found.start()
        more = file.read(_READ_BYTES) if len(buffer) <= MAX_RECORD_BYTES else b""
        if not more:
            return len(buffer)
        buffer += more


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def check_shape(path: str, raws: Iterable[RawRecord], fits: Callable[[Json], bool], *, expected: str) -> None:
    """Looks at the first records of a file.

    Raises:
        SetupError: none of them is what was expected.
    """
    first = b""
    for raw in islice(raws, _N_PEEKED):
        first = first or raw.data
        try:
            if fits(raw.parse()):
                return
        except RecordError:
            continue
    shown = "".join(one if one.isprintable() else "\ufffd" for one in first[:160].decode("utf-8", "replace"))
    raise SetupError(f"{path} is not what was expected: {expected}. Its first record is: {shown}")
