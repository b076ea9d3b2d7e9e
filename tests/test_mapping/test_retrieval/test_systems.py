"""What systems find, alone, one behind the other, and fused."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("tantivy")

from kbsource.errors import SetupError
from mapping.entity_linking.linker import AliasTable
from mapping.entity_linking.records import Alias
from mapping.options import Level
from mapping.retrieval.index import PassageIndex, make_index
from mapping.retrieval.mentions import FoundMention
from mapping.retrieval.queries import Hit, Query, ScoredPassage
from mapping.retrieval.system_options import RerankerOptions, SystemOptions
from mapping.retrieval.systems import FUSION_K, Reranker, SearchSystem, _fused, open_system, reordered
from mapping.retrieval.vectors import VectorIndex
from tests.support.tiny_nli import overlap_model
from tests.test_mapping.test_retrieval.test_index import passage, write_corpus

# The ferry stands in words, not in the mention; page 9 has no passage.
PASSAGES = (
    passage(1, 0, "Lantern (ferry)", "She crossed the sound."),
    passage(1, 1, "Lantern (ferry)", "A lantern was lit on each of her stairs."),
    passage(2, 0, "Lantern (novel)", "A book of thirty nights."),
    passage(3, 0, "Stairs", "Stairs and more stairs, lit at night by a lantern."),
)
MEANINGS = {
    "Lantern": [(2, "Lantern (novel)", 0.6), (1, "Lantern (ferry)", 0.3), (9, "Lantern (lost)", 0.1)],
    "Stairs": [(3, "Stairs", 1.0)],
}


class _Aliases(AliasTable):
    """An alias table in memory."""

    def __init__(self) -> None:
        self._meanings = {
            mention: [Alias(mention, page_id, title, 1, prior, 0.5) for page_id, title, prior in pages]
            for mention, pages in MEANINGS.items()
        }

    def find(self, mention: str) -> tuple[Alias | None, bool]:
        return self._meanings.get(mention, [None])[0], False

    def meanings(self, mention: str) -> Iterator[Alias]:
        yield from self._meanings[mention]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> SearchSystem:
    """With all that any system needs; a test says which one it is."""
    corpus = write_corpus(tmp_path_factory.mktemp("systems") / "corpus", PASSAGES)
    make_index(str(corpus), f"{corpus}-bm25")
    pytest.importorskip("onnxruntime")
    texts = [f"{page.title} {page.text}" for page in PASSAGES]
    model = overlap_model(corpus.parent / "ranker", texts=texts, is_ranker=True)
    return SearchSystem(
        "bm25",
        PassageIndex(str(corpus), f"{corpus}-bm25"),
        table=_Aliases(),
        reranker=Reranker(RerankerOptions(str(model), depth=3)),
    )


def _hits(opened: SearchSystem, system: str, query: Query, level: str = "passage", n_documents: int = 10) -> list[Hit]:
    (hits,) = replace(opened, name=system, level=level).search([query], n_documents)  # type: ignore[arg-type]
    return hits


def _found(opened: SearchSystem, system: str, query: str, level: str = "passage", *, subject: str = "") -> list[str]:
    return [hit.document for hit in _hits(opened, system, Query("q", query, subject=subject), level)]


def test_a_page_that_aliases_find_comes_by_its_best_passage(opened: SearchSystem) -> None:
    assert _found(opened, "aliases", "Lantern stairs?") == ["2__0", "1__1"]
    assert _found(opened, "aliases", "Lantern of the sound?") == ["2__0", "1__0"]
    assert _found(opened, "aliases", "Lantern stairs?", "page") == ["2", "1", "9"]
    assert _found(opened, "aliases", "lantern") == []


def test_a_page_of_the_subject_stands_before_others(opened: SearchSystem) -> None:
    assert _found(opened, "aliases", "Lantern Stairs", "page") == ["3", "2", "1", "9"]
    assert _found(opened, "aliases", "Lantern Stairs", "page", subject="Lantern") == ["2", "1", "9", "3"]
    scores = [hit.score for hit in _hits(opened, "aliases", Query("", "Stairs", subject="Lantern"), "page")]
    assert scores == sorted(scores, reverse=True)


def test_a_page_of_bm25_has_the_place_of_its_best_passage(opened: SearchSystem) -> None:
    passages = _found(opened, "bm25", "lantern stairs")
    assert _found(opened, "bm25", "lantern stairs", "page") == list(
        dict.fromkeys(passage_id.partition("__")[0] for passage_id in passages)
    )
    two = _hits(opened, "bm25", Query("", "lantern"), "page", 2)
    assert len(two) == 2  # more passages are asked for where those of a page come together
    assert {(hit.passage_id, hit.text) for hit in two} == {("", "")}


@pytest.mark.parametrize("level", ["passage", "page"])
def test_systems_are_put_in_order_and_fused(opened: SearchSystem, level: str) -> None:
    query = "Lantern stairs lit on the sound"
    first, second = (_found(opened, name, query, level) for name in ("aliases", "bm25"))
    assert first != second
    assert _found(opened, "aliases+bm25", query, level) == list(dict.fromkeys(first + second))
    scores = {
        passage_id: sum(1 / (FUSION_K + run.index(passage_id) + 1) for run in (first, second) if passage_id in run)
        for passage_id in first + second
    }
    hits = _hits(opened, "aliases,bm25", Query("q", query), level)
    assert {hit.document: hit.score for hit in hits} == pytest.approx(scores)
    assert [hit.score for hit in hits] == sorted(scores.values(), reverse=True)
    # A comma binds closer than a plus.
    fused = [hit.document for hit in hits]
    assert _found(opened, "bm25+aliases,bm25", query, level) == list(dict.fromkeys(second + fused))


def test_a_cross_encoder_reorders_the_first_passages(opened: SearchSystem) -> None:
    query = "a book by lantern on her stairs of night"
    before, after = (_found(opened, system, query) for system in ("bm25", "bm25:rerank"))
    assert sorted(before[:3]) == sorted(after[:3])
    assert before[3:] == after[3:] != []
    texts = {cut_passage.passage_id: f"{cut_passage.title} {cut_passage.text}" for cut_passage in PASSAGES}
    words = {name: set(re.findall(r"\w+", text.lower())) for name, text in texts.items()}
    shared = {name: len(words[name].intersection(query.split())) for name in before[:3]}
    assert len({*shared.values()}) > 1
    assert after[:3] == sorted(before[:3], key=lambda name: -shared[name]) != before[:3]
    # Pages by their best passages, and behind them those that have none of the first.
    pages = _found(opened, "bm25:rerank", query, "page")
    read = dict.fromkeys(name.partition("__")[0] for name in after[:3])
    assert pages[: len(read)] == list(read)
    assert sorted(pages) == sorted(_found(opened, "bm25", query, "page"))


def test_what_no_model_reads_stays_behind(opened: SearchSystem) -> None:
    assert opened.reranker is not None
    passages = [("", ""), ("Stairs", "stairs lit")]
    assert [score is None for score in opened.reranker.scores("lit stairs", passages)] == [True, False]
    assert opened.reranker.scores(" ", passages) == [None, None]
    assert opened.reranker.scores("lit", []) == []
    hits = _hits(opened, "bm25", Query("", "lantern stairs"), "passage", 4)
    unread = reordered(hits, [None] * 3)
    assert [hit.document for hit in unread] == [hit.document for hit in hits]
    assert [hit.score for hit in unread] == [-1, -2, -3, -4][: len(hits)]
    # A longer list gives the same numbers: they depend on the pair alone.
    alone = opened.reranker.scores("lit stairs", passages[1:])
    assert opened.reranker.scores("lit stairs", [("One", "lantern " * 40), *passages])[-1:] == alone


class _Heard(Reranker):
    """What a cross-encoder is asked; it scores nothing."""

    def __init__(self) -> None:
        self.depth, self.asked = 3, list[str]()

    def scores(self, query: str, passages: Sequence[tuple[str, str]]) -> list[float | None]:
        self.asked.append(query)
        return [None] * len(passages)


class _NoNeighbours(VectorIndex):
    """What an encoder is asked; nothing is near it."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def search(self, queries: Sequence[str], n_best: int, level: Level) -> Iterator[list[ScoredPassage]]:
        self.asked += queries
        return iter([[]] * len(queries))


