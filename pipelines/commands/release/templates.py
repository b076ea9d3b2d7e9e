"""``kbsource templates``: what the templates of a release show, and which of them lose most text."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import Any

from pipelines.commands.flags.common import Command

_HEAD = ("lost", "uses", "pages", "outcome", "template")
_OUTCOMES_HEAD = ("outcome", "uses", "shown", "share", "lost")
_NAME_CHARS = 30


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release of pages")
    parser.add_argument(
        "--limit", type=int, default=50, metavar="N", help="templates that are listed (default: %(default)s)"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object: sums by_outcome, and rows of the table templates"
    )


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.release.pages.kind import PAGES_RELEASE
    from kbsource.release.pages.template_losses import sums_by_outcome, worst_templates
    from pipelines.stores.storage import storage_for

    if args.limit < 1:
        raise SetupError(f"--limit is {args.limit}; give at least 1.")
    storage = storage_for(args.release)
    PAGES_RELEASE.read(args.release, storage)
    worst = worst_templates(args.release, storage, limit=args.limit)
    sums = sums_by_outcome(args.release, storage)
    if args.json:
        by_outcome = [{"outcome": outcome, **own} for outcome, own in _by_shown(sums)]
        print(json.dumps({"by_outcome": by_outcome, "templates": worst}, ensure_ascii=False, indent=2))
        return 0
    columns = shutil.get_terminal_size((0, 0)).columns or None
    for line in [*_outcome_lines(sums), "", *_lines(worst)]:
        print(line[:columns])
    return 0


def _by_shown(sums: Mapping[str, Counter[str]]) -> list[tuple[str, Counter[str]]]:
    return sorted(sums.items(), key=lambda entry: (-entry[1]["shown_chars"], entry[0]))


def _outcome_lines(sums: Mapping[str, Counter[str]]) -> list[str]:
    """Gives what the ways to settle a template show and lose, as a table."""
    n_shown = sum(own["shown_chars"] for own in sums.values()) or 1
    cells = [_OUTCOMES_HEAD] + [
        (
            outcome,
            f"{own['uses']:,}",
            f"{own['shown_chars']:,}",
            f"{own['shown_chars'] / n_shown:.1%}",
            f"{own['lost_chars']:,}",
        )
        for outcome, own in _by_shown(sums)
    ]
    return _aligned(cells, left=(0,))


def _lines(rows: list[dict[str, Any]]) -> list[str]:
    """Gives the rows as a table: numbers to the right, names of one width, examples behind."""
    cells = [_HEAD] + [
        (f"{row['lost_chars']:,}", f"{row['uses']:,}", f"{row['pages']:,}", row["outcome"], row["name"][:_NAME_CHARS])
        for row in rows
    ]
    examples = ["example"] + [f"{row['example_title']}: {row['example']}" for row in rows]
    return [f"{line}  {example}" for line, example in zip(_aligned(cells, left=(3, 4)), examples, strict=True)]


def _aligned(cells: Sequence[Sequence[str]], *, left: Container[int]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in cells
    ]


COMMAND = Command(
    name="templates",
    summary="show what templates show, and list those that lose most text",
    description="Says how much visible text of templates comes from each way to settle one: by a rule (rendered,\n"
    "dropped), by its definition in the dump (expanded; invoked, where that runs Lua), or not at all (bound, where it\n"
    "hit a limit; unknown). Then lists the templates by the visible characters of their arguments that are not in the\n"
    "text of the pages, most first, each with the first use that loses some: where a rule would win most. Lines are\n"
    "cut to the width of a terminal, and whole in a file or a pipe.",
    examples=(
        "kbsource templates releases/enwiki-20261001",
        "kbsource templates releases/enwiki-20261001 --limit 500 --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
