"""Cross-encoders that judge pairs of texts, run with PyTorch or ONNX Runtime, and their export to ONNX.

Only file formats that cannot run code are read.

Pairs are converted to batches of numbers. Premises are truncated if necessary, hypotheses never. torch, transformers
and onnxruntime are installed with the extra ``nli`` and imported when a model is opened.
"""

from __future__ import annotations

import importlib
import inspect
import mmap
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kbsource.errors import SetupError
from mapping.entail.signal import (
    DECIMALS,
    MAX_PAIR_TOKENS,
    MAX_TOKENS,
    ModelLabels,
    ModelOptions,
    Pair,
    Precision,
    UnjudgedPair,
    Verdict,
    check_layers,
    digest_of,
    load_library,
    model_folder,
    onnx_path,
    opening,
    read_labels,
    weight_files,
)
from mapping.hub import ONNX_FILES, model_name

Arrays = dict[str, npt.NDArray[np.int64]]
"""Inputs of a model by name. The shape of each is pairs × tokens."""

_Tokens = dict[str, list[int]]
_LEAST_FILLED = 0.9
"""Minimum length of a pair as a share of the longest pair in its batch. All pairs are padded to the length of the
longest, and padding costs as much time as text.
"""
_LEAST_PREMISE = 1
"""Minimum number of tokens that remain of a truncated premise."""


class GraphForm(NamedTuple):
    """The batches that an ONNX graph accepts: the number of pairs, and the number of tokens per pair; None for any."""

    n_pairs: int | None = None
    n_tokens: int | None = None
    is_quantised: bool = False
    """True if the graph is quantised at run time. Then the output for a pair depends on the other pairs in its
    batch.
    """


_ANY = GraphForm()
# These operators derive the number range from the whole batch.
_DYNAMIC = (
    "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul",
    "DynamicQuantizeLSTM",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "ConvInteger",
)
_ONNX_FAULTS = (
    *("Fail", "InvalidArgument", "InvalidProtobuf", "InvalidGraph", "NoSuchFile"),
    *("NotImplemented", "RuntimeException", "EPFail"),
)
_OP_TYPE = b"\x22"
"""Tag of a node's operator in onnx.proto, followed by length and name."""


class Batch(NamedTuple):
    """Pairs that pass through a model together."""

    places: tuple[int, ...]  # positions of the pairs in the list they come from
    arrays: Arrays
    """The inputs of these pairs, padded to the longest pair or to the size that the model requires. If the model
    requires more pairs, the last pair is repeated.
    """


