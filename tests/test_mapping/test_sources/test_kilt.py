"""KILT files read with the knowledge source they were made for, and written back."""

from __future__ import annotations

import bz2
import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.kilt import kilt_record
from mapping.decide import decide
from mapping.records import (
    PARTIAL,
    Alignment,
    EvidenceKey,
    PageKey,
    Place,
    ReleasedExample,
    iter_evidence,
    released_span,
)
from mapping.sources import all_sources, source_of_file
from mapping.sources.kilt import KiltOptions, without_marker
from mapping.write.kilt import kilt_example, kilt_line, without_answers
from tests.support.aligned import aligned
from tests.support.alignments import write_records
from tests.support.dataset_sources import DATA, Reading, read_source, texts_of
from tests.support.pages import synthetic_pages
from tests.support.real_data import real_path
from tests.support.releases import TitleRow, write_release

FILE = DATA / "kilt" / "nq-dev-kilt.jsonl"
OLD = DATA / "kilt" / "knowledgesource.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in FILE.open(encoding="utf-8")]


@pytest.fixture(scope="module")
def reading() -> Reading:
    return read_source("kilt", FILE, OLD)


def _unmoved(example: ReleasedExample) -> dict[EvidenceKey, Alignment]:
    """Every evidence the place it has in the record."""
    placed = {}
    for key, evidence in iter_evidence(example):
        span = released_span(example, key)
        place = None
        if evidence.text is not None:
            first, last = span["start_paragraph_id"], span["end_paragraph_id"]
            place = Place(first, span.get("start_character", 0), last, span.get("end_character", 0))
        section = span.get("section", "").removesuffix("\n") or None
        outcome = "page_only" if evidence.text is None else "near"
        score = span.get("bleu_score", 1.0)
        placed[key] = aligned(outcome, int(span["wikipedia_id"]), span["title"], section, place, score=score)
    return placed


def _written(example: ReleasedExample, placed: dict[EvidenceKey, Alignment], dataset: str) -> bytes:
    policy = all_sources()[dataset].policies["dev"]
    decision = decide(example, placed, policy)
    assert decision.reason is None
    return kilt_line(kilt_example(example, placed, decision, policy))


def _released(reading: Reading) -> list[ReleasedExample]:
    assert all(isinstance(example, ReleasedExample) for example in reading.examples)
    return [example for example in reading.examples if isinstance(example, ReleasedExample)]


def test_pages_are_named_by_id_and_fall_back_to_the_title(reading: Reading) -> None:
    example = _released(reading)[0]
    assert example.outputs[0].evidence[0].page == PageKey("page_id", "30")
    assert example.outputs[0].evidence[0].fallback == PageKey("title", "River Ullane")


def test_a_file_written_back_unmoved_has_the_same_bytes(reading: Reading) -> None:
    written = [_written(example, _unmoved(example), "nq") for example in _released(reading)[:2]]
    written.append(_written(_released(reading)[2], _unmoved(_released(reading)[2]), "aidayago2"))
    assert b"".join(written) == FILE.read_bytes()


def test_moved_spans_keep_their_keys_and_order_and_get_new_values(reading: Reading) -> None:
    example = _released(reading)[0]
    before = copy.deepcopy(example.released)
    placed = dict.fromkeys(_unmoved(example), aligned("near", 7, "New", "Section::::A.", Place(5, 1, 6, 2), score=0.75))
    record = json.loads(_written(example, placed, "nq"))
    (span,) = record["output"][2]["provenance"]
    assert list(span) == list(before["output"][2]["provenance"][0])
    assert span == {
        "wikipedia_id": "7",
        "title": "New",
        "start_paragraph_id": 5,
        "start_character": 1,
        "end_paragraph_id": 6,
        "end_character": 2,
        "bleu_score": 0.75,
        "meta": {"yes_no_answer": "NONE", "annotation_id": 13591449469826568799},
        "section": "Section::::A.\n",
    }
    assert "start_character" not in record["output"][3]["provenance"][0]
    assert record["meta"]["partial_evidence"][0]["title"] == "New"
    assert example.released == before


def test_partial_evidence_that_is_gone_is_not_written_and_does_not_save_a_record(reading: Reading) -> None:
    example = _released(reading)[0]
    gone = aligned("page_missing", None, None)
    placed = _unmoved(example) | {(PARTIAL, 0): gone}
    assert "meta" not in json.loads(_written(example, placed, "nq"))
    only_partial = dict.fromkeys(placed, gone) | {(PARTIAL, 0): placed[0, 0]}
    assert decide(example, only_partial, all_sources()["nq"].policies["dev"]).reason == "page_missing"