def test_models_are_given_the_input_and_words_are_searched_without_its_marks(opened: SearchSystem) -> None:
    texts = ("[START_ENT] Lantern [END_ENT] stairs", "Lantern [START_ENT] stairs [END_ENT]", "Lantern [SEP] stairs")
    reader, neighbours = _Heard(), _NoNeighbours()
    system = replace(opened, reranker=reader, vectors=neighbours)
    plain = _found(opened, "bm25", "Lantern stairs")
    for text in texts:
        assert _found(system, "bm25", text) == plain
        assert _found(system, "bm25:rerank", text) == plain
        assert _found(system, "dense", text) == []
    assert reader.asked == neighbours.asked == list(texts)


def test_no_more_is_found_than_asked_for(opened: SearchSystem) -> None:
    for system in ("bm25", "aliases", "aliases+bm25", "aliases,bm25", "bm25:rerank"):
        assert len(_hits(opened, system, Query("", "Lantern Stairs"), "passage", 1)) == 1


def test_tfidf_ranks_passages_or_whole_pages(tmp_path: Path) -> None:
    corpus = str(write_corpus(tmp_path / "corpus", PASSAGES))
    titles = {str(known_passage.page_id): known_passage.title for known_passage in PASSAGES}
    notes = list[str]()

    def found(level: Level, name: str = "tfidf") -> list[str]:
        with open_system(corpus, name, SystemOptions(), level=level, note=notes.append) as system:
            (hits,) = system.search([Query("", "She crossed the sound by ferry")], 10)
        assert [hit.title for hit in hits] == [titles[hit.page_id] for hit in hits]
        assert all(hit.text for hit in hits) == (level == "passage")
        return [hit.document for hit in hits]

    assert found("passage")[0] == "1__0"
    assert found("page") == ["1"]
    assert found("page", "tfidf,bm25")[0] == "1"
    assert sum(note.startswith("indexing") for note in notes) == 3  # each index is made once
    with (
        pytest.raises(SetupError, match="--tfidf works only with --system tfidf, not with bm25"),
        open_system(corpus, "bm25", SystemOptions(tfidf="elsewhere")),
    ):
        pass


