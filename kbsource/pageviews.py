"""How often pages were viewed, from the files that Wikimedia publishes.

Two forms, told apart by the number of fields of a line:

*pageview_complete* (since 2011-12 in retrospect): ``wiki title page_id access total hourly``, as
``en.wikipedia Abraham_Lincoln 307 desktop 8 F8``; the page id may be ``null``, or missing as a field.

*pagecounts*: ``project title count``, with a further field (bytes, or views by the hour) in some editions; Wikipedia's
projects are ``en`` and ``en.m`` in the hourly files, ``en.z`` in the merged ones.

Source: https://dumps.wikimedia.org/other/pageview_complete/readme.html,
https://dumps.wikimedia.org/other/pagecounts-ez/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from kbsource.dump.bzip2 import Damage
from kbsource.dump.streams import compression_of, iter_pieces, read_up_to
from kbsource.errors import SetupError
from kbsource.files import Storage, base_name
from kbsource.records import BadRecord

ACCESS = frozenset({b"desktop", b"mobile-web", b"mobile-app"})
_MAX_LINE_BYTES = 1 << 20
_NO_ID = b"null"
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
    ['en', 'en.m', 'en.m.z', 'en.wikipedia', 'en.z']
    """
    return frozenset({f"{edition}.wikipedia", edition, f"{edition}.m", f"{edition}.z", f"{edition}.m.z"})


def read_pageviews(path: str, storage: Storage, projects: frozenset[str]) -> Iterator[PageViews | BadRecord]:
    """Yields the views of the pages of some projects, in the order of the file.

    A line that has none of the forms comes as a BadRecord (stage ``read``, reason ``malformed_line``), damage of the
    file as ``damaged_block``, ``damaged_gzip``, ``trailing_garbage`` or ``truncated``; offsets are those of
    ``records.BadRecord``. Memory stays flat.

    Args:
        path: ``.bz2``, ``.gz`` or plain; what it is, its first bytes say.
        storage: where it is.
        projects: from ``projects_of``.

    Raises:
        SetupError: the file is missing or in a form that is not read.
    """
    if not storage.exists(path):
        raise SetupError(f"{path} does not exist.")
    wanted = frozenset(project.encode() for project in projects)
    name = base_name(path)
    for line, offset, damage in _lines(path, storage):
        if damage is not None:
            yield BadRecord("read", "", damage.reason, damage.detail[:1000], name, damage.offset)
            continue
        fields = line.split(b" ")
        if fields[0] not in wanted or line.startswith(b"#"):
            continue
        views = _views(fields)
        if views is None:
            yield BadRecord("read", "", "malformed_line", line[:1000].decode("utf-8", "replace"), name, offset)
        else:
            yield views


def _views(fields: list[bytes]) -> PageViews | None:
    """Gives what a line says, None when it has none of the forms."""
    if len(fields) in (5, 6) and fields[-3] in ACCESS:
        page_id = fields[2] if len(fields) == 6 else _NO_ID
        count = fields[-2]
        if page_id != _NO_ID and not page_id.isdigit():
            return None
        id_ = None if page_id == _NO_ID else int(page_id)
    elif len(fields) in (3, 4):
        count, id_ = fields[2], None
    else:
        return None
    return PageViews(_title(fields[1]), id_, int(count)) if count.isdigit() and fields[1] else None


def _title(written: bytes) -> str:
    text = written.decode("utf-8", "replace")
    return (unquote(text) if _ESCAPE.search(written) else text).replace("_", " ")


def _lines(path: str, storage: Storage) -> Iterator[tuple[bytes, int, Damage | None]]:
    """Yields (line, offset, None), and (nothing, offset, damage) for what cannot be read."""
    with storage.open_read(path) as file:
        rest, start = b"", 0
        for piece in iter_pieces(file, compression=compression_of(read_up_to(file, 8), path)):
            if isinstance(piece, Damage):
                rest = b""
                yield b"", piece.offset, piece
                continue
            if not rest:
                start = piece.offset
            *lines, rest = (rest + piece.data).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r"), start, None
                start = piece.offset if piece.is_block else start + len(line) + 1
            if len(rest) > _MAX_LINE_BYTES:
                yield rest[:1000], start, None
                rest = b""
        if rest:
            yield rest, start, None


class Popularity:
    """Views by article: of every title that leads there, over days, kinds of access and files.

    Memory: 8 bytes for every number up to the highest one.
    """

    def __init__(self, article_of: Callable[[PageViews], int | None]) -> None:
        """Begins with no views.

        Args:
            article_of: gives the number of the article that the views are of, redirects followed: its page id or,
                since those have gaps, its place in an index. None when they are of no article.
        """
        self._article_of = article_of
        self._views = np.zeros(1 << 10, np.int64)
        self.n_views = self.n_elsewhere = 0

    def add(self, rows: Iterable[PageViews]) -> None:
        """Adds views; those that are of no article only count as ``n_elsewhere``."""
        for row in rows:
            number = self._article_of(row)
            if number is None:
                self.n_elsewhere += row.views
                continue
            if number >= len(self._views):
                self._views = np.concatenate([self._views, np.zeros(max(len(self._views), number + 1), np.int64)])
            self._views[number] += row.views
            self.n_views += row.views

    def views(self, number: int) -> int:
        """Gives the views of an article, by the number that ``article_of`` gives it."""
        return int(self._views[number]) if 0 <= number < len(self._views) else 0
