"""What templates show and lose: by how they were settled, and which lose most text."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from kbsource.files import Storage
from kbsource.release.reader import read_table


def worst_templates(release: str, storage: Storage, *, limit: int) -> list[dict[str, Any]]:
    """Gives the rows of the table ``templates`` that lose most visible characters, most first; none that loses none."""
    rows = (row for row in read_table(release, "templates", storage) if row["lost_chars"])
    return heapq.nsmallest(limit, rows, key=lambda row: (-row["lost_chars"], row["name"], row["outcome"]))


def sums_by_outcome(release: str, storage: Storage) -> Mapping[str, Counter[str]]:
    """Gives by outcome the sums of ``uses``, ``shown_chars`` and ``lost_chars`` in the table ``templates``."""
    sums: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in read_table(release, "templates", storage):
        sums[row["outcome"]].update({name: row[name] for name in ("uses", "shown_chars", "lost_chars")})
    return sums