_RUNS = st.lists(st.lists(st.integers(0, 12), unique=True), min_size=1, max_size=4)


def _hit(number: int) -> Hit:
    return Hit(str(number), str(number), "", "", 1.0)


@given(_RUNS, st.integers(1, 8), st.integers(1, 14), st.integers(1, 14))
def test_fewer_fused_documents_are_the_first_of_more(runs: list[list[int]], depth: int, fewer: int, more: int) -> None:
    fewer, more = sorted((fewer, more))
    short, long = (
        [(hit.document, hit.score) for hit in _fused([[*map(_hit, run[: max(n, depth)])] for run in runs], depth)[:n]]
        for n in (fewer, more)
    )
    assert short == long[:fewer]
    assert [score for _, score in long] == sorted((score for _, score in long), reverse=True)
    assert len(long) == min(more, len({passage_id for run in runs for passage_id in run[: max(more, depth)]}))


@pytest.mark.parametrize("level", ["passage", "page"])
@pytest.mark.parametrize(
    "system",
    [
        *("bm25", "aliases", "oracle", "aliases+bm25", "aliases,bm25", "bm25,aliases,oracle", "bm25+aliases,oracle"),
        *("aliases,bm25:rerank", "bm25:rerank", "oracle+bm25,aliases:rerank"),
    ],
)
@pytest.mark.parametrize("depth", [1, 2, 100])
def test_the_number_of_documents_cuts_and_nothing_else(
    opened: SearchSystem, system: str, level: str, depth: int
) -> None:
    query = Query("q", "Lantern stairs lit on the sound", subject="Stairs", pages=("9", "1", "2"))
    of_depth = replace(opened, depth=depth)
    all_found = [(hit.document, hit.score) for hit in _hits(of_depth, system, query, level, 50)]
    assert len(all_found) > 1
    for n_documents in range(1, len(all_found)):
        found = [(hit.document, hit.score) for hit in _hits(of_depth, system, query, level, n_documents)]
        assert found == all_found[:n_documents]


