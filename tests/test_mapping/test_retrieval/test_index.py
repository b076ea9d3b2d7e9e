"""BM25 over passages on disk, beside a slow one that goes through all of them."""

from __future__ import annotations

import math
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("tantivy")

from kbsource.errors import SetupError
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.sql import with_counts
from kbsource.release.writer import write_rows
from mapping.passages.corpus import PASSAGES
from mapping.passages.cut import Passage, PassageSpan, passage_id
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.retrieval.index import PassageIndex, analyser, in_order, make_index
from pipelines.cli import main
from tests.support.dumps import flip
from tests.support.verified import verified

N_PASSAGES, N_WORDS = 2_000, 3_000
K1, B = 1.2, 0.75
TIE = 1e-5
_WEIGHTS = list(accumulate(1 / rank for rank in range(1, N_WORDS + 1)))


def passage(page_id: int, number: int, title: str, text: str) -> Passage:
    """A passage that is the whole of an element."""
    spans = (PassageSpan(number + 1, 0, len(text)),)
    return Passage(passage_id(page_id, number), page_id, title, number, len(text.split()), text, spans)


def write_corpus(folder: Path, passages: Iterable[Passage], *, lang: str = "en") -> Path:
    """Writes a corpus of passages of nobody's pages and gives its folder."""
    own = list(passages)
    facts = {
        "options": {"max_words": 100, "split_long": False, "unit": "sentences", "tables": False, "formats": []},
        "counts": {"pages": len({page.page_id for page in own})},
        "lang": lang,
        "release": {"manifest_sha256": "0" * 64},
    }
    with ReleaseFolder(str(folder), kind=PASSAGES_CORPUS):
        entry = write_rows(own, "passages", PASSAGES, output=str(folder), group_rows=512)
        facts = with_counts(PASSAGES_CORPUS, [entry], facts, str(folder))
        commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing([entry], facts), str(folder))
    return folder


