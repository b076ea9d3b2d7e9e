"""What the commands share that make a release of a dump: arguments, and how the release is shown."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import facts_table
from pipelines.progress import clock, size

if TYPE_CHECKING:
    from kbsource.release.manifest import FileEntry

Row = tuple[str, object]


def add_dump_arguments(parser: argparse.ArgumentParser, *, dump_help: str, records: str) -> None:
    """Declares the dump, which has ``records``, and the release that is made of it."""
    add = parser.add_argument
    add("--dump", action="append", required=True, metavar="PATTERN", help=dump_help)
    add("--output", required=True, metavar="DIR", help="folder of the release; new, or left by a run that was killed")
    add(
        "--max-rejects",
        type=float,
        default=0.001,
        metavar="SHARE",
        help=f"highest share of the {records} that may be rejected (default: %(default)s)",
    )
    add("--allow-truncated", action="store_true", help="take what can be read of a dump that breaks off")
    add(
        "--range-bytes",
        type=int,
        metavar="N",
        help="bytes of the pieces that the dump is read in (default: 1 to 32 MiB, by the size of the dump)",
    )


def table_bytes(tables: Mapping[str, Sequence[FileEntry]]) -> dict[str, int]:
    """Gives the size of each table."""
    return {name: sum(one.bytes for one in entries) for name, entries in tables.items()}


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
