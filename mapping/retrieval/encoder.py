"""Sentence encoders: texts become vectors by a folder of files that run no code.

An encoder is ``tokenizer.json`` with ``model.onnx`` (or ``onnx/model.onnx``), or else with ``model.safetensors`` and
``config.json`` of transformers, alone or as sentence-transformers lays it out, whose files say how tokens are pooled;
or static vectors of model2vec, ``model.safetensors`` with ``tokenizer.json``, whose mean is the vector of a text.

Sources: sentence-transformers' ``modules.json``, ``1_Pooling/config.json``, ``sentence_bert_config.json`` and
``config_sentence_transformers.json``; ``StaticModel`` of model2vec.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from kbsource.errors import SetupError
from kbsource.files import Folder, base_name, is_local
from mapping.entail.model import Arrays, Computer, OnnxComputer, Outputs, TorchComputer, like_lengths
from mapping.entail.signal import digest_of, model_sha256, onnx_path, opening, weight_files
from mapping.retrieval.system_options import EncoderOptions, Pooling

Vectors = npt.NDArray[np.float32]

GPU_BATCH = 64
"""Texts that a GPU takes at once; a core is fastest with one, whose vector so depends on nothing else."""
_FILES = ("*.json", "1_Pooling/*.json", "model.onnx*", "onnx/model.onnx*", "model.safetensors*")
_TOKENIZER, _STATIC = "tokenizer.json", "model.safetensors"
_MODULES = frozenset(("Transformer", "Pooling", "Normalize", "StaticEmbedding"))
_POOLING_MODES: dict[str, Pooling] = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
_LIBRARIES = {"onnx": ("onnxruntime",), "torch": ("torch", "transformers"), "static": ("safetensors",)}
"""What computes vectors, by form."""
_MOST = 1 << 31
"""Tokens that no model takes."""
_LIMITS = (("sentence_bert_config.json", "max_seq_length"), ("config.json", "max_position_embeddings"))


class Encoder:
    """Makes vectors of texts; ``open_encoder`` gives one."""

    def __init__(
        self, tokenizer: Any, compute: _Compute, *, facts: Mapping[str, Any], computed: Mapping[str, Any]
    ) -> None:
        self._tokenizer, self._compute = tokenizer, compute
        #: where vectors are computed, and whether one depends on the texts beside it, for manifests too
        self.computed = computed
        self._has_marks = facts["form"] != "static"
        dimension = compute([tokenizer.encode("a").ids]).shape[1]
        self.facts: dict[str, Any] = {**facts, "dimension": dimension}
        """What vectors depend on, as JSON values for a manifest."""

    def encode(self, texts: Sequence[str], *, prefix: str) -> tuple[Vectors, int]:
        """The vectors of texts, texts × dimension, and how many texts were too long and cut at their end.

        On the CPU that of a text depends on nothing but the text; a GPU computes texts of like length together, in
        batches that depend on the list alone.
        """
        encodings = self._encodings([prefix + text for text in texts])
        vectors = self._compute([encoding.ids for encoding in encodings])
        if self.facts["normalisation"] == "l2":
            vectors = unit(vectors)
        return vectors, sum(bool(encoding.overflowing) for encoding in encodings)

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """The vectors of queries."""
        return self.encode(texts, prefix=self.facts["query_prefix"])[0]

    def encode_passages(self, passages: Sequence[tuple[str, str]]) -> tuple[Vectors, int]:
        """The vectors of passages, each a title and a text, and how many were cut."""
        return self.encode([f"{title}\n{text}" for title, text in passages], prefix=self.facts["passage_prefix"])

    def count_cut(self, passages: Sequence[tuple[str, str]]) -> int:
        """How many of the passages ``encode_passages`` would cut."""
        texts = [f"{self.facts['passage_prefix']}{title}\n{text}" for title, text in passages]
        return sum(bool(encoding.overflowing) for encoding in self._encodings(texts))

    def _encodings(self, texts: list[str]) -> list[Any]:
        found: list[Any] = self._tokenizer.encode_batch(texts, add_special_tokens=self._has_marks)
        return found


def unit(vectors: Vectors) -> Vectors:
    """The vectors at length 1, but those of length 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, np.where(lengths > 0, lengths, 1), dtype=np.float32)


