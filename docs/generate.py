"""Writes docs/tables.md and docs/commands.md from the code; ``--check`` says whether they are current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from kbsource.reasons import FALLBACKS, REASONS
from kbsource.schema import OPTIONAL_TABLES, SCHEMA_VERSION, TABLES, WIKIDATA_TABLES
from mapping.passages.schema import TABLES as PASSAGES_TABLES
from mapping.qampari.schema import TABLES as QAMPARI_TABLES
from mapping.sources import DATASETS
from pipelines.cli import COMMANDS
from pipelines.commands.flags.common import Command
from pipelines.runners.presets import PRESETS
from pipelines.stores.object_stores import FLAGS, SWITCHES

FOLDER = Path(__file__).resolve().parent

TABLE_HEADS = {
    "pages": "One row per article: main namespace, not a redirect; disambiguation and list pages included. In the "
    "order of the dump. Spans are half-open `[start, end)` in Unicode code points.",
    "redirects": "One row per redirect page of the main namespace, by title in code-point order.",
    "rejected": "One row per page, or damaged place of a file, that could not be used.",
    "templates": "How often each template is used, by outcome, sorted by name.",
    "page_items": "Only with `--wikidata`. One row per page that a sitelink or page_props gives an item, by page id.",
    "items": "One row per item, in the order of the dump. A chosen language takes in its variants (`en-gb` with `en`).",
    "properties": "One row per property, in the order of the dump.",
    "sitelinks": "One row per sitelink to a chosen wiki, in the order of the dump.",
    "statements": "One row per statement of an item or property, in the order of the dump; references are left out. "
    "The columns from `snak` to `globe` stand in the qualifiers again.",
    "questions": "Every question that passed the filter, one row each: simple ones, compositions, intersections, then "
    "questions about tables.",
    "queries": "Every query that was considered, one row each, by kind.",
    "passages": "One row per passage, in the order of the release that they are cut from.",
    "classes": "For every class all classes above it over P279 (subclass of), by number of the class, then of the "
    "superclass. Deprecated statements are left out. To say whether an item is a film: join its P31 values with "
    "`class_id` where `superclass_id` is Q11424.",
}


def tables_page() -> str:
    """Gives docs/tables.md."""
    parts = [
        "# Tables",
        f"Written by `docs/generate.py` from `kbsource/schema.py`, schema version {SCHEMA_VERSION}. Columns may be "
        "null only where it says so.",
    ]
    for name, schema in {**TABLES, **OPTIONAL_TABLES}.items():
        parts += _described(name, schema)
    parts += [
        "# Tables of Wikidata",
        "What `kbsource wikidata` makes. Ids are text with their letter, as everywhere in Wikidata. Its table "
        "`rejected` has the columns given above.",
    ]
    for name, schema in WIKIDATA_TABLES.items():
        parts += [] if name in TABLES else _described(name, schema)
    parts += [
        "# Tables of QAMPARI",
        "What `kbsource qampari` makes beside the files of questions; see [qampari.md](qampari.md).",
    ]
    for name, schema in QAMPARI_TABLES.items():
        parts += _described(name, schema)
    parts += ["# Tables of passages", "What `kbsource passages` makes; see [passages.md](passages.md)."]
    for name, schema in PASSAGES_TABLES.items():
        parts += _described(name, schema)
    parts += [
        "# Values",
        "## Reasons of rejection",
        _table(("reason", "meaning"), ((f"`{one}`", meaning) for one, meaning in REASONS.items())),
        "## Values of parse_status",
        _table(("value", "meaning"), ((f"`{one}`", meaning) for one, meaning in FALLBACKS.items())),
    ]
    return "\n\n".join(parts) + "\n"


def _described(name: str, schema: pa.Schema) -> list[str]:
    return [f"## {name}", TABLE_HEADS[name], _table(("column", "type", "meaning"), _rows(schema, ""))]


def commands_page() -> str:
    """Gives docs/commands.md."""
    parts = [
        "# Commands",
        "Written by `docs/generate.py` from the options of jobs and datasets. [manual.md](manual.md) explains more.",
    ]
    for command in COMMANDS:
        parts += _command(command, command.name)
        for part in command.parts:
            parts += _command(part, f"{command.name} {part.name}")
    parts += [
        "## Runners",
        _table(("`--runner`", "meaning"), ((f"`{name}`", meaning) for name, meaning in PRESETS.items())),
        "Every other name is passed to Beam, which must know it.",
        "## Stores",
        "Every command takes Beam's flags that say where a store is and who asks it: "
        + ", ".join(f"`--{name}`" for name in (*FLAGS, *SWITCHES))
        + ". [running.md](running.md#buckets-and-hdfs) says more.",
    ]
    return "\n\n".join(parts) + "\n"


def _command(command: Command, name: str) -> Iterator[str]:
    yield f"## kbsource {name}"
    yield command.description.replace("\n", " ")
    if command.parts:
        return
    parser = argparse.ArgumentParser(prog=f"kbsource {name}", add_help=False)
    command.add_arguments(parser)
    rows = []
    for action in parser._actions:
        name = ", ".join(f"`{option}`" for option in action.option_strings)
        choices = f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest
        value = action.metavar if isinstance(action.metavar, str) else choices
        takes_value = action.nargs != 0
        shown = f"{name} {value}" if name and takes_value else name or f"`{value}`"
        meaning = (action.help or "") % {"default": action.default}
        rows.append((shown, "yes" if action.required else "", meaning))
    yield _table(("argument", "required", "meaning"), rows)
    if command.name == "map":
        yield _table(("dataset", "what it is"), ((f"`{name}`", one.summary) for name, one in DATASETS.items()))
    yield "```\n" + "\n".join(command.examples) + "\n```"


def _rows(fields: pa.Schema | pa.StructType, indent: str) -> Iterator[tuple[str, str, str]]:
    for field in fields:
        meaning = (field.metadata or {})[b"description"].decode()
        yield (
            f"{indent}`{field.name}`",
            _type_name(field.type) + (", may be null" if field.nullable else ""),
            meaning.replace("|", "\\|"),
        )
        inner = field.type
        while pa.types.is_list(inner):
            inner = inner.value_type
        if pa.types.is_struct(inner):
            yield from _rows(inner, f"{indent}{field.name} › ")


def _type_name(type_: pa.DataType) -> str:
    if pa.types.is_list(type_):
        return f"list of {_type_name(type_.value_type)}"
    return "struct" if pa.types.is_struct(type_) else str(type_)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


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
