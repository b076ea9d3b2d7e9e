"""``kbsource benchmark`` over records of every form about two pages."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

pytest.importorskip("tantivy")

from kbsource.errors import SetupError
from mapping.inspector import about
from mapping.inspector.opened import close_releases, open_releases
from mapping.passages.cut import CutOptions
from mapping.retrieval.benchmark import datasets_of
from pipelines.cli import main
from pipelines.commands import benchmark
from pipelines.jobs import read as job
from tests.support.alignments import write_records
from tests.support.fake_reader import FakeGenerator
from tests.support.inspected import client_of
from tests.support.passages import cut_release, page, write_kb
from tests.support.tiny_encoder import encode_corpus, tiny_encoder
from tests.support.verified import seal, verified

PAGES = (
    page(3, "Sorn", "The Sorn is a river. It rises in Brack.", "Its fish are old."),
    page(5, "Tey", "A town of no more than forty goats.", "It stands on the river Sorn.", kinds=["paragraph"]),
)
KILT = (
    {"id": "a", "input": "river in Brack", "output": [{"answer": "Sorn", "provenance": [{"wikipedia_id": "3"}]}]},
    {"id": "b", "input": "old fish?", "output": [{"answer": "x", "provenance": [{"wikipedia_id": "5"}]}]},
    {"id": "c", "input": "goats", "output": [{"answer": "an answer alone"}]},
)
MENTION = {
    "id": "m",
    "input": "forty goats in [START_ENT] Tey [END_ENT]",
    "output": [{"answer": "Tey", "provenance": [{"wikipedia_id": "5", "title": "Tey"}]}],
}
QUESTION = {
    "qid": "1__wikidata_simple__dev",
    "question_text": "What is old or a town?",
    "answer_list": [{"answer_text": "fish", "aliases": []}, {"answer_text": "town", "aliases": []}],
}
_OUTPUTS = [({"answer": ["Sorn"], "provenance": [{"wikipedia_id": str(page_id)}]}, page_id == 3) for page_id in (3, 5)]
AMBER = {
    "name": "Sorn",
    "qids": {
        f"Q{number}": {
            "is_head": is_head,
            "popularity": 2.0 - number,
            "wikipedia": output["provenance"],
            "queries": [{"id": f"q{number}", "input": "Where does the river Sorn rise?", "output": output}],
        }
        for number, (output, is_head) in enumerate(_OUTPUTS)
    },
}


class TitleReader(FakeGenerator):
    """Writes the title of the passage that it is given."""

    def write(self, prompts: Sequence[tuple[str, ...]]) -> list[str]:
        return [prompts_of_one[0].partition("title: ")[2].partition(" ")[0] for prompts_of_one in prompts]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    cut_release(folder / "corpus", write_kb(folder, PAGES), cut=CutOptions(max_words=8))
    return folder / "corpus"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    for name, records in (("nq", KILT), ("aida", (MENTION,)), ("qampari", (QUESTION,)), ("sets", (AMBER,))):
        write_records(tmp_path / f"{name}.jsonl", records)
    text = (
        "datasets: {nq/dev: nq.jsonl, mentions: aida.jsonl, lists: qampari.jsonl, human/qa: sets.jsonl}\n"
        "systems:\n  bm25: {}\n  one page: {system: bm25, top: 1, level: page}\n"
    )
    (tmp_path / "c.yaml").write_text(text)
    return tmp_path / "c.yaml"


def _scores(folder: Path) -> dict[tuple[str, str, str], tuple[float, int]]:
    rows = pq.read_table(folder / "scores").to_pylist()
    return {(row["dataset"], row["system"], row["metric"]): (row["value"], row["n"]) for row in rows}


def test_systems_are_measured_on_records_of_every_form(
    tmp_path: Path, corpus: Path, config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    flags = ["benchmark", str(corpus), "--config", str(config), "--output", str(out), "--bootstrap", "100", "--json"]
    assert main(flags) == 0
    said = json.loads(capsys.readouterr().out)
    scores = _scores(out)
    assert {(score["dataset"], score["system"], score["metric"]) for score in said["scores"]} == set(scores)
    # Of three records two have a gold page; the second is about fish, which the other page has.
    assert scores["nq/dev", "bm25", "Rprec"] == (0.5, 2)
    assert scores["all questions", "one page", "Rprec"] == (0.5, 2)
    assert scores["nq/dev", "bm25", "recall@5"] == (0.5, 2)
    assert ("nq/dev", "one page", "recall@5") not in scores  # it gives one page
    # A mention is answered by the title of its page.
    assert scores["mentions", "bm25", "accuracy"] == scores["all mentions", "bm25", "KILT-accuracy"] == (1.0, 1)
    assert scores["lists", "bm25", "ARECALL@10"] == (1.0, 1)
    assert scores["human/qa", "bm25", "accuracy@1 head"] == (1.0, 1)
    assert scores["human/qa", "bm25", "accuracy@1 tail"] == (0.0, 1)
    assert scores["human/qa", "bm25", "consistency@1"] == (0.0, 1)
    # The head's page is first for both queries, and the tail's is among twenty.
    for part, values in (("head", (1.0, 0.0)), ("tail", (1.0, 1.0))):
        for metric, value in zip(("accuracy@20", "entity_confusion"), values, strict=True):
            assert scores["human/qa", "bm25", f"{metric} {part}"] == (value, 1)
    assert scores["lists", "bm25", "ARECALL@100"] == (1.0, 1)
    assert {figure["system"] for figure in said["published"] if figure["dataset"] == "nq/dev"} >= {"Tf-idf", "DPR"}
    assert [(cost["system"], cost["queries"]) for cost in said["costs"]][:2] == [("bm25", 3), ("bm25", 1)]

    report = verified(out, passages=corpus)
    assert report.is_sound
    assert report.counts["scores"] == len(scores)
    releases = open_releases([str(out)])
    text = client_of(*releases).get(releases[0].url("measures")).text
    monkeypatch.setattr(about, "_FILES_OF_A_FOLDER", 2)
    overview = client_of(*releases).get(releases[0].url()).text
    close_releases(releases)
    n_files = sum(1 for path in (out / "predictions").rglob("*.jsonl"))
    row = re.search(r"<tr><th[^>]*>predictions/</th>.*?</tr>", overview)
    assert row is not None
    assert f">{n_files}</td>" in row[0]
    assert "predictions/nq" not in overview
    shown = ("entity_confusion tail", "accuracy@20 head", "DPR-NQ 11.1")
    assert "50.0 [0.0, 100.0]" in overview
    for part in ("Tf-idf 28.12", "Page R-precision", "one page", *shown):
        assert part in text + overview


def test_a_run_that_was_killed_goes_on_and_gives_the_same(
    tmp_path: Path, corpus: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = ["benchmark", str(corpus), "--config", str(config), "--output"]
    assert main([*flags, str(tmp_path / "whole")]) == 0
    searched: list[str] = []
    real = benchmark.search

    def search(*given: Any, **options: Any) -> Any:
        searched.append(options["output"])
        if len(searched) == 3:
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(benchmark, "search", search)
    assert main([*flags, str(tmp_path / "out")]) == 130
    assert main([*flags, str(tmp_path / "out")]) == 0
    assert len(searched) == len(set(searched)) + 1 == 9  # the one in work again
    for name in ("scores", "values", "predictions"):
        for path in sorted((tmp_path / "whole" / name).rglob("*.*")):
            assert path.read_bytes() == (tmp_path / "out" / path.relative_to(tmp_path / "whole")).read_bytes()


def test_what_cannot_be_used_is_told_and_written(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = write_records(tmp_path / "r.jsonl", [*KILT, "{no json"])
    out = tmp_path / "out"
    assert main(["benchmark", str(corpus), str(records), "--system", "bm25", "--output", str(out)]) == 1
    assert "malformed_json" in capsys.readouterr().err
    assert {row["reason"] for row in pq.read_table(out / "rejected").to_pylist()} == {"malformed_json"}
    assert verified(out).is_sound


def test_a_score_that_is_no_mean_of_its_values_or_missing_is_found(tmp_path: Path, corpus: Path, config: Path) -> None:
    out = tmp_path / "out"
    assert main(["benchmark", str(corpus), "--config", str(config), "--output", str(out)]) == 0
    path = next((out / "scores").iterdir())
    table = pq.read_table(path)
    column = table.schema.get_field_index("value")
    better = [0.9, *table["value"].to_pylist()[1:]]
    for changed in (table.set_column(column, table.schema.field(column), [better]), table.slice(1)):
        pq.write_table(changed, path)
        seal(out)
        assert "invalid_score" in {finding.rule for finding in verified(out).findings}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("systems: {bm25: {}}", "There is no dataset"),
        ("datasets: {a: nq.jsonl}", "There is no system"),
        ("datasets: {../a: nq.jsonl}\nsystems: {bm25: {}}", "cannot be part of a file name"),
        ("datasets: {a: nq.jsonl}\nsystems: {x: {system: bm26}}", "line 2: system 'x'"),
        (
            "datasets: {a: nq.jsonl}\nsystems: {bm25: {tops: 3}}",
            "'bm25': there is no key 'tops'. Did you mean top?",
        ),
        ("sets: {}", "there is no key 'sets'"),
    ],
)
def test_a_configuration_that_means_nothing_names_the_line(
    config: Path, corpus: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(text)
    assert main(["benchmark", str(corpus), "--config", str(config), "--output", str(config.parent / "out")]) == 2
    assert message in capsys.readouterr().err


def test_what_is_evaluated_is_measured_whatever_its_form(
    tmp_path: Path, corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "gold"
    folder.mkdir()
    odd = {"id": 1.5, "input": "river", "output": [{"answer": 4, "provenance": [{"wikipedia_id": None}]}]}
    (folder / "nq-dev-kilt.jsonl").write_text(json.dumps([*KILT, odd]))
    (folder / "_triviaqa (ids).jsonl").write_text(json.dumps({"id": "a", "output": [{"answer": "x"}]}) + "\n")
    (folder / "nq-test_without_answers-kilt.jsonl").write_text(json.dumps({"id": "a", "input": "x"}) + "\n")
    out = tmp_path / "out"
    assert main(["benchmark", str(corpus), str(folder), "--system", "bm25", "--output", str(out)]) == 1
    assert "missing_field" in capsys.readouterr().err  # nothing can be asked without an input
    scores = _scores(out)
    assert {dataset for dataset, _, _ in scores} == {"nq-dev", "all questions"}
    gold, found = str(folder / "nq-dev-kilt.jsonl"), str(out / "predictions" / "nq-dev" / "bm25.jsonl")
    assert main(["evaluate", "kilt", gold, found, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert scores["nq-dev", "bm25", "recall@5"][0] * 2 == said["retrieval"]["recall@5"] * 4
    assert verified(out, passages=corpus).is_sound


def test_a_release_without_questions_is_no_dataset(corpus: Path) -> None:
    with pytest.raises(SetupError, match="its format is 'kbsource-passages"):
        list(datasets_of(str(corpus)))


def test_dense_systems_are_named_with_their_encoder_on_the_command_line(
    tmp_path: Path, corpus: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "encoder").mkdir()
    model = tiny_encoder(tmp_path / "encoder", texts=[record["input"] for record in KILT])
    encode_corpus(corpus, model, f"{corpus}-vectors")
    out = tmp_path / "out"
    flags = ["benchmark", str(corpus), str(tmp_path / "nq.jsonl"), "--output", str(out), "--bootstrap", "0"]
    assert main([*flags, "--system", "bm25", "--model", str(model)]) == 2
    assert "--model is only for systems that use dense. Leave it out, or name such a system" in capsys.readouterr().err
    assert main([*flags, "--system", "bm25", "dense", "bm25,dense", "--model", str(model)]) == 0
    scores = _scores(out)
    systems = {system for _, system, metric in scores if metric == "Rprec"}
    assert systems == {"bm25", "dense", "bm25,dense"}
    assert {n for (_, _, metric), (_, n) in scores.items() if metric == "Rprec"} == {2}


def test_a_reader_answers_with_what_its_system_finds(
    tmp_path: Path, corpus: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "resolve_name", lambda _: TitleReader)
    reader = "reader: {model: m, form: pig, top: 2}"
    config.write_text(
        "datasets: {nq/dev: nq.jsonl, lists: qampari.jsonl, human/qa: sets.jsonl}\n"
        f"systems: {{found: {{system: bm25, {reader}}}, gold: {{system: oracle, {reader}}}, "
        "book: {reader: {model: m, form: closed}}}\n"
    )
    out = tmp_path / "out"
    assert main(["benchmark", str(corpus), "--config", str(config), "--output", str(out), "--bootstrap", "0"]) == 0
    scores = _scores(out)
    assert scores["nq/dev", "found", "Rprec"] == (0.5, 2)
    assert scores["nq/dev", "gold", "Rprec"] == (1.0, 2)
    assert scores["nq/dev", "book", "Rprec"] == (0.0, 2)
    assert [scores["nq/dev", system, "em"] for system in ("found", "gold", "book")] == [
        (1 / 3, 3),
        (1 / 3, 3),
        (0.0, 3),
    ]
    assert scores["human/qa", "gold", "answer_f1 head"] == (1.0, 1)
    assert scores["human/qa", "found", "consistency@1"] == (0.0, 1)
    assert scores["lists", "found", "recall"][1] == scores["lists", "found", "ARECALL@2"][1] == 1
    assert verified(out, passages=corpus).is_sound
