"""Vectors of passages, and exact search in them.

Search goes through all vectors, a row group at a time, and multiplies it with all queries at once, so that memory
stays the same however many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.release.laws import Checking
from kbsource.release.manifest import ListingManifest
from kbsource.release.reader import check_sizes, row_groups
from mapping.options import Level
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.encoder import Encoder, open_encoder
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE, VECTORS, VectorPrecision, vector_bytes

if TYPE_CHECKING:
    from mapping.retrieval.known_vectors import KnownVectors
    from mapping.retrieval.neighbours import Neighbours

COLUMNS = ("page_id", "number", "title", "text")
"""What of the table ``passages`` is needed."""
QUERIES_AT_ONCE = 1024
DECIMALS = 5
"""Of scores: the last digits of a product of float32 depend on how many queries it is of."""
_LENGTH = 0.01
"""By which a vector of length 1 may be off in float16."""

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


class VectorForm(NamedTuple):
    """How the numbers of vectors are stored."""

    pack: Callable[[Floats], npt.NDArray[Any]]  # vectors × numbers -> vectors × what is stored
    unpack: Callable[[Bytes], Floats]  # vectors × bytes -> vectors × numbers, over ``scale``
    scale: np.float32 = np.float32(1)


def _from_halves(stored: Bytes) -> Floats:
    """Numbers over 2¹¹², by their bits: sign and the rest of each, moved to where float32 has them. Four times as fast
    as NumPy's own conversion, which takes as long as the product with a hundred queries."""
    moved = np.left_shift(stored.view(np.int16), 13, dtype=np.int32)
    np.bitwise_and(moved, np.int32(-0x70000001), out=moved)
    return moved.view(np.float32)


def _to_int8(vectors: Floats) -> npt.NDArray[np.int8]:
    most = np.abs(vectors).max(axis=1, keepdims=True)
    ints: npt.NDArray[np.int8] = np.rint(vectors * (127 / np.where(most > 0, most, 1))).astype(np.int8)
    return ints


def _from_int8(stored: Bytes) -> Floats:
    """Vectors of length 1: what they were divided by is lost, and not needed."""
    vectors: Floats = stored.view(np.int8).astype(np.float32)
    lengths = np.sqrt(np.einsum("vn,vn->v", vectors, vectors))
    vectors *= (1 / np.where(lengths > 0, lengths, 1))[:, None]
    return vectors


def _from_bits(stored: Bytes) -> Floats:
    """Vectors of length 1, whose numbers are all as large."""
    signs: Floats = _SIGNS[stored].reshape(len(stored), -1)
    signs /= np.float32(np.sqrt(signs.shape[1]))
    return signs


_SIGNS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).astype(np.float32) * 2 - 1
FORMS: Mapping[VectorPrecision, VectorForm] = {
    "float16": VectorForm(lambda one: one.astype("<f2"), _from_halves, np.float32(2.0**112)),
    "int8": VectorForm(_to_int8, _from_int8),
    "bits": VectorForm(lambda one: np.packbits(one > 0, axis=1), _from_bits),
}


def check_precision(precision: VectorPrecision, encoder: Mapping[str, Any]) -> None:
    """Raises SetupError: the vectors of an encoder cannot be stored so."""
    if precision != "float16" and encoder["normalisation"] != "l2":
        raise SetupError(
            f"--precision {precision} keeps the directions of vectors alone, and those of {encoder['name']} have "
            "lengths that count; leave it out."
        )
    if precision == "bits" and encoder["dimension"] % 8:
        raise SetupError(f"--precision bits packs 8 numbers; {encoder['name']} gives {encoder['dimension']}.")


class EncodedBatch(NamedTuple):
    """Passages as rows of ``VECTORS``."""

    batch: pa.RecordBatch
    n_cut: int  # of them were longer than the encoder takes
    n_known: int  # of their vectors were taken over


