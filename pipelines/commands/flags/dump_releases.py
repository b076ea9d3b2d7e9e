"""How a release of a dump is shown."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import facts_table
from pipelines.progress import clock, size

if TYPE_CHECKING:
    from kbsource.release.manifest import FileEntry

Row = tuple[str, object]


def table_bytes(tables: Mapping[str, Sequence[FileEntry]]) -> dict[str, int]:
    """Gives the size of each table."""
    return {name: sum(entry.bytes for entry in entries) for name, entries in tables.items()}


def rejected_rows(rejected: Mapping[str, int]) -> list[Row]:
    """Gives how much was rejected, in all and by reason."""
    return [("  rejected", sum(rejected.values())), *((f"    {reason}", n) for reason, n in sorted(rejected.items()))]


def release_text(
    rows: Iterable[Row],
    tables: Mapping[str, Sequence[FileEntry]],
    *,
    output: str,
    seconds: float,
    remark: str | None = None,
) -> str:
    """Gives facts of a release for reading, with its size and the time that it took, and what to do next."""
    made: list[Row] = [("tables", size(sum(table_bytes(tables).values()))), ("wall time", clock(seconds))]
    done = f"The release is in {output}. Check it: kbsource verify {shlex.quote(output)}"
    return "\n\n".join(part for part in (facts_table([*rows, *made]), remark, done) if part)
