"""The files of a cross-encoder: a folder, or what is fetched from the hub; weights as safetensors or ONNX only.

What batches an ONNX graph takes is read without loading it.
Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto, https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kbsource.errors import SetupError
from kbsource.files import LocalStorage, sha256_of
from mapping.entail.backends import load_library, onnx_path
from mapping.entail.encoder import GraphForm
from mapping.entail.signal import Backend, ModelOptions

_CONFIG = ("config.json", "*token*", "vocab.*", "merges.txt", "*.model")
_WEIGHTS: dict[Backend, tuple[str, ...]] = {
    "torch": ("*.safetensors", "*.safetensors.index.json"),
    "onnx": ("model.onnx*", "onnx/model.onnx*"),
}

# They take the range of numbers from the whole batch.
_DYNAMIC = (
    b"DynamicQuantizeLinear",
    b"DynamicQuantizeMatMul",
    b"DynamicQuantizeLSTM",
    b"MatMulInteger",
    b"MatMulIntegerToFloat",
    b"ConvInteger",
)
_OP_TYPE = b"\x22"
_GRAPH, _INPUT, _NAME, _TYPE, _TENSOR, _SHAPE, _DIM, _SIZE = 7, 11, 1, 2, 1, 2, 1, 1
_NUMBER, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5

Part = tuple[int, int]
"""Half-open range of bytes of a file that holds a message."""


def model_folder(options: ModelOptions) -> str:
    """Gives a local folder with the model's files; those of the hub are fetched into its own cache.

    Raises:
        SetupError: there is no such model, or it has no weights that this backend reads without running code.
    """
    folder = options.model if os.path.isdir(options.model) else _fetched(options)
    if not os.path.isfile(os.path.join(folder, "config.json")):
        raise SetupError(f"{options.model}: holds no config.json; give the folder of a Hugging Face model.")
    if options.backend == "torch" and not weight_files(folder, "torch"):
        raise SetupError(
            f"{options.model}: holds no *.safetensors. Other weights are not read, for loading them can run code; "
            "save the model with transformers' save_pretrained, which writes safetensors."
        )
    return folder


def weight_files(folder: str, backend: Backend) -> list[str]:
    """Gives the paths of a model's weights, sorted."""
    if backend == "torch":
        return sorted(str(path) for path in Path(folder).glob("*.safetensors"))
    path = onnx_path(folder)
    # Beside a large model lies a file with its tensors.
    return [] if path is None else sorted(str(file) for file in Path(path).parent.glob("model.onnx*"))


def digest_of(paths: Sequence[str]) -> str:
    """Gives one sha256 for some files, in their order."""
    storage, digest = LocalStorage(), hashlib.sha256()
    for path in paths:
        digest.update(sha256_of(storage, path).encode())
    return digest.hexdigest()


def _fetched(options: ModelOptions) -> str:
    if options.model.startswith((".", "/", "~")) or options.model.count("/") > 1:
        raise SetupError(f"{options.model}: no such folder.")
    hub = load_library("huggingface_hub", purpose=f"{options.model} is no folder here, and a model of the hub")
    try:
        folder: str = hub.snapshot_download(
            options.model, revision=options.revision, allow_patterns=[*_CONFIG, *_WEIGHTS[options.backend]]
        )
    except (OSError, ValueError, hub.errors.HfHubHTTPError) as error:
        raise SetupError(
            f"{options.model}: neither a folder here nor fetched from the hub ({type(error).__name__}: "
            f"{str(error).splitlines()[0] if str(error) else ''}). Download the model where there is a network and "
            "give its folder."
        ) from error
    return folder


def read_form(path: str) -> GraphForm:
    """Gives the form of the batches that the graph of a file takes.

    Raises:
        SetupError: the file is no ONNX model.
    """
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            is_quantised = any(content.find(_OP_TYPE + bytes([len(name)]) + name) >= 0 for name in _DYNAMIC)
            n_pairs, n_tokens = _shape(content, b"input_ids")
    except (ValueError, IndexError, StopIteration) as error:
        raise SetupError(f"{path}: these are no weights that can be opened: {error}") from error
    return GraphForm(n_pairs, n_tokens, is_quantised)


def _shape(content: mmap.mmap, name: bytes) -> tuple[int | None, int | None]:
    """Gives the numbers of pairs and tokens that an input has; None for any number."""
    graph = next(_parts(content, (0, len(content)), _GRAPH))
    for place in _parts(content, graph, _INPUT):
        start, end = next(_parts(content, place, _NAME))
        if content[start:end] == name:
            for field in (_TYPE, _TENSOR, _SHAPE):
                place = next(_parts(content, place, field), (0, 0))
            sizes = [next(_numbers(content, dim, _SIZE), None) for dim in _parts(content, place, _DIM)]
            return (sizes[0], sizes[1]) if len(sizes) == 2 else (None, None)
    return None, None


def _parts(content: mmap.mmap, message: Part, field: int) -> Iterator[Part]:
    """Gives the messages and texts of a field."""
    return ((start, end) for number, kind, start, end in _fields(content, message) if (number, kind) == (field, _BYTES))


def _numbers(content: mmap.mmap, message: Part, field: int) -> Iterator[int]:
    for number, kind, start, _ in _fields(content, message):
        if (number, kind) == (field, _NUMBER):
            yield _number_at(content, start)[0]


def _fields(content: mmap.mmap, message: Part) -> Iterator[tuple[int, int, int, int]]:
    """Gives (number, kind, start, end) of every field."""
    position, end = message
    while position < end:
        key, start = _number_at(content, position)
        kind = key & 7
        if kind == _NUMBER:
            _, position = _number_at(content, start)
        elif kind == _BYTES:
            n_bytes, start = _number_at(content, start)
            position = start + n_bytes
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            position = start + (8 if kind == _EIGHT_BYTES else 4)
        else:
            raise ValueError(f"byte {start - 1} is of no message")
        yield key >> 3, kind, start, position


def _number_at(content: mmap.mmap, position: int) -> tuple[int, int]:
    """Gives a number and where it ends."""
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, position
