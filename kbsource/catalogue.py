"""A folder of releases: what lies in it, what was made from what, and which one is called ``enwiki@20261001``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Required, TypedDict

from kbsource.documents import bounded_content, typed_value
from kbsource.errors import DataError, SetupError, shown_value
from kbsource.files import Folder, join
from kbsource.release.kind import parse_content
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import DAMAGED, CommonFacts, snapshot_of, sources_of

FOLDER_VARIABLE = "KBSOURCE_RELEASES"
"""Environment variable with the folder in which releases are looked for by their names."""
_NAME = re.compile(r"(?:(?P<form>[a-z-]+):)?(?P<wiki>[a-z][a-z_]*)@(?P<date>[0-9]{8})")
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """A release in a folder, out of its manifest."""

    path: str  #: in the folder
    form: str  #: its format without version, as ``kbsource-`` goes before: ``release`` (of pages), ``passages``
    wiki: str | None  #: name of the database; None where the manifest does not say, as for ``date``
    date: str | None  #: of the snapshot, ``20261001``
    sha256: str  #: that the manifest has of itself
    made_from: tuple[tuple[str, str], ...]  #: sha256 of the manifests of other releases, by what they are
    rows: int
    bytes: int

    @property
    def name(self) -> str | None:
        """What ``find_release`` takes; None without wiki and date."""
        if self.wiki is None or self.date is None:
            return None
        return f"{self.wiki}@{self.date}" if self.form == "release" else f"{self.form}:{self.wiki}@{self.date}"


def entries_in(folder: str | Folder) -> Iterator[Entry]:
    """The releases below a folder, by path; not those within releases.

    Raises:
        DataError: a manifest is damaged.
    """
    root = Folder.of(folder)
    found = sorted(path for depth in range(_DEEPEST + 1) for path in root.files("*/" * depth + MANIFEST))
    own: list[str] = []
    for path in sorted(found, key=lambda one: (one.count("/"), one)):
        place = path.rpartition("/")[0]
        if not any(place.startswith(join(other, "")) for other in own if other or place):
            own.append(place)
    for place in sorted(own):
        values = _manifest(root, place)
        parts = [_manifest(root, join(place, part["folder"])) for part in values.get("alignments") or ()]
        yield _entry(place or ".", values, parts)


class _ListedFile(TypedDict, total=False):
    rows: int | None
    bytes: Required[int]


class _Listing(CommonFacts, total=False):
    """What an entry is made of, in a manifest of any kind."""

    files: list[_ListedFile]
    index: list[_ListedFile]
    tables: dict[str, list[_ListedFile]]
    manifest_sha256: str


def _manifest(root: Folder, place: str) -> dict[str, Any]:
    """The values of a manifest, as they are there, of the types that an entry needs.

    Raises:
        DataError: they are not.
    """
    where = join(place, MANIFEST) if place else MANIFEST
    values = parse_content(bounded_content(root / where, remedy=DAMAGED), join(root.url, where))
    typed_value(values, _Listing, join(root.url, where), remedy=DAMAGED)
    inside = [part["folder"] for part in values.get("alignments") or ()]
    if odd := [folder for folder in inside if {"", ".", ".."} & {*folder.split("/")}]:
        raise DataError(f"{join(root.url, where)}: {shown_value(odd[0])} is no folder in a release; {DAMAGED}")
    return values


def _entry(path: str, values: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Entry:
    """An entry of a manifest, and of those of the releases that lie within its own."""
    wiki, date = snapshot_of(values)
    files: list[dict[str, Any]] = []
    indexes: list[dict[str, Any]] = []
    for one in (values, *parts):
        files += [*(one.get("files") or ()), *chain.from_iterable((one.get("tables") or {}).values())]
        indexes += one.get("index") or ()
    return Entry(
        path=path,
        form=str(values["format"]).removeprefix("kbsource-").rpartition("-")[0],
        wiki=wiki,
        date=date,
        sha256=values.get("manifest_sha256") or "",
        made_from=tuple(sources_of(values).items()),
        rows=sum(entry.get("rows") or 0 for entry in files),
        bytes=sum(entry["bytes"] for entry in (*files, *indexes)),
    )


def find_release(path: str) -> str:
    """The folder of a release that is called by wiki and date, or any other path as it is.

    >>> find_release("releases/enwiki-20261001")
    'releases/enwiki-20261001'

    ``enwiki@20261001`` is the release of pages, ``passages:enwiki@20261001`` one made from it, in the folder that the
    environment variable ``KBSOURCE_RELEASES`` names.

    Raises:
        SetupError: there is none, there are several, or the variable is not set.
    """
    named = _NAME.fullmatch(path)
    if named is None or os.path.exists(path):
        return path
    root = os.environ.get(FOLDER_VARIABLE)
    if not root:
        raise SetupError(f"{path}: no such folder. To name releases like this set {FOLDER_VARIABLE} to their folder.")
    entries = list(entries_in(root))
    found = [entry.path for entry in entries if path in (entry.name, f"release:{entry.name}")]
    if not found:
        names = ", ".join(entry.name for entry in entries if entry.name) or "none with wiki and date"
        raise SetupError(f"{path}: not in {root}, where these are: {names}.")
    if len(found) > 1:
        raise SetupError(f"{path}: several in {root}: {', '.join(found)}. Name one by its folder.")
    return join(root, found[0])
