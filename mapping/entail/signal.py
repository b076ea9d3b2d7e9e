"""Whether a text says what a sentence claims: the words that every natural-language-inference model here speaks.

Nothing is imported that a model needs; ``mapping.entail.model`` opens one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from kbsource.errors import SetupError
from mapping.options import check_options, listed, option

DEFAULT_MODEL = "ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"
"""Source: the released code of QAMPARI (2022), which validates with this cross-encoder."""
MAX_TOKENS = 256
"""Tokens of premise, hypothesis and the marks around them. Source: as above."""
BATCH_PAIRS = 32
DECIMALS = 6
"""Of stored probabilities: the last digits of a float32 move with the batch, the threads and the backend."""

Backend = Literal["torch", "onnx"]
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
        precision: of the numbers that matrix products take; ``bfloat16`` has three digits and is half as fast again, or
            more, on processors that have instructions for it.
        labels: None to read them from the model's config.
        max_tokens: longest pair, in tokens.
        batch_pairs: pairs that go through the model at once.
    """

    model: str = DEFAULT_MODEL
    revision: str | None = option(None, "branch, tag or commit of a model on the hub", metavar="NAME")
    backend: Backend = option("torch", "what runs the model; onnx wants the model.onnx that --export-onnx makes")
    precision: Precision = option(
        "float32",
        "of the model's products; bfloat16 is faster where the processor has it, and moves the answers in the second "
        "digit; torch alone has it",
    )
    device: str = option(
        "auto",
        "auto, cpu, cuda or cuda:N (default: auto, a GPU where there is one)",
        metavar="NAME",
        form=r"auto|cpu|cuda(?::[0-9]+)?",
        like="auto, cpu, cuda or cuda:N",
    )
    labels: tuple[str, ...] | None = option(
        None,
        "what the model's outputs mean, in their order, where its config does not say: entailment, neutral, "
        "contradiction or not_entailment",
        flag="--label-names",
        metavar="A,B,C",
        parse=listed,
    )
    max_tokens: int = MAX_TOKENS
    batch_pairs: int = BATCH_PAIRS

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for values out of range."""
        check_options(self)
        if self.precision != "float32" and self.backend != "torch":
            raise SetupError(f"--precision {self.precision} is for --backend torch; an exported model has float32.")
        if self.max_tokens < 8:
            raise SetupError(f"--max-tokens is {self.max_tokens}; give at least 8.")
        if self.batch_pairs < 1:
            raise SetupError(f"--batch-pairs is {self.batch_pairs}; give at least 1.")
