"""Evaluations that cannot be are refused, not given as tables of zeros."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main

_PLACE = {"wikipedia_id": "1", "title": "A"}
_SPAN = {**_PLACE, "start_paragraph_id": 1, "start_character": 0, "bleu_score": 1.0, "meta": {}}
_GOLD = {"id": "a", "input": "Q?", "output": [{"answer": "x", "provenance": [_SPAN]}]}
_LINKED = {"id": "a", "input": "Q?", "output": [{"answer": "A", "provenance": [_PLACE]}]}
_FOUND = {"id": "a", "output": [{"answer": "x", "provenance": [{**_PLACE, "score": "1.0"}]}]}
_OWN = {"id": "a", "input": "Q?", "output": [{"answer": "x", "evidence": [{"title": "A"}]}]}
_QUERY = {"id": "a", "input": "Q?", "output": {"answer": ["x"], "provenance": [_PLACE]}}
_ENTITY = {"is_head": True, "popularity": 2.0, "wikipedia": [_PLACE], "queries": [_QUERY]}
_OTHER = {**_ENTITY, "is_head": False, "popularity": 1.0, "queries": [{**_QUERY, "id": "b"}]}
_SET = {"name": "A", "qids": {"Q1": _ENTITY, "Q2": _OTHER}}
_QUESTION = {"qid": "a", "question_text": "Q?", "answer_list": [{"answer_text": "x", "aliases": ["x"]}]}
_LISTED = {"qid": "a", "predictions": ["x"]}


def _write(path: Path, *records: Any) -> str:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return str(path)


@pytest.mark.parametrize(
    ("family", "gold", "given", "said"),
    [
        ("kilt", {**_GOLD, "output": [{"answer": "x"}]}, _FOUND, "has no record with provenance"),
        ("kilt", {**_GOLD, "output": []}, _FOUND, "has no record with provenance"),
        ("kilt", {**_GOLD, "output": [{"answer": "x", "provenance": [{"title": "A"}]}]}, _FOUND, "names a page"),
        ("kilt", _GOLD, {"id": "a", "output": [{"answer": "", "provenance": [{"title": "A"}]}]}, "names a page"),
        ("kilt", _GOLD, {"id": "a", "output": [{"provenance": [{"wikipedia_id": None}]}]}, "names a page"),
        ("kilt", _OWN, _FOUND, "has the format that kbsource map jsonl reads; name the …-kilt.jsonl"),
        ("kilt", _FOUND, _GOLD, "name the gold file first"),
        ("kilt", _FOUND, _LINKED, "name the gold file first"),
        ("kilt", {"id": "a", "output": [{"answer": "x"}]}, _GOLD, "name the gold file first"),
        ("kilt", _GOLD, {**_FOUND, "id": "z"}, "have no id in common: 'a' and 'z'"),
        ("kilt", _GOLD, {"id": "a", "output": [{}]}, "has no record with an answer or provenance"),
        ("kilt", _GOLD, {"id": "a", "output": []}, "has no record with an answer or provenance"),
        ("amber", _FOUND, _SET, "name the gold file first"),
        ("amber", _SET, {**_FOUND, "id": "z"}, "have no id in common: 'a' and 'z'"),
        ("amber", _SET, {"id": "a", "output": {}}, "has no record with an answer or provenance"),
        ("qampari", _LISTED, _QUESTION, "name the gold file first"),
        ("qampari", _QUESTION, {**_LISTED, "qid": "z"}, "have no id in common: 'a' and 'z'"),
        ("qampari", _QUESTION, {**_LISTED, "predictions": []}, "has no record with predictions or passages"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    family: str, gold: Any, given: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [_write(tmp_path / "gold.jsonl", gold), _write(tmp_path / "given.jsonl", given)]
    if family == "qampari":
        paths.insert(1, "--predictions")
    assert main(["evaluate", family, *paths]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("family", "gold", "given"),
    [
        ("kilt", _GOLD, _FOUND),
        ("kilt", _GOLD, _GOLD),
        ("kilt", _LINKED, _FOUND),
        ("kilt", _LINKED, _LINKED),
        ("kilt", _GOLD, {"id": "a", "output": [{"answer": "x"}]}),
        ("amber", _SET, _FOUND),
        ("qampari", _QUESTION, _LISTED),
    ],
)
def test_what_can_be_compared_is(family: str, gold: Any, given: Any, tmp_path: Path) -> None:
    paths = [_write(tmp_path / "gold.jsonl", gold), _write(tmp_path / "given.jsonl", given)]
    if family == "qampari":
        paths.insert(1, "--predictions")
    assert main(["evaluate", family, *paths]) == 0
