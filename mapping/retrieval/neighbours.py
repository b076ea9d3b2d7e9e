"""A graph of vectors on disk, in which the nearest are found without a look at all of them; not always those.

The library is usearch: its file is mapped into memory, so that a search reads the part of it that it goes through. One
thread makes it, so that the same vectors give the same bytes.

Source: Malkov and Yashunin, Efficient and robust approximate nearest neighbor search using hierarchical navigable small
world graphs (2020).
"""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from kbsource.errors import SetupError
from kbsource.files import is_local, join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import check_hashes
from mapping.entail.signal import load_library
from mapping.options import Level
from mapping.retrieval.index import best_of_pages
from mapping.retrieval.vector_kind import GRAPH, PASSAGE_VECTORS, VECTORS_GRAPH
from mapping.retrieval.vectors import DECIMALS, FORMS, Floats, ScoredPassage, StoredVectors

N_SAMPLED, N_NEAREST = 100, 10
"""Passages, less than twice as many, whose nearest ones are looked for to say how many are found."""
_FILE = f"{GRAPH}/vectors.usearch"
_NUMBER_BITS = 24
"""Of a key: the number of a passage in its page, behind the page."""
_TYPES = {"float16": "f16", "int8": "i8"}


def make_neighbours(vectors: str, folder: str) -> dict[str, Any]:
    """Makes the graph of vectors; gives its recall as the manifest has it: of how many passages how many nearest ones
    were looked for, and the share of these that it finds. Memory: that of the graph.

    Raises:
        SetupError: the vectors are not as they were written, or bits; or the graph has a place that it cannot have.
    """
    if not is_local(folder):
        raise SetupError(f"{folder}: a graph is mapped into memory; name vectors on a local disk.")
    stored = StoredVectors(vectors)
    facts = stored.manifest.facts
    check_hashes(vectors, stored.manifest.entries())
    with ReleaseFolder(os.path.abspath(folder), kind=VECTORS_GRAPH) as out:
        graph = _graph(facts)
        places = range(0, facts["counts"]["passages"], max(facts["counts"]["passages"] // N_SAMPLED, 1))
        sampled, n_before = [], 0
        for pages, numbers, block in stored.blocks():
            keys = (pages.astype(np.uint64) << np.uint64(_NUMBER_BITS)) | numbers.astype(np.uint64)
            graph.add(keys, block.view("<f2" if facts["precision"] == "float16" else np.int8), threads=1)
            chosen = [place - n_before for place in places if n_before <= place < n_before + len(block)]
            sampled.append(stored.form.unpack(block[chosen]) * stored.form.scale)
            n_before += len(block)
        path = join(out.folder, _FILE)
        os.makedirs(os.path.dirname(path))
        graph.save(path)
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
    """The share of the passages of exact search that were found."""
    n_found = sum(
        len({one[:2] for one in own}.intersection(two[:2] for two in other))
        for own, other in zip(exact, found, strict=True)
    )
    return round(n_found / max(sum(map(len, exact)), 1), 4)


def _graph(facts: dict[str, Any], path: str | None = None) -> Any:
    """An empty graph for vectors, or one that is mapped."""
    index = load_library("usearch.index", purpose="--approximate")
    if (precision := facts["precision"]) not in _TYPES:
        raise SetupError(f"--approximate is for vectors of {' or '.join(_TYPES)}, not for {precision}; leave it out.")
    # Both give 1 less the score.
    metric = "cos" if facts["encoder"]["normalisation"] == "l2" else "ip"
    given = {"ndim": facts["encoder"]["dimension"], "metric": metric, "dtype": _TYPES[precision]}
    return index.Index(**given) if path is None else index.Index(**given, path=path, view=True)


def _nearest(graph: Any, facts: dict[str, Any], queries: Floats, n_best: int) -> list[list[ScoredPassage]]:
    packed = FORMS[facts["precision"]].pack(queries)
    found = graph.search(packed.reshape(len(queries), -1), min(n_best, len(graph)))
    keys, distances = found.keys.reshape(len(queries), -1), found.distances.reshape(len(queries), -1)
    counts = np.atleast_1d(getattr(found, "counts", keys.shape[1]))
    ranked = []
    for own, far, n_found in zip(keys.tolist(), np.round(1 - distances, DECIMALS).tolist(), counts, strict=True):
        hits = [
            ScoredPassage(key >> _NUMBER_BITS, key & ((1 << _NUMBER_BITS) - 1), score)
            for key, score in zip(own[:n_found], far[:n_found], strict=True)
        ]
        ranked.append(sorted(hits, key=lambda hit: (-hit.score, hit.page_id, hit.number)))
    return ranked


class Neighbours:
    """A graph of vectors that is searched, compared with its hash first.

    Raises:
        SetupError: it is not there, not as it was written, or of other vectors.
    """

    def __init__(self, vectors: str, folder: str) -> None:
        manifest, made = VECTORS_GRAPH.read(folder), PASSAGE_VECTORS.read(vectors)
        if manifest.facts["vectors"]["manifest_sha256"] != made.sha256:
            raise SetupError(f"{folder} is the graph of other vectors than {vectors}; remove it, and it is made anew.")
        check_hashes(folder, manifest.entries())
        self._facts, self._graph = made.facts, _graph(made.facts, join(folder, _FILE))

    def best(self, queries: Floats, n_best: int, level: Level) -> list[list[ScoredPassage]]:
        """What ``StoredVectors.best`` gives, or most of it; those of one score by page."""
        if level == "passage":
            return _nearest(self._graph, self._facts, queries, n_best)

        def nearest(n_passages: int, query: Floats) -> list[ScoredPassage]:
            return _nearest(self._graph, self._facts, query[None], n_passages)[0]

        return [best_of_pages(partial(nearest, query=query), n_best, n_first=4 * n_best) for query in queries]
