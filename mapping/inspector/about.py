"""Describes a release of any kind from its manifest: what it is, its inputs and contents, and how to open it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from kbsource.files import join
from kbsource.release.kind import Kind
from kbsource.release.manifest import Manifest, input_files_of, snapshot_of
from kbsource.release.pages.kind import PAGES_RELEASE
from mapping.document import Block, Cell, Facts, Link, Section, Share, TableSection, flat_values
from mapping.write.kind import ALIGNMENT, ALIGNMENTS, REPORT

if TYPE_CHECKING:
    from mapping.inspector.opened import OpenRelease

_SHOWN_APART = {"format", "files", "tables", "index", "inputs", "code", "release", "alignments", "manifest_sha256"}
_TABLES_OF_A_CARD = 3
_FILES_OF_A_FOLDER = 20
"""Maximum number of files of a folder that are listed one by one. If there are more, they share one line."""


def release_name(kind: Kind[Any], values: Mapping[str, Any]) -> str:
    """Returns the name of a release in headings: its kind, and the manifest values that distinguish it from others."""
    wiki, date = snapshot_of(values)
    if old := values.get("old"):
        date = f"{old.get('dump_date') or 'unknown date'} to {date or 'unknown date'}"
    known = [values.get("dataset"), values.get("split"), wiki, date]
    return ", ".join(str(name) for name in (kind.name[0].upper() + kind.name[1:], *known) if name)


class ReleaseCard(NamedTuple):
    """An entry in the list of open releases."""

    opened: OpenRelease  #: the release that the card describes
    snapshot: str  #: wiki and date, or dataset and split; empty if the manifest names none
    tables: Sequence[tuple[str, int]]  #: names of the first tables of the release, each with its number of rows
    n_bytes: int  #: size of all files of the release, in bytes
    made_from: Sequence[OpenRelease]  #: open releases that this release was made from
    makes: Sequence[OpenRelease]  #: open releases that were made from this release


def release_cards(releases: Sequence[OpenRelease]) -> list[ReleaseCard]:
    """Returns a card for each open release, in their order."""
    sources = {opened.slug: list(dict.fromkeys(opened.sources.values())) for opened in releases}
    cards = []
    for opened in releases:
        _, _, snapshot = release_name(opened.kind, opened.values).partition(", ")
        entries = [entry for own in (opened, *opened.parts) for entry in own.manifest.entries()]
        kind = opened.kind if opened.kind.parts is None else opened.kind.parts
        own = ((name, opened.tables[name].n_rows) for name in kind.tables if name in opened.tables)
        tables = [(name.replace("_", " "), n_rows) for name, n_rows in own if n_rows]
        makes = [other for other in releases if opened.slug in {source.slug for source in sources[other.slug]}]
        n_bytes = sum(entry.bytes for entry in entries)
        cards.append(ReleaseCard(opened, snapshot, tables[:_TABLES_OF_A_CARD], n_bytes, sources[opened.slug], makes))
    return cards


def release_facts(kind: Kind[Any], manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Lists kind, wiki, date and languages of a release, the code that built it, and the names that identify it."""
    values = manifest.to_json()
    dump, made_from, code = values.get("dump") or {}, values.get("release") or {}, values.get("code") or {}
    site, options = dump.get("site") or {}, values.get("options") or {}
    wiki, date = snapshot_of(values)
    languages = [site.get("lang") or values.get("lang"), *(options.get("languages") or ())]
    sides = {name: values.get(side) or {} for name, side in (("older release", "old"), ("newer release", "new"))}
    facts = {
        "kind": kind.name,
        "wiki": wiki,
        "name": site.get("sitename") or site.get("name"),
        "snapshot": f"{date[:4]}-{date[4:6]}-{date[6:]}" if date and len(date) == 8 else date,
        "languages": ", ".join(filter(None, languages)),
        "export schema": dump.get("export_version"),
        "order of pages": (values.get("page_order") or "").replace("_", " "),
        "made by": kind.made_by,
        "version": ", ".join(f"{name} {code[name]}" for name in ("kbsource", "python", "pyarrow") if name in code),
        "format": manifest.format,
        "manifest sha256": manifest.sha256,
        "made from": made_from.get("manifest_sha256"),
        **{
            name: f"{side['wiki']} of {side['dump_date'] or 'unknown date'}, {side['manifest_sha256']}"
            for name, side in sides.items()
            if side
        },
    }
    yield from ((name, value) for name, value in facts.items() if value)


