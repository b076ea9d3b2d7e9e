"""``kbsource evaluate``: the metrics of a benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from mapping.metrics.evaluation_options import QUIRKS, EvaluationOptions, QampariFiles
from pipelines.commands.flags.common import Command
from pipelines.options.fields import add_flags, from_flags

if TYPE_CHECKING:
    from kbsource.records import BadRecord

_BENCHMARKS = ("qampari",)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("benchmark", choices=_BENCHMARKS, metavar="BENCHMARK", help="qampari")
    add_flags(parser, QampariFiles)
    add_flags(parser, EvaluationOptions)
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in QUIRKS.items())
    add(
        "--quirk",
        action="append",
        choices=(*QUIRKS, "all"),
        default=[],
        metavar="NAME",
        help=f"evaluate as the released script does; may be repeated. {meanings}; all: all of these",
    )
    add("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from mapping.metrics.qampari import evaluate_qampari
    from mapping.metrics.scores import scores_text
    from pipelines.stores.storage import storage_for

    quirks = frozenset(QUIRKS if "all" in args.quirk else args.quirk)
    options = from_flags(vars(args), EvaluationOptions, quirks=quirks)
    files = from_flags(vars(args), QampariFiles)
    given = [path for path in (files.gold, files.predictions, files.retrieved) if path is not None]
    scores = evaluate_qampari(files, storage_for(*given), options, reject=_report)
    print(json.dumps(scores.to_json(), ensure_ascii=False, indent=2) if args.json else scores_text(scores))
    return 1 if scores.rejected else 0


def _report(bad: BadRecord) -> None:
    print(f"{bad.file}, {bad.detail} ({bad.reason})", file=sys.stderr)


COMMAND = Command(
    name="evaluate",
    summary="the metrics of a benchmark",
    description="Compares predicted answers and retrieved passages with the gold file of a benchmark. A line that\n"
    "cannot be used is named on the standard error with file, line and reason, and the exit code is 1.",
    examples=(
        "kbsource evaluate qampari --gold dev_data.jsonl --predictions predictions.jsonl",
        "kbsource evaluate qampari --gold dev_data.jsonl --retrieved bm25.jsonl --k 10,100 --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
