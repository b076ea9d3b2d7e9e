"""Alignments of the mini-wiki that a model judges too."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from mapping.acceptance import read_rule
from mapping.entail.signal import ModelOptions
from mapping.write.validate import check_kilt
from pipelines.cli import main
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.map_dataset import VerifyOptions
from tests.support.alignments import evidence, map_mini, read_lines, record, table, write_records
from tests.support.builds import open_release
from tests.support.installed import skip_without
from tests.support.tiny_nli import overlap_model

skip_without("onnxruntime", "onnx", "transformers", reason="needs kbsource[nli]")


def asked(record_id: str, question: str, answer: str, text: str) -> dict[str, Any]:
    """Gives a record whose evidence should stand in the page of the River Ullane."""
    return {**record(record_id, [evidence(text, title="River Ullane")], answer=answer), "input": question}


RIVER, LAKE = "longest river of the Halvane Isles", "rises in Lake Miravel"
RECORDS = [
    asked("said", f"What is the {RIVER}?", "The River Ullane", RIVER),
    asked("denied", f"who is not the {RIVER}", "The River Ullane", RIVER),
    asked("open", "who paints houses", "Nobody", LAKE),
    # The quotation is gone from the page, and another sentence says it.
    asked("moved", f"who {LAKE}", "It", "Its source was found by whalers"),
    asked("nowhere", "zebra quagga okapi gnu", "yes", "zebra quagga okapi gnu"),
    record("missing", [evidence("anything", title="Nowhere at all")]),
]
RULE = "bleu>=0.5 and not contradiction>=0.5 or entailment>=0.9"


@pytest.fixture(scope="module")
def source_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_records(tmp_path_factory.mktemp("own") / "own.jsonl", RECORDS)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> VerifyOptions:
    texts = [text for row in RECORDS for text in (row["input"], row["output"][0]["answer"])]
    model = overlap_model(tmp_path_factory.mktemp("model"), texts=texts)
    return VerifyOptions(model=ModelOptions(str(model), backend="onnx"), candidate_sentences=100)


@pytest.fixture(scope="module")
def verified(
    source_file: Path, options: VerifyOptions, mini_build: object, tmp_path_factory: pytest.TempPathFactory
) -> MadeRelease[Any]:
    """An alignment of ``RECORDS`` in chunks of two, verified; not to be changed."""
    output = tmp_path_factory.mktemp("aligned") / "own"
    release = Path(mini_build.output)  # type: ignore[attr-defined]
    return map_mini(output, release, "jsonl", source_file, chunk_records=2, verify=options, accept=RULE)


@pytest.fixture(scope="module")
def rows(verified: MadeRelease[Any]) -> dict[str, dict[str, Any]]:
    return {row["example_id"]: row for row in table(Path(verified.output), "alignments")}


@pytest.mark.parametrize(
    ("example_id", "hypothesis", "likeliest"),
    [
        ("said", f"The River Ullane is the {RIVER}.", "entailment"),
        ("denied", f"The River Ullane is not the {RIVER}.", "contradiction"),
        ("open", "Nobody paints houses.", "neutral"),
        ("moved", "It rises in Lake Miravel.", "entailment"),
    ],
)
def test_what_the_model_says_stands_beside_the_score(
    rows: dict[str, dict[str, Any]], example_id: str, hypothesis: str, likeliest: str
) -> None:
    row = rows[example_id]

    assert (row["hypothesis"], row["hypothesis_kind"], row["expected_verdict"]) == (hypothesis, "answer", "entailment")
    assert max(("entailment", "neutral", "contradiction"), key=lambda name: row[name]) == likeliest


def test_a_weak_span_gives_way_to_the_sentence_that_says_it(
    rows: dict[str, dict[str, Any]], verified: MadeRelease[Any], release: Path
) -> None:
    moved = rows["moved"]

    assert (moved["is_chosen_by_model"], moved["match"], moved["outcome"]) == (True, "model", "weak")
    assert moved["text"].startswith("It rises in Lake Miravel, 412 m")
    page = open_release(release).by_id(moved["page_id"])
    assert page is not None
    assert page.elements[moved["start_element"]].text[moved["start_char"] : moved["end_char"]] == moved["text"]
    assert (rows["nowhere"]["text"], rows["nowhere"]["entailment"]) == (None, None)
    assert not any(row["is_chosen_by_model"] for name, row in rows.items() if name != "moved")
    written = {line["id"]: line for line in read_lines(Path(verified.output) / "jsonl-dev-kilt.jsonl")}
    (span,) = written["moved"]["output"][0]["provenance"]
    assert (span["start_character"], span["end_character"]) == (moved["start_character"], moved["end_character"])


def test_what_was_written_is_valid(verified: MadeRelease[Any], release: Path) -> None:
    file = Path(verified.output) / "jsonl-dev-kilt.jsonl"

    result = check_kilt(str(file), open_release(release), alignments=verified.output)

    assert result.findings == []
    assert result.rescored == 3


def test_the_rule_says_what_is_kept(verified: MadeRelease[Any], rows: dict[str, dict[str, Any]]) -> None:
    rule = read_rule(RULE)

    assert [line["id"] for line in read_lines(Path(verified.output) / "jsonl-dev-kilt.jsonl")] == [
        "said",
        "open",
        "moved",
    ]
    assert verified.report["counts"]["dropped"] == {"no_match": 1, "not_accepted": 1, "page_missing": 1}
    assert verified.report["accept"] == {"rule": RULE, "dropped": 1}
    for row in rows.values():
        assert row["is_written"] == rule.holds({**row, "bleu": row["score"]}), row["example_id"]


def test_the_report_crosses_the_two_signals_contradictions_first(verified: MadeRelease[Any]) -> None:
    found = verified.report["verification"]

    assert found["hypotheses"] == {"answer": 5}
    assert found["bleu_by_verdict"]["1.00"] == {"supported": 1, "neutral": 1, "contradicted": 1}
    assert found["bleu_by_verdict"]["0.00"] == {"supported": 1}
    assert found["bleu_by_verdict"]["no span"] == {"not_judged": 1}
    assert found["chosen_by_model"] == 1
    assert [(disagreement["example_id"], disagreement["disagreement"]) for disagreement in found["disagreements"]] == [
        ("denied", "contradicted"),
        ("open", "not_supported"),
        ("moved", "supported_only"),
    ]
    assert verified.manifest.facts["model"]["backend"] == "onnx"


@pytest.mark.usefixtures("in_this_process")
def test_a_span_that_the_rule_takes_gives_way_to_no_sentence_that_it_does_not(
    options: VerifyOptions, release: Path, tmp_path: Path
) -> None:
    text = "the only home of the Ullane lantern beetle was lost when whalers came from far away"
    source_file = write_records(tmp_path / "own.jsonl", [asked("near", f"who {LAKE}", "It", text)])
    rules = {"span": "bleu>=0.2 and entailment>=0", "sentence": "entailment>=0.9"}

    found = {
        name: map_mini(tmp_path / name, release, "jsonl", source_file, verify=options, accept=rule)
        for name, rule in rules.items()
    }

    rows = {name: table(Path(alignment_run.output), "alignments")[0] for name, alignment_run in found.items()}
    assert [(row["match"], row["is_written"]) for row in rows.values()] == [("bleu", True), ("model", True)]
    assert rows["span"]["score"] >= 0.2 > rows["sentence"]["score"]


@pytest.mark.usefixtures("in_this_process")
def test_a_sentence_that_stands_for_several_evidences_of_a_set_is_written_once(
    rows: dict[str, dict[str, Any]], options: VerifyOptions, release: Path, tmp_path: Path
) -> None:
    def of_set(record_id: str, *texts: str) -> dict[str, Any]:
        pieces = [evidence(text, title="River Ullane") for text in texts]
        return {**record(record_id, pieces, answer="It"), "input": f"who {LAKE}"}

    said, weak = rows["moved"]["text"], ("Its source was found by whalers", "whalers came from far away")
    records = [of_set("twice", *weak), of_set("found too", weak[0], said)]
    source_file = write_records(tmp_path / "own.jsonl", records)

    summary = map_mini(tmp_path / "out", release, "jsonl", source_file, verify=options, accept=RULE)

    found = table(tmp_path / "out", "alignments")
    assert [(row["example_id"], row["outcome"], row["match"]) for row in found] == [
        ("twice", "weak", "model"),
        ("twice", "weak", "model"),
        ("found too", "weak", "model"),
        ("found too", "exact", "exact"),
    ]
    assert {row["text"] for row in found} == {said}
    assert all(row["is_written"] for row in found)
    written = read_lines(tmp_path / "out" / "jsonl-dev-kilt.jsonl")
    spans = [span for line in written for output in line["output"] for span in output["provenance"]]
    assert [span["bleu_score"] for span in spans] == [found[0]["score"], 1.0]
    counts = summary.report["counts"]
    assert (counts["spans_written"], counts["set_spans"], counts["sets_written"]) == (2, 2, 2)
    assert counts["evidences"] == {"exact": 1, "weak": 3}
    result = check_kilt(
        str(tmp_path / "out" / "jsonl-dev-kilt.jsonl"), open_release(release), alignments=str(tmp_path / "out")
    )
    assert (result.findings, result.rescored) == ([], 2)


@pytest.mark.slow
def test_no_room_for_answers_is_a_fault_of_the_set_up_wherever_they_are_written(
    source_file: Path, options: VerifyOptions, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pipelines.transforms.align.read_pairs", fill_disk)

    with pytest.raises(
        SetupError, match=r"^\[Errno 28\] No space left on device\. The disk is full\. .*first\.$"
    ) as caught:
        map_mini(tmp_path / "out", release, "jsonl", source_file, runner="FnApiRunner", verify=options, accept=RULE)

    assert caught.type is SetupError


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--accept", "entailment>=0.5"], "only a model computes entailment; name one with --model"),
        (["--accept", "bleu>=2"], "at column 7 a number from 0 to 1 is expected"),
        (["--candidate-sentences", "5"], "--model is needed"),
        (["--backend", "onnx"], "--model is needed"),
        (["--model", "model", "--candidate-sentences", "100"], "and this rule rejects all of them"),
        (["--model", "model", "--candidate-sentences", "-1"], "--candidate-sentences is -1. Must be >= 0."),
        (["--model", "./no-such-model"], "no such folder"),
    ],
)
def test_flags_that_make_no_sense_are_refused_at_once(
    flags: list[str],
    complaint: str,
    source_file: Path,
    release: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["map", "jsonl", str(release), "--input", str(source_file), "--output", str(tmp_path / "out")]

    assert main([*command, *flags]) == 2
    assert complaint in capsys.readouterr().err


@pytest.fixture
def two_labels(options: VerifyOptions, tmp_path: Path) -> Path:
    """Gives a model that tells only whether something is entailed; it cannot judge."""
    model = tmp_path / "two"
    shutil.copytree(options.model.model, model)
    config = json.loads((model / "config.json").read_text("utf-8"))
    config |= {"id2label": {"0": "not_entailment", "1": "entailment"}, "label2id": None}
    (model / "config.json").write_text(json.dumps(config), "utf-8")
    return model


REFUSED = "'neutral<=0.5': {model} does not report neutral, only entailment, not_entailment."


def test_a_rule_about_what_the_model_does_not_tell_is_refused_at_once(
    two_labels: Path, source_file: Path, release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["map", "jsonl", str(release), "--input", str(source_file), "--output", str(tmp_path / "out")]
    flags = ["--model", str(two_labels), "--backend", "onnx", "--accept", "neutral<=0.5"]

    assert main([*command, *flags]) == 2
    assert REFUSED.format(model=two_labels) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
