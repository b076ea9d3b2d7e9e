"""The kinds of error: wrong set-up stops the job, a bad record becomes a BadRecord."""

from __future__ import annotations


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
