"""The interface of models for natural-language inference (NLI): pairs and verdicts, options, files and labels.

No model library is imported here; ``mapping.entail.model`` opens a model.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from cyclopts import Parameter

from kbsource.errors import SetupError
from kbsource.files import Folder, is_local
from kbsource.local_copies import local_copy
from mapping.hub import CONFIG_FILES, ONNX_FILES, WEIGHTS, Backend, local_model
from mapping.options import Checked, Like, Model, Name, Text, Words, check_options

DEFAULT_MODEL = "ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"
"""Source: the released code of QAMPARI (2022), which validates with this cross-encoder."""
MAX_TOKENS = 256
"""Tokens of premise, hypothesis and special tokens. Source: as above."""
MAX_PAIR_TOKENS = 512
"""The maximum number of tokens for ranking models, if the model accepts that many."""
BATCH_PAIRS = 32
DECIMALS = 6
"""Decimals of stored probabilities: the last digits of a float32 depend on the batch, the threads and the backend."""

Precision = Literal["float32", "bfloat16"]
Device = Annotated[Name, Parameter(validator=Like(r"auto|cpu|cuda(?::[0-9]+)?", "auto, cpu, cuda or cuda:N"))]
Accelerator = Annotated[
    Text,
    Parameter(
        "--model-accelerator",
        validator=Like(r"type:[\w-]+(;[\w-]+(:[\w.-]+)?)*", "'type:nvidia-l4;count:1;install-nvidia-driver'"),
    ),
]
Ram = Annotated[Text, Parameter("--model-ram", validator=Like(r"\d+(\.\d+)?([KMGT]i?)?B", "8GB"))]

UNJUDGED_REASONS: dict[str, str] = {
    "empty_hypothesis": "the hypothesis is empty",
    "empty_premise": "the premise is empty",
    "hypothesis_too_long": "the hypothesis is so long that there is no room for a premise",
}
"""Reasons why a pair has no verdict: reason -> meaning."""


class Pair(NamedTuple):
    """A pair to be judged: does the premise entail the hypothesis?"""

    premise: str  # text assumed to be true
    hypothesis: str  # one declarative sentence; never truncated
    core: tuple[int, int] | None = None
    """Half-open span of the premise, in code points, that is kept as long as possible when the premise is truncated.
    None: the premise is truncated at its end.
    """


class Verdict(NamedTuple):
    """A model's probabilities for a pair, rounded to ``DECIMALS``; for a model with three labels they add up to 1.

    ``neutral`` and ``contradiction`` are None for a model that does not distinguish them.
    """

    entailment: float
    neutral: float | None
    contradiction: float | None

    @property
    def label(self) -> str:
        """The most probable label: ``entailment``, ``neutral``, ``contradiction``, or ``not_entailment`` for a model
        that does not distinguish the last two. Ties go to the first in this order."""
        if self.neutral is None and self.contradiction is None:
            return "entailment" if self.entailment >= 0.5 else "not_entailment"
        known = [(name, value) for name, value in zip(self._fields, self, strict=True) if value is not None]
        return max(known, key=lambda scored_label: scored_label[1])[0]


class UnjudgedPair(NamedTuple):
    """A pair that no model can judge."""

    reason: str  # a key of ``UNJUDGED_REASONS``
    detail: str  # explanation of the reason, with the value that was found


def answer_values(answer: Verdict | UnjudgedPair) -> dict[str, Any]:
    """Returns an answer as JSON values: ``label`` and the probabilities, or ``unjudged_reason`` and ``detail``."""
    if isinstance(answer, UnjudgedPair):
        return {"unjudged_reason": answer.reason, "detail": answer.detail}
    return {"label": answer.label, **answer._asdict()}


class EntailmentModel(Protocol):
    """A model that judges whether premises entail hypotheses."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        """Returns a verdict for each pair, in order, or the reason why it could not be judged. Equal lists of pairs
        have equal answers.
        """
        ...


@dataclass(frozen=True, slots=True)
class PlacedModel(Checked):
    """A model, and the machines that can run it: device, accelerator and memory."""

    model: Model
    _: KW_ONLY
    device: Device = "auto"
    """Device that runs the model: auto (a GPU if there is one), cpu, cuda or cuda:N."""
    accelerator: Accelerator | None = None
    """Accelerator of the machines that run the model, as a Beam resource hint; Dataflow honours it."""
    ram: Ram | None = None
    """Minimum memory of the machines that run the model, as a Beam resource hint."""


@dataclass(frozen=True, slots=True)
class ModelOptions(PlacedModel):
    """A model, and how it is run."""

    model: Model
    """Judge with an NLI model: folder of a Hugging Face cross-encoder with safetensors weights, local or remote, or
    its name on the hub, OWNER/NAME or OWNER/NAME@REVISION; see --download."""
    _: KW_ONLY
    backend: Backend = "torch"
    """Backend that runs the model; for onnx, first make its model.onnx with kbsource nli --export-onnx."""
    precision: Precision = "float32"
    """Precision of the model's matrix products. bfloat16 is faster on processors that support it, and changes
    probabilities from their second decimal place on. Only with torch.
    """
    labels: Annotated[Words | None, Parameter("--label-names")] = None
    """Labels of the model's outputs, in their order, if its config does not name them. Each is entailment, neutral,
    contradiction or not_entailment.
    """
    max_tokens: Annotated[int, Parameter(parse=False)] = MAX_TOKENS  # maximum number of tokens of a pair
    batch_pairs: Annotated[int, Parameter(parse=False)] = BATCH_PAIRS  # number of pairs in a batch

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``, and for values out of range."""
        check_options(self)
        if self.precision != "float32" and self.backend != "torch":
            raise SetupError(
                f"--precision {self.precision} works only with --backend torch, because exported models "
                f"use float32; leave it out."
            )
        if self.max_tokens < 8:
            raise SetupError(f"--max-tokens is {self.max_tokens}; give at least 8.")
        if self.batch_pairs < 1:
            raise SetupError(f"--batch-pairs is {self.batch_pairs}; give at least 1.")


