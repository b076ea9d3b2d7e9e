"""Tf-idf on disk, beside a slow implementation that shares no code with it."""

from __future__ import annotations

import math
import random
import re
import shutil
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

pytest.importorskip("tantivy")

from kbsource.errors import SetupError
from mapping.options import Level
from mapping.passages.cut import Passage
from mapping.retrieval.tfidf import (
    TFIDF_INDEX,
    ScoredDocument,
    TfidfIndex,
    filtered_words,
    make_tfidf_index,
    open_analyser,
)
from tests.support.dumps import flip
from tests.support.verified import broken, seal
from tests.test_mapping.test_retrieval.test_index import passage, write_corpus

N_BUCKETS = 1 << 24
WORDS = (
    "the of and Sea isle Côte d'Ivoire harbour lamp lamps x² 1,234 O'Neill ferry North Māori İzmir — ( ) $5 it's"
).split()


def _murmur3(data: bytes, seed: int = 0) -> int:
    """MurmurHash3_x86_32, as Austin Appleby defines it."""
    mask, value = 0xFFFFFFFF, seed
    tail = len(data) - len(data) % 4
    for start in range(0, tail, 4):
        block = int.from_bytes(data[start : start + 4], "little") * 0xCC9E2D51 & mask
        block = (block << 15 | block >> 17) & mask
        value ^= block * 0x1B873593 & mask
        value = (value << 13 | value >> 19) & mask
        value = (value * 5 + 0xE6546B64) & mask
    if rest := data[tail:]:
        block = int.from_bytes(rest, "little") * 0xCC9E2D51 & mask
        block = (block << 15 | block >> 17) & mask
        value ^= block * 0x1B873593 & mask
    value ^= len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    return value ^ value >> 16


def _slow_words(text: str) -> list[str]:
    """Words and single characters, one character at a time."""
    words, run = [], ""
    for char in [*unicodedata.normalize("NFD", text), " "]:
        category = unicodedata.category(char)
        if category[0] in "LNM":
            run += char
            continue
        if run:
            words.append(run.lower())
        run = ""
        if category[0] not in "ZC":
            words.append(char.lower())
    return words


def _slow_counts(text: str, lang: str) -> Counter[int]:
    words = _slow_words(text)
    counts: Counter[int] = Counter()
    for size in (1, 2):
        for start in range(len(words) - size + 1):
            ngram = words[start : start + size]
            if any(
                word in filtered_words(lang) or all(unicodedata.category(char)[0] == "P" for char in word)
                for word in ngram
            ):
                continue
            counts[_murmur3(" ".join(ngram).encode()) % N_BUCKETS] += 1
    return counts


class _SlowTfidf:
    """Tf-idf as it is defined, over all documents for each query."""

    def __init__(self, documents: Sequence[tuple[int, int | None, str]], lang: str = "en") -> None:
        self._lang, self._documents = lang, documents
        self._counts = [_slow_counts(text, lang) for _, _, text in documents]
        self._df = Counter(bucket for counts in self._counts for bucket in counts)

    def search(self, query: str, n_documents: int) -> list[tuple[int, int | None, float]]:
        given = self._weights(_slow_counts(query, self._lang))
        scored = []
        for (page_id, number, _), counts in zip(self._documents, self._counts, strict=True):
            own = self._weights(counts)
            score = round(math.fsum(own.get(bucket, 0) * weight for bucket, weight in given.items()), 6)
            if score > 0:
                scored.append((page_id, number, score))
        return sorted(scored, key=lambda scored_document: -scored_document[2])[:n_documents]

    def _weights(self, counts: Counter[int]) -> dict[int, float]:
        n = len(self._documents)
        idf = {bucket: math.log((n - self._df[bucket] + 0.5) / (self._df[bucket] + 0.5)) for bucket in counts}
        return {bucket: math.log(tf + 1) * max(0.0, idf[bucket]) for bucket, tf in counts.items()}