def test_what_is_not_known_is_carried_over(tmp_path: Path) -> None:
    row = {"extra": [1], **ROWS[1]}
    row["output"] = [{"weight": 2, **row["output"][0]}]
    row["output"][0]["provenance"] = [{"rank": 1, **row["output"][0]["provenance"][0]}]
    (example,) = _released(read_source("kilt", write_records(tmp_path / "x.jsonl", [row]), OLD))
    assert _written(example, _unmoved(example), "nq") == kilt_line(row)


def test_test_files_without_answers_stay_as_they_are(tmp_path: Path) -> None:
    row = {"id": "1", "input": "q", "meta": {"template_questions": ["x"]}}
    path = write_records(tmp_path / "x.jsonl", [row])
    (example,) = _released(read_source("kilt", path, split="test"))
    assert example.outputs == ()
    policy = all_sources()["nq"].policies["test"]
    record = kilt_example(example, {}, decide(example, {}, policy), policy)
    assert without_answers(record, policy) == row


ANY_FIT = KiltOptions(max_misfits=1.0)


def _span(**fields: object) -> dict[str, Any]:
    span = copy.deepcopy(ROWS[1]["output"][0]["provenance"][0]) | fields
    return {"id": "b", "input": "q", "output": [{"answer": "x", "provenance": [span]}]}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        pytest.param(_span(wikipedia_id="99"), "unknown_page", id="page is not there"),
        pytest.param(_span(end_paragraph_id=2), "offsets_out_of_range", id="paragraph is not there"),
        pytest.param(_span(start_paragraph_id=-1), "offsets_out_of_range", id="negative paragraph"),
        pytest.param(_span(end_character=10**6), "offsets_out_of_range", id="behind the end"),
        pytest.param(_span(start_character=5, end_character=4), "offsets_out_of_range", id="end before start"),
    ],
)
def test_evidence_that_does_not_exist_is_reported_and_stays_with_empty_text(
    tmp_path: Path, bad: dict[str, Any], reason: str
) -> None:
    reading = read_source("kilt", write_records(tmp_path / "x.jsonl", [bad]), OLD, options=ANY_FIT)
    assert reading.reasons == [("evidence", "b", reason)]
    assert texts_of(reading.examples[0]) == [[""]]


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (
            {"title": "Ister Sound"},
            "another_title.; the first is x.jsonl, line 20: title 'Ister Sound', where there is",
        ),
        ({"section": "Section::::Course.\n"}, "another_section.; .* where there is 'Section::::Abstract.'"),
        ({"end_paragraph_id": 2}, "offsets_out_of_range.; .* paragraphs 1-2 of 15, which has 2"),
    ],
)
def test_spans_that_do_not_fit_the_old_knowledge_source_are_borne_up_to_a_share(
    tmp_path: Path, bad: dict[str, Any], told: str
) -> None:
    rows = [_span() | {"id": str(number)} for number in range(19)]
    read_source("kilt", write_records(tmp_path / "x.jsonl", [*rows, _span(**bad)]), OLD)
    with pytest.raises(SetupError, match=rf"knowledgesource.jsonl: 2 of 21 spans do not fit it \(2 {told}"):
        read_source("kilt", write_records(tmp_path / "x.jsonl", [*rows, _span(**bad), _span(**bad) | {"id": "c"}]), OLD)


def test_spans_across_paragraphs_and_whole_paragraphs_are_read(tmp_path: Path) -> None:
    page = next(
        page_of_30 for page_of_30 in map(json.loads, OLD.open(encoding="utf-8")) if page_of_30["wikipedia_id"] == "30"
    )
    start = page["text"][1].index("sea.")
    river = {"wikipedia_id": "30", "title": "River Ullane"}
    across = _span(**river, start_paragraph_id=1, start_character=start, end_paragraph_id=2, end_character=9)
    whole = _span(**river, start_paragraph_id=4, end_paragraph_id=4, section="Section::::Course.\n") | {"id": "c"}
    for key in ("start_character", "end_character", "bleu_score"):
        del whole["output"][0]["provenance"][0][key]
    reading = read_source("kilt", write_records(tmp_path / "x.jsonl", [across, whole]), OLD)
    assert [texts_of(example) for example in reading.examples] == [
        [["sea. Its water"]],
        [["From the lake the river runs south."]],
    ]