@dataclass(frozen=True, slots=True)
class UsualModelOptions(ModelOptions):
    """The same options with a default model."""

    model: Model = DEFAULT_MODEL
    """NLI model: folder of a Hugging Face cross-encoder with safetensors weights, local or remote, or its name on
    the hub, OWNER/NAME or OWNER/NAME@REVISION; see --download."""


_NAMES = {
    "entailment": ("entailment", "entails", "entailed", "entail", "supports", "supported", "support"),
    "neutral": ("neutral", "not_enough_info", "nei", "unknown"),
    "contradiction": ("contradiction", "contradicts", "contradictory", "contradict", "refutes", "refuted", "refute"),
    "not_entailment": ("not_entailment", "non_entailment", "not_entailed", "no_entailment"),
}
_MEANINGS = {name: meaning for meaning, names in _NAMES.items() for name in names}


class ModelLabels(NamedTuple):
    """Positions of the labels among a model's outputs."""

    entailment: int  # probability that the premise entails the hypothesis
    # of the others; None if the model does not distinguish them
    neutral: int | None
    contradiction: int | None
    n_outputs: int  # number of outputs of the model


def read_labels(id2label: Mapping[int, str], given: Sequence[str] | None, *, model: str) -> ModelLabels:
    """Returns the positions of the labels named by the model's config, or by ``given``, in the order of the outputs.

    Raises:
        SetupError: the names do not identify the output for entailment, identify it twice, or there are more or fewer
            names than outputs.

    >>> read_labels({0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, None, model="m")
    ModelLabels(entailment=2, neutral=1, contradiction=0, n_outputs=3)
    """
    if not all(isinstance(number, int) and isinstance(name, str) for number, name in id2label.items()):
        raise SetupError(f"{model}: id2label in its config.json does not name its outputs; download the model again.")
    names = [id2label[number] for number in sorted(id2label)]
    if given is not None:
        if len(given) != len(names):
            raise SetupError(
                f"--label-names names {len(given)} outputs ({', '.join(given)}); {model} has {len(names)}."
            )
        names = list(given)
    meanings = [_MEANINGS.get("_".join(name.lower().replace("-", " ").replace("_", " ").split())) for name in names]
    if unknown := [name for name, meaning in zip(names, meanings, strict=True) if meaning is None]:
        raise SetupError(
            f"{model}: its outputs are called {', '.join(names)}, and {unknown[0]!r} means none of entailment, "
            "neutral and contradiction. Name the outputs in the order of the model's documentation: --label-names "
            f"{_example(len(names))}"
        )
    if "entailment" not in meanings or len(set(meanings)) < len(meanings) or len(meanings) < 2:
        raise SetupError(
            f"{model}: outputs {', '.join(names)}; one must be entailment, and each may occur only once. "
            f"If this is an NLI model, name its outputs: --label-names {_example(len(names))}"
        )
    places = {meaning: place for place, meaning in enumerate(meanings)}
    return ModelLabels(places["entailment"], places.get("neutral"), places.get("contradiction"), len(names))


def _example(n_outputs: int) -> str:
    return "entailment,not_entailment" if n_outputs == 2 else "entailment,neutral,contradiction"


