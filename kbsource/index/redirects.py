"""Reads the targets of redirect pages from wikitext, and makes the rows of the table ``redirects``."""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of
from kbsource.index.mapped_files import read_index_file
from kbsource.index.title_index import ARTICLE, STATUSES, TITLES_FILE, TITLES_SCHEMA
from kbsource.languages import language
from kbsource.numerals import unescape
from kbsource.records import RedirectRow
from kbsource.runtime.database import ORDER_MB, connected, ordered_batches, streamed
from kbsource.titles import clean_title

_LINK = re.compile(r"\s*:?\s*\[\[([^\[\]|]*)(?:\|.*?)?\]\]", re.DOTALL)
_INVALID = re.compile(r"[\[\]{}|<>\n\t\x00-\x1f\x7f]")

_ROWS_AT_ONCE = 1 << 12
_ARTICLES = pa.schema([("row", pa.int32()), ("final_title", pa.string()), ("final_page_id", pa.int64())])
_REDIRECTS = pa.schema(
    [
        TITLES_SCHEMA.field(name)
        for name in ("page_id", "title", "target_title", "fragment", "final_row", "hops", "status")
    ]
)
_CODED = schema_of(RedirectRow)
_CODED = _CODED.set(_CODED.get_field_index("status"), _REDIRECTS.field("status"))
# Two statements, the first to join and the second to sort: one statement would need the memory of both at once, even
# if it spilled to disk.
_RESOLVED = """
create table resolved as select case when page_id >= 0 then page_id end as page_id, title,
    coalesce(target_title, '') as target_title, fragment, final_title, final_page_id, hops, status
from redirects left join articles on row = final_row
"""
# Titles are compared by their UTF-8, whose order is that of the code points.
_BY_TITLE = "select * from resolved order by title, page_id"


@cache
def _opening(lang: str) -> re.Pattern[str]:
    words = sorted(language(lang).redirect_words, key=len, reverse=True)
    # The lower case of the Turkic capital I with dot contains a combining dot, which people do not write.
    written = [re.escape(word).replace("i\u0307", "(?:i\u0307?|\u0130)") for word in words]
    return re.compile("|".join(written), re.IGNORECASE)


def parse_redirect(text: str, lang: str) -> tuple[str, str | None] | None:
    """Returns target and section of a redirect's wikitext; None if the text is not a redirect.

    In the target, entities and percent escapes are decoded; letter case and prefix stay. ``titles.normalise_title``
    converts it to normal form. The section is None if it is absent or empty.

    Source: WikitextContentHandler::extractRedirectTargetAndText of MediaWiki. The text begins with the magic word,
    which a colon may follow, and then the link.
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


def redirect_batches(folder: str, *, scratch: str) -> Iterator[pa.RecordBatch]:
    """Yields the redirects of a title index as batches of ``RedirectRow``, sorted by title in code-point order,
    then by page id.

    Args:
        scratch: local folder for temporary files, which take about twice the size of the table and are removed at the
            end.
    """
    path = os.path.join(folder, TITLES_FILE)
    with connected(scratch=scratch, memory_mb=ORDER_MB, threads=1) as db:
        with streamed(db, articles=(_articles(path), _ARTICLES), redirects=(_redirects(path), _REDIRECTS)):
            db.execute(_RESOLVED)
        for batch in ordered_batches(db, _BY_TITLE, _CODED, n_rows=_ROWS_AT_ONCE):
            *columns, codes = batch.columns
            yield pa.RecordBatch.from_arrays([*columns, pa.array(STATUSES).take(codes)], schema=schema_of(RedirectRow))


def _articles(path: str) -> Iterator[pa.RecordBatch]:
    start = 0
    for batch in read_index_file(path):
        rows = pa.array(np.arange(start, start + batch.num_rows, dtype=np.int32))
        start += batch.num_rows
        articles = pa.RecordBatch.from_arrays([rows, batch["title"], batch["page_id"]], schema=_ARTICLES)
        yield articles.filter(pc.equal(batch["status"], ARTICLE))


def _redirects(path: str) -> Iterator[pa.RecordBatch]:
    for batch in read_index_file(path):
        yield batch.filter(pc.not_equal(batch["status"], ARTICLE)).select(_REDIRECTS.names)