def test_a_title_stands_in_for_a_missing_page_id(tmp_path: Path) -> None:
    row = _span(wikipedia_id=None)
    reading = read_source("kilt", write_records(tmp_path / "x.jsonl", [row]), OLD)
    assert reading.examples[0].outputs[0].evidence[0].page == PageKey("title", "Port Sellick")
    assert reading.reasons == [("evidence", "b", "unknown_page")]


@pytest.mark.parametrize("numbering", ["kilt", "elements"])
def test_a_release_gives_the_same_texts_as_its_export(tmp_path: Path, numbering: Any) -> None:
    pages = list(synthetic_pages(6))
    write_release(tmp_path, pages, titles=[TitleRow(wiki_page.page_id, wiki_page.title) for wiki_page in pages])
    export = write_records(tmp_path / "old.jsonl", map(kilt_record, pages))
    rows, expected = [], []
    for page in pages:
        texts = kilt_record(page)["text"] if numbering == "kilt" else [element.text for element in page.elements]
        last = len(texts) - 1
        span = {"wikipedia_id": str(page.page_id), "title": page.title, "start_paragraph_id": last}
        span |= {"start_character": 3, "end_paragraph_id": last, "end_character": 20}
        rows.append({"id": page.title, "input": "q", "output": [{"answer": "x", "provenance": [span]}]})
        expected.append([[texts[last][3:20].strip()]])
    path = write_records(tmp_path / "x.jsonl", rows)
    options = KiltOptions(numbering=numbering)
    moved = read_source("kilt", path, tmp_path / "release", options=options)
    assert [texts_of(example) for example in moved.examples] == expected
    if numbering == "kilt":
        (tmp_path / "old.jsonl.bz2").write_bytes(bz2.compress(export.read_bytes()))
        packed = read_source("kilt", path, tmp_path / "old.jsonl.bz2")
        assert [texts_of(example) for example in packed.examples] == expected


def test_entity_linking_needs_no_old_knowledge_source(tmp_path: Path) -> None:
    assert not read_source("kilt", write_records(tmp_path / "x.jsonl", [ROWS[2]])).rejected


@pytest.mark.parametrize("stem", ["fever", "nq", "hotpotqa", "aidayago2"])
def test_real_files_written_back_unmoved_have_the_same_bytes(tmp_path: Path, stem: str) -> None:
    path = real_path(f"kilt/{stem}-dev-kilt.jsonl")
    rows = [json.loads(line) for line in path.open(encoding="utf-8")]
    ids = {span["wikipedia_id"] for row in rows for output in row["output"] for span in output.get("provenance", [])}
    ids |= {span["wikipedia_id"] for row in rows for span in row.get("meta", {}).get("partial_evidence", [])}
    old = [{"_id": page_id, "wikipedia_id": page_id, "text": ["text " * 2000] * 200} for page_id in sorted(ids)]
    reading = read_source("kilt", path, write_records(tmp_path / "old.jsonl", old), options=ANY_FIT)
    assert not reading.rejected
    dataset = source_of_file(path.name).name
    assert dataset == stem
    written = b"".join(_written(example, _unmoved(example), dataset) for example in _released(reading))
    # The excerpts lack the last newline.
    assert written.rstrip(b"\n") == path.read_bytes().rstrip(b"\n")


def test_real_knowledge_source_is_read(tmp_path: Path) -> None:
    old = real_path("kilt/knowledgesource_A.jsonl")
    row = _span(wikipedia_id="290", title="A", start_paragraph_id=1, start_character=66, end_paragraph_id=1)
    row["output"][0]["provenance"][0]["end_character"] = 72
    reading = read_source("kilt", write_records(tmp_path / "x.jsonl", [row]), old)
    assert texts_of(reading.examples[0]) == [["letter"]]


@pytest.mark.parametrize(
    ("paragraph", "text"),
    [
        ("BULLET::::- An item.\n", "An item."),
        ("BULLET::::12. The twelfth\n", "The twelfth"),
        ("No item - BULLET::::- here\n", "No item - BULLET::::- here"),
        ("BULLET::::- \n", ""),
    ],
)
def test_the_marker_of_an_item_is_no_evidence(paragraph: str, text: str) -> None:
    assert without_marker(paragraph) == text
