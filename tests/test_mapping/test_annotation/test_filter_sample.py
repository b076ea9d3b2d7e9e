"""What the NLI filter removes of a sample that people judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.annotation.filter_sample import (
    AnswerFilterOptions,
    FilterSampleOptions,
    best_threshold,
    export_filter_sample,
    report_filter,
)
from mapping.entail.signal import Pair, UnjudgedPair, Verdict
from pipelines.cli import main
from tests.support.alignments import read_lines
from tests.support.qampari import drawn, question, write_qampari
from tests.support.tiny_nli import overlap_model
from tests.support.verified import verified

NAMES = [f"Mill {number}" for number in range(40)]


class Lengths:
    """Gives each pair a probability by its place, and refuses the last."""

    def judge(self, pairs: Sequence[Pair]) -> list[Verdict | UnjudgedPair]:
        assert all(pair.core is not None and pair.core[1] == len(pair.premise) for pair in pairs)
        given: list[Verdict | UnjudgedPair] = [Verdict(number / 100, None, None) for number in range(len(pairs) - 1)]
        return [*given, UnjudgedPair("empty_premise", "")]


@pytest.fixture
def release(tmp_path: Path) -> str:
    asked = [drawn(question("P50__Q1", NAMES), 0, "dev")]
    return str(write_qampari(tmp_path / "release", asked, facts={"model": None}))


def test_the_shares_that_a_threshold_removes(release: str, tmp_path: Path) -> None:
    counts = export_filter_sample(release, str(tmp_path / "sample"), FilterSampleOptions(answers=21))
    assert counts == {"proofs": 40, "sampled": 21}
    assert verified(tmp_path / "sample").is_sound
    shown, key = (read_lines(tmp_path / "sample" / name) for name in ("validation.jsonl", "filter_key.jsonl"))
    assert [task["task_id"] for task in shown] == [task["task_id"] for task in key]
    assert set(shown[0]) == {"task_id", "question_text", "answer_text", "links", "proofs"}
    assert all(task["proofs"][0]["text"] == line["premise"] for task, line in zip(shown, key, strict=True))

    # Every fourth is incorrect, the first and the one that the model refuses among them; one is not judged.
    said = [
        {"task_id": line["task_id"], "verdict": "correct" if number % 4 else "incorrect"}
        for number, line in enumerate(key)
        if number != 7
    ]
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps(verdict) + "\n" for verdict in said))
    report = report_filter(
        str(tmp_path / "sample"), [str(path)], Lengths(), AnswerFilterOptions(least_entailment=0.04), reject=pytest.fail
    )
    assert report["proofs"] == {"judged": 20, "missing": 1, "correct": 14, "incorrect": 6}
    assert report["incorrect_removed"] == pytest.approx(3 / 6)  # 0, 0.04 and the refused one
    assert report["correct_removed"] == pytest.approx(3 / 14)
    assert report["correct_before"] == pytest.approx(14 / 20)
    assert report["correct_after"] == pytest.approx(11 / 14)
    assert report["published"] == {"incorrect_removed": 0.7, "correct_removed": 0.075}
    best = report["best"]
    assert 0.01 < best["threshold"] < 0.02
    assert best["correct_removed"] <= 0.075


def test_the_best_threshold_loses_no_more_than_the_paper_does() -> None:
    values = [number / 100 for number in range(100)]
    best = best_threshold(values)
    assert best is not None
    assert sum(value <= best for value in values) == 7
    assert best_threshold([0.0, 0.0, 0.0]) == 0


def test_only_a_release_without_a_model_has_what_the_filter_is_given(tmp_path: Path) -> None:
    asked = [drawn(question("P50__Q1", NAMES[:6]), 0, "dev")]
    release = write_qampari(tmp_path / "release", asked, facts={"model": {"model": "m"}})
    with pytest.raises(SetupError, match="made with a model, so it contains only proofs that passed the filter"):
        export_filter_sample(str(release), str(tmp_path / "sample"), FilterSampleOptions())


def test_the_commands(release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnx", reason="needs kbsource[nli]")
    sample = str(tmp_path / "sample")
    for name in ("sample", "same"):
        assert main(["qampari-tasks", "filter-sample", release, "--sample", "8", "--output", str(tmp_path / name)]) == 0
    assert (tmp_path / "same" / "filter_key.jsonl").read_bytes() == (
        tmp_path / "sample" / "filter_key.jsonl"
    ).read_bytes()
    key = read_lines(tmp_path / "sample" / "filter_key.jsonl")
    path = tmp_path / "said.jsonl"
    path.write_text("".join(json.dumps({"task_id": line["task_id"], "verdict": "correct"}) + "\n" for line in key))
    model = ["--model", str(overlap_model(tmp_path / "model")), "--backend", "onnx"]
    capsys.readouterr()
    assert main(["qampari-tasks", "filter-report", sample, "--verdicts", str(path), *model, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["proofs"]["correct"] == 8
    assert report["incorrect_removed"] is None
    path.write_text('{"task_id": "x", "verdict": "correct"}\n')
    assert main(["qampari-tasks", "filter-report", sample, "--verdicts", str(path), *model]) == 2
    assert "none of the 8 proofs" in capsys.readouterr().err
