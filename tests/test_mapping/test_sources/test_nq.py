"""Natural Questions: tokens, short and long answers, annotators, the campaign."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import RecordError, SetupError
from mapping.records import Example
from mapping.sources.forms.nq_tokens import NqDocument
from mapping.sources.nq import NqOptions, NqQuestions
from mapping.sources.reading.examples import ExclusionError, Origin
from mapping.sources.reading.files_in import RawRecord
from tests.support.alignments import read_lines
from tests.support.dataset_sources import Reading, read_source, write_lines
from tests.support.mini_wiki import FOLDER
from tests.support.nq_records import nq_annotation, nq_place, nq_question
from tests.support.real_data import ROOT, real_path

DEMO = FOLDER / "datasets" / "nq"


DEV = DEMO / "nq-dev-00.jsonl"


TRAIN = DEMO / "simplified-nq-train.jsonl"


TEST = DEMO / "nq-test-00.jsonl"


CAMPAIGN = (DEMO / "campaign_passages.jsonl", DEMO / "campaign_judgements.jsonl")


LONG = [(0, 8), (-1, -1), (-1, -1), (1, 2)]


RIVER, RAIN, TIN, ELODIE = "6915606477668963001", "-8366545547296627002", "7217222058435937003", "-143054837169120004"


@pytest.fixture(scope="module")
def dev() -> dict[str, Example]:
    return _by_id(read_source("nq", DEV))


def _by_id(reading: Reading) -> dict[str, Example]:
    return {one.example_id: one for one in reading.examples}


def _answers(example: Example) -> list[str | None]:
    return [output.answer for output in example.outputs]


def _long(example: Example) -> list[tuple[str | None, Any]]:
    return [(one.text, one.meta) for output in example.outputs if output.answer is None for one in output.evidence]


def _converted(record: dict[str, Any], **options: Any) -> Example:
    questions = NqQuestions("dev", campaign=lambda key: None, options=NqOptions(**options))
    return questions.example(record, Origin(RawRecord("f", 1, 0, b"")))


def test_the_id_keeps_its_sign_and_the_question_its_words(dev: dict[str, Example]) -> None:
    assert (dev[RAIN].input, dev[RAIN].meta, dev[RAIN].line) == ("who acts in 99% rain", None, 2)


def test_short_answers_of_all_annotators_stand_once_each_in_their_order(dev: dict[str, Example]) -> None:
    assert _answers(dev[RIVER])[:3] == [
        "Lake Miravel",
        "Lake Miravel , 412 metres ( 1,352 ft ) above the sea",
        "the Great Miravel Tarn",
    ]
    assert _answers(dev[RAIN])[:2] == ["Ilse Marr", "Ned Arrow"]


def test_a_short_answer_is_its_own_evidence_without_meta(dev: dict[str, Example]) -> None:
    (evidence,) = dev[RIVER].outputs[0].evidence
    assert (evidence.text, evidence.meta, evidence.page.kind) == ("Lake Miravel", None, "url")
    assert evidence.page.value == "https://mini.example.org//w/index.php?title=River_Ullane&amp;oldid=80351012"


@pytest.mark.parametrize(("n_tokens", "is_sought"), [(1, True), (5, True), (6, False)])
def test_an_answer_of_more_than_five_tokens_stays_without_provenance(n_tokens: int, is_sought: bool) -> None:
    example = _converted(nq_question(nq_annotation((1, 2), (1, 1 + n_tokens))))
    assert [bool(output.evidence) for output in example.outputs] == [True, is_sought][: 1 + (n_tokens > 1)]


def test_longer_answers_are_left_out_by_name() -> None:
    example = _converted(nq_question(nq_annotation((1, 2), (1, 7))), nq_keep_long_short_answers=False)
    assert _answers(example) == ["a"]


def test_html_tokens_are_not_counted(dev: dict[str, Example]) -> None:
    output = next(output for output in dev[RAIN].outputs if output.answer == "the clerk Ned Arrow")
    assert [one.text for one in output.evidence] == ["the clerk Ned Arrow"]


def test_html_tokens_stay_by_name() -> None:
    kept = _by_id(read_source("nq", DEV, options=NqOptions(nq_strip_html=False)))
    assert "the clerk </Li> <Li> Ned Arrow" in _answers(kept[RAIN])
    assert _long(kept[RAIN])[1][0] == "<Li> Ned Arrow as the wind </Li>"


def test_an_answer_of_tags_alone_is_none(dev: dict[str, Example]) -> None:
    assert "" not in _answers(dev[RAIN])
    with pytest.raises(ExclusionError, match="no_short_answer"):
        _converted(nq_question(nq_annotation((0, 1))))


@pytest.mark.parametrize(
    ("token", "is_html"),
    [
        ("<P>", True),
        ("</Table>", True),
        ('<Td_colspan="2">', True),
        ('<Th_style="a>b">', True),
        ("<Br/>", True),
        ("<H1>", True),
        ("<string>", False),
        ("<", False),
        ("<>", False),
        ("<Depth", False),
        ("x<P>", False),
        ("<stdio.h>", False),
    ],
)
def test_tags_of_the_simplified_form_are_told_by_their_look(token: str, is_html: bool) -> None:
    (found,) = NqDocument({"document_text": token}).tokens(nq_place(0, 1))
    assert found == (token, is_html)


def test_tags_of_the_full_form_are_those_that_it_marks() -> None:
    tokens = [{"token": "<Depth>", "html_token": False}, {"token": '<Td colspan="2">', "html_token": True}]
    assert NqDocument({"document_tokens": tokens}).tokens(nq_place(0, 2)) == [
        ("<Depth>", False),
        ('<Td_colspan="2">', True),
    ]


def test_only_the_blank_parts_tokens(dev: dict[str, Example]) -> None:
    assert _answers(dev[ELODIE])[0] == "30\u00a0 \u2009 November 1871"
    words = NqDocument({"document_text": "\u180e \u00a0 a\u2003b \u3000 c"}).tokens(nq_place(0, 5))
    assert [one.text for one in words] == ["\u180e", "\u00a0", "a\u2003b", "\u3000", "c"]


def _simplified(record: dict[str, Any]) -> dict[str, Any]:
    """Gives a full record in the simplified form, as the dataset's README says."""
    texts = [one["token"].replace(" ", "_") for one in record["document_tokens"]]
    return {key: value for key, value in record.items() if key != "document_tokens"} | {
        "document_text": " ".join(texts)
    }


