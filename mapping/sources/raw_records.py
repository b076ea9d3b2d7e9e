"""Reads records from files of JSON lines or JSON arrays, plain or compressed, with their positions, and typed values
from records.
"""

from __future__ import annotations

import codecs
import json
import re
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeGuard, cast

import orjson

from kbsource.dump.compressed.streams import CODECS, compression_of
from kbsource.errors import RecordError, SetupError
from kbsource.files import Folder, base_name
from kbsource.records import BadRecord

Json = dict[str, Any]

FAULTS: dict[str, str] = {
    "bad_encoding": "text that is not Unicode",
    "malformed_json": "a line or array element that is not JSON",
    "missing_field": "a field that is needed is absent",
    "record_too_long": "a line or array element of more than 64 MiB",
    "wrong_type": "a value of another type than the field has",
}
"""Reasons for rejecting any record: reason -> meaning."""
_HALF_OF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")

MAX_RECORD_BYTES = 64 << 20
"""A longer line or array element is rejected as ``record_too_long``; the longest real ones have about 10 MB."""
_READ_BYTES = 1 << 20
_HEAD_BYTES = 512
_PEEKED_BYTES = 256
_N_PEEKED = 20
_DETAIL_CHARS = 1000
# Outside strings only brackets matter; the last alternative is an unfinished string.
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|"', re.DOTALL)
_NEXT_OBJECT = re.compile(rb"\}\s*,\s*(?=\{)")
_AFTER_SCALAR = re.compile(rb"[,\]]")
# An object whose first members are scalars, up to the array under a key.
_MEMBER = rb'\s*+"[^"\\]*+"\s*+:\s*+'
_BEFORE_ARRAY = rb"\s*+\{(?:" + _MEMBER + rb'(?:"(?:[^"\\]|\\.)*+"|[-+.\w]++)\s*+,)*+\s*+"%b"\s*+:\s*+(?=\[)'
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_BLANKS_AND_COMMAS = re.compile(rb"[ \t\r\n,]*+")