def encode_batch(
    passages: pa.RecordBatch, encoder: Encoder, precision: VectorPrecision, known: KnownVectors | None = None
) -> EncodedBatch:
    """The vectors of passages, of ``COLUMNS``; those that are known already are not computed."""
    pairs = list(zip(*(passages[name].to_pylist() for name in ("title", "text")), strict=True))
    cells: list[bytes | None] = [None] * len(pairs) if known is None else known.find(passages["page_id"], pairs)
    new = [pair for pair, cell in zip(pairs, cells, strict=True) if cell is None]
    n_cut = 0
    if new:
        vectors, n_cut = encoder.encode_passages(new)
        made = (vector.tobytes() for vector in FORMS[precision].pack(vectors))
        cells = [next(made) if cell is None else cell for cell in cells]
    if known is not None and known.has_cut:
        n_cut = encoder.count_cut(pairs)
    columns = [passages["page_id"], passages["number"], pa.array(cells, pa.binary())]
    return EncodedBatch(pa.RecordBatch.from_arrays(columns, schema=VECTORS), n_cut, len(pairs) - len(new))


def _stored(rows: pa.RecordBatch | pa.Table, n_bytes: int) -> Bytes:
    """The vectors of rows as they are stored, rows × bytes, without a copy of those of one batch."""
    column = rows["vector"].combine_chunks() if isinstance(rows, pa.Table) else rows["vector"]
    if not len(column):
        return np.empty((0, n_bytes), np.uint8)
    _, offsets, values = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(values, np.uint8, places[-1] - places[0], places[0]).reshape(len(column), n_bytes)


