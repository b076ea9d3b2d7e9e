"""The manifest of a release: what went in, what came out, and under which laws.

It holds no clock, no host name and no absolute path: the same inputs, code and options give the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import json
import platform
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from kbsource import __version__
from kbsource.errors import DataError, SetupError
from kbsource.files import Storage, atomic_write, base_name, join
from kbsource.release.layout import INDEX, MANIFEST, no_release
from kbsource.schema import SCHEMA_VERSION, TABLES
from kbsource.site import Site

FORMAT = "kbsource-release-1"
PAGE_ORDERS = ("by_page_id", "as_dumped")
PACKAGES = ("kbsource", "mapping", "pipelines")
_DAMAGED = "the manifest is damaged or foreign, get or build the release again"
SOURCE_SUFFIXES = frozenset({".py", ".toml", ".json"})


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a table: path in the release, rows, size in bytes, hex sha256."""

    file: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One index file: path in the release, size in bytes, hex sha256."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class InputFile:
    """One input by base name, with size in bytes and hex sha256 of the stored (compressed) file."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the pages read; law: pages_read = articles + redirects + other_namespaces + rejected."""

    pages_read: int = 0
    articles: int = 0
    redirects: int = 0
    other_namespaces: int = 0
    rejected: dict[str, int] = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        reasons = sorted({*self.rejected, *other.rejected})
        return Counts(
            self.pages_read + other.pages_read,
            self.articles + other.articles,
            self.redirects + other.redirects,
            self.other_namespaces + other.other_namespaces,
            {reason: self.rejected.get(reason, 0) + other.rejected.get(reason, 0) for reason in reasons},
        )

    @property
    def n_rejected(self) -> int:
        """Pages rejected, for any reason."""
        return sum(self.rejected.values())


@dataclass(frozen=True, slots=True)
class Code:
    """What made the bytes: versions, and the sha256 over the source files of the three packages."""

    kbsource: str
    python: str
    pyarrow: str
    mwparserfromhell: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Dump:
    """What the dump says about itself; ``date`` as in the files' names, None when they have none."""

    date: str | None
    export_version: str
    site: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TemplateCount:
    """How often an unknown template is used, and on how many pages."""

    name: str
    uses: int
    pages: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A Wikidata item that a page claimed and did not get, as ``page_id`` has it."""

    qid: str
    page_id: int
    refused_page_id: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that is known about a release.

    Attributes:
        format, schema_version: versions of the layout and of the tables.
        options: options that decide the bytes, as JSON values.
        tables: files of each table in order; the position of a pages file is its shard number.
        counts, totals: per input file by base name, and their sum.
        parse_statuses: articles per ``parse_status``.
        unknown_templates: the most used ones; the ``templates`` table has all.
        qid_conflicts: all of them.
        findings: other counts that a reader should know of: ``duplicate_titles``, ``invalid_qids``, ….
        page_order: ``by_page_id`` when ids ascend within each shard, else ``as_dumped``.
    """

    code: Code
    inputs: tuple[InputFile, ...]
    dump: Dump
    options: dict[str, Any]
    tables: dict[str, tuple[FileEntry, ...]]
    index: tuple[IndexFile, ...]
    counts: dict[str, Counts]
    totals: Counts
    parse_statuses: dict[str, int]
    unknown_templates: tuple[TemplateCount, ...]
    qid_conflicts: tuple[Conflict, ...]
    findings: dict[str, int]
    page_order: str
    format: str = FORMAT
    schema_version: int = SCHEMA_VERSION

    @property
    def site(self) -> Site:
        """The wiki's facts."""
        return Site.from_json(self.dump.site)

    def to_bytes(self) -> bytes:
        """Gives the file's content: JSON with sorted keys, two spaces, a newline at the end.

        ``manifest_sha256`` in it is the sha256 of the same content without that key: it guards the manifest
        itself.
        """
        value = dataclasses.asdict(self)
        return canonical_json({**value, "manifest_sha256": hashlib.sha256(canonical_json(value)).hexdigest()})


class AnyManifest(Protocol):
    """What the manifests of all kinds of release have in common."""

    @property
    def tables(self) -> dict[str, tuple[FileEntry, ...]]: ...
    @property
    def index(self) -> tuple[IndexFile, ...]: ...
    def to_bytes(self) -> bytes: ...


