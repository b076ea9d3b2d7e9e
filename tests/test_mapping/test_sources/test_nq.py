"""Natural Questions: tokens, short and long answers, annotators, the campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import RecordError
from mapping.sources.nq import MAX_ANSWER_TOKENS, NqDocument
from tests.support.alignments import read_lines, write_records
from tests.support.dataset_sources import read_parsed, read_source
from tests.support.mini_wiki import FOLDER
from tests.support.real_data import ROOT, real_path


def nq_place(start: int, end: int) -> dict[str, int]:
    return {"start_token": start, "end_token": end}


def nq_annotation(*short: tuple[int, int], long: tuple[int, int] = (-1, -1), choice: str = "NONE") -> dict[str, Any]:
    return {
        "annotation_id": 7,
        "long_answer": {**nq_place(*long), "candidate_index": -1},
        "short_answers": [nq_place(*token_range) for token_range in short],
        "yes_no_answer": choice,
    }


def nq_question(*annotations: Any, text: str = "<P> a b c d e f </P>", **fields: Any) -> dict[str, Any]:
    return {
        "example_id": 1,
        "question_text": "q",
        "document_url": "https://mini.example.org//w/index.php?title=Lake_Miravel&amp;oldid=1",
        "document_text": text,
        "long_answer_candidates": [],
        "annotations": list(annotations),
        **fields,
    }


DEMO = FOLDER / "datasets" / "nq"
DEV = DEMO / "nq-dev-00.jsonl"
TRAIN = DEMO / "simplified-nq-train.jsonl"
TEST = DEMO / "nq-test-00.jsonl"
CAMPAIGN = (DEMO / "campaign_passages.jsonl", DEMO / "campaign_judgements.jsonl")


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


def test_only_the_blank_parts_tokens() -> None:
    words = NqDocument({"document_text": "\u180e \u00a0 a\u2003b \u3000 c"}).tokens(nq_place(0, 5))
    assert [word.text for word in words] == ["\u180e", "\u00a0", "a\u2003b", "\u3000", "c"]


def _simplified(record: dict[str, Any]) -> dict[str, Any]:
    """A full record in the simplified form, as the dataset's README says."""
    texts = [document_token["token"].replace(" ", "_") for document_token in record["document_tokens"]]
    return {key: value for key, value in record.items() if key != "document_tokens"} | {
        "document_text": " ".join(texts)
    }


def test_the_full_and_the_simplified_form_give_the_same(tmp_path: Path) -> None:
    # One token of the demo looks like a tag and is none, which only the full form can say.
    lines = [line for line in DEV.read_text("utf-8").splitlines() if "<Depth>" not in line]
    path = write_records(
        tmp_path / "dev.jsonl",
        [json.dumps(_simplified(json.loads(line))) if line.endswith("}") else line for line in lines],
    )
    full, simplified = read_source("nq", write_records(tmp_path / "full.jsonl", lines)), read_source("nq", path)
    assert [(example.example_id, example.outputs) for example in full.examples] == [
        (example.example_id, example.outputs) for example in simplified.examples
    ]
    assert full.reasons == simplified.reasons


def test_any_white_space_parts_tokens_by_name() -> None:
    # Three tokens vanish and one becomes two, so that the same numbers mean other words.
    record = {"document_text": "\u00a0 \u2009  a\u2003b c d \u3000 e"}
    found = [NqDocument(record, splits_anywhere=True).tokens(nq_place(*place)) for place in [(0, 2), (3, 6), (6, 8)]]
    assert [[token.text for token in tokens] for tokens in found] == [["a", "b"], ["d", "e"], []]
    with pytest.raises(RecordError, match="token_range"):
        NqDocument(record, splits_anywhere=True).tokens(nq_place(8, 10))


def test_pieces_of_a_token_of_the_full_form_are_what_it_is() -> None:
    tokens = [{"token": "<Td\u00a0x>", "html_token": True}, {"token": "a\u2003<P>", "html_token": False}]
    found = NqDocument({"document_tokens": [*tokens, *tokens]}, splits_anywhere=True).tokens(nq_place(0, 4))
    assert found == [("<Td", True), ("x>", True), ("a", False), ("<P>", False)]


