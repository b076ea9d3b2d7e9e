"""What the names of dump files tell: page ids of parts, index files, the kind of dump."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from kbsource.files import base_name

_PAGES = re.compile(r"(?:[-.]|\A)p(\d+)p(\d+)(?=[.-]|\Z)")
_REVISIONS = re.compile(r"(?:[-.]|\A)p(\d+)r(\d+)r(\d+)(?=[.-]|\Z)")
_MULTISTREAM = re.compile(r"-multistream(\d*)\.xml((?:-p\d+p\d+)?)\.bz2\Z")
_CONTENT_EXPORT = re.compile(r"\A[a-z0-9_]+-\d{4}-\d\d-\d\d-p\d+[pr]\d+(?:r\d+)?\.xml")


@dataclass(frozen=True, slots=True)
class DumpPart:
    """The pages that a part holds by its name.

    Attributes:
        name: file name.
        first_id, last_id: page ids, both included.
        first_revision, last_revision: for one page in several files the revisions in this one, else None.
    """

    name: str
    first_id: int
    last_id: int
    first_revision: int | None = None
    last_revision: int | None = None


def part_of(path: str) -> DumpPart | None:
    """Gives what a file name tells about the part, None when it tells nothing."""
    name = base_name(path)
    if found := _REVISIONS.search(name):
        page, first, last = map(int, found.groups())
        return DumpPart(name, page, page, first, last)
    if found := _PAGES.search(name):
        return DumpPart(name, int(found[1]), int(found[2]))
    return None


def is_content_export(path: str) -> bool:
    """Says whether the name is that of a MediaWiki Content File Export."""
    return _CONTENT_EXPORT.match(base_name(path)) is not None


def index_names(path: str) -> tuple[str, ...]:
    """Gives the names that the index of a multistream file may have; none for other files."""
    name = base_name(path)
    stem = _MULTISTREAM.sub(r"-multistream-index\1.txt\2", name)
    return () if stem == name else (f"{stem}.bz2", f"{stem}.gz", stem)


def gaps_and_overlaps(parts: Iterable[DumpPart]) -> tuple[list[str], list[str]]:
    """Gives what is missing between parts, and which parts overlap, each in words."""
    ordered = sorted(parts, key=lambda part: (part.first_id, part.last_id, part.first_revision or 0))
    gaps: list[str] = []
    overlaps: list[str] = []
    if ordered and ordered[0].first_id > 1:
        gaps.append(f"page ids 1 to {ordered[0].first_id - 1}")
    for before, after in pairwise(ordered):
        if before.last_revision is not None and after.first_revision is not None and before.first_id == after.first_id:
            if after.first_revision <= before.last_revision:
                overlaps.append(f"{before.name} and {after.name}")
        elif after.first_id <= before.last_id:
            overlaps.append(f"{before.name} and {after.name}")
        elif after.first_id > before.last_id + 1:
            gaps.append(f"page ids {before.last_id + 1} to {after.first_id - 1}")
    return gaps, overlaps
