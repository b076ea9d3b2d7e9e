"""``kbsource evaluate``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.cli import main

GOLD = {"qid": "0__wikidata_simple__dev", "answer_list": [{"answer_text": "Ullane", "aliases": []}]}
PREDICTED = {"qid": "0__wikidata_simple__dev", "predictions": ["the Ullane", "Brack"]}


@pytest.fixture
def gold(tmp_path: Path) -> str:
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps(GOLD))
    return str(path)


def test_scores_are_printed_as_json(gold: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text(json.dumps(PREDICTED))

    assert main(["evaluate", "qampari", gold, "--predictions", str(predictions), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["reader"] == {"recall": 1, "precision": 0.5, "f1": 0.666667, "f1_above": 1, "rec_above": 1}


def test_the_released_behaviour_has_names(gold: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text(json.dumps(PREDICTED))
    argv = ["evaluate", "qampari", gold, "--predictions", str(predictions), "--quirk"]

    assert main([*argv, "all"]) == 0
    assert "recall                          0.00" in capsys.readouterr().out
    assert main([*argv, "raw_predictions", "--quirk", "substring"]) == 0
    assert "recall                        100.00" in capsys.readouterr().out


def test_bad_lines_are_named_and_the_exit_code_says_so(
    gold: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    retrieved = tmp_path / "retrieved.jsonl"
    own = json.dumps({"qid": GOLD["qid"], "ctxs": []})
    retrieved.write_text('{"qid": "other", "ctxs": []}\n{"qid": 7\n' + own)

    assert main(["evaluate", "qampari", gold, "--retrieved", str(retrieved), "--k", "5,1"]) == 1
    out, err = capsys.readouterr()
    assert out.index("ARECALL@1 ") < out.index("ARECALL@5 ")
    assert "ERECALL@1                          –" in out
    assert "retrieved.jsonl, line 1: 'other' is not in" in err
    assert "(unknown_question)" in err
    assert "retrieved.jsonl, line 2: " in err
    assert "(malformed_json)" in err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["{gold}"], "Give --predictions, --retrieved, or both"),
        (["nowhere", "--predictions", "{gold}"], "nowhere: no such file"),
        (["nowhere", "--predictions", "nowhere"], "nowhere: no such file"),
        (["{gold}", "--predictions", "x", "--k", "0"], "--k is 0. Must be >= 1."),
    ],
)
def test_wrong_set_up_exits_with_2(
    gold: str, argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "qampari", *(word.replace("{gold}", gold) for word in argv)]) == 2
    assert message.replace("{gold}", gold) in capsys.readouterr().err
