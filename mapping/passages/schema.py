"""Arrow schema of the corpus of passages, with the meaning of each column."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import field

_SPAN = pa.struct(
    [
        field("element", pa.int32(), "number of the element of the page"),
        field("start_char", pa.int32(), "first code point in that element's text"),
        field("end_char", pa.int32(), "one past the last code point in that element's text"),
    ]
)

PASSAGES = pa.schema(
    [
        field("passage_id", pa.string(), "page id, two underscores, number; unique"),
        field("page_id", pa.int64(), "page of the knowledge source that it is cut from"),
        field("title", pa.string(), "title of that page"),
        field("number", pa.int32(), "place among the passages of its page, from 0"),
        field("n_words", pa.int32(), "words in it; with `--unit tokens-N` tokens"),
        field("text", pa.string(), "the pieces that `spans` names, with one blank between two of them"),
        field("spans", pa.list_(_SPAN), "where it stands in the page, in order; of each element one span at most"),
        field("section", pa.list_(pa.string()), "headings that its beginning stands under, outermost first"),
    ]
)

TABLES: dict[str, pa.Schema] = {"passages": PASSAGES}
"""Every table that a corpus of passages alone has, by folder name."""