def test_the_full_and_the_simplified_form_give_the_same(tmp_path: Path) -> None:
    # One token of the demo looks like a tag and is none, which only the full form can say.
    lines = [line for line in DEV.read_text("utf-8").splitlines() if "<Depth>" not in line]
    path = write_lines(
        tmp_path / "dev.jsonl",
        [json.dumps(_simplified(json.loads(line))) if line.endswith("}") else line for line in lines],
    )
    full, simplified = read_source("nq", write_lines(tmp_path / "full.jsonl", lines)), read_source("nq", path)
    assert [(one.example_id, one.outputs) for one in full.examples] == [
        (one.example_id, one.outputs) for one in simplified.examples
    ]
    assert full.reasons == simplified.reasons


def test_null_long_answers_are_passed_over(dev: dict[str, Example]) -> None:
    texts = [text for text, _ in _long(dev[RIVER])]
    assert [text.split()[0] for text in texts if text] == ["The", "From"]


def test_the_first_null_long_answer_is_an_empty_span_by_name() -> None:
    annotations = [{**nq_annotation((1, 2), long=place), "annotation_id": number} for number, place in enumerate(LONG)]
    example = _converted(nq_question(*annotations), nq_null_long_answers="released")
    assert [(text, meta["annotation_id"]) for text, meta in _long(example)] == [("a b c d e f", 0), ("", 1), ("a", 3)]
    assert [text for text, _ in _long(_converted(nq_question(*annotations)))] == ["a b c d e f", "a"]


def test_any_white_space_parts_tokens_by_name(dev: dict[str, Example]) -> None:
    # Three tokens vanish and one becomes two, so that the same numbers mean other words.
    record = {"document_text": "\u00a0 \u2009  a\u2003b c d \u3000 e"}
    found = [NqDocument(record, splits_anywhere=True).tokens(nq_place(*place)) for place in [(0, 2), (3, 6), (6, 8)]]
    assert [[one.text for one in tokens] for tokens in found] == [["a", "b"], ["d", "e"], []]
    with pytest.raises(RecordError, match="token_range"):
        NqDocument(record, splits_anywhere=True).tokens(nq_place(8, 10))
    released = _by_id(read_source("nq", DEV, options=NqOptions(nq_tokens="released")))
    assert _answers(released[ELODIE])[0] != _answers(dev[ELODIE])[0]
    assert {key: one.outputs for key, one in released.items() if key != ELODIE} == {
        key: one.outputs for key, one in dev.items() if key != ELODIE
    }


