"""The manifest of a release: its inputs, its results, and its files with their hashes.

It contains no clock time, host name or absolute path: the same inputs, code and options produce the same bytes.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import subprocess
import typing
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kbsource import __version__
from kbsource.documents import typed_value
from kbsource.errors import DataError
from kbsource.files import Folder, base_name, join
from kbsource.release.layout import MANIFEST, stored_files, table_of

Count = typing.Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]
"""A count, within the range of integers that every JSON reader represents exactly."""
Name = typing.Annotated[str, msgspec.Meta(pattern=r"\A[^/\\]*\Z")]
"""A name without slash or backslash, which may become part of a file name."""
PACKAGES = ("kbsource", "mapping", "pipelines")
DAMAGED = "the manifest is damaged or was not written by kbsource; download or build the release again"
DAMAGED_FILE = (
    "the file is damaged or was not written by kbsource; download or build the release again, and check "
    "it with kbsource verify"
)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a release: path, number of rows or lines (None if the file has neither), bytes, hex sha256."""

    file: str
    rows: Count | None
    bytes: Count
    sha256: str

    @classmethod
    def of(cls, folder: str, file: str, rows: int | None = None) -> typing.Self:
        """Returns the entry of a file in a folder. The file is read to compute its hash."""
        stored = Folder.of(join(folder, file))
        return cls(file, rows, stored.size(), stored.sha256())


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file: base name, and size in bytes and hex sha256 as stored (compressed)."""

    name: str
    bytes: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class InnerRelease:
    """A release in a folder of this release: the folder, and the checksum of its manifest."""

    folder: str
    manifest_sha256: str


class SourceFacts(typing.TypedDict, total=False):
    """Facts in a manifest about a source: a release from which this release was made."""

    manifest_sha256: str
    wiki: str | None
    dump_date: str | None


class OptionFacts(typing.TypedDict, total=False):
    """Options that have the same meaning in all kinds of release."""

    site: str | None
    sites: list[str] | None
    languages: list[str] | None
    qualifiers: list[str] | None
    formats: list[str]
    templates: str | None


class SiteFacts(typing.TypedDict, total=False):
    """Facts in a manifest about a wiki."""

    dbname: str
    lang: str
    name: str
    base_url: str


class DumpFacts(typing.TypedDict, total=False):
    """Facts in a manifest about a dump."""

    date: str | None
    site: SiteFacts


class CommonFacts(typing.TypedDict, total=False):
    """Fields that manifests of every kind may have. A kind adds fields with ``Kind.facts``."""

    release: SourceFacts | None
    old: SourceFacts | None
    new: SourceFacts | None
    releases: list[SourceFacts]
    alignments: list[InnerRelease]
    inputs: dict[str, list[InputFile] | None] | list[InputFile]
    options: OptionFacts
    counts: dict[str, Any]
    totals: dict[str, Any]
    findings: dict[str, Any]
    dump: DumpFacts
    page_order: str
    code: dict[str, str]
    dataset: Name
    split: Name
    lang: str
    date: str | None
    model: dict[str, Any] | None


def shape(name: str, /, **fields: Any) -> type[msgspec.Struct]:
    """Returns a type for ``Kind.facts``, ``Kind.documents`` and ``Kind.records``, from the names and types of fields.
    Reading a missing field raises ``MissingFactError``.
    """
    typed = [(name, type_ | msgspec.UnsetType, msgspec.UNSET) for name, type_ in fields.items()]
    return msgspec.defstruct(name, typed)


def counts_shape(*names: str) -> type[msgspec.Struct]:
    """Returns the type of objects that have fields with these names, each a count."""
    return shape("counts", **dict.fromkeys(names, Count))


class MissingFactError(DataError, KeyError):
    """A manifest lacks a field. This is also a KeyError, so that callers that can continue without the field may catch
    it.
    """

    def __str__(self) -> str:
        return str(self.args[0])


class Values(dict[str, Any]):
    """A JSON object of a release, which may contain others. A missing field raises an error that names it.

    Raises:
        MissingFactError: in place of a KeyError.
    """

    def __init__(self, values: Mapping[str, Any], where: str = MANIFEST, remedy: str = DAMAGED) -> None:
        super().__init__({name: _as_values(value, where, remedy) for name, value in values.items()})
        self._where, self._remedy = where, remedy

    def __missing__(self, name: str) -> typing.NoReturn:
        raise MissingFactError(f"{self._where}: the entry {name!r} is missing; {self._remedy}")


def _as_values(value: Any, where: str, remedy: str) -> Any:
    if isinstance(value, dict):
        return Values(value, where, remedy)
    return [_as_values(own, where, remedy) for own in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The fields that the manifest of every kind has: the format and the files. A kind adds further fields."""

    format: str  #: name and version of the kind's layout
    tables: dict[str, tuple[FileEntry, ...]]  #: files of each table, in the order of their rows
    files: tuple[FileEntry, ...] = ()  #: the files that are not tables

    @property
    def parts(self) -> tuple[InnerRelease, ...]:
        """The releases in folders of this release."""
        return ()

    def made_from(self, fact: str = "release") -> str | None:
        """Returns the manifest checksum of a release that this one was made from; None if the manifest does not
        record it.
        """
        return None

    def fact(self, name: str) -> Any:
        """Returns the JSON value of a field at the top level.

        Raises:
            MissingFactError: the manifest has no such field.
        """
        raise NotImplementedError

    def entries(self) -> Iterator[FileEntry]:
        """Iterates over the entries of all files."""
        for entries in self.tables.values():
            yield from entries
        yield from self.files

    def n_rows(self, table: str) -> int:
        """Returns the number of rows of a table; 0 if there is no such table."""
        return sum(entry.rows or 0 for entry in self.tables.get(table, ()))

    def to_json(self) -> dict[str, Any]:
        """Returns the manifest as JSON values."""
        raise NotImplementedError

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> typing.Self:
        """Returns the manifest that ``to_json`` wrote; ``where`` names it in errors.

        Raises:
            DataError: a field is missing, unknown or of another type.
        """
        raise NotImplementedError

    @property
    def sha256(self) -> str:
        """The checksum of the manifest's content without the key ``manifest_sha256``, under which the file contains it.
        It identifies the release.
        """
        return hashlib.sha256(canonical_json(self.to_json())).hexdigest()

    def to_bytes(self) -> bytes:
        """Returns the file's content: JSON with sorted keys, indented by two spaces, with a newline at the end."""
        values = self.to_json()
        return canonical_json({**values, "manifest_sha256": hashlib.sha256(canonical_json(values)).hexdigest()})


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedManifest(Manifest):
    """The manifest of a release of pages or of Wikidata. All of its fields are typed. In the file, ``files`` is called
    ``index``.
    """

    schema_version: int  #: schema version of the tables
    code: dict[str, str]
    inputs: tuple[InputFile, ...]
    options: dict[str, Any]  #: options that determine the output, as JSON values

    def fact(self, name: str) -> Any:
        return Values({name: msgspec.to_builtins(getattr(self, name))})[name]

    def to_json(self) -> dict[str, Any]:
        values = msgspec.to_builtins(self)
        files = values.pop("files")
        for file in files:
            del file["rows"]
        return Values({**values, "index": files})

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> typing.Self:
        known = {class_field.name for class_field in dataclasses.fields(cls)} - {"files"} | {"index"}
        if odd := sorted(values.keys() ^ known):
            raise DataError(f"{where}: missing or unknown {odd}; {DAMAGED}")
        typed_value(values["options"], OptionFacts, f"{where}: options", remedy=DAMAGED)
        typed = {**values, "files": _with_rows(values["index"]), "options": Values(values["options"], where)}
        return typed_value(typed, cls, where, remedy=DAMAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingManifest(Manifest):
    """The manifest of every other kind: JSON values, and one list of all files."""

    #: the fields other than format and files: ``release``, ``inputs``, ``options``, ``counts``, …
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, form: str, entries: Iterable[FileEntry], facts: Mapping[str, Any]) -> typing.Self:
        """Returns the manifest of a format for these files, sorted by path."""
        tables: dict[str, list[FileEntry]] = {}
        files: list[FileEntry] = []
        for entry in sorted(entries, key=lambda entry: entry.file):
            table = table_of(entry.file)
            (files if table is None else tables.setdefault(table, [])).append(entry)
        grouped = {table: tuple(own) for table, own in tables.items()}
        return cls(format=form, tables=grouped, files=tuple(files), facts=Values(facts))

    @property
    def parts(self) -> tuple[InnerRelease, ...]:
        return msgspec.convert(self.facts.get("alignments", ()), tuple[InnerRelease, ...])

    def made_from(self, fact: str = "release") -> str | None:
        named = self.facts.get(fact)
        sha256 = named.get("manifest_sha256") if isinstance(named, Mapping) else None
        return sha256 if isinstance(sha256, str) else None

    def fact(self, name: str) -> Any:
        return self.facts[name]

    def to_json(self) -> dict[str, Any]:
        files = [dataclasses.asdict(file_entry) for file_entry in sorted(self.entries(), key=lambda entry: entry.file)]
        listed = [{name: value for name, value in file.items() if value is not None} for file in files]
        return Values({**self.facts, "format": self.format, "files": listed})

    @classmethod
    def from_json(cls, values: dict[str, Any], where: str) -> typing.Self:
        entries = typed_value(
            _with_rows(values.get("files", [])), tuple[FileEntry, ...], f"{where}: files", remedy=DAMAGED
        )
        facts = {name: value for name, value in values.items() if name not in ("format", "files")}
        typed_value(facts, CommonFacts, where, remedy=DAMAGED)
        return cls.of(values["format"], entries, Values(facts, where))


