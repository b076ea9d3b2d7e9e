"""What a report says of a release of any kind: what it is, what it was made from, what lies in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kbsource.errors import DataError
from kbsource.files import Storage, join, read_json
from kbsource.release.kind import Kind
from kbsource.release.manifest import Manifest
from mapping.reports.document import Block, Cell, Document, Facts, Section, Share, Table
from mapping.write.kind import REPORT

_SHOWN_APART = {"format", "files", "tables", "index", "inputs", "code", "release", "alignments", "manifest_sha256"}


def any_document(kind: Kind[Any], manifest: Manifest) -> Document:
    """Gives the report on a release of which no more is known than its manifest."""
    values = manifest.to_json()
    own = Table(
        "What the manifest says",
        ("name", "value"),
        tuple(flat_values({name: value for name, value in values.items() if name not in _SHOWN_APART})),
    )
    return Document(release_name(kind, values), (about_section(kind, manifest), Section("Counts and options", (own,))))


def release_name(kind: Kind[Any], values: Mapping[str, Any]) -> str:
    """Gives what a release is called in a heading: its kind, and what its manifest says that tells it from others."""
    made_from = values.get("release") or {}
    known = [values.get("dataset"), values.get("split"), made_from.get("wiki")]
    known.append(made_from.get("dump_date") or values.get("date"))
    return ", ".join(str(name) for name in (kind.name[0].upper() + kind.name[1:], *known) if name)


def about_section(kind: Kind[Any], manifest: Manifest, further: Iterable[tuple[str, Cell]] = ()) -> Section:
    """Gives what every release has: names, inputs with their hashes, tables and other files with their sizes.

    Args:
        kind: of the release.
        manifest: of it.
        further: facts that it has beside those of any.
    """
    values = manifest.to_json()
    code, made_from = values.get("code") or {}, values.get("release") or {}
    facts: list[tuple[str, Cell]] = [("kind", kind.name), ("format", manifest.format), ("made by", kind.made_by)]
    facts += further
    facts += [("version", code["kbsource"])] if "kbsource" in code else []
    named = ("wiki", "dump_date", "manifest_sha256")
    facts += [(f"made from: {name.replace('_', ' ')}", made_from[name]) for name in named if made_from.get(name)]
    facts.append(("manifest sha256", manifest.sha256))
    blocks: list[Block] = [Facts(tuple(facts))]
    if inputs := tuple(_inputs(values.get("inputs") or (), "input")):
        blocks.append(Table("Inputs", ("file", "bytes", "sha256", "given as"), inputs))
    rows = [
        (name, sum(entry.rows or 0 for entry in entries), len(entries), sum(entry.bytes for entry in entries))
        for name, entries in manifest.tables.items()
    ]
    rest = [(entry.file, entry.rows, 1, entry.bytes) for entry in manifest.files]
    total = sum(row[3] for row in (*rows, *rest))
    sizes = tuple((*row, Share(row[3] / total) if total else None) for row in (*rows, *rest))
    if sizes:
        columns = ("table or file", "rows or lines", "files", "bytes", "share of bytes")
        blocks.append(Table("Tables and other files", columns, sizes))
    return Section("What it is", tuple(blocks))


def _inputs(inputs: Any, of: str) -> Iterator[tuple[Cell, ...]]:
    if isinstance(inputs, Mapping):
        for name, files in inputs.items():
            yield from _inputs(files or (), name)
        return
    yield from ((file["name"], file["bytes"], file["sha256"], of) for file in inputs)


def report_of(path: str, storage: Storage) -> dict[str, Any]:
    """Gives the report that lies in a release.

    Raises:
        DataError: it is no JSON object.
    """
    where = join(path, REPORT)
    try:
        report = read_json(storage, where)
    except ValueError as error:
        raise DataError(f"{where}: not JSON ({error}); kbsource verify says what is damaged.") from error
    if not isinstance(report, dict):
        raise DataError(f"{where}: no JSON object; kbsource verify says what is damaged.")
    return report


def table_files(path: str, manifest: Manifest, table: str) -> list[str]:
    """Gives the paths of the files of a table; none where the release has no such table."""
    return [join(path, entry.file) for entry in manifest.tables.get(table, ())]


def flat_values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Gives the values in nested JSON, each with the way to it as its name; a list of texts is one value.

    >>> list(flat_values({"pages": {"read": 2}, "lang": ["en", "de"], "bins": [{"n": 1}]}))
    [('pages read', 2), ('lang', 'en, de'), ('bins 0 n', 1)]
    """
    if isinstance(value, list) and all(isinstance(inner, str) for inner in value):
        value = ", ".join(value)
    inside = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield name, value if not isinstance(value, bool) else str(value).lower()
        return
    for key, inner in inside:
        yield from flat_values(inner, f"{name} {key}".strip())
