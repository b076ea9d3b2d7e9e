"""What makes a kind of release: its format, its tables, what else lies in it, and the laws that it keeps.

A kind is defined once, beside what makes it; ``mapping.kinds`` names all of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pyarrow as pa

from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, join, storage_or_local
from kbsource.release.layout import MANIFEST, no_release
from kbsource.release.manifest import DAMAGED, FileEntry, ListingManifest, Manifest

if TYPE_CHECKING:
    from kbsource.release.verify import Checking

M = TypeVar("M", bound=Manifest)


@dataclass(frozen=True, eq=False, kw_only=True)
class Kind(Generic[M]):
    """A kind of release.

    Attributes:
        name: what one is called, for messages.
        format: of its manifests, with the version after the last hyphen.
        made_by: command that makes one.
        manifest: class of its manifests.
        tables: schemas of the tables that it may have, by name.
        required: tables without which its manifest is damaged.
        schema_version: of the tables, where its manifests have one.
        further: columns that a table may have behind those of its schema.
        files: files and folders beside the tables, by path.
        parts: kind of the releases in its folders.
        count_faults: gives every way in which the counts of a manifest contradict each other.
        rules: slugs of its laws, with what it means that one is broken.
        check: checks its laws in files that are what was written, and gives how much was checked, by what it is;
            None where these do not allow it.
        made_from: options of ``kbsource verify`` that name what it was made from, to compare it with; all or none.
    """

    name: str
    format: str
    made_by: str
    manifest: type[M]
    tables: Mapping[str, pa.Schema]
    required: Sequence[str] = ()
    schema_version: int | None = None
    further: Mapping[str, Sequence[pa.Field]] = field(default_factory=dict)
    files: Sequence[str] = ()
    parts: Kind[Any] | None = None
    count_faults: Callable[[M], list[str]] | None = None
    rules: Mapping[str, str] = field(default_factory=dict)
    check: Callable[[Checking[M]], Mapping[str, int] | None] | None = None
    made_from: Sequence[str] = ()

    @property
    def owned(self) -> tuple[str, ...]:
        """Paths of all that a release of the kind may hold beside its manifest."""
        return (*self.tables, *self.files)

    def read(self, path: str, storage: Storage | None = None) -> M:
        """Gives the manifest of a finished release; of a local one without a storage.

        Raises:
            SetupError: there is none, or it is of another kind or version; a DataError for a damaged one.
        """
        content, where = read_content(path, storage_or_local(path, storage)), join(path, MANIFEST)
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
        """Gives every schema that a table of that name may have; none where the kind has no such table."""
        own = self.tables.get(table)
        if own is None:
            return []
        return [own, *([pa.schema([*own, *self.further[table]])] if table in self.further else [])]


@dataclass(frozen=True, eq=False, kw_only=True)
class ListingKind(Kind[ListingManifest]):
    """A kind whose manifests are a list of files and JSON values."""

    manifest: type[ListingManifest] = ListingManifest

    def listing(self, entries: Sequence[FileEntry], facts: Mapping[str, Any]) -> ListingManifest:
        """Gives the manifest of a release with these files."""
        return ListingManifest.of(self.format, entries, facts)


def _stem(form: object) -> str:
    """
    >>> _stem("kbsource-release-1")
    'kbsource-release'
    """
    return str(form).rpartition("-")[0]


def read_content(path: str, storage: Storage) -> bytes:
    """Gives the content of the manifest of a folder.

    Raises:
        SetupError: it has none.
    """
    if not storage.exists(join(path, MANIFEST)):
        raise SetupError(f"{path}: {no_release(path, storage)}")
    with storage.open_read(join(path, MANIFEST)) as file:
        return file.read()


def parse_content(content: bytes, where: str) -> dict[str, Any]:
    """Gives the values of a manifest of any kind; ``where`` names it in errors.

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
    """Gives the kind of release whose manifest has this content, in whatever version.

    Raises:
        SetupError: it is of none; a DataError where it is damaged.
    """
    form = parse_content(content, where)["format"]
    for kind in kinds:
        if _stem(form) == _stem(kind.format):
            return kind
    known = ", ".join(kind.format for kind in kinds)
    raise SetupError(f"{where}: its format is {form!r}, none that is known here ({known}); name another folder")