def snapshot_of(values: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Returns the wiki and the date (``20261001``) of a release's snapshot, from the JSON values of its manifest. If
    there are several snapshots, returns those of the newest. A value is None if the manifest does not record it.

    >>> snapshot_of({"release": {"wiki": "enwiki", "dump_date": "20261001"}, "counts": {}})
    ('enwiki', '20261001')
    """
    dump, release, options = (values.get(name) or {} for name in ("dump", "release", "options"))
    new: Mapping[str, Any] = values.get("new") or next(reversed(values.get("releases") or ()), {})
    wiki = (dump.get("site") or {}).get("dbname") or release.get("wiki") or new.get("wiki") or options.get("site")
    return wiki, dump.get("date") or release.get("dump_date") or new.get("dump_date") or values.get("date")


def sources_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Returns the manifest checksums of a release's sources, by their role."""
    named = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    named |= {f"release of {release.get('dump_date')}": release for release in values.get("releases") or ()}
    known = {name: value.get("manifest_sha256") for name, value in named.items()}
    return {name: sha256 for name, sha256 in known.items() if isinstance(sha256, str)}


def input_files_of(inputs: Any, option: str = "") -> Iterator[tuple[str, InputFile]]:
    """Yields the input files in a manifest, each with the option by which it was passed."""
    named = inputs if isinstance(inputs, Mapping) else {option: inputs}
    for name, files in named.items():
        yield from ((name, InputFile(file["name"], file["bytes"], file["sha256"])) for file in files or ())


def canonical_json(value: object) -> bytes:
    """Returns JSON with sorted keys, indented by two spaces, with a newline at the end."""
    return (json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


_DISTRIBUTIONS = ("pyarrow", "mwparserfromhell", "lupa")


@functools.cache
def _code_facts() -> dict[str, str]:
    import platform
    from importlib import metadata  # a slow import, which only writing needs

    found = {}
    for distribution in _DISTRIBUTIONS:
        with suppress(metadata.PackageNotFoundError):
            found[distribution] = metadata.version(distribution)
    python = ".".join(platform.python_version_tuple()[:2])
    return {"kbsource": _version(), "python": python, **dict.fromkeys(_DISTRIBUTIONS, "none"), **found}


def code_facts() -> dict[str, str]:
    """Returns the versions of the code that made the release: kbsource, Python, pyarrow, mwparserfromhell and lupa. A
    library that is not installed has the version ``none``. The version of a checkout with uncommitted changes ends in
    ``+changed``.
    """
    return dict(_code_facts())


def _version() -> str:
    checkout = Path(__file__).parents[2]
    if not (checkout / ".git").exists():
        return __version__
    command = ["git", "-C", str(checkout), "status", "--porcelain", "--", *PACKAGES]
    with suppress(OSError):
        changed = subprocess.run(command, capture_output=True, check=False)
        return f"{__version__}+changed" if changed.stdout else __version__
    return __version__


def input_files(paths: Iterable[str]) -> list[InputFile]:
    """Returns the entries of input files. A file in a folder is named by its path in the folder. For a release, only
    the manifest is listed.
    """
    result = []
    for path in paths:
        manifest = join(path, MANIFEST)
        if Folder.of(manifest).exists():
            result.append((f"{base_name(path)}/{MANIFEST}", manifest))
            continue
        inside = stored_files(path)
        result += [(f"{base_name(path)}/{name}", join(path, name)) for name in inside] or [(base_name(path), path)]
    return [InputFile(name, Folder.of(path).size(), Folder.of(path).sha256()) for name, path in result]


def row_faults(manifest: Manifest, expected: Mapping[str, int]) -> list[str]:
    """Returns a message for each table whose number of rows differs from the expected number."""
    return [
        f"table {table} has {manifest.n_rows(table)} rows, but the counts say {n_wanted}"
        for table, n_wanted in expected.items()
        if manifest.n_rows(table) != n_wanted
    ]


class InputCounts:
    """Base of dataclasses that count the records of an input. The first field is the number of records read; the other
    fields are the numbers of records with each outcome.
    """

    __slots__ = ()
    rejected: dict[str, int]  #: by reason

    @property
    def n_rejected(self) -> int:
        """The number of records rejected, for any reason."""
        return sum(self.rejected.values())


Summed = typing.TypeVar("Summed", bound=InputCounts)


def sum_faults(counts: Mapping[str, Summed], totals: Summed, zero: Summed) -> list[str]:
    """Returns a message for each contradiction among counts. The number of records read must be the sum of the numbers
    by outcome, and the totals must be the sums over the inputs.
    """
    faults = []
    for name, input_counts in [*sorted(counts.items()), ("all inputs", totals)]:
        # it is one
        read, *became = (field.name for field in dataclasses.fields(input_counts))  # type: ignore[arg-type]
        parts = {
            field: input_counts.n_rejected if field == "rejected" else getattr(input_counts, field) for field in became
        }
        if getattr(input_counts, read) != sum(parts.values()):
            said = " + ".join(f"{n} {field}" for field, n in parts.items())
            faults.append(f"{name}: {getattr(input_counts, read)} {read}, not {said} = {sum(parts.values())}")
    if sum_counts(counts.values(), zero) != sum_counts([totals], zero):
        faults.append("the totals are not the sum of the input files' counts")
    return faults


def sum_counts(counts: Iterable[Summed], zero: Summed) -> Summed:
    """Returns the sum of dataclasses, field by field. Their fields are numbers, or dicts of numbers by reason.

    Args:
        zero: an instance in which all numbers are zero.
    """
    # it is one
    total = {part.name: getattr(zero, part.name) for part in dataclasses.fields(zero)}  # type: ignore[arg-type]
    for count in counts:
        for name, before in total.items():
            more = getattr(count, name)
            if isinstance(more, dict):
                total[name] = {key: before.get(key, 0) + more.get(key, 0) for key in sorted({*before, *more})}
            else:
                total[name] = before + more
    return type(zero)(**total)


def _with_rows(files: Any) -> Any:
    """Returns file entries as JSON values, in which ``rows`` is always present."""
    if not isinstance(files, list):
        return files
    return [{"rows": None, **file} if isinstance(file, dict) else file for file in files]
