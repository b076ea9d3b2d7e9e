"""The flags that say which NLI model is asked, and of ``kbsource map`` what its answers are for."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mapping.entail.signal import ModelOptions
    from pipelines.options.map import VerifyOptions

MODEL_FLAGS = ("backend", "precision", "device", "label_names", "revision")
_VERIFY_FLAGS = ("hypothesis", "rescue")
RESCUE_SENTENCES = 100


def add_model_flags(parser: argparse.ArgumentParser) -> None:
    """Declares the flags that say how a model is run."""
    add = parser.add_argument
    add("--backend", choices=("torch", "onnx"), help="what runs the model (default: torch)")
    add(
        "--precision",
        choices=("float32", "bfloat16"),
        help="of the model's products (default: float32); bfloat16 is faster where the processor has it, and moves the "
        "answers in the second digit (torch only)",
    )
    add("--device", metavar="NAME", help="auto, cpu, cuda or cuda:N (default: auto, a GPU where there is one)")
    add(
        "--label-names",
        metavar="A,B,C",
        help="what the model's outputs mean, in their order, where its config does not say: entailment, neutral, "
        "contradiction or not_entailment",
    )
    add("--revision", metavar="NAME", help="branch, tag or commit of a model on the hub")


def add_verify_flags(parser: argparse.ArgumentParser) -> None:
    """Declares the flags of a verified alignment."""
    add = parser.add_argument
    add("--verify", metavar="MODEL", help="ask an NLI model about every span: folder of a cross-encoder, or hub name")
    add_model_flags(parser)
    add(
        "--hypothesis",
        choices=("claim", "answer", "triple", "evidence"),
        help="with --verify: what the model judges (default: what goes with the dataset)",
    )
    add(
        "--rescue",
        type=int,
        nargs="?",
        const=RESCUE_SENTENCES,
        metavar="N",
        help="with --verify: where BLEU is weak, take the sentence of the page that the model finds most likely to say "
        f"it, of the N that share most of its words (default: {RESCUE_SENTENCES})",
    )
    add(
        "--accept",
        metavar="RULE",
        help='spans that are kept, in place of --threshold: "bleu>=0.5", "bleu>=0.5 and entailment>=0.5"; signals '
        "bleu, entailment, neutral, contradiction, with and, or, not and brackets",
    )


def model_options(model: str | None, given: Mapping[str, Any]) -> ModelOptions:
    """Gives the options of a model; None for the default one."""
    from mapping.entail.signal import DEFAULT_MODEL, ModelOptions

    names = given["label_names"]
    return ModelOptions(
        model=model or DEFAULT_MODEL,
        revision=given["revision"],
        backend=given["backend"] or "torch",
        precision=given["precision"] or "float32",
        device=given["device"] or "auto",
        labels=None if names is None else tuple(name.strip() for name in names.split(",")),
    )


def verify_options(given: Mapping[str, Any]) -> VerifyOptions | None:
    """Gives how alignments are verified; None where they are not.

    Raises:
        SetupError: a flag makes no sense without another one.
    """
    from kbsource.errors import SetupError
    from pipelines.options.map import VerifyOptions

    if given["verify"] is None:
        for name in (*MODEL_FLAGS, *_VERIFY_FLAGS):
            if given[name] is not None:
                raise SetupError(f"--{name.replace('_', '-')} is for --verify MODEL; give it, or leave this out.")
        return None
    if given["rescue"] is not None and given["rescue"] < 1:
        raise SetupError(f"--rescue is {given['rescue']}; give at least 1 sentence.")
    return VerifyOptions(model_options(given["verify"], given), given["hypothesis"], given["rescue"] or 0)
