"""Vectors of passages: storage, reuse from an earlier corpus, exact search, and search in a graph.

Exact search reads all vectors, one row group at a time, and multiplies each with all queries at once, so memory does
not grow with their number. A graph on disk finds the nearest vectors without reading all of them, but may miss some.
The library is usearch: its file is mapped into memory, and a search reads only the parts it visits. The graph is built
by one thread, so the same vectors give the same bytes.

Source: Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using hierarchical navigable small
world graphs (2020).
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import is_local, join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes, check_same_facts, check_sizes, row_groups
from kbsource.release.sql import add_release, connected
from mapping.entail.signal import load_library
from mapping.options import Level
from mapping.passages.corpus import TABLE as CORPUS_TABLE
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.encoder import Encoder, open_encoder
from mapping.retrieval.index import best_of_pages
from mapping.retrieval.queries import ScoredPassage
from mapping.retrieval.system_options import EncoderOptions
from mapping.retrieval.vector_forms import FORMS, Bytes, Floats, stored_bytes
from mapping.retrieval.vector_kind import (
    GRAPH,
    PASSAGE_VECTORS,
    TABLE,
    VECTORS,
    VECTORS_GRAPH,
    VectorPrecision,
    vector_bytes,
)

COLUMNS = ("page_id", "number", "title", "text")
"""The required columns of the table ``passages``."""
QUERIES_AT_ONCE = 1024
DECIMALS = 5
"""Decimals of scores: the last digits of a float32 product depend on the number of queries."""
_PAGE_BITS, _NUMBER_BITS = 40, 24
"""Bits of a key in the graph: a page, followed by the number of a passage in it."""
_MEMORY_MB = 500
"""Memory of the database for looking up known vectors."""
N_SAMPLED, N_NEAREST = 100, 10
"""For measuring the graph's recall: number of sampled passages (up to twice as many are used), and of nearest
neighbours searched for each."""
_FILE = f"{GRAPH}/vectors.usearch"
_TYPES = {"float16": "f16", "int8": "i8"}

Numbers = npt.NDArray[np.int64]


def query_encoder(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the query encoder in the manifest of vectors; if there is no separate one, the passage encoder."""
    found: Mapping[str, Any] = facts.get("query_encoder") or facts["encoder"]
    return found


def check_precision(precision: VectorPrecision, encoder: Mapping[str, Any]) -> None:
    """Raises SetupError if the vectors of an encoder cannot be stored with this precision."""
    if precision != "float16" and encoder["normalisation"] != "l2":
        raise SetupError(
            f"--precision {precision} stores only the directions of vectors, and {encoder['name']} also needs their "
            f"lengths; leave it out."
        )
    if precision == "bits" and encoder["dimension"] % 8:
        raise SetupError(
            f"--precision bits packs 8 numbers into a byte, and vectors of {encoder['name']} have "
            f"{encoder['dimension']} numbers; choose float16 or int8."
        )


def check_known(vectors: str, passages: str, facts: Mapping[str, Any]) -> None:
    """Checks that vectors can be reused.

    Args:
        vectors: release to take them from.
        passages: their corpus.
        facts: facts about the new vectors, as in their manifest.

    Raises:
        SetupError: the encoder might compute other vectors, or they belong to another corpus.
    """
    known, corpus = PASSAGE_VECTORS.read(vectors), PASSAGES_CORPUS.read(passages)
    if known.facts["passages"]["manifest_sha256"] != corpus.sha256:
        raise SetupError(
            f"{vectors} were not made from {passages}; name the passages of these vectors with --base-passages."
        )
    if facts["computed"]["texts_at_once"] != 1:
        raise SetupError(
            "On a GPU, the last digits of a vector depend on the other passages of its batch; leave out --base, or "
            "use --device cpu."
        )
    compared = ("encoder", "query_encoder", "precision", "computed")
    had, has = ({name: own_facts.get(name) for name in compared} for own_facts in (known.facts, facts))
    check_same_facts(vectors, had, has)
    for folder, manifest, table in ((vectors, known, TABLE), (passages, corpus, CORPUS_TABLE)):
        check_hashes(folder, manifest.tables[table])


