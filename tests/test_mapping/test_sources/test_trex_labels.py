"""T-REx: labels and aliases out of Wikidata."""

from __future__ import annotations

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mapping.sources.forms.trex_labels import english
from mapping.sources.trex import TrexOptions
from tests.support.dataset_sources import read_source
from tests.support.real_data import real_path
from tests.support.trex_records import (
    ALL,
    NAMED,
    answers_with_sentences,
    labelled_entity,
    read_trex,
    trex_document,
    trex_triple,
)

# Labels and answers


def test_input_and_answers_are_english_labels_and_aliases_follow_once_each(tmp_path: Path) -> None:
    entities = [
        labelled_entity("Q1", "River Ullane", "Ullane"),
        labelled_entity("P1", "rises in", "source"),
        labelled_entity("Q2", "Lake Miravel", "Miravel", "miravel", "Lake Miravel", "The Lake"),
        labelled_entity("Q3", "Mount Kestrane", "Miravel", "The Lake", "Kestrane"),
    ]
    triples = [
        trex_triple("Q1", "P1", "Q2", subject="It", object="Lake Miravel", relation="comes from"),
        trex_triple("Q1", "P1", "Q3", 1, subject="The river", object="the mountain"),
        trex_triple("Q1", "P1", "Q3", 2, subject="It"),
    ]
    (example,) = read_trex(tmp_path, [trex_document("Q10", *triples)], entities).examples
    assert example.input == "River Ullane [SEP] rises in"
    assert answers_with_sentences(example) == [
        ("Lake Miravel", ["One."]),
        ("Mount Kestrane", ["Two."]),
        ("Mount Kestrane", ["Three."]),
        ("Miravel", []),
        ("miravel", []),
        ("The Lake", []),
        ("Kestrane", []),
    ]
    assert example.meta == {
        "subj_aliases": ["Ullane"],
        "sub_surface": ["It", "The river"],
        "obj_surface": ["Lake Miravel", "the mountain"],
    }
    assert list(example.meta) == ["subj_aliases", "sub_surface", "obj_surface"]


def test_surface_forms_of_the_relation_stand_in_meta_only_where_asked_for(tmp_path: Path) -> None:
    document = trex_document("Q10", trex_triple("Q1", "P1", "Q2", relation="comes from"))
    (example,) = read_trex(tmp_path, [document], NAMED, options=TrexOptions(min_facts=1, rel_surface=True)).examples
    assert example.meta is not None
    assert example.meta["rel_surface"] == ["comes from"]


@pytest.mark.parametrize(
    ("missing", "reason", "n_left"),
    [("Q1", "no_subject_label", 1), ("P1", "no_relation_label", 1), ("Q3", "no_object_label", 2)],
)
def test_facts_without_an_english_label_are_left_out_and_counted(
    tmp_path: Path, missing: str, reason: str, n_left: int
) -> None:
    entities = [one for one in NAMED if one["id"] != missing]
    german = {"type": "item", "id": missing, "labels": {"de": {"language": "de", "value": "x"}}, "aliases": []}
    document = trex_document(
        "Q10", trex_triple("Q1", "P1", "Q2"), trex_triple("Q1", "P1", "Q3"), trex_triple("Q2", "P2", "Q2")
    )
    reading = read_trex(tmp_path, [document], [*entities, german])
    assert len(reading.examples) == n_left
    assert reading.tally.excluded[reason] == (1 if missing == "Q3" else 2)


@pytest.mark.parametrize(
    ("entity", "expected"),
    [
        pytest.param({"labels": [], "aliases": []}, (None, []), id="lists for empty objects"),
        pytest.param({}, (None, []), id="nothing"),
        pytest.param({"labels": {"mul": {"value": "M"}}}, ("M", []), id="for all languages"),
        pytest.param({"labels": {"mul": {"value": "M"}, "en": {"value": "E"}}}, ("E", []), id="English comes first"),
        pytest.param(
            {"aliases": {"mul": [{"value": "b"}, {"value": "a"}], "en": [{"value": "a"}, {"value": "A"}]}},
            (None, ["a", "A", "b"]),
            id="aliases of both, each once",
        ),
    ],
)
def test_labels_are_english_else_those_for_all_languages(
    entity: dict[str, Any], expected: tuple[str | None, list[str]]
) -> None:
    assert english(entity) == expected


def test_wikidata_may_be_an_array_or_lines_compressed_or_not(tmp_path: Path) -> None:
    document = trex_document("Q10", trex_triple("Q1", "P1", "Q2"))
    (expected,) = read_trex(tmp_path, [document], NAMED).examples
    lines = "\n".join(json.dumps(one) for one in NAMED).encode()
    reordered = "\n".join(json.dumps({"labels": one["labels"], "id": one["id"]}) for one in NAMED).encode()
    for name, data in {
        "a.ndjson": lines,
        "b.json.bz2": bz2.compress((tmp_path / "wikidata.json").read_bytes()),
        "c.json.gz": gzip.compress(b"[" + lines.replace(b"\n", b",\n") + b"]"),
        "d.json": reordered,
    }.items():
        (tmp_path / name).write_bytes(data)
        reading = read_source("trex", tmp_path, tmp_path / name, split="train", options=ALL)
        assert [one.input for one in reading.examples] == [expected.input], name
        assert reading.tally.references == len(NAMED)


def test_an_entity_that_cannot_be_used_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    broken = ['{"type":"item","id":"Q2","labels":{"en":{"val', '{"labels":{}}', '{"id":"Q3","labels":{"en":"x"}}']
    document = trex_document(
        "Q10", trex_triple("Q1", "P1", "Q2"), trex_triple("Q1", "P1", "Q3"), trex_triple("Q1", "P1", "Q4")
    )
    named = [one for one in NAMED if one["id"] not in ("Q2", "Q3")]
    reading = read_trex(tmp_path, [document], [*named, *broken])
    assert [reason for _, _, reason in reading.reasons] == ["malformed_json", "missing_field", "wrong_type"]
    assert [output.answer for output in reading.examples[0].outputs] == ["label Q4"]


@pytest.mark.parametrize(
    ("file", "n_entities", "item", "answers"),
    [
        ("wikibase-dump-filter_entities.ndjson.gz", 49, "Q31", ["Belgium", "Kingdom of Belgium", "be", "🇧🇪"]),
        ("qrank_twenty_entities.json.bz2", 20, "Q58921", ["Temminck's Stint", "Calidris temminckii"]),
    ],
)
def test_real_labels_and_aliases(tmp_path: Path, file: str, n_entities: int, item: str, answers: list[str]) -> None:
    wikidata = real_path(f"wikidata/{file}")
    (tmp_path / "re-nlg_0.json").write_text(json.dumps([trex_document("Q10", trex_triple("Q1", "P1", item))]))
    (tmp_path / "few.json").write_text("\n".join(map(json.dumps, NAMED)))
    reading = read_source("trex", tmp_path, wikidata, tmp_path / "few.json", split="train", options=ALL)
    assert reading.tally.references == n_entities + len(NAMED)
    assert not reading.tally.rejected_references
    assert [output.answer for output in reading.examples[0].outputs] == answers