def test_depth_is_of_systems_that_are_fused_or_reranked(opened: SearchSystem) -> None:
    said = "--depth works only with systems that are fused or reranked, not with bm25"
    with pytest.raises(SetupError, match=said), open_system("corpus", "bm25", SystemOptions(depth=5)):
        pass


class _Names:
    """Finds every name of a list."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def find(self, texts: Sequence[str]) -> list[list[FoundMention]]:
        return [
            [FoundMention(*match.span()) for name in self._names for match in re.finditer(name, text)] for text in texts
        ]


def test_mentions_of_a_model_are_looked_up_by_aliases(opened: SearchSystem) -> None:
    query = "lantern of the Stairs by Lantern"
    by_table = _found(opened, "aliases", query, "page")
    assert by_table[:2] == ["3", "2"]
    assert _found(replace(opened, mention_finder=_Names("Lantern")), "aliases", query, "page") == ["2", "1", "9"]
    assert _found(replace(opened, mention_finder=_Names("Nobody")), "aliases", query, "page") == []


class _ByMention:
    """Vectors whose nearest passages depend on the marked mention."""

    reads_mentions = True
    asked: list[str]

    def search(self, inputs: Sequence[str], n_best: int, level: str) -> Iterator[list[ScoredPassage]]:
        self.asked = list(inputs)
        for text in inputs:
            found = {"Stairs": [ScoredPassage(3, 0, 0.9), ScoredPassage(1, 1, 0.5)]}
            name = re.findall(r"\[START_ENT\] (.*?) \[END_ENT\]", text)
            yield found.get(name[0] if name else "", [ScoredPassage(1, 1, 0.7), ScoredPassage(2, 0, 0.6)])[:n_best]


def test_each_mention_is_a_query_of_its_own_and_scores_are_merged(opened: SearchSystem) -> None:
    vectors = _ByMention()
    system = replace(opened, vectors=vectors, mention_finder=_Names("Lantern", "Stairs"))  # type: ignore[arg-type]
    hits = _hits(system, "dense", Query("q", "Lantern Stairs"))
    assert [(hit.document, hit.score) for hit in hits] == [("3__0", 0.9), ("1__1", 0.7), ("2__0", 0.6)]
    assert vectors.asked == ["[START_ENT] Lantern [END_ENT] Stairs", "Lantern [START_ENT] Stairs [END_ENT]"]
    pages = _hits(system, "dense", Query("q", "Lantern Stairs"), "page")
    assert [(hit.document, hit.score) for hit in pages] == [("3", 0.9), ("1", 0.7), ("2", 0.6)]
    marked = "a [START_ENT] Stairs [END_ENT] of Lantern"
    assert [hit.document for hit in _hits(system, "dense", Query("q", marked))] == ["3__0", "1__1"]
    assert vectors.asked == [marked]
    assert [hit.document for hit in _hits(system, "dense", Query("q", "nothing"))] == ["1__1", "2__0"]


def test_a_mention_model_is_of_systems_that_link() -> None:
    with (
        pytest.raises(SetupError, match="--mention-model works only with --system aliases and dense, not with bm25"),
        open_system("corpus", "bm25", SystemOptions(mention_model="tagger")),
    ):
        pass
