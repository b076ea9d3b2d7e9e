"""Small dumps in every published form, sound and damaged, for the tests of reading."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO
from xml.sax.saxutils import escape, quoteattr

import zstandard

from kbsource.dump.compressed.streams import Compression
from kbsource.files import Files, Folder

NAMESPACES = {-2: "Media", -1: "Special", 0: "", 1: "Talk", 2: "User", 4: "Wikipedia", 10: "Template", 14: "Category"}

PACKS: dict[Compression, Callable[[bytes], bytes]] = {
    "none": bytes,
    "bzip2": bz2.compress,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
}
"""Compresses the content of a file, by the name of the compression."""
STREAMED: tuple[Compression, ...] = ("gzip", "zstd", "xz")
"""Compressions that are read from the beginning of a file alone."""

BLOCK_MAGIC = f"{0x314159265359:048b}"
END_MAGIC = f"{0x177245385090:048b}"


def stored(files: Mapping[str, bytes]) -> None:
    """Has these files, and no others, in the working folder, which a test has for itself."""
    assert not Path(".git").exists()
    for path in Path().iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    for name, content in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)


def in_pieces(read_bytes: int | None) -> Files:
    """Gives files of which no read gives more than so many bytes."""

    class Reader(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            most = read_bytes
            return super().read(size if most is None or size is None or 0 <= size < most else most)

    class Pieces(Folder):
        def open(self, name: str = "") -> BinaryIO:
            return Reader(self.read(name))

        def read(self, name: str = "") -> bytes:
            return Path(self.url, name).read_bytes()

    return Pieces


def revision_xml(
    text: str = "",
    *,
    revision_id: int = 1,
    timestamp: str = "2020-01-01T00:00:00Z",
    parent_id: int | None = None,
    attributes: str = ' xml:space="preserve"',
) -> str:
    """Gives a ``<revision>`` as the exporter writes it."""
    parent = "" if parent_id is None else f"      <parentid>{parent_id}</parentid>\n"
    written = escape(text, {'"': "&quot;"})
    body = f"<text{attributes}>{written}</text>" if text else f"<text{attributes} />"
    return (
        f"    <revision>\n      <id>{revision_id}</id>\n{parent}      <timestamp>{timestamp}</timestamp>\n"
        "      <contributor>\n        <username>A &amp; B</username>\n        <id>7</id>\n      </contributor>\n"
        "      <comment>/* x */ &lt;</comment>\n      <model>wikitext</model>\n      <format>text/x-wiki</format>\n"
        f"      {body}\n      <sha1>abc</sha1>\n    </revision>\n"
    )


def page_xml(
    page_id: int, title: str, text: str = "", *, ns: int | None = 0, redirect: str | None = None, revisions: str = ""
) -> bytes:
    """Gives a ``<page>`` as the exporter writes it; with ``revisions`` those instead of one with the text."""
    lines = [f"  <page>\n    <title>{escape(title)}</title>\n"]
    if ns is not None:
        lines.append(f"    <ns>{ns}</ns>\n")
    lines.append(f"    <id>{page_id}</id>\n")
    if redirect is not None:
        lines.append(f"    <redirect title={quoteattr(redirect)} />\n")
    lines.append(revisions or revision_xml(text, revision_id=page_id * 10))
    lines.append("  </page>\n")
    return "".join(lines).encode("utf-8")


def header_xml(*, version: str = "0.11", lang: str = "en", dbname: str = "enwiki") -> bytes:
    """Gives the root's start tag and the siteinfo."""
    names = "".join(
        f'      <namespace key="{key}" case="first-letter">{name}</namespace>\n' for key, name in NAMESPACES.items()
    )
    return (
        f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-{version}/" version="{version}" xml:lang="{lang}">\n'
        f"  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>{dbname}</dbname>\n"
        f"    <base>https://{lang}.wikipedia.org/wiki/Main_Page</base>\n    <generator>MediaWiki 1.46.0</generator>\n"
        f"    <case>first-letter</case>\n    <namespaces>\n{names}    </namespaces>\n  </siteinfo>\n"
    ).encode()


