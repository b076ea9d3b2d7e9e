"""Ways to tamper with alignments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mapping.write.kind import ALIGNMENT
from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.tampered.edits import (
    MANIFEST,
    Group,
    Place,
    Released,
    Tampered,
    again,
    at,
    drop,
    lines,
    reverse,
    rows,
)

RECORDS = "records/records-00000-of-00001.parquet"


def _alignment(folder: Path, release: Path) -> Released:
    given = [
        record("1", [evidence("a lake", title="Lake Miravel")]),
        record("2", [evidence("no such text", title="No page")]),
    ]
    map_mini(folder / "dev", release, "jsonl", write_records(folder / "own.jsonl", given))
    return Released(folder / "dev", {})


def _record(
    what: str, text: str, *edits: Callable[[list[Any]], object], invariant: str = "counts", also: tuple[Place, ...] = ()
) -> Tampered:
    """Returns a table of records that does not agree with the others, or with the manifest."""
    return Tampered(what, rows(RECORDS, *edits), invariant, text, MANIFEST, also)


_ALIGNMENT = (
    _record(
        "a record is missing",
        "records.examples: 1 counted, 2 written",
        drop(1),
        also=((MANIFEST, "record_differs"),),
    ),
    Tampered("the records are in another order", rows(RECORDS, reverse), "records_out_of_order", "from number 0"),
    _record(
        "a written record is excluded",
        "records.excluded.negative: 1 counted, 0 written",
        at(0, outcome="excluded", reason="negative"),
    ),
    _record(
        "a dropped record has another reason",
        "counts.dropped.no_match: 1 counted, 0 written",
        at(1, reason="no_match"),
    ),
    _record(
        "a record has more evidence than the tables",
        "records counts 3 pieces of evidence, but alignments and misses have 2",
        at(0, n_evidences=2),
        invariant="record_differs",
    ),
    _record(
        "a record has more written evidence than the tables",
        "alignments has 1 written pieces of evidence, but records counts 2",
        at(1, n_evidences_written=1),
        invariant="record_differs 2",
    ),
    Tampered(
        "the KILT file has a line twice",
        lines("jsonl-dev-kilt.jsonl", again(0)),
        "record_differs 3",
        "jsonl-dev-kilt.jsonl has 2 records, not 1",
        MANIFEST,
    ),
)

GROUPS = {
    "alignment": Group(ALIGNMENT, _alignment, _ALIGNMENT),
}
