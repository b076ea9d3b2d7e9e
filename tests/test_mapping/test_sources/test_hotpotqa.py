"""HotpotQA: questions, supporting facts and the sentences of abstracts."""

from __future__ import annotations

import bz2
import json
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.sources.hotpotqa import HotpotOptions
from tests.support.dataset_sources import DATA, Reading, read_source, texts_of
from tests.support.real_data import real_path

DEV = DATA / "hotpotqa" / "dev.json"
ABSTRACTS = DATA / "hotpotqa" / "abstracts"


@pytest.fixture(scope="module")
def reading() -> Reading:
    return read_source("hotpotqa", DEV, ABSTRACTS)


def _question(**fields: object) -> dict[str, object]:
    good = {"_id": "a", "question": "q", "answer": "yes", "supporting_facts": [["Port Sellick", 0]]}
    return good | fields


def _write(path: Path, *records: object) -> Path:
    path.write_text("[" + ", ".join(one if isinstance(one, str) else json.dumps(one) for one in records) + "]")
    return path


def test_one_output_with_every_distinct_fact_as_one_evidence_set(reading: Reading) -> None:
    first = reading.examples[0]
    assert (first.example_id, first.input, first.meta, first.line) == (
        "h1",
        "Where does the river rise on whose banks Port Sellick stands?",
        None,
        1,
    )
    (output,) = first.outputs
    assert output.answer == "Lake Miravel"
    assert [one.page.value for one in output.evidence] == ["Port Sellick", "River Ullane"]


def test_sentences_come_from_the_abstracts_even_where_the_context_has_the_page(reading: Reading) -> None:
    assert texts_of(reading.examples[0]) == [
        ["It stands on both banks of the River Ullane.", "It rises in Lake Miravel."]
    ]


def test_titles_are_compared_without_html_escapes_and_the_context_is_the_fallback(reading: Reading) -> None:
    (output,) = reading.examples[1].outputs
    assert [one.page.value for one in output.evidence] == ["Pell & Daughters", "Ister Sound", "Nowhere"]
    sentence = "Pell & Daughters are shipbuilders and clockmakers in Port Sellick, founded in 1688."
    assert texts_of(reading.examples[1]) == [[sentence, "Ister Sound is a sound.", ""]]


def test_a_sentence_that_does_not_exist_is_left_out_and_one_of_no_page_stays_with_empty_text(reading: Reading) -> None:
    assert reading.reasons == [("evidence", "h2", "unknown_sentence"), ("evidence", "h2", "unknown_page")]


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


def test_level_and_type_are_kept_only_where_asked_for() -> None:
    kept = read_source("hotpotqa", DEV, ABSTRACTS, options=HotpotOptions(keep_meta=True))
    assert [one.meta for one in kept.examples] == [
        {"level": "hard", "type": "bridge"},
        {"level": "easy", "type": "comparison"},
    ]


def test_test_questions_need_no_answer(tmp_path: Path) -> None:
    path = _write(tmp_path / "test.json", {"_id": "t", "question": "q", "context": []})
    (example,) = read_source("hotpotqa", path, split="test").examples
    assert (example.example_id, example.outputs) == ("t", ())


def test_packed_questions_and_abstracts_are_read_as_they_are(tmp_path: Path, reading: Reading) -> None:
    (tmp_path / "dev.json.bz2").write_bytes(bz2.compress(DEV.read_bytes()))
    for path in ABSTRACTS.rglob("wiki_*"):
        packed = tmp_path / "abstracts" / path.parent.name / f"{path.name}.bz2"
        packed.parent.mkdir(parents=True)
        packed.write_bytes(bz2.compress(path.read_bytes()))
    same = read_source("hotpotqa", tmp_path / "dev.json.bz2", tmp_path / "abstracts")
    assert [texts_of(one) for one in same.examples] == [texts_of(one) for one in reading.examples]


@pytest.mark.parametrize(
    ("bad", "key", "reason"),
    [
        pytest.param('{"_id": "b", "question": }', "line 2", "malformed_json", id="no value"),
        pytest.param('{"_id": "b", "question": "cut}', "line 2", "malformed_json", id="no closing quote"),
        pytest.param("17", "line 2", "wrong_type", id="a number"),
        pytest.param({"question": "q"}, "line 2", "missing_field", id="no id"),
        pytest.param(_question(_id="b", answer=1), "b", "wrong_type", id="answer is a number"),
        pytest.param(_question(_id="b", supporting_facts=[["P"]]), "b", "wrong_type", id="fact of one"),
        pytest.param(_question(_id="b", supporting_facts=[]), "b", "missing_field", id="no facts"),
        pytest.param(_question(_id="b", context=[["P", "text"]]), "b", "wrong_type", id="context is text"),
        pytest.param(_question(), "a", "duplicate_id", id="id again"),
    ],
)
def test_a_bad_element_is_rejected_and_the_rest_goes_on(tmp_path: Path, bad: object, key: str, reason: str) -> None:
    path = _write(tmp_path / "dev.json", _question(), bad, _question(_id="c"))
    reading = read_source("hotpotqa", path, ABSTRACTS)
    assert [one.example_id for one in reading.examples] == ["a", "c"]
    assert reading.reasons == [("source", key, reason)]


def test_the_wrong_input_altogether_stops_at_once(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is no JSON array"):
        read_source("hotpotqa", DATA / "fever/dev.jsonl", ABSTRACTS)
    with pytest.raises(SetupError, match="questions of HotpotQA"):
        read_source("hotpotqa", _write(tmp_path / "x.json", {"id": 1}), ABSTRACTS)
    with pytest.raises(SetupError, match="holds no files of HotpotQA's abstracts"):
        read_source("hotpotqa", DEV, DATA / "wned")
    full = tmp_path / "wiki_00"
    full.write_text(json.dumps({"title": "Port Sellick", "text": [["Port Sellick"], ["One.", "Two."]]}))
    with pytest.raises(SetupError, match="list of sentences"):
        read_source("hotpotqa", DEV, full)


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
