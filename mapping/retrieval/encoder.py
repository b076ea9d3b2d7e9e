"""Sentence encoders: convert texts to vectors with model folders that run no code.

An encoder consists of ``tokenizer.json`` with ``model.onnx`` (or ``onnx/model.onnx``), or with ``model.safetensors``
and ``config.json`` of transformers. It may have the layout of sentence-transformers, whose files define the pooling.
Alternatively it contains static vectors of model2vec, ``model.safetensors`` with ``tokenizer.json``; a text's vector is
then their mean.

Passages and queries may have separate encoders. DPR's two encoders are read from the folders that transformers writes
(``DPRContextEncoder``, ``DPRQuestionEncoder``). A passage is encoded as two segments, title and text; its vector is the
pooler's output, which for DPR is the vector of the first token. BLINK's bi-encoder reads an entity as ``title [unused2]
text``, and a query's mention between ``[unused0]`` and ``[unused1]``, with as much context on both sides as fits.

Sources: Karpukhin et al., Dense Passage Retrieval (2020); Wu et al., Zero-shot Entity Linking with Dense Entity
Retrieval (2020), and ``blink/biencoder/data_process.py``; sentence-transformers' ``modules.json``,
``1_Pooling/config.json``, ``sentence_bert_config.json`` and ``config_sentence_transformers.json``; ``StaticModel`` of
model2vec.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kbsource.errors import SetupError
from kbsource.files import Folder, is_local
from kbsource.local_copies import local_copy
from mapping.entail.model import Arrays, Computer, OnnxComputer, Outputs, TorchComputer, like_lengths
from mapping.entail.signal import digest_of, model_sha256, onnx_path, opening, weight_files
from mapping.hub import local_model, model_name
from mapping.retrieval.queries import MENTION
from mapping.retrieval.system_options import EncoderOptions, Pooling, TextForm

Vectors = npt.NDArray[np.float32]

GPU_BATCH = 64
"""Texts per batch on a GPU. A CPU core is fastest with one text at a time. Its vector then does not depend on other
texts."""
_FILES = ("*.json", "1_Pooling/*.json", "model.onnx*", "onnx/model.onnx*", "model.safetensors*")
_TOKENIZER, _STATIC = "tokenizer.json", "model.safetensors"
_MODULES = frozenset(("Transformer", "Pooling", "Normalize", "StaticEmbedding"))
_DPR_CLASSES = frozenset(("DPRContextEncoder", "DPRQuestionEncoder"))
BLINK_PASSAGE_TOKENS, BLINK_QUERY_TOKENS = 128, 32
"""Tokens of an entity, and of a mention with its context. Source: the configuration of BLINK's published bi-encoder."""
_BLINK_MARKS = ("[unused0]", "[unused1]", "[unused2]")
"""Markers before a mention, after it, and between the title and the text of an entity."""
_POOLING_MODES: dict[str, Pooling] = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}
_LIBRARIES = {"onnx": ("onnxruntime",), "torch": ("torch", "transformers"), "static": ("safetensors",)}
"""Libraries that compute the vectors, by format."""
_MOST = 1 << 31
"""A number of tokens that is larger than the limit of any model."""
_LIMITS = (("sentence_bert_config.json", "max_seq_length"), ("config.json", "max_position_embeddings"))


