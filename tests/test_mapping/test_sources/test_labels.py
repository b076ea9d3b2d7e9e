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
from kbsource.files import LocalStorage
from mapping.records import Example
from mapping.sources import SOURCES
from mapping.sources.fever import FeverOptions
from mapping.sources.reading.base import Inputs, Tally
from mapping.sources.reading.fields import text_at
from mapping.sources.reading.labels import Labels, check_labels, iter_labels
from pipelines.options.map import MapOptions
from tests.support.dataset_sources import is_balanced, write_lines

LABELS = [
    {"id": 1, "label": "SUPPORTS", "evidence": [[[1, 2, "Lake", 0]]]},
    {"id": 2, "label": "NOT ENOUGH INFO", "evidence": [[[1, None, None, None]]]},
    {"id": 9, "label": "REFUTES", "evidence": []},
]
CLAIMS = [{"id": 1, "claim": "a"}, {"id": 2, "claim": "b"}, {"id": 3, "claim": "c"}]
PAGE = {"id": "Lake", "text": "", "lines": "0\tA lake ."}


def _read(tmp_path: Path, labels: list[Any], *, form: str = "lines") -> tuple[list[Example], Tally, list[Any]]:
    claims = write_lines(tmp_path / "test.jsonl", CLAIMS)
    (tmp_path / "wiki").mkdir(exist_ok=True)
    write_lines(tmp_path / "wiki" / "wiki-001.jsonl", [PAGE])
    if form == "lines":
        path = write_lines(tmp_path / "labels.jsonl", labels)
    else:
        path = tmp_path / "labels.json"
        path.write_text(json.dumps(labels, indent=1), "utf-8")
    inputs = Inputs((str(claims),), (str(tmp_path / "wiki"),), (str(path),))
    source, tally, storage, options = SOURCES["fever"], Tally(), LocalStorage(), FeverOptions()
    source.check(inputs, "test", storage=storage, options=options)
    found = list(source.read(inputs, "test", storage=storage, options=options, tally=tally))
    assert is_balanced(tally)
    examples = [one for one in found if isinstance(one, Example)]
    return examples, tally, [one for one in found if not isinstance(one, Example)]


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_labelled_test_record_is_read_as_one_of_dev(tmp_path: Path, form: str) -> None:
    examples, tally, bad = _read(tmp_path, LABELS, form=form)

    (example,) = examples
    assert (example.example_id, example.outputs[0].answer) == ("1", "SUPPORTS")
    assert example.outputs[0].evidence[0].text == "A lake ."
    assert tally.excluded == Counter(not_enough_info=1)
    assert [(one.stage, one.key, one.reason) for one in bad] == [("source", "3", "missing_label")]
    assert tally.references == len(LABELS) + 1


def test_labels_that_cannot_be_used_are_references_that_are_rejected(tmp_path: Path) -> None:
    labels = [*LABELS, LABELS[0], {"id": 3}, {"label": "SUPPORTS"}, "{"]

    _, tally, bad = _read(tmp_path, labels)

    assert tally.rejected_references == Counter(duplicate_id=1, missing_field=2, malformed_json=1)
    assert [one.stage for one in bad].count("reference") == 4


def test_a_file_without_label_fields_is_refused_at_once(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "labels.jsonl", CLAIMS)

    with pytest.raises(SetupError, match=r"labels of FEVER's test claims.*id, label, evidence"):
        check_labels([str(path)], LocalStorage(), of="FEVER's test claims", fields=("id", "label", "evidence"))


def test_labels_are_for_the_test_split() -> None:
    with pytest.raises(SetupError, match=r"--labels is for the test split"):
        MapOptions("fever", "kb", ("a",), "out", "dev", labels=("b",))


def test_without_labels_test_records_have_inputs_alone(tmp_path: Path) -> None:
    claims = write_lines(tmp_path / "test.jsonl", CLAIMS)
    inputs = Inputs((str(claims),))
    source, tally, options = SOURCES["fever"], Tally(), FeverOptions()
    source.check(inputs, "test", storage=LocalStorage(), options=options)

    found = list(source.read(inputs, "test", storage=LocalStorage(), options=options, tally=tally))

    assert [one.outputs for one in found if isinstance(one, Example)] == [(), (), ()]


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.integers(), max_size=8), st.text())
def test_every_record_gets_its_own_label_or_a_reason(labels: dict[str, int], other: str) -> None:
    with Labels(None, id_of=lambda record: text_at(record, "key"), fields=("answer",)) as kept:
        for key, answer in labels.items():
            kept._keep({"key": key, "answer": answer, "noise": 1}, 0)
        for key, answer in labels.items():
            assert kept.join({"key": key, "input": "?"}) == {"key": key, "input": "?", "answer": answer}
        if other not in labels:
            with pytest.raises(RecordError, match="no label"):
                kept.join({"key": other})


def test_labels_under_a_key_of_an_object_are_found(tmp_path: Path) -> None:
    path = tmp_path / "labels.json"
    path.write_text('{"Data": [{"QuestionId": "a"}, {"QuestionId": "b"}], "Version": 1}', "utf-8")

    found = [raw.parse()["QuestionId"] for raw in iter_labels(LocalStorage(), str(path), key="Data")]

    assert found == ["a", "b"]
