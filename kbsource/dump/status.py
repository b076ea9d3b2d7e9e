"""Reads ``dumpstatus.json``, which lists the jobs of a dump and their files. It is published with these files.

Source: https://dumps.wikimedia.org/<wiki>/<date>/dumpstatus.json, as published in 2026.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from kbsource.documents import read_document
from kbsource.files import Folder, join

STATUS = "dumpstatus.json"
_Line = Annotated[str, msgspec.Meta(max_length=200, pattern=r"\A[^\x00-\x1f\x7f]*\Z")]


class StatusFile(msgspec.Struct, frozen=True):
    """A file of a job. A file of an unfinished job may lack its size and hashes."""

    size: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)] | None = None
    md5: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-fA-F]{32}\Z")] | None = None
    sha1: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-fA-F]{40}\Z")] | None = None


class Job(msgspec.Struct, frozen=True):
    """A job of a dump."""

    status: _Line
    files: dict[_Line, StatusFile] = {}


class DumpStatus(msgspec.Struct, frozen=True):
    """The jobs of a dump by name."""

    jobs: dict[_Line, Job]


def read_status(folder: str) -> DumpStatus | None:
    """Returns the ``dumpstatus.json`` of a folder, or None.

    Raises:
        SetupError: the file has another form than the published ones.
    """
    path = join(folder, STATUS)
    return read_document(path, DumpStatus, remedy="download or remove it") if Folder.of(path).exists() else None
