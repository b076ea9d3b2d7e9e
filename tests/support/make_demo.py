"""Writes the derived files of the mini-wiki from its hand-written XML: ``python -m tests.support.make_demo``.

The XML dump is the source of truth and is edited by hand. ``stamp`` brings the ``bytes`` and ``sha1`` of
every text up to date; ``derived_files`` gives the multistream dump, its index, the page_props table, the
checksum files, and the dump of the mini-Wikidata (``make_wikidata``). The same XML gives the same bytes
wherever bzip2 and zlib are the same.

Pages are cut by line, not by an XML parser, because one page is broken on purpose.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import html
import io
import re
from pathlib import Path
from typing import NamedTuple

from kbsource.errors import SetupError
from tests.support.make_demo_wikidata import WIKIDATA, wikidata_dump

FOLDER = Path(__file__).parents[2] / "kbsource" / "demo"
PREFIX = "miniwiki-20260101-"
XML = f"{PREFIX}pages-articles.xml"
MULTISTREAM = f"{PREFIX}pages-articles-multistream.xml.bz2"
INDEX = f"{PREFIX}pages-articles-multistream-index.txt.bz2"
PAGE_PROPS = f"{PREFIX}page_props.sql.gz"
MD5SUMS = f"{PREFIX}md5sums.txt"
SHA1SUMS = f"{PREFIX}sha1sums.txt"

PAGES_PER_STREAM = 10
ROWS_PER_INSERT = 60

# Tables of one date are never quite of one moment: this page was deleted between page_props and the articles.
VANISHED_PAGE_ID = 990
# An item belongs to one page, yet real tables have some that two pages claim: the first page here claims the
# item of the second beside it.
CLAIMANT_PAGE_ID, OWNER_PAGE_ID = 240, 237

_PAGE = re.compile(rb"^  <page>\n.*?^  </page>\n", re.DOTALL | re.MULTILINE)
_TEXT = re.compile(rb'<text bytes="\d*" sha1="\w*"(?P<tail> xml:space="preserve">(?P<text>.*?)</text>| />)', re.DOTALL)
_REVISION_SHA1 = re.compile(rb"^      <sha1>\w*</sha1>$", re.MULTILINE)
_DISAMBIGUATION = re.compile(r"\{\{(?:disambiguation|hndis)[|}]|__DISAMBIG__", re.IGNORECASE)
_DEFAULT_SORT = re.compile(r"\{\{DEFAULTSORT:([^{}]*)\}\}")
_DISPLAY_TITLE = re.compile(r"\{\{DISPLAYTITLE:([^{}]*)\}\}")
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


class PropRow(NamedTuple):
    """One row of the page_props table, fields in the order of its columns."""

    page_id: int
    name: str
    value: str
    sort_key: int | None


class DemoPage(NamedTuple):
    """One page of the XML: ``xml`` is its bytes, ``text`` its main slot, empty where the text is deleted."""

    page_id: int
    namespace: int
    title: str
    is_redirect: bool
    text: str
    xml: bytes


def base36_sha1(data: bytes) -> str:
    """Gives the sha1 as MediaWiki writes it: base 36, 31 digits, lower case."""
    number = int.from_bytes(hashlib.sha1(data, usedforsecurity=False).digest(), "big")
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = _BASE36[digit] + digits
    return digits.rjust(31, "0")


def split_xml(xml: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Gives the head (root tag and siteinfo), the pages in order and the closing root tag.

    Joined they are ``xml`` again.

    Raises:
        SetupError: the lines that a page starts and ends with are not where they belong.
    """
    matches = list(_PAGE.finditer(xml))
    if not matches:
        raise SetupError(f"{XML} holds no page: start each with a line '  <page>', end it with '  </page>'")
    pages = [match.group() for match in matches]
    head, foot = xml[: matches[0].start()], xml[matches[-1].end() :]
    if head + b"".join(pages) + foot != xml:
        raise SetupError(f"{XML} holds something between two pages: remove it")
    return head, pages, foot


