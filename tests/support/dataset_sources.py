"""Reading of the small datasets in tests/test_mapping/data, and of records written down in tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbsource.records import BadRecord
from mapping.records import Example, RecordFate
from mapping.sources import all_sources
from mapping.sources.raw_records import RawRecord
from mapping.sources.source import EXCLUDED, REJECTED, Inputs, Source, SourceOptions, Split, Tally

DATA = Path(__file__).resolve().parents[1] / "test_mapping" / "data"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a source gave."""

    examples: list[Example]
    rejected: list[BadRecord]
    tally: Tally
    left_out: list[RecordFate]

    @property
    def reasons(self) -> list[tuple[str, str, str]]:
        """Stage, key and reason of every rejection."""
        return [(bad.stage, bad.key, bad.reason) for bad in self.rejected]


class _NotingTally(Tally):
    """Counts, and keeps the records that are no examples."""

    def __init__(self) -> None:
        super().__init__()
        self.left_out: list[RecordFate] = []

    def count_skipped(self, left: RecordFate) -> None:
        super().count_skipped(left)
        self.left_out.append(left)


def is_balanced(tally: Tally) -> bool:
    """Whether records in = examples out + merged + excluded + rejected."""
    return tally.records == tally.examples + tally.merged + tally.excluded.total() + tally.rejected.total()


def read_source(
    name: str,
    records: Path | Iterable[Path],
    *references: Path,
    split: Split = "dev",
    labels: Iterable[Path] = (),
    options: SourceOptions | None = None,
    is_checked: bool = True,
) -> Reading:
    """Checks the inputs of a source and reads them."""
    paths = [records] if isinstance(records, Path) else records
    inputs = Inputs(tuple(map(str, paths)), tuple(map(str, references)), tuple(map(str, labels)))
    options = options or all_sources()[name].options_type()
    source = all_sources()[name](inputs, split, options, tally=_NotingTally())
    if is_checked:
        source.check()
    return _read(source)


def read_parsed(name: str, records: Iterable[Any], options: SourceOptions | None = None) -> Reading:
    """Reads records that are in no file, as those of dev."""
    raws = [RawRecord("f", line, 0, json.dumps(record).encode()) for line, record in enumerate(records, 1)]
    kind = all_sources()[name]
    source = kind(Inputs(("f",)), "dev", options or kind.options_type(), tally=_NotingTally())
    source.raws = lambda path: raws  # type: ignore[attr-defined]
    return _read(source)


def _read(source: Source[Any]) -> Reading:
    """Reads a source; asserts the invariant of its counts."""
    tally = source.tally
    assert isinstance(tally, _NotingTally)
    examples: list[Example] = []
    rejected: list[BadRecord] = []
    for row in source.read():
        if isinstance(row, Example):
            examples.append(row)
        else:
            rejected.append(row)
    assert is_balanced(tally), tally
    assert tally.examples == len(examples)
    assert tally.records == len(examples) + len(tally.left_out)
    assert all(left_out.line > 0 and left_out.file for left_out in tally.left_out)
    assert tally.rejected.total() == sum(bad.stage == "source" for bad in rejected)
    assert tally.lost_evidences.total() == sum(bad.stage == "evidence" for bad in rejected)
    assert tally.rejected_references.total() == sum(bad.stage == "reference" for bad in rejected)
    assert set(tally.excluded) <= EXCLUDED.keys()
    assert set(tally.rejected) <= REJECTED.keys()
    assert len({example.example_id for example in examples}) == len(examples)
    return Reading(examples, rejected, tally, tally.left_out)


def texts_of(example: Example) -> list[list[str | None]]:
    """The evidence texts of an example, by output."""
    return [[piece.text for piece in output.evidence] for output in example.outputs]
