"""Examples as JSON between the steps of a job: nothing is lost, the order of keys and all digits included."""

from __future__ import annotations

import json
from typing import Any

from mapping.records import Evidence, Example, Output, PageKey, ReleasedExample


def example_to_json(example: Example) -> str:
    """Gives an example as JSON text."""
    value: dict[str, Any] = {
        "id": example.example_id,
        "input": example.input,
        "outputs": [[output.answer, _evidence(output.evidence), output.meta] for output in example.outputs],
        "meta": example.meta,
        "file": example.file,
        "line": example.line,
        "partial": _evidence(example.partial),
    }
    if isinstance(example, ReleasedExample):
        value["released"] = example.released
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def example_from_json(text: str) -> Example:
    """Gives back what ``example_to_json`` took."""
    value = json.loads(text)
    outputs = tuple(Output(answer, _read_evidence(rows), meta) for answer, rows, meta in value["outputs"])
    place = {"file": value["file"], "line": value["line"], "partial": _read_evidence(value["partial"])}
    if "released" in value:
        released = value["released"]
        return ReleasedExample(value["id"], value["input"], outputs, value["meta"], **place, released=released)
    return Example(value["id"], value["input"], outputs, value["meta"], **place)


def _evidence(evidences: tuple[Evidence, ...]) -> list[list[Any]]:
    return [
        [evidence.page.kind, evidence.page.value, evidence.text, evidence.meta, *_name(evidence.fallback)]
        for evidence in evidences
    ]


def _name(page: PageKey | None) -> tuple[str, ...]:
    return () if page is None else (page.kind, page.value)


def _read_evidence(rows: list[list[Any]]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(PageKey(kind, value), text, meta, PageKey(*name) if name else None)
        for kind, value, text, meta, *name in rows
    )
