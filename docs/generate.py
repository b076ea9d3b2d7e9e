"""Writes docs/tables.md and docs/commands.md from the code; ``--check`` says whether they are current."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from kbsource.pageviews.sums import PAGEVIEWS
from kbsource.reasons import FALLBACKS, REASONS
from kbsource.schema import OPTIONAL_TABLES, SCHEMA_VERSION, TABLES, WIKIDATA_TABLES
from mapping.amber.schema import TABLES as AMBER_TABLES
from mapping.entity_linking.schema import TABLES as LINKING_TABLES
from mapping.passages.schema import TABLES as PASSAGES_TABLES
from mapping.publish.table_docs import TABLE_HEADS, Known, column_rows, markdown_table
from mapping.qampari.schema import TABLES as QAMPARI_TABLES
from pipelines.cli import COMMANDS
from pipelines.commands.flags.common import Command
from pipelines.commands.flags.map_flags import takers
from pipelines.stores.object_stores import FLAGS, SWITCHES

FOLDER = Path(__file__).resolve().parent


def tables_page() -> str:
    """Gives docs/tables.md."""
    known: Known = {}

    def table(tables: Mapping[str, pa.Schema]) -> str:
        rows: list[tuple[str, ...]] = []
        for name, schema in tables.items():
            rows += [(f"**{name}**", "", TABLE_HEADS[name]), *column_rows(schema, known, name)]
        return markdown_table(("column", "type", "meaning"), rows)

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
        markdown_table(
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
        markdown_table(("argument", "meaning"), rows),
        "## Shared options",
        markdown_table(("argument", "meaning"), shared),
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
