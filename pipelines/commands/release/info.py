"""``kbsource info``: what a release is, on one screen."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, facts_table
from pipelines.progress import size
from pipelines.terminal import print_text, styled, table_text

if TYPE_CHECKING:
    from kbsource.release.kind import Kind
    from kbsource.release.manifest import Manifest

_SHA_CHARS = 12
_MOST_ROWS = 24
"""Of tables, files and inputs; the manifest names all of them."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release of any kind")
    parser.add_argument("--json", action="store_true", help="the manifest, as it is")


def _run(args: argparse.Namespace) -> int:
    from kbsource.release.kind import kind_of, read_content
    from mapping.kinds import KINDS
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.release)
    kind = kind_of(read_content(args.release, storage), args.release, KINDS)
    manifest = kind.read(args.release, storage)
    if args.json:
        print(manifest.to_bytes().decode(), end="")
    else:
        print_text(info_text(args.release, kind, manifest))
    return 0


def info_text(path: str, kind: Kind[Any], manifest: Manifest) -> str:
    """Gives what a release is, for reading: facts, counts, what lies in it, and what can be done with it."""
    values = manifest.to_json()
    parts = [facts_table(_facts(kind, manifest, values))]
    if counts := list(_counts(values.get("totals") or values.get("counts") or {})):
        parts.append(_part("counts", facts_table(counts)))
    parts.append(_part("holds", _table([("rows", "size", "files", "place"), *_contents(manifest)], right=range(3))))
    if inputs := list(_inputs(values.get("inputs") or ())):
        parts.append(_part("made of", _table(inputs, right=[0])))
    parts.append(_part("in Python", "\n".join(_python(path.rstrip("/"), kind, manifest))))
    parts.append(_part("next", table_text(_next(shlex.quote(path), kind))))
    return "\n\n".join(parts)


def _facts(kind: Kind[Any], manifest: Manifest, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    dump, made_from = values.get("dump") or {}, values.get("release") or {}
    site, options = dump.get("site") or {}, values.get("options") or {}
    yield "kind", kind.name
    wiki = site.get("dbname") or made_from.get("wiki") or options.get("site")
    date = dump.get("date") or made_from.get("dump_date") or values.get("date")
    languages = [site.get("lang") or values.get("lang"), *(options.get("languages") or ())]
    yield from _known("wiki", wiki)
    yield from _known("snapshot", date and (f"{date[:4]}-{date[4:6]}-{date[6:]}" if len(date) == 8 else date))
    yield from _known("languages", ", ".join(filter(None, languages)))
    yield "release", manifest.sha256[:_SHA_CHARS]
    yield from _known("made from", made_from.get("manifest_sha256", "")[:_SHA_CHARS])
    if code := values.get("code"):
        versions = f"kbsource {code['kbsource']}, Python {code['python']}, PyArrow {code['pyarrow']}"
        yield "made by", f"{kind.made_by} ({versions}, sources {code['sha256'][:_SHA_CHARS]})"
    else:
        yield "made by", kind.made_by
    yield "format", manifest.format


def _known(name: str, value: str | None) -> Iterator[tuple[str, str]]:
    if value:
        yield name, value


def _counts(counts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Gives numbers by name; of numbers that belong together, all in one row."""
    for name, value in counts.items():
        shown = name.replace("_", " ")
        if isinstance(value, int | float):
            yield shown, value
        elif isinstance(value, Mapping):
            own = [f"{key.replace('_', ' ')} {number:,}" for key, number in value.items() if isinstance(number, int)]
            if own:
                yield shown, ", ".join(own)


def _contents(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    for name, entries in manifest.tables.items():
        n_bytes = sum(entry.bytes for entry in entries)
        yield f"{manifest.n_rows(name):,}", size(n_bytes), f"{len(entries):,}", f"{name}/"
    for file in manifest.files:
        yield "" if file.rows is None else f"{file.rows:,}", size(file.bytes), "1", file.file
    for part in manifest.parts:
        yield "", "", "", f"{part.folder}/ (release {part.manifest_sha256[:_SHA_CHARS]})"


def _inputs(inputs: Any) -> Iterator[tuple[str, str]]:
    for files in inputs.values() if isinstance(inputs, Mapping) else (inputs,):
        for file in files:
            yield size(file["bytes"]), file["name"]


def _python(path: str, kind: Kind[Any], manifest: Manifest) -> list[str]:
    from kbsource.files import join
    from kbsource.release.pages.kind import PAGES_RELEASE

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


def _next(path: str, kind: Kind[Any]) -> Iterator[tuple[str, str]]:
    """Gives commands, and what they show; the path is quoted."""
    from kbsource.release.pages.kind import PAGES_RELEASE
    from mapping.write.kind import ALIGNMENT, ALIGNMENTS

    if kind is PAGES_RELEASE:
        yield f"kbsource show {path} TITLE", "a page; or its id, URL or Wikidata item"
        yield f"kbsource templates {path}", "templates that lose most text"
    elif kind in (ALIGNMENT, ALIGNMENTS):
        yield f"kbsource show {path} ID", "what became of a record"
    elif kind.shown_by is not None:
        yield f"kbsource show {path} {kind.shown_by[1].upper()}", f"the rows of a {kind.shown_by[1]}"
    yield f"kbsource inspect {path}", "all of it in a browser"
    yield f"kbsource verify {path}", "is it as it was written?"


def _table(rows: Sequence[Sequence[str]], *, right: Iterable[int]) -> str:
    """Gives the first rows as a table; the manifest has all of them."""
    rest = f"\nand {len(rows) - _MOST_ROWS:,} more; --json names all" if len(rows) > _MOST_ROWS else ""
    return table_text(rows[:_MOST_ROWS], right=right) + rest


def _part(name: str, text: str) -> str:
    return styled(name, "bold") + "".join(f"\n  {line}" for line in text.split("\n"))


COMMAND = Command(
    name="info",
    summary="say what a release is and how to open it",
    description="Says what a release of any kind is: wiki and date of its snapshot, what was counted, its tables\n"
    "with their rows, what it was made of and by which version, how to open it in Python, and what to do next.\n"
    "All of it is from the manifest; kbsource verify says whether it is true.",
    examples=("kbsource info releases/enwiki-20261001", "kbsource info aligned/fever --json"),
    add_arguments=_add_arguments,
    run=_run,
    needs="",
)