class KnownVectors:
    """Looks up vectors. Memory: a few row groups, and at most ``_MEMORY_MB``.

    Args:
        vectors: release of vectors.
        passages: their corpus.
    """

    def __init__(self, vectors: str, passages: str) -> None:
        #: some of its passages were too long for the encoder
        self.has_cut = PASSAGE_VECTORS.read(vectors).facts["counts"]["truncated"] > 0
        self._open = ExitStack()
        reads = [vectors, passages]
        self._db = self._open.enter_context(connected(reads=reads, memory_mb=_MEMORY_MB, threads=1))
        add_release(self._db, PASSAGE_VECTORS, vectors)
        add_release(self._db, PASSAGES_CORPUS, passages)

    def find(self, page_ids: pa.Array, pairs: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """Returns the vectors of passages with these pages, titles and texts; None for passages without one."""
        least, most = (bound.as_py() for bound in pc.min_max(page_ids).values())
        found = self._db.cursor().execute(
            # Row groups without these pages are not read.
            "select title, text, vector from passages join vectors using (page_id, number) "
            f"where page_id between {least} and {most} and page_id in (select unnest(?))",
            [page_ids.unique().to_pylist()],
        )
        known = {(title, text): vector for title, text, vector in found.fetchall()}
        return [known.get(pair) for pair in pairs]


def encode_batch(
    passages: pa.RecordBatch, encoder: Encoder, precision: VectorPrecision, known: KnownVectors | None = None
) -> tuple[pa.RecordBatch, int, int]:
    """Returns the vectors of passages (with ``COLUMNS``) as rows of ``VECTORS``, the number of passages that were too
    long for the encoder, and the number of reused vectors. Known vectors are not computed again."""
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
    return pa.RecordBatch.from_arrays(columns, schema=VECTORS), n_cut, len(pairs) - len(new)


class StoredVectors:
    """The vectors of a corpus, with exact search.

    Raises:
        SetupError: they do not exist or are incomplete.
    """

    def __init__(self, vectors: str) -> None:
        self.manifest = PASSAGE_VECTORS.read(vectors)
        check_sizes(vectors, self.manifest.tables[TABLE])
        self.form = FORMS[self.manifest.facts["precision"]]
        self._n_bytes = vector_bytes(self.manifest.facts)
        self._paths = [join(vectors, entry.file) for entry in self.manifest.tables[TABLE]]

    def best(self, queries: Floats, n_best: int, level: Level) -> list[list[ScoredPassage]]:
        """Returns the best passages for query vectors (queries × dimension), best first; ties are in corpus order. At
        page level, returns the best passage of each page."""
        best = _Best(len(queries), n_best, level)
        for pages, numbers, stored in self.blocks():
            best.add(queries @ self.form.unpack(stored).T, pages, numbers)
        return best.passages()

    def blocks(self) -> Iterator[tuple[Numbers, Numbers, Bytes]]:
        """Reads pages, numbers and stored vectors, one row group at a time."""
        for path in self._paths:
            for group in row_groups(path):
                for batch in group.to_batches():  # exactly one, without a copy
                    pages, numbers = batch["page_id"].to_numpy(), batch["number"].to_numpy().astype(np.int64)
                    yield pages, numbers, stored_bytes(batch["vector"], self._n_bytes)


class VectorIndex(StoredVectors):
    """The vectors of a corpus with their query encoder: the encoder that made them, or the second of two.

    Args:
        model: folder of the query encoder.
        neighbours: a graph of the vectors, which is searched instead of all vectors.

    Raises:
        SetupError: as ``StoredVectors``; the vectors belong to other passages, or the encoder is another one.
    """

    def __init__(self, passages: str, vectors: str, model: str, neighbours: Neighbours | None = None) -> None:
        super().__init__(vectors)
        if self.manifest.made_from("passages") != PASSAGES_CORPUS.read(passages).sha256:
            raise SetupError(f"{vectors} was not made from {passages}; make vectors of these passages.")
        self._nearest = self.best if neighbours is None else neighbours.best
        made = query_encoder(self.manifest.facts)
        #: its encoder reads a mention between markers
        self.reads_mentions = made.get("text_form") == "blink"
        given = {name: made[name] for name in ("query_prefix", "passage_prefix", "max_tokens")}
        given["text_form"] = made.get("text_form", "plain")
        pooling = None if made["form"] == "static" or made["pooling"] == "model" else made["pooling"]
        self._encoder = open_encoder(EncoderOptions(model, pooling=pooling, **given))
        for name in ("weights_sha256", "tokenizer_sha256", "normalisation"):
            if self._encoder.facts[name] != made[name]:
                raise SetupError(
                    f"{vectors} was made for {made['name']}, and the {name} of {model} differs; name {made['name']}."
                )

    def search(self, queries: Sequence[str], n_best: int, level: Level) -> Iterator[list[ScoredPassage]]:
        """Finds the best passages for each query, as ``best`` does, for ``QUERIES_AT_ONCE`` queries at a time."""
        for start in range(0, len(queries), QUERIES_AT_ONCE):
            encoded = self._encoder.encode_queries(queries[start : start + QUERIES_AT_ONCE])
            yield from self._nearest(encoded, n_best, level)


class _Best:
    """The best passages for at most ``QUERIES_AT_ONCE`` queries, updated block by block."""

    def __init__(self, n_queries: int, n_best: int, level: Level) -> None:
        self._n_best, self._level = n_best, level
        self._least = np.full(n_queries, -np.inf, np.float32)
        self._most_held = 4 * n_queries * n_best
        self._held = [tuple(np.empty(0, kind) for kind in (np.uint16, np.float32, np.int64, np.int64))]
        """Creates empty lists of candidates: query, score, page and number of the passage. Candidates with equal query
        and score are in corpus order."""

    def add(self, scores: Floats, pages: Numbers, numbers: Numbers) -> None:
        """Adds the scores of the next block, queries × passages."""
        if np.isneginf(self._least).any() and len(pages):  # otherwise the whole first block would be candidates
            # The passages of a page are consecutive in a corpus.
            runs = np.flatnonzero(np.diff(pages, prepend=pages[0] - 1))
            first = scores if self._level == "passage" else np.maximum.reduceat(scores, runs, axis=1)
            if (n_others := first.shape[1] - self._n_best) > 0:
                floor = np.partition(first, n_others, axis=1)[:, n_others] - 2 * np.float32(10**-DECIMALS)
                self._least = np.maximum(self._least, floor)
        query, place = np.divmod(np.flatnonzero(scores > self._least[:, None]), max(len(pages), 1))
        rounded = np.round(scores[query, place], DECIMALS)
        self._held.append((query.astype(np.uint16), rounded, pages[place], numbers[place]))
        if sum(len(queries) for queries, *_ in self._held) > self._most_held:
            self._shrink()

    def _shrink(self) -> tuple[npt.NDArray[Any], ...]:
        """Keeps the best candidates, by query and rank; later scores must exceed the last of them."""
        queries, scores, pages, numbers = map(np.concatenate, zip(*self._held, strict=True))
        bits = (np.float32(0) - scores).view(np.int32)
        descending = bits ^ (bits >> 31 & 0x7FFFFFFF)  # integers that sort like the floats, including negative ones
        # Sorting by one key is twice as fast as by two. Candidates with equal keys keep their order.
        order = np.argsort((queries.astype(np.int64) << 32) + descending, kind="stable")
        if self._level == "page":  # the best passage of each page
            of_page = queries[order].astype(np.int64) << _PAGE_BITS | pages[order]
            order = order[np.sort(np.unique(of_page, return_index=True)[1])]
        own = queries[order]
        rank = np.arange(len(order)) - np.searchsorted(own, own)
        last = order[rank == self._n_best - 1]
        self._least[queries[last]] = scores[last]
        order = order[rank < self._n_best]
        self._held = [tuple(column[order] for column in (queries, scores, pages, numbers))]
        return self._held[0]

    def passages(self) -> list[list[ScoredPassage]]:
        """Returns the best passages of all blocks, by query."""
        queries, *columns = self._shrink()
        scores, pages, numbers = (column.tolist() for column in columns)
        every = list(map(ScoredPassage, pages, numbers, scores))
        ends = np.searchsorted(queries, np.arange(len(self._least) + 1))
        return [every[start:end] for start, end in pairwise(ends)]


def make_neighbours(vectors: str, folder: str) -> dict[str, Any]:
    """Makes the graph of vectors. Returns its recall for the manifest: the number of sampled passages, the number of
    nearest neighbours, and the share of these that it finds. Memory: the graph.

    Raises:
        SetupError: the vectors were changed after they were written, or are bits; or the graph is not on a local disk.
    """
    if not is_local(folder):
        raise SetupError(f"{folder}: the graph is mapped into memory; name vectors on a local disk.")
    stored = StoredVectors(vectors)
    facts = stored.manifest.facts
    check_hashes(vectors, stored.manifest.entries())
    with ReleaseFolder(os.path.abspath(folder), kind=VECTORS_GRAPH) as out:
        graph = _graph(facts)
        step = max(facts["counts"]["passages"] // N_SAMPLED, 1)
        sampled, n_before = [], 0
        for pages, numbers, block in stored.blocks():
            keys = (pages.astype(np.uint64) << np.uint64(_NUMBER_BITS)) | numbers.astype(np.uint64)
            graph.add(keys, block.view("<f2" if facts["precision"] == "float16" else np.int8), threads=1)
            sampled.append(stored.form.unpack(block[-n_before % step :: step]))
            n_before += len(block)
        path = join(out.folder, _FILE)
        os.makedirs(os.path.dirname(path))
        try:
            graph.save(path)
        except RuntimeError as error:  # it names no reason
            if shutil.disk_usage(out.folder).free < graph.serialized_length:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path) from error
            raise
        queries: Floats = np.concatenate(sampled).astype(np.float32)
        exact, found = stored.best(queries, N_NEAREST, "passage"), _nearest(graph, facts, queries, N_NEAREST)
        recall = {"nearest": N_NEAREST, "sampled": len(queries), "found": recall_of(exact, found)}
        made = {
            "vectors": {"manifest": MANIFEST, "manifest_sha256": stored.manifest.sha256},
            "counts": {"vectors": n_before},
            "recall": recall,
            "code": {**code_facts(), GRAPH: version(GRAPH)},
        }
        commit(VECTORS_GRAPH, VECTORS_GRAPH.listing([FileEntry.of(out.folder, _FILE)], made), out.folder)
    return recall


def recall_of(exact: list[list[ScoredPassage]], found: list[list[ScoredPassage]]) -> float:
    """Returns the share of the passages of exact search that were found."""
    pairs = zip(exact, found, strict=True)
    n_found = sum(len({hit[:2] for hit in own} & {hit[:2] for hit in other}) for own, other in pairs)
    return round(n_found / max(sum(map(len, exact)), 1), 4)


def _graph(facts: dict[str, Any], path: str | None = None) -> Any:
    """Returns an empty graph for vectors, or one mapped from a file."""
    index = load_library("usearch.index", purpose="--approximate")
    if (precision := facts["precision"]) not in _TYPES:
        raise SetupError(
            f"--approximate works only with vectors of {' or '.join(_TYPES)}, not with {precision}; leave it out."
        )
    # Both return 1 minus the score.
    metric = "cos" if facts["encoder"]["normalisation"] == "l2" else "ip"
    given = {"ndim": facts["encoder"]["dimension"], "metric": metric, "dtype": _TYPES[precision]}
    return index.Index(**given) if path is None else index.Index(**given, path=path, view=True)


def _nearest(graph: Any, facts: dict[str, Any], queries: Floats, n_best: int) -> list[list[ScoredPassage]]:
    found = graph.search(FORMS[facts["precision"]].pack(queries), min(n_best, len(graph)))
    ranked = []
    for own in [found] if len(queries) == 1 else found:
        columns = (*np.divmod(own.keys, 1 << _NUMBER_BITS), np.round(1 - own.distances, DECIMALS))
        hits = map(ScoredPassage, *(column.tolist() for column in columns))
        ranked.append(sorted(hits, key=lambda hit: (-hit.score, hit.page_id, hit.number)))
    return ranked


class Neighbours:
    """A searchable graph of vectors; its hash is verified first.

    Raises:
        SetupError: it does not exist, was changed after it was written, or belongs to other vectors.
    """

    def __init__(self, vectors: str, folder: str) -> None:
        manifest, made = VECTORS_GRAPH.read(folder), PASSAGE_VECTORS.read(vectors)
        if manifest.facts["vectors"]["manifest_sha256"] != made.sha256:
            raise SetupError(f"{folder} was not made from {vectors}; remove the graph, and it will be built again.")
        check_hashes(folder, manifest.entries())
        self._facts, self._graph = made.facts, _graph(made.facts, join(folder, _FILE))

    def best(self, queries: Floats, n_best: int, level: Level) -> list[list[ScoredPassage]]:
        """Returns the same results as ``StoredVectors.best``, but may miss a few, because the search is approximate;
        ties are ordered by page.
        """
        if level == "passage":
            return _nearest(self._graph, self._facts, queries, n_best)

        def nearest(n_passages: int, query: Floats) -> list[ScoredPassage]:
            return _nearest(self._graph, self._facts, query[None], n_passages)[0]

        return [best_of_pages(partial(nearest, query=query), n_best, n_first=4 * n_best) for query in queries]
