"""The kinds of release that alignments are, and what kinds that are made from pages have in common.

::

    fever-dev-kilt.jsonl                        the records, as KILT publishes them
    records/                                    what became of every record that was read, Parquet
    alignments/  misses/  rejected/             the same of every evidence, and what was wrong with rejected records
    crosswalk/                                  for KILT files: old spans and new ones
    report.json                                 counts
    manifest.json                               written last: without it the folder is not finished
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson

from kbsource.errors import SetupError
from kbsource.files import Storage
from kbsource.lookup import KnowledgeSource
from kbsource.release.kind import ListingKind
from kbsource.release.manifest import FileEntry, ListingManifest
from kbsource.release.verify import Checking
from kbsource.release.writer import write_lines
from mapping.schema import TABLES, VERIFICATION
from mapping.write.check_alignment import RULES, check_alignment, check_alignments

REPORT, TEXT_REPORT = "report.json", "report.txt"

ALIGNMENT = ListingKind(
    name="alignment",
    format="kbsource-alignment-1",
    made_by="kbsource map",
    tables=TABLES,
    further={"alignments": VERIFICATION},
    files=(REPORT,),
    rules=RULES,
    check=check_alignment,
)
ALIGNMENTS = ListingKind(
    name="folder of alignments",
    format="kbsource-alignments-1",
    made_by="kbsource map --all",
    tables={},
    files=(REPORT, TEXT_REPORT),
    parts=ALIGNMENT,
    rules=RULES,
    check=check_alignments,
)


@contextmanager
def source_of(checking: Checking[ListingManifest]) -> Iterator[KnowledgeSource | None]:
    """Opens the release of pages that a release is to be compared with; None without one.

    Raises:
        SetupError: it was made from another one.
    """
    kb = checking.sources.get("kb")
    if kb is None:
        yield None
        return
    with KnowledgeSource.open(kb, checking.storage) as source:
        made_from = checking.manifest.made_from
        if made_from not in (None, source.manifest.sha256):
            raise SetupError(
                f"{checking.path} was made from another release than {kb}: give the one with manifest {made_from}."
            )
        yield source


def write_report(report: Mapping[str, Any], *, output: str, storage: Storage) -> FileEntry:
    """Writes the counts of what was made, and gives the entry of the file."""
    content = orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    return write_lines([content], REPORT, output=output, storage=storage)
