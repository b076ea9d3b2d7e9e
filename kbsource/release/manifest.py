"""The manifest of a release: what went in, what came out, and the files with their hashes.

It holds no clock, no host name and no absolute path: the same inputs, code and options give the same bytes.
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
"""A number of things, as JSON can tell it to any reader."""
Name = typing.Annotated[str, msgspec.Meta(pattern=r"\A[^/\\]*\Z")]
"""What files may be named after."""
PACKAGES = ("kbsource", "mapping", "pipelines")
DAMAGED = "the manifest is damaged or foreign, get or build the release again"
DAMAGED_FILE = "the file is damaged or foreign; get or make the release again, and check it with kbsource verify"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file: path in the release, rows of a table or lines (None where neither counts), bytes, hex sha256."""

    file: str
    rows: Count | None
    bytes: Count
    sha256: str

    @classmethod
    def of(cls, folder: str, file: str, rows: int | None = None) -> typing.Self:
        """The entry of a file that lies in a folder, which is read to be hashed."""
        stored = Folder.of(join(folder, file))
        return cls(file, rows, stored.size(), stored.sha256())


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input by base name, with size in bytes and hex sha256 of the stored (compressed) file."""

    name: str
    bytes: Count
    sha256: str


@dataclass(frozen=True, slots=True)
class InnerRelease:
    """A release in a folder of this one: the folder, and the sha256 that its manifest has of itself."""

    folder: str
    manifest_sha256: str


class SourceFacts(typing.TypedDict, total=False):
    """What a manifest says of a release that something was made from."""

    manifest_sha256: str
    wiki: str | None
    dump_date: str | None


class OptionFacts(typing.TypedDict, total=False):
    """Options that mean the same wherever they are."""

    site: str | None
    sites: list[str] | None
    languages: list[str] | None
    qualifiers: list[str] | None
    formats: list[str]
    templates: str | None


class SiteFacts(typing.TypedDict, total=False):
    """What a manifest says of a wiki."""

    dbname: str
    lang: str
    name: str
    base_url: str


class DumpFacts(typing.TypedDict, total=False):
    """What a manifest says of a dump."""

    date: str | None
    site: SiteFacts


class CommonFacts(typing.TypedDict, total=False):
    """What manifests of any kind may say; a kind of its own adds to it by ``Kind.facts``."""

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
    """Returns a shape for ``Kind.facts``, ``Kind.documents`` and ``Kind.records``: objects whose fields of these names
    have these types. Whoever asks for one that is missing meets a ``MissingFactError``."""
    typed = [(name, type_ | msgspec.UnsetType, msgspec.UNSET) for name, type_ in fields.items()]
    return msgspec.defstruct(name, typed)


def counts_shape(*names: str) -> type[msgspec.Struct]:
    """Returns the shape of objects with a count under each of these names."""
    return shape("counts", **dict.fromkeys(names, Count))


class MissingFactError(DataError, KeyError):
    """A manifest does not say what its kind says. A KeyError, too, for whoever can do without."""

    def __str__(self) -> str:
        return str(self.args[0])


class Values(dict[str, Any]):
    """JSON values of a release, those of objects in them too; what is missing is named by an error.

    Raises:
        MissingFactError: instead of a KeyError.
    """

    def __init__(self, values: Mapping[str, Any], where: str = MANIFEST, remedy: str = DAMAGED) -> None:
        super().__init__({name: _as_values(value, where, remedy) for name, value in values.items()})
        self._where, self._remedy = where, remedy

    def __missing__(self, name: str) -> typing.NoReturn:
        raise MissingFactError(f"{self._where}: it does not say {name!r}; {self._remedy}")


def _as_values(value: Any, where: str, remedy: str) -> Any:
    if isinstance(value, dict):
        return Values(value, where, remedy)
    return [_as_values(own, where, remedy) for own in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What the manifests of all kinds have in common: the format, and every file. A kind adds what else it says."""

    format: str  #: name and version of the kind's layout
    tables: dict[str, tuple[FileEntry, ...]]  #: files of each table in order
    files: tuple[FileEntry, ...] = ()  #: the files that are no tables

    @property
    def parts(self) -> tuple[InnerRelease, ...]:
        """Releases in folders of this one."""
        return ()

    def made_from(self, fact: str = "release") -> str | None:
        """The sha256 of the manifest of a release that this was made from; None where that is not said."""
        return None

    def fact(self, name: str) -> Any:
        """The JSON value of one of the outermost fields.

        Raises:
            MissingFactError: the manifest has no such field.
        """
        raise NotImplementedError

    def entries(self) -> Iterator[FileEntry]:
        """Every file."""
        for entries in self.tables.values():
            yield from entries
        yield from self.files

    def n_rows(self, table: str) -> int:
        """The rows of a table; 0 where there is no such table."""
        return sum(entry.rows or 0 for entry in self.tables.get(table, ()))

    def to_json(self) -> dict[str, Any]:
        """All of it as JSON values."""
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
        """The file's content: JSON with sorted keys, two spaces, a newline at the end."""
        values = self.to_json()
        return canonical_json({**values, "manifest_sha256": hashlib.sha256(canonical_json(values)).hexdigest()})


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedManifest(Manifest):
    """A manifest whose every field has a type: of pages and of Wikidata. In the file ``files`` are called ``index``."""

    schema_version: int  #: of the tables
    code: dict[str, str]
    inputs: tuple[InputFile, ...]
    options: dict[str, Any]  #: options that decide the bytes, as JSON values

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
        known = {one.name for one in dataclasses.fields(cls)} - {"files"} | {"index"}
        if odd := sorted(values.keys() ^ known):
            raise DataError(f"{where}: missing or unknown {odd}; {DAMAGED}")
        typed_value(values["options"], OptionFacts, f"{where}: options", remedy=DAMAGED)
        typed = {**values, "files": _with_rows(values["index"]), "options": Values(values["options"], where)}
        return typed_value(typed, cls, where, remedy=DAMAGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingManifest(Manifest):
    """A manifest of JSON values beside one list of all files: of everything that is made from pages and Wikidata."""

    #: what it says beside format and files: ``release``, ``inputs``, ``options``, ``counts``, …
    facts: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, form: str, entries: Iterable[FileEntry], facts: Mapping[str, Any]) -> typing.Self:
        """The manifest of a format for these files, in the order of their paths."""
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
        files = [dataclasses.asdict(one) for one in sorted(self.entries(), key=lambda entry: entry.file)]
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
    """Wiki and day (``20261001``) of the snapshot that a release is of, out of the JSON values of its manifest; of
    several the newest one. None for what it does not say.

    >>> snapshot_of({"release": {"wiki": "enwiki", "dump_date": "20261001"}, "counts": {}})
    ('enwiki', '20261001')
    """
    dump, release, options = (values.get(name) or {} for name in ("dump", "release", "options"))
    new: Mapping[str, Any] = values.get("new") or next(reversed(values.get("releases") or ()), {})
    wiki = (dump.get("site") or {}).get("dbname") or release.get("wiki") or new.get("wiki") or options.get("site")
    return wiki, dump.get("date") or release.get("dump_date") or new.get("dump_date") or values.get("date")