class Encoder:
    """Computes vectors of texts. Create it with ``open_encoder``."""

    def __init__(
        self, tokenizer: Any, compute: _Compute, *, facts: Mapping[str, Any], computed: Mapping[str, Any]
    ) -> None:
        self._texts, self._compute = _Texts(tokenizer, facts), compute
        #: the device, and the number of texts that are computed together; manifests record both
        self.computed = computed
        dimension = compute([tokenizer.encode("a").ids]).shape[1]
        self.facts: dict[str, Any] = {**facts, "dimension": dimension}
        """Everything that determines the vectors, as JSON values for a manifest."""

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        """Returns the vectors of queries, queries × dimension."""
        return self._encode(self._texts.queries(texts))[0]

    def encode_passages(self, passages: Sequence[tuple[str, str]]) -> tuple[Vectors, int]:
        """Returns the vectors of passages, each a title and a text, and the number of passages truncated because of
        their length.

        On the CPU, a vector depends only on its passage. A GPU computes texts of similar length together, in batches
        that depend only on the list.
        """
        return self._encode(self._texts.passages(passages))

    def encode(self, texts: Sequence[str], *, prefix: str) -> tuple[Vectors, int]:
        """Returns the vectors of texts without titles, and the number of truncated ones."""
        return self._encode(self._texts.plain([prefix + text for text in texts]))

    def count_cut(self, passages: Sequence[tuple[str, str]]) -> int:
        """Returns how many of the passages ``encode_passages`` would truncate."""
        return sum(is_cut for _, is_cut in self._texts.passages(passages))

    def _encode(self, tokens: Sequence[_Tokens]) -> tuple[Vectors, int]:
        vectors = self._compute([ids for ids, _ in tokens])
        if self.facts["normalisation"] == "l2":
            vectors = unit(vectors)
        return vectors, sum(is_cut for _, is_cut in tokens)


class _Tokens(NamedTuple):
    """The tokens of a text, and whether the text was truncated."""

    ids: Sequence[int]
    is_cut: bool


class _Texts:
    """Converts queries and passages to tokens, in the text form of an encoder."""

    def __init__(self, tokenizer: Any, facts: Mapping[str, Any]) -> None:
        self._tokenizer, self._form = tokenizer, facts["text_form"]
        self._query_prefix, self._passage_prefix = facts["query_prefix"], facts["passage_prefix"]
        self._has_marks = facts["form"] != "static"
        if self._form == "blink":
            names = ("[CLS]", "[SEP]", *_BLINK_MARKS)
            self._marks = [tokenizer.token_to_id(name) for name in names]
            if None in self._marks:
                missing = names[self._marks.index(None)]
                raise SetupError(
                    f"{facts['name']}: its tokenizer has no token {missing}, which --text-form blink needs."
                )
            given = facts["max_tokens"]
            self._max_passage, self._max_query = (
                min(limit, given) for limit in (BLINK_PASSAGE_TOKENS, BLINK_QUERY_TOKENS)
            )

    def queries(self, texts: Sequence[str]) -> list[_Tokens]:
        """Returns the tokens of queries; with BLINK's form, the tokens around the marked mention."""
        if self._form == "blink":
            return [self._mention(text) for text in texts]
        return self.plain([self._query_prefix + text for text in texts])

    def passages(self, passages: Sequence[tuple[str, str]]) -> list[_Tokens]:
        """Returns the tokens of passages, each a title and a text."""
        prefix = self._passage_prefix
        if self._form == "blink":
            return [self._entity(title, text) for title, text in passages]
        if self._form == "pair":
            return self.plain([(prefix + title, text) for title, text in passages])
        return self.plain([f"{prefix}{title}\n{text}" for title, text in passages])

    def plain(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> list[_Tokens]:
        """Returns the tokens of texts, or of pairs of texts."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=self._has_marks)
        return [_Tokens(encoding.ids, bool(encoding.overflowing)) for encoding in encodings]

    def _entity(self, title: str, text: str) -> _Tokens:
        first, last, _, _, title_end = self._marks
        ids = [*self._ids(title), title_end, *self._ids(text)]
        room = self._max_passage - 2
        return _Tokens([first, *ids[:room], last], len(ids) > room)

    def _mention(self, text: str) -> _Tokens:
        """Returns the tokens of a mention between its markers, with as much context as fits: half of the remaining
        tokens on each side, plus what the other side does not need. A query without markers is a mention without
        context."""
        first, last, start, end, _ = self._marks
        found = MENTION.search(text)
        before, mention, after = (
            ("", text, "") if found is None else (text[: found.start()], found[1], text[found.end() :])
        )
        left, right = self._ids(before), self._ids(after)
        marked = [start, *self._ids(mention)[: self._max_query - 4], end]
        room = self._max_query - 2 - len(marked)
        n_left = min(len(left), max(room // 2, room - len(right)))
        n_right = min(len(right), room - n_left)
        ids = [first, *left[len(left) - n_left :], *marked, *right[:n_right], last]
        return _Tokens(ids, n_left < len(left) or n_right < len(right))

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def unit(vectors: Vectors) -> Vectors:
    """Returns the vectors scaled to length 1; vectors of length 0 are unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, np.where(lengths > 0, lengths, 1), dtype=np.float32)