def open_encoder(options: EncoderOptions) -> Encoder:
    """Opens an encoder.

    Raises:
        SetupError: it is not there, does not say how it is pooled, or does something that is not done here.
    """
    folder = _local_folder(options.model)
    import tokenizers

    with opening(options.model, f"its {_TOKENIZER} cannot be read"):
        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, _TOKENIZER))
    modules = _module_names(folder, options.model)
    prompts = _json(folder, "config_sentence_transformers.json").get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(one, str | None) for one in prompts.values()):
        raise SetupError(
            f"{options.model}: prompts in config_sentence_transformers.json are no texts by name; give --query-prefix "
            "and --passage-prefix with a corrected file."
        )
    query, passage = options.query_prefix, options.passage_prefix
    facts = {
        "name": base_name(options.model.rstrip("/")),
        "tokenizer_sha256": digest_of([os.path.join(folder, _TOKENIZER)]),
        "normalisation": "l2" if modules is None or "Normalize" in modules else "none",
        "query_prefix": prompts.get("query") or "" if query is None else query,
        "passage_prefix": prompts.get("passage", prompts.get("document")) or "" if passage is None else passage,
    }
    tokenizer.no_padding()
    truncation = tokenizer.truncation
    tokenizer.no_truncation()
    computed: dict[str, Any] = {"device": "cpu", "texts_at_once": 1}
    form = _form(folder)
    if form == "static":
        compute, own = _static(folder, tokenizer, options)
    else:
        limit = _max_tokens(folder, truncation, options)
        tokenizer.enable_truncation(limit)
        opened = (_OnnxEncoder if form == "onnx" else _TorchEncoder)(folder, options)
        weights = digest_of(weight_files(folder, form)) if form == "onnx" else model_sha256(folder, form)
        own = {"pooling": opened.pooling, "max_tokens": limit, "weights_sha256": weights}
        compute = opened.encode
        computed = {"device": opened.device.partition(":")[0], "texts_at_once": opened.n_together}
    libraries = [import_module(name) for name in (*_LIBRARIES[form], "tokenizers")]
    versions = {one.__name__: one.__version__ for one in libraries}
    return Encoder(tokenizer, compute, facts={**facts, "form": form, **own, "versions": versions}, computed=computed)


def _form(folder: str) -> Literal["onnx", "torch", "static"]:
    if onnx_path(folder) is not None:
        return "onnx"
    return "static" if _json(folder, "config.json").get("model_type", "model2vec") == "model2vec" else "torch"


_Compute = Callable[[Sequence[Sequence[int]]], Vectors]
"""The vectors of texts that are given by their tokens."""