def check_vectors(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Looks at the numbers of all vectors; None where files are missing. Memory: a row group."""
    if TABLE not in checking.given:
        return None
    encoder, precision = (checking.manifest.facts[name] for name in ("encoder", "precision"))
    n_bytes = vector_bytes(checking.manifest.facts)
    for file, batch in checking.batches(TABLE):
        if set(pc.binary_length(batch["vector"]).to_pylist()) - {n_bytes} or precision == "bits":
            continue  # by the law of its rows; any bits are a vector
        stored = _stored(batch, n_bytes)
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
            checking.found.add(file, "vector_law", f"{where}: its {what} is {found[place]:.4g}")
    return {}


class ScoredPassage(NamedTuple):
    """A passage that was found by its vector."""

    page_id: int
    number: int
    score: float


class StoredVectors:
    """The vectors of a corpus, which are searched exactly.

    Raises:
        SetupError: they are not there or not whole.
    """

    def __init__(self, vectors: str) -> None:
        self.manifest = PASSAGE_VECTORS.read(vectors)
        check_sizes(vectors, self.manifest.tables[TABLE])
        self.form = FORMS[self.manifest.facts["precision"]]
        self._n_bytes = vector_bytes(self.manifest.facts)
        self._paths = [join(vectors, entry.file) for entry in self.manifest.tables[TABLE]]

    def best(self, queries: Floats, n_best: int, level: Level) -> list[list[ScoredPassage]]:
        """The best passages for the vectors of queries, queries × dimension, best first, those of one score in the
        order of the corpus; of pages, the best passage of each."""
        best, scaled = _Best(len(queries), n_best, level), np.multiply(queries, self.form.scale, dtype=np.float32)
        for pages, numbers, stored in self.blocks():
            best.add(scaled @ self.form.unpack(stored).T, pages, numbers)
        return best.passages()

    def blocks(self) -> Iterator[tuple[Numbers, Numbers, Bytes]]:
        """Pages, numbers and vectors, as they are stored, of one row group after the other."""
        for path in self._paths:
            for group in row_groups(path):
                yield (
                    group["page_id"].to_numpy(),
                    group["number"].to_numpy().astype(np.int64),
                    _stored(group, self._n_bytes),
                )


class VectorIndex(StoredVectors):
    """The same with the encoder that made them, which encodes queries.

    Args:
        neighbours: a graph of the vectors, in which the nearest are looked for in place of all vectors.

    Raises:
        SetupError: as ``StoredVectors``, the vectors are of other passages, or the encoder is another.
    """

    def __init__(self, passages: str, vectors: str, model: str, neighbours: Neighbours | None = None) -> None:
        super().__init__(vectors)
        if self.manifest.made_from("passages") != PASSAGES_CORPUS.read(passages).sha256:
            raise SetupError(f"{vectors} has the vectors of other passages than {passages}; make those of these.")
        self._nearest = self.best if neighbours is None else neighbours.best
        made = self.manifest.facts["encoder"]
        given = {name: made[name] for name in ("query_prefix", "passage_prefix", "max_tokens")}
        pooling = made["pooling"] if made["form"] == "onnx" and made["pooling"] != "model" else None
        self._encoder = open_encoder(EncoderOptions(model, pooling=pooling, **given))
        for name in ("weights_sha256", "tokenizer_sha256", "normalisation"):
            if self._encoder.facts[name] != made[name]:
                raise SetupError(
                    f"{model} is not {made['name']}, which made {vectors}: its {name} is another; name that."
                )
        self._found: dict[tuple[str, int, Level], list[ScoredPassage]] = {}

    def prepare(self, queries: Sequence[str], asked: Sequence[tuple[int, Level]]) -> None:
        """Searches for many queries at once, so many passages or pages as is asked each time, so that ``search`` has
        them at hand; what was found before is dropped."""
        self._found = {}
        distinct = list(dict.fromkeys(queries))
        for start in range(0, len(distinct), QUERIES_AT_ONCE):
            together = distinct[start : start + QUERIES_AT_ONCE]
            encoded = self._encoder.encode_queries(together)
            for n_best, level in asked:
                found = self._nearest(encoded, n_best, level)
                self._found |= {(text, n_best, level): own for text, own in zip(together, found, strict=True)}

    def search(self, query: str, n_best: int, level: Level) -> list[ScoredPassage]:
        """The best passages for a query, as ``best`` has them."""
        if (query, n_best, level) not in self._found:
            self.prepare([query], [(n_best, level)])
        return self._found[query, n_best, level]


class _Best:
    """The best passages for each of some queries, at most ``QUERIES_AT_ONCE``, of blocks as they come."""

    def __init__(self, n_queries: int, n_best: int, level: Level) -> None:
        self._n_best, self._level, self._n_held = n_best, level, 0
        self._least = np.full(n_queries, -np.inf, np.float32)
        self._most_held = 4 * n_queries * n_best
        self._held: list[tuple[npt.NDArray[Any], ...]] = []
        """Query, score, page and number of candidates; of a query and score in the order of the corpus."""

    def add(self, scores: Floats, pages: Numbers, numbers: Numbers) -> None:
        """Takes the scores, queries × passages, of the next block."""
        if not self._held and len(pages):
            # Else all of the first block would be candidates. So many passages are of n_best pages at least.
            per_page = np.unique(pages, return_counts=True)[1].max() if self._level == "page" else 1
            if (n_others := len(pages) - self._n_best * int(per_page)) > 0:
                self._least = np.partition(scores, n_others, axis=1)[:, n_others] - 2 * np.float32(10**-DECIMALS)
        query, place = np.divmod(np.flatnonzero(scores > self._least[:, None]), max(len(pages), 1))
        rounded = np.round(scores[query, place], DECIMALS)
        self._held.append((query.astype(np.uint16), rounded, pages[place], numbers[place]))
        self._n_held += len(place)
        if self._n_held > self._most_held:
            self._shrink()

    def _shrink(self) -> tuple[npt.NDArray[Any], ...]:
        """Keeps the best, by query and rank; from then on a score must be above the last of them."""
        queries, scores, pages, numbers = map(np.concatenate, zip(*self._held, strict=True))
        order = np.argsort(-scores, kind="stable")
        if self._level == "page":  # the best passage of each
            by_page = order[np.argsort(pages[order], kind="stable")]
            by_page = by_page[np.argsort(queries[by_page], kind="stable")]
            is_again = np.zeros(len(order), bool)
            is_again[by_page[1:]] = (np.diff(pages[by_page]) == 0) & (queries[by_page][1:] == queries[by_page][:-1])
            order = order[~is_again[order]]
        order = order[np.argsort(queries[order], kind="stable")]
        own = queries[order]
        rank = np.arange(len(order)) - np.searchsorted(own, own)
        last = order[rank == self._n_best - 1]
        self._least[queries[last]] = scores[last]
        order = order[rank < self._n_best]
        kept = tuple(column[order] for column in (queries, scores, pages, numbers))
        self._held, self._n_held = [kept], len(order)
        return kept

    def passages(self) -> list[list[ScoredPassage]]:
        """The best of all blocks, by query."""
        if not self._held:
            return [[] for _ in self._least]
        queries, *columns = self._shrink()
        scores, pages, numbers = (column.tolist() for column in columns)
        every = list(map(ScoredPassage, pages, numbers, scores))
        ends = np.searchsorted(queries, np.arange(len(self._least) + 1))
        return [every[start:end] for start, end in pairwise(ends)]