def canonical_json(value: object) -> bytes:
    """Gives JSON with sorted keys, two spaces, and a newline at the end."""
    return (json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def code_facts() -> Code:
    """Gives the versions of this installation and the hash of its source files."""
    return Code(
        kbsource=__version__,
        python=".".join(platform.python_version_tuple()[:2]),
        pyarrow=importlib.metadata.version("pyarrow"),
        mwparserfromhell=importlib.metadata.version("mwparserfromhell"),
        sha256=_source_hash(),
    )


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


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Gives the sum."""
    return sum(counts, Counts())


def count_faults(manifest: Manifest) -> list[str]:
    """Gives every way in which the counts disagree with each other or with the tables' rows."""
    faults = []
    for name, one in [*sorted(manifest.counts.items()), ("all inputs", manifest.totals)]:
        total = one.articles + one.redirects + one.other_namespaces + one.n_rejected
        if one.pages_read != total:
            faults.append(
                f"{name}: {one.pages_read} read, not {one.articles} articles + {one.redirects} redirects"
                f" + {one.other_namespaces} in other namespaces + {one.n_rejected} rejected = {total}"
            )
    if sum_counts(manifest.counts.values()) != manifest.totals + Counts():
        faults.append("the totals are not the sum of the input files' counts")
    expected = {
        "pages": manifest.totals.articles,
        "redirects": manifest.totals.redirects,
        "rejected": manifest.totals.n_rejected,
    }
    for table, n_wanted in expected.items():
        n_rows = sum(entry.rows for entry in manifest.tables.get(table, ()))
        if n_rows != n_wanted:
            faults.append(f"table {table} has {n_rows} rows, the counts say {n_wanted}")
    n_statuses = sum(manifest.parse_statuses.values())
    if n_statuses != manifest.totals.articles:
        faults.append(f"parse statuses sum up to {n_statuses}, articles are {manifest.totals.articles}")
    return faults


def check_counts(manifest: Manifest) -> None:
    """Raises where pages went missing or were counted twice.

    Raises:
        DataError: names every count that does not add up.
    """
    if faults := count_faults(manifest):
        raise DataError("counts do not add up, pages were lost or counted twice: " + "; ".join(faults))


def write_manifest(manifest: AnyManifest, output: str, storage: Storage) -> None:
    """Writes the manifest under its name in one step."""
    with atomic_write(storage, join(output, MANIFEST)) as file:
        file.write(manifest.to_bytes())


def read_manifest(output: str, storage: Storage) -> Manifest:
    """Gives the manifest of a finished release.

    Raises:
        SetupError: there is none, it is no manifest, or it is of another version; a DataError for a damaged one.
    """
    path = join(output, MANIFEST)
    if not storage.exists(path):
        raise SetupError(f"{output}: {no_release(output, storage)}")
    with storage.open_read(path) as file:
        content = file.read()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); {_DAMAGED}") from error
    manifest = parse_manifest(value, path)
    if manifest.to_bytes() != content:
        raise DataError(f"{path}: changed since it was written; {_DAMAGED}")
    return manifest


def index_folder(path: str, manifest: Manifest, storage: Storage, *, files: Iterable[str] | None = None) -> str:
    """Gives a local folder with the index files of a release, see ``Storage.local_copy``.

    Args:
        path: folder of the release.
        manifest: of the release.
        storage: of the folder.
        files: paths in the release of those that are needed; None for all.

    Raises:
        DataError: a file of a remote release is missing.
    """
    names = [base_name(file) for file in (files or (entry.file for entry in manifest.index))]
    return storage.local_copy(join(path, INDEX), names, version=" ".join(entry.sha256 for entry in manifest.index))


def _kind(format_name: object) -> str:
    """
    >>> _kind("kbsource-release-1")
    'kbsource-release'
    """
    return str(format_name).rpartition("-")[0]


def parse_manifest(value: object, path: str) -> Manifest:
    """Gives the manifest that JSON values describe.

    Raises:
        SetupError: another format or version; a DataError for a field that is missing, unknown or of another type.
    """
    if not isinstance(value, dict) or "format" not in value:
        raise SetupError(f"{path}: not a manifest of kbsource; name the folder of a release")
    if _kind(value["format"]) != _kind(FORMAT):
        raise SetupError(
            f"{path}: this is no release of pages, its format is {value['format']!r}; name the folder that kbsource "
            "build wrote"
        )
    if value["format"] != FORMAT or value.get("schema_version") != SCHEMA_VERSION:
        raise SetupError(
            f"{path}: format {value['format']!r}, schema version {value.get('schema_version')!r}, of another version, "
            f"where {FORMAT!r}, {SCHEMA_VERSION} is wanted; use the kbsource that built it, or build again"
        )
    fields = {name: one for name, one in value.items() if name != "manifest_sha256"}
    manifest: Manifest = typed_value(fields, Manifest, path)
    if missing := sorted(set(TABLES) - set(manifest.tables)):
        raise DataError(f"{path}: table {missing[0]} is missing; {_DAMAGED}")
    return manifest


def typed_value(value: Any, wanted: Any, where: str) -> Any:
    """Gives a JSON value as the annotated type; ``where`` names it in errors.

    Raises:
        DataError: a field is missing, unknown or of another type.
    """
    if wanted is Any:
        return value
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        hints = typing.get_type_hints(wanted)
        if not isinstance(value, dict) or set(value) != set(hints):
            odd = sorted(set(value) ^ set(hints)) if isinstance(value, dict) else type(value).__name__
            raise DataError(f"{where}: missing or unknown {odd}; {_DAMAGED}")
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
    raise DataError(f"{where}: {value!r} is not {wanted}; {_DAMAGED}")