def open_encoder(options: EncoderOptions) -> Encoder:
    """Opens an encoder.

    Raises:
        SetupError: it does not exist, does not define its pooling, or needs something that is not supported.
    """
    folder = _local_folder(options.model)
    import tokenizers

    with opening(options.model, f"its {_TOKENIZER} cannot be read"):
        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, _TOKENIZER))
    modules = _module_names(folder, options.model)
    prompts = _json(folder, "config_sentence_transformers.json").get("prompts") or {}
    if not isinstance(prompts, dict) or not all(isinstance(prompt, str | None) for prompt in prompts.values()):
        raise SetupError(
            f"{options.model}: prompts in config_sentence_transformers.json do not map names to texts; give "
            "--query-prefix and --passage-prefix with a corrected file."
        )
    text_form: TextForm = options.text_form or ("pair" if _dpr_class(folder) else "plain")
    query, passage = options.query_prefix, options.passage_prefix
    facts = {
        "name": model_name(options.model, folder),
        "tokenizer_sha256": digest_of([os.path.join(folder, _TOKENIZER)]),
        "text_form": text_form,
        "normalisation": "l2"
        if (modules is None and text_form == "plain") or "Normalize" in (modules or ())
        else "none",
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
        if text_form != "blink":  # which truncates both sides of a mention
            tokenizer.enable_truncation(limit)
        opened = (_OnnxEncoder if form == "onnx" else _TorchEncoder)(folder, options)
        weights = digest_of(weight_files(folder, form)) if form == "onnx" else model_sha256(folder, form)
        own = {"pooling": opened.pooling, "max_tokens": limit, "weights_sha256": weights}
        compute = opened.encode
        computed = {"device": opened.device.partition(":")[0], "texts_at_once": opened.n_together}
    libraries = [import_module(name) for name in (*_LIBRARIES[form], "tokenizers")]
    versions = {library.__name__: library.__version__ for library in libraries}
    return Encoder(tokenizer, compute, facts={**facts, "form": form, **own, "versions": versions}, computed=computed)


def _dpr_class(folder: str) -> str | None:
    """Returns the transformers class of a DPR encoder; None for any other model."""
    said = _json(folder, "config.json")
    names = said.get("architectures")
    name = names[0] if isinstance(names, list) and names else None
    return name if said.get("model_type") == "dpr" and name in _DPR_CLASSES else None


def _form(folder: str) -> Literal["onnx", "torch", "static"]:
    if onnx_path(folder) is not None:
        return "onnx"
    return "static" if _json(folder, "config.json").get("model_type", "model2vec") == "model2vec" else "torch"


_Compute = Callable[[Sequence[Sequence[int]]], Vectors]
"""Computes the vectors of texts that are given as tokens."""


class _Transformer(Computer, Protocol):
    """A transformer whose tokens are pooled immediately after each batch."""

    pooling: Pooling | Literal["model"]
    n_together: int  # number of texts in a batch

    def encode(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        groups = like_lengths(dict(enumerate(map(len, tokens))), lambda _, n, longest: n < self.n_together)
        found = self.outputs([_padded([tokens[place] for place in group]) for group in groups])
        vectors = np.empty((len(tokens), found[0].shape[1] if found else 0), np.float32)
        for group, own in zip(groups, found, strict=True):
            vectors[group] = own
        return vectors

    def _pooled(self, tokens: Any, mask: Any) -> Any:
        """Returns the vectors of texts, pooled from the vectors of their tokens with NumPy or PyTorch."""
        if self.pooling == "mean":
            return (tokens * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1)[:, None]
        return tokens[:, 0] if self.pooling == "cls" else tokens


class _OnnxEncoder(OnnxComputer, _Transformer):
    def __init__(self, folder: str, options: EncoderOptions) -> None:
        super().__init__(folder, options.device)
        if odd := sorted({*self._names} - {"input_ids", "attention_mask", "token_type_ids"}):
            raise SetupError(
                f"{options.model}: its model.onnx needs the input {odd[0]!r}, which is not computed from a "
                "text; export only the encoder."
            )
        pools_itself = len(self._session.get_outputs()[0].shape) == 2
        if options.pooling == "pooler" and not pools_itself:
            raise SetupError(f"{options.model}: its model.onnx has no pooler as its first output; export it with one.")
        self.pooling = "model" if pools_itself else _pooling(folder, options)
        self.n_together = 1 if self.device == "cpu" or self.form.is_quantised else GPU_BATCH

    def _computed(self, arrays: Arrays) -> Outputs:
        found = super()._computed(arrays)
        if found.ndim != (2 if self.pooling == "model" else 3) or len(found) != len(arrays["input_ids"]):
            raise SetupError(f"{self._path}: its first output has no vector for each text; export only the encoder.")
        pooled: Outputs = self._pooled(found, arrays["attention_mask"].astype(np.float32))
        return pooled


class _TorchEncoder(TorchComputer, _Transformer):
    head = ""
    reads_first_token = False

    def __init__(self, folder: str, options: EncoderOptions) -> None:
        self.pooling = _pooling(folder, options)
        super().__init__(folder, options.device)
        self.n_together = 1 if self.device == "cpu" else GPU_BATCH

    def _model_class(self, folder: str) -> str:
        return _dpr_class(folder) or super()._model_class(folder)

    def _needs(self, weight: str) -> bool:
        return self.pooling == "pooler" or "pooler" not in weight

    def _outcome(self, found: Any, given: Mapping[str, Any]) -> Any:
        if self.pooling == "pooler":
            return found.pooler_output
        return self._pooled(found.last_hidden_state, given["attention_mask"])


def _padded(rows: Sequence[Sequence[int]]) -> Arrays:
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)], mask[place, : len(row)] = row, 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def _static(folder: str, tokenizer: Any, options: EncoderOptions) -> tuple[_Compute, dict[str, Any]]:
    """Returns a function that averages a table's vectors over the tokens of a text, ignoring unknown and special
    tokens."""
    path = os.path.join(folder, _STATIC)
    if not os.path.isfile(path):
        raise SetupError(f"{options.model}: has neither model.onnx nor {_STATIC}; give the folder of an encoder.")
    if (
        options.pooling in ("cls", "pooler")
        or options.max_tokens is not None
        or options.text_form not in (None, "plain")
    ):
        raise SetupError(
            f"{options.model}: static vectors are a mean of all tokens; leave out --pooling, --text-form and "
            "--max-tokens."
        )
    from safetensors.numpy import load_file

    with opening(options.model, f"its {_STATIC} cannot be read"):
        tensors = load_file(path)
    table = tensors.get("embeddings", tensors.get("embedding.weight"))
    if table is None or table.ndim != 2:
        raise SetupError(
            f"{options.model}: {_STATIC} is not a table of static vectors, and no config.json names a transformer."
        )
    mapping, weights = tensors.get("mapping"), tensors.get("weights")
    n_tokens = max(tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1
    rows = np.arange(n_tokens) if mapping is None else mapping
    is_whole = rows.ndim == 1 and len(rows) >= n_tokens and np.issubdtype(rows.dtype, np.integer)
    if not is_whole or (n_tokens and not 0 <= rows.min() <= rows.max() < len(table)):
        raise SetupError(
            f"{options.model}: {_STATIC} has no vector for some tokens of {_TOKENIZER}; download the model again."
        )
    if weights is not None and (weights.ndim != 1 or len(weights) < n_tokens):
        raise SetupError(
            f"{options.model}: {_STATIC} has no weight for some tokens of {_TOKENIZER}; download the model again."
        )
    words = json.loads(tokenizer.to_str())["model"]
    unknown = tokenizer.token_to_id(words["unk_token"]) if words.get("unk_token") else words.get("unk_id")

    def compute(tokens: Sequence[Sequence[int]]) -> Vectors:
        vectors = np.zeros((len(tokens), table.shape[1]), np.float32)
        for place, row in enumerate(tokens):
            known = np.array([token_id for token_id in row if token_id != unknown], np.int64)
            if len(known):
                rows = table[known if mapping is None else mapping[known]].astype(np.float32)
                vectors[place] = (rows if weights is None else rows * weights[known, None]).mean(axis=0)
        return vectors

    return compute, {"pooling": "mean", "max_tokens": None, "weights_sha256": digest_of([path])}


def _local_folder(model: str) -> str:
    """Returns a local folder of the model; a model in a store is copied, once for all processes of a machine."""
    model = local_model(model)
    if not is_local(model):
        remote = Folder.of(model)
        names = {name for pattern in _FILES for name in remote.files(pattern)}
        if any(name.endswith("model.onnx") for name in names):
            names.discard(_STATIC)
        model = local_copy(remote, sorted(names)) if _TOKENIZER in names else model
    if not os.path.isfile(os.path.join(model, _TOKENIZER)):
        raise SetupError(
            f"{model}: no such folder, or no {_TOKENIZER} in it; give the folder of an encoder, or its name on the hub."
        )
    return model


def _json(folder: str, name: str) -> dict[str, Any]:
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return {}
    with open(path, "rb") as file:
        try:
            value = json.load(file)
        except (ValueError, RecursionError) as error:
            raise SetupError(f"{path}: not JSON ({error!s:.200}); download the model again.") from error
    return value if isinstance(value, dict) else {"": value}


def _module_names(folder: str, name: str) -> set[str] | None:
    """Returns the module types of a sentence-transformers model; None if it does not list them."""
    modules = _json(folder, "modules.json").get("")
    if modules is None:
        return None
    if not isinstance(modules, list) or not all(isinstance(module, dict) for module in modules):
        raise SetupError(f"{name}: modules.json is not a list of modules; download the model again.")
    names = {str(module.get("type")).rpartition(".")[2] for module in modules}
    if odd := sorted(names - _MODULES):
        raise SetupError(
            f"{name} has a module {odd[0]}, which is not supported; supported are {', '.join(sorted(_MODULES))}."
        )
    return names


def _pooling(folder: str, options: EncoderOptions) -> Pooling:
    """Returns how tokens are pooled, by the options or else by the model's files."""
    if _dpr_class(folder):
        if options.pooling not in (None, "pooler"):
            raise SetupError(f"{options.model}: DPR uses the vectors of its pooler; leave out --pooling.")
        return "pooler"
    if options.pooling is not None:
        return options.pooling
    said = _json(folder, "1_Pooling/config.json")
    modes = [name for name, value in said.items() if name.startswith("pooling_mode_") and value is True]
    if not modes:
        raise SetupError(
            f"{options.model}: does not state how its tokens are pooled; give --pooling cls or --pooling mean."
        )
    if len(modes) > 1 or modes[0] not in _POOLING_MODES:
        raise SetupError(
            f"{options.model}: is pooled by {' and '.join(modes)}; supported are {' or '.join(_POOLING_MODES)}."
        )
    return _POOLING_MODES[modes[0]]


def _max_tokens(folder: str, truncation: Mapping[str, Any] | None, options: EncoderOptions) -> int:
    said = [value for name, key in _LIMITS if (value := _json(folder, name).get(key)) is not None]
    if odd := [
        value for value in said if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < _MOST
    ]:
        raise SetupError(
            f"{options.model}: its limit of {odd[0]!r:.100} tokens is not a number of tokens; download the model again."
        )
    limit = options.max_tokens or min(said, default=(truncation or {}).get("max_length"))
    if limit is None:
        raise SetupError(f"{options.model}: does not state its limit of tokens; give --max-tokens, such as 512.")
    return int(limit)