class PairEncoder:
    """Encodes pairs with a fast tokenizer of transformers, which reports the offsets of tokens in the text.

    ``batch_tokens`` is the maximum number of tokens in a batch, including padding. A pair with more tokens is a
    separate batch. NLI models were trained with the premise first, ranking models with the query first.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_tokens: int,
        batch_pairs: int,
        batch_tokens: int | None = None,
        form: GraphForm = _ANY,
        is_premise_first: bool = True,
    ) -> None:
        self._tokenizer = tokenizer
        self._is_premise_first = is_premise_first
        self._max_tokens = max_tokens
        self._batch_pairs = batch_pairs if form.n_pairs is None else min(batch_pairs, form.n_pairs)
        self._batch_tokens = batch_pairs * max_tokens if batch_tokens is None else batch_tokens
        if form.is_quantised:
            self._batch_tokens = 1
        self._form = form
        self._n_marks = tokenizer.num_special_tokens_to_add(pair=True)

    def encode(self, pairs: Sequence[Pair]) -> tuple[list[Batch], dict[int, UnjudgedPair]]:
        """Returns batches of pairs of similar length, and the pairs that cannot be judged, by position in the list.

        Pairs are sorted by descending length, then by position in the list. The batches therefore depend only on the
        list, and contain little padding.
        """
        refused: dict[int, UnjudgedPair] = {}
        encoded: dict[int, _Tokens] = {}
        # The list is encoded in parts, because the tokenizer's output takes much more memory than the batches.
        for start in range(0, len(pairs), self._batch_pairs):
            for place, found in enumerate(self._encoded(pairs[start : start + self._batch_pairs]), start=start):
                if isinstance(found, UnjudgedPair):
                    refused[place] = found
                else:
                    encoded[place] = found
        lengths = {place: len(tokens["input_ids"]) for place, tokens in encoded.items()}
        groups = like_lengths(lengths, self._fits)
        return [Batch(tuple(group), self._padded([encoded[place] for place in group])) for group in groups], refused

    def _fits(self, length: int, n_pairs: int, longest: int) -> bool:
        """Returns whether another pair of that length fits into a batch of ``n_pairs`` pairs, of which the longest has
        ``longest`` tokens."""
        n_after = n_pairs + 1
        return (
            n_after <= self._batch_pairs
            and n_after * longest <= self._batch_tokens
            and length >= _LEAST_FILLED * longest
        )

    def _encoded(self, pairs: Sequence[Pair]) -> Iterator[_Tokens | UnjudgedPair]:
        rows = self._tokens([pair.premise for pair in pairs], [pair.hypothesis for pair in pairs], verbose=False)
        for number, pair in enumerate(pairs):
            if not pair.hypothesis.strip():
                yield UnjudgedPair("empty_hypothesis", "")
            elif not pair.premise.strip():
                yield UnjudgedPair("empty_premise", "")
            elif len(rows["input_ids"][number]) <= self._max_tokens:
                yield {name: values[number] for name, values in rows.items()}
            else:
                yield self._cut(pair)

    def _cut(self, pair: Pair) -> _Tokens | UnjudgedPair:
        """Returns the tokens of a pair that is too long, shortened to the limit. The tokens of the premise that are
        farthest from its core are removed first."""
        n_hypothesis = len(self._tokenizer(pair.hypothesis, add_special_tokens=False, verbose=False)["input_ids"])
        n_room = self._max_tokens - self._n_marks - n_hypothesis
        if n_room < _LEAST_PREMISE:
            n_most = self._max_tokens - self._n_marks - _LEAST_PREMISE
            return UnjudgedPair("hypothesis_too_long", f"{n_hypothesis} tokens; {n_most} fit")
        found = self._tokenizer(pair.premise, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets: list[tuple[int, int]] = found["offset_mapping"]
        start, end = pair.core or (0, len(pair.premise))
        in_core = next((number for number, (_, stop) in enumerate(offsets) if stop > start), len(offsets) - 1)
        last = next((number for number, (begin, _) in enumerate(offsets) if begin >= end), len(offsets))
        first, last = _window(in_core, max(last, in_core + 1), n_room, len(offsets))
        # A part of a word, encoded by itself, may become several tokens.
        words = found.word_ids()
        while 0 < first < in_core and words[first] == words[first - 1]:
            first += 1
        premise = pair.premise[offsets[first][0] : offsets[last - 1][1]]
        # Without its context the text may be a token longer, so the tokenizer truncates it once more.
        cut = "only_first" if self._is_premise_first else "only_second"
        return dict(self._tokens(premise, pair.hypothesis, truncation=cut, max_length=self._max_tokens))

    def _tokens(self, premises: Any, hypotheses: Any, **how: Any) -> Any:
        texts = (premises, hypotheses) if self._is_premise_first else (hypotheses, premises)
        return self._tokenizer(*texts, **how)

    def _padded(self, rows: list[_Tokens]) -> Arrays:
        form = self._form
        filled = [*rows, *rows[-1:] * ((form.n_pairs or 0) - len(rows))]
        padding = "longest" if form.n_tokens is None else "max_length"
        padded = self._tokenizer.pad(filled, padding=padding, max_length=form.n_tokens, return_tensors="np")
        return {name: np.asarray(values, dtype=np.int64) for name, values in padded.items()}


def like_lengths(lengths: Mapping[int, int], fits: Callable[[int, int, int], bool]) -> list[list[int]]:
    """Returns positions in groups of similar length, the longest first; equal lengths keep their order.

    Args:
        fits: called with a length, the size of a group and the group's longest length; returns whether an element of
            that length fits into the group.
    """
    groups: list[list[int]] = []
    for place in sorted(lengths, key=lambda place: -lengths[place]):
        if groups and fits(lengths[place], len(groups[-1]), lengths[groups[-1][0]]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _window(first: int, last: int, n_room: int, n_all: int) -> tuple[int, int]:
    """Returns which tokens of a premise to keep: its core, and as many tokens on either side as fit. If the core does
    not fit, its beginning is kept.

    >>> _window(4, 6, 4, 10), _window(0, 2, 4, 10), _window(9, 10, 4, 10), _window(2, 9, 4, 10)
    ((3, 7), (0, 4), (6, 10), (2, 6))
    """
    n_free = n_room - (last - first)
    if n_free <= 0:
        return first, first + n_room
    start = min(max(0, first - n_free // 2), n_all - n_room)
    return start, start + n_room


FIRST_TOKEN_MODELS = frozenset(
    ("bert", "camembert", "deberta", "deberta-v2", "electra", "ernie", "roberta", "xlm-roberta")
)
"""``model_type`` of models that classify by only the first token of their last layer."""


def keep_first_token(model: Any) -> bool:
    """Computes only the first token after the attention of the last layer, because no other token is used.

    This saves three quarters of the work of that layer: 12 % for a model of six layers, 6 % for one of twelve.

    Returns:
        True if this was possible. It is not possible for other architectures, or for a model with only one layer,
            because DeBERTa may still attend to neighbours after the first layer.
    """
    if model.config.model_type not in FIRST_TOKEN_MODELS:
        return False
    layers = model.base_model.encoder.layer
    if len(layers) < 2:
        return False
    # The module that adds the attention's output to the layer's input: both are pairs × tokens × size.
    layers[-1].attention.output.register_forward_pre_hook(_first_tokens)
    return True


def _first_tokens(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(values[:, :1] for values in inputs)


Outputs = npt.NDArray[np.float32]


class Computer(Protocol):
    """A loaded model, its device, and the batches that it accepts."""

    device: str
    form: GraphForm

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """Returns the logits, pairs × labels, of each batch, in order.

        On the CPU, one batch per core is computed at the same time, each by a single thread. Threads that share a batch
        would wait for each other in every layer, and wait long if another program uses their core. With one thread per
        batch, the numbers do not depend on the number of cores.
        """
        ...


def check_whole(model: str, missing: Collection[str]) -> None:
    """Raises SetupError if a model lacks weights, which PyTorch would initialise at random."""
    if missing:
        raise SetupError(
            f"{model}: lacks {len(missing)} of its weights, such as {min(missing)}; download the model again."
        )


_ANY_TOKENS = np.zeros((1, 2), np.int64)


class TorchComputer:
    """Runs safetensors weights with PyTorch."""

    form = _ANY

    head = "ForSequenceClassification"
    """Suffix after ``AutoModel`` in the name of the class that opens the model."""
    reads_first_token = True
    """True if the outputs depend only on the first token of the last layer."""

    def __init__(self, folder: str, device: str, precision: Precision = "float32") -> None:
        self._n_threads = count_threads()
        self._torch = load_library("torch", purpose="--backend torch")
        transformers = load_library("transformers", purpose="--backend torch")
        transformers.logging.set_verbosity_error()  # it lists every weight that is not needed
        transformers.logging.disable_progress_bar()
        self.device = torch_device(self._torch, device)
        check_layers(folder)
        with opening(folder, "its weights cannot be opened"):
            model, found = getattr(transformers, self._model_class(folder)).from_pretrained(
                folder,
                use_safetensors=True,
                trust_remote_code=False,
                local_files_only=True,
                dtype=self._torch.float32,
                output_loading_info=True,
            )
        check_whole(folder, [name for name in found["missing_keys"] if self._needs(name)])
        self._model = model.to(self.device).eval()
        if self.reads_first_token:
            keep_first_token(self._model)
        self._names = inspect.signature(model.forward).parameters
        self._dtype = getattr(self._torch, precision)
        is_lower = precision != "float32" and self.device != "cpu"
        if is_lower and not self._torch.cuda.is_bf16_supported(including_emulation=False):
            raise SetupError("--precision bfloat16: this GPU has no instructions for it. Use --precision float32.")
        with opening(folder, "it cannot be run"):  # a config may contradict the weights
            self._computed({"input_ids": _ANY_TOKENS, "attention_mask": np.ones_like(_ANY_TOKENS)})

    def _model_class(self, folder: str) -> str:
        """Returns the transformers class that opens the model of a folder."""
        return f"AutoModel{self.head}"

    def _needs(self, weight: str) -> bool:
        """Returns whether the outputs depend on a weight."""
        return True

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """Returns the logits, pairs × labels, of each batch, in order."""
        if self.device != "cpu":
            return [self._computed(batch) for batch in batches]
        # The setting applies to the threads of the pool and to later ones, not to the current one.
        alone = partial(self._torch.set_num_threads, 1)
        return compute_at_once(self._computed, batches, n_threads=self._n_threads, prepare=alone)

    def _computed(self, arrays: Arrays) -> Outputs:
        torch = self._torch
        is_lower = self._dtype != torch.float32
        kind = self.device.partition(":")[0]
        with torch.inference_mode(), torch.autocast(kind, dtype=self._dtype) if is_lower else nullcontext():
            tensors = {
                name: torch.from_numpy(values).to(self.device) for name, values in arrays.items() if name in self._names
            }
            found: Outputs = self._outcome(self._model(**tensors), tensors).float().cpu().numpy()
        return found

    def _outcome(self, found: Any, _given: Mapping[str, Any]) -> Any:
        return found.logits


class OnnxComputer:
    """Runs an exported model with ONNX Runtime."""

    def __init__(self, folder: str, device: str) -> None:
        self._n_threads = count_threads()
        runtime = load_library("onnxruntime", purpose="--backend onnx")
        path = onnx_path(folder)
        if path is None:
            raise SetupError(
                f"{folder} has no {' or '.join(ONNX_FILES)}, which --backend onnx needs. Make such a file: "
                "kbsource nli --model MODEL --export-onnx FOLDER, then --model FOLDER."
            )
        self.device, provider = _onnx_device(runtime, device)
        runtime.disable_telemetry_events()  # it may have been imported before kbsource set its switch
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = 1
        faults = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        self._path, self._faults = path, tuple(getattr(faults, name) for name in _ONNX_FAULTS)
        try:
            self._session = runtime.InferenceSession(path, options, providers=[provider])
        except self._faults as error:
            raise SetupError(f"{path}: its weights cannot be opened: {error!s:.300}") from error
        shapes = {given.name: given.shape for given in self._session.get_inputs()}
        self._names = list(shapes)
        sizes = [size if isinstance(size, int) else None for size in shapes.get("input_ids", ())]
        n_pairs, n_tokens = sizes if len(sizes) == 2 else (None, None)
        self.form = GraphForm(n_pairs, n_tokens, _is_quantised(path))

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        if self.device != "cpu":
            return [self._computed(batch) for batch in batches]
        return compute_at_once(self._computed, batches, n_threads=self._n_threads)

    def _computed(self, arrays: Arrays) -> Outputs:
        if missing := sorted({*self._names} - arrays.keys()):
            raise SetupError(
                f"{self._path}: needs the input {missing[0]!r}, which its tokenizer does not produce; export it again."
            )
        try:
            found: Outputs = self._session.run(None, {name: arrays[name] for name in self._names})[0]
        except self._faults as error:
            raise SetupError(f"{self._path}: cannot process the output of its tokenizer: {error!s:.300}") from error
        return found


def _is_quantised(path: str) -> bool:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(_OP_TYPE + bytes([len(name)]) + name.encode()) >= 0 for name in _DYNAMIC)


def count_threads() -> int:
    """Returns how many batches the CPU computes at the same time: ``OMP_NUM_THREADS`` if it is set, otherwise the
    number of cores that this process may use.

    Raises:
        SetupError: the variable is not a number of threads.
    """
    # OpenMP's format is a list with one number per level of nesting.
    asked = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if not asked:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not asked.isdecimal() or int(asked) < 1:
        raise SetupError(f"OMP_NUM_THREADS is {asked}; give a number of threads, at least 1.")
    return int(asked)


def compute_at_once(
    compute: Callable[[Arrays], Outputs],
    batches: Sequence[Arrays],
    *,
    n_threads: int,
    prepare: Callable[[], None] | None = None,
) -> list[Outputs]:
    """Returns the outputs of each batch in order, computed by this number of threads. Each thread first calls
    ``prepare``.
    """
    # Threads end with the list: a process may be forked between two lists, and forked processes have no threads.
    with ThreadPoolExecutor(n_threads, initializer=prepare) as pool:
        return list(pool.map(compute, batches))


def torch_device(torch: Any, device: str) -> str:
    """Returns the requested device, initialised; raises SetupError if it does not exist."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not device.startswith("cuda"):
        return device
    # cuDNN's attention plans every batch shape anew, which takes longer than the batch.
    torch.backends.cuda.enable_cudnn_sdp(False)
    number = int(device.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        raise SetupError(f"--device {device}: torch sees {torch.cuda.device_count()} GPUs here. Use --device cpu.")
    return f"cuda:{number}"


def _onnx_device(runtime: Any, device: str) -> tuple[str, Any]:
    has_gpu = "CUDAExecutionProvider" in runtime.get_available_providers()
    if device == "cpu" or (device == "auto" and not has_gpu):
        return "cpu", "CPUExecutionProvider"
    if not has_gpu:
        raise SetupError(
            f"--device {device}: this onnxruntime has no CUDA. Install onnxruntime-gpu instead, or use --device cpu."
        )
    number = int(device.partition(":")[2] or 0)
    # TF32 would lose three digits of the outputs.
    return f"cuda:{number}", ("CUDAExecutionProvider", {"device_id": number, "use_tf32": 0})


_UNBOUNDED = 10**6
"""Tokenizers without a limit report a huge number."""
CPU_BATCH_TOKENS = 512
"""Maximum number of tokens in a batch on the CPU. Larger batches do not make a core faster. Small batches keep all
cores busy to the end, and need little memory per layer.
"""


class PairModel:
    """A Hugging Face cross-encoder. Create it with ``open_pair_model``."""

    def __init__(self, encoder: PairEncoder, computer: Computer) -> None:
        self._encoder = encoder
        self._computer = computer

    @property
    def device(self) -> str:
        """The device it runs on."""
        return self._computer.device

    def outputs(self, pairs: Sequence[Pair]) -> tuple[Outputs, dict[int, UnjudgedPair]]:
        """Returns the logits, pairs × labels, and the pairs that could not be judged, by position. Their rows are 0.

        Repeated pairs are judged once. Batches depend only on the list, and so do the numbers.
        """
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        batches, refused = self._encoder.encode(list(distinct))
        computed = self._computer.outputs([batch.arrays for batch in batches])
        if any(
            output.ndim != 2 or len(output) < len(batch.places) for output, batch in zip(computed, batches, strict=True)
        ):
            raise SetupError(
                "The model does not return one row of outputs for each pair, so it may be an encoder; name a "
                "cross-encoder."
            )
        found = np.zeros((len(distinct), computed[0].shape[1] if computed else 0), np.float32)
        for batch, own in zip(batches, computed, strict=True):
            found[list(batch.places)] = own[: len(batch.places)]
        rows = [distinct[pair] for pair in pairs]
        return found[rows], {place: refused[row] for place, row in enumerate(rows) if row in refused}


def check_outputs(outputs: Outputs, n_named: int) -> None:
    """Raises SetupError if the number of a model's outputs differs from its config."""
    if outputs.shape[1] != n_named:
        raise SetupError(
            f"The model has {outputs.shape[1]} outputs, and its config.json names {n_named}; download the model again."
        )


class CrossEncoder(PairModel):
    """A cross-encoder that judges entailment (an ``EntailmentModel``). Create it with ``open_model``."""

    def __init__(self, encoder: PairEncoder, computer: Computer, labels: ModelLabels) -> None:
        super().__init__(encoder, computer)
        self._labels = labels

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        """Returns a verdict for each pair, in order, or the reason why it could not be judged."""
        outputs, refused = self.outputs(pairs)
        verdicts = self._verdicts(outputs) if len(refused) < len(pairs) else []
        return [refused[place] if place in refused else verdicts[place] for place in range(len(pairs))]

    def _verdicts(self, outputs: Outputs) -> list[Verdict]:
        labels = self._labels
        check_outputs(outputs, labels.n_outputs)
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


class ModelFiles(NamedTuple):
    """A model's files except for its weights."""

    folder: str
    config: Any
    tokenizer: Any


def open_model(options: ModelOptions) -> CrossEncoder:
    """Opens a cross-encoder that judges entailment.

    Raises:
        SetupError: the model, its labels, the backend or the device is missing or unsuitable.
    """
    files = read_model_files(options)
    labels = _labels(options, files)
    return CrossEncoder(*_opened(options, files), labels)


def open_pair_model(options: ModelOptions) -> tuple[PairModel, dict[int, str]]:
    """Opens a cross-encoder that reads the hypothesis first, such as a reranker. Returns it with the names of its
    outputs, whatever they mean.

    Raises:
        SetupError: as ``open_model``, except for labels.
    """
    files = read_model_files(options)
    return PairModel(*_opened(options, files, is_premise_first=False)), files.config.id2label


def _opened(options: ModelOptions, files: ModelFiles, *, is_premise_first: bool = True) -> tuple[PairEncoder, Computer]:
    computer: Computer
    if options.backend == "torch":
        computer = TorchComputer(files.folder, options.device, options.precision)
    else:
        computer = OnnxComputer(files.folder, options.device)
    encoder = PairEncoder(
        files.tokenizer,
        max_tokens=max_tokens_of(options, files, computer.form),
        batch_pairs=options.batch_pairs,
        batch_tokens=CPU_BATCH_TOKENS if computer.device == "cpu" else None,
        form=computer.form,
        is_premise_first=is_premise_first,
    )
    return encoder, computer


def _labels(options: ModelOptions, files: ModelFiles) -> ModelLabels:
    return read_labels(files.config.id2label, options.labels, model=options.model)


@lru_cache(maxsize=1)
def model_facts(options: ModelOptions) -> dict[str, Any]:
    """Returns everything that determines a model's answers, as JSON values for a manifest: hashes of its files, options
    and versions.

    Files of weights are hashed without being opened. This takes seconds for a large model, so the last result is
    cached.

    Raises:
        SetupError: as ``open_model``, except for PyTorch weights and the device.
    """
    files = read_model_files(options)
    is_torch = options.backend == "torch"
    form = _ANY if is_torch else OnnxComputer(files.folder, "cpu").form
    return {
        "model": model_name(options.model, files.folder),
        "weights_sha256": digest_of(weight_files(files.folder, options.backend)),
        "backend": options.backend,
        "precision": options.precision,
        "labels": _labels(options, files)._asdict(),
        "max_tokens": max_tokens_of(options, files, form),
        "batch_pairs": options.batch_pairs,
        "versions": {
            name: load_library(name, purpose="an NLI model").__version__
            for name in ("transformers", "tokenizers", "torch" if is_torch else "onnxruntime")
        },
    }


def read_model_files(options: ModelOptions) -> ModelFiles:
    """Reads a model's config and tokenizer.

    Raises:
        SetupError: they are missing or damaged, or there is no tokenizer.json.
    """
    folder = model_folder(options)
    # Otherwise it reports that PyTorch is missing, which an exported model does not need.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    transformers = load_library("transformers", purpose="an NLI model")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with opening(options.model, "it cannot be opened as a cross-encoder"):
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        is_config = isinstance(config.id2label, dict) and _is_count(getattr(config, "max_position_embeddings", None))
    if not is_config:
        raise SetupError(
            f"{options.model}: its config.json has values of other types than transformers writes; download the model "
            f"again."
        )
    with opening(options.model, "its tokenizer cannot be read"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not getattr(tokenizer, "is_fast", False) or tokenizer.pad_token is None:
        raise SetupError(f"{options.model}: needs a fast tokenizer (tokenizer.json) that has a padding token.")
    check_length(options.model, tokenizer)
    return ModelFiles(folder, config, tokenizer)


def check_length(model: str, tokenizer: Any) -> None:
    """Raises SetupError if a tokenizer's maximum number of tokens is not a number."""
    if not _is_count(tokenizer.model_max_length):
        raise SetupError(
            f"{model}: model_max_length in its tokenizer_config.json is {tokenizer.model_max_length!r:.100}, "
            "which is not a number of tokens; correct it."
        )


def _is_count(value: Any) -> bool:
    """Returns whether a model's value for a number of tokens is a number, or missing."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0)


def max_tokens_of(options: ModelOptions, files: ModelFiles, form: GraphForm = _ANY) -> int:
    """Returns the number of tokens of a pair that a model accepts, up to the limit in the options.

    Raises:
        SetupError: the options request more.
    """
    config = files.config
    n_positions: int | None = getattr(config, "max_position_embeddings", None)
    # RoBERTa and similar models count positions from the one after the padding position.
    if n_positions is not None and "roberta" in (config.model_type or "") and config.pad_token_id is not None:
        n_positions -= config.pad_token_id + 1
    known = (files.tokenizer.model_max_length, n_positions, form.n_tokens)
    limits = [limit for limit in known if limit and limit < _UNBOUNDED]
    limit = min(limits, default=options.max_tokens)
    if options.max_tokens > limit and options.max_tokens not in (MAX_TOKENS, MAX_PAIR_TOKENS):
        raise SetupError(f"--max-tokens is {options.max_tokens}; {options.model} accepts {limit}.")
    return min(options.max_tokens, limit)


def export_onnx(options: ModelOptions, target: str) -> str:
    """Exports a model as ONNX, with config and tokenizer, into a new or empty folder; returns the path of
    ``model.onnx``.

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
    unfinished = f"{target.rstrip('/')}.partial"
    shutil.rmtree(unfinished, ignore_errors=True)
    os.makedirs(unfinished)
    config.save_pretrained(unfinished)
    tokenizer.save_pretrained(unfinished)
    with torch.inference_mode():
        torch.onnx.export(
            model,
            kwargs={name: sample[name] for name in names},
            f=os.path.join(unfinished, "model.onnx"),
            input_names=names,
            output_names=["logits"],
            dynamic_shapes=dict.fromkeys(names, axes),
            dynamo=True,
            verbose=False,
        )
    if os.path.isdir(target):
        os.rmdir(target)
    os.rename(unfinished, target)
    return os.path.join(target, "model.onnx")
