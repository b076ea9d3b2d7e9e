"""What makes a kind of release: its format, its tables, what else lies in it, and the laws that it keeps.

A kind is defined once, beside what makes it; ``mapping.kinds`` names all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import pyarrow as pa

from kbsource.errors import DataError, SetupError
from kbsource.files import Folder, join
from kbsource.release.laws import Checking, Law, M
from kbsource.release.layout import MANIFEST, no_release
from kbsource.release.manifest import DAMAGED, FileEntry, ListingManifest


class MadeFrom(NamedTuple):
    """A release that another may be made from, to compare it with."""

    kind: Kind[Any]
    fact: str  #: of the manifest of what was made, which has its ``manifest_sha256``
    hashed: tuple[str, ...] = ()  #: tables that are read as a whole, so that their files must be what was written


@dataclass(frozen=True, eq=False, kw_only=True)
class Kind(Generic[M]):
    """A kind of release: its format, its tables, what else lies in it, and the laws that it keeps."""

    name: str  #: what one is called, for messages
    format: str  #: of its manifests, with the version after the last hyphen
    made_by: str  #: command that makes one
    manifest: type[M]
    tables: Mapping[str, pa.Schema]
    required: Sequence[str] = ()  #: tables without which its manifest is damaged
    schema_version: int | None = None  #: of the tables, where its manifests have one
    further: Mapping[str, Sequence[pa.Field]] = field(default_factory=dict)  #: columns that tables may have besides
    files: Sequence[str] = ()  #: files and folders beside the tables
    parts: Kind[Any] | None = None  #: kind of the releases in its folders
    count_faults: Callable[[M], list[str]] | None = None  #: ways in which a manifest's counts contradict each other
    laws: Sequence[Law] = ()
    claims: Callable[[M], Mapping[str, int]] | None = None
    """What a manifest says of the tables by name, for the view ``claimed``; fails where it says nothing of the kind."""
    remarks: Callable[[M], list[str]] | None = None  #: what of a sound release its user should know of
    counted: Mapping[str, str] = field(default_factory=dict)  #: query by what it counts, to say how much was checked
    views: Callable[[Checking[M]], Iterable[str]] | None = None  #: adds further views, and names them as given
    check: Callable[[Checking[M]], Mapping[str, int] | None] | None = None
    """Looks at what no query sees, and counts further; None where files do not allow it."""
    made_from: Mapping[str, MadeFrom] = field(default_factory=dict)
    """By option of ``kbsource verify``; all are given, or none."""
    shown_by: tuple[str, str] | None = None  #: table and column of texts by which ``kbsource show`` finds rows

    @property
    def owned(self) -> tuple[str, ...]:
        """Paths of all that a release of the kind may hold beside its manifest."""
        return (*self.tables, *self.files)

    def read(self, path: str) -> M:
        """The manifest of a finished release.

        Raises:
            SetupError: there is none, or it is of another kind or version; a DataError for a damaged one.
        """
        content, where = read_content(path), join(path, MANIFEST)
        value = parse_content(content, where)
        form = value["format"]
        if _stem(form) != _stem(self.format):
            raise SetupError(
                f"{where}: this is no {self.name}, its format is {form!r}; name the folder that {self.made_by} wrote"
            )
        version = value.get("schema_version") if self.schema_version is not None else None
        if form != self.format or version != self.schema_version:
            found, wanted = repr(form), repr(self.format)
            if self.schema_version is not None:
                found, wanted = f"{found}, schema version {version!r}", f"{wanted}, {self.schema_version}"
            raise SetupError(
                f"{where}: format {found}, of another version, where {wanted} is wanted; use the kbsource that made "
                "it, or make it again"
            )
        own = {name: one for name, one in value.items() if name != "manifest_sha256"}
        manifest = self.manifest.from_json(own, where)
        inside = [*(entry.file for entry in manifest.entries()), *(part.folder for part in manifest.parts)]
        if odd := [file for file in inside if file.startswith("/") or {"", ".", ".."} & {*file.split("/")}]:
            raise DataError(f"{where}: {odd[0]!r} is no path in a release; {DAMAGED}")
        if missing := sorted(set(self.required) - set(manifest.tables)):
            raise DataError(f"{where}: table {missing[0]} is missing; {DAMAGED}")
        if manifest.to_bytes() != content:
            raise DataError(f"{where}: changed since it was written; {DAMAGED}")
        return manifest

    def schemas(self, table: str) -> list[pa.Schema]:
        """Every schema that a table of that name may have; none where the kind has no such table."""
        own = self.tables.get(table)
        if own is None:
            return []
        return [own, *([pa.schema([*own, *self.further[table]])] if table in self.further else [])]


@dataclass(frozen=True, eq=False, kw_only=True)
class ListingKind(Kind[ListingManifest]):
    """A kind whose manifests are a list of files and JSON values."""

    manifest: type[ListingManifest] = ListingManifest

    def listing(self, entries: Sequence[FileEntry], facts: Mapping[str, Any]) -> ListingManifest:
        """The manifest of a release with these files."""
        return ListingManifest.of(self.format, entries, facts)


def _stem(form: object) -> str:
    """
    >>> _stem("kbsource-release-1")
    'kbsource-release'
    """
    return str(form).rpartition("-")[0]


def read_content(path: str) -> bytes:
    """The content of the manifest of a folder.

    Raises:
        SetupError: it has none.
    """
    if not Folder.of(join(path, MANIFEST)).exists():
        raise SetupError(f"{path}: {no_release(path)}")
    with Folder.of(join(path, MANIFEST)).open() as file:
        return file.read()


def parse_content(content: bytes, where: str) -> dict[str, Any]:
    """The values of a manifest of any kind; ``where`` names it in errors.

    Raises:
        SetupError: it is none; a DataError where it is not even JSON.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not JSON ({error}); {DAMAGED}") from error
    if not isinstance(value, dict) or "format" not in value:
        raise SetupError(f"{where}: not a manifest of kbsource; name the folder of a release")
    return value


def kind_of(content: bytes, where: str, kinds: Sequence[Kind[Any]]) -> Kind[Any]:
    """The kind of release whose manifest has this content, in whatever version.

    Raises:
        SetupError: it is of none; a DataError where it is damaged.
    """
    form = parse_content(content, where)["format"]
    for kind in kinds:
        if _stem(form) == _stem(kind.format):
            return kind
    known = ", ".join(kind.format for kind in kinds)
    raise SetupError(f"{where}: its format is {form!r}, none that is known here ({known}); name another folder")
