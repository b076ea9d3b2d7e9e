"""The manifest of a release: what went in, what came out, and the files with their hashes.

It holds no clock, no host name and no absolute path: the same inputs, code and options give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbsource import __version__
from kbsource.errors import DataError
from kbsource.files import Storage, base_name, join, sha256_of
from kbsource.release.layout import MANIFEST, stored_files, table_of

PACKAGES = ("kbsource", "mapping", "pipelines")
DAMAGED = "the manifest is damaged or foreign, get or build the release again"
SOURCE_SUFFIXES = frozenset({".py", ".toml", ".json", ".lua"})


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file: path in the release, rows of a table or lines (None where neither counts), bytes, hex sha256."""

    file: str
    rows: int | None
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input by base name, with size in bytes and hex sha256 of the stored (compressed) file."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Code:
    """What made the bytes: versions, and the sha256 over the source files of the three packages."""

    kbsource: str
    python: str
    pyarrow: str
    mwparserfromhell: str
    sha256: str


@dataclass(frozen=True, slots=True)
class InnerRelease:
    """A release in a folder of this one: the folder, and the sha256 that its manifest has of itself."""

    folder: str
    manifest_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the manifests of all kinds have in common: the format, and every file. A kind adds what else it says.

    Attributes:
        format: name and version of the kind's layout.
        tables: files of each table in order.
        files: the files that are no tables.
    """

    format: str
    tables: dict[str, tuple[FileEntry, ...]]
    files: tuple[FileEntry, ...] = ()

    @property
    def parts(self) -> tuple[InnerRelease, ...]:
        """Releases in folders of this one."""
        return ()

    def entries(self) -> Iterator[FileEntry]:
        """Gives every file."""
        for entries in self.tables.values():
            yield from entries
        yield from self.files

    def n_rows(self, table: str) -> int:
        """Gives the rows of a table; 0 where there is no such table."""
        return sum(entry.rows or 0 for entry in self.tables.get(table, ()))

    def to_json(self) -> dict[str, Any]:
        """Gives all of it as JSON values."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> typing.Self:
        """Gives back what ``to_json`` gave; ``where`` names it in errors.

        Raises:
            DataError: a field is missing, unknown or of another type.
        """
        raise NotImplementedError

    @property
    def sha256(self) -> str:
        """The ``manifest_sha256`` in the file: of the same content without that key. It names the release."""
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()

    def to_bytes(self) -> bytes:
        """Gives the file's content: JSON with sorted keys, two spaces, a newline at the end."""
        return canonical_json({**self.to_json(), "manifest_sha256": self.sha256})


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedManifest(Manifest):
    """A manifest whose every field has a type: of pages and of Wikidata. In the file ``files`` are called ``index``.

    Attributes:
        schema_version: of the tables.
        inputs: files that were read.
        options: options that decide the bytes, as JSON values.
    """

    schema_version: int
    code: Code
    inputs: tuple[InputFile, ...]
    options: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        values = dataclasses.asdict(self)
        files = values.pop("files")
        for file in files:
            del file["rows"]
        return {**values, "index": files}

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> typing.Self:
        if "files" in values:
            raise DataError(f"{where}: missing or unknown ['files']; {DAMAGED}")
        renamed = {("files" if name == "index" else name): value for name, value in values.items()}
        result: typing.Self = typed_value(renamed, cls, where)
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingManifest(Manifest):
    """A manifest of JSON values beside one list of all files: of everything that is made from pages and Wikidata.

    Attributes:
        facts: what it says beside format and files: ``release``, ``inputs``, ``options``, ``counts``, ….
    """

    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, form: str, entries: Iterable[FileEntry], facts: Mapping[str, Any]) -> typing.Self:
        """Gives the manifest of a format for these files, in the order of their paths."""
        tables: dict[str, list[FileEntry]] = {}
        files: list[FileEntry] = []
        for entry in sorted(entries, key=lambda entry: entry.file):
            table = table_of(entry.file)
            (files if table is None else tables.setdefault(table, [])).append(entry)
        grouped = {table: tuple(own) for table, own in tables.items()}
        return cls(format=form, tables=grouped, files=tuple(files), facts=dict(facts))

    @property
    def parts(self) -> tuple[InnerRelease, ...]:
        return tuple(InnerRelease(**part) for part in self.facts.get("alignments", ()))

    @property
    def made_from(self) -> str | None:
        """Names the release of pages that this was made from; None where that is not said."""
        sha256: str | None = (self.facts.get("release") or {}).get("manifest_sha256")
        return sha256

    def to_json(self) -> dict[str, Any]:
        files = [dataclasses.asdict(one) for one in sorted(self.entries(), key=lambda entry: entry.file)]
        listed = [{name: value for name, value in file.items() if value is not None} for file in files]
        return {**self.facts, "format": self.format, "files": listed}

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> typing.Self:
        entries = typed_value(values.get("files", []), tuple[FileEntry, ...], f"{where}: files")
        facts = {name: value for name, value in values.items() if name not in ("format", "files")}
        typed_value(facts.get("alignments", []), tuple[InnerRelease, ...], f"{where}: alignments")
        return cls.of(values["format"], entries, facts)