def parse_page(page: bytes) -> DemoPage:
    """Gives the facts of one page that the derived files need."""
    match = _TEXT.search(page)
    return DemoPage(
        page_id=int(_field(page, b"id")),
        namespace=int(_field(page, b"ns")),
        title=html.unescape(_field(page, b"title")),
        is_redirect=match is not None and (match["text"] or b"").lstrip().lower().startswith(b"#redirect"),
        text=html.unescape((match["text"] or b"").decode("utf-8")) if match else "",
        xml=page,
    )


def _field(page: bytes, name: bytes) -> str:
    match = re.search(rb"^    <" + name + rb">(.*)</" + name + rb">$", page, re.MULTILINE)
    if match is None:
        raise SetupError(f"a page of {XML} has no <{name.decode()}> on a line of its own: {page[:120]!r}")
    return match[1].decode("utf-8")


def stamp(xml: bytes) -> bytes:
    """Gives the XML with the ``bytes`` and ``sha1`` of every text, and each ``<sha1>``, up to date.

    The ``<sha1>`` of a revision with several slots covers all of them and stays as it is.
    """
    head, pages, foot = split_xml(xml)
    return b"".join([head, *map(_stamp_page, pages), foot])


def _stamp_page(page: bytes) -> bytes:
    hashes: list[bytes] = []

    def attributes(match: re.Match[bytes]) -> bytes:
        text = html.unescape((match["text"] or b"").decode("utf-8")).encode("utf-8")
        hashes.append(base36_sha1(text).encode("ascii"))
        return b'<text bytes="%d" sha1="%b"%b' % (len(text), hashes[-1], match["tail"])

    page = _TEXT.sub(attributes, page)
    if len(hashes) == 1:
        page = _REVISION_SHA1.sub(b"      <sha1>%b</sha1>" % hashes[0], page)
    return page


def multistream(xml: bytes) -> tuple[bytes, bytes]:
    """Gives the multistream dump and its index, both as compressed bytes.

    One bzip2 stream holds the head, one each ten pages, one the closing tag. Index lines are
    ``offset:page_id:title`` with the title escaped as in the XML.
    """
    head, pages, foot = split_xml(xml)
    dump = bz2.compress(head)
    lines: list[str] = []
    for start in range(0, len(pages), PAGES_PER_STREAM):
        batch = pages[start : start + PAGES_PER_STREAM]
        lines += [f"{len(dump)}:{_field(page, b'id')}:{_field(page, b'title')}\n" for page in batch]
        dump += bz2.compress(b"".join(batch))
    dump += bz2.compress(foot)
    return dump, bz2.compress("".join(lines).encode("utf-8"))


def page_props(pages: list[DemoPage]) -> list[PropRow]:
    """Gives the rows of the page_props table, in order of its primary key (page, property).

    Articles and categories have the item ``Q`` + (9,000,000 + page id), except where 7 divides the page id:
    those are not connected to Wikidata. One page claims the item of another.
    """
    rows: list[PropRow] = []
    for page in pages:
        if page.is_redirect or page.namespace not in (0, 14):
            continue
        if page.page_id % 7:
            owner = OWNER_PAGE_ID if page.page_id == CLAIMANT_PAGE_ID else page.page_id
            rows.append(PropRow(page.page_id, "wikibase_item", f"Q{9_000_000 + owner}", None))
        else:
            number = -page.namespace
            rows.append(PropRow(page.page_id, "unexpectedUnconnectedPage", str(number), number))
        if page.namespace == 0 and _DISAMBIGUATION.search(page.text):
            rows.append(PropRow(page.page_id, "disambiguation", "", None))
        if match := _DEFAULT_SORT.search(page.text):
            rows.append(PropRow(page.page_id, "defaultsort", match[1], None))
        if match := _DISPLAY_TITLE.search(page.text):
            rows.append(PropRow(page.page_id, "displaytitle", re.sub(r"''(.*?)''", r"<i>\1</i>", match[1]), None))
    rows.append(PropRow(VANISHED_PAGE_ID, "wikibase_item", f"Q{9_000_000 + VANISHED_PAGE_ID}", None))
    return sorted(rows, key=lambda row: row[:2])


