"""A cross-encoder that judges pairs of texts by PyTorch or ONNX Runtime, from files that run no code; its ONNX export.

Pairs become batches of numbers: premises are cut where they must be, hypotheses never. torch, transformers and
onnxruntime come with the extra ``nli`` and are imported when a model is opened.
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
from kbsource.files import is_local
from mapping.entail.signal import (
    DECIMALS,
    MAX_PAIR_TOKENS,
    MAX_TOKENS,
    ONNX_FILES,
    ModelLabels,
    ModelOptions,
    Pair,
    Precision,
    Refused,
    Verdict,
    digest_of,
    load_library,
    model_folder,
    onnx_path,
    opening,
    read_labels,
    weight_files,
)

Arrays = dict[str, npt.NDArray[np.int64]]
"""Inputs of a model by name, each pairs × tokens."""

_Tokens = dict[str, list[int]]
_LEAST_FILLED = 0.9
"""Length of a pair as a share of the longest in its batch: the rest of it would be padding, which costs as much."""
_LEAST_PREMISE = 1
"""Tokens of the premise that must be left."""


class GraphForm(NamedTuple):
    """What batches a graph takes: pairs and tokens of every one, None for any number."""

    n_pairs: int | None = None
    n_tokens: int | None = None
    is_quantised: bool = False
    """As it runs, so that what comes out for a pair depends on the others in the batch."""


_ANY = GraphForm()
# They take the range of numbers from the whole batch.
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
"""Tag of a node's operator in onnx.proto; behind it come length and name."""


class Batch(NamedTuple):
    """Pairs that go through a model at once."""

    places: tuple[int, ...]  # of the pairs in the list that they come from
    arrays: Arrays
    """Padded to the longest of them, or to what the model takes; rows behind those of the places are filled with the
    last one."""


class PairEncoder:
    """Encodes pairs with a fast tokenizer of transformers, which tells where tokens stand in the text.

    ``batch_tokens`` are the most in a batch, padding among them; a pair that has more is a batch of its own. NLI models
    were trained with the premise first, those that rank with what it is judged by, the query.
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

    def encode(self, pairs: Sequence[Pair]) -> tuple[list[Batch], dict[int, Refused]]:
        """Batches of pairs of like length, and why pairs are in none, by place.

        The longest come first, of equal length in the order of the list, so that the batches depend on the list
        alone; little of them is padding.
        """
        refused: dict[int, Refused] = {}
        encoded: dict[int, _Tokens] = {}
        # A piece at a time: what a tokenizer gives takes much more memory than the numbers that are kept of it.
        for start in range(0, len(pairs), self._batch_pairs):
            for place, found in enumerate(self._encoded(pairs[start : start + self._batch_pairs]), start=start):
                if isinstance(found, Refused):
                    refused[place] = found
                else:
                    encoded[place] = found
        lengths = {place: len(tokens["input_ids"]) for place, tokens in encoded.items()}
        groups = like_lengths(lengths, self._fits)
        return [Batch(tuple(group), self._padded([encoded[place] for place in group])) for group in groups], refused

    def _fits(self, length: int, n_pairs: int, longest: int) -> bool:
        """Whether one more pair of that length goes into a batch of so many, the longest of which came first."""
        n_after = n_pairs + 1
        return (
            n_after <= self._batch_pairs
            and n_after * longest <= self._batch_tokens
            and length >= _LEAST_FILLED * longest
        )

    def _encoded(self, pairs: Sequence[Pair]) -> Iterator[_Tokens | Refused]:
        rows = self._tokens([one.premise for one in pairs], [one.hypothesis for one in pairs], verbose=False)
        for number, pair in enumerate(pairs):
            if not pair.hypothesis.strip():
                yield Refused("empty_hypothesis", "")
            elif not pair.premise.strip():
                yield Refused("empty_premise", "")
            elif len(rows["input_ids"][number]) <= self._max_tokens:
                yield {name: values[number] for name, values in rows.items()}
            else:
                yield self._cut(pair)

    def _cut(self, pair: Pair) -> _Tokens | Refused:
        """The tokens of a pair that is too long: what is farthest from the core of its premise goes first."""
        n_hypothesis = len(self._tokenizer(pair.hypothesis, add_special_tokens=False, verbose=False)["input_ids"])
        n_room = self._max_tokens - self._n_marks - n_hypothesis
        if n_room < _LEAST_PREMISE:
            n_most = self._max_tokens - self._n_marks - _LEAST_PREMISE
            return Refused("hypothesis_too_long", f"{n_hypothesis} tokens; {n_most} fit")
        found = self._tokenizer(pair.premise, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets: list[tuple[int, int]] = found["offset_mapping"]
        start, end = pair.core or (0, len(pair.premise))
        in_core = next((number for number, (_, stop) in enumerate(offsets) if stop > start), len(offsets) - 1)
        last = next((number for number, (begin, _) in enumerate(offsets) if begin >= end), len(offsets))
        first, last = _window(in_core, max(last, in_core + 1), n_room, len(offsets))
        # A later piece of a word is no token by itself: alone it may come out as many.
        words = found.word_ids()
        while 0 < first < in_core and words[first] == words[first - 1]:
            first += 1
        premise = pair.premise[offsets[first][0] : offsets[last - 1][1]]
        # Away from its neighbours the text may come out a token longer: the tokenizer has the last word.
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
    """Places by groups of like length, the longest first, of one length in their order.

    Args:
        fits: whether one more of a length goes into a group of so many, the longest of which is so long.
    """
    groups: list[list[int]] = []
    for place in sorted(lengths, key=lambda place: -lengths[place]):
        if groups and fits(lengths[place], len(groups[-1]), lengths[groups[-1][0]]):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _window(first: int, last: int, n_room: int, n_all: int) -> tuple[int, int]:
    """The tokens that stay: from the core on, else the core with as much on either side as there is.

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
"""``model_type`` of those that classify by the first token of their last layer alone."""


