"""What the outputs of an NLI model mean, told from the names that it gives them, whatever their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kbsource.errors import SetupError

_NAMES = {
    "entailment": ("entailment", "entails", "entailed", "entail", "supports", "supported", "support"),
    "neutral": ("neutral", "not_enough_info", "nei", "unknown"),
    "contradiction": ("contradiction", "contradicts", "contradictory", "contradict", "refutes", "refuted", "refute"),
    "not_entailment": ("not_entailment", "non_entailment", "not_entailed", "no_entailment"),
}
_MEANINGS = {name: meaning for meaning, names in _NAMES.items() for name in names}


class ModelLabels(NamedTuple):
    """Places of the model's outputs.

    Attributes:
        entailment: of what the premise says.
        neutral, contradiction: of the others; None where the model does not tell them apart.
        n_outputs: all of them.
    """

    entailment: int
    neutral: int | None
    contradiction: int | None
    n_outputs: int


def read_labels(id2label: Mapping[int, str], given: Sequence[str] | None, *, model: str) -> ModelLabels:
    """Gives the places of the labels.

    Args:
        id2label: of the model's config, by number of the output.
        given: names to use instead, in the order of the outputs; None to trust the config.
        model: its name, for messages.

    Raises:
        SetupError: the names do not say which output is entailment, say it twice, or are not as many as outputs.

    >>> read_labels({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, None, model="m")
    ModelLabels(entailment=2, neutral=1, contradiction=0, n_outputs=3)
    """
    names = [id2label[number] for number in sorted(id2label)]
    if given is not None:
        if len(given) != len(names):
            raise SetupError(
                f"--label-names names {len(given)} outputs ({', '.join(given)}); {model} has {len(names)}."
            )
        names = list(given)
    meanings = [_MEANINGS.get(_normal(name)) for name in names]
    if unknown := [name for name, meaning in zip(names, meanings, strict=True) if meaning is None]:
        raise SetupError(
            f"{model}: its outputs are called {', '.join(names)}, and {unknown[0]!r} says nothing about entailment. "
            f"Name them in their order, as the model's page has it: --label-names {_example(len(names))}"
        )
    if "entailment" not in meanings or len(set(meanings)) < len(meanings) or len(meanings) < 2:
        raise SetupError(
            f"{model}: outputs {', '.join(names)}; one must be entailment, and none may come twice. "
            f"Is it an NLI model? If so: --label-names {_example(len(names))}"
        )
    places = {meaning: place for place, meaning in enumerate(meanings)}
    return ModelLabels(places["entailment"], places.get("neutral"), places.get("contradiction"), len(names))


def _normal(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").replace("_", " ").split())


def _example(n_outputs: int) -> str:
    return "entailment,not_entailment" if n_outputs == 2 else "entailment,neutral,contradiction"
