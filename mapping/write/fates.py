"""What became of one record of an alignment, out of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from kbsource.files import Storage
from kbsource.release.reader import rows_with
from mapping.decide.policy import REASONS
from mapping.sources.reading.reasons import EXCLUDED, REJECTED

_MEANINGS = {"dropped": REASONS, "excluded": EXCLUDED, "rejected": REJECTED}
_STAGES = {"rejected": "source", "excluded": "", "merged": ""}
_PLACE = itemgetter("output", "evidence")


def record_fates(folder: str, record_id: str, storage: Storage) -> Iterator[dict[str, Any]]:
    """Gives the rows of ``records`` with an id, most often one.

    ``meaning`` is that of the reason, ``details`` what is said in ``rejected``; ``evidences`` are the rows of
    ``alignments`` and ``misses``, each with its row of ``crosswalk`` as ``crossing``, in order.
    """

    def rows(table: str, column: str = "example_id") -> Iterator[dict[str, Any]]:
        return rows_with(folder, table, column, record_id, storage)

    crossings = {_PLACE(row): row for row in rows("crosswalk")}
    evidences = [
        {**row, "crossing": crossings.get(_PLACE(row))} for table in ("alignments", "misses") for row in rows(table)
    ]
    faults = list(rows("rejected", "key"))
    for row in rows("records"):
        yield {
            **row,
            "meaning": _MEANINGS.get(row["outcome"], {}).get(row["reason"] or ""),
            "details": [
                fault["detail"] for fault in faults if fault["stage"] == _STAGES.get(row["outcome"], "evidence")
            ],
            "evidences": sorted(
                (evidence for evidence in evidences if evidence["ordinal"] == row["ordinal"]), key=_PLACE
            ),
        }
