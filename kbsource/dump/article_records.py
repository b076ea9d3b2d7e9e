"""The article records of Wikimedia Enterprise: rendered HTML and facts of a page, one JSON object per line, in files or
in tar archives of files.

Source: https://enterprise.wikimedia.com/docs/data-dictionary/ and snapshots of 2021 to 2026.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any, Literal

import msgspec

from kbsource.dump.compressed.damage import Damage
from kbsource.dump.compressed.streams import Piece
from kbsource.errors import RecordError

Form = Literal["xml", "lines", "tar"]
"""The format of a dump file's content: MediaWiki's XML, JSON Lines, or a tar archive of JSON Lines files."""
TAR_HEAD_BYTES = 512
MAX_RECORD_BYTES = 128 << 20
"""Maximum length of a line in bytes. A line contains both the HTML and the wikitext of a page."""

_BOM = b"\xef\xbb\xbf"
_FILE_TYPES = frozenset(b"07\x00")  # regular files
_LONGEST_FACTS = 1 << 20  # maximum size of a header with facts about the next file, in bytes
_SIZE = re.compile(rb"\A\d+ size=(\d{1,18})\n")
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)
_SHORT_PAGE = 8_000  # in characters of HTML; the HTML of a redirect page is shorter
_HEAD = 20_000
_PAGE_ID = re.compile(r"<meta property=\"mw:pageId\" content=\"(\d{1,18})\"")
_REVISION = re.compile(r" about=\"[^\"]{0,300}/revision/(\d{1,18})\"")
_REDIRECT = ' rel="mw:PageProp/redirect"'
_ADDRESS = re.compile(r" href=\"\./([^\"]{1,2000})\"")
_NO_BODY = re.compile(r"<head\b.*?</head>|<!--.*?-->|<style\b.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"#\S[^\[\]]{0,100}\[\[[^\[\]]+\]\]\s*\Z")


class _Named(msgspec.Struct, frozen=True):
    name: str = ""


class _Wiki(msgspec.Struct, frozen=True):
    identifier: str = ""
    url: str = ""


class _Numbered(msgspec.Struct, frozen=True):
    identifier: int = 0


class _Body(msgspec.Struct, frozen=True):
    html: str = ""
    wikitext: str = ""


class _Visibility(msgspec.Struct, frozen=True):
    text: bool = True


class _Event(msgspec.Struct, frozen=True):
    type: str = ""


class ArticleRecord(msgspec.Struct, frozen=True):
    """The fields of a record that kbsource reads. A missing field has the zero value of its type, because the Go
    program that writes the records leaves out zero values.
    """

    name: str = ""  #: title with spaces
    identifier: int = 0  #: page id
    date_modified: str = ""
    version: _Numbered = _Numbered()
    namespace: _Numbered = _Numbered()
    in_language: _Wiki = _Wiki()
    is_part_of: _Wiki = _Wiki()
    main_entity: _Wiki = _Wiki()  #: Wikidata item
    previous_version: _Numbered = _Numbered()
    redirects: tuple[_Named, ...] = ()
    article_body: _Body = _Body()
    visibility: _Visibility = _Visibility()
    event: _Event = _Event()

    @property
    def timestamp(self) -> str:
        """The time at which the revision was saved, in the form of ``records.RawPage``.

        Raises:
            RecordError: ``invalid_field`` if the time has another form.
        """
        found = _TIME.fullmatch(self.date_modified)
        if found is None:
            raise RecordError("invalid_field", f"date_modified is {self.date_modified[:100]!r}")
        return f"{found[1]}Z"


_DECODER = msgspec.json.Decoder(ArticleRecord)


def read_article_record(line: bytes) -> ArticleRecord:
    """Returns the record in a line. A value that is null counts as absent.

    Raises:
        RecordError: ``malformed_json`` or ``invalid_field``.
    """
    line = line.removeprefix(_BOM)
    try:
        try:
            return _DECODER.decode(line)
        except msgspec.ValidationError as error:
            if "null" not in str(error):
                raise
            return msgspec.convert(_without_nulls(msgspec.json.decode(line)), ArticleRecord)
    except msgspec.ValidationError as error:
        raise RecordError("invalid_field", str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError("malformed_json", str(error)) from error


def _without_nulls(record: Any) -> Any:
    """Returns a record without null values, also in the objects that it contains."""
    if not isinstance(record, dict):
        return record
    return {
        name: {key: own for key, own in value.items() if own is not None} if isinstance(value, dict) else value
        for name, value in record.items()
        if value is not None
    }


def check_article_record(record: ArticleRecord) -> None:
    """Checks that a record is a complete page whose ids agree.

    Raises:
        RecordError: ``missing_field``, ``text_deleted``, ``html_empty`` or ``ids_disagree``.
    """
    for field, value in (("name", record.name), ("identifier", record.identifier), ("version", record.version)):
        if not value or value == _Numbered() or (isinstance(value, int) and value < 0):
            raise RecordError("missing_field", field)
    if record.event.type == "delete" or not record.visibility.text:
        raise RecordError("text_deleted", "the page, or the text of its revision, was deleted")
    html = record.article_body.html
    if not html.strip():
        raise RecordError("html_empty", "the record has no HTML")
    head = html[:_HEAD]
    root = head[head.find("<html") :].partition(">")[0] if "<html" in head else ""
    for found, own, what in (
        (_PAGE_ID.search(head), record.identifier, "page"),
        (_REVISION.search(root), record.version.identifier, "revision"),
    ):
        if found is not None and int(found[1]) != own:
            raise RecordError("ids_disagree", f"the record belongs to {what} {own}, but its HTML to {what} {found[1]}")


def redirect_of(record: ArticleRecord) -> tuple[str | None, str | None]:
    """Returns the target of a redirect page and None; or None and its text as written, such as ``#REDIRECT [[Ada]]``,
    if only the text names the target. Both are None if the page is not a redirect.

    The HTML of a redirect page is an element that names the target. If MediaWiki did not recognise the wiki's word for
    a redirect, the HTML contains the text as written. Some pages have no HTML, so that only the wikitext shows that
    they are redirects.

    Raises:
        RecordError: ``html_empty`` if the page shows nothing and is not a redirect.
    """
    html = record.article_body.html
    if len(html) > _SHORT_PAGE:
        return None, None
    at = html.find(_REDIRECT)
    element = html[html.rfind("<", 0, at) : html.find(">", at)] if at >= 0 else ""
    if element.startswith("<link") and (found := _ADDRESS.search(element)):
        return urllib.parse.unquote(unescape(found[1]), errors="replace").replace("_", " "), None
    shown = " ".join(unescape(_TAG.sub(" ", _NO_BODY.sub(" ", html))).split())
    if _WORD.match(shown):
        return None, shown
    if not shown and "<img" not in html and "<link" not in html.partition("<body")[2]:
        written = record.article_body.wikitext.strip()
        if written.startswith("#"):
            return None, written[:_SHORT_PAGE]
        raise RecordError("html_empty", "the page has no visible content")
    return None, None


def content_form(head: bytes) -> Form:
    """Returns the format of a file's content, from its first decompressed bytes.

    >>> content_form(b'{"name": "Ada"}'), content_form(b"<mediawiki>")
    ('lines', 'xml')
    """
    if head[257:262] == b"ustar":
        return "tar"
    return "lines" if head.removeprefix(_BOM).lstrip()[:1] == b"{" else "xml"


def unpacked(items: Iterable[Piece | Damage]) -> Iterator[Piece | Damage]:
    """Yields the contents of the files in a tar archive, with a newline after each file. ``items`` contains the
    segments of the archive in order.

    The size of a file of more than 8 GiB is in a separate header before it. Members that are not files are skipped.
    Damage to the archive is yielded too, and ends the iteration.

    Source: POSIX.1-2017, pax, "ustar Interchange Format" and "pax Extended Header".
    """
    waiting = b""  # bytes of an unfinished header
    left = padding = 0  # bytes of the current member, and of its padding, that were not read yet
    is_file = False
    facts: bytes | None = None  # the part read so far of a header with facts about the next file
    size: int | None = None  # size of the next file, from this header
    for item in items:
        if isinstance(item, Damage):
            yield item
            return
        data, at = item.data, 0
        while at < len(data):
            if left:
                part = data[at : at + left]
                if is_file:
                    yield Piece(item.offset + at, part, item.is_block, item.position)
                elif facts is not None:
                    facts += part[: _LONGEST_FACTS - len(facts)]
                left -= len(part)
                at += len(part)
                if not left:
                    if is_file:
                        yield Piece(item.offset + at - 1, b"\n", item.is_block, item.position)
                    elif facts is not None:
                        size, facts = _stated_size(facts), None
                continue
            if padding:
                skipped = min(padding, len(data) - at)
                padding -= skipped
                at += skipped
                continue
            needed = TAR_HEAD_BYTES - len(waiting)
            waiting += data[at : at + needed]
            at += needed
            if len(waiting) < TAR_HEAD_BYTES:
                break
            header, waiting = waiting, b""
            if not header.strip(b"\0"):
                continue
            left = _member_size(header)
            kind = header[156]
            is_file = kind in _FILE_TYPES
            if is_file and size is not None:
                left, size = size, None
            facts = b"" if kind == ord("x") else None
            padding = -left % TAR_HEAD_BYTES
            if header[257:262] != b"ustar" or left < 0:
                yield Damage(item.offset, item.offset, "malformed_tar", "a member of the archive has no valid header")
                return
    if waiting or left:
        yield Damage(0, 0, "malformed_tar", "the archive ends in the middle of a member")


def _member_size(header: bytes) -> int:
    field = header[124:136]
    if field[0] & 0x80:  # GNU tar writes large numbers in binary
        return int.from_bytes(field[4:], "big")
    digits = field.strip(b" \0")
    return int(digits, 8) if digits and all(48 <= digit < 56 for digit in digits) else 0 if not digits else -1


def _stated_size(facts: bytes) -> int | None:
    while facts:
        length, blank, _ = facts.partition(b" ")
        if not blank or not length.isdigit() or not 0 < int(length[:9]) <= len(facts):
            return None
        if (found := _SIZE.match(facts[: int(length[:9])])) is not None:
            return int(found[1])
        facts = facts[int(length[:9]) :]
    return None