_LONGEST_FAULT = 300
_MOST_LAYERS = 1_000
"""Maximum number of layers in a config. The deepest published transformer, DeepNet (2022), has this many; the next ones
have some 130.
"""
_LAYERS = re.compile(r"(?:^|_)layers?$")


def load_library(name: str, *, purpose: str) -> Any:
    """Imports a library of the extra ``nli``; raises SetupError if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(f"{purpose} needs {name} ({error}). Install the extra: pip install 'kbsource[nli]'") from error


@contextmanager
def opening(model: str, what: str) -> Iterator[None]:
    """Replaces errors that a library raises for a damaged or unsuitable model by a message of one line.

    Libraries check little of what they read and raise any kind of error, including a bare ``Exception`` from Rust.

    Args:
        model: as named by the user.
        what: the problem as a clause, such as "it cannot be opened".

    Raises:
        SetupError: replaces the library's error.
    """
    try:
        yield
    except SetupError:
        raise
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        said = " ".join(lines)[:_LONGEST_FAULT] or "no further details"
        raise SetupError(
            f"{model}: {what} ({type(error).__name__}: {said}). Download the model again, or name another."
        ) from error


def model_folder(options: ModelOptions) -> str:
    """Returns a local folder with the model's files. For a name on the hub, it is the model's folder in the cache.
    Files in a bucket are copied, once for all processes of a machine.

    Raises:
        SetupError: the model does not exist, or has no weights that this backend can read without running code.
    """
    folder = local_model(options.model, options.backend) if is_local(options.model) else _copied(options)
    if is_local(folder) and not os.path.isdir(folder):
        raise SetupError(f"{options.model}: no such folder.")
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise SetupError(f"{options.model}: has no config.json; give the folder of a Hugging Face model.")
    check_layers(folder)
    if options.backend == "torch" and not weight_files(folder, "torch"):
        raise SetupError(
            f"{options.model}: has no *.safetensors. Weights in other formats are not read, because loading them can "
            f"run code; save the model with transformers' save_pretrained, which writes safetensors."
        )
    return folder


def check_layers(folder: str) -> None:
    """Raises SetupError if the config of a model cannot be read, or names more layers than any published model has: a
    library would create all of them, and run out of memory, before it looks for their weights.
    """
    path = os.path.join(folder, "config.json")
    with opening(path, "cannot be read"), open(path, "rb") as file:
        values = json.load(file)
        check_layer_counts(path, values)


def check_layer_counts(path: str, values: Any) -> None:
    """Raises SetupError if a config has, at any depth, a number of layers that no published model has."""
    if isinstance(values, list):
        values = dict(enumerate(values))
    if isinstance(values, dict):
        for name, value in values.items():
            is_count = isinstance(value, int | float) and _LAYERS.search(str(name))
            if is_count and not -_MOST_LAYERS <= value <= _MOST_LAYERS:
                raise SetupError(
                    f"{path}: {name} is {value!s:.40}, and at most {_MOST_LAYERS:,} layers are supported. Download "
                    f"the model again, or name another."
                )
            check_layer_counts(path, value)


def weight_files(folder: str, backend: Backend) -> list[str]:
    """Returns the paths of a model's weights, sorted."""
    if backend == "torch":
        return sorted(str(path) for path in Path(folder).glob("*.safetensors"))
    path = onnx_path(folder)
    # A large model has a separate file with its tensors.
    return [] if path is None else sorted(str(file) for file in Path(path).parent.glob("model.onnx*"))


def digest_of(paths: Sequence[str]) -> str:
    """Returns the SHA-256 of the contents of several files, in order."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Folder.of(path).sha256().encode())
    return digest.hexdigest()


def model_sha256(folder: str, backend: Backend) -> str:
    """Returns one SHA-256 for all files that determine a model's answers. Weights are hashed without being opened."""
    named = [os.path.join(folder, name) for name in ("config.json", "tokenizer.json")]
    return digest_of([*filter(os.path.isfile, named), *weight_files(folder, backend)])


def _copied(options: ModelOptions) -> str:
    remote = Folder.of(options.model)
    patterns = (*CONFIG_FILES, *WEIGHTS[options.backend])
    names = {name for pattern in patterns for name in remote.files(pattern)}
    if not names:
        raise SetupError(f"{options.model}: no such folder, or no model in it.")
    return local_copy(remote, sorted(names))


def onnx_path(folder: str) -> str | None:
    """Returns the path of the exported model in a folder, or None."""
    paths = (os.path.join(folder, name) for name in ONNX_FILES)
    return next((path for path in paths if os.path.isfile(path)), None)
