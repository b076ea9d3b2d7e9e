"""The XML form of WNED: annotations of documents whose texts are files of a folder beside it.

Source: the distribution of WNED by Guo and Barbosa (https://doi.org/10.3233/SW-170273); ``offset`` and ``length``
count code points of the text as stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from kbsource.errors import RecordError
from kbsource.files import Storage, base_name, join
from mapping.sources.reading.files_in import MAX_RECORD_BYTES, RawRecord, opened

if TYPE_CHECKING:
    from lxml import etree

NO_ENTITY = frozenset({"", "NIL"})

_READ_BYTES = 1 << 16
_BEGIN = re.compile(rb"<document[\s>]")
_END = b"</document>"


class Annotation(NamedTuple):
    """One annotated mention as written; ``title`` None where it has no page."""

    mention: str
    title: str | None
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class XmlDocument:
    """An annotated document: its name, and every annotation or the reason why it cannot be used."""

    name: str
    annotations: tuple[Annotation | RecordError, ...]


def iter_xml_documents(storage: Storage, path: str) -> Iterator[RawRecord]:
    """Gives the ``<document>`` elements of a file one at a time; what stands between them is passed over."""
    name = base_name(path)
    with opened(storage, path) as (file, counts_plainly):
        buffer = b""
        line, position = 1, file.tell()
        while True:
            start = _search(buffer)
            if start is None:
                keep = max(0, len(buffer) - len(b"<document>"))
                line += buffer.count(b"\n", 0, keep)
                position += keep
                more = file.read(_READ_BYTES)
                if not more:
                    return
                buffer = buffer[keep:] + more
                continue
            line += buffer.count(b"\n", 0, start)
            position += start
            buffer = _read_document(buffer[start:], file)
            found = buffer.find(_END)
            end = found + len(_END) if found >= 0 else len(buffer)
            # A document that is not closed ends where the next begins.
            following = _BEGIN.search(buffer, 1, end)
            end = following.start() if following else end
            yield RawRecord(name, line, position if counts_plainly else -1, buffer[:end])
            line += buffer.count(b"\n", 0, end)
            position += end
            buffer = buffer[end:]


def _search(buffer: bytes) -> int | None:
    found = _BEGIN.search(buffer)
    return found.start() if found else None


def _read_document(buffer: bytes, file: BinaryIO) -> bytes:
    """Gives the buffer with what follows in the file, up to the end of its document."""
    parts = [buffer]
    n_bytes = len(buffer)
    while _END not in parts[-1] and n_bytes <= MAX_RECORD_BYTES:
        more = file.read(_READ_BYTES)
        if not more:
            break
        # The end tag may lie across two parts.
        parts[-1:] = [parts[-1][: -len(_END)], parts[-1][-len(_END) :] + more]
        n_bytes += len(more)
    return b"".join(parts)


def parse_document(raw: RawRecord) -> XmlDocument:
    """Gives a document's annotations.

    Raises:
        RecordError: ``malformed_xml``, ``missing_field`` (no ``docName``), and as ``RawRecord.text``.
    """
    raw.text()
    from lxml import etree  # the options of datasets are read without it

    parser = etree.XMLParser(encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True)
    try:
        root = etree.fromstring(raw.data, parser)
    except etree.XMLSyntaxError as error:
        raise RecordError("malformed_xml", str(error)) from error
    name = root.get("docName")
    if not name:
        raise RecordError("missing_field", "'docName' of the document")
    return XmlDocument(name, tuple(_annotation(element) for element in root.iterfind("annotation")))


def _annotation(element: etree._Element) -> Annotation | RecordError:
    mention, title, offset, length = (element.findtext(tag) for tag in ("mention", "wikiName", "offset", "length"))
    if mention is None or title is None or offset is None or length is None:
        return RecordError("missing_field", "an annotation has mention, wikiName, offset and length")
    if not (_is_number(offset) and _is_number(length)):
        return RecordError("wrong_type", f"offset {offset!r} and length {length!r} are numbers")
    title = title.strip()
    return Annotation(mention, None if title in NO_ENTITY else title, int(offset), int(length))


def _is_number(text: str) -> bool:
    return text.strip().isascii() and text.strip().isdecimal() and len(text) < 19


def read_raw_text(storage: Storage, folder: str, name: str) -> str:
    """Gives the text of a document.

    Raises:
        RecordError: ``missing_raw_text``, ``bad_encoding``.
    """
    path = join(folder, name)
    if base_name(name) != name or name in (".", "..") or "\\" in name or not storage.exists(path):
        raise RecordError("missing_raw_text", f"no file {name!r} in the folder of texts")
    with storage.open_read(path) as file:
        data = file.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RecordError("bad_encoding", f"the text of {name!r} is not UTF-8: {error}") from error
