"""Lists the releases in a folder with their sources, and finds releases by names such as ``enwiki@20261001``."""

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
"""Environment variable that names the folder in which releases are searched for by name."""
_NAME = re.compile(r"(?:(?P<form>[a-z-]+):)?(?P<wiki>[a-z][a-z_]*)@(?P<date>[0-9]{8})")
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Entry:
    """A release in a folder, as its manifest describes it."""

    path: str  #: path in the folder
    #: format of the release without the prefix ``kbsource-`` and the version: ``release`` (of pages), ``passages``, …
    form: str
    wiki: str | None  #: database name; None, like ``date``, if the manifest does not contain it
    date: str | None  #: date of the snapshot, ``20261001``
    sha256: str  #: checksum of the manifest, as recorded in it
    made_from: tuple[tuple[str, str], ...]  #: role and manifest checksum of each release from which it was made
    rows: int
    bytes: int

    @property
    def name(self) -> str | None:
        """The name that ``find_release`` accepts; None if the release has no wiki or no date."""
        if self.wiki is None or self.date is None:
            return None
        return f"{self.wiki}@{self.date}" if self.form == "release" else f"{self.form}:{self.wiki}@{self.date}"


def entries_in(folder: str | Folder) -> Iterator[Entry]:
    """Lists the releases below a folder, sorted by path. Releases inside other releases are not listed.

    Raises:
        DataError: a manifest is damaged.
    """
    root = Folder.of(folder)
    found = sorted(path for depth in range(_DEEPEST + 1) for path in root.files("*/" * depth + MANIFEST))
    own: list[str] = []
    for path in sorted(found, key=lambda found_path: (found_path.count("/"), found_path)):
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
    """The fields of a manifest of any kind that an entry needs."""

    files: list[_ListedFile]
    index: list[_ListedFile]
    tables: dict[str, list[_ListedFile]]
    manifest_sha256: str


def _manifest(root: Folder, place: str) -> dict[str, Any]:
    """Returns the values of a manifest as read, after checking the types of the fields that an entry needs.

    Raises:
        DataError: a field has another type.
    """
    where = join(place, MANIFEST) if place else MANIFEST
    values = parse_content(bounded_content(root / where, remedy=DAMAGED), join(root.url, where))
    typed_value(values, _Listing, join(root.url, where), remedy=DAMAGED)
    inside = [part["folder"] for part in values.get("alignments") or ()]
    if odd := [folder for folder in inside if {"", ".", ".."} & {*folder.split("/")}]:
        raise DataError(f"{join(root.url, where)}: {shown_value(odd[0])} is not a folder in a release; {DAMAGED}")
    return values


def _entry(path: str, values: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Entry:
    """Returns the entry of a release from the values of its manifest, and of the manifests of the releases inside
    it.
    """
    wiki, date = snapshot_of(values)
    files: list[dict[str, Any]] = []
    indexes: list[dict[str, Any]] = []
    for part in (values, *parts):
        files += [*(part.get("files") or ()), *chain.from_iterable((part.get("tables") or {}).values())]
        indexes += part.get("index") or ()
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
    """Returns the folder of the release with this name, or the path itself if it is not a name.

    >>> find_release("releases/enwiki-20261001")
    'releases/enwiki-20261001'

    ``enwiki@20261001`` names the release of pages, and ``passages:enwiki@20261001`` a release made from it. Both are
    looked up in the folder in the environment variable ``KBSOURCE_RELEASES``.

    Raises:
        SetupError: there is no such release, there are several, or the variable is not set.
    """
    named = _NAME.fullmatch(path)
    if named is None or os.path.exists(path):
        return path
    root = os.environ.get(FOLDER_VARIABLE)
    if not root:
        raise SetupError(
            f"{path}: there is no such folder. To name releases like this, set {FOLDER_VARIABLE} to the "
            f"folder that contains them."
        )
    entries = list(entries_in(root))
    found = [entry.path for entry in entries if path in (entry.name, f"release:{entry.name}")]
    if not found:
        names = ", ".join(entry.name for entry in entries if entry.name) or "none that has a wiki and a date"
        raise SetupError(f"{path}: there is no such release in {root}. It contains: {names}.")
    if len(found) > 1:
        raise SetupError(
            f"{path}: several releases in {root} match: {', '.join(found)}. Name the folder of one of them."
        )
    return join(root, found[0])
