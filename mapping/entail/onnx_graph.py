"""What an ONNX file says of the batches that its graph takes, without loading it.

Source: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto (fields), https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import NamedTuple

from kbsource.errors import SetupError

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


class GraphForm(NamedTuple):
    """What batches a graph takes.

    Attributes:
        n_pairs, n_tokens: of every batch; None for any number.
        is_quantised: as it runs, so that what comes out for a pair depends on the others in the batch.
    """

    n_pairs: int | None = None
    n_tokens: int | None = None
    is_quantised: bool = False


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
