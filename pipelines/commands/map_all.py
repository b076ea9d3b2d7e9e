"""``kbsource map --all``: every dataset of a configuration in one go."""

from __future__ import annotations

import argparse
import json

from kbsource.errors import SetupError
from kbsource.files import join
from mapping.write.overview import overview_text
from pipelines.alignment.together import AllSummary, Planned
from pipelines.commands.flags.common import run_flags
from pipelines.commands.flags.map_config import Entry, read_config
from pipelines.commands.flags.map_flags import dataset_flags, map_options
from pipelines.jobs.map_dataset import map_all
from pipelines.progress import Progress, clock


def run_all(args: argparse.Namespace) -> int:
    """Aligns the datasets that ``args.config`` names, prints the report and gives the exit code."""
    if args.config is None:
        raise SetupError("--all needs --config FILE, which names the datasets and their files.")
    of_one = ("dataset", "split", *dataset_flags())
    if odd := [name for name in of_one if getattr(args, name) is not None]:
        raise SetupError(
            f"with --all, {odd[0].replace('_', '-')!r} belongs into {args.config}, not on the command line."
        )
    planned = planned_alignments(args)
    output = args.output.rstrip("/") or "/"
    summary = map_all(planned, kb=args.kb, output=output, flags=run_flags(args), progress=Progress())
    print(_as_json(summary) if args.json else _as_text(summary))
    return 0


def planned_alignments(args: argparse.Namespace) -> list[Planned]:
    """Gives what ``args.config`` names with the options of the command line.

    Raises:
        SetupError: as ``read_config``; an option is wrong.
    """
    return [_planned(entry, args) for entry in read_config(args.config)]


def _planned(entry: Entry, args: argparse.Namespace) -> Planned:
    try:
        options = map_options(
            entry.dataset,
            entry.flags,
            kb=args.kb,
            output=join(args.output, entry.name, entry.split),
            split=entry.split,
            scratch=args.scratch,
            worker_memory_mb=args.worker_memory,
        )
    except SetupError as error:
        raise SetupError(f"{entry.where}: {error}") from error
    return Planned(entry.name, options, entry.where)


def _as_json(summary: AllSummary) -> str:
    value = {"output": summary.output, "seconds": round(summary.seconds, 1), "kept": summary.kept, **summary.report}
    return json.dumps(value, ensure_ascii=False, indent=2)


def _as_text(summary: AllSummary) -> str:
    kept = f", {len(summary.kept)} of them done before" if summary.kept else ""
    n_aligned = len(summary.report["datasets"])
    return (
        f"{overview_text(summary.report)}\n\n{clock(summary.seconds)} wall time for {n_aligned} alignments{kept}. "
        f"They are in {summary.output}, each in a folder of its own."
    )