class _Transformer(Computer, Protocol):
    """A transformer whose tokens are pooled as soon as a batch is through."""

    pooling: Pooling | Literal["model"]
    n_together: int  # texts that go through it at once

    def encode(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        groups = like_lengths(dict(enumerate(map(len, tokens))), lambda _, n, longest: n < self.n_together)
        found = self.outputs([_padded([tokens[place] for place in group]) for group in groups])
        vectors = np.empty((len(tokens), found[0].shape[1] if found else 0), np.float32)
        for group, own in zip(groups, found, strict=True):
            vectors[group] = own
        return vectors

    def _pooled(self, tokens: Any, mask: Any) -> Any:
        """The vectors of texts, by those of their tokens, in NumPy or PyTorch."""
        if self.pooling == "mean":
            return (tokens * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1)[:, None]
        return tokens[:, 0] if self.pooling == "cls" else tokens


class _OnnxEncoder(OnnxComputer, _Transformer):
    def __init__(self, folder: str, options: EncoderOptions) -> None:
        super().__init__(folder, options.device)
        if odd := sorted({*self._names} - {"input_ids", "attention_mask", "token_type_ids"}):
            raise SetupError(
                f"{options.model}: its model.onnx wants {odd[0]!r}, which no text gives; export the encoder alone."
            )
        pools_itself = len(self._session.get_outputs()[0].shape) == 2
        self.pooling = "model" if pools_itself else _pooling(folder, options)
        self.n_together = 1 if self.device == "cpu" or self.form.is_quantised else GPU_BATCH

    def _computed(self, arrays: Arrays) -> Outputs:
        found = super()._computed(arrays)
        if found.ndim != (2 if self.pooling == "model" else 3) or len(found) != len(arrays["input_ids"]):
            raise SetupError(f"{self._path}: its first output has no vector for each text; export the encoder alone.")
        pooled: Outputs = self._pooled(found, arrays["attention_mask"].astype(np.float32))
        return pooled


class _TorchEncoder(TorchComputer, _Transformer):
    head = ""

    def __init__(self, folder: str, options: EncoderOptions) -> None:
        super().__init__(folder, options.device)
        self.pooling = _pooling(folder, options)
        self.n_together = 1 if self.device == "cpu" else GPU_BATCH

    def _outcome(self, found: Any, given: Mapping[str, Any]) -> Any:
        return self._pooled(found.last_hidden_state, given["attention_mask"])


def _padded(rows: Sequence[Sequence[int]]) -> Arrays:
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _static(folder: str, tokenizer: Any, options: EncoderOptions) -> tuple[_Compute, dict[str, Any]]:
    """The mean of a table's vectors of the tokens of a text, unknown ones and marks left out."""
    path = os.path.join(folder, _STATIC)
    if not os.path.isfile(path):
        raise SetupError(f"{options.model}: holds neither model.onnx nor {_STATIC}; give the folder of an encoder.")
    if options.pooling == "cls" or options.max_tokens is not None:
        raise SetupError(
            f"{options.model}: static vectors are a mean of all tokens; leave out --pooling and --max-tokens."
        )
    from safetensors.numpy import load_file

    with opening(options.model, f"its {_STATIC} cannot be read"):
        tensors = load_file(path)
    table = tensors.get("embeddings", tensors.get("embedding.weight"))
    if table is None or table.ndim != 2:
        raise SetupError(
            f"{options.model}: {_STATIC} is no table of static vectors, and no config.json names a transformer."
        )
    mapping, weights = tensors.get("mapping"), tensors.get("weights")
    n_tokens = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    rows = np.arange(n_tokens) if mapping is None else mapping
    is_whole = rows.ndim == 1 and len(rows) >= n_tokens and np.issubdtype(rows.dtype, np.integer)
    if not is_whole or (n_tokens and not 0 <= rows.min() <= rows.max() < len(table)):
        raise SetupError(f"{options.model}: {_STATIC} has no vector for some tokens of {_TOKENIZER}; get it again.")
    if weights is not None and (weights.ndim != 1 or len(weights) < n_tokens):
        raise SetupError(f"{options.model}: {_STATIC} has no weight for some tokens of {_TOKENIZER}; get it again.")
    words = json.loads(tokenizer.to_str())["model"]
    unknown = tokenizer.token_to_id(words["unk_token"]) if words.get("unk_token") else words.get("unk_id")

    def compute(tokens: Sequence[Sequence[int]]) -> Vectors:
        vectors = np.zeros((len(tokens), table.shape[1]), np.float32)
        for place, row in enumerate(tokens):
            known = np.array([one for one in row if one != unknown], np.int64)
            if len(known):
                rows = table[known if mapping is None else mapping[known]].astype(np.float32)
                vectors[place] = (rows if weights is None else rows * weights[known, None]).mean(axis=0)
        return vectors

    return compute, {"pooling": "mean", "max_tokens": None, "weights_sha256": digest_of([path])}


def _local_folder(model: str) -> str:
    """The model's folder here; one in a store is copied, once for all processes of a machine."""
    if not is_local(model):
        remote = Folder.of(model)
        names = {name for pattern in _FILES for name in remote.files(pattern)}
        if any(name.endswith("model.onnx") for name in names):
            names.discard(_STATIC)
        model = remote.local_copy(sorted(names)) if _TOKENIZER in names else model
    if not os.path.isfile(os.path.join(model, _TOKENIZER)):
        raise SetupError(f"{model}: no such folder, or no {_TOKENIZER} in it; give the folder of an encoder.")
    return model


def _json(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return {}
    with open(path, "rb") as file:
        try:
            value = json.load(file)
        except (ValueError, RecursionError) as error:
            raise SetupError(f"{path}: no JSON ({error!s:.200}); get the model again.") from error
    return value if isinstance(value, dict) else {"": value}


def _module_names(folder: str, name: str) -> set[str] | None:
    """The last names of a sentence-transformers model's modules; None where it does not list them."""
    modules = _json(folder, "modules.json").get("")
    if modules is None:
        return None
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise SetupError(f"{name}: modules.json is no list of modules; get the model again.")
    names = {str(module.get("type")).rpartition(".")[2] for module in modules}
    if odd := sorted(names - _MODULES):
        raise SetupError(
            f"{name}: has a module {odd[0]}, and no more than {', '.join(sorted(_MODULES))} are done here."
        )
    return names


def _pooling(folder: str, options: EncoderOptions) -> Pooling:
    """How tokens are pooled, as asked for or as the model's files say."""
    if options.pooling is not None:
        return options.pooling
    said = _json(folder, "1_Pooling/config.json")
    modes = [name for name, value in said.items() if name.startswith("pooling_mode_") and value is True]
    if not modes:
        raise SetupError(
            f"{options.model}: does not say how its tokens are pooled; give --pooling cls or --pooling mean."
        )
    if len(modes) > 1 or modes[0] not in _POOLING_MODES:
        raise SetupError(
            f"{options.model}: is pooled by {' and '.join(modes)}; {' or '.join(_POOLING_MODES)} is done here."
        )
    return _POOLING_MODES[modes[0]]


def _max_tokens(folder: str, truncation: Mapping[str, Any] | None, options: EncoderOptions) -> int:
    said = [value for name, key in _LIMITS if (value := _json(folder, name).get(key)) is not None]
    if odd := [
        value for value in said if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MOST
    ]:
        raise SetupError(f"{options.model}: says that it takes {odd[0]!r:.100} tokens, which is no number of them.")
    limit = options.max_tokens or min(said, default=(truncation or {}).get("max_length"))
    if limit is None:
        raise SetupError(f"{options.model}: says nowhere how many tokens it takes; give --max-tokens, such as 512.")
    return int(limit)
