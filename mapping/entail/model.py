"""A cross-encoder that is ready to judge pairs, and its export to ONNX."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kbsource.errors import SetupError
from mapping.entail.backends import Computer, OnnxComputer, Outputs, TorchComputer, load_library, onnx_path
from mapping.entail.encoder import GraphForm, PairEncoder
from mapping.entail.model_files import digest_of, model_folder, read_form, weight_files
from mapping.entail.model_labels import ModelLabels, read_labels
from mapping.entail.shortcuts import keep_first_token
from mapping.entail.signal import DECIMALS, MAX_TOKENS, ModelOptions, Pair, Refused, Verdict

_UNBOUNDED = 10**6
"""Tokenizers without a limit say so with a huge one."""
CPU_BATCH_TOKENS = 512
"""With more a core is no faster; short lists keep all cores busy to their end, and a layer takes little memory."""


class CrossEncoder:
    """A Hugging Face cross-encoder as an ``EntailmentModel``; ``open_model`` gives one."""

    def __init__(self, encoder: PairEncoder, computer: Computer, labels: ModelLabels) -> None:
        self._encoder = encoder
        self._computer = computer
        self._labels = labels

    @property
    def device(self) -> str:
        """What it runs on."""
        return self._computer.device

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | Refused]:
        """Gives one answer a pair, in their order.

        Pairs that come twice are judged once. Batches depend on the list alone, so the answers do too.
        """
        distinct = list(dict.fromkeys(pairs))
        batches, refused = self._encoder.encode(distinct)
        answers: dict[Pair, Verdict | Refused] = {distinct[place]: fault for place, fault in refused.items()}
        outputs = self._computer.outputs([one.arrays for one in batches])
        for batch, found in zip(batches, outputs, strict=True):
            for place, verdict in zip(batch.places, self._verdicts(found[: len(batch.places)]), strict=True):
                answers[distinct[place]] = verdict
        return [answers[pair] for pair in pairs]

    def _verdicts(self, outputs: Outputs) -> list[Verdict]:
        labels = self._labels
        scaled = outputs.astype(np.float64)
        powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        shares = np.round(powers / powers.sum(axis=1, keepdims=True), DECIMALS)
        return [
            Verdict(
                row[labels.entailment],
                None if labels.neutral is None else row[labels.neutral],
                None if labels.contradiction is None else row[labels.contradiction],
            )
            for row in shares.tolist()
        ]


class _Files(NamedTuple):
    """A model's files, read but for its weights."""

    folder: str
    tokenizer: Any
    labels: ModelLabels
    max_tokens: int
    form: GraphForm


def open_model(options: ModelOptions) -> CrossEncoder:
    """Opens a cross-encoder.

    Raises:
        SetupError: the model, its labels, the backend or the device is not there, or not what is needed.
    """
    files = _read_files(options)
    computer: Computer
    if options.backend == "torch":
        computer = TorchComputer(files.folder, options.device, options.precision)
    else:
        computer = OnnxComputer(files.folder, options.device)
    encoder = PairEncoder(
        files.tokenizer,
        max_tokens=files.max_tokens,
        batch_pairs=options.batch_pairs,
        batch_tokens=CPU_BATCH_TOKENS if computer.device == "cpu" else None,
        form=files.form,
    )
    return CrossEncoder(encoder, computer, files.labels)


@lru_cache(maxsize=1)
def model_facts(options: ModelOptions) -> dict[str, Any]:
    """Gives what a model's answers depend on, as JSON values for a manifest; the weights are hashed, not opened.

    A large model takes seconds, so the last answer is kept.

    Raises:
        SetupError: as ``open_model``, but for the weights and the device.
    """
    folder, _, labels, max_tokens, _ = _read_files(options)
    library = "torch" if options.backend == "torch" else "onnxruntime"
    is_local = os.path.isdir(options.model)
    return {
        "model": os.path.basename(os.path.normpath(options.model)) if is_local else options.model,
        "weights_sha256": digest_of(weight_files(folder, options.backend)),
        "backend": options.backend,
        "precision": options.precision,
        "labels": labels._asdict(),
        "max_tokens": max_tokens,
        "batch_pairs": options.batch_pairs,
        "versions": {
            name: load_library(name, purpose="an NLI model").__version__
            for name in ("transformers", "tokenizers", library)
        },
    }


def _read_files(options: ModelOptions) -> _Files:
    folder = model_folder(options)
    # It would say that there is no PyTorch, which an exported model does without.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    transformers = load_library("transformers", purpose="an NLI model")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise SetupError(f"{options.model}: this is no cross-encoder that can be opened: {error}") from error
    if not getattr(tokenizer, "is_fast", False) or tokenizer.pad_token is None:
        raise SetupError(f"{options.model}: needs a fast tokenizer (tokenizer.json) that has a padding token.")
    labels = read_labels(config.id2label, options.labels, model=options.model)
    path = onnx_path(folder) if options.backend == "onnx" else None
    form = GraphForm() if path is None else read_form(path)
    known = (tokenizer.model_max_length, _positions(config), form.n_tokens)
    return _Files(folder, tokenizer, labels, _max_tokens(options, known), form)


def _max_tokens(options: ModelOptions, known: Iterable[int | None]) -> int:
    limits = [limit for limit in known if limit and limit < _UNBOUNDED]
    limit = min(limits, default=options.max_tokens)
    if options.max_tokens > limit and options.max_tokens != MAX_TOKENS:
        raise SetupError(f"--max-tokens is {options.max_tokens}; {options.model} takes {limit}.")
    return min(options.max_tokens, limit)


def _positions(config: Any) -> int | None:
    n_positions: int | None = getattr(config, "max_position_embeddings", None)
    # RoBERTa and its like count positions from the one after that of padding.
    if n_positions is not None and "roberta" in (config.model_type or "") and config.pad_token_id is not None:
        n_positions -= config.pad_token_id + 1
    return n_positions


def export_onnx(options: ModelOptions, target: str) -> str:
    """Writes a model as ONNX with its config and tokenizer into a folder, and gives the path of ``model.onnx``.

    Args:
        options: the model; its backend and device do not count.
        target: a new or empty folder.

    Raises:
        SetupError: the folder is not empty, or a library is missing.
    """
    if os.path.isdir(target) and os.listdir(target):
        raise SetupError(f"--export-onnx {target}: the folder is not empty; name a new one.")
    torch = load_library("torch", purpose="--export-onnx")
    load_library("onnxscript", purpose="--export-onnx")
    transformers = load_library("transformers", purpose="--export-onnx")
    folder = model_folder(options)
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        folder, use_safetensors=True, trust_remote_code=False, local_files_only=True, dtype=torch.float32
    ).eval()
    keep_first_token(model)
    sample = dict(tokenizer(["A premise.", "Another."], ["A claim.", "It is."], padding=True, return_tensors="pt"))
    names = sorted(sample)
    axes = {0: torch.export.Dim("pairs"), 1: torch.export.Dim("tokens")}
    partial = f"{target.rstrip('/')}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    config.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    with torch.inference_mode():
        torch.onnx.export(
            model,
            kwargs={name: sample[name] for name in names},
            f=os.path.join(partial, "model.onnx"),
            input_names=names,
            output_names=["logits"],
            dynamic_shapes=dict.fromkeys(names, axes),
            dynamo=True,
            verbose=False,
        )
    if os.path.isdir(target):
        os.rmdir(target)
    os.rename(partial, target)
    return os.path.join(target, "model.onnx")
