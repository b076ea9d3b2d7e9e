"""``kbsource rerank``: a run in the order of a cross-encoder, on any number of workers, and after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.release.output import locked_output
from mapping.passages.corpus import read_passages
from mapping.retrieval.systems import Reranker
from pipelines.cli import main
from pipelines.jobs import read as job
from tests.support.alignments import read_lines, write_records
from tests.support.installed import skip_without
from tests.support.passages import cut_release, page, write_kb
from tests.support.tiny_nli import overlap_model

skip_without("tantivy", "onnxruntime", "transformers")

KB = [
    page(3, "Sorn", "The Sorn is a river. It rises in Brack.", "Its fish are old."),
    page(5, "Tey", "A town of no more than forty goats.", "It stands on the river Sorn.", kinds=["paragraph"]),
    page(7, "Ulm", "A lake, and no river, where fish are young."),
]
QUERIES = [
    {"id": f"q{n}", "input": text} for n, text in enumerate(("of no it on a Sorn", "goats", "zzz", "fish and river"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus with its index, a model, queries, and runs of passages and of pages."""
    folder = tmp_path_factory.mktemp("rerank")
    cut_release(folder / "corpus", write_kb(folder / "kb", KB))
    texts = [
        f"{passage.title} {passage.text}"
        for path in (folder / "corpus" / "passages").iterdir()
        for passage in read_passages(str(path))
    ]
    overlap_model(folder / "ranker", texts=[*texts, *(query["input"] for query in QUERIES)], is_ranker=True)
    write_records(folder / "queries.jsonl", QUERIES)
    for level in ("passage", "page"):
        flags = [
            "--queries",
            str(folder / "queries.jsonl"),
            "--level",
            level,
            "--output",
            str(folder / f"{level}.jsonl"),
        ]
        assert main(["search", str(folder / "corpus"), *flags]) == 0
        assert main(["trec", str(folder / f"{level}.jsonl"), "--output", str(folder / f"{level}.trec")]) == 0
    return folder


def _rerank(folder: Path, run: str | Path, output: Path, *flags: str) -> int:
    given = ["--model", str(folder / "ranker"), "--queries", str(folder / "queries.jsonl"), "--output", str(output)]
    return main(["rerank", str(folder / "corpus"), str(folder / run), *given, *flags])


def _documents(path: Path) -> dict[str, list[str]]:
    return {
        line["id"]: [hit.get("passage_id", hit["wikipedia_id"]) for hit in line["output"][0]["provenance"]]
        for line in read_lines(path)
    }


@pytest.mark.parametrize("level", ["passage", "page"])
def test_a_run_comes_out_as_the_stage_of_a_system_has_it(tmp_path: Path, folder: Path, level: str) -> None:
    output = tmp_path / "out.jsonl"
    assert _rerank(folder, f"{level}.jsonl", output, "--depth", "2") == 0
    assert list(tmp_path.iterdir()) == [output]
    flags = ["--system", "bm25:rerank", "--reranker", str(folder / "ranker"), "--depth", "2", "--level", level]
    given = ["--queries", str(folder / "queries.jsonl"), "--output", str(tmp_path / "search.jsonl")]
    assert main(["search", str(folder / "corpus"), *flags, *given]) == 0
    before, after = _documents(folder / f"{level}.jsonl"), _documents(output)
    assert after == _documents(tmp_path / "search.jsonl")
    assert list(after) == list(before) == [query["id"] for query in QUERIES]
    assert after["q2"] == []  # nothing was found for it, and it is there
    assert before != after
    for name, documents in after.items():
        assert documents[2:] == before[name][2:]
        assert sorted(documents) == sorted(before[name])
    if level == "passage":
        assert read_lines(output) == read_lines(tmp_path / "search.jsonl")


def test_runs_of_trec_are_taken_and_written(tmp_path: Path, folder: Path) -> None:
    for form in ("jsonl", "trec"):
        assert _rerank(folder, f"passage.{form}", tmp_path / f"of-{form}", "--format", "trec") == 0
    assert (tmp_path / "of-trec").read_bytes() == (tmp_path / "of-jsonl").read_bytes() != b""
    scores = [
        [float(line.split()[4]) for line in (tmp_path / "of-trec").read_text().splitlines() if line[:2] == name]
        for name in ("q0", "q3")
    ]
    assert all(own == sorted(own, reverse=True) for own in scores)


@pytest.mark.slow  # that processes, each with its model, give the same scores
def test_two_workers_write_the_same_bytes(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "QUERIES_TOGETHER", 1)
    assert _rerank(folder, "passage.jsonl", tmp_path / "one") == 0
    assert _rerank(folder, "passage.jsonl", tmp_path / "two", "--workers", "2") == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_was_scored_is_not_scored_again(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores, scored = Reranker.scores, list[str]()

    def killed(self: Reranker, query: str, passages: Any) -> Any:
        if len(scored) == 2:
            raise SetupError("killed")
        scored.append(query)
        return scores(self, query, passages)

    monkeypatch.setattr(job, "QUERIES_TOGETHER", 1)
    monkeypatch.setattr(Reranker, "scores", killed)
    assert _rerank(folder, "passage.jsonl", tmp_path / "out") == 2
    monkeypatch.setattr(Reranker, "scores", lambda *given: scored.append(given[1]) or scores(*given))
    assert _rerank(folder, "passage.jsonl", tmp_path / "out") == 0
    assert sorted(scored) == sorted(query["input"] for query in QUERIES)
    monkeypatch.undo()
    assert _rerank(folder, "passage.jsonl", tmp_path / "again") == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "again").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_dry_run_leaves_nothing_behind(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _rerank(folder, "passage.jsonl", tmp_path / "out", "--dry-run") == 0
    assert "nothing was run" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_used_is_told(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["q1 Q0 5__0 1 2.0 x", "q0 Q0 3__0 1", "q9 Q0 3__0 1 2.0 x", "q0 Q0 3__77 1 2.0 x", "q3 Q0 x 1 2.0 x"]
    (tmp_path / "run").write_text("\n".join([*lines, "q1 Q0 3__0 1 2.0 x"]) + "\n")
    assert _rerank(folder, tmp_path / "run", tmp_path / "out") == 1
    said = capsys.readouterr().err
    for line, reason in ((2, "expected query, Q0"), (3, "q9"), (4, "3__77"), (5, "'x' is not a page id"), (6, "q1")):
        assert f"line {line}" in said
        assert reason in said
    assert _documents(tmp_path / "out") == {"q1": ["5__0"]}
    (tmp_path / "empty").mkdir()
    assert (
        main(
            [
                "rerank",
                str(folder / "corpus"),
                str(tmp_path / "run"),
                "--model",
                str(tmp_path / "empty"),
                "--queries",
                str(folder / "queries.jsonl"),
                "--output",
                "x",
            ]
        )
        == 2
    )
    assert "has no config.json" in capsys.readouterr().err


def test_a_second_run_for_the_same_file_is_refused_and_the_first_goes_on(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out.jsonl"
    with locked_output(str(output)):
        assert _rerank(folder, "passage.jsonl", output) == 2
    assert capsys.readouterr().err.endswith(
        f"{output}: another run is writing to this output; wait until that run has ended, or choose another output.\n"
    )
    assert list(tmp_path.iterdir()) == []
    assert _rerank(folder, "passage.jsonl", output) == 0
    assert list(tmp_path.iterdir()) == [output]
