"""``kbsource evaluate``: the metrics of a benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mapping.metrics.options import (
    DEFAULT_KS,
    EVIDENCE_MATCHES,
    MATCHINGS,
    QUIRKS,
    QampariFiles,
    QampariOptions,
)
from pipelines.commands.flags.common import Command

if TYPE_CHECKING:
    from kbsource.records import BadRecord

_BENCHMARKS = ("qampari",)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("benchmark", choices=_BENCHMARKS, metavar="BENCHMARK", help="qampari")
    add(
        "--gold",
        required=True,
        metavar="FILE",
        help="questions with answer_list, as released, or with answers, the names of a single answer",
    )
    add("--predictions", metavar="FILE", help="qid and predictions, a list of strings, for each question")
    add("--retrieved", metavar="FILE", help="qid and ctxs, a list of passages with title and text, best first")
    add(
        "--k",
        type=_numbers,
        default=DEFAULT_KS,
        metavar="K,…",
        help=f"numbers of passages that count as retrieved (default: {','.join(map(str, DEFAULT_KS))})",
    )
    add("--evidence-match", choices=EVIDENCE_MATCHES, default="text", metavar="HOW", help=_meanings(EVIDENCE_MATCHES))
    add("--matching", choices=MATCHINGS, default="greedy", metavar="HOW", help=_meanings(MATCHINGS))
    add(
        "--quirk",
        action="append",
        choices=(*QUIRKS, "all"),
        default=[],
        metavar="NAME",
        help=f"evaluate as the released script does; may be repeated. {_meanings(QUIRKS)}; all: all of these",
    )
    add("--json", action="store_true", help="the scores as one JSON object")


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give whole numbers, such as 10,100") from None


def _meanings(choices: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {meaning}" for name, meaning in choices.items())


def _run(args: argparse.Namespace) -> int:
    from mapping.metrics.qampari import evaluate_qampari
    from mapping.metrics.scores import scores_text
    from pipelines.stores.storage import storage_for

    options = QampariOptions(
        ks=args.k,
        evidence_match=args.evidence_match,
        matching=args.matching,
        quirks=frozenset(QUIRKS if "all" in args.quirk else args.quirk),
    )
    files = QampariFiles(args.gold, args.predictions, args.retrieved)
    given = [path for path in (args.gold, args.predictions, args.retrieved) if path is not None]
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