def test_pieces_of_a_token_of_the_full_form_are_what_it_is() -> None:
    tokens = [{"token": "<Td\u00a0x>", "html_token": True}, {"token": "a\u2003<P>", "html_token": False}]
    found = NqDocument({"document_tokens": [*tokens, *tokens]}, splits_anywhere=True).tokens(nq_place(0, 4))
    assert found == [("<Td", True), ("x>", True), ("a", False), ("<P>", False)]


def test_each_distinct_long_answer_has_the_meta_of_its_own_annotation(dev: dict[str, Example]) -> None:
    assert [meta for _, meta in _long(dev[RIVER])] == [
        {"yes_no_answer": "NONE", "annotation_id": 13591449469826568799},
        {"yes_no_answer": "NONE", "annotation_id": 2430977867500315003},
    ]
    assert [meta["yes_no_answer"] for _, meta in _long(dev[TIN])] == ["NONE", "YES"]
    assert list(_long(dev[TIN])[0][1]) == ["yes_no_answer", "annotation_id"]


def test_the_meta_of_the_first_annotation_for_all_by_name() -> None:
    released = _by_id(read_source("nq", DEV, options=NqOptions(nq_annotation_meta="released")))
    assert {meta["annotation_id"] for _, meta in _long(released[TIN])} == {14014754538899837001}


def test_annotation_ids_keep_all_their_digits() -> None:
    huge = 340282366920938463463374607431768211457
    example = _converted(nq_question({**nq_annotation((1, 2), long=(0, 8)), "annotation_id": huge}))
    assert _long(example)[0][1]["annotation_id"] == huge


def test_long_answers_come_after_all_short_ones(dev: dict[str, Example]) -> None:
    for example in dev.values():
        is_long = [output.answer is None for output in example.outputs]
        assert is_long == sorted(is_long)


def test_what_is_left_out_is_counted_by_reason() -> None:
    tally = read_source("nq", DEV).tally
    assert tally.excluded == {"yes_no_only": 1, "no_short_answer": 1, "long_short_answers": 1}
    assert tally.rejected == {"malformed_json": 1, "token_range": 1, "duplicate_id": 1}
    assert (tally.records, tally.examples) == (16, 10)


def test_passages_of_the_campaign_stand_last_and_partial_ones_apart() -> None:
    example = _by_id(read_source("nq", DEV, *CAMPAIGN))[RIVER]
    first, second = example.outputs[-2:]
    assert [output.answer for output in (first, second)] == [None, None]
    assert [output.evidence[0].page.value for output in (first, second)] == ["River Ullane", "Lake Miravel"]
    assert first.evidence[0].meta == {
        "evidence_span": ["It rises in Lake Miravel", "rises in Lake Miravel, 412 metres (1,352 ft) above the sea"]
    }
    assert [one.page.value for one in example.partial] == ["Mount Kestrane"]


def test_a_question_that_no_passage_answers_is_left_out() -> None:
    judged = "5004457603684974008"
    reading = read_source("nq", DEV, *CAMPAIGN)
    assert judged in _by_id(read_source("nq", DEV))
    assert judged not in _by_id(reading)
    assert reading.tally.excluded["no_accepted_passage"] == 1


def test_test_questions_need_no_annotations_and_labels_bring_them() -> None:
    bare = read_source("nq", TEST, split="test")
    assert [one.outputs for one in bare.examples] == [()] * 4
    reading = read_source("nq", TEST, split="test", labels=[DEMO / "test_labels.jsonl"])
    assert {one.example_id: _answers(one)[0] for one in reading.examples} == {
        "3542596469291219001": "Pell & Daughters",
        "-3542596469291219002": "Corvin Hale",
    }
    assert reading.tally.excluded == {"yes_no_only": 1}
    assert reading.reasons == [("source", "3542596469291219003", "missing_label")]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_packed_files_are_read_as_they_are(pack: Any, tmp_path: Path, dev: dict[str, Example]) -> None:
    path = tmp_path / "nq-dev-00.jsonl.packed"
    path.write_bytes(pack(DEV.read_bytes()))
    assert [one.outputs for one in read_source("nq", path).examples] == [one.outputs for one in dev.values()]


