"""Arrow schema of every table that an alignment writes, with the meaning of each column."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import REJECTED, field

SCHEMA_VERSION = 1


_EVIDENCE = [
    field("ordinal", pa.int64(), "number of the record among those that could be read, from 0"),
    field("example_id", pa.string(), "id of the record"),
    field("output", pa.int32(), "number of the output in the record as read, from 0; -1 for partial evidence"),
    field("evidence", pa.int32(), "number of the evidence in the output, from 0"),
    field("file", pa.string(), "base name of the input file"),
    field("line", pa.int64(), "line of that file, or number of the element in an array"),
    field("page_kind", pa.string(), "how the dataset names the page: title | url | page_id | qid"),
    field("page_value", pa.string(), "that name as written"),
    field("evidence_text", pa.string(), "text that was looked for; null where only the page is", nullable=True),
    field("outcome", pa.string(), "what became of it"),
    field("page_id", pa.int64(), "the page; null without one", nullable=True),
    field("title", pa.string(), "its title", nullable=True),
    field("found_by", pa.string(), "title | redirect | url | page_id | qid | title_map | fuzzy", nullable=True),
    field("hops", pa.int32(), "redirects followed"),
]

PLACE = [
    field("start_paragraph_id", pa.int32(), "paragraph in the numbering of the file that is written", nullable=True),
    field("start_character", pa.int32(), "first code point in that paragraph", nullable=True),
    field("end_paragraph_id", pa.int32(), "paragraph where the span ends", nullable=True),
    field("end_character", pa.int32(), "one past the last code point in that paragraph", nullable=True),
]

SPAN = [
    field("section", pa.string(), "KILT's name of the section, without newline", nullable=True),
    field("start_element", pa.int32(), "element of the release where the span begins", nullable=True),
    field("start_char", pa.int32(), "first code point in that element's text", nullable=True),
    field("end_element", pa.int32(), "element where it ends", nullable=True),
    field("end_char", pa.int32(), "one past the last code point in that element's text", nullable=True),
    field("score", pa.float64(), "BLEU, 0.0 to 1.0", nullable=True),
    field("match", pa.string(), "exact | normalised | bleu | rescued", nullable=True),
    field("text", pa.string(), "the text of the span", nullable=True),
]

ALIGNMENTS = pa.schema(
    [
        *_EVIDENCE,
        *SPAN,
        *PLACE,
        field("is_written", pa.bool_(), "the span stands in the KILT file"),
    ]
)

VERIFICATION = (
    field("hypothesis", pa.string(), "sentence that a model judged the span by", nullable=True),
    field("hypothesis_kind", pa.string(), "what it was made from: claim | answer | triple | evidence", nullable=True),
    field("expects", pa.string(), "what the dataset says of it: entailment | contradiction", nullable=True),
    field("entailment", pa.float64(), "probability that the text says it; null where not judged", nullable=True),
    field("neutral", pa.float64(), "that it leaves it open; null where a model does not tell", nullable=True),
    field("contradiction", pa.float64(), "that it contradicts it; null where a model does not tell", nullable=True),
    field("refusal", pa.string(), "why it was not judged", nullable=True),
    field("is_rescued", pa.bool_(), "the span is a sentence that the model chose"),
)
"""Further columns of ``alignments`` where a model verified them."""

MISSES = pa.schema(
    [
        *_EVIDENCE,
        field(
            "suggestions",
            pa.list_(
                pa.struct(
                    [
                        field("title", pa.string(), "title that leads to an article"),
                        field("score", pa.float64(), "likeness, 0 to 100"),
                    ]
                )
            ),
            "similar titles for a missing page, best first; never used unless asked for",
        ),
    ]
)

RECORDS = pa.schema(
    [
        field("ordinal", pa.int64(), "its number in alignments and misses; null where it is no example", nullable=True),
        field("example_id", pa.string(), "its id; of a merged record that of the whole; null for none", nullable=True),
        field("file", pa.string(), "base name of the input file"),
        field("line", pa.int64(), "line of that file, or number of the element in an array"),
        field("outcome", pa.string(), "written | dropped | excluded | rejected | merged"),
        field("reason", pa.string(), "why it is not written; null where it is, and for a merged one", nullable=True),
        field("score", pa.float64(), "highest score of an evidence set: that of its worst span", nullable=True),
        *(
            field(name, pa.int32(), f"{meaning}; null where it is no example", nullable=True)
            for name, meaning in (
                ("n_outputs", "outputs as read"),
                ("n_outputs_written", "those of them that are in the file"),
                ("n_evidences", "pieces of evidence as read, partial evidence too"),
                ("n_evidences_written", "those of them that are in the file"),
            )
        ),
    ]
)

CROSSWALK = pa.schema(
    [
        field("example_id", pa.string(), "id of the record"),
        field("output", pa.int32(), "number of the output in the record as read, from 0; -1 for partial evidence"),
        field("evidence", pa.int32(), "number of the span in it, from 0"),
        field("outcome", pa.string(), "what became of it"),
        field("score", pa.float64(), "BLEU of the new span against the old text", nullable=True),
        *(
            pa.field(f"{side}_{column.name}", column.type, nullable=True, metadata=column.metadata)
            for side in ("old", "new")
            for column in (
                field("wikipedia_id", pa.string(), f"page id in the {side} knowledge source"),
                field("title", pa.string(), f"its title in the {side} knowledge source"),
                field("section", pa.string(), f"KILT's name of the {side} section, without newline"),
                *PLACE,
                field("text", pa.string(), f"text of the {side} span"),
            )
        ),
    ]
)

TABLES: dict[str, pa.Schema] = {
    "records": RECORDS,
    "alignments": ALIGNMENTS,
    "misses": MISSES,
    "crosswalk": CROSSWALK,
    "rejected": REJECTED,
}
"""Every table, by folder name; ``crosswalk`` is only written for KILT files."""
