"""Which templates lose most text."""

from __future__ import annotations

import heapq
from typing import Any

from kbsource.files import Storage
from kbsource.release.reader import read_table


def worst_templates(release: str, storage: Storage, *, limit: int) -> list[dict[str, Any]]:
    """Gives the rows of the table ``templates`` that lose most visible characters, most first; none that loses none."""
    rows = (row for row in read_table(release, "templates", storage) if row["lost_chars"])
    return heapq.nsmallest(limit, rows, key=lambda row: (-row["lost_chars"], row["name"], row["outcome"]))
