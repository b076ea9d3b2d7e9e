"""What the evaluation of every benchmark shares."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kbsource.records import BadRecord


def add_shared(parser: argparse.ArgumentParser, quirks: Mapping[str, str]) -> None:
    """Declares ``--quirk`` and ``--json``."""
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in quirks.items())
    parser.add_argument(
        "--quirk",
        action="append",
        choices=(*quirks, "all"),
        default=[],
        metavar="NAME",
        help=f"evaluate as the released script does; may be repeated. {meanings}; all: all of these",
    )
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")


def chosen_quirks(args: argparse.Namespace, quirks: Mapping[str, str]) -> frozenset[str]:
    """Gives the quirks that were asked for."""
    return frozenset(quirks if "all" in args.quirk else args.quirk)


def report(bad: BadRecord) -> None:
    """Says on the standard error what cannot be used."""
    print(f"{bad.file}, {bad.detail} ({bad.reason})", file=sys.stderr)