def keep_first_token(model: Any) -> bool:
    """Lets only the first token past the attention of the last layer, as nothing else is read behind it.

    Three quarters of that layer's work is left out: 12 % of that of a model of six layers, 6 % of one of twelve.

    Returns:
        Whether that can be done: not for a model of another make, or of a single layer, behind which DeBERTa may still
        look at neighbours.
    """
    if model.config.model_type not in FIRST_TOKEN_MODELS:
        return False
    layers = model.base_model.encoder.layer
    if len(layers) < 2:
        return False
    # What adds the attention's outcome to the layer's input: both are pairs × tokens × size.
    layers[-1].attention.output.register_forward_pre_hook(_first_tokens)
    return True


def _first_tokens(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(values[:, :1] for values in inputs)


Outputs = npt.NDArray[np.float32]


class Computer(Protocol):
    """A loaded model, the device that it runs on, and the batches that it takes."""

    device: str
    form: GraphForm

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """The outputs before softmax, pairs × labels, of each batch in their order.

        On the CPU as many batches are computed at once as there are cores, each by one thread: threads that share a
        batch wait for each other in every layer, and where something else has their core they wait long. So the
        numbers do not depend on how many cores there are.
        """
        ...


def check_whole(model: str, missing: Collection[str]) -> None:
    """Raises SetupError: a model lacks weights, which PyTorch would draw at random."""
    if missing:
        raise SetupError(f"{model}: lacks {len(missing)} weights of its model, such as {min(missing)}; get it again.")


class TorchComputer:
    """Runs safetensors weights with PyTorch."""

    form = _ANY

    head = "ForSequenceClassification"
    """What follows ``AutoModel`` in the name of the class that opens it."""
    reads_first_token = True
    """Whether the outputs depend on the last layer's first token alone."""

    def __init__(self, folder: str, device: str, precision: Precision = "float32") -> None:
        self._n_threads = count_threads()
        self._torch = load_library("torch", purpose="--backend torch")
        transformers = load_library("transformers", purpose="--backend torch")
        transformers.logging.set_verbosity_error()  # it tells of every weight that is not needed
        transformers.logging.disable_progress_bar()
        self.device = torch_device(self._torch, device)
        with opening(folder, "these are no weights that can be opened"):
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

    def _model_class(self, folder: str) -> str:
        """The class of transformers that opens the model of a folder."""
        return f"AutoModel{self.head}"

    def _needs(self, weight: str) -> bool:
        """Whether the outputs depend on a weight."""
        return True

    def outputs(self, batches: Sequence[Arrays]) -> list[Outputs]:
        """The outputs before softmax, pairs × labels, of each batch in their order."""
        if self.device != "cpu":
            return [self._computed(batch) for batch in batches]
        # That holds for the threads of the pool and those that start later, not for the one that is here.
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
                f"{folder}: no {' or '.join(ONNX_FILES)}, which --backend onnx runs. Make one: "
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
            raise SetupError(f"{path}: these are no weights that can be opened: {error!s:.300}") from error
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
            raise SetupError(f"{self._path}: wants {missing[0]!r}, which its tokenizer does not give; export it again.")
        try:
            found: Outputs = self._session.run(None, {name: arrays[name] for name in self._names})[0]
        except self._faults as error:
            raise SetupError(f"{self._path}: does not compute what its tokenizer gives: {error!s:.300}") from error
        return found


def _is_quantised(path: str) -> bool:
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(_OP_TYPE + bytes([len(name)]) + name.encode()) >= 0 for name in _DYNAMIC)