def test_published_campaign_spans_come_back_as_they_are(tmp_path: Path) -> None:
    published = real_path("kilt/nq-dev-kilt.jsonl")
    records = read_lines(published)
    path = write_records(
        tmp_path / "dev.jsonl", [nq_question(nq_annotation((1, 2)), example_id=int(record["id"])) for record in records]
    )
    for example, record in zip(read_source("nq", path, published).examples, records, strict=True):
        spans = [span for output in record["output"] for span in output.get("provenance", [])]
        assert [output.evidence[0].meta for output in example.outputs[1:]] == [
            span["meta"] for span in spans if "evidence_span" in span.get("meta", {})
        ]
        partial = record.get("meta", {}).get("partial_evidence", [])
        assert [partial_span.meta for partial_span in example.partial] == [span["meta"] for span in partial]


def test_records_have_the_keys_of_the_published_ones_in_their_order() -> None:
    def keys(records: list[dict[str, Any]]) -> set[tuple[str, ...]]:
        outputs = [output for record in records for output in record["output"]]
        spans = [span for output in outputs for span in output.get("provenance", [])]
        return {tuple(meta) for meta in [*outputs, *spans, *(span["meta"] for span in spans if "meta" in span)]}

    ours = read_lines(ROOT / "tests" / "golden" / "datasets" / "nq" / "nq-dev-kilt.jsonl")
    published = read_lines(real_path("kilt/nq-dev-kilt.jsonl"))
    assert keys(ours) == keys(published)
    assert {tuple(meta) for meta in ours} == {tuple(meta) for meta in published}


_TOKENS = st.sampled_from(["a", "b", "c", "<P>", "</P>", "<Li>", ".", "\u180e", "<i>"])
_PLACES = st.tuples(st.integers(-1, 9), st.integers(-1, 9))
_ANNOTATIONS = st.lists(
    st.builds(
        lambda short, long, choice: nq_annotation(*short, long=long, choice=choice),
        st.lists(_PLACES, max_size=3),
        st.just((-1, -1)) | _PLACES,
        st.sampled_from(["NONE", "NONE", "YES", "NO", "?"]),
    ),
    max_size=3,
)


_RECORDS = st.builds(
    lambda number, tokens, annotations: nq_question(*annotations, text=" ".join(tokens), example_id=number),
    st.integers(-3, 3),
    st.lists(_TOKENS, min_size=6, max_size=8),
    _ANNOTATIONS,
)


def _expected(record: dict[str, Any]) -> list[tuple[str | None, str | None]] | None:
    """Answer and evidence of each output, by the rules word for word; None for a record that is left out."""
    tokens = record["document_text"].split(" ")
    tags = {"<P>", "</P>", "<Li>"}

    def words(place: dict[str, int]) -> list[str] | None:
        start, end = place["start_token"], place["end_token"]
        if not 0 <= start < end <= len(tokens):
            return None
        return [token for token in tokens[start:end] if token not in tags]

    outputs: list[tuple[str | None, str | None]] = []
    has_short = False
    for annotation in record["annotations"]:
        for place in annotation["short_answers"]:
            found = words(place)
            if found is None:
                return None
            answer = " ".join(found)
            is_short = len(found) <= MAX_ANSWER_TOKENS
            has_short |= bool(found) and is_short
            if found and answer not in [known_answer for known_answer, _ in outputs]:
                outputs.append((answer, answer if is_short else None))
    if not has_short:
        return None
    long_answers: list[str] = []
    for annotation in record["annotations"]:
        place = annotation["long_answer"]
        if (place["start_token"], place["end_token"]) != (-1, -1):
            found = words(place)
            if found is None:
                return None
            if " ".join(found) not in long_answers:
                long_answers.append(" ".join(found))
    return [*outputs, *((None, text) for text in long_answers)]


@given(st.lists(_RECORDS, max_size=8))
def test_no_record_is_lost_without_a_reason_and_outputs_follow_the_rules(records: list[dict[str, Any]]) -> None:
    reading = read_parsed("nq", records)
    assert reading.tally.records == len(records)
    given_lines = {example.line for example in reading.examples}
    seen: set[int] = set()
    for line, record in enumerate(records, 1):
        is_valid = all(annotation["yes_no_answer"] != "?" for annotation in record["annotations"])
        expected = _expected(record) if is_valid else None
        is_given = expected is not None and record["example_id"] not in seen
        assert (line in given_lines) == is_given
        if is_given:
            seen.add(record["example_id"])
    for example in reading.examples:
        shown = [(out.answer, out.evidence[0].text if out.evidence else None) for out in example.outputs]
        assert shown == _expected(records[example.line - 1])
