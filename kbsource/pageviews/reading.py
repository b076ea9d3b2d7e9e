"""How often pages were viewed, from the files that Wikimedia publishes.

Two forms, told apart by the number of fields of a line:

*pageview_complete* (since 2011-12 in retrospect): ``wiki title page_id access total hourly``, as
``en.wikipedia Abraham_Lincoln 307 desktop 8 F8``; the page id may be ``null``, or missing as a field.

*pagecounts*: ``project title count``, with a further field (bytes, or views by the hour) in some editions; Wikipedia's
projects are ``en``, ``en.m`` and ``en.zero`` in the hourly files, ``en.z`` in the merged ones.

Source: https://dumps.wikimedia.org/other/pageview_complete/readme.html,
https://dumps.wikimedia.org/other/pagecounts-ez/,
https://wikitech.wikimedia.org/wiki/Analytics/Data_Lake/Traffic/Pageviews.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from kbsource.dump.lines import LineRange, read_lines
from kbsource.files import ReadableStorage, base_name
from kbsource.records import BadRecord

ACCESS = frozenset({b"desktop", b"mobile-web", b"mobile-app"})
_MAX_LINE_BYTES = 1 << 20
_MAX_DIGITS = 15
"""More views than that no file has; sums of so many stay within 64 bits."""
_MAX_PAGE_ID = (1 << 32) - 1
_NO_ID = b"null"
UNKNOWN_TITLE = "-"
"""Title of views whose page is not known; where the page id is, it is the page of that title."""
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")


class PageViews(NamedTuple):
    """Views of a page, of one kind of access, in the time of the file.

    Attributes:
        title: with spaces, percent escapes decoded; as visited, so it may be a redirect's.
        page_id: None where the file does not tell.
    """

    title: str
    page_id: int | None
    views: int


def projects_of(edition: str) -> frozenset[str]:
    """Gives what the files call the Wikipedia of a language edition, its mobile site included.

    >>> sorted(projects_of("en"))
    ['en', 'en.m', 'en.m.z', 'en.wikipedia', 'en.z', 'en.zero']
    """
    return frozenset({edition, *(f"{edition}.{site}" for site in ("wikipedia", "m", "zero", "z", "m.z"))})


def read_range(
    line_range: LineRange,
    storage: ReadableStorage,
    projects: frozenset[str],
    *,
    on_damage: Callable[[int], None] | None = None,
) -> Iterator[PageViews | BadRecord]:
    """Yields the views of the pages of some projects, in the order of the file.

    A line that has none of the forms comes as a BadRecord (stage ``read``, reason ``malformed_line``), others for the
    reasons of ``kbsource.dump.lines.read_lines``, which also has ``on_damage``. Of a line that a damage cuts nothing is
    read. Memory stays flat.
    """
    wanted = frozenset(project.encode() for project in projects)
    name = base_name(line_range.path)
    for line in read_lines(line_range, storage, max_bytes=_MAX_LINE_BYTES, on_damage=on_damage):
        if isinstance(line, BadRecord):
            yield line
            continue
        fields = line.data.removesuffix(b"\r").split(b" ")
        if fields[0] not in wanted:
            continue
        views = _views(fields)
        if views is None:
            detail = line.data[:1000].decode("utf-8", "replace")
            yield BadRecord("read", "", "malformed_line", detail, name, line.offset)
        else:
            yield views


def _views(fields: list[bytes]) -> PageViews | None:
    """Gives what a line says, None when it has none of the forms."""
    if len(fields) in (5, 6) and fields[-3] in ACCESS:
        written_id, count = fields[2] if len(fields) == 6 else _NO_ID, _number(fields[-2])
    elif len(fields) in (3, 4):
        written_id, count = _NO_ID, _number(fields[2])
    else:
        return None
    page_id = None if written_id == _NO_ID else _number(written_id)
    is_id = written_id == _NO_ID or (page_id is not None and page_id <= _MAX_PAGE_ID)
    return PageViews(_title(fields[1]), page_id, count) if is_id and count is not None and fields[1] else None


def _number(written: bytes) -> int | None:
    return int(written) if written.isdigit() and len(written) <= _MAX_DIGITS else None


def _title(written: bytes) -> str:
    text = written.decode("utf-8", "replace")
    return (unquote(text) if _ESCAPE.search(written) else text).replace("_", " ")
