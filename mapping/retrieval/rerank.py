"""Passages put in a new order by a cross-encoder, which reads each of them beside the query.

The model is opened and run as those that judge entailment are (``mapping.entail.model``): Hugging Face's folders,
safetensors by PyTorch or ``model.onnx`` by ONNX Runtime, query first, passages cut at their end. A passage's score is
the one output of models that rank, such as those of MS MARCO and BGE; of two outputs the second less the first, as
monoBERT has them; of an NLI model the output for entailment less the likelier of the others.

Source: Nogueira and Cho, Passage re-ranking with BERT (2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from mapping.entail.signal import Pair, read_labels
from mapping.retrieval.queries import Hit
from mapping.retrieval.system_options import RerankerOptions

DECIMALS = 5
"""Of scores: the last digits of a product of float32 depend on the backend."""


class Reranker:
    """Scores passages for a query.

    Raises:
        SetupError: the model cannot be opened, or its outputs do not say how well a passage fits.
    """

    def __init__(self, options: RerankerOptions) -> None:
        from mapping.entail.model import open_pair_model  # takes a while

        self.depth = options.depth
        self._model, names = open_pair_model(options.model_options())
        self._place = len(names) - 1 if len(names) <= 2 else read_labels(names, None, model=options.model).entailment

    def scores(self, query: str, passages: Sequence[tuple[str, str]]) -> list[float | None]:
        """A score a passage, each a title and a text; None for what no model reads: nothing at all, or beside a query
        that leaves no room.

        They depend on query and passages alone, whatever else is asked. Memory: these and a batch.
        """
        pairs = [Pair(f"{title}\n{text}", query) for title, text in passages]
        outputs, refused = self._model.outputs(pairs)
        if len(refused) == len(pairs):
            return [None] * len(pairs)
        found = outputs[:, self._place].astype(np.float64)
        if outputs.shape[1] > 1:
            found -= np.delete(outputs, self._place, axis=1).max(axis=1)
        rounded = np.round(found, DECIMALS).tolist()
        return [None if place in refused else score for place, score in enumerate(rounded)]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """What was found for a query in the order of its scores, see ``reordered``."""
        first = hits[: self.depth]
        return reordered(hits, self.scores(query, [(hit.title, hit.text) for hit in first]))


def reordered(hits: Sequence[Hit], scores: Sequence[float | None]) -> list[Hit]:
    """Documents in the order of their scores, those of one score as they were, and behind them those without: these
    have falling scores below the least, for trec_eval looks at no ranks.

    >>> hits = [Hit(page_id, page_id, "", "", 1.0) for page_id in "1234"]
    >>> [(hit.page_id, hit.score) for hit in reordered(hits, [0.5, None, 0.75])]
    [('3', 0.75), ('1', 0.5), ('2', -0.5), ('4', -1.5)]
    """
    known = list(zip(hits, scores, strict=False))
    scored = sorted(
        [replace(hit, score=score) for hit, score in known if score is not None], key=lambda hit: -hit.score
    )
    others = [hit for hit, score in known if score is None] + list(hits[len(known) :])
    least = scored[-1].score if scored else 0.0
    return scored + [replace(hit, score=least - number) for number, hit in enumerate(others, start=1)]
