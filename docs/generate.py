"""Writes docs/tables.md and docs/commands.md from the code; ``--check`` says whether they are current."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from kbsource.pageviews.sums import PAGEVIEWS
from kbsource.reasons import FALLBACKS, REASONS
from kbsource.schema import OPTIONAL_TABLES, SCHEMA_VERSION, TABLES, WIKIDATA_TABLES
from mapping.amber.schema import TABLES as AMBER_TABLES
from mapping.entity_linking.schema import TABLES as LINKING_TABLES
from mapping.passages.schema import TABLES as PASSAGES_TABLES
from mapping.qampari.schema import TABLES as QAMPARI_TABLES
from pipelines.cli import COMMANDS
from pipelines.commands.flags.common import Command
from pipelines.commands.flags.map_flags import takers
from pipelines.stores.object_stores import FLAGS, SWITCHES

FOLDER = Path(__file__).resolve().parent
Known = dict[tuple[str, str, str], str]
"""Where a column of that name, type and meaning is described."""

TABLE_HEADS = {
    "pages": "One row per article: main namespace, not a redirect; disambiguation and list pages included. In the "
    "order of the dump. Spans are half-open `[start, end)` in Unicode code points.",
    "redirects": "One row per redirect page of the main namespace, by title in code-point order.",
    "rejected": "One row per page, or damaged place of a file, that could not be used.",
    "templates": "How often each template is used, by how it was settled, and what it shows; sorted by name.",
    "page_items": "Only with `--wikidata`. One row per page that a sitelink or page_props gives an item, by page id.",
    "items": "One row per item, in the order of the dump. A chosen language takes in its variants (`en-gb` with `en`).",
    "properties": "One row per property, in the order of the dump.",
    "sitelinks": "One row per sitelink to a chosen wiki, in the order of the dump.",
    "statements": "One row per statement of an item or property, in the order of the dump; references are left out. "
    "The columns from `snak` to `globe` stand in the qualifiers again.",
    "pageviews": "One row per title and page of the main namespace that has views, by title in code-point order, then "
    "page id, null first.",
    "sets": "Every AmbER set, one row each, by collection and name.",
    "tuples": "Every property that tells an entity of a set apart, one row each, in the order of the sets.",
    "set_queries": "Every query about an entity of a set, one row each, in the order of the sets, by task.",
    "names": "Every name that several entities share, one of the collection among them, and what became of it; by "
    "collection and name.",
    "questions": "Every question that passed the filter, one row each: simple ones, compositions, intersections, then "
    "questions about tables.",
    "queries": "Every query that was considered, one row each, by kind.",
    "passages": "One row per passage, in the order of the release that they are cut from.",
    "aliases": "One row per mention and page that links with this text lead to: by mention in code-point order, the "
    "most frequent page first, then by page id.",
    "links": "One row per record, in the order of the release: where its link stands.",
    "classes": "For every class all classes above it over P279 (subclass of), by number of the class, then of the "
    "superclass. Deprecated statements are left out. To say whether an item is a film: join its P31 values with "
    "`class_id` where `superclass_id` is Q11424.",
}


def tables_page() -> str:
    """Gives docs/tables.md."""
    known: Known = {}

    def table(tables: Mapping[str, pa.Schema]) -> str:
        rows: list[tuple[str, ...]] = []
        for name, schema in tables.items():
            rows += [(f"**{name}**", "", TABLE_HEADS[name]), *_rows(schema, known, name)]
        return _table(("column", "type", "meaning"), rows)

    parts = [
        "# Tables",
        f"Written by `docs/generate.py` from the schemas of the code, schema version {SCHEMA_VERSION}.",
        table({**TABLES, **OPTIONAL_TABLES}),
        "# Tables of Wikidata",
        _wrapped(
            "What `kbsource wikidata` makes. Ids are text with their letter, as everywhere in Wikidata. Its table "
            "`rejected` has the columns given above."
        ),
        table({name: schema for name, schema in WIKIDATA_TABLES.items() if name not in TABLES}),
        "# Tables of page views",
        "What `kbsource pageviews` makes. Its table `rejected` has the columns given above.",
        table({"pageviews": PAGEVIEWS}),
        "# Tables of QAMPARI",
        "What `kbsource qampari` makes beside the files of questions; see [qampari.md](qampari.md).",
        table(QAMPARI_TABLES),
        "# Tables of AmbER sets",
        "What `kbsource amber` makes; see [amber.md](amber.md).",
        table(AMBER_TABLES),
        "# Tables of passages",
        "What `kbsource passages` makes; see [passages.md](passages.md).",
        table(PASSAGES_TABLES),
        "# Tables of entity linking",
        _wrapped(
            "What `kbsource entity-linking` makes beside the records; see [entity_linking.md](entity_linking.md). Its "
            "table `rejected` has the lines of the exclusion list that name no page."
        ),
        table(LINKING_TABLES),
        "# Reasons and values",
        _table(
            ("value", "meaning"),
            [
                ("**reason**", "why a page or an entity is in `rejected`"),
                *((f"`{one}`", meaning) for one, meaning in REASONS.items()),
                ("**parse_status**", "how a page was extracted"),
                *((f"`{one}`", meaning) for one, meaning in FALLBACKS.items()),
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """Gives docs/commands.md."""
    commands = commands_by_name()
    of_command = {name: {one.dest: one for one in _arguments(command)} for name, command in commands.items()}
    uses = Counter(_row(one) for arguments in of_command.values() for one in arguments.values() if one.option_strings)
    shared = list(dict(row for row, n in reversed(uses.most_common()) if n > 1).items())  # of one name the most used
    rows: list[tuple[str, str]] = []
    for name, command in commands.items():
        arguments = of_command[name].values()
        also = ", ".join(f"`{one.option_strings[0]}`" for one in arguments if _row(one) in shared)
        rows.append(
            (f"**kbsource {name}**", command.summary + (f"; [shared](#shared-options): {also}" if also else ""))
        )
        rows += [row for row in map(_row, arguments) if row not in shared]
    stores = ", ".join(f"`--{name}`" for name in (*FLAGS, *SWITCHES))
    parts = [
        "# Commands",
        _wrapped(
            "Written by `docs/generate.py`. [manual.md](manual.md#commands) says more of each command; "
            "`kbsource COMMAND --help` shows examples too. Arguments with a star are needed. Flags of `map` for one "
            "dataset are in [datasets.md](datasets.md) and [alignment.md](alignment.md#kilt-files)."
        ),
        _table(("argument", "meaning"), rows),
        "## Shared options",
        _table(("argument", "meaning"), shared),
        "## Stores",
        _wrapped(
            f"Every command takes Beam's flags that say where a store is and who asks it: {stores}. "
            "[running.md](running.md#buckets-and-hdfs) says more."
        ),
    ]
    return "\n\n".join(parts) + "\n"


def commands_by_name() -> dict[str, Command]:
    """Gives what can be typed behind ``kbsource``: of a group of commands its parts."""
    found: dict[str, Command] = {}
    for command in COMMANDS:
        found |= {f"{command.name} {part.name}": part for part in command.parts} or {command.name: command}
    return found


def _arguments(command: Command) -> Iterator[argparse.Action]:
    """Gives the arguments of a command, but for those that are of one dataset."""
    parser = argparse.ArgumentParser(prog=f"kbsource {command.name}", add_help=False)
    command.add_arguments(parser)
    of_datasets = takers() if command.name == "map" else {}
    return (one for one in parser._actions if of_datasets.keys().isdisjoint(one.option_strings))


def _row(action: argparse.Action) -> tuple[str, str]:
    mark = "\\*" if action.required else ""
    name = ", ".join(f"`{option}`{mark}" for option in action.option_strings)
    choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest
    value = action.metavar if isinstance(action.metavar, str) else choices
    shown = f"{name} {value}" if name and action.nargs != 0 else name or f"`{value}`{mark}"
    return shown, (action.help or "") % {"default": action.default}


def _rows(fields: Iterable[pa.Field], known: Known, place: str, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Gives the rows of fields; several in a row that are like others further up stand in one, which names these."""
    described = [(known.get(_said(field)), field) for field in fields]
    for origin, run in groupby(described, key=lambda one: one[0]):
        group = [field for _, field in run]
        if origin is not None and len(group) > 1:
            yield path + ", ".join(f"`{field.name}`" for field in group), "", f"as in {origin}"
            continue
        for field in group:
            name, type_, meaning = _said(field)
            known[name, type_, meaning] = place
            yield f"{path}`{name}`", type_, meaning
            inner = field.type
            while pa.types.is_list(inner):
                inner = inner.value_type
            if pa.types.is_struct(inner):
                yield from _rows(inner, known, f"{place} › {field.name}", f"{path}{field.name} › ")


def _said(field: pa.Field) -> tuple[str, str, str]:
    """Gives name, type and meaning of a column."""
    meaning = (field.metadata or {})[b"description"].decode().replace("|", "\\|")
    return field.name, _type_name(field.type) + (", or null" if field.nullable else ""), meaning


def _type_name(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return "struct" if pa.types.is_struct(type_) else str(type_)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def main(argv: list[str]) -> int:
    """Writes the pages, or checks them, and gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is not current")
    args = parser.parse_args(argv)
    stale = []
    for name, content in (("tables.md", tables_page()), ("commands.md", commands_page())):
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != content:
            stale.append(name)
            if not args.check:
                path.write_text(content, "utf-8")
    if args.check and stale:
        sys.stderr.write(f"not current: {', '.join(stale)}; run python docs/generate.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
