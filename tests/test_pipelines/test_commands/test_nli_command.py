"""``kbsource nli``, and lists of pairs in a pipeline of Beam."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from mapping.entail.model import open_model
from mapping.entail.signal import ModelOptions, Pair, UnjudgedPair
from pipelines.cli import main
from pipelines.transforms.verify_entailment import VerifyEntailment
from tests.support.installed import skip_without
from tests.support.real_data import ROOT
from tests.support.tiny_nli import facts, overlap_model, write_config

skip_without("onnxruntime", "onnx", "transformers", reason="needs kbsource[nli]")

SAID = "Ada was born in Arlin."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return overlap_model(tmp_path_factory.mktemp("model"))


def nli(folder: Path, *flags: str) -> int:
    return main(["nli", "--model", str(folder), "--backend", "onnx", *flags])


def test_one_pair_is_shown_for_reading(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nli(folder, "--premise", f"{SAID} Nobody knows why.", "--hypothesis", SAID) == 0
    assert capsys.readouterr().out.splitlines() == [
        "label          entailment",
        "entailment     0.993307",
        "neutral        0.006693",
        "contradiction  0.000000",
        "device         cpu",
    ]


def test_a_pair_that_cannot_be_judged_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nli(folder, "--premise", "x", "--hypothesis", "Ada " * 300) == 1
    assert capsys.readouterr().out == (
        "not judged: the hypothesis is so long that there is no room for a premise (300 tokens; 252 fit)\n"
    )


def test_many_pairs_are_answered_line_by_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"id": "a", "premise": SAID, "hypothesis": SAID},
        {"premise": "Ada lives in Arlin.", "question": "who lives in Arlin?", "answer": "Ada"},
        {"premise": SAID},
        {"premise": SAID, "hypothesis": SAID, "typo": 1},
        {"premise": SAID, "hypothesis": "Ada " * 300},
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([*map(json.dumps, lines), "{"]) + "\n"))

    assert nli(folder, "--input", "-") == 1

    out, err = capsys.readouterr()
    found = [json.loads(line) for line in out.splitlines()]
    assert [
        (record["line"], record.get("id"), record.get("label"), record.get("unjudged_reason")) for record in found
    ] == [
        (1, "a", "entailment", None),
        (2, None, "entailment", None),
        (5, None, None, "hypothesis_too_long"),
    ]
    assert [line.split(": ")[2] for line in err.splitlines()] == ["missing_field", "unknown_field", "malformed_json"]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ((), "give --premise and --hypothesis"),
        (("--input", "-", "--premise", "x"), "leave --premise and --hypothesis out"),
        (("--device", "tpu", "--premise", "x", "--hypothesis", "x"), "--device is tpu."),
        (("--label-names", "entailment", "--premise", "x", "--hypothesis", "x"), "names 1 outputs"),
    ],
)
def test_wrong_flags_end_at_once(
    folder: Path, flags: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nli(folder, *flags) == 2
    assert complaint in capsys.readouterr().err


def test_a_model_that_is_not_here_ends_with_the_remedy(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pipelines.cli", "nli", "--premise", SAID, "--hypothesis", SAID]
    offline = {**os.environ, "HF_HOME": str(tmp_path)}

    result = subprocess.run(command, env=offline, cwd=ROOT, capture_output=True, text=True, check=False)

    assert result.returncode == 2
    assert "no such folder, and no such model in" in result.stderr
    assert "Add --download to fetch it" in result.stderr


def test_names_for_labels_are_taken_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = overlap_model(tmp_path / "m")
    write_config(model, ("LABEL_0", "LABEL_1", "LABEL_2"))
    pair = ("--premise", SAID, "--hypothesis", SAID, "--json")

    assert nli(model, *pair) == 2
    assert "--label-names" in capsys.readouterr().err
    assert nli(model, *pair, "--label-names", "contradiction, neutral, entailment") == 0
    assert json.loads(capsys.readouterr().out)["label"] == "entailment"


def test_a_pipeline_answers_each_list_under_its_key(folder: Path) -> None:
    options = ModelOptions(str(folder), backend="onnx", batch_pairs=4)
    pairs = tuple(pair for pair, _ in facts())
    lists = {(0, 0): pairs[:20], (0, 1): pairs[20:], (1, 0): (), (2, 0): (Pair(SAID, " "),)}
    model = open_model(options)
    expected = [(key, tuple(model.judge(listed_pairs))) for key, listed_pairs in lists.items()]

    with TestPipeline(runner="FnApiRunner") as pipeline:
        answers = pipeline | beam.Create(list(lists.items())) | VerifyEntailment(options)
        assert_that(answers, equal_to(expected))

    assert expected[3] == ((2, 0), (UnjudgedPair("empty_hypothesis", ""),))