def count_threads() -> int:
    """How many batches the CPU computes at once: ``OMP_NUM_THREADS``, else the cores that this process may use.

    Raises:
        SetupError: the variable is no number of threads.
    """
    # OpenMP's form is a list, a number for each level of nesting.
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
    """The outputs of each batch in their order, computed by so many threads, each of which is prepared first."""
    # Threads last as long as the list: a process may be forked between two lists, and threads do not come along.
    with ThreadPoolExecutor(n_threads, initializer=prepare) as pool:
        return list(pool.map(compute, batches))


def torch_device(torch: Any, device: str) -> str:
    """The device that is meant, made ready; raises SetupError: it is not here."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if not device.startswith("cuda"):
        return device
    # cuDNN's attention makes a plan for every shape of a batch, which takes longer than the batch.
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
            f"--device {device}: this onnxruntime has no CUDA. Install onnxruntime-gpu in its place, or use "
            "--device cpu."
        )
    number = int(device.partition(":")[2] or 0)
    # TF32 would cost three digits of the outputs.
    return f"cuda:{number}", ("CUDAExecutionProvider", {"device_id": number, "use_tf32": 0})


_UNBOUNDED = 10**6
"""Tokenizers without a limit say so with a huge one."""
CPU_BATCH_TOKENS = 512
"""With more a core is no faster; short lists keep all cores busy to their end, and a layer takes little memory."""


class PairModel:
    """A Hugging Face cross-encoder; ``open_pair_model`` gives one."""

    def __init__(self, encoder: PairEncoder, computer: Computer) -> None:
        self._encoder = encoder
        self._computer = computer

    @property
    def device(self) -> str:
        """What it runs on."""
        return self._computer.device

    def outputs(self, pairs: Sequence[Pair]) -> tuple[Outputs, dict[int, Refused]]:
        """What comes out before softmax, pairs × labels, and why nothing did, by place; such rows are 0.

        Pairs that come twice are judged once. Batches depend on the list alone, so the numbers do too.
        """
        distinct = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
        batches, refused = self._encoder.encode(list(distinct))
        computed = self._computer.outputs([one.arrays for one in batches])
        if any(one.ndim != 2 or len(one) < len(batch.places) for one, batch in zip(computed, batches, strict=True)):
            raise SetupError("The model gives no row of outputs for each pair; name a cross-encoder, not an encoder.")
        found = np.zeros((len(distinct), computed[0].shape[1] if computed else 0), np.float32)
        for batch, own in zip(batches, computed, strict=True):
            found[list(batch.places)] = own[: len(batch.places)]
        rows = [distinct[pair] for pair in pairs]
        return found[rows], {place: refused[row] for place, row in enumerate(rows) if row in refused}


def check_outputs(outputs: Outputs, n_named: int) -> None:
    """Raises SetupError: a model has another number of outputs than its config names."""
    if outputs.shape[1] != n_named:
        raise SetupError(
            f"The model has {outputs.shape[1]} outputs, and its config.json names {n_named}; get the model again."
        )


class CrossEncoder(PairModel):
    """One that judges, an ``EntailmentModel``; ``open_model`` gives one."""

    def __init__(self, encoder: PairEncoder, computer: Computer, labels: ModelLabels) -> None:
        super().__init__(encoder, computer)
        self._labels = labels

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | Refused]:
        """One answer a pair, in their order, see ``outputs``."""
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
    """A model's files, read but for its weights."""

    folder: str
    config: Any
    tokenizer: Any


