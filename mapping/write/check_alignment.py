"""The laws of alignments, checked in their files: every record that was read has its row, and tables, counts and the
file of records say the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kbsource.errors import SetupError
from kbsource.files import join
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import ListingManifest
from kbsource.release.verify import Checking

RULES = {
    "record_order": "the examples among the records are not numbered in order",
    "record_differs": "what became of the records is not what counts and tables say",
}
"""Every law and what it means that it is broken."""
_FATE = ("outcome", "reason", "count_all")
_NEEDED = ("records", "alignments", "misses", "rejected")


def check_alignment(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks an alignment and gives the number of records; None where its files do not allow it."""
    return _check(checking, checking.manifest, "")


def check_alignments(checking: Checking[ListingManifest]) -> Mapping[str, int] | None:
    """Checks every alignment of a folder and gives the number of records."""
    counted: Counter[str] = Counter()
    for part in checking.manifest.parts:
        try:
            assert checking.kind.parts is not None
            manifest = checking.kind.parts.read(join(checking.path, part.folder), checking.storage)
        except SetupError:  # found before
            continue
        counted.update(_check(checking, manifest, part.folder) or {})
    return counted


def _check(checking: Checking[ListingManifest], manifest: ListingManifest, folder: str) -> Mapping[str, int] | None:
    where, found = join(folder, MANIFEST), checking.found
    try:
        said, n_examples = _said(manifest.facts)
    except (KeyError, TypeError, ValueError, AttributeError):
        found.add(where, "manifest", "records and counts are not those of an alignment")
        return None
    files = [join(folder, one.file) for table in _NEEDED for one in manifest.tables.get(table, ())]
    if not checking.has_files(files):
        return None

    def batches(table: str) -> Iterator[tuple[str, pa.RecordBatch]]:
        for one in manifest.tables.get(table, ()):
            entry = checking.entries[join(folder, one.file)]
            yield from ((entry.file, batch) for batch in checking.file_batches(entry))

    counted: Counter[str] = Counter()
    n_numbered = 0
    for file, batch in batches("records"):
        numbers = batch["ordinal"].drop_null()
        if not numbers.equals(pa.array(range(n_numbered, n_numbered + len(numbers)), pa.int64())):
            found.add(file, "record_order", f"from number {n_numbered}")
        n_numbered += len(numbers)
        fates = pa.table(batch).group_by(["outcome", "reason"]).aggregate([([], "count_all")])
        for outcome, reason, n_rows in zip(*(fates[name].to_pylist() for name in _FATE), strict=True):
            counted[outcome if reason is None else f"{outcome}: {reason}"] += n_rows
        for name in ("n_evidences", "n_evidences_written"):
            counted[name] += pc.sum(batch[name]).as_py() or 0
    for _, batch in batches("alignments"):
        said["n_evidences_written"] += batch["is_written"].true_count
    said["n_evidences"] = manifest.n_rows("alignments") + manifest.n_rows("misses")
    said["example"], counted["example"] = n_examples, n_numbered
    for name in sorted(said.keys() | counted.keys()):
        if said[name] != counted[name]:
            found.add(where, "record_differs", f"{name}: {counted[name]} rows, not {said[name]}")
    for one in manifest.files:
        if one.file.endswith("-kilt.jsonl") and one.rows != said["written"]:
            found.add(where, "record_differs", f"{one.file} has {one.rows} records, not {said['written']}")
    return {"records": manifest.n_rows("records")}


def _said(facts: Mapping[str, Any]) -> tuple[Counter[str], int]:
    """Gives what a manifest says became of how many records, and how many examples there are."""
    records, counts = facts["records"], facts["counts"]
    said = Counter({"written": counts["written"], "merged": records["merged"]})
    for outcome, reasons in (
        ("dropped", counts["dropped"]),
        *((one, records[one]) for one in ("excluded", "rejected")),
    ):
        said.update({f"{outcome}: {reason}": int(n) for reason, n in reasons.items()})
    return said, records["examples"]