FOOTER = b"</mediawiki>\n"


def dump_xml(pages: Sequence[bytes], *, header: bytes | None = None) -> bytes:
    """Gives a whole dump, uncompressed."""
    return (header_xml() if header is None else header) + b"".join(pages) + FOOTER


def multistream(
    pages: Sequence[tuple[int, str, bytes]], *, per_stream: int = 2, header: bytes | None = None
) -> tuple[bytes, bytes]:
    """Gives a multistream dump and the text of its index, from (page id, title, XML) of its pages."""
    data = bz2.compress(header_xml() if header is None else header)
    index: list[str] = []
    for first in range(0, len(pages), per_stream):
        group = pages[first : first + per_stream]
        index += [f"{len(data)}:{page_id}:{escape(title)}\n" for page_id, title, _ in group]
        data += bz2.compress(b"".join(xml for _, _, xml in group))
    return data + bz2.compress(FOOTER), "".join(index).encode("utf-8")


def _to_bytes(bits: str) -> bytes:
    bits += "0" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _block_bits(data: bytes) -> str:
    """Gives the bits of the one block that the data compresses to."""
    packed = bz2.compress(data)
    bits = f"{int.from_bytes(packed, 'big'):0{8 * len(packed)}b}"
    return bits[32 : bits.rindex(END_MAGIC)]


def one_stream(chunks: Sequence[bytes]) -> bytes:
    """Gives one bzip2 stream with a block for each (small) chunk, so that blocks begin at any bit."""
    bits = f"{int.from_bytes(b'BZh9', 'big'):032b}"
    crc = 0
    for chunk in chunks:
        block = _block_bits(chunk)
        crc = ((crc << 1 | crc >> 31) & 0xFFFFFFFF) ^ int(block[48:80], 2)
        bits += block
    return _to_bytes(bits + END_MAGIC + f"{crc:032b}")


def block_with_chance_magic(*, is_end: bool = False) -> tuple[bytes, bytes]:
    """Gives a bzip2 stream of one sound block in whose Huffman data a magic stands by chance, and its content.

    All 256 symbols have codes of 8 bits, so that the coded data can be any bytes but 0, 1 (runs) and 255 (the end).
    """
    magic = int(END_MAGIC if is_end else BLOCK_MAGIC, 2).to_bytes(6, "big")
    coded = [7, 9, 11, *magic, *range(60, 90)]
    alphabet = list(range(254))
    last_column: list[int] = []
    for code in coded:
        symbol = alphabet.pop(code - 1)
        alphabet.insert(0, symbol)
        last_column.append(symbol)
    # Four equal bytes would begin a coded run: a start without any is taken.
    starts = ((start, _undo_sort(last_column, start)) for start in range(len(last_column)))
    start, content = next(found for found in starts if not re.search(rb"(.)\1{3}", found[1], re.DOTALL))
    crc = _crc(content)
    bits = BLOCK_MAGIC + f"{crc:032b}" + "0" + f"{start:024b}"
    bits += "1" * 16 + "1" * 254 + "00"  # the byte values in use
    bits += f"{2:03b}" + f"{1:015b}" + "0"  # two tables, one group of 50 symbols, coded by the first
    bits += (f"{8:05b}" + "0" * 256) * 2  # all codes have length 8
    bits += "".join(f"{code:08b}" for code in [*coded, 255])
    header = f"{int.from_bytes(b'BZh9', 'big'):032b}"
    return _to_bytes(header + bits + END_MAGIC + f"{crc:032b}"), content


def _undo_sort(last_column: list[int], start: int) -> bytes:
    order = sorted(range(len(last_column)), key=lambda index: (last_column[index], index))
    place = order[start]
    output = bytearray()
    for _ in last_column:
        output.append(last_column[place])
        place = order[place]
    return bytes(output)


def _crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1 ^ (0x04C11DB7 if crc & 0x80000000 else 0)) & 0xFFFFFFFF
    return crc ^ 0xFFFFFFFF


def flip(data: bytes, place: int, *, bits: int = 0xFF) -> bytes:
    """Gives the data with one byte inverted, or some bits of it."""
    return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]
