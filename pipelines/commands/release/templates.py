"""``kbsource templates``: what the templates of a release show, and which of them lose most text."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pipelines.commands.flags.common import Command
from pipelines.terminal import print_text, table_text

_OUTCOMES_HEAD = ("outcome", "uses", "shown", "share", "lost")
_HEAD = ("lost", "uses", "pages", "outcome", "template", "example")
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
    n_shown = sum(own["shown_chars"] for own in sums.values()) or 1
    shares = [_share_cells(outcome, own, n_shown) for outcome, own in _by_shown(sums)]
    print_text(table_text([_OUTCOMES_HEAD, *shares], right=range(1, 5)))
    print_text("")
    print_text(table_text([_HEAD, *map(_cells, worst)], right=range(3)))
    return 0


def _by_shown(sums: Mapping[str, Counter[str]]) -> list[tuple[str, Counter[str]]]:
    return sorted(sums.items(), key=lambda entry: (-entry[1]["shown_chars"], entry[0]))


def _share_cells(outcome: str, own: Counter[str], n_shown: int) -> tuple[str, ...]:
    shown, lost = own["shown_chars"], own["lost_chars"]
    return outcome, f"{own['uses']:,}", f"{shown:,}", f"{shown / n_shown:.1%}", f"{lost:,}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = (f"{row[name]:,}" for name in ("lost_chars", "uses", "pages"))
    return (*numbers, row["outcome"], row["name"][:_NAME_CHARS], f"{row['example_title']}: {row['example']}")


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
    needs="",
)
