"""Whether a text says what a sentence claims: the words that every natural-language-inference model here speaks.

Nothing is imported that a model needs; ``mapping.entail.model`` opens one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from kbsource.errors import SetupError

DEFAULT_MODEL = "ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"
"""Source: the released code of QAMPARI (2022), which validates with this cross-encoder."""
MAX_TOKENS = 256
"""Tokens of premise, hypothesis and the marks around them. Source: as above."""
BATCH_PAIRS = 32
DECIMALS = 6
"""Of stored probabilities: the last digits of a float32 move with the batch, the threads and the backend."""

BACKENDS: tuple[Backend, ...] = ("torch", "onnx")
Backend = Literal["torch", "onnx"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
Precision = Literal["float32", "bfloat16"]

REFUSALS: dict[str, str] = {
    "empty_hypothesis": "there is nothing to judge",
    "empty_premise": "there is nothing to judge by",
    "hypothesis_too_long": "the hypothesis leaves no room for a premise, and it is never cut",
}
"""Why a pair has no verdict: reason -> meaning."""


class Pair(NamedTuple):
    """A question to a model: does the premise say what the hypothesis claims?

    Attributes:
        premise: text that is taken as true.
        hypothesis: one declarative sentence; never cut.
        core: half-open code points of the premise that are cut last when it is too long; None: it is cut at its end.
    """

    premise: str
    hypothesis: str
    core: tuple[int, int] | None = None


class Verdict(NamedTuple):
    """Probabilities, rounded to ``DECIMALS``; they add up to 1 for a model of three labels.

    ``neutral`` and ``contradiction`` are None for a model that does not tell them apart.
    """

    entailment: float
    neutral: float | None
    contradiction: float | None

    @property
    def label(self) -> str:
        """The likeliest: ``entailment``, ``neutral``, ``contradiction``, or ``not_entailment`` where a model knows no
        more. Of equal ones the first in this order."""
        if self.neutral is None and self.contradiction is None:
            return "entailment" if self.entailment >= 0.5 else "not_entailment"
        known = [(name, value) for name, value in zip(self._fields, self, strict=True) if value is not None]
        return max(known, key=lambda one: one[1])[0]


class Refused(NamedTuple):
    """A pair that no model can judge.

    Attributes:
        reason: a key of ``REFUSALS``.
        detail: what was seen.
    """

    reason: str
    detail: str


class EntailmentModel(Protocol):
    """Anything that judges pairs."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | Refused]:
        """Gives one answer a pair, in their order; the same list of pairs gives the same answers."""
        ...


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which model, and how it is run.

    Attributes:
        model: folder of a Hugging Face cross-encoder with safetensors weights, or its name on the hub.
        revision: branch, tag or commit on the hub; None for its default branch.
        backend: ``torch``, or ``onnx`` for the ``model.onnx`` that lies in the folder.
        precision: of the numbers that matrix products take; ``bfloat16`` has three digits and is half as fast again, or
            more, on processors that have instructions for it. PyTorch alone.
        device: ``auto`` (the first GPU, else the CPU), ``cpu``, ``cuda`` or ``cuda:N``.
        labels: what the model's outputs mean, in their order; None to read it from its config.
        max_tokens: longest pair, in tokens.
        batch_pairs: pairs that go through the model at once.
    """

    model: str = DEFAULT_MODEL
    revision: str | None = None
    backend: Backend = "torch"
    precision: Precision = "float32"
    device: str = "auto"
    labels: tuple[str, ...] | None = None
    max_tokens: int = MAX_TOKENS
    batch_pairs: int = BATCH_PAIRS

    def __post_init__(self) -> None:
        """Checks values.

        Raises:
            SetupError: names the option, its value and what it may be.
        """
        if self.backend not in BACKENDS:
            raise SetupError(f"--backend {self.backend}: choose one of {', '.join(BACKENDS)}.")
        if self.precision not in PRECISIONS:
            raise SetupError(f"--precision {self.precision}: choose one of {', '.join(PRECISIONS)}.")
        if self.precision != "float32" and self.backend != "torch":
            raise SetupError(f"--precision {self.precision} is for --backend torch; an exported model has float32.")
        kind, _, number = self.device.partition(":")
        if kind not in ("auto", "cpu", "cuda") or (number and (kind != "cuda" or not number.isdecimal())):
            raise SetupError(f"--device {self.device}: give auto, cpu, cuda or cuda:N.")
        if self.max_tokens < 8:
            raise SetupError(f"--max-tokens is {self.max_tokens}; give at least 8.")
        if self.batch_pairs < 1:
            raise SetupError(f"--batch-pairs is {self.batch_pairs}; give at least 1.")
