"""Two signals of one span crossed: BLEU, and the probability that its text says what it should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mapping.reports.document import Table

BLEU_BINS = ("no span", "0.00–0.25", "0.25–0.50", "0.50–0.75", "0.75–1.00", "1.00")
ENTAILMENT_BINS = ("0.0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1.0", "not judged")
_BLEU_EDGES, _ENTAILMENT_EDGES = (0.0, 0.25, 0.5, 0.75, 1.0), (0.2, 0.4, 0.6, 0.8)


class Crossing:
    """Counts spans by bins of both signals; half-open, but for the last."""

    def __init__(self) -> None:
        self._counts = np.zeros((len(BLEU_BINS), len(ENTAILMENT_BINS)), np.int64)

    def add(self, scores: pa.ChunkedArray, supports: pa.ChunkedArray) -> None:
        """Counts the rows of a table.

        Args:
            scores: BLEU; null without a span.
            supports: probability that the text says what it should; null where nothing was judged.
        """
        bleu = np.digitize(_numbers(scores, -1.0), _BLEU_EDGES)
        np.add.at(self._counts, (bleu, entailment_bins(supports)), 1)

    @property
    def is_judged(self) -> bool:
        """Whether any span was judged."""
        return bool(self._counts[:, :-1].any())

    def table(self, caption: str) -> Table:
        """Gives the counts, a row for each bin of BLEU."""
        rows = tuple((name, *map(int, counts)) for name, counts in zip(BLEU_BINS, self._counts, strict=True))
        return Table(caption, ("BLEU", *(f"entailment {name}" for name in ENTAILMENT_BINS[:-1]), ENTAILMENT_BINS[-1]),
                     rows, is_shaded=True)  # fmt: skip


def entailment_bins(supports: pa.ChunkedArray) -> Any:
    """Gives the number in ``ENTAILMENT_BINS`` of each probability, of null that of what was not judged."""
    bins = np.digitize(_numbers(supports, 0.0), _ENTAILMENT_EDGES)
    bins[supports.is_null().to_numpy()] = len(ENTAILMENT_BINS) - 1
    return bins


def _numbers(column: pa.ChunkedArray, instead: float) -> Any:
    return pc.fill_null(column, instead).to_numpy()