def _pages(passages: Sequence[Passage]) -> list[tuple[int, int | None, str]]:
    return [
        (page_id, None, "\n".join([own[0].title, *(cut_passage.text for cut_passage in own)]))
        for page_id, own in (
            (page_id, [*group]) for page_id, group in groupby(passages, lambda cut_passage: cut_passage.page_id)
        )
    ]


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    seeded = random.Random("tf-idf")
    texts = [" ".join(seeded.choices(WORDS, k=seeded.randint(1, 40))) for _ in range(380)]
    texts += seeded.choices(texts, k=20)
    return [
        passage(900 - row // 4, row % 4, f"{WORDS[row // 4 % 9]} {row // 4}", text) for row, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, passages: list[Passage]) -> Path:
    return write_corpus(tmp_path_factory.mktemp("tfidf") / "corpus", passages)


@pytest.fixture(scope="module")
def made(corpus: Path) -> Callable[[Level], Path]:
    folders: dict[Level, Path] = {}

    def make(level: Level) -> Path:
        if level not in folders:
            folders[level] = corpus.parent / level
            n = make_tfidf_index(str(corpus), str(folders[level]), level=level)
            assert n == {"passage": 400, "page": 100}[level]
        return folders[level]

    return make


@pytest.mark.parametrize("level", ["passage", "page"])
def test_the_ranking_is_that_of_the_definition(
    level: Level, passages: list[Passage], corpus: Path, made: Callable[[Level], Path]
) -> None:
    by_passage = [
        (cut_passage.page_id, cut_passage.number, f"{cut_passage.title}\n{cut_passage.text}")
        for cut_passage in passages
    ]
    slow = _SlowTfidf(_pages(passages) if level == "page" else by_passage)
    index = TfidfIndex(str(corpus), str(made(level)), level)
    seeded = random.Random("queries")
    n_found = 0
    for _ in range(60):
        query, top = " ".join(seeded.choices([*WORDS, "nowhere"], k=seeded.randint(1, 9))), seeded.choice((1, 10, 500))
        wanted, found = slow.search(query, top), index.search(query, top)
        assert [(document.page_id, document.passage_number) for document in found] == [
            document[:2] for document in wanted
        ]
        assert [document.score for document in found] == pytest.approx([document[2] for document in wanted], abs=2e-6)
        n_found += len(found)
    assert n_found > 300
    index.close()


@pytest.mark.parametrize(
    "text", ["", "a", "abc", "abcd", "halvane isles", "Māori".lower(), "\N{GRINNING FACE} x", "naïve café"]
)
def test_ngrams_are_hashed_by_murmurhash3(text: str) -> None:
    assert open_analyser("en")(text) == _slow_counts(text, "en")


def test_the_hash_has_the_published_values() -> None:
    assert _murmur3(b"") == 0
    assert _murmur3(b"Hello, world!", 0x9747B28C) == 0x24884CBA


@pytest.mark.parametrize(
    ("lang", "text", "n_ngrams"),
    [
        ("en", "The Sea of Glass", 2),  # the, of
        ("de", "Das Meer und der Turm", 2),  # das, und, der
        ("en", "Das Meer und der Turm", 9),
        ("ltg", "the sea", 3),  # no stop words are known
    ],
)
def test_stop_words_are_those_of_the_language(lang: str, text: str, n_ngrams: int) -> None:
    assert open_analyser(lang)(text).total() == n_ngrams


def test_a_query_of_stop_words_finds_nothing(corpus: Path, made: Callable[[Level], Path]) -> None:
    index = TfidfIndex(str(corpus), str(made("page")), "page")
    assert index.search("of the ( )", 10) == []
    assert index.search("' or 1 = 1; --", 10) == []
    assert index.search("nowhere", 10) == []
    assert all(isinstance(document, ScoredDocument) for document in index.search("ferry", 3))


def test_a_corpus_without_passages_has_an_empty_index(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", [])
    assert make_tfidf_index(str(corpus), str(tmp_path / "index"), level="page") == 0
    assert TfidfIndex(str(corpus), str(tmp_path / "index"), "page").search("ferry", 10) == []


def test_an_index_has_the_same_bytes_again(tmp_path: Path, corpus: Path, made: Callable[[Level], Path]) -> None:
    make_tfidf_index(str(corpus), str(tmp_path / "again"), level="passage")
    for path in sorted(made("passage").rglob("*")):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(made("passage"))).read_bytes() == path.read_bytes()


def test_an_index_of_something_else_is_refused(tmp_path: Path, corpus: Path, made: Callable[[Level], Path]) -> None:
    other = write_corpus(tmp_path / "other", [passage(1, 0, "Ferry", "A ferry.")])
    with pytest.raises(SetupError, match="was not made from"):
        TfidfIndex(str(other), str(made("page")), "page")
    with pytest.raises(SetupError, match="this index contains pages, but the search is for passages"):
        TfidfIndex(str(corpus), str(made("page")), "passage")
    with pytest.raises(SetupError, match=re.escape("--system tfidf --level page to make it")):
        TfidfIndex(str(corpus), str(tmp_path / "nowhere"), "page")


def test_a_changed_bit_is_reported(tmp_path: Path, corpus: Path, made: Callable[[Level], Path]) -> None:
    index = shutil.copytree(made("page"), tmp_path / "index")
    (path,) = (index / "postings").glob("*.parquet")
    path.write_bytes(flip(path.read_bytes(), 100))
    with pytest.raises(SetupError, match="postings"):
        TfidfIndex(str(corpus), str(index), "page")


def _rewrite(index: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    (path,) = (index / table).glob("*.parquet")
    whole = pq.read_table(path)
    pq.write_table(change(whole).cast(whole.schema).replace_schema_metadata(whole.schema.metadata), path)
    seal(index)


def _set(column: str, row: int, value: int) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        mask = pa.array([at == row for at in range(table.num_rows)])
        place = table.schema.get_field_index(column)
        return table.set_column(place, column, pc.if_else(mask, value, table[column].combine_chunks()))

    return change


@pytest.mark.parametrize(
    ("table", "change", "rule"),
    [
        ("postings", _set("n_occurrences", 3, 0), "invalid_posting"),
        ("postings", _set("document", 3, 400), "invalid_posting"),
        ("postings", _set("bucket", 0, -1), "invalid_posting"),
        ("postings", _set("bucket", 3, N_BUCKETS - 1), "postings_out_of_order"),
        ("documents", _set("document", 3, 7), "documents_out_of_order"),
        ("documents", _set("page_id", 3, 1), "passages_disagree"),
    ],
)
def test_verify_finds(
    table: str,
    change: Callable[[pa.Table], pa.Table],
    rule: str,
    tmp_path: Path,
    corpus: Path,
    made: Callable[[Level], Path],
) -> None:
    index = shutil.copytree(made("passage"), tmp_path / "index")
    assert not broken(index, passages=corpus)
    _rewrite(index, table, change)
    assert rule in {rule for _, rule in broken(index, passages=corpus)}


def test_verify_knows_an_index_of_pages(corpus: Path, made: Callable[[Level], Path]) -> None:
    assert not broken(made("page"), passages=corpus)
    assert TFIDF_INDEX.read(str(made("page"))).facts["options"] == {"level": "page"}
