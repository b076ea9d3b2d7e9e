"""Rows of a release's tables by their number, read from where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from kbsource.files import join
from kbsource.release.reader import opened_table
from mapping.inspector.opened import Opened


def table_rows(
    opened: Opened, table: str, start: int, end: int, *, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Gives the rows ``start`` up to but not including ``end`` of a table, in its order; one row group in memory.

    Args:
        opened: release.
        table: name of a table of its manifest.
        start: number of a row, from 0 over all files of the table.
        end: as ``start``; what lies behind the last row is left out.
        columns: that are read; None for all.
    """
    first = 0
    for entry in opened.manifest.tables[table]:
        last = first + (entry.rows or 0)
        if first < end and start < last:
            with opened_table(join(opened.path, entry.file), opened.storage) as file:
                sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
                edges = list(accumulate(sizes, initial=first))
                for group, (begins, ends) in enumerate(pairwise(edges)):
                    if begins < end and start < ends:
                        rows = file.read_row_group(group, columns=columns and list(columns), use_threads=False)
                        skipped = max(start - begins, 0)
                        yield from rows.slice(skipped, min(end, ends) - begins - skipped).to_pylist()
        first = last
