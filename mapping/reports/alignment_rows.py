"""What the rows of an alignment say, read once. Memory: one row group, and the worst rows."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.files import Storage
from kbsource.release.reader import row_groups
from mapping.reports.crossing import Crossing

WORST = 20
"""Spans of the lowest BLEU, below 1, that are shown."""
_ORDER = ("score", "ordinal", "output", "evidence")
_SHOWN = (*_ORDER, "example_id", "title", "evidence_text", "text", "is_written")
_JUDGED = ("entailment", "contradiction", "expects")
_PLACES = ("wikipedia_id", "section", "start_paragraph_id")
MOVES = (
    "same paragraph",
    "other paragraph of the section",
    "other section of the page",
    "same page, no place in it",
    "other page",
    "no page",
)
"""Where a new span stands, seen from the old one."""


@dataclass(slots=True)
class AlignmentRows:
    """What ``read_alignments`` found.

    Attributes:
        crossing: spans by both signals.
        worst: rows of the lowest BLEU, in order; ``support`` is the probability of what the dataset says.
    """

    crossing: Crossing = field(default_factory=Crossing)
    worst: list[dict[str, Any]] = field(default_factory=list)


class Move(NamedTuple):
    """Spans that moved alike: one of ``MOVES``, how many, and their mean BLEU, None without one."""

    name: str
    n_spans: int
    mean_score: float | None


def read_alignments(files: Sequence[str], storage: Storage) -> AlignmentRows:
    """Reads the table of alignments."""
    found = AlignmentRows()
    for path in files:
        for rows in row_groups(path, storage, (*_SHOWN, *_JUDGED)):
            support = _support(rows)
            found.crossing.add(rows["score"], support)
            spans = rows.select(_SHOWN).append_column("support", support)
            spans = spans.filter(pc.less(spans["score"], 1.0))
            order = pc.sort_indices(spans, sort_keys=[(name, "ascending") for name in _ORDER])
            worst = spans.take(order[:WORST]).to_pylist()
            found.worst = heapq.nsmallest(WORST, [*found.worst, *worst], key=itemgetter(*_ORDER))
    return found


def _support(rows: pa.Table) -> pa.ChunkedArray:
    """Gives the probability of what the dataset says of each span: null where nothing was judged."""
    if "entailment" not in rows.column_names:
        return pa.chunked_array([pa.nulls(rows.num_rows, pa.float64())])
    is_refuted = pc.fill_null(pc.equal(rows["expects"], "contradiction"), False)
    return pc.if_else(is_refuted, rows["contradiction"], rows["entailment"])


def read_moves(files: Sequence[str], storage: Storage) -> list[Move]:
    """Reads the table of old and new places; nothing without any rows."""
    counts, n_scores, scores = (np.zeros(len(MOVES)) for _ in range(3))
    columns = [f"{side}_{name}" for side in ("old", "new") for name in _PLACES]
    for path in files:
        for rows in row_groups(path, storage, ("score", *columns)):
            moves = _moves(rows)
            score = pc.fill_null(rows["score"], float("nan")).to_numpy()
            is_scored = ~np.isnan(score)
            counts += np.bincount(moves, minlength=len(MOVES))
            n_scores += np.bincount(moves[is_scored], minlength=len(MOVES))
            scores += np.bincount(moves[is_scored], weights=score[is_scored], minlength=len(MOVES))
    if not counts.any():
        return []
    return [
        Move(name, int(n), float(total / n_scored) if n_scored else None)
        for name, n, total, n_scored in zip(MOVES, counts, scores, n_scores, strict=True)
    ]


def _moves(rows: pa.Table) -> Any:
    """Gives the number in ``MOVES`` of each row."""
    is_gone = rows["new_wikipedia_id"].is_null().to_numpy()
    is_unplaced = rows["new_start_paragraph_id"].is_null().to_numpy()
    same = [pc.fill_null(pc.equal(rows[f"old_{name}"], rows[f"new_{name}"]), False).to_numpy() for name in _PLACES]
    page, section, paragraph = same
    conditions = [is_gone, ~page, is_unplaced, ~section, ~paragraph]
    return np.select(conditions, [5, 4, 3, 2, 1], 0)