def canonical_json(value: object) -> bytes:
    """Gives JSON with sorted keys, two spaces, and a newline at the end."""
    return (json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def code_facts() -> Code:
    """Gives the versions of this installation and the hash of its source files."""
    import platform

    return Code(
        kbsource=__version__,
        python=".".join(platform.python_version_tuple()[:2]),
        pyarrow=_version("pyarrow"),
        mwparserfromhell=_version("mwparserfromhell"),
        sha256=_source_hash(),
    )


def _version(distribution: str) -> str:
    """Gives the version of a distribution; none where it is not installed, as one that is not needed need not be."""
    from importlib import metadata  # takes a while, and readers do without

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "none"


def _source_hash() -> str:
    """Gives the sha256 over path and content of every source file of the three packages, in order of path."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for root in sorted(spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(root).rglob("*")):
                if path.suffix in SOURCE_SUFFIXES and path.is_file():
                    content = path.read_bytes()
                    name = f"{package}/{path.relative_to(root).as_posix()}"
                    digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


def input_files(paths: Iterable[str], storage: Storage) -> list[InputFile]:
    """Gives the files that were read, those of folders by their path in it; a release by its manifest alone."""
    result = []
    for path in paths:
        manifest = join(path, MANIFEST)
        if storage.exists(manifest):
            result.append((f"{base_name(path)}/{MANIFEST}", manifest))
            continue
        inside = stored_files(path, storage)
        result += [(f"{base_name(path)}/{name}", join(path, name)) for name in inside] or [(base_name(path), path)]
    return [InputFile(name, storage.size(path), sha256_of(storage, path)) for name, path in result]


def row_faults(manifest: Manifest, expected: Mapping[str, int]) -> list[str]:
    """Gives every table whose rows are not as many as counted."""
    return [
        f"table {table} has {manifest.n_rows(table)} rows, the counts say {n_wanted}"
        for table, n_wanted in expected.items()
        if manifest.n_rows(table) != n_wanted
    ]


class Counted(typing.Protocol):
    """Records of an input: how many were read (the first field), and what became of them, with those rejected."""

    @property
    def n_rejected(self) -> int: ...


Summed = typing.TypeVar("Summed", bound=Counted)


def sum_faults(counts: Mapping[str, Summed], totals: Summed, zero: Summed) -> list[str]:
    """Gives every way in which counts contradict each other: what was read is the sum of what became of it, and the
    totals are the sum of the inputs."""
    faults = []
    for name, one in [*sorted(counts.items()), ("all inputs", totals)]:
        read, *became = (field.name for field in dataclasses.fields(one))  # type: ignore[arg-type]  # it is one
        parts = {field: one.n_rejected if field == "rejected" else getattr(one, field) for field in became}
        if getattr(one, read) != sum(parts.values()):
            said = " + ".join(f"{n} {field}" for field, n in parts.items())
            faults.append(f"{name}: {getattr(one, read)} {read}, not {said} = {sum(parts.values())}")
    if sum_counts(counts.values(), zero) != sum_counts([totals], zero):
        faults.append("the totals are not the sum of the input files' counts")
    return faults


def sum_counts(counts: Iterable[Summed], zero: Summed) -> Summed:
    """Gives the sum, field by field, of dataclasses of numbers and of numbers by reason.

    Args:
        counts: to add up.
        zero: one of them with nothing counted.
    """
    total = {part.name: getattr(zero, part.name) for part in dataclasses.fields(zero)}  # type: ignore[arg-type]  # it is one
    for count in counts:
        for name, before in total.items():
            more = getattr(count, name)
            if isinstance(more, dict):
                total[name] = {key: before.get(key, 0) + more.get(key, 0) for key in sorted({*before, *more})}
            else:
                total[name] = before + more
    return type(zero)(**total)


def typed_value(value: Any, wanted: Any, where: str) -> Any:
    """Gives a JSON value as the annotated type; ``where`` names it in errors.

    Raises:
        DataError: a field is missing, unknown or of another type.
    """
    if wanted is Any:
        return value
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        hints = typing.get_type_hints(wanted)
        if wanted is FileEntry and isinstance(value, dict):
            value = {"rows": None, **value}
        if not isinstance(value, dict) or set(value) != set(hints):
            odd = sorted(set(value) ^ set(hints)) if isinstance(value, dict) else type(value).__name__
            raise DataError(f"{where}: missing or unknown {odd}; {DAMAGED}")
        return wanted(**{name: typed_value(value[name], hint, f"{where}: {name}") for name, hint in hints.items()})
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is types.UnionType:
        return None if value is None else typed_value(value, arguments[0], where)
    if origin is tuple and isinstance(value, list):
        return tuple(typed_value(one, arguments[0], f"{where}[{number}]") for number, one in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {name: typed_value(one, arguments[1], f"{where}[{name!r}]") for name, one in value.items()}
    if type(value) is wanted:
        return value
    raise DataError(f"{where}: {value!r} is not {wanted}; {DAMAGED}")
