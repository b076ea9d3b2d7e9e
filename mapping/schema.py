"""The tables that an alignment writes, with their columns."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa

from kbsource.columns import schema_of
from kbsource.records import BadRecord
from kbsource.rows import Columns, Int32, Row
from mapping.records import Alignment, RecordFate

SCHEMA_VERSION = 1


class KiltSide(Row):
    """A span in a KILT file."""

    wikipedia_id: Annotated[str | None, "page id in the {} knowledge source"]
    title: Annotated[str | None, "title of the page in the {} knowledge source"]
    section: Annotated[str | None, "KILT's name for the {} section, without newline"]
    start_paragraph_id: Annotated[Int32 | None, "paragraph in the numbering of the output file"]
    start_character: Annotated[Int32 | None, "first code point of the span in the paragraph"]
    end_paragraph_id: Annotated[Int32 | None, "paragraph where the span ends"]
    end_character: Annotated[Int32 | None, "end of the span in the paragraph, one past its last code point"]
    text: Annotated[str | None, "text of the {} span"]


class Crossing(Row):
    """A span of a KILT file and its new location."""

    example_id: Annotated[str, "id of the record"]
    output: Annotated[Int32, "number of the output in the record as read, from 0; -1 for partial evidence"]
    evidence: Annotated[Int32, "number of the span in its output, from 0"]
    outcome: Annotated[str, "outcome of the span"]
    score: Annotated[float | None, "BLEU of the new span against the old text"]
    old: Annotated[KiltSide, Columns("old_", "old")]
    new: Annotated[KiltSide, Columns("new_", "new")]


_EVIDENCE = (
    *("ordinal", "example_id", "output", "evidence", "file", "line", "page_kind", "page_value", "evidence_text"),
    *("outcome", "page_id", "title", "found_by", "hops"),
)
_VERIFICATION = (
    *(
        "hypothesis",
        "hypothesis_kind",
        "expected_verdict",
        "entailment",
        "neutral",
        "contradiction",
        "unjudged_reason",
        "is_chosen_by_model",
    ),
)
_NOT_OF_FOUND = ("fallback_kind", "fallback_value", "suggestions")
"""Columns with a meaning that the table ``alignments`` does not have."""
_SPAN = tuple(
    field.name
    for field in schema_of(Alignment)
    if b"description" in (field.metadata or {}) and field.name not in {*_EVIDENCE, *_VERIFICATION, *_NOT_OF_FOUND}
)
"""All other columns of ``Alignment`` with a meaning, in its order."""


def _of_alignments(*names: str) -> pa.Schema:
    return pa.schema([schema_of(Alignment).field(name) for name in names])


VERIFICATION = tuple(_of_alignments(*_VERIFICATION))
"""Additional columns of ``alignments`` when a model verified them."""
ALIGNMENTS = _of_alignments(*_EVIDENCE, *_SPAN)
RECORDS, CROSSWALK = (schema_of(row).remove_metadata() for row in (RecordFate, Crossing))

TABLES: dict[str, pa.Schema] = {
    "records": RECORDS,
    "alignments": ALIGNMENTS,
    "misses": _of_alignments(*_EVIDENCE, "suggestions"),
    "crosswalk": CROSSWALK,
    "rejected": schema_of(BadRecord),
}
"""Every table by folder name. ``crosswalk`` is written only for KILT files."""
