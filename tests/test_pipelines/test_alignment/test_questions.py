"""Natural Questions and TriviaQA as they are typed, and what the files of the demo hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.files import LocalStorage
from kbsource.lookup import KnowledgeSource
from mapping.write.validate import validate_kilt
from pipelines.cli import main
from tests.support.alignments import BROKEN, read_lines
from tests.support.demo_datasets import GOLDEN, chunks_in_this_process
from tests.support.mini_wiki import FOLDER

NQ = FOLDER / "datasets" / "nq"
QA = FOLDER / "datasets" / "triviaqa" / "qa"
ELODIE = "-143054837169120004"
NOWHERE = {"start_paragraph_id": 0, "start_character": 0, "end_paragraph_id": 0, "end_character": 0}


def _golden(name: str) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in read_lines(GOLDEN / name)}


def _map(release: Path, output: Path, *arguments: str) -> None:
    """Runs ``map``, and ``validate-kilt`` on every file that it writes."""
    with chunks_in_this_process():
        assert main(["map", *arguments, "--kb", str(release), "--output", str(output), *BROKEN]) == 0
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


def test_train_of_natural_questions_keeps_answers_of_pages_that_are_gone_and_of_weak_spans() -> None:
    records = _golden("nq/nq-train-kilt.jsonl")

    assert records["5655493461695504003"]["output"] == [{"answer": "Corvin Hale"}]
    assert records["-1011141123527297001"]["output"] == [{"answer": "61 km"}]


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


def test_train_of_triviaqa_keeps_answers_that_have_a_weak_place_or_none() -> None:
    records = _golden("triviaqa/triviaqa-train-kilt.jsonl")

    assert records["tqm_102"]["output"] == [{"answer": "the fear of the tides"}, {"answer": "tidophobia"}]
    assert [list(output) for output in records["tqm_104"]["output"]] == [["answer", "provenance"], ["answer"]]
    assert "tqm_103" not in records
    assert records["tqm_105"]["output"] == [{"answer": "zebra"}, {"answer": "quagga"}]


def test_test_files_of_triviaqa_have_ids_and_questions_or_ids_alone() -> None:
    assert list(_golden("triviaqa/triviaqa-test_id_without_answers-kilt.jsonl").values()) == [{"id": "tqm_201"}]
    assert [list(one) for one in _golden("triviaqa/triviaqa-test_without_answers-kilt.jsonl").values()] == [
        ["id", "input"]
    ]


@pytest.mark.parametrize("has_labels", [True, False])
def test_labels_bring_test_files_with_answers_beside_those_without(
    has_labels: bool, release: Path, tmp_path: Path
) -> None:
    labels = ("--labels", str(QA.parent / "test_labels.json")) if has_labels else ()
    _map(release, tmp_path, "triviaqa", "--input", str(QA), "--split", "test", *labels)

    bare = {"triviaqa-test_without_answers-kilt.jsonl", "triviaqa-test_id_without_answers-kilt.jsonl"}
    whole = {"triviaqa-test-kilt.jsonl", "triviaqa-test_id-kilt.jsonl"} if has_labels else set()
    written = {path.name: path.read_bytes() for path in tmp_path.glob("*.jsonl")}
    assert set(written) == bare | whole
    for name in whole:
        assert written[name] == (GOLDEN / "triviaqa" / name).read_bytes()
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    rows = {one["file"]: one["rows"] for one in manifest["files"] if one["file"] in written}
    assert rows == {name: content.count(b"\n") for name, content in written.items()}


def test_answers_of_test_stand_in_the_order_of_the_records_however_many_a_chunk_has(
    release: Path, tmp_path: Path
) -> None:
    fever = FOLDER / "datasets" / "fever"
    paths = ("--input", str(fever / "shared_task_test.jsonl"), "--labels", str(fever / "test_labels.jsonl"))
    further = ("--wiki-pages", str(fever / "wiki-pages"), "--split", "test", "--chunk-records", "1")
    _map(release, tmp_path, "fever", *paths, *further)

    for name in ("fever-test-kilt.jsonl", "fever-test_without_answers-kilt.jsonl"):
        assert (tmp_path / name).read_bytes() == (GOLDEN / "fever" / name).read_bytes()


def test_null_long_answers_have_the_published_span_by_name(release: Path, tmp_path: Path) -> None:
    options = ("--nq-null-long-answers", "released")
    with chunks_in_this_process():
        paths = ("--input", str(NQ / "nq-dev-00.jsonl"), "--kb", str(release), "--output", str(tmp_path), *BROKEN)
        assert main(["map", "nq", *paths, *options]) == 0
    plain, named = _without_campaign(), {one["id"]: one for one in read_lines(tmp_path / "nq-dev-kilt.jsonl")}
    spans = [_span_of_nothing(one["output"]) for one in named.values()]
    odd = [one for one in spans if one is not None]

    assert 0 < len(odd) < len(spans)
    for span in odd:
        assert list(span) == [*("wikipedia_id", "title"), *NOWHERE, "bleu_score", "meta", "section"]
        assert {key: span[key] for key in NOWHERE} == NOWHERE
        assert (span["bleu_score"], span["section"]) == (1.0, "Section::::Abstract.")
        assert list(span["meta"]) == ["yes_no_answer", "annotation_id"]
    # Nothing else changes.
    for key, record in plain.items():
        assert [one for one in named[key]["output"] if _span_of_nothing([one]) is None] == record["output"]
    with KnowledgeSource.open(str(release)) as source:
        checked = validate_kilt(str(tmp_path / "nq-dev-kilt.jsonl"), source, LocalStorage(), alignments=str(tmp_path))
    assert dict(checked.broken) == {"empty_span": len(odd)}


def _without_campaign() -> dict[str, dict[str, Any]]:
    """Gives the records of the demo by id, with the outputs that they have without the campaign."""
    records = _golden("nq/nq-dev-kilt.jsonl")
    for record in records.values():
        n_passages = _forms(record).count("passage")
        record["output"] = record["output"][: len(record["output"]) - n_passages]
    return records


def _span_of_nothing(outputs: list[dict[str, Any]]) -> dict[str, Any] | None:
    spans = [span for output in outputs for span in output.get("provenance", [])]
    found = [span for span in spans if (span["start_paragraph_id"], span["end_character"]) == (0, 0)]
    assert len(found) <= 1
    return found[0] if found else None


def test_tokens_parted_at_any_white_space_shift_spans_by_name(release: Path, tmp_path: Path) -> None:
    _map(release, tmp_path, "nq", "--input", str(NQ / "nq-dev-00.jsonl"), "--nq-tokens", "released")
    named = {one["id"]: one for one in read_lines(tmp_path / "nq-dev-kilt.jsonl")}

    plain = _without_campaign()
    assert set(named) >= set(plain)
    assert {key for key, record in plain.items() if named[key]["output"] != record["output"]} == {ELODIE}