def open_model(options: ModelOptions) -> CrossEncoder:
    """Opens a cross-encoder that judges.

    Raises:
        SetupError: the model, its labels, the backend or the device is not there, or not what is needed.
    """
    files = read_model_files(options)
    labels = _labels(options, files)
    return CrossEncoder(*_opened(options, files), labels)


def open_pair_model(options: ModelOptions) -> tuple[PairModel, dict[int, str]]:
    """Opens a cross-encoder that reads the hypothesis first, whatever its outputs mean, and what they are called.

    Raises:
        SetupError: as ``open_model``, but for labels.
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
    """What a model's answers depend on, as JSON values for a manifest; safetensors are hashed, not opened.

    A large model takes seconds, so the last answer is kept.

    Raises:
        SetupError: as ``open_model``, but for weights of PyTorch and the device.
    """
    files = read_model_files(options)
    is_torch = options.backend == "torch"
    form = _ANY if is_torch else OnnxComputer(files.folder, "cpu").form
    is_folder = not is_local(options.model) or os.path.isdir(options.model)
    return {
        "model": os.path.basename(os.path.normpath(options.model)) if is_folder else options.model,
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
    """Reads a model's config and its tokenizer.

    Raises:
        SetupError: they are missing or damaged, or the tokenizer is none of tokenizer.json.
    """
    folder = model_folder(options)
    # It would say that there is no PyTorch, which an exported model does without.
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")
    transformers = load_library("transformers", purpose="an NLI model")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with opening(options.model, "this is no cross-encoder that can be opened"):
        config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        is_config = isinstance(config.id2label, dict) and _is_count(getattr(config, "max_position_embeddings", None))
    if not is_config:
        raise SetupError(f"{options.model}: its config.json has other types than transformers writes; get it again.")
    with opening(options.model, "its tokenizer cannot be read"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if not getattr(tokenizer, "is_fast", False) or tokenizer.pad_token is None:
        raise SetupError(f"{options.model}: needs a fast tokenizer (tokenizer.json) that has a padding token.")
    if not _is_count(tokenizer.model_max_length):
        raise SetupError(
            f"{options.model}: model_max_length in its tokenizer_config.json is {tokenizer.model_max_length!r:.100}, "
            "which is no number of tokens; correct it."
        )
    return ModelFiles(folder, config, tokenizer)


def _is_count(value: Any) -> bool:
    """What a model says of a number of tokens is one, or nothing."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0)


def max_tokens_of(options: ModelOptions, files: ModelFiles, form: GraphForm = _ANY) -> int:
    """Returns the tokens of a pair that a model takes, at most those of the options.

    Raises:
        SetupError: the options ask for more.
    """
    config = files.config
    n_positions: int | None = getattr(config, "max_position_embeddings", None)
    # RoBERTa and its like count positions from the one after that of padding.
    if n_positions is not None and "roberta" in (config.model_type or "") and config.pad_token_id is not None:
        n_positions -= config.pad_token_id + 1
    known = (files.tokenizer.model_max_length, n_positions, form.n_tokens)
    limits = [limit for limit in known if limit and limit < _UNBOUNDED]
    limit = min(limits, default=options.max_tokens)
    if options.max_tokens > limit and options.max_tokens not in (MAX_TOKENS, MAX_PAIR_TOKENS):
        raise SetupError(f"--max-tokens is {options.max_tokens}; {options.model} takes {limit}.")
    return min(options.max_tokens, limit)


def export_onnx(options: ModelOptions, target: str) -> str:
    """Writes a model as ONNX, with config and tokenizer, into a new or empty folder; gives the path of ``model.onnx``.

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