def release_counts(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Lists the counts of a manifest by name. Related numbers are joined into one text."""
    for name, value in (values.get("totals") or values.get("counts") or {}).items():
        said = name.replace("_", " ")
        if isinstance(value, int | float):
            yield said, value
        elif isinstance(value, Mapping):
            own = [f"{key.replace('_', ' ')} {number:,}" for key, number in value.items() if isinstance(number, int)]
            if own:
                yield said, ", ".join(own)


def holdings(opened: OpenRelease, *, has_counts: bool) -> Section:
    """Returns the section on the contents of a release: the counts in its manifest, its tables and other files with
    their sizes, and the releases in it. ``has_counts`` is true if another section shows the counts."""
    blocks: list[Block] = []
    if not has_counts and (counts := tuple(release_counts(opened.values))):
        blocks.append(Facts(counts))
    if sizes := tuple(_sizes(opened)):
        columns = ("table or file", "rows or lines", "files", "bytes", "share of bytes")
        blocks.append(TableSection("Tables and other files", columns, sizes))
    if opened.parts:
        tables = tuple(dict.fromkeys(name for part in opened.parts for name in part.tables))
        counted = (
            [part.tables[name].n_rows if name in part.tables else None for name in tables] for part in opened.parts
        )
        parts = tuple(
            (Link(folder.folder, part.url()), part.kind.name, *own)
            for folder, part, own in zip(opened.manifest.parts, opened.parts, counted, strict=True)
        )
        blocks.append(TableSection("Releases in it", ("folder", "kind", *tables), parts))
    return Section("What it holds", tuple(blocks))


def provenance(opened: OpenRelease) -> Section:
    """Returns the folded section on the identity of a release: its names and hashes, the code that made it, and its
    inputs."""
    facts: list[tuple[str, Cell]] = []
    for name, value in release_facts(opened.kind, opened.manifest):
        is_open = name == "made from" and opened.made_from is not None
        facts.append((name, Link(value, opened.made_from.url()) if is_open and opened.made_from else value))
    blocks: list[Block] = [Facts(tuple(facts))]
    if inputs := list(input_files_of(opened.values.get("inputs"), "input")):
        rows = tuple((file.name, file.bytes, file.sha256, option) for option, file in inputs)
        blocks.append(TableSection("Inputs", ("file", "bytes", "sha256", "given as"), rows))
    return Section("What it is and was made from", tuple(blocks), is_folded=True)


def _sizes(opened: OpenRelease) -> Iterator[tuple[Cell, ...]]:
    total = sum(entry.bytes for entry in opened.manifest.entries()) or 1
    for name, entries in opened.manifest.tables.items():
        n_bytes = sum(entry.bytes for entry in entries)
        link = Link(name, opened.url(f"tables/{name}"))
        yield link, opened.manifest.n_rows(name), len(entries), n_bytes, Share(n_bytes / total)
    for top, group in groupby(opened.manifest.files, lambda file: file.file.partition("/")[0]):
        own = [(file.file, file.rows, 1, file.bytes) for file in group]
        if len(own) > _FILES_OF_A_FOLDER:
            rows = [n_rows for _, n_rows, _, _ in own if n_rows is not None]
            n_rows = sum(rows) if len(rows) == len(own) else None
            own = [(f"{top}/", n_rows, len(own), sum(n_bytes for *_, n_bytes in own))]
        yield from ((*file, Share(file[-1] / total)) for file in own)


def other_values(opened: OpenRelease, apart: Iterable[str] = ()) -> Section:
    """Returns the folded section of the other values in the manifest, except those named in ``apart``."""
    left_out = _SHOWN_APART.union(apart)
    values = {name: value for name, value in opened.values.items() if name not in left_out}
    table = TableSection("Manifest", ("name", "value"), tuple(flat_values(values)))
    return Section("Counts and options", (table,), is_folded=True)


def stored_report(opened: OpenRelease) -> dict[str, Any]:
    """Returns the report stored in a release.

    Raises:
        DataError: it is not a valid report of its kind.
    """
    return opened.kind.read_document(opened.path, REPORT)


def python_lines(path: str, kind: Kind[Any], manifest: Manifest) -> list[str]:
    """Returns Python code that opens a release."""
    if kind is PAGES_RELEASE:
        return [
            "from kbsource.lookup import KnowledgeSource",
            f"kb = KnowledgeSource.open({path!r})",
            'page = kb.by_title("…")  # by_id, by_url, by_qid; or: for page in kb',
        ]
    if manifest.tables:
        largest = max(manifest.tables, key=manifest.n_rows)
        return ["import pyarrow.parquet as pq", f"table = pq.read_table({join(path, largest)!r})"]
    if manifest.parts:
        first = shlex.quote(join(path, manifest.parts[0].folder))
        return [f"# each folder is a release of its own: kbsource info {first}"]
    lines = next((file.file for file in manifest.files if file.file.endswith(".jsonl")), None)
    if lines is None:
        return [f"# files of their own form; read them in {path}"]
    return ["import json", f"rows = [json.loads(line) for line in open({join(path, lines)!r})]"]


def next_commands(path: str, kind: Kind[Any]) -> Iterator[tuple[str, str]]:
    """Lists commands that open a release, each with a description. The path is quoted for the shell."""
    if kind is PAGES_RELEASE:
        yield f"kbsource show {path} TITLE", "shows a page, given its title, id, URL or Wikidata item"
        yield f"kbsource export {path} --format jsonl --text plain", "writes plain text, one page per line"
        yield f"kbsource templates {path}", "lists the templates that lose the most text"
    elif kind in (ALIGNMENT, ALIGNMENTS):
        yield f"kbsource show {path} ID", "shows the outcome of a record"
    elif kind.shown_by and kind.shown_by[0][0] != "rejected":
        column = kind.shown_by[0][1].replace("page_id__number", "passage_id")
        yield f"kbsource show {path} {column.upper()}", f"shows the rows with this {column}"
    if kind.tables or kind.parts is not None:
        yield f"kbsource sql {path}", "lists tables, columns and example queries"
    yield f"kbsource inspect {path}", "shows the whole release in a browser"
    yield f"kbsource verify {path}", "checks that the release is complete and unchanged"
