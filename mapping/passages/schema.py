"""Arrow schema of the corpus of passages, with the meaning of each column."""

from __future__ import annotations

import pyarrow as pa


def _field(name: str, type_: pa.DataType, description: str) -> pa.Field:
    return pa.field(name, type_, nullable=False, metadata={"description": description})


_SPAN = pa.struct(
    [
        _field("element", pa.int32(), "number of the element of the page"),
        _field("start_char", pa.int32(), "first code point in that element's text"),
        _field("end_char", pa.int32(), "one past the last code point in that element's text"),
    ]
)

PASSAGES = pa.schema(
    [
        _field("passage_id", pa.string(), "page id, two underscores, number; unique"),
        _field("page_id", pa.int64(), "page of the knowledge source that it is cut from"),
        _field("title", pa.string(), "title of that page"),
        _field("number", pa.int32(), "place among the passages of its page, from 0"),
        _field("n_words", pa.int32(), "words in it"),
        _field("text", pa.string(), "the pieces that `spans` names, with one blank between two of them"),
        _field("spans", pa.list_(_SPAN), "where it stands in the page, in order; of each element one span at most"),
    ]
)

TABLES: dict[str, pa.Schema] = {"passages": PASSAGES}
"""Every table that a corpus of passages alone has, by folder name."""
