"""Rows that an alignment passes from step to step, one for each piece of evidence.

``EVIDENCE`` as the dataset has it -> ``RESOLVED``, with its page in a release -> ``OUTCOMES``, what became of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.runtime.chunks import Key, Stored, read_stored
from mapping.entail.hypotheses import Hypothesis
from mapping.records import Alignment, Evidence, PageKey
from mapping.search.numbering import Placed
from mapping.sources.reading.base import LeftOut
from pipelines.stores.storage import storage_for

ROWS_AT_ONCE = 1_000
"""Rows of a batch."""
NOWHERE = -1
"""Position of a page that the release does not have."""

_LEFT_OUT = pa.struct([pa.field(name, pa.int64() if name == "line" else pa.string()) for name in LeftOut._fields])
EXAMPLES = pa.schema([pa.field("ordinal", pa.int64()), pa.field("example", pa.string()), pa.field("left", _LEFT_OUT)])
"""Records as they are read: examples as JSON of ``mapping.staged``, and, with no number, those that are none."""

KEY = [
    pa.field("part", pa.int32(), nullable=False),
    pa.field("chunk", pa.int32(), nullable=False),
    pa.field("ordinal", pa.int64(), nullable=False),
    pa.field("output", pa.int32(), nullable=False),
    pa.field("evidence", pa.int32(), nullable=False),
]
_HYPOTHESIS = [pa.field(name, pa.string()) for name in ("hypothesis", "hypothesis_kind", "expects")]
EVIDENCE = pa.schema(
    [
        *KEY,
        pa.field("page_kind", pa.string(), nullable=False),
        pa.field("page_value", pa.string(), nullable=False),
        pa.field("fallback_kind", pa.string()),
        pa.field("fallback_value", pa.string()),
        pa.field("evidence_text", pa.string()),
        *_HYPOTHESIS,
    ]
)
"""``part`` and ``chunk`` are the key of the chunk of records; the page and another name of it as in ``PageKey``."""

_FOUND = [
    pa.field("page_id", pa.int64()),
    pa.field("title", pa.string()),
    pa.field("found_by", pa.string()),
    pa.field("hops", pa.int32(), nullable=False),
]
RESOLVED = pa.schema(
    [
        *KEY,
        pa.field("position", pa.int64(), nullable=False),
        pa.field("page_value", pa.string(), nullable=False),
        *_FOUND,
        pa.field("asked", pa.string()),
        pa.field("evidence_text", pa.string()),
        *_HYPOTHESIS,
    ]
)
"""``position`` is the number of the page in the release, or ``NOWHERE``; the others as in ``Resolved``."""

_SPAN = [
    pa.field("section", pa.string()),
    *(pa.field(name, pa.int32()) for name in ("start_element", "start_char", "end_element", "end_char")),
    pa.field("score", pa.float64()),
    pa.field("match", pa.string()),
    pa.field("text", pa.string()),
    *(pa.field(name, pa.int32()) for name in ("start_paragraph", "start_in", "end_paragraph", "end_in")),
]
QUESTION = pa.struct(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("hypothesis", "kind", "expects", "premise")),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("core_start", "core_end")),
        *_SPAN,
    ]
)
"""What a model is asked. The columns of the span are null where it is about the span that was found."""
_SUGGESTION = pa.struct([pa.field("title", pa.string()), pa.field("score", pa.float64())])
OUTCOMES = pa.schema(
    [
        *KEY,
        pa.field("position", pa.int64(), nullable=False),
        pa.field("page_value", pa.string(), nullable=False),
        pa.field("evidence_text", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),
        *_FOUND,
        *_SPAN,
        pa.field("suggestions", pa.list_(_SUGGESTION)),
        pa.field("questions", pa.list_(QUESTION)),
    ]
)
"""Columns as in ``mapping.schema.ALIGNMENTS``; ``start_paragraph`` to ``end_in`` as in ``numbering.Place``."""

SETTLED = ("ordinal", "output", "evidence", *OUTCOMES.names[OUTCOMES.get_field_index("outcome") : -1])
"""Columns that say what became of an evidence."""
FIRST_SPAN_COLUMN, END_SPAN_COLUMN = SETTLED.index("section"), SETTLED.index("end_in") + 1
"""Columns of ``SETTLED`` that another span replaces."""


def evidence_row(
    key: Key,
    ordinal: int,
    place: tuple[int, int],
    evidence: Evidence,
    fallback: PageKey | None,
    said: Hypothesis | None,
) -> tuple[Any, ...]:
    """Gives a row of schema ``EVIDENCE``."""
    other = (None, None) if fallback is None else (fallback.kind, fallback.value)
    page = evidence.page
    return (*key, ordinal, *place, page.kind, page.value, *other, evidence.text, *(said or (None, None, None)))


def evidence_of_pairs(pairs: Sequence[tuple[str, str]]) -> tuple[Key, pa.RecordBatch]:
    """Gives a chunk of schema ``EVIDENCE`` out of pairs of a page's title and a text that is looked for in it.

    Its key comes from the pairs; ``ordinal`` is the place of a pair among them.
    """
    number = int.from_bytes(hashlib.sha256(repr(pairs).encode()).digest()[:3])
    key = Key(0, number)
    rows = (
        evidence_row(key, ordinal, (0, 0), Evidence(PageKey("title", title), text), None, None)
        for ordinal, (title, text) in enumerate(pairs)
    )
    return key, one_batch(rows, EVIDENCE)


def outcome_columns(alignment: Alignment, placed: Placed | None) -> tuple[Any, ...]:
    """Gives the columns from ``outcome`` to ``suggestions``."""
    span = alignment.span
    place = placed.place if placed is not None else None
    return (
        alignment.outcome,
        alignment.page_id,
        alignment.title,
        alignment.found_by,
        alignment.hops,
        alignment.section,
        *((span.start_element, span.start_char, span.end_element, span.end_char) if span else (None,) * 4),
        span.score if span else None,
        span.match if span else None,
        alignment.text,
        *(place if place is not None else (None,) * 4),
        [{"title": title, "score": score} for title, score in alignment.suggestions],
    )


def chunk_group(key: tuple[int, int]) -> int:
    """Gives the number of the group that all outcomes of a chunk of records are in."""
    return key[0] << 32 | key[1]


def chunk_groups(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Gives ``chunk_group`` of each row."""
    groups: npt.NDArray[np.int64] = batch["part"].to_numpy().astype(np.int64) << 32 | batch["chunk"].to_numpy()
    return groups


def batches_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Gives rows, values in the order of the columns, as batches of ``ROWS_AT_ONCE``."""
    pending: list[Sequence[Any]] = []
    for row in rows:
        pending.append(row)
        if len(pending) == ROWS_AT_ONCE:
            yield one_batch(pending, schema)
            pending = []
    if pending:
        yield one_batch(pending, schema)


def one_batch(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Gives rows as one batch."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def batch_rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Gives the rows of a batch in order."""
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def stored_rows(stored: Stored, columns: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
    """Gives stored rows in order, one batch in memory at a time; all columns, or those that are named."""
    for batch in read_stored(Stored(*stored), storage_for(stored[0]), columns):
        yield from batch_rows(batch)


def rows_as_dicts(chunk: tuple[Key, Stored | pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Gives the rows of a chunk by name of their columns."""
    rows = chunk[1]
    batches = (rows,) if isinstance(rows, pa.RecordBatch) else read_stored(rows, storage_for(rows.path))
    for batch in batches:
        yield from batch.to_pylist()
