"""Writes the pages of ``PAGES`` from the code; ``--check`` reports whether they are current."""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

from cyclopts import App

from kbsource.errors import FALLBACKS, REASONS
from kbsource.rows import SCHEMA_VERSION
from mapping.column_meanings import Known, column_rows, table_head
from mapping.kinds import KINDS
from mapping.options import DEFAULTS
from mapping.publish.card import markdown_table
from mapping.serving.operations import OPERATIONS, SHAPES, STATUS
from pipelines.app import docstring_examples, make_app
from pipelines.commands import COMMANDS, GROUPS, Command

FOLDER = Path(__file__).resolve().parent


def tables_page() -> str:
    """Returns docs/tables.md."""
    known: Known = {}
    described: set[str] = set()
    parts = [
        "# Tables",
        _wrapped(
            f"Written by `docs/generate.py` from the schemas of the code, schema version {SCHEMA_VERSION}. Ids of "
            "Wikidata are texts that include their letter, as everywhere in Wikidata. Several kinds of release have a "
            "table `rejected`, with the same columns; it is described once."
        ),
    ]
    for kind in KINDS:
        rows: list[tuple[str, ...]] = []
        for name in kind.tables:
            if name not in described:
                described.add(name)
                rows += [(f"**{name}**", "", table_head(name)), *column_rows(kind.schemas(name)[-1], known, name)]
        if rows:
            parts += [
                f"## {kind.name[0].upper()}{kind.name[1:]}",
                f"Written by `{kind.made_by}`; see {_guide(COMMANDS[kind.made_by.split()[1]])}.",
                markdown_table(("column", "type", "meaning"), rows),
            ]
    parts += [
        "## Reasons and values",
        markdown_table(
            ("value", "meaning"),
            [
                ("**reason**", "why a page or an entity was rejected"),
                *((f"`{reason}`", meaning) for reason, meaning in REASONS.items()),
                ("**parse_status**", "how a page was extracted"),
                *((f"`{fallback}`", meaning) for fallback, meaning in FALLBACKS.items()),
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """Returns docs/commands.md."""
    app = make_app()
    parts = [
        "# Commands",
        _wrapped(
            "Written by `docs/generate.py` from the code of the commands. `kbsource COMMAND --help` prints the same "
            "text. Required inputs are arguments after the command's name, the release first. Optional inputs are "
            "options. The output is `--output`. Every command accepts `--json`, which prints its summary as one JSON "
            "object, and `--storage KEY=VALUE`, which may be repeated. `--storage` sets a storage endpoint or "
            "credentials; the key is the name of the environment variable in lower case "
            "(`--storage aws_endpoint_url=http://store:9000`). See [running.md](running.md#buckets-and-hdfs). Jobs "
            "also accept options of Beam."
        ),
    ]
    rows = [
        (f"[`kbsource {command.name}`](#kbsource-{command.name})", command.summary, _guide(command))
        for command in COMMANDS.values()
    ]
    parts.append(markdown_table(("command", "what it does", "explained in"), rows))
    for group, commands in GROUPS.items():
        parts.append(f"## {group}")
        for command in commands:
            typed = app[command.name]
            parts.append(_section(typed, command.name))
            # Only options that all datasets share; datasets.md has the options of each one.
            names = ("jsonl", "all") if command.name == "map" else [name for name in typed if not name.startswith("-")]
            parts += [_section(typed[name], f"{command.name} {name}") for name in names]
    return "\n\n".join(parts) + "\n"


def operations_page() -> str:
    """Returns docs/operations.md."""
    parts = [
        "# Operations",
        _wrapped(
            "Written by `docs/generate.py` from the classes of `mapping.serving.operations`. `kbsource serve` offers "
            "each operation as a route: send its parameters by GET in the URL, or by POST as JSON. The first eight are "
            "also MCP tools. [serving.md](serving.md) shows examples."
        ),
    ]
    for name, operation in {**OPERATIONS, **SHAPES}.items():
        schema = operation.schema()
        rows = [
            (
                f"`{field}`",
                _bounds(own),
                "required" if field in schema["required"] else f"`{json.dumps(own['default'])}`",
            )
            for field, own in schema["properties"].items()
        ]
        parts += [
            f"## /{name}",
            _wrapped(operation.description()),
            markdown_table(("parameter", "allowed values", "default"), rows),
        ]
    reasons = [(f"`{reason}`", str(status)) for reason, status in STATUS.items()]
    parts += [
        "## Errors",
        'An error is returned as `{"reason": …, "detail": …}` with an HTTP status.',
        markdown_table(("reason", "status"), reasons),
    ]
    return "\n\n".join(parts) + "\n"


def _bounds(schema: dict[str, Any]) -> str:
    """Returns the allowed values of a parameter, from its JSON Schema."""
    choices = [own for own in schema.get("anyOf", [schema]) if own.get("type") != "null"]
    said = [_bounds_of(own) for own in choices]
    meant = next((own["description"] for own in (schema, *choices) if "description" in own), "")
    return f"{' or '.join(said)}{meant and f': {meant}'}"


def _bounds_of(schema: dict[str, Any]) -> str:
    match schema:
        case {"enum": choices}:
            return " or ".join(f"`{choice}`" for choice in choices)
        case {"type": "array"}:
            return f"list of 1 to {schema['maxItems']} items: {_bounds(schema['items'])}"
        case {"type": "string", "maxLength": most}:
            return f"text (at most {most:,} characters)"
        case {"type": "integer", "minimum": least, "maximum": most} if most < 1 << 31:
            return f"{least} to {most:,}"
        case {"type": "boolean"}:
            return "`true` or `false`"
    return "whole number"


def _guide(command: Command) -> str:
    return f"[{command.guide.partition('#')[0]}]({command.guide})"


def _section(typed: App, name: str) -> str:
    typed.default_parameter, typed.help_epilogue = DEFAULTS, None
    text = typed.generate_docs(recursive=False, usage_name=f"kbsource {name}")
    _, _, text = text.partition("\n")  # without its heading
    text = re.sub(r"(?m)^(kbsource [a-z -]*?) -m \w+", r"\1", text)  # the way this program was started
    text = re.sub(r"## Table of Contents\n\n(?:- .*\n)+\n", "", text)
    text = re.sub(r"\[(`.*?`)\]\(#.*?\)", r"\1", text)
    text = re.sub(r"\n {2,}(?=\S)", " ", text).replace("\n```console\n", "\n```\n").strip()
    examples = docstring_examples(typed.default_command).partition("\n\n")[2]
    shown = f"\n\n```\n{textwrap.dedent(examples)}\n```" if examples else ""
    return f"### kbsource {name}\n\n{text}{shown}"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


PAGES = {"tables.md": tables_page, "commands.md": commands_page, "operations.md": operations_page}


def main(argv: list[str]) -> int:
    """Writes or checks the pages, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when a page is not current")
    args = parser.parse_args(argv)
    stale = []
    for name, page in PAGES.items():
        content = page()
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
