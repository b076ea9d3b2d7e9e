"""``kbsource evaluate``: the metrics of a benchmark."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kbsource.errors import SetupError
from mapping.metrics.options import QUIRKS, AmberOptions, QampariFiles, QampariOptions
from pipelines.commands.flags.common import Command, facts_table
from pipelines.options.fields import add_flags, flags_of, from_flags, place

if TYPE_CHECKING:
    from kbsource.files import Storage
    from kbsource.records import BadRecord

_BENCHMARKS = ("qampari", "amber")
_OWN = {
    "qampari": ("--retrieved", "--evidence-match", "--matching", "--quirk"),
    "amber": ("--gap-on", "--metrics", "--plot"),
}
"""Flags that only one benchmark has."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("benchmark", choices=_BENCHMARKS, metavar="BENCHMARK", help="qampari or amber")
    add_flags(parser, QampariFiles)
    add_flags(parser, QampariOptions)
    add_flags(parser, [one for one in flags_of(AmberOptions) if one.flag in _OWN["amber"]])
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in QUIRKS.items())
    add(
        "--quirk",
        action="append",
        choices=(*QUIRKS, "all"),
        default=[],
        metavar="NAME",
        help=f"evaluate as the released script does; may be repeated. {meanings}; all: all of these",
    )
    add("--json", action="store_true", help="the scores as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from pipelines.stores.storage import storage_for

    given = [flag for name, own in _OWN.items() if name != args.benchmark for flag in own]
    if odd := [flag for flag in given if getattr(args, place(flag))]:
        raise SetupError(f"{odd[0]} is none of the options of {args.benchmark}; leave it out.")
    files = from_flags(vars(args), QampariFiles)
    paths = [path for path in (files.gold, files.predictions, files.retrieved, args.metrics, args.plot) if path]
    run = _run_amber if args.benchmark == "amber" else _run_qampari
    return run(args, files, storage_for(*paths))


def _run_amber(args: argparse.Namespace, files: QampariFiles, storage: Storage) -> int:
    from kbsource.files import atomic_write, join
    from mapping.metrics.amber import evaluate_amber
    from mapping.metrics.amber_plot import gap_plot

    options = from_flags(vars(args), AmberOptions)
    if files.predictions is None:
        raise SetupError("--predictions is missing; give the pages that were predicted for each query.")
    scores = evaluate_amber(files, storage, options, reject=_report)
    written = {options.plot: gap_plot(scores)} if options.plot else {}
    for k in options.ks if options.metrics else ():
        for name, value in (("metrics", scores.metrics(k)), ("raw_metrics", {"accuracy": scores.hits[k]})):
            written[join(options.metrics or "", f"{name}@{k}.json")] = json.dumps(value, indent=4)
    for path, text in written.items():
        with atomic_write(storage, path) as file:
            file.write(text.encode())
    said = scores.to_json()
    print(json.dumps(said, ensure_ascii=False, indent=2) if args.json else facts_table(_flat(said)))
    return 1 if scores.rejected else 0


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Gives the numbers in nested JSON, each with the way to it as its name."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inside is None:
        yield name, value
        return
    for key, one in inside:
        yield from _flat(one, f"{name} {key}".strip())


def _run_qampari(args: argparse.Namespace, files: QampariFiles, storage: Storage) -> int:
    from mapping.metrics.qampari import evaluate_qampari
    from mapping.metrics.scores import scores_text

    quirks = frozenset(QUIRKS if "all" in args.quirk else args.quirk)
    options = from_flags(vars(args), QampariOptions, quirks=quirks)
    scores = evaluate_qampari(files, storage, options, reject=_report)
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
        "kbsource evaluate amber --gold amber_sets.jsonl --predictions ranked.jsonl --k 1,20 --plot gaps.svg",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