@pytest.mark.parametrize(
    ("bad", "key", "reason"),
    [
        pytest.param("{", "line 2", "malformed_json", id="breaks off"),
        pytest.param(nq_question(example_id="1"), "line 2", "wrong_type", id="id is text"),
        pytest.param(nq_question(nq_annotation((7, 9)), example_id=2), "2", "token_range", id="behind the end"),
        pytest.param(nq_question(nq_annotation((3, 3)), example_id=2), "2", "token_range", id="no tokens"),
        pytest.param(nq_question(nq_annotation((-1, 3)), example_id=2), "2", "token_range", id="from the end"),
        pytest.param(
            nq_question(nq_annotation((1, 2), long=(-1, 5)), example_id=2), "2", "token_range", id="half null"
        ),
        pytest.param(
            nq_question(nq_annotation((1, 2), choice="MAYBE"), example_id=2), "2", "unknown_label", id="maybe"
        ),
        pytest.param(nq_question({"short_answers": []}, example_id=2), "2", "missing_field", id="no choice"),
        pytest.param(
            nq_question(nq_annotation((1, 2)), example_id=2, document_text=1), "2", "wrong_type", id="no text"
        ),
        pytest.param(
            nq_question(nq_annotation((0, 1)), example_id=2, document_tokens=["a"]), "2", "wrong_type", id="bare tokens"
        ),
        pytest.param(
            nq_question(nq_annotation((0, 1)), example_id=2, document_tokens=[{"token": "a"}]),
            "2",
            "wrong_type",
            id="token of no kind",
        ),
        pytest.param(nq_question(nq_annotation((1, 2))), "1", "duplicate_id", id="id again"),
    ],
)
def test_a_bad_record_is_rejected_and_the_rest_goes_on(tmp_path: Path, bad: Any, key: str, reason: str) -> None:
    good = nq_question(nq_annotation((1, 2)))
    path = write_lines(tmp_path / "dev.jsonl", [good, bad, {**good, "example_id": 3}])
    reading = read_source("nq", path)
    assert [one.example_id for one in reading.examples] == ["1", "3"]
    assert reading.reasons == [("source", key, reason)]


def test_the_wrong_input_altogether_stops_at_once(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is not what was expected: Natural Questions"):
        read_source("nq", FOLDER / "datasets" / "fever" / "train.jsonl")
    with pytest.raises(SetupError, match="and annotations"):
        read_source("nq", TEST, split="dev")
    with pytest.raises(SetupError, match="judgements of an annotation campaign"):
        read_source("nq", DEV, TRAIN)
    with pytest.raises(SetupError, match="train of nq has no annotation campaign"):
        read_source("nq", TRAIN, *CAMPAIGN, split="train")


def test_published_campaign_spans_come_back_as_they_are(tmp_path: Path) -> None:
    published = real_path("kilt/nq-dev-kilt.jsonl")
    records = read_lines(published)
    path = write_lines(
        tmp_path / "dev.jsonl", [nq_question(nq_annotation((1, 2)), example_id=int(one["id"])) for one in records]
    )
    for example, record in zip(read_source("nq", path, published).examples, records, strict=True):
        spans = [span for output in record["output"] for span in output.get("provenance", [])]
        assert [output.evidence[0].meta for output in example.outputs[1:]] == [
            span["meta"] for span in spans if "evidence_span" in span.get("meta", {})
        ]
        partial = record.get("meta", {}).get("partial_evidence", [])
        assert [one.meta for one in example.partial] == [span["meta"] for span in partial]


def test_records_have_the_keys_of_the_published_ones_in_their_order() -> None:
    def keys(records: list[dict[str, Any]]) -> set[tuple[str, ...]]:
        outputs = [output for one in records for output in one["output"]]
        spans = [span for output in outputs for span in output.get("provenance", [])]
        return {tuple(one) for one in [*outputs, *spans, *(span["meta"] for span in spans if "meta" in span)]}

    ours = read_lines(ROOT / "tests" / "golden" / "datasets" / "nq" / "nq-dev-kilt.jsonl")
    published = read_lines(real_path("kilt/nq-dev-kilt.jsonl"))
    assert keys(ours) == keys(published)
    assert {tuple(one) for one in ours} == {tuple(one) for one in published}
