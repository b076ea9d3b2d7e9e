"""Pairs of texts judged by an NLI model, wherever a runner puts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import KeyedModelHandler, ModelHandler, RunInference

from mapping.entail.signal import ModelOptions, Pair, Refused, Verdict
from pipelines.runners.counters import count

Pairs = tuple[Pair, ...]
Answers = tuple[Verdict | Refused, ...]


class EntailmentHandler(ModelHandler[Pairs, Answers, Any]):  # type: ignore[misc]  # Beam is not typed
    """Runs a model over lists of pairs, one list at a time.

    An element is a whole list: how a runner groups elements would change the batches, and with them the last digits of
    the answers.
    """

    def __init__(self, options: ModelOptions) -> None:
        super().__init__()
        self._options = options

    def load_model(self) -> Any:
        """Opens the model; once for each process."""
        from mapping.entail.model import open_model

        return open_model(self._options)

    def run_inference(
        self, batch: Sequence[Pairs], model: Any, inference_args: Mapping[str, Any] | None = None
    ) -> Iterator[Answers]:
        """The answers to each list, in its order."""
        for pairs in batch:
            count({"model_calls": 1, "model_pairs": len(pairs)})
            yield tuple(model.judge(pairs))

    def batch_elements_kwargs(self) -> dict[str, int]:
        """Lists are batches already."""
        return {"min_batch_size": 1, "max_batch_size": 1}


class VerifyEntailment(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(key, tuple of ``Pair``) -> (key, tuple of answers in their order): what an NLI model says of pairs of texts.

    An answer is a ``Verdict``, or ``Refused`` for a pair that no model can judge. The same lists give the same answers
    on any runner; some hundred pairs of like length make a good list. A process opens the model once.

    Raises:
        SetupError: the model cannot be opened.
    """

    def __init__(self, options: ModelOptions) -> None:
        super().__init__()
        self._options = options

    def expand(self, keyed_pairs: Any) -> Any:
        return keyed_pairs | "judge" >> RunInference(KeyedModelHandler(EntailmentHandler(self._options)))
