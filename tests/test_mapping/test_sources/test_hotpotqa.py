"""HotpotQA: questions, supporting facts and the sentences of abstracts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from tests.support.dataset_sources import DATA, read_source, texts_of
from tests.support.real_data import real_path

DEV = DATA / "hotpotqa" / "dev.json"
ABSTRACTS = DATA / "hotpotqa" / "abstracts"


def _question(**fields: object) -> dict[str, object]:
    good = {"_id": "a", "question": "q", "answer": "yes", "supporting_facts": [["Port Sellick", 0]]}
    return good | fields


def _write(path: Path, *records: object) -> Path:
    path.write_text(
        "[" + ", ".join(record if isinstance(record, str) else json.dumps(record) for record in records) + "]"
    )
    return path


def test_without_abstracts_the_context_is_read_and_must_hold_every_supporting_page(tmp_path: Path) -> None:
    assert texts_of(read_source("hotpotqa", DEV, is_checked=False).examples[0]) == [["Wrong sentence 1.", ""]]
    with pytest.raises(SetupError, match=r"question 'h1' lacks the supporting page .* Give HotpotQA's abstracts"):
        read_source("hotpotqa", DEV)
    whole = _write(tmp_path / "dev.json", _question(context=[["Port Sellick", ["It stands."]]]))
    assert texts_of(read_source("hotpotqa", whole).examples[0]) == [["It stands."]]


def test_a_sentence_without_a_word_is_left_out(tmp_path: Path) -> None:
    facts = [["Port Sellick", 0], ["Port Sellick", 1]]
    path = _write(
        tmp_path / "dev.json", _question(supporting_facts=facts, context=[["Port Sellick", ["A town.", " ."]]])
    )
    reading = read_source("hotpotqa", path)
    assert (texts_of(reading.examples[0]), reading.reasons) == ([["A town."]], [("evidence", "a", "unknown_sentence")])


def test_a_negative_sentence_number_does_not_count_from_the_end(tmp_path: Path) -> None:
    path = _write(tmp_path / "dev.json", _question(supporting_facts=[["Port Sellick", -1]]))
    assert read_source("hotpotqa", path, ABSTRACTS).reasons == [("evidence", "a", "unknown_sentence")]


def test_test_questions_need_no_answer(tmp_path: Path) -> None:
    path = _write(tmp_path / "test.json", {"_id": "t", "question": "q", "context": []})
    (example,) = read_source("hotpotqa", path, split="test").examples
    assert (example.example_id, example.outputs) == ("t", ())


def test_real_first_records() -> None:
    path = real_path("datasets/hotpotqa/hotpot_dev_fullwiki_v1_first_records.json")
    with pytest.raises(SetupError, match="--abstracts"):
        read_source("hotpotqa", path)
    reading = read_source("hotpotqa", path, is_checked=False)
    assert (reading.tally.records, reading.tally.examples) == (29, 29)
    assert not reading.tally.rejected
    found = reading.tally.evidences - reading.tally.lost_evidences.total()
    assert found > 0
    assert set(reading.tally.lost_evidences) == {"unknown_page"}
