"""Redirect pages: where their text leads, and the released table of them."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterable, Iterator
from functools import cache

import pyarrow as pa

from kbsource.index.mapped_files import read_index_file
from kbsource.index.title_index import ARTICLE, STATUSES, TITLES_FILE, TITLES_SCHEMA
from kbsource.languages import language
from kbsource.numerals import unescape
from kbsource.records import RedirectRow
from kbsource.runtime.database import connected, insert
from kbsource.titles import clean_title

_LINK = re.compile(r"\s*:?\s*\[\[([^\[\]|]*)(?:\|.*?)?\]\]", re.DOTALL)
_INVALID = re.compile(r"[\[\]{}|<>\n\t\x00-\x1f\x7f]")

_ROWS_AT_ONCE = 1 << 12
_MEMORY_MB = 500
_TITLES = TITLES_SCHEMA.append(pa.field("row", pa.int64()))
_REDIRECTS = f"""
select own.page_id, own.title, coalesce(own.target_title, ''), own.fragment, final.title, final.page_id, own.hops,
    {[*STATUSES]}[own.status + 1]
from titles own left join titles final on final.row = own.final_row
where own.status <> {ARTICLE} order by own.title, own.page_id
"""


@cache
def _opening(lang: str) -> re.Pattern[str]:
    words = sorted(language(lang).redirect_words, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, words)), re.IGNORECASE)


def parse_redirect(text: str, lang: str) -> tuple[str, str | None] | None:
    """Target and section of a redirect's wikitext, None when the text is no redirect.

    The target is decoded (entities, percent escapes) and cleaned, but keeps its letter case and prefix: it
    is for ``titles.normalise_title``. The section is None when absent or empty.

    Source: WikitextContentHandler::extractRedirectTargetAndText of MediaWiki: the magic word opens the
        text, a colon may follow, then the first link at once.
    """
    start = len(text) - len(text.lstrip())
    word = _opening(lang).match(text, start)
    if word is None:
        return None
    link = _LINK.match(text, word.end())
    if link is None:
        return None
    target = link[1]
    if "%" in target:
        target = urllib.parse.unquote(target)
    target = unescape(target)
    title, _, fragment = target.partition("#")
    title = clean_title(clean_title(title).lstrip(":"))
    if not title or _INVALID.search(title):
        return None
    return title, clean_title(fragment) or None


def redirect_rows(folder: str, *, scratch: str) -> Iterator[RedirectRow]:
    """Every redirect of a title index, by title in code-point order, then by page id.

    Args:
        scratch: local folder for scratch files, about twice the size of the table; they are removed at the end.
    """
    with connected(memory_mb=_MEMORY_MB, scratch=scratch) as db:
        insert(db, "titles", _numbered(read_index_file(os.path.join(folder, TITLES_FILE))), _TITLES)
        for batch in db.sql(_REDIRECTS).to_arrow_reader(_ROWS_AT_ONCE):
            yield from map(RedirectRow, *(column.to_pylist() for column in batch.columns))


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Titles with the numbers of their rows."""
    start = 0
    for batch in batches:
        yield batch.append_column(_TITLES.field("row"), pa.array(range(start, start + len(batch)), pa.int64()))
        start += len(batch)
