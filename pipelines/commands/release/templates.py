"""``kbsource templates``: the templates of a release that lose most text, for those who write rules."""

from __future__ import annotations

import argparse
import json
import shutil
from typing import Any

from pipelines.commands.flags.common import Command

_HEAD = ("lost", "uses", "pages", "outcome", "template")
_NAME_CHARS = 30


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release of pages")
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="templates that are listed (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON array with a row of the table templates for each")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.release.pages.kind import PAGES_RELEASE
    from kbsource.release.pages.template_losses import worst_templates
    from pipelines.stores.storage import storage_for

    if args.limit < 1:
        raise SetupError(f"--limit is {args.limit}; give at least 1.")
    storage = storage_for(args.release)
    PAGES_RELEASE.read(args.release, storage)
    worst = worst_templates(args.release, storage, limit=args.limit)
    if args.json:
        print(json.dumps(worst, ensure_ascii=False, indent=2))
        return 0
    columns = shutil.get_terminal_size((0, 0)).columns or None
    for line in _lines(worst):
        print(line[:columns])
    return 0


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    """Gives the rows as a table: numbers to the right, names of one width, examples behind."""
    cells = [_HEAD] + [
        (f"{row['lost_chars']:,}", f"{row['uses']:,}", f"{row['pages']:,}", row["outcome"], row["name"][:_NAME_CHARS])
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    examples = ["example"] + [f"{row['example_title']}: {row['example']}" for row in rows]
    return [
        "  ".join(
            cell.rjust(width) if number < 3 else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        + f"  {example}"
        for line, example in zip(cells, examples, strict=True)
    ]


COMMAND = Command(
    name="templates",
    summary="list the templates that lose most text",
    description="Lists the templates that are unknown or left out knowingly by the visible characters of their\n"
    "arguments that are not in the text of the pages, most first, each with the first use that loses some:\n"
    "where a rule would win most. Lines are cut to the width of a terminal, and whole in a file or a pipe.",
    examples=(
        "kbsource templates releases/enwiki-20261001",
        "kbsource templates releases/enwiki-20261001 --limit 500 --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
