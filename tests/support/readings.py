"""Datasets as they are read; ``python -m tests.support.readings`` renews the golden files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from mapping.records import Evidence, Example
from mapping.sources import all_sources
from tests.support.dataset_sources import Reading, read_source
from tests.support.real_data import ROOT

GOLDEN = ROOT / "tests" / "golden" / "readings"
CASES: dict[str, dict[str, Any]] = yaml.safe_load((GOLDEN / "cases.yaml").read_text("utf-8"))


def shown(case: str, stored: Callable[[Path], Path] = lambda path: path) -> str:
    """What is read in a case, of files that are ``stored`` elsewhere: a line an example, then one for each that is
    rejected, then the counts."""
    given = CASES[case]
    name = given["dataset"]
    records, references, labels = (
        [stored(ROOT / path) for path in given.get(field, ())] for field in ("records", "references", "labels")
    )
    options = all_sources()[name].options_type(**given.get("options", {}))
    reading = read_source(name, records, *references, split=given["split"], labels=labels, options=options)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _lines(reading))


def _lines(reading: Reading) -> Iterator[dict[str, Any]]:
    yield from map(_example, reading.examples)
    for bad in reading.rejected:
        yield {"rejected": bad.reason, "stage": bad.stage, "key": bad.key, "detail": bad.detail, "file": bad.file}
    tally = reading.tally
    excluded = dict(sorted(tally.excluded.items()))
    yield {"records": tally.records, "excluded": excluded, "merged": tally.merged, "references": tally.references}


def _example(example: Example) -> dict[str, Any]:
    outputs = [
        {"answer": output.answer, "evidence": _evidence(output.evidence), "meta": output.meta}
        for output in example.outputs
    ]
    line = {"id": example.example_id, "input": example.input, "output": outputs, "meta": example.meta}
    return {**line, "partial": _evidence(example.partial), "at": f"{example.file}:{example.line}"}


def _evidence(every: Iterable[Evidence]) -> list[dict[str, Any]]:
    return [
        {
            evidence.page.kind: evidence.page.value,
            **({} if evidence.fallback is None else {evidence.fallback.kind: evidence.fallback.value}),
            "text": evidence.text,
            "meta": evidence.meta,
        }
        for evidence in every
    ]


if __name__ == "__main__":
    for case in CASES:
        (GOLDEN / f"{case}.jsonl").write_text(shown(case), "utf-8")