def _text(seeded: random.Random, n_words: int) -> str:
    return " ".join(f"w{number}" for number in seeded.choices(range(N_WORDS), cum_weights=_WEIGHTS, k=n_words))


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    seeded = random.Random("passages")
    texts = [_text(seeded, seeded.randint(1, 160)) for _ in range(N_PASSAGES - 200)]
    texts += seeded.choices(texts, k=200)  # so that there are passages of one score
    seeded.shuffle(texts)
    # Pages are not in the order of their ids.
    return [passage(9_000 - row // 4, row % 4, f"Page {row // 4}", text) for row, text in enumerate(texts)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, passages: list[Passage]) -> Path:
    return write_corpus(tmp_path_factory.mktemp("search") / "corpus", passages)


@pytest.fixture(scope="module")
def index(corpus: Path) -> Path:
    assert make_index(str(corpus), str(corpus.parent / "index")) == N_PASSAGES
    return corpus.parent / "index"


def _stored_length(n_words: int) -> int:
    """The length that one byte keeps: four leading bits of what is above 24. Source: Lucene's SmallFloat."""
    above = n_words - 24
    shift = max(above.bit_length() - 4, 0) if above > 0 else 0
    return n_words if above <= 0 else 24 + (above >> shift << shift)


class _SlowBm25:
    """BM25 as it is defined, over all passages for each query."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        words = analyser("en")
        self._analyze = words.analyze
        self._counts = [Counter(words.analyze(f"{page.title}\n{page.text}")) for page in passages]
        self._ids = [cut_passage.passage_id for cut_passage in passages]
        self._frequencies = Counter(word for counter in self._counts for word in counter)
        self._mean = sum(counter.total() for counter in self._counts) / len(passages)

    def search(self, query: str, n_passages: int) -> list[tuple[str, float]]:
        scored = []
        for row, counts in enumerate(self._counts):
            weight = K1 * (1 - B + B * _stored_length(counts.total()) / self._mean)
            score = math.fsum(
                self._idf(word) * counts[word] * (K1 + 1) / (counts[word] + weight)
                for word in self._analyze(query)
                if counts[word]
            )
            if score:
                scored.append((score, row))
        scored.sort(reverse=True)
        ranks, number = {}, 0
        for place, (score, row) in enumerate(scored):
            number += place > 0 and scored[place - 1][0] - score > TIE * score
            ranks[row] = number
        scored.sort(key=lambda scored_row: (ranks[scored_row[1]], scored_row[1]))
        return [(self._ids[row], score) for score, row in scored[:n_passages]]

    def _idf(self, word: str) -> float:
        n_with = self._frequencies[word]
        return math.log(1 + (len(self._counts) - n_with + 0.5) / (n_with + 0.5))


@pytest.mark.slow
def test_the_ranking_is_that_of_brute_force(passages: list[Passage], corpus: Path, index: Path) -> None:
    slow, searched = _SlowBm25(passages), PassageIndex(str(corpus), str(index))
    seeded = random.Random("queries")
    n_tied = 0
    for _ in range(200):
        query, top = _text(seeded, seeded.randint(1, 12)), seeded.choice((1, 10, 100))
        wanted = slow.search(query, top)
        found = searched.search(query, top)
        assert [hit.passage_id for hit in found] == [passage_id for passage_id, _ in wanted]
        assert [hit.score for hit in found] == pytest.approx([score for _, score in wanted], rel=1e-4)
        n_tied += len(wanted) - len({round(score, 6) for _, score in wanted})
    assert n_tied > 100


def test_a_hit_is_its_passage(passages: list[Passage], corpus: Path, index: Path) -> None:
    by_id = {cut_passage.passage_id: cut_passage for cut_passage in passages}
    for hit in PassageIndex(str(corpus), str(index)).search("w1 w2 w3", 20):
        wanted_passage = by_id[hit.passage_id]
        assert (hit.page_id, hit.title, hit.text, hit.spans) == (
            str(wanted_passage.page_id),
            wanted_passage.title,
            wanted_passage.text,
            wanted_passage.spans,
        )


def test_the_ranking_is_the_same_without_texts(corpus: Path, index: Path) -> None:
    searched = PassageIndex(str(corpus), str(index))
    bare = [replace(hit, title="", text="", spans=()) for hit in searched.search("w1 w2 w3", 20)]
    assert searched.search("w1 w2 w3", 20, with_texts=False) == bare


def test_passages_of_one_score_stand_in_the_order_of_the_corpus_wherever_the_cut_is(tmp_path: Path) -> None:
    same = [passage(9 - row, 0, "Same", "river") for row in range(9)] * 1 + [passage(100, 0, "Other", "river brook")]
    corpus = write_corpus(tmp_path / "corpus", same)
    make_index(str(corpus), str(tmp_path / "index"))
    index = PassageIndex(str(corpus), str(tmp_path / "index"))
    for top in (1, 3, 9):
        assert [page.page_id for page in index.search("rivers", top)] == [*map(str, range(9, 9 - top, -1))]


def test_more_passages_of_one_score_than_are_asked_for_at_first(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [passage(500 - row, 0, "Same", "river") for row in range(300)])
    make_index(str(corpus), str(tmp_path / "index"))
    index = PassageIndex(str(corpus), str(tmp_path / "index"))
    assert [page.page_id for page in index.search("river", 2)] == ["500", "499"]


def test_scores_that_rounding_parts_are_one_score() -> None:
    class Scored:
        def __init__(self, score: float, row: int) -> None:
            self.score, self.row = score, row

    given = [Scored(9.0, 5), Scored(8.0, 4), Scored(7.99999, 2), Scored(7.99998, 3), Scored(1.0, 1)]
    assert [hit.row for hit in in_order(given)] == [5, 2, 3, 4, 1]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lang", "text", "words"),
    [
        ("en", "The RIVERS of São-Paulo", ["river", "são", "paulo"]),
        ("de", "Die Flüsse", ["fluss"]),
        ("simple", "The rivers", ["river"]),
        ("cs", "The rivers", ["the", "rivers"]),
    ],
)
def test_words_are_those_of_the_language(lang: str, text: str, words: list[str]) -> None:
    assert analyser(lang).analyze(text) == words


def test_nothing_is_found_for_words_that_are_nowhere(corpus: Path, index: Path) -> None:
    searched = PassageIndex(str(corpus), str(index))
    assert searched.search("unheard-of", 5) == searched.search("the of", 5) == searched.search("", 5) == []


def test_an_index_is_of_one_corpus(tmp_path: Path, index: Path) -> None:
    other = write_corpus(tmp_path / "other", [passage(1, 0, "A", "b")])
    with pytest.raises(SetupError, match="was not made from"):
        PassageIndex(str(other), str(index))


def test_an_index_is_whole(tmp_path: Path, corpus: Path, index: Path) -> None:
    assert verified(index).findings == ()
    shutil.copytree(index, tmp_path / "index")
    largest = max((tmp_path / "index" / "tantivy").iterdir(), key=lambda path: path.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1])
    assert {finding.rule for finding in verified(tmp_path / "index").findings} == {"size"}
    with pytest.raises(SetupError, match="damaged or changed"):
        PassageIndex(str(corpus), str(tmp_path / "index"))


def test_a_changed_bit_of_an_index_is_told(
    tmp_path: Path, corpus: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(index, tmp_path / "index")
    search = ["search", str(corpus), "w1 w2 w3", "--index", str(tmp_path / "index")]
    assert main(search) == 0
    found = capsys.readouterr().out
    for file in sorted(path for path in (tmp_path / "index" / "tantivy").iterdir() if path.stat().st_size):
        content = file.read_bytes()
        for place in {0, len(content) // 2, len(content) - 1}:
            replace_file(file, flip(content, place, bits=4))
            code, said = main(search), capsys.readouterr()
            if file.name.startswith("."):  # of tantivy itself
                assert (code, said.out) == (0, found) or re.fullmatch(r"kbsource search: .*make it again\.\n", said.err)
            else:
                assert re.fullmatch(rf"kbsource search: .*{file.name} is damaged or changed.*again.*\n", said.err)
        replace_file(file, content)


def replace_file(path: Path, content: bytes) -> None:
    """Puts a new file in its place: a search before may have mapped the old one, and cutting that ends the process."""
    new = path.with_name("new")
    new.write_bytes(content)
    new.replace(path)


def test_passages_that_are_not_as_they_were_written_are_not_indexed(tmp_path: Path, corpus: Path) -> None:
    shutil.copytree(corpus, tmp_path / "corpus")
    table = next((tmp_path / "corpus" / "passages").iterdir())
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    with pytest.raises(SetupError, match="damaged or changed"):
        make_index(str(tmp_path / "corpus"), str(tmp_path / "index"))
    with pytest.raises(SetupError, match="local disk"):
        make_index(str(corpus), "gs://bucket/index")
