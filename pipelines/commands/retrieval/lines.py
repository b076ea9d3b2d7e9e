"""Files that are written record by record, where those that cannot be used are told."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbsource.records import BadRecord
    from mapping.contexts.ranked import Reject
    from mapping.sources.reading.files_in import RawRecord


def write_converted(source: str, output: str, convert: Callable[[Iterable[RawRecord], Reject], Iterator[bytes]]) -> int:
    """Writes what the lines of a file become, tells what could not be used, and gives the exit code.

    Args:
        source: file of lines, packed or not.
        output: file, which appears when it is complete.
        convert: gives what is written, and tells what it leaves out.
    """
    from kbsource.errors import counted
    from kbsource.files import atomic_write
    from mapping.sources.reading.files_in import iter_lines
    from pipelines.stores.storage import storage_for

    rejected: list[BadRecord] = []
    n_records = 0
    with atomic_write(storage_for(output), output) as target:
        for content in convert(iter_lines(storage_for(source), source), rejected.append):
            target.write(content)
            n_records += 1
    for bad in rejected:
        print(f"{bad.file}, {bad.detail} ({bad.reason})", file=sys.stderr)
    print(f"{counted(n_records, 'queries')} written to {output}; {counted(len(rejected), 'lines')} could not be used.")
    return 1 if rejected else 0
