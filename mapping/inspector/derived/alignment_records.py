"""Records of an alignment, or of all alignments of a folder: which of them are asked for, and in what order."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any

import numpy as np

from kbsource.files import join
from kbsource.release.manifest import ListingManifest
from mapping.decide.policy import REASONS
from mapping.inspector.derived.kilt_lines import KiltLines, records_file
from mapping.inspector.derived.row_index import Mask, Numbers, RowIndex, TableRows
from mapping.inspector.opened import Opened
from mapping.sources.reading.reasons import EXCLUDED, REJECTED

MEANINGS: Mapping[str, Mapping[str, str]] = {"dropped": REASONS, "excluded": EXCLUDED, "rejected": REJECTED}
"""What the reasons of each outcome of a record mean."""
WRITTEN = "written"
SORTS = {"": "order of the files", "worst": "lowest BLEU first", "best": "highest BLEU first"}
_HELD = 4
"""Choices whose rows are held, four bytes each, so that to turn a page does not sort a million again."""
_LISTED = ("example_id", "file", "line", "outcome", "reason", "score", "n_evidences", "n_evidences_written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which records, and in what order; empty texts and None are all of them.

    Attributes:
        dataset, split: of a folder of alignments.
        outcome, reason: what became of them.
        id: theirs, exactly.
        least, most: bounds of the score, both included.
        sort: a key of ``SORTS``.
    """

    dataset: str = ""
    split: str = ""
    outcome: str = ""
    reason: str = ""
    id: str = ""
    least: float | None = None
    most: float | None = None
    sort: str = ""

    def query(self) -> dict[str, Any]:
        """Gives what stands for it in an address."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None)}


class PartRecords:
    """Records of one alignment.

    Attributes:
        opened: the alignment.
        dataset, split: what it is of.
        first: number of its first record among those of all alignments.
        first_file: likewise of the first file of its records.
    """

    def __init__(self, opened: Opened, name: str, first: int, first_file: int) -> None:
        assert isinstance(opened.manifest, ListingManifest)
        self.manifest = opened.manifest
        self.opened, self.first, self.first_file = opened, first, first_file
        split = str(self.manifest.facts.get("split", ""))
        self.dataset = name.removesuffix(f"/{split}") or str(self.manifest.facts.get("dataset", ""))
        self.split = split
        self.n_records = self.manifest.n_rows("records")

    @cached_property
    def lines(self) -> KiltLines | None:
        """The file of its records."""
        file = records_file(self.manifest)
        return None if file is None else KiltLines(join(self.opened.path, file), self.opened.storage)


class AlignedRecords:
    """Records of one or several alignments by number, in the order of the tables.

    Memory: 12 bytes a record, 4 for each choice that is held, and 8 for each line of files that were looked
    into.

    Attributes:
        parts: the alignments.
    """

    def __init__(self, opened: Opened) -> None:
        parts = opened.parts or (opened,)
        names = [part.folder for part in opened.manifest.parts] or [""]
        self.parts: list[PartRecords] = []
        files: list[tuple[str, int]] = []
        n_records = 0
        for part, name in zip(parts, names, strict=True):
            self.parts.append(PartRecords(part, name, n_records, len(files)))
            files += [(join(part.path, entry.file), entry.rows or 0) for entry in part.manifest.tables["records"]]
            n_records += self.parts[-1].n_records
        self._rows = TableRows(files, opened.storage)
        self._held: OrderedDict[Choice, Numbers] = OrderedDict()
        self._turn = Lock()

    def __len__(self) -> int:
        return len(self._rows)

    @cached_property
    def index(self) -> RowIndex:
        """Outcome, reason and score of every record; the tables are read for it once."""
        return RowIndex(self._rows, texts=("outcome", "reason"), numbers=("score",))

    def part_of(self, number: int) -> PartRecords:
        """Gives the alignment that a record is of."""
        return next(part for part in reversed(self.parts) if part.first <= number)

    def chosen(self, choice: Choice) -> Numbers:
        """Gives the numbers of the records that are asked for, in their order."""
        with self._turn:
            if choice in self._held:
                self._held.move_to_end(choice)
                return self._held[choice]
            found = self.index.ordered(
                self._mask(choice), by="score" if choice.sort else None, is_falling=choice.sort == "best"
            )
            self._held[choice] = found
            if len(self._held) > _HELD:
                self._held.popitem(last=False)
            return found

    def _mask(self, choice: Choice) -> Mask:
        mask = np.ones(len(self), dtype=np.bool_)
        for part in self.parts:
            if choice.dataset not in ("", part.dataset) or choice.split not in ("", part.split):
                mask[part.first : part.first + part.n_records] = False
        for column, value in (("outcome", choice.outcome), ("reason", choice.reason)):
            if value:
                mask &= self.index.is_value(column, value)
        if choice.least is not None or choice.most is not None:
            mask &= self.index.is_between("score", choice.least, choice.most)
        if choice.id:
            mask &= self._rows.equal_to("example_id", choice.id)
        return mask

    def listed(self, numbers: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Gives rows of records for a list, each with ``number``, ``part``, ``meaning`` and ``input``."""
        rows = self._rows.rows(numbers, _LISTED)
        for number, row in zip(numbers, rows, strict=True):
            kilt = self.kilt_record(number, row)
            yield {
                **row,
                "number": number,
                "part": self.part_of(number),
                "meaning": MEANINGS.get(row["outcome"], {}).get(row["reason"] or ""),
                "input": (kilt or {}).get("input"),
            }

    def row(self, number: int) -> dict[str, Any]:
        """Gives the row of a record."""
        return self._rows.rows([number])[0]

    def file_of(self, number: int) -> int:
        """Gives the number of the file of its alignment that a record is in."""
        return self._rows.file_of(number) - self.part_of(number).first_file

    def kilt_record(self, number: int, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Gives a record as the KILT file has it; None for one that it does not have."""
        part = self.part_of(number)
        if row["outcome"] != WRITTEN or part.lines is None:
            return None
        line = int(self._n_written[number] - self._n_written[part.first])
        found = part.lines.record(line)
        return found if found is not None and found.get("id") == row["example_id"] else None

    @cached_property
    def _n_written(self) -> Numbers:
        """How many records before each one are written."""
        is_written = self.index.is_value("outcome", WRITTEN)
        return np.cumsum(is_written, dtype=np.int32) - is_written


@lru_cache(maxsize=8)
def records_of(opened: Opened) -> AlignedRecords:
    """Gives the records of an open alignment, or folder of alignments."""
    return AlignedRecords(opened)
