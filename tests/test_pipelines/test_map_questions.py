"""Natural Questions and TriviaQA as they are typed, and what the files of the demo hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.cli import main
from tests.support.alignments import read_lines
from tests.support.demo_datasets import GOLDEN, tasks_in_this_process
from tests.support.mini_wiki import FOLDER

NQ = FOLDER / "datasets" / "nq"
QA = FOLDER / "datasets" / "triviaqa" / "qa"
ELODIE = "-143054837169120004"


def _golden(name: str) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in read_lines(GOLDEN / name)}


def _map(release: Path, output: Path, *arguments: str) -> None:
    """Runs ``map``, and ``validate-kilt`` on every file that it writes."""
    with tasks_in_this_process():
        assert main(["map", *arguments, "--kb", str(release), "--output", str(output)]) == 0
    for file in output.glob("*-kilt.jsonl"):
        assert main(["validate-kilt", str(file), "--kb", str(release), "--alignments", str(output)]) == 0


def _forms(record: dict[str, Any]) -> list[str]:
    """Shows each output: answer with provenance, answer, long answer, passage of the campaign."""
    shown = []
    for output in record["output"]:
        spans = output.get("provenance", [])
        if "answer" in output:
            shown.append("found" if spans else "answer")
        else:
            shown.append("passage" if "evidence_span" in spans[0]["meta"] else "long")
    return shown


def test_outputs_of_natural_questions_stand_in_the_published_order() -> None:
    records = _golden("nq/nq-dev-kilt.jsonl")

    assert _forms(records["6915606477668963001"]) == ["found", "answer", "answer", "long", "passage", "passage"]
    order = ["found", "answer", "long", "passage"]
    for record in records.values():
        assert _forms(record) == sorted(_forms(record), key=order.index)


def test_annotation_ids_are_numbers_with_all_their_digits() -> None:
    text = (GOLDEN / "nq" / "nq-dev-kilt.jsonl").read_text("utf-8")

    assert '"annotation_id": 13591449469826568799}' in text


def test_train_of_natural_questions_keeps_answers_of_pages_that_are_gone_and_weak_spans() -> None:
    records = _golden("nq/nq-train-kilt.jsonl")

    assert records["5655493461695504003"]["output"] == [{"answer": "Corvin Hale"}]
    assert records["-1011141123527297001"]["output"][0]["provenance"][0]["bleu_score"] == 0.0


def test_the_test_file_of_natural_questions_has_ids_and_questions_alone() -> None:
    assert [list(one) for one in _golden("nq/nq-test_without_answers-kilt.jsonl").values()] == [["id", "input"]]


def test_rules_of_natural_questions_by_name_change_what_they_say(release: Path, tmp_path: Path) -> None:
    arguments = ("--no-nq-strip-html", "--no-nq-keep-long-short-answers", "--nq-annotation-meta", "released")
    _map(release, tmp_path, "nq", "--input", str(NQ / "nq-dev-00.jsonl"), *arguments)
    plain = _golden("nq/nq-dev-kilt.jsonl")
    named = {one["id"]: one for one in read_lines(tmp_path / "nq-dev-kilt.jsonl")}

    def score(records: dict[str, dict[str, Any]]) -> float:
        outputs = records[ELODIE]["output"]
        found: float = next(one["provenance"][0]["bleu_score"] for one in outputs if "answer" not in one)
        return found

    assert score(named) < score(plain)
    assert "Ilse Marr as the clerk Ned Arrow" in json.dumps(plain)
    assert "Ilse Marr as the clerk" not in json.dumps(named)
    options = json.loads((tmp_path / "manifest.json").read_text("utf-8"))["options"]["source"]
    assert [options[name] for name in ("nq_strip_html", "nq_keep_long_short_answers", "nq_annotation_meta")] == [
        False,
        False,
        "released",
    ]


def test_triviaqa_is_written_with_its_questions_and_without(release: Path, tmp_path: Path) -> None:
    _map(release, tmp_path, "triviaqa", "--input", str(QA))
    full = read_lines(tmp_path / "triviaqa-dev-kilt.jsonl")
    bare = read_lines(tmp_path / "triviaqa-dev_id-kilt.jsonl")

    assert full == list(_golden("triviaqa/triviaqa-dev-kilt.jsonl").values())
    assert [list(one) for one in bare] == [["id", "output"]] * len(full)
    assert [
        {"id": one["id"], "input": whole["input"], "output": one["output"]}
        for one, whole in zip(bare, full, strict=True)
    ] == full
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert [one["rows"] for one in manifest["files"] if one["file"].endswith(".jsonl")] == [len(full)] * 2


def test_names_of_triviaqa_have_their_exact_places_and_each_place_once() -> None:
    records = _golden("triviaqa/triviaqa-dev-kilt.jsonl")
    pairs = [
        (output["answer"], span["title"])
        for output in records["tqm_1"]["output"]
        for span in output.get("provenance", [])
    ]

    assert len(pairs) == len(set(pairs)) == 6
    assert [output["answer"] for output in records["tqm_1"]["output"] if "provenance" not in output] == [
        "Miravel Lake",
        "The Great Miravel Tarn",
    ]
    near, exact = records["tqm_4"]["output"][0], records["tqm_5"]["output"]
    assert 0.5 < near["provenance"][0]["bleu_score"] < 1
    assert (exact[0], exact[1]["provenance"][0]["bleu_score"]) == ({"answer": near["answer"]}, 1.0)


def test_train_of_triviaqa_keeps_weak_places_where_none_is_exact_and_answers_that_have_none() -> None:
    records = _golden("triviaqa/triviaqa-train-kilt.jsonl")

    assert records["tqm_102"]["output"][0]["provenance"][0]["bleu_score"] == 0.0
    assert [list(output) for output in records["tqm_104"]["output"]] == [["answer", "provenance"], ["answer"]]
    assert "tqm_103" not in records
    assert records["tqm_105"]["output"] == [{"answer": "zebra"}, {"answer": "quagga"}]


def test_test_files_of_triviaqa_have_ids_and_questions_or_ids_alone() -> None:
    assert list(_golden("triviaqa/triviaqa-test_id_without_answers-kilt.jsonl").values()) == [{"id": "tqm_201"}]
    assert [list(one) for one in _golden("triviaqa/triviaqa-test_without_answers-kilt.jsonl").values()] == [
        ["id", "input"]
    ]