def parse_object(text: str) -> Json:
    """Parses a JSON object. Key order and all digits of integers are preserved.

    Raises:
        RecordError: ``bad_encoding`` (half a surrogate pair), ``malformed_json``, ``wrong_type`` (not an object).
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RecordError("malformed_json", f"{error} in {text[:80]!r}") from error
    if not isinstance(value, dict):
        raise RecordError("wrong_type", f"expected an object, found {text[:80]!r}")
    if _HALF_OF_PAIR.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise RecordError("bad_encoding", f"half a surrogate pair: {error}") from error
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def text_at(record: Json, key: str) -> str:
    """Returns a string; raises RecordError: ``missing_field`` or ``wrong_type``."""
    value = _at(record, key)
    return value if isinstance(value, str) else _wrong(key, "a string", value)


def integer_at(record: Json, key: str) -> int:
    """Returns an integer; raises as ``text_at``."""
    value = _at(record, key)
    return value if is_integer(value) else _wrong(key, "an integer", value)


def digits_or_text(record: Json, key: str) -> str:
    """Returns a string, or the digits of an integer, which is how ids are written; raises as ``text_at``."""
    value = record.get(key)
    return str(value) if is_integer(value) else text_at(record, key)


def list_at(record: Json, key: str) -> list[Any]:
    """Returns a list; raises as ``text_at``."""
    value = _at(record, key)
    return value if isinstance(value, list) else _wrong(key, "a list", value)


def object_at(record: Json, key: str) -> Json:
    """Returns an object; raises as ``text_at``."""
    value = _at(record, key)
    return value if isinstance(value, dict) else _wrong(key, "an object", value)


def objects_at(record: Json, key: str) -> list[Json]:
    """Returns a list of objects; raises as ``text_at``."""
    for value in (values := list_at(record, key)):
        if not isinstance(value, dict):
            _wrong(key, "a list of objects", value)
    return values


def optional_objects(record: Json, key: str) -> list[Json]:
    """Returns a list of objects, empty if the key is absent; raises RecordError: ``wrong_type``."""
    return objects_at(record, key) if key in record else []


def optional_text(record: Json, key: str) -> str | None:
    """Returns a string, or None if the key is absent; raises RecordError: ``wrong_type``."""
    return text_at(record, key) if key in record else None


def optional_object(record: Json, key: str) -> Json | None:
    """Returns an object, or None if the key is absent; raises RecordError: ``wrong_type``."""
    value = record.get(key)
    if key not in record or isinstance(value, dict):
        return value
    return _wrong(key, "an object", value)


def is_integer(value: object) -> TypeGuard[int]:
    """Returns whether a JSON value is an integer (``true`` is not)."""
    return isinstance(value, int) and not isinstance(value, bool)


def only_known(record: Json, known: frozenset[str]) -> None:
    """Raises RecordError, ``unknown_field``, for an unknown key, such as a misspelt one."""
    for key in record:
        if key not in known:
            raise RecordError("unknown_field", f"unknown key {key!r}; known keys are {', '.join(sorted(known))}")


def _at(record: Json, key: str) -> Any:
    if key not in record:
        raise RecordError("missing_field", f"{key!r} is missing; found {', '.join(map(repr, record)) or 'no keys'}")
    return record[key]


def _wrong(key: str, expected: str, value: object) -> NoReturn:
    raise RecordError("wrong_type", f"{key!r}: expected {expected}, found {repr(value)[:80]}")


class RawRecord(NamedTuple):
    """One record as read from its file."""

    file: str  # base name of the file
    line: int  # 1-based, or number of the element in an array
    offset: int  # byte of the decompressed file at which it starts; -1 for bzip2
    data: bytes  # truncated if longer than MAX_RECORD_BYTES, but then still longer than this limit

    def text(self) -> str:
        """Returns the record as text; raises RecordError: ``bad_encoding`` (not UTF-8), ``record_too_long``."""
        if len(self.data) > MAX_RECORD_BYTES:
            raise RecordError("record_too_long", f"more than {MAX_RECORD_BYTES} bytes")
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise RecordError("bad_encoding", f"not UTF-8: {error}") from error

    def parse(self) -> Json:
        """Returns the JSON object; raises as ``text`` and ``parse_object``."""
        return parse_object(self.text())

    def parse_reference(self, what: str) -> Json:
        """Returns the JSON object of a reference. The parser is fast, because there are many references. ``what`` names
        the object in messages.

        Raises:
            RecordError: ``malformed_json``, ``wrong_type``.
        """
        try:
            value = orjson.loads(self.data)
        except orjson.JSONDecodeError as error:
            raise RecordError("malformed_json", str(error)) from error
        if not isinstance(value, dict):
            raise RecordError("wrong_type", f"{what} must be an object")
        return value

    def bad(self, error: RecordError, *, key: str = "", stage: str = "source") -> BadRecord:
        """Returns the row that reports an error of this record; its detail contains the position."""
        detail = f"line {self.line}: {error.detail}"[:_DETAIL_CHARS]
        return BadRecord(stage, key or f"line {self.line}", error.reason, detail, self.file, self.offset)

    @contextmanager
    def rejecting(self, reject: Callable[[BadRecord], object], *, stage: str = "source") -> Iterator[None]:
        """Reports an error of this record instead of raising it."""
        try:
            yield
        except RecordError as error:
            reject(self.bad(error, stage=stage))


@contextmanager
def open_decompressed(path: str, *, member: str | None = None) -> Iterator[tuple[BinaryIO, bool]]:
    """Opens a file for reading, decompressed; also returns whether offsets count the uncompressed bytes.

    ``member`` is the end of the path of the file to be read from a tar archive; None if archives are not accepted.

    Raises:
        SetupError: the file does not exist, is empty, has an unsupported format, is an archive, is not in UTF-8, or is
            truncated.
    """
    if not Folder.of(path).exists():
        raise SetupError(f"{path}: no such file.")
    try:
        with Folder.of(path).open() as stored:
            head = stored.read(_HEAD_BYTES)
            compression = compression_of(head, path)
            stored.seek(0)
            file = cast(BinaryIO, CODECS[compression].opened(stored))
            head = file.read(_HEAD_BYTES)
            if head[257:262] == b"ustar":
                file.seek(0)
                with _opened_member(file, path, member) as inside:
                    yield inside, compression != "bzip2"
                return
            if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                raise SetupError(f"{path} is in UTF-16. Convert it to UTF-8 (iconv -f UTF-16 -t UTF-8).")
            file.seek(0)
            if head.startswith(codecs.BOM_UTF8):
                file.read(len(codecs.BOM_UTF8))
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


def iter_lines(path: str, *, keep_blank: bool = False) -> Iterator[RawRecord]:
    """Reads the lines of a file without line ends; empty lines only on request. Raises as ``open_decompressed``."""
    name = base_name(path)
    with open_decompressed(path) as (file, counts_plainly):
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


def iter_array(path: str, *, key: str | None = None, member: str | None = None) -> Iterator[RawRecord]:
    """Reads the elements of a file that is one JSON array of objects, in constant memory.

    Elements that are not valid JSON are yielded too. If brackets or quotes do not balance, the element ends at the next
    position where another object can follow. With ``key``, the file is one object that contains the array under this
    key, preceded only by scalars; ``member`` as for ``open_decompressed``.

    Raises:
        SetupError: as ``open_decompressed``; the file is not an array.
    """
    name = base_name(path)
    with open_decompressed(path, member=member) as (file, counts_plainly):
        buffer = bytearray()
        position = file.tell()  # offset of the buffer's first byte
        if key is not None:
            buffer += file.read(_READ_BYTES)
            n_before = array_start(buffer, key)
            if not n_before:
                raise SetupError(
                    f"{path} is not a JSON object with an array {key!r}: it begins with {bytes(buffer[:60])!r}."
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
                    raise SetupError(
                        f"{path}: the array has no closing ']', so the file is truncated. Download it again."
                    )
            elif not has_begun:
                if buffer[:1] != b"[":
                    raise SetupError(f"{path} is not a JSON array: it begins with {bytes(buffer[:60])!r}.")
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
    """Returns the start of the array under a key in a file that is one object; 0 for any other file."""
    found = re.match(_BEFORE_ARRAY % re.escape(key.encode()), head)
    return found.end() if found else 0


def _length(pattern: re.Pattern[bytes], buffer: bytearray) -> int:
    found = pattern.match(buffer)
    return found.end() if found else 0


def _element_end(buffer: bytearray, file: BinaryIO) -> int:
    """Returns the position in the buffer where its first element ends. Reads as much of the file as needed."""
    if buffer[0] not in b"{[":
        return _find(_AFTER_SCALAR, buffer, file)
    end = _balanced_end(buffer, file)
    # A stray quote can make several objects look like one.
    cut = _NEXT_OBJECT.search(buffer, 0, end)
    return cut.start() + 1 if cut and not _is_json(bytes(buffer[:end])) else end


def _balanced_end(buffer: bytearray, file: BinaryIO) -> int:
    """Returns the position after the bracket that closes the first one, or the end of the readable data if none
    does."""
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
    """Returns the start of a pattern, or the end of the readable data if it does not occur."""
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


def iter_records(path: str, *, key: str | None = None) -> Iterator[RawRecord]:
    """Reads the records of a file that is a JSON array, an object with an array under a key, or JSON lines.

    Raises as ``open_decompressed``.
    """
    with open_decompressed(path) as (file, _):
        head = file.read(_PEEKED_BYTES).lstrip()
    if key is not None and array_start(head, key):
        return iter_array(path, key=key)
    is_array = head.startswith(b"[")
    return iter_array(path) if is_array else iter_lines(path)


def readable_records(path: str) -> Iterator[Json]:
    """Reads the records of a file that are JSON objects; others are skipped. Raises as ``open_decompressed``."""
    for raw in iter_records(path):
        with suppress(RecordError):
            yield raw.parse()


def check_shape(path: str, raws: Iterable[RawRecord], fits: Callable[[Json], bool], *, expected: str) -> None:
    """Raises SetupError if none of the first records of a file has the expected form."""
    first = b""
    for raw in islice(raws, _N_PEEKED):
        first = first or raw.data
        try:
            if fits(raw.parse()):
                return
        except RecordError:
            continue
    shown = "".join(char if char.isprintable() else "\ufffd" for char in first[:160].decode("utf-8", "replace"))
    raise SetupError(f"{path} is not what was expected: {expected}. Its first record is: {shown}")


def check_lines(path: str, fits: Callable[[Json], bool], *, expected: str) -> None:
    """Checks the first lines of a file, as ``check_shape``."""
    check_shape(path, iter_lines(path), fits, expected=expected)
