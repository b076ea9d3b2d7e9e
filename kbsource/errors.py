"""The kinds of error: wrong set-up stops the job, a bad record becomes a BadRecord."""

from __future__ import annotations

import errno

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
    errno.ENOENT: "It was there when the work began. Put it back, see that all machines have it under this name, "
    f"{_AGAIN}",
}


class SetupError(Exception):
    """Something about the whole job is wrong: it stops at once.

    The message names the offending value (file, option, line or byte) and the remedy.
    """


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


def lasting_fault(error: OSError) -> str | None:
    """Gives what is wrong with the machine and how to mend it; None for a fault that may pass when tried again."""
    remedy = _REMEDIES.get(error.errno or 0)
    return None if remedy is None else f"{error}. {remedy}"