def sources_of(values: Mapping[str, Any]) -> dict[str, str]:
    """The releases that a release was made from, by what they are to it, as the sha256 of each one's manifest."""
    named = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    named |= {f"release of {one.get('dump_date')}": one for one in values.get("releases") or ()}
    known = {name: value.get("manifest_sha256") for name, value in named.items()}
    return {name: sha256 for name, sha256 in known.items() if isinstance(sha256, str)}


def input_files_of(inputs: Any, option: str = "") -> Iterator[tuple[str, InputFile]]:
    """The files that a manifest says that a release was made from, each with the option that it was given as."""
    named = inputs if isinstance(inputs, Mapping) else {option: inputs}
    for name, files in named.items():
        yield from ((name, InputFile(file["name"], file["bytes"], file["sha256"])) for file in files or ())


def canonical_json(value: object) -> bytes:
    """Gives JSON with sorted keys, two spaces, and a newline at the end."""
    return (json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


@functools.cache
def _code_facts() -> dict[str, str]:
    import platform
    from importlib import metadata  # takes a while, and readers do without

    found = {}
    for distribution in ("pyarrow", "mwparserfromhell"):
        with suppress(metadata.PackageNotFoundError):
            found[distribution] = metadata.version(distribution)
    python = ".".join(platform.python_version_tuple()[:2])
    return {"kbsource": _version(), "python": python, "pyarrow": "none", "mwparserfromhell": "none", **found}


def code_facts() -> dict[str, str]:
    """What made the bytes: the versions of kbsource, Python, pyarrow and mwparserfromhell, ``none`` where one is not
    installed. That of a checkout with changes that are not committed ends in ``+changed``."""
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
    """The files that were read, those of folders by their path in it; a release by its manifest alone."""
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
    """Every table whose rows are not as many as counted."""
    return [
        f"table {table} has {manifest.n_rows(table)} rows, the counts say {n_wanted}"
        for table, n_wanted in expected.items()
        if manifest.n_rows(table) != n_wanted
    ]


class Counted:
    """Records of an input, as a dataclass: how many were read (the first field), and what became of them."""

    __slots__ = ()
    rejected: dict[str, int]  #: by reason

    @property
    def n_rejected(self) -> int:
        """Those rejected, for any reason."""
        return sum(self.rejected.values())


Summed = typing.TypeVar("Summed", bound=Counted)


def sum_faults(counts: Mapping[str, Summed], totals: Summed, zero: Summed) -> list[str]:
    """Every way in which counts contradict each other: what was read is the sum of what became of it, and the
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
    """The sum, field by field, of dataclasses of numbers and of numbers by reason.

    Args:
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


def _with_rows(files: Any) -> Any:
    """Files as JSON, those that count nothing too."""
    if not isinstance(files, list):
        return files
    return [{"rows": None, **file} if isinstance(file, dict) else file for file in files]