def page_props_sql(rows: list[PropRow]) -> str:
    """Gives the table as mysqldump writes it."""
    inserts: list[str] = []
    for start in range(0, len(rows), ROWS_PER_INSERT):
        values = ",".join(map(_sql_row, rows[start : start + ROWS_PER_INSERT]))
        inserts.append(f"INSERT INTO `page_props` VALUES {values};\n")
    return _SQL_HEAD + "".join(inserts) + _SQL_FOOT


def _sql_row(row: PropRow) -> str:
    sort_key = "NULL" if row.sort_key is None else str(row.sort_key)
    return f"({row.page_id},{_sql_text(row.name)},{_sql_text(row.value)},{sort_key})"


def _sql_text(value: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ("'", "\\'"), ('"', '\\"'), ("\n", "\\n")):
        value = value.replace(plain, escaped)
    return f"'{value}'"


def gzip_bytes(data: bytes) -> bytes:
    """Gives the data as gzip without a name or a time in its header."""
    sink = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=sink, mtime=0) as file:
        file.write(data)
    return sink.getvalue()


def derived_files(xml: bytes) -> dict[str, bytes]:
    """Gives every derived file by name, for a stamped XML; the mini-Wikidata comes from its own source."""
    dump, index = multistream(xml)
    rows = page_props([parse_page(page) for page in split_xml(xml)[1]])
    files = {XML: xml, MULTISTREAM: dump, INDEX: index, PAGE_PROPS: gzip_bytes(page_props_sql(rows).encode("utf-8"))}
    sums = {MD5SUMS: checksum_lines(files, "md5"), SHA1SUMS: checksum_lines(files, "sha1")}
    del files[XML]
    return {**files, **sums, WIKIDATA: wikidata_dump()}


def checksum_lines(files: dict[str, bytes], algorithm: str) -> bytes:
    """Gives a checksum file as dumps have it: hex digest, two spaces, name; one line a file, by name."""
    lines = [
        f"{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}  {name}\n"
        for name, data in sorted(files.items())
    ]
    return "".join(lines).encode("ascii")


def main() -> None:
    """Stamps the XML and writes every derived file beside it."""
    path = FOLDER / XML
    before = path.read_bytes()
    xml = stamp(before)
    if xml != before:
        path.write_bytes(xml)
    for name, data in derived_files(xml).items():
        (FOLDER / name).write_bytes(data)


_SQL_HEAD = """\
-- MySQL dump 10.19  Distrib 10.5.29-MariaDB, for debian-linux-gnu (x86_64)
--
-- Host: localhost    Database: miniwiki
-- ------------------------------------------------------
-- Server version	10.11.13-MariaDB-log

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;

--
-- Table structure for table `page_props`
--

DROP TABLE IF EXISTS `page_props`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `page_props` (
  `pp_page` int(10) unsigned NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL,
  PRIMARY KEY (`pp_page`,`pp_propname`),
  UNIQUE KEY `pp_propname_page` (`pp_propname`,`pp_page`),
  UNIQUE KEY `pp_propname_sortkey_page` (`pp_propname`,`pp_sortkey`,`pp_page`)
) ENGINE=InnoDB DEFAULT CHARSET=binary;
/*!40101 SET character_set_client = @saved_cs_client */;

--
-- Dumping data for table `page_props`
--

/*!40000 ALTER TABLE `page_props` DISABLE KEYS */;
"""

_SQL_FOOT = """\
/*!40000 ALTER TABLE `page_props` ENABLE KEYS */;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;

-- Dump completed on 2026-01-01  4:04:04
"""


if __name__ == "__main__":
    main()
