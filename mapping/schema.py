"""Arrow schema of every table that an alignment writes, with the meaning of each column."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import REJECTED

SCHEMA_VERSION = 1


def _field(name: str, type_: pa.DataType, description: str, *, nullable: bool = False) -> pa.Field:
    return pa.field(name, type_, nullable=nullable, metadata={"description": description})


_EVIDENCE = [
    _field("ordinal", pa.int64(), "number of the record among those that could be read, from 0"),
    _field("example_id", pa.string(), "id of the record"),
    _field("output", pa.int32(), "number of the output in the record as read, from 0; -1 for partial evidence"),
    _field("evidence", pa.int32(), "number of the evidence in the output, from 0"),
    _field("file", pa.string(), "base name of the input file"),
    _field("line", pa.int64(), "line of that file, or number of the element in an array"),
    _field("page_kind", pa.string(), "how the dataset names the page: title | url | page_id | qid"),
    _field("page_value", pa.string(), "that name as written"),
    _field("evidence_text", pa.string(), "text that was looked for; null where only the page is", nullable=True),
    _field("outcome", pa.string(), "what became of it"),
    _field("page_id", pa.int64(), "the page; null without one", nullable=True),
    _field("title", pa.string(), "its title", nullable=True),
    _field("found_by", pa.string(), "title | redirect | url | page_id | qid | title_map | fuzzy", nullable=True),
    _field("hops", pa.int32(), "redirects followed"),
]

PLACE = [
    _field("start_paragraph_id", pa.int32(), "paragraph in the numbering of the file that is written", nullable=True),
    _field("start_character", pa.int32(), "first code point in that paragraph", nullable=True),
    _field("end_paragraph_id", pa.int32(), "paragraph where the span ends", nullable=True),
    _field("end_character", pa.int32(), "one past the last code point in that paragraph", nullable=True),
]

SPAN = [
    _field("section", pa.string(), "KILT's name of the section, without newline", nullable=True),
    _field("start_element", pa.int32(), "element of the release where the span begins", nullable=True),
    _field("start_char", pa.int32(), "first code point in that element's text", nullable=True),
    _field("end_element", pa.int32(), "element where it ends", nullable=True),
    _field("end_char", pa.int32(), "one past the last code point in that element's text", nullable=True),
    _field("score", pa.float64(), "BLEU, 0.0 to 1.0", nullable=True),
    _field("match", pa.string(), "exact | normalised | bleu | rescued", nullable=True),
    _field("text", pa.string(), "the text of the span", nullable=True),
]

ALIGNMENTS = pa.schema(
    [
        *_EVIDENCE,
        *SPAN,
        *PLACE,
        _field("is_written", pa.bool_(), "the span stands in the KILT file"),
    ]
)

VERIFICATION = (
    _field("hypothesis", pa.string(), "sentence that a model judged the span by", nullable=True),
    _field("hypothesis_kind", pa.string(), "what it was made from: claim | answer | triple | evidence", nullable=True),
    _field("expects", pa.string(), "what the dataset says of it: entailment | contradiction", nullable=True),
    _field("entailment", pa.float64(), "probability that the text says it; null where not judged", nullable=True),
    _field("neutral", pa.float64(), "that it leaves it open; null where a model does not tell", nullable=True),
    _field("contradiction", pa.float64(), "that it contradicts it; null where a model does not tell", nullable=True),
    _field("refusal", pa.string(), "why it was not judged", nullable=True),
    _field("is_rescued", pa.bool_(), "the span is a sentence that the model chose"),
)
"""Further columns of ``alignments`` where a model verified them."""

MISSES = pa.schema(
    [
        *_EVIDENCE,
        _field(
            "suggestions",
            pa.list_(
                pa.struct(
                    [
                        _field("title", pa.string(), "title that leads to an article"),
                        _field("score", pa.float64(), "likeness, 0 to 100"),
                    ]
                )
            ),
            "similar titles for a missing page, best first; never used unless asked for",
        ),
    ]
)

CROSSWALK = pa.schema(
    [
        _field("example_id", pa.string(), "id of the record"),
        _field("output", pa.int32(), "number of the output in the record as read, from 0; -1 for partial evidence"),
        _field("evidence", pa.int32(), "number of the span in it, from 0"),
        _field("outcome", pa.string(), "what became of it"),
        _field("score", pa.float64(), "BLEU of the new span against the old text", nullable=True),
        *(
            pa.field(f"{side}_{field.name}", field.type, nullable=True, metadata=field.metadata)
            for side in ("old", "new")
            for field in (
                _field("wikipedia_id", pa.string(), f"page id in the {side} knowledge source"),
                _field("title", pa.string(), f"its title in the {side} knowledge source"),
                *PLACE,
            )
        ),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "alignments": ALIGNMENTS,
    "misses": MISSES,
    "crosswalk": CROSSWALK,
    "rejected": REJECTED,
}
"""Every table, by folder name; ``crosswalk`` is only written for KILT files."""
