"""ELI5: answers, the questions that annotators were shown, and the passages that they accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.errors import SetupError
from mapping.decide import decide
from mapping.records import PARTIAL, Evidence, Example, Output, PageKey, Place, ReleasedExample
from mapping.sources import all_sources
from mapping.write.kilt import kilt_example
from tests.support.aligned import aligned
from tests.support.alignments import write_records
from tests.support.dataset_sources import read_source
from tests.support.real_data import ROOT, real_path

DEMO = ROOT / "kbsource" / "demo" / "datasets" / "eli5"
CAMPAIGN = (DEMO / "campaign_judgements.csv", DEMO / "campaign_passages.jsonl")


def _thread(q_id: str = "a", *texts: str, **fields: Any) -> dict[str, Any]:
    texts = texts or ("Because.",)
    answers = {"a_id": [str(number) for number in range(len(texts))], "text": list(texts), "score": [2] * len(texts)}
    return {"q_id": q_id, "title": "Why?", "selftext": "", "answers": answers} | fields


def test_test_questions_need_no_answers(tmp_path: Path) -> None:
    path = write_records(tmp_path / "t.jsonl", [{"q_id": "a", "title": "Why?"}, _thread("b", answers=None)])
    assert [example.outputs for example in read_source("eli5", path, split="test").examples] == [(), ()]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    answers = pa.struct({"a_id": pa.list_(pa.string()), "text": pa.list_(pa.string()), "score": pa.list_(pa.int32())})
    schema = pa.schema({"q_id": pa.string(), "title": pa.string(), "selftext": pa.string(), "answers": answers})
    return pa.Table.from_pylist(rows, schema=schema)


def test_lines_arrays_and_parquet_are_read_alike(tmp_path: Path) -> None:
    rows = [_thread(f"q{number}", f"answer {number}", "é—\u2028 other") for number in range(600)]
    lines = write_records(tmp_path / "a.jsonl", rows)
    wanted = [(example.example_id, example.input, example.outputs) for example in read_source("eli5", lines).examples]
    assert len(wanted) == 600
    array = tmp_path / "a.json"
    array.write_text(json.dumps(rows, indent=1), "utf-8")
    table = tmp_path / "a.parquet"
    pq.write_table(_table(rows), table, row_group_size=450)
    for path in (array, table):
        reading = read_source("eli5", path)
        assert [(example.example_id, example.input, example.outputs) for example in reading.examples] == wanted, (
            path.name
        )
    assert reading.examples[-1].line == 600


def test_parquet_that_breaks_off_or_is_of_something_else_stops_at_once(tmp_path: Path) -> None:
    table = tmp_path / "a.parquet"
    pq.write_table(_table([_thread("a")]), table)
    table.write_bytes(table.read_bytes()[:-20])
    with pytest.raises(SetupError, match="cannot be read to its end"):
        read_source("eli5", table)
    pq.write_table(pa.table({"x": [1]}), table)
    with pytest.raises(SetupError, match="ELI5 as JSON lines"):
        read_source("eli5", table)


_ANSWERS = st.lists(st.tuples(st.sampled_from(["yes", "no", " ", ""]), st.integers(-5, 9)), max_size=3)
_THREADS = st.lists(
    st.one_of(
        st.sampled_from(
            ["{", "[]", '{"q_id": 1}', '{"q_id": "x", "title": "t", "answers": {"text": ["a"], "score": []}}']
        ),
        st.tuples(st.sampled_from("abcdef"), _ANSWERS),
    ),
    max_size=12,
)


@given(
    threads=_THREADS, shown=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 3)), has_campaign=st.booleans()
)
def test_no_thread_is_lost_without_a_reason(
    tmp_path_factory: pytest.TempPathFactory, threads: list[Any], shown: dict[str, int], has_campaign: bool
) -> None:
    folder = tmp_path_factory.mktemp("eli5")
    written = [
        thread
        if isinstance(thread, str)
        else _thread(
            thread[0], answers={"text": [text for text, _ in thread[1]], "score": [score for _, score in thread[1]]}
        )
        for thread in threads
    ]
    records = write_records(folder / "dev.jsonl", [_thread("first"), *written])
    judged = [
        {"question_id": question, "passage_id": "p", "worker_id": worker, "label": "yes" if worker < n_yes else "no"}
        for question, n_yes in [("first", 3), *shown.items()]
        for worker in range(3)
    ]
    passages = write_records(folder / "p.jsonl", [{"passage_id": "p", "wikipedia_title": "T", "text": "x"}])
    campaign = (passages, write_records(folder / "j.jsonl", judged)) if has_campaign else ()
    reading = read_source("eli5", records, *campaign)  # asserts that the counts add up

    assert reading.tally.records == len(threads) + 1
    wanted: dict[str, list[str]] = {"first": ["Because."]}
    for thread in threads:
        answers = [] if isinstance(thread, str) else [text for text, _ in thread[1] if text.strip()]
        if answers and (not has_campaign or shown.get(thread[0], 0) >= 2):
            wanted.setdefault(thread[0], answers)
    assert {
        example.example_id: [output.answer for output in example.outputs if output.answer is not None]
        for example in reading.examples
    } == wanted
    assert [sum(bool(output.evidence) for output in example.outputs) for example in reading.examples] == [
        has_campaign
    ] * len(wanted)


def _decided(
    score: float | None, *, dataset: str = "eli5", is_partial: bool = False, is_accepted: bool | None = None
) -> dict[str, Any]:
    """The record of a question with one answer and one highlight that was found with a score."""
    evidence = Evidence(PageKey("title", "T"), "text", {"evidence_span": ["text"]})
    outputs = (Output("a"), *(() if is_partial else (Output(None, (evidence,)),)))
    partial = (evidence,) if is_partial else ()
    example = Example("q", "?", outputs, None, file="f", line=1, partial=partial)
    place = (
        aligned("weak", 1, "T", "S", Place(1, 0, 1, 4), score=score) if score is not None else aligned("weak", 1, "T")
    )
    placed = {(PARTIAL, 0) if is_partial else (1, 0): replace(place, is_accepted=is_accepted)}
    policy = all_sources()[dataset].policies["dev"]
    decision = decide(example, placed, policy)
    assert decision.reason is None or not decision.partial
    return {"reason": decision.reason, **kilt_example(example, placed, decision, policy)}


_CHARACTERS = (
    "wikipedia_id title section start_paragraph_id start_character end_paragraph_id end_character bleu_score".split()
)
_PARAGRAPHS = "wikipedia_id title section start_paragraph_id end_paragraph_id meta".split()


@pytest.mark.parametrize(
    ("score", "dataset", "keys"),
    [
        pytest.param(1.0, "eli5", _CHARACTERS, id="found"),
        pytest.param(0.5, "eli5", _CHARACTERS, id="at the threshold"),
        pytest.param(0.4999, "eli5", _PARAGRAPHS, id="below the threshold: its paragraph"),
        pytest.param(1.0, "nq", _PARAGRAPHS, id="Natural Questions name paragraphs alone"),
        pytest.param(0.1, "nq", _PARAGRAPHS, id="Natural Questions, below the threshold"),
    ],
)
def test_how_a_highlight_is_written(score: float, dataset: str, keys: list[str]) -> None:
    (_, output) = _decided(score, dataset=dataset)["output"]
    (span,) = output["provenance"]
    assert list(span) == keys
    assert span.get("meta", {"evidence_span": ["text"]}) == {"evidence_span": ["text"]}
    assert list(output) == ["provenance"]


@pytest.mark.parametrize(("score", "dataset"), [(1.0, "eli5"), (0.1, "eli5"), (1.0, "nq"), (0.1, "nq"), (0.0, "nq")])
def test_a_highlight_that_a_rule_does_not_take_is_dropped(score: float, dataset: str) -> None:
    assert _decided(score, dataset=dataset, is_accepted=False)["reason"] == "not_accepted"
    assert "meta" not in _decided(score, is_partial=True, is_accepted=False)


@pytest.mark.parametrize(
    ("score", "dataset", "keys"),
    [
        pytest.param(0.1, "eli5", _CHARACTERS, id="its characters, whatever the threshold"),
        pytest.param(0.0, "eli5", _CHARACTERS, id="a sentence without an n-gram in common"),
        pytest.param(0.0, "nq", _PARAGRAPHS, id="Natural Questions name paragraphs alone"),
    ],
)
def test_a_highlight_that_a_rule_takes_was_found(score: float, dataset: str, keys: list[str]) -> None:
    (_, output) = _decided(score, dataset=dataset, is_accepted=True)["output"]
    assert [list(span) for span in output["provenance"]] == [keys]
    (partial,) = _decided(score, is_partial=True, is_accepted=True)["meta"]["partial_evidence"]
    assert list(partial) == _PARAGRAPHS


@pytest.mark.parametrize(
    ("score", "reason"),
    [pytest.param(0.0, "below_threshold", id="no n-gram in common"), pytest.param(None, "no_match", id="no token")],
)
def test_a_highlight_that_is_not_in_the_page_at_all_drops_the_question(score: float | None, reason: str) -> None:
    assert _decided(score)["reason"] == reason


@pytest.mark.parametrize("score", [1.0, 0.1])
def test_partial_evidence_is_written_by_paragraph(score: float) -> None:
    record = _decided(score, is_partial=True)
    (span,) = record["meta"]["partial_evidence"]
    assert list(span) == _PARAGRAPHS


@pytest.mark.parametrize("score", [0.0, None])
def test_partial_evidence_that_is_not_in_the_page_is_left_out_and_no_meta_stays(score: float | None) -> None:
    assert "meta" not in _decided(score, is_partial=True)


@pytest.mark.parametrize(
    ("score", "keys"),
    [
        pytest.param(
            0.9, ["wikipedia_id", "title", "end_paragraph_id", "end_character", "bleu_score", "meta"], id="found"
        ),
        pytest.param(0.3, ["wikipedia_id", "title", "end_paragraph_id", "meta"], id="weak: no characters"),
    ],
)
def test_a_published_record_keeps_its_keys_and_a_weak_highlight_loses_its_characters(
    score: float, keys: list[str]
) -> None:
    span = {"wikipedia_id": "9", "title": "Old", "end_paragraph_id": 7, "end_character": 3, "bleu_score": 1.0}
    span |= {"meta": {"evidence_span": ["text"]}}
    released = {"id": "q", "input": "?", "output": [{"provenance": [span]}], "meta": {"partial_evidence": [span]}}
    evidence = Evidence(PageKey("page_id", "9"), "text", span["meta"])  # type: ignore[arg-type]
    outputs, meta = (Output(None, (evidence,)),), {"partial_evidence": [span]}
    example = ReleasedExample("q", "?", outputs, meta, file="f", line=1, partial=(evidence,), released=released)
    place = aligned("weak", 1, "T", "S", Place(1, 0, 1, 4), score=score)
    placed = {(0, 0): place, (PARTIAL, 0): place}
    policy = all_sources()["eli5"].policies["dev"]
    record = kilt_example(example, placed, decide(example, placed, policy), policy)
    for written in (record["output"][0]["provenance"], record["meta"]["partial_evidence"]):
        assert [list(written_record) for written_record in written] == [keys]
        assert (written[0]["wikipedia_id"], written[0]["end_paragraph_id"]) == ("1", 1)


def test_real_answers_in_another_form_stop_at_once() -> None:
    written = real_path("datasets/eli5/example_answers.json")
    with pytest.raises(SetupError, match="is not what was expected: ELI5 as JSON lines"):
        read_source("eli5", written, split="train")


def test_real_questions_and_answers_in_the_form_of_the_dumps(tmp_path: Path) -> None:
    real = json.loads(real_path("datasets/eli5/example_answers.json").read_text("utf-8"))
    threads = [
        {"q_id": name, "title": thread["question"], "selftext": "", "answers": {"text": [thread["human_answer"]]}}
        for name, thread in real.items()
    ]
    reading = read_source("eli5", write_records(tmp_path / "train.jsonl", threads), split="train")
    assert (reading.tally.records, reading.tally.examples) == (10, 10)
    assert [example.outputs[0].answer for example in reading.examples] == [
        thread["human_answer"] for thread in real.values()
    ]
