"""Redirect pages: reading their targets from wikitext, and the released table of redirects."""

from __future__ import annotations

import os
import re
import urllib.parse
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.columns import schema_of
from kbsource.index.mapped_files import read_index_file
from kbsource.index.title_index import ARTICLE, STATUSES, TITLES_FILE, TITLES_SCHEMA
from kbsource.languages import language
from kbsource.numerals import unescape
from kbsource.records import RedirectRow
from kbsource.runtime.sorted_runs import KeyRange, SortedRuns
from kbsource.titles import clean_title

_LINK = re.compile(r"\s*:?\s*\[\[([^\[\]|]*)(?:\|.*?)?\]\]", re.DOTALL)
_INVALID = re.compile(r"[\[\]{}|<>\n\t\x00-\x1f\x7f]")

_PARTS = 1024
"""Number of parts of the alphabet, with about as many redirects in each."""
_ROWS_AT_ONCE = 1 << 12
_ARRIVING = pa.schema(
    [
        pa.field("final_row", pa.int64()),
        *(TITLES_SCHEMA.field(name) for name in ("page_id", "title", "target_title", "fragment", "hops", "status")),
    ]
)
_PLACED = schema_of(RedirectRow).insert(0, pa.field("part", pa.int32()))


@cache
def _opening(lang: str) -> re.Pattern[str]:
    words = sorted(language(lang).redirect_words, key=len, reverse=True)
    # In lower case, the dotted capital of Turkic languages has a combining dot, which people do not write.
    written = [re.escape(word).replace("i\u0307", "(?:i\u0307?|\u0130)") for word in words]
    return re.compile("|".join(written), re.IGNORECASE)


def parse_redirect(text: str, lang: str) -> tuple[str, str | None] | None:
    """Returns target and section of a redirect's wikitext; None if the text is not a redirect.

    The target is decoded (entities, percent escapes) and cleaned, but keeps its letter case and prefix, ready for
    ``titles.normalise_title``. If the section is absent or empty, None is returned for it.

    Source: WikitextContentHandler::extractRedirectTargetAndText of MediaWiki. The magic word opens the text, a colon
    may follow, then the first link follows immediately.
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
    """Iterates over the redirects of a title index, sorted by title in code-point order, then by page id.

    Args:
        scratch: local folder for scratch files, about twice the size of the table; they are removed at the end.
    """
    path = os.path.join(folder, TITLES_FILE)
    cuts: list[str] | None = None
    with (
        SortedRuns(os.path.join(scratch, "redirects"), _ARRIVING, by="final_row") as arriving,
        SortedRuns(os.path.join(scratch, "redirects-by-title"), _PLACED, by="part") as placed,
    ):

        def place(rows: pa.RecordBatch, final_titles: pa.Array, final_ids: pa.Array) -> None:
            parts = [bisect_right(cuts or [], title) for title in rows["title"].to_pylist()]
            targets, statuses = pc.fill_null(rows["target_title"], ""), pa.array(STATUSES).take(rows["status"])
            columns = [
                pc.if_else(pc.less(rows["page_id"], 0), None, rows["page_id"]),
                rows["title"],
                targets,
                rows["fragment"],
                final_titles,
                final_ids,
            ]
            placed.add(pa.array(parts, pa.int32()), *columns, rows["hops"], statuses)

        for batch in read_index_file(path):
            rows = batch.filter(pc.not_equal(batch["status"], ARTICLE)).select(_ARRIVING.names)
            if cuts is None:
                # Titles are in the order of their hashes, so the titles in a batch are a fair sample for dividing the
                # alphabet.
                sample = sorted(rows["title"].to_pylist())
                cuts = sample[:: len(sample) // _PARTS + 1]
            is_lost = pc.less(rows["final_row"], 0)
            lost = rows.filter(is_lost)
            place(lost, pa.nulls(lost.num_rows, pa.string()), pa.nulls(lost.num_rows, pa.int64()))
            arriving.add(*rows.filter(pc.invert(is_lost)).columns)
        start = 0
        for batch in read_index_file(path):
            rows = arriving.read(KeyRange(start, start + batch.num_rows))
            ends = pc.subtract(rows["final_row"], start)
            place(rows, batch["title"].take(ends), batch["page_id"].take(ends))
            start += batch.num_rows
        for keys in placed.ranges():
            rows = placed.read(keys).sort_by([("title", "ascending"), ("page_id", "ascending")])
            for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
                columns = rows.slice(start, _ROWS_AT_ONCE).columns[1:]
                yield from map(RedirectRow, *(column.to_pylist() for column in columns))
