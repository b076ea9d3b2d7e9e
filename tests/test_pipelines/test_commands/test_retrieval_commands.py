"""``kbsource search``, ``trec`` and ``beir`` over passages of the mini-wiki."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("tantivy")

from mapping.passages.corpus import read_passages
from mapping.passages.cut import CutOptions, Passage
from pipelines.cli import main
from tests.support.alignments import evidence, map_mini, read_lines, record, write_records
from tests.support.builds import contents
from tests.support.passages import cut_release, page, write_kb
from tests.support.tiny_encoder import encode_corpus, tagger, tiny_encoder
from tests.support.tiny_nli import overlap_model
from tests.support.verified import verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")

SORN = page(3, "Sorn", "The Sorn is a river. It rises in Brack.", "Its fish are old.")
TEY = page(5, "Tey", "A town of no more than forty goats.", "It stands on the river Sorn.", kinds=["paragraph"])
RECORDS = (
    record("a", [evidence("It rises in Brack.", title="Sorn")], answer="Brack"),
    record("b", [evidence("A town of no more than forty goats.", title="Tey")], [evidence("Its fish", title="Sorn")]),
    record("c d", [evidence(None, title="Tey")]),
)  # fmt: skip


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pages = [replace(wiki_page, is_disambiguation=False) for wiki_page in (SORN, TEY)]
    return write_kb(tmp_path_factory.mktemp("kb"), pages)


@pytest.fixture(scope="module")
def corpus(kb: Path) -> Path:
    cut_release(kb.parent / "corpus", kb, cut=CutOptions(max_words=8))
    return kb.parent / "corpus"


@pytest.fixture(scope="module")
def aligned(kb: Path) -> Path:
    map_mini(kb.parent / "aligned", kb, "jsonl", write_records(kb.parent / "own.jsonl", RECORDS))
    return kb.parent / "aligned"


def _passages(corpus: Path) -> list[Passage]:
    return [passage for path in sorted((corpus / "passages").iterdir()) for passage in read_passages(str(path))]


def test_a_query_is_answered_and_the_index_is_kept(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["search", str(shutil.copytree(corpus, tmp_path / "corpus"))]
    assert main([*flags, "river in Brack", "--top", "1"]) == 0
    said = capsys.readouterr()
    assert "passages indexed" in said.err
    assert [line.split()[1:] for line in said.out.splitlines()[:1]] == [["3__1", "Sorn"]]
    assert main([*flags, "goats"]) == 0
    said = capsys.readouterr()
    assert "indexed" not in said.err
    assert "5__0  Tey" in said.out
    assert verified(tmp_path / "corpus-bm25").findings == ()
    assert main([*flags, "unheard of"]) == 0
    assert capsys.readouterr().out.startswith("Nothing was found.\n")
    assert main([*flags, "goats", "--level", "page", "--json"]) == 0
    assert [(hit["document"], hit["text"]) for hit in json.loads(capsys.readouterr().out)] == [("5", "")]


def test_files_of_queries_become_predictions_and_runs(tmp_path: Path, corpus: Path) -> None:
    queries = [
        {"id": "a", "input": "river Sorn?", "output": [{"answer": "Brack", "provenance": [{"wikipedia_id": "3"}]}]},
        {"id": "b", "input": "goats", "output": [{"answer": "no", "provenance": [{"wikipedia_id": "5"}]}]},
    ]
    path = write_records(tmp_path / "queries.jsonl", queries)
    flags = ["search", str(corpus), "--index", str(tmp_path / "index"), "--queries", str(path), "--output"]
    assert main([*flags, str(tmp_path / "kilt.jsonl"), "--top", "2"]) == 0
    assert main([*flags, str(tmp_path / "run.trec"), "--top", "2", "--format", "trec"]) == 0

    first, second = read_lines(tmp_path / "kilt.jsonl")
    texts = {passage.passage_id: (str(passage.page_id), passage.title, passage.text) for passage in _passages(corpus)}
    for span in first["output"][0]["provenance"] + second["output"][0]["provenance"]:
        assert texts[span["passage_id"]] == (span["wikipedia_id"], span["title"], span["text"])
    assert [span["wikipedia_id"] for span in second["output"][0]["provenance"]] == ["5"]
    run = (tmp_path / "run.trec").read_text()
    assert [line.split()[0] for line in run.splitlines()] == ["a", "a", "b"]

    assert main(["trec", str(tmp_path / "kilt.jsonl"), "--output", str(tmp_path / "again.trec")]) == 0
    assert (tmp_path / "again.trec").read_text() == run
    back = ["trec", str(tmp_path / "run.trec"), "--queries", str(path), "--output", str(tmp_path / "back.jsonl")]
    assert main(back) == 0
    assert [line["input"] for line in read_lines(tmp_path / "back.jsonl")] == ["river Sorn?", "goats"]


def test_passages_are_found_by_their_vectors(tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy, passages = shutil.copytree(corpus, tmp_path / "corpus"), _passages(corpus)
    model = tiny_encoder(tmp_path / "tiny", texts=[passage.text for passage in passages])
    encode_corpus(copy, model, tmp_path / "corpus-vectors")
    flags = ["search", str(copy), "--model", str(model)]
    for passage in passages:  # each is nearest to itself
        assert main([*flags, f"{passage.title} {passage.text}", "--system", "dense", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert {two["document"] for two in found} == {two.passage_id for two in passages}
        assert found[0] == {
            "score": pytest.approx(1, abs=1e-3),
            "document": passage.passage_id,
            "title": passage.title,
            "text": passage.text,
        }
    assert main([*flags, f"{passages[0].title} {passages[0].text}", "--system", "dense", "--approximate"]) == 0
    said = capsys.readouterr()
    assert f"  {passages[0].passage_id}  " in said.out.splitlines()[0]
    assert f"of the 10 nearest vectors of {len(passages)} passages it finds 100.0 %" in said.err
    records = [{"id": passage.passage_id, "input": f"{passage.title} {passage.text}"} for passage in passages]
    queries = write_records(tmp_path / "queries.jsonl", [*records, {"id": "none"}])
    for level in ("passage", "page"):
        given = [*flags, "--level", level, "--queries", str(queries), "--output", str(tmp_path / f"{level}.jsonl")]
        assert main([*given, "--system", "dense,bm25"]) == 1
        assert "line 5: 'input'" in capsys.readouterr().err
        for passage, line in zip(passages, read_lines(tmp_path / f"{level}.jsonl"), strict=True):
            best = line["output"][0]["provenance"][0]
            assert (best["wikipedia_id"], best.get("passage_id")) == (
                str(passage.page_id),
                passage.passage_id if level == "passage" else None,
            )


@pytest.mark.slow  # that processes, each with its model, give the same vectors
def test_blinks_path_is_the_same_by_one_worker_and_by_two(tmp_path: Path, corpus: Path) -> None:
    passages = _passages(corpus)
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    marks = [f"[unused{number}]" for number in range(3)]
    entities, mentions = (
        tiny_encoder(tmp_path / name, texts=texts, further_tokens=marks, seed=seed)
        for seed, name in enumerate(("entities", "mentions"))
    )
    linker = tagger(tmp_path / "tagger", {"sorn": "LOC", "tey": "LOC"})
    ranker = overlap_model(tmp_path / "ranker", texts=texts, is_ranker=True)
    inputs = ("Which river does [START_ENT] Sorn [END_ENT] mean?", "Do goats of Tey drink from Sorn?", "It rises")
    queries = write_records(tmp_path / "q.jsonl", [{"id": str(n), "input": text} for n, text in enumerate(inputs)])
    encode = ["vectors", str(corpus), "--model", str(entities), "--query-model", str(mentions)]
    for n_workers in (1, 2):
        vectors = str(tmp_path / f"vectors-{n_workers}")
        runner = ["--workers", str(n_workers)]
        assert main([*encode, "--text-form", "blink", "--device", "cpu", "--output", vectors, *runner]) == 0
        search = ["search", str(corpus), "--system", "dense:rerank", "--vectors", vectors, "--level", "page"]
        models = ["--query-model", str(mentions), "--mention-model", str(linker), "--reranker", str(ranker)]
        output = ["--queries", str(queries), "--output", str(tmp_path / f"found-{n_workers}.jsonl")]
        assert main([*search, *models, *output]) == 0
    assert contents(tmp_path / "vectors-1") == contents(tmp_path / "vectors-2")
    assert (tmp_path / "found-1.jsonl").read_bytes() == (tmp_path / "found-2.jsonl").read_bytes()
    found = [line["output"][0]["provenance"] for line in read_lines(tmp_path / "found-1.jsonl")]
    assert [sorted(hit["wikipedia_id"] for hit in own) for own in found] == [["3", "5"], ["3", "5"], ["3", "5"]]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "Give a QUERY, or --queries"),
        (["x", "--queries", "y"], "Give a QUERY, or --queries"),
        ([" "], "QUERY is empty;"),
        (["--queries", "y"], "with --output FILE"),
        (["x", "--system", "aliases+bm25"], "--system aliases+bm25 needs --linking"),
        (["x", "--linking", "y"], "works only with --system aliases, not with bm25"),
        (["x", "--min-count", "2"], "works only with --system aliases, not with bm25"),
        (["x", "--system", "bm25+sparse"], "Write it like aliases+bm25 or"),
        (["x", "--system", "bm25,dense"], "--system bm25,dense needs --model"),
        (["x", "--model", "y"], "works only with --system dense, not with bm25"),
        (["x", "--system", "bm25:rerank"], "--system bm25:rerank needs --reranker"),
        (["x", "--depth", "3"], "--depth works only with systems that are fused or reranked, not with bm25"),
        (["x", "--top", "0"], "--top is 0. Must be >= 1."),
    ],
)
def test_flags_that_contradict_each_other(
    tmp_path: Path, corpus: Path, flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", str(corpus), "--index", str(tmp_path / "index"), *flags]) == 2
    assert message in capsys.readouterr().err


def test_passages_and_aliases_are_of_one_release(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_kb(tmp_path / "kb", [SORN])
    assert main(["entity-linking", str(other), "--output", str(tmp_path / "linking")]) == 0
    flags = ["--system", "aliases", "--linking", str(tmp_path / "linking")]
    assert main(["search", str(corpus), "x", "--index", str(tmp_path / "index"), *flags]) == 2
    assert "made from different releases" in capsys.readouterr().err
    assert not (tmp_path / "index").exists()


def test_queries_that_cannot_be_used_are_told(tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    goats = {"id": "b", "input": "goats"}
    path = write_records(tmp_path / "queries.jsonl", [{"id": "a"}, *[goats] * 10, {"id": "c"}])
    flags = ["search", str(corpus), "--index", str(tmp_path / "index"), "--queries", str(path)]
    assert main([*flags, "--output", str(tmp_path / "out.jsonl")]) == 1
    said = capsys.readouterr()
    assert "queries.jsonl, line 1: 'input'" in said.err
    told = [line.partition("line ")[2].partition(":")[0] for line in said.err.splitlines() if "queries.jsonl, " in line]
    assert told == [*map(str, (1, *range(3, 13)))]
    assert "1 query written" in said.out
    flags[-1] = str(tmp_path / "out.jsonl")
    assert main(["trec", flags[-1], "--queries", str(path), "--output", str(tmp_path / "x")]) == 2
    (tmp_path / "run.trec").write_text("b Q0 5__0 1 1.0 x\n")
    assert main(["trec", str(tmp_path / "run.trec"), "--queries", str(path), "--output", str(tmp_path / "x")]) == 2
    assert f"{path}, line 1: missing_field" in capsys.readouterr().err


def _qrels(folder: Path) -> list[tuple[str, str]]:
    with (folder / "qrels" / "dev.tsv").open(newline="") as file:
        head, *rows = csv.reader(file, delimiter="\t")
    assert head == ["query-id", "corpus-id", "score"]
    assert all(score == "1" for _, _, score in rows)
    trec = [line.split() for line in (folder / "qrels" / "dev.trec").read_text().splitlines()]
    assert trec == [[query, "0", document, "1"] for query, document, _ in rows]
    return [(query, document) for query, document, _ in rows]


def test_relevant_is_the_passage_that_has_the_evidence(
    tmp_path: Path, corpus: Path, aligned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["beir", str(aligned), str(corpus), "--output"]
    assert main([*flags, str(tmp_path / "beir"), "--json"]) == 0
    counts = {"queries": 3, "ids_escaped": 1, "queries_without_relevant": 0, "passages": 4, "relevant": 5}
    assert json.loads(capsys.readouterr().out) == counts
    texts = {passage.passage_id: passage.text for passage in _passages(corpus)}
    assert [(query, texts[document]) for query, document in _qrels(tmp_path / "beir")] == [
        ("a", "It rises in Brack. Its fish are old."),
        ("b", "It rises in Brack. Its fish are old."),
        ("b", "A town of no more than forty goats."),
        ("c%20d", "A town of no more than forty goats."),
        ("c%20d", "It stands on the river Sorn."),
    ]
    assert [json.loads(line)["_id"] for line in (tmp_path / "beir" / "corpus.jsonl").open()] == list(texts)
    ids = ["a", "b", "c%20d"]
    assert read_lines(tmp_path / "beir" / "queries.jsonl") == [{"_id": name, "text": "?"} for name in ids]
    assert verified(tmp_path / "beir").findings == ()

    assert main([*flags, str(tmp_path / "pages"), "--level", "page"]) == 0
    assert len(_qrels(tmp_path / "pages")) == 2 + 4 + 2


def test_an_empty_id_has_no_place_in_qrels(
    tmp_path: Path, kb: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = write_records(tmp_path / "own.jsonl", [record("", [evidence("It rises in Brack.", title="Sorn")])])
    map_mini(tmp_path / "aligned", kb, "jsonl", records)
    assert main(["beir", str(tmp_path / "aligned"), str(corpus), "--output", str(tmp_path / "beir")]) == 2
    assert "a record has an empty id" in capsys.readouterr().err


def test_alignment_and_passages_are_of_one_release(
    tmp_path: Path, aligned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_kb(tmp_path, [SORN])
    cut_release(tmp_path / "corpus", other)
    flags = ["beir", str(aligned), str(tmp_path / "corpus"), "--output", str(tmp_path / "out")]
    assert main(flags) == 2
    assert "made from different releases" in capsys.readouterr().err


def test_beir_reads_what_was_written(tmp_path: Path, corpus: Path, aligned: Path) -> None:
    loader = pytest.importorskip("beir.datasets.data_loader")
    flags = ["beir", str(aligned), str(corpus), "--output", str(tmp_path / "beir")]
    assert main(flags) == 0
    passages, queries, qrels = loader.GenericDataLoader(str(tmp_path / "beir")).load(split="dev")
    assert set(queries) == set(qrels) == {"a", "b", "c%20d"}
    assert all(document in passages for documents in qrels.values() for document in documents)
