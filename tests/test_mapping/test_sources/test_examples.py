"""Answers of test records from files of their own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import RecordError, SetupError
from mapping.publish.subject import LICENCES
from mapping.records import Example
from mapping.sources import all_sources, source_of_file
from mapping.sources.examples import Labels
from mapping.sources.raw_records import RawRecord, text_at
from mapping.sources.source import SPLITS, LabelForm, Tally
from pipelines.options.map_dataset import MapOptions
from tests.support.alignments import write_records
from tests.support.dataset_sources import read_source

LABELS = [
    {"id": 1, "label": "SUPPORTS", "evidence": [[[1, 2, "Lake", 0]]]},
    {"id": 2, "label": "NOT ENOUGH INFO", "evidence": [[[1, None, None, None]]]},
    {"id": 9, "label": "REFUTES", "evidence": []},
]
CLAIMS = [{"id": 1, "claim": "a"}, {"id": 2, "claim": "b"}, {"id": 3, "claim": "c"}]
PAGE = {"id": "Lake", "text": "", "lines": "0\tA lake ."}


def _read(tmp_path: Path, labels: list[Any], *, form: str = "lines") -> tuple[list[Example], Tally, list[Any]]:
    claims = write_records(tmp_path / "test.jsonl", CLAIMS)
    (tmp_path / "wiki").mkdir(exist_ok=True)
    write_records(tmp_path / "wiki" / "wiki-001.jsonl", [PAGE])
    if form == "lines":
        path = write_records(tmp_path / "labels.jsonl", labels)
    else:
        path = tmp_path / "labels.json"
        path.write_text(json.dumps(labels, indent=1), "utf-8")
    reading = read_source("fever", claims, tmp_path / "wiki", split="test", labels=[path])
    return reading.examples, reading.tally, reading.rejected


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_labelled_test_record_is_read_as_one_of_dev(tmp_path: Path, form: str) -> None:
    examples, tally, bad = _read(tmp_path, LABELS, form=form)
    (example,) = examples
    assert (example.example_id, example.outputs[0].answer) == ("1", "SUPPORTS")
    assert example.outputs[0].evidence[0].text == "A lake ."
    assert tally.excluded == Counter(not_enough_info=1)
    assert [(bad_record.stage, bad_record.key, bad_record.reason) for bad_record in bad] == [
        ("source", "3", "missing_label")
    ]
    assert tally.references == len(LABELS) + 1


def test_labels_that_cannot_be_used_are_references_that_are_rejected(tmp_path: Path) -> None:
    labels = [*LABELS, LABELS[0], {"id": 3}, {"label": "SUPPORTS"}, "{"]
    _, tally, bad = _read(tmp_path, labels)
    assert tally.rejected_references == Counter(duplicate_id=1, missing_field=2, malformed_json=1)
    assert [bad_record.stage for bad_record in bad].count("reference") == 4


def test_a_file_without_label_fields_is_refused_at_once(tmp_path: Path) -> None:
    path = write_records(tmp_path / "labels.jsonl", CLAIMS)
    with pytest.raises(SetupError, match=r"labels of FEVER's test claims.*id, label, evidence"):
        read_source("fever", path, split="test", labels=[path])


def test_labels_are_for_the_test_split() -> None:
    with pytest.raises(SetupError, match=r"--labels is for the test split"):
        MapOptions("kb", dataset="fever", inputs=("a",), output="out", split="dev", labels=("b",))


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(), max_size=8), st.text())
def test_every_record_gets_its_own_label_or_a_reason(labels: dict[str, int], other: str) -> None:
    with Labels(None, LabelForm("", "key", ("answer",)), lambda record: text_at(record, "key")) as kept:
        for key, answer in labels.items():
            label = json.dumps({"key": key, "answer": answer, "noise": 1})
            kept._keep(0, RawRecord("f", 1, 0, label.encode()))
        for key, answer in labels.items():
            assert kept.join({"key": key, "input": "?"}) == {"key": key, "input": "?", "answer": answer}
        if other not in labels:
            with pytest.raises(RecordError, match="no label"):
                kept.join({"key": other})


@pytest.mark.parametrize("name", all_sources())
def test_every_dataset_has_its_rules_its_rights_and_the_figures_of_its_published_splits(name: str) -> None:
    source = all_sources()[name]
    is_of_kilt = source.metric is not None
    assert source.name == name
    assert set(source.policies) == set(SPLITS)
    assert (source.published.averages is not None) == is_of_kilt
    assert set(source.published.records) == (set(source.splits) if is_of_kilt else set())
    assert set(source.published.dropped) <= {"dev", "test"} & set(source.published.records)
    assert (source.ownership is None) == (name == "jsonl")
    assert source.ownership is None or source.ownership.licence in {None, *LICENCES}


@pytest.mark.parametrize(
    ("dataset", "total"), [("fever", 125_510), ("nq", 91_653), ("hotpotqa", 100_038), ("triviaqa", 73_789)]
)
def test_published_sizes_are_those_of_all_three_files(dataset: str, total: int) -> None:
    assert sum(all_sources()[dataset].published.records.values()) == total


@pytest.mark.parametrize(
    ("file", "dataset"),
    [
        ("fever-dev-kilt.jsonl", "fever"),
        ("triviaqa-test_id_without_answers-kilt.jsonl", "triviaqa"),
        ("structured_zeroshot-train-kilt.jsonl", "structured_zeroshot"),
        ("mine.jsonl", "kilt"),
    ],
)
def test_the_name_of_a_kilt_file_names_its_dataset(file: str, dataset: str) -> None:
    assert source_of_file(file).name == dataset
