"""Tables of releases of any kind, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kbsource.release.kind import kind_of, read_content
from mapping.kinds import KINDS


def read_table(folder: str, table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table of a finished release, in order."""
    kind = kind_of(read_content(folder), folder, KINDS)
    return kind.rows(folder, kind.read(folder), table)
