"""Exact search in vectors, beside a slow one that sorts all scores."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnxruntime")


from kbsource.errors import SetupError
from mapping.options import Level
from mapping.retrieval import vectors as searched
from mapping.retrieval.encoder import unit
from mapping.retrieval.queries import ScoredPassage
from mapping.retrieval.vector_forms import FORMS
from mapping.retrieval.vector_kind import VECTORS_GRAPH
from mapping.retrieval.vectors import Neighbours, VectorIndex, make_neighbours
from tests.support.builds import contents
from tests.support.tiny_encoder import encode_corpus, tiny_encoder
from tests.support.verified import verified
from tests.test_mapping.test_retrieval.test_index import passage, write_corpus

WORDS = "ada bruno arlin corvo was born in lives the weather nobody knows why fine".split()
N_PASSAGES = 1_500


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, with vectors and encoder beside it; many of its passages say the same."""
    folder = tmp_path_factory.mktemp("vectors")
    seeded = np.random.default_rng(3)
    texts = [" ".join(seeded.choice(WORDS, seeded.integers(1, 5))) for _ in range(N_PASSAGES)]
    rows = (passage(9_000 - row // 4, row % 4, "Page", text) for row, text in enumerate(texts))
    corpus, model = write_corpus(folder / "corpus", rows), tiny_encoder(folder / "tiny")
    encode_corpus(corpus, model, folder / "corpus-vectors")
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> VectorIndex:
    return VectorIndex(str(folder / "corpus"), str(folder / "corpus-vectors"), str(folder / "tiny"))


def _quarters(seeded: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    """Numbers whose products have no rounding, few of them, so that many scores are equal."""
    return (seeded.integers(-8, 9, shape) / 4).astype(np.float32)


@pytest.mark.parametrize("level", ["passage", "page"])
@pytest.mark.parametrize("n_best", [1, 7, 40, N_PASSAGES + 1])
@pytest.mark.parametrize("n_cuts", [0, 9])
def test_the_ranking_is_that_of_all_scores(
    index: VectorIndex, monkeypatch: pytest.MonkeyPatch, level: Level, n_best: int, n_cuts: int
) -> None:
    seeded = np.random.default_rng(5)
    vectors, queries = _quarters(seeded, N_PASSAGES, 6), _quarters(seeded, 5, 6)
    pages, numbers = 9_000 - np.arange(N_PASSAGES) // 4, np.arange(N_PASSAGES) % 4
    # Blocks end within pages.
    cuts = [0, *np.sort(seeded.choice(N_PASSAGES, n_cuts, replace=False)).tolist(), N_PASSAGES]
    columns = (pages, numbers, vectors.astype(np.float16).view(np.uint8))
    blocks = [tuple(column[start:end] for column in columns) for start, end in pairwise(cuts)]
    monkeypatch.setattr(index, "blocks", lambda: blocks)
    for found, scores in zip(index.best(queries, n_best, level), queries @ vectors.T, strict=True):
        ranked = sorted(range(N_PASSAGES), key=lambda row: (-scores[row], row))
        best = {int(pages[row]) if level == "page" else row: row for row in reversed(ranked)}
        kept = sorted(best.values(), key=ranked.index)[:n_best]
        assert found == [(pages[row], numbers[row], scores[row]) for row in kept]


def test_queries_are_found_alike_alone_and_together(index: VectorIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "QUERIES_AT_ONCE", 2)
    queries = [f"{word} lives" for word in WORDS]
    together = list(index.search(queries, 20, "passage"))
    assert together == [found for query in queries for found in index.search([query], 20, "passage")]
    assert {len(own) for own in together} == {20}


def test_numbers_are_moved_exactly() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    halves = halves[np.isfinite(halves)]
    assert (FORMS["float16"].unpack(halves.view(np.uint8)) == halves.astype(np.float32)).all()


def test_fewer_bits_keep_the_direction() -> None:
    vectors = unit(np.random.default_rng(2).standard_normal((500, 64), dtype=np.float32))
    for precision, least in (("float16", 0.999), ("int8", 0.999), ("bits", 0.6)):
        form = FORMS[precision]  # type: ignore[index]
        back = form.unpack(np.ascontiguousarray(form.pack(vectors)).view(np.uint8))
        assert (back * vectors).sum(axis=1).min() > least
        assert np.abs(np.linalg.norm(back, axis=1) - 1).max() < 1e-3
    assert (np.sign(back) == np.sign(vectors)).all()
    assert not FORMS["int8"].unpack(np.zeros((1, 64), np.uint8)).any()


def test_vectors_belong_to_their_passages_and_their_encoder(tmp_path: Path, folder: Path) -> None:
    other = write_corpus(tmp_path / "other", [passage(1, 0, "One", "ada")])
    with pytest.raises(SetupError, match="was not made from"):
        VectorIndex(str(other), str(folder / "corpus-vectors"), str(folder / "tiny"))
    model = tiny_encoder(tmp_path / "other-model", texts=["further words"])
    with pytest.raises(SetupError, match=r"was made for tiny, and the weights_sha256 of .* differs"):
        VectorIndex(str(folder / "corpus"), str(folder / "corpus-vectors"), str(model))


def _shared(exact: list[list[ScoredPassage]], found: list[list[ScoredPassage]]) -> float:
    pairs = [(hit, two) for own, other in zip(exact, found, strict=True) for hit, two in zip(own, other, strict=True)]
    return sum(hit.score == pytest.approx(two.score, abs=2e-3) for hit, two in pairs) / len(pairs)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_a_graph_finds_most_of_the_nearest(tmp_path: Path, folder: Path, precision: str) -> None:
    pytest.importorskip("usearch")
    model, vectors = folder / "tiny", tmp_path / "vectors"
    encode_corpus(folder / "corpus", model, vectors, precision=precision)
    for name in ("graph", "again"):
        recall = make_neighbours(str(vectors), str(tmp_path / name))
    assert contents(tmp_path / "graph") == contents(tmp_path / "again")
    assert verified(tmp_path / "graph").is_sound
    facts = VECTORS_GRAPH.read(str(tmp_path / "graph")).facts
    assert facts["counts"] == {"vectors": N_PASSAGES}
    assert facts["recall"] == recall
    assert (recall["nearest"], recall["sampled"]) == (10, 100)
    graph = Neighbours(str(vectors), str(tmp_path / "graph"))
    index = VectorIndex(str(folder / "corpus"), str(vectors), str(model), graph)
    queries = index._encoder.encode_queries([f"{word} lives" for word in WORDS])
    for level in ("passage", "page"):
        found = graph.best(queries, 7, level)  # type: ignore[arg-type]
        assert {len(own) for own in found} == {7}
        assert all(len({hit.page_id for hit in own}) == 7 for own in found if level == "page")
        assert _shared(index.best(queries, 7, level), found) > 0.8  # type: ignore[arg-type]
    assert list(index.search(["ada lives"], 7, "passage")) == graph.best(queries[:1], 7, "passage")
    everything = graph.best(queries[:1], N_PASSAGES + 1, "page")[0]
    assert len(everything) == len({hit.page_id for hit in everything}) > 0.9 * N_PASSAGES / 4

    path = tmp_path / "graph" / "usearch" / "vectors.usearch"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(SetupError, match="is damaged or changed"):
        Neighbours(str(vectors), str(tmp_path / "graph"))


def test_pages_are_looked_for_behind_the_many_passages_of_one(tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    rows = [*(passage(1, row, "One", "ada ada") for row in range(30)), passage(2, 0, "Two", "bruno")]
    corpus, model = write_corpus(tmp_path / "corpus", rows), tiny_encoder(tmp_path / "tiny")
    encode_corpus(corpus, model, tmp_path / "corpus-vectors")
    make_neighbours(str(tmp_path / "corpus-vectors"), str(tmp_path / "graph"))
    graph = Neighbours(str(tmp_path / "corpus-vectors"), str(tmp_path / "graph"))
    index = VectorIndex(str(corpus), str(tmp_path / "corpus-vectors"), str(model), graph)
    (found,) = index.search(["ada ada"], 2, "page")
    assert [hit.page_id for hit in found] == [1, 2]


def test_a_graph_belongs_to_its_vectors(tmp_path: Path, folder: Path) -> None:
    pytest.importorskip("usearch")
    make_neighbours(str(folder / "corpus-vectors"), str(tmp_path / "graph"))
    encode_corpus(folder / "corpus", tiny_encoder(tmp_path / "wide", dimension=16), tmp_path / "bits", precision="bits")
    with pytest.raises(SetupError, match="was not made from"):
        Neighbours(str(tmp_path / "bits"), str(tmp_path / "graph"))
    with pytest.raises(SetupError, match="--approximate works only with vectors of float16 or int8, not with bits"):
        make_neighbours(str(tmp_path / "bits"), str(tmp_path / "none"))
