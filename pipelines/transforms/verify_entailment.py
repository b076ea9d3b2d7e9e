"""Judges pairs of texts with an NLI model, on any runner."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import KeyedModelHandler, ModelHandler, RunInference
from apache_beam.options.pipeline_options import StandardOptions

from kbsource.files import options_in_use, use_options
from mapping.entail.signal import ModelOptions, Pair, PlacedModel, UnjudgedPair, Verdict
from mapping.hub import local_model
from pipelines.runners.counters import count
from pipelines.runners.running import check_paths

Pairs = tuple[Pair, ...]
Answers = tuple[Verdict | UnjudgedPair, ...]


class ListHandler(ModelHandler[Any, Any, Any]):  # type: ignore[misc]  # Beam is not typed
    """Runs a model over lists, one list at a time.

    An element is a whole list. Otherwise, batches would depend on how a runner groups elements, and so would the last
    digits of the answers.

    Args:
        open_model: opens the model.
        ask: returns the model's output for an element.
    """

    def __init__(self, open_model: Callable[[], Any], ask: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._open_model, self._ask, self._store_options = open_model, ask, options_in_use()

    def load_model(self) -> Any:
        """Opens the model, once per process."""
        use_options(self._store_options)
        return self._open_model()

    def run_inference(
        self, batch: Sequence[Any], model: Any, inference_args: Mapping[str, Any] | None = None
    ) -> Iterator[Any]:
        """Runs the model on each list, in order, and returns its outputs."""
        for element in batch:
            yield self._ask(model, element)

    def batch_elements_kwargs(self) -> dict[str, int]:
        """Limits batches to one list, which is already a batch."""
        return {"min_batch_size": 1, "max_batch_size": 1}


class EntailmentHandler(ListHandler):
    """Runs an NLI model over lists of pairs, or of other inputs."""

    def __init__(self, options: ModelOptions, ask: Callable[[Any, Any], Any] | None = None) -> None:
        super().__init__(partial(_open_model, options), ask or _judge)


def _open_model(options: ModelOptions) -> Any:
    from mapping.entail.model import open_model

    return open_model(options)


def _judge(model: Any, pairs: Pairs) -> Answers:
    count({"model_calls": 1, "model_pairs": len(pairs)})
    return tuple(model.judge(pairs))


class RunModel(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Runs the model of a handler, on machines that meet its requirements.

    Elements -> outputs of the handler.

    Raises:
        SetupError: the model is in a local folder, which Dataflow cannot read.
    """

    def __init__(self, handler: ModelHandler[Any, Any, Any], options: PlacedModel) -> None:
        super().__init__()
        self._handler, self._options = handler, options

    def expand(self, elements: Any) -> Any:
        runner = elements.pipeline.options.view_as(StandardOptions).runner
        if os.path.isdir(model := local_model(self._options.model)):
            check_paths([f"--runner={runner}"], model)
        asked = {"accelerator": self._options.accelerator, "min_ram": self._options.ram}
        hints = {name: hint for name, hint in asked.items() if hint}
        return elements | "judge" >> RunInference(self._handler).with_resource_hints(**hints)


class VerifyEntailment(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Has an NLI model judge pairs of texts.

    (key, tuple of ``Pair``) -> (key, tuple of answers in the same order).

    An answer is a ``Verdict``, or ``UnjudgedPair`` for a pair that no model can judge. The same lists get the same
    answers on any runner; a good list has some hundred pairs of similar length. Each process opens the model once.

    Raises:
        SetupError: the model cannot be opened.
    """

    def __init__(self, options: ModelOptions) -> None:
        super().__init__()
        self._options = options

    def expand(self, keyed_pairs: Any) -> Any:
        return keyed_pairs | "judge" >> RunModel(KeyedModelHandler(EntailmentHandler(self._options)), self._options)
