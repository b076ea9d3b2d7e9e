"""The storage formats of vectors, and the check of stored vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.release.invariants import Checking
from kbsource.release.manifest import ListingManifest

_LENGTH = 0.01
"""Tolerance for the length of a unit vector in float16."""

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


class VectorForm(NamedTuple):
    """The storage format of vectors."""

    pack: Callable[[Floats], npt.NDArray[Any]]  # vectors × numbers -> vectors × stored values
    unpack: Callable[[Bytes], Floats]  # vectors × bytes -> vectors × numbers


def _from_halves(stored: Bytes) -> Floats:
    """Converts float16 to float32 bit by bit: sign and remaining bits are moved to their positions in float32, which
    gives the numbers divided by 2¹¹². This is two to four times as fast as NumPy's conversion, which takes as long as
    the product with a hundred queries."""
    moved = np.left_shift(stored.view(np.int16), 13, dtype=np.int32)
    np.bitwise_and(moved, np.int32(-0x70000001), out=moved)
    numbers = moved.view(np.float32)
    # Multiplied here rather than later: divided by 2¹¹², small numbers are subnormal, and slow to multiply on Intel
    # CPUs.
    numbers *= np.float32(2.0**112)
    return numbers


def _to_int8(vectors: Floats) -> npt.NDArray[np.int8]:
    most = np.abs(vectors).max(axis=1, keepdims=True)
    ints: npt.NDArray[np.int8] = np.rint(vectors * (127 / np.where(most > 0, most, 1))).astype(np.int8)
    return ints


def _from_int8(stored: Bytes) -> Floats:
    """Returns vectors of length 1: the original scale is lost, and is not needed."""
    vectors: Floats = stored.view(np.int8).astype(np.float32)
    lengths = np.sqrt(np.einsum("vn,vn->v", vectors, vectors))
    vectors *= (1 / np.where(lengths > 0, lengths, 1))[:, None]
    return vectors


def _from_bits(stored: Bytes) -> Floats:
    """Returns vectors of length 1 whose numbers all have the same magnitude."""
    signs: Floats = _SIGNS[stored].reshape(len(stored), -1)
    signs /= np.float32(np.sqrt(signs.shape[1]))
    return signs


_SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
FORMS: Mapping[str, VectorForm] = {
    "float16": VectorForm(lambda floats: floats.astype("<f2"), _from_halves),
    "int8": VectorForm(_to_int8, _from_int8),
    "bits": VectorForm(lambda floats: np.packbits(floats > 0, axis=1), _from_bits),
}


def stored_bytes(vectors: pa.Array, n_bytes: int) -> Bytes:
    """Returns the stored bytes of vectors, vectors × bytes, without a copy."""
    if not len(vectors):
        return np.empty((0, n_bytes), np.uint8)
    _, offsets, values = vectors.buffers()
    places = np.frombuffer(offsets, np.int32)[vectors.offset : vectors.offset + len(vectors) + 1]
    return np.frombuffer(values, np.uint8, places[-1] - places[0], places[0]).reshape(len(vectors), n_bytes)


def check_vectors(checking: Checking[ListingManifest], table: str, n_bytes: int) -> Mapping[str, int] | None:
    """Checks the numbers of all vectors; None if files are missing. Memory: a row group."""
    if table not in checking.given:
        return None
    encoder, precision = (checking.manifest.facts[name] for name in ("encoder", "precision"))
    for file, batch in checking.batches(table):
        if set(pc.binary_length(batch["vector"]).to_pylist()) - {n_bytes} or precision == "bits":
            continue  # checked by the invariant on rows; for bits, any value is valid
        stored = stored_bytes(batch["vector"], n_bytes)
        if precision == "int8":
            what, found = "largest number", np.abs(stored.view(np.int8).astype(np.float32)).max(axis=1)
            is_off = (found != 127) & (found != 0)
        else:
            what, found = "length", np.linalg.norm(stored.view("<f2").astype(np.float32), axis=1)
            is_off = ~np.isfinite(found)
            if encoder["normalisation"] == "l2":
                is_off |= (np.abs(found - 1) > _LENGTH) & (found > 0)
        for place in np.flatnonzero(is_off):
            where = f"{batch['page_id'][place]}__{batch['number'][place]}"
            checking.found.add(file, "invalid_vector", f"{where}: its {what} is {found[place]:.4g}")
    return {}
