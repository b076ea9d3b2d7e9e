"""Vectors of passages, and exact search in them.

Search goes through all vectors, a row group at a time, and multiplies it with all queries at once, so that memory
stays the same however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from mapping.retrieval.vector_kind import PASSAGE_VECTORS, TABLE, VECTORS, EncoderOptions

COLUMNS = ("page_id", "number", "title", "text")
"""What of the table ``passages`` is needed."""
QUERIES_AT_ONCE = 1024
DECIMALS = 5
"""Of scores: the last digits of a product of float32 depend on how many queries it is of."""
_LENGTH = 0.01
"""By which a vector of length 1 may be off in float16."""
_SCALE = np.float32(2.0**112)
"""Between the biases of the exponents of float16 and float32."""

Half = npt.NDArray[np.float16]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


def encode_batch(passages: pa.RecordBatch, encoder: Encoder) -> tuple[pa.RecordBatch, int]:
    """Passages, of ``COLUMNS``, as rows of ``VECTORS``, and how many of them were cut."""
    titles, texts = (passages[name].to_pylist() for name in ("title", "text"))
    vectors, n_cut = encoder.encode_passages(list(zip(titles, texts, strict=True)))
    cells = [vector.tobytes() for vector in vectors.astype("<f2")]
    columns = [passages["page_id"], passages["number"], pa.array(cells, pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=VECTORS), n_cut


def _halves(rows: pa.RecordBatch | pa.Table, dimension: int) -> Half:
    """The vectors of rows, rows × dimension, without a copy of those of one batch."""
    column = rows["vector"].combine_chunks() if isinstance(rows, pa.Table) else rows["vector"]
    if not len(column):
        return np.empty((0, dimension), np.float16)
    _, offsets, values = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    found = np.frombuffer(values, "<f2", (places[-1] - places[0]) // 2, places[0])
    return found.reshape(len(column), dimension)


def check_vectors(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Looks at the numbers of all vectors; None where files are missing. Memory: a row group."""
    if TABLE not in checking.given:
        return None
    encoder = checking.manifest.facts["encoder"]
    for file, batch in checking.batches(TABLE):
        if set(pc.binary_length(batch["vector"]).to_pylist()) - {2 * encoder["dimension"]}:
            continue  # by the law of its rows
        vectors = _halves(batch, encoder["dimension"]).astype(np.float32)
        lengths = np.linalg.norm(vectors, axis=1)
        is_off = ~np.isfinite(lengths)
        if encoder["normalisation"] == "l2":
            is_off |= (np.abs(lengths - 1) > _LENGTH) & (lengths > 0)
        for place in np.flatnonzero(is_off):
            where = f"{batch['page_id'][place]}__{batch['number'][place]}"
            checking.found.add(file, "vector_law", f"{where}: its length is {lengths[place]:.4g}")
    return {}


class ScoredPassage(NamedTuple):
    """A passage that was found by its vector."""

    page_id: int
    number: int
    score: float


class VectorIndex:
    """The vectors of a corpus, and the encoder that made them, which encodes queries.

    Raises:
        SetupError: a release is not there or not whole, the vectors are of other passages, or the encoder is another.
    """

    def __init__(self, passages: str, vectors: str, model: str) -> None:
        manifest = PASSAGE_VECTORS.read(vectors)
        if manifest.made_from("passages") != PASSAGES_CORPUS.read(passages).sha256:
            raise SetupError(f"{vectors} has the vectors of other passages than {passages}; make those of these.")
        check_sizes(vectors, manifest.tables[TABLE])
        made = manifest.facts["encoder"]
        self._dimension: int = made["dimension"]
        given = {name: made[name] for name in ("query_prefix", "passage_prefix", "max_tokens")}
        pooling = made["pooling"] if made["form"] == "onnx" and made["pooling"] != "model" else None
        self._encoder = open_encoder(EncoderOptions(model, pooling=pooling, **given))
        for name in ("weights_sha256", "tokenizer_sha256", "normalisation"):
            if self._encoder.facts[name] != made[name]:
                raise SetupError(
                    f"{model} is not {made['name']}, which made {vectors}: its {name} is another; name that."
                )
        self._paths = [join(vectors, entry.file) for entry in manifest.tables[TABLE]]
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
                found = self.best(encoded, n_best, level)
                self._found |= {(text, n_best, level): own for text, own in zip(together, found, strict=True)}

    def search(self, query: str, n_best: int, level: Level) -> list[ScoredPassage]:
        """The best passages for a query, best first, those of one score in the order of the corpus; of pages, the best
        passage of each."""
        if (query, n_best, level) not in self._found:
            self.prepare([query], [(n_best, level)])
        return self._found[query, n_best, level]

    def best(self, queries: Floats, n_best: int, level: Level) -> list[list[ScoredPassage]]:
        """The same for the vectors of queries, queries × dimension."""
        best, scaled = _Best(len(queries), n_best, level), np.multiply(queries, _SCALE, dtype=np.float32)
        for pages, numbers, vectors in self._blocks():
            best.add(scaled @ _as_floats(vectors).T, pages, numbers)
        return best.passages()

    def _blocks(self) -> Iterator[tuple[Numbers, Numbers, Half]]:
        for path in self._paths:
            for group in row_groups(path):
                yield (
                    group["page_id"].to_numpy(),
                    group["number"].to_numpy().astype(np.int64),
                    _halves(group, self._dimension),
                )


def _as_floats(halves: Half) -> Floats:
    """Numbers over ``_SCALE``, by their bits: sign and the rest of each, moved to where float32 has them. Four times as
    fast as NumPy's own conversion, which takes as long as the product with a hundred queries."""
    moved = np.left_shift(halves.view(np.int16), 13, dtype=np.int32)
    np.bitwise_and(moved, np.int32(-0x70000001), out=moved)
    return moved.view(np.float32)


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
        found: list[list[ScoredPassage]] = [[] for _ in self._least]
        if self._held:
            queries, scores, pages, numbers = (column.tolist() for column in self._shrink())
            for query, score, page, number in zip(queries, scores, pages, numbers, strict=True):
                found[query].append(ScoredPassage(page, number, score))
        return found
