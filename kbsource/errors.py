"""The kinds of error: wrong set-up stops the job, a bad record becomes a BadRecord."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import walk_tb

_AGAIN = "and run the same command again: what this run left behind is removed first."
_REMEDIES = {
    errno.ENOSPC: f"The disk is full. Make room {_AGAIN}",
    errno.EDQUOT: f"The quota is used up. Make room {_AGAIN}",
    errno.EFBIG: f"Files may not grow that large here. Raise the limit (ulimit -f) {_AGAIN}",
    errno.EROFS: f"The folder cannot be written to. Choose another one {_AGAIN}",
    errno.EACCES: f"It may not be read or written. Give the user who runs this the right {_AGAIN}",
    errno.EPERM: f"It may not be read or written. Give the user who runs this the right {_AGAIN}",
    errno.ENOTDIR: f"A file lies where a folder should be. Choose another folder {_AGAIN}",
    errno.EEXIST: f"A file lies where a folder should be. Choose another folder {_AGAIN}",
    errno.EISDIR: f"A folder lies where a file should be. Name the file, or a pattern in quotes (DIR/*.bz2) {_AGAIN}",
    errno.ENOENT: "It was there when the work began. Put it back, see that all machines have it under this name, "
    f"{_AGAIN}",
}
_OF_DATA, _OF_SETUP = "data", "set-up"
# Arrow's functions that read, Reader.open and read_table among them.
_READS = re.compile(r"Reader|Dataset|Fragment|\bread|\bopen_")
# Functions that hand Arrow nothing but what they read: mapped files are looked into as they are used.
_READERS = re.compile(r"(title_index|locations|pages_reader|suggest)\.py |release/columns\.py (batch_to_pages|decode)")


class SetupError(Exception):
    """Something about the whole job is wrong: it stops at once.

    The message names the offending value (file, option, line or byte) and the remedy.
    """


class DataError(SetupError):
    """The set-up is in order, the data are not: nothing can be made of them as asked."""


class RecordError(Exception):
    """One record can never work; the job goes on without it.

    Attributes:
        reason: slug from a closed set (lower case, underscores) that the counts are kept by.
        detail: what exactly was seen, for a person.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


def counted(n: int, things: str) -> str:
    """Gives a number with what it is a number of, which is given in the plural.

    >>> counted(1, "pairs of classes"), counted(1, "entries"), counted(1200, "files")
    ('1 pair of classes', '1 entry', '1,200 files')
    """
    head, blank, rest = things.partition(" ")
    if n == 1:
        head = f"{head[:-3]}y" if head.endswith("ies") else head.removesuffix("s")
    return f"{n:,} {head}{blank}{rest}"


def fault_values(fault: SetupError) -> dict[str, str]:
    """Gives a fault as JSON values, to be told by another process than the one that met it."""
    return {"of": _OF_DATA if isinstance(fault, DataError) else _OF_SETUP, "message": str(fault)}


def told_fault(values: Mapping[str, str]) -> SetupError:
    """Gives back the fault of ``fault_values``: a DataError or a SetupError.

    >>> told_fault(fault_values(DataError("2 of 3 pages rejected")))
    DataError('2 of 3 pages rejected')
    """
    return (DataError if values["of"] == _OF_DATA else SetupError)(values["message"])


@contextmanager
def named_faults() -> Iterator[None]:
    """Names faults of the machine and damaged tables that are met inside of it.

    Raises:
        SetupError: instead of an error that has a ``lasting_fault``; any other comes through as it is.
    """
    try:
        yield
    except (OSError, ValueError, LookupError, NotImplementedError) as error:
        fault = lasting_fault(error)
        if fault is None:
            raise
        raise fault from error


def lasting_fault(error: Exception) -> SetupError | None:
    """Gives what is wrong with the machine, or with a table (a DataError), and how to mend it.

    None for any other fault, one that may pass when tried again among them.
    """
    if _is_damage(error):
        return DataError(
            f"A table is not as it was written ({error}). Check what was given: kbsource verify says which file it is."
        )
    remedy = _REMEDIES.get(error.errno or 0) if isinstance(error, OSError) else None
    return None if remedy is None else SetupError(f"{error}. {remedy}")


def _is_damage(error: Exception) -> bool:
    """Says whether Arrow could not read a file, whatever it calls that; what it cannot write is another matter."""
    if isinstance(error, OSError) and error.errno is not None:
        return False
    codes = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    in_arrow = [code for code in codes if "pyarrow" in code.co_filename]
    is_read = any(_READERS.search(f"{code.co_filename} {code.co_name}") for code in codes)
    return any(is_read or _READS.search(code.co_name) for code in in_arrow)
