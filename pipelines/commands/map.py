"""``kbsource map``: a dataset becomes KILT records whose evidence stands in a release."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import Command, add_run_arguments, run_flags
from pipelines.commands.flags.map_flags import DATASETS, SPLITS, add_dataset_flags, map_options, split_of
from pipelines.progress import clock

if TYPE_CHECKING:
    from pipelines.jobs.map_dataset import MapSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", nargs="?", metavar="DATASET", choices=DATASETS, help=", ".join(DATASETS))
    add("--all", action="store_true", help="every dataset and split that --config names")
    add("--config", metavar="FILE", help="with --all: datasets and their files, in YAML")
    add("--kb", required=True, metavar="RELEASE", help="folder of the release")
    add("--output", required=True, metavar="DIR", help="folder to write; new, or left by a run that was killed")
    add(
        "--split",
        choices=SPLITS,
        help="rules that records are filtered by (default: as the files' names say, else dev)",
    )
    add_dataset_flags(parser)
    add("--scratch", metavar="DIR", help="folder for temporary indexes (default: the system's)")
    add_run_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from pipelines.jobs.map_dataset import map_dataset
    from pipelines.progress import Progress

    if args.all:
        from pipelines.commands.map_all import run_all

        return run_all(args)
    if args.config is not None:
        raise SetupError("--config is for --all; a single dataset has its options on the command line.")
    if args.dataset is None:
        raise SetupError(f"Name a dataset ({', '.join(DATASETS)}), or --all with --config FILE.")
    options = map_options(
        args.dataset,
        vars(args),
        kb=args.kb,
        output=args.output,
        split=args.split or split_of(args.input or ()),
        scratch=args.scratch,
        worker_memory_mb=args.worker_memory,
    )
    summary = map_dataset(options, flags=run_flags(args), progress=Progress())
    print(summary_json(summary) if args.json else summary_text(summary, args.kb))
    return 0


def summary_json(summary: MapSummary) -> str:
    """Gives what an alignment made as one JSON object."""
    value = {"output": summary.output, "seconds": round(summary.seconds, 1), **summary.report}
    return json.dumps(value, ensure_ascii=False, indent=2)


def summary_text(summary: MapSummary, kb: str) -> str:
    """Gives what an alignment made for reading, and what to do next."""
    from mapping.write.report import report_text

    # Files without inputs or answers have longer names.
    kilt_file = min((entry.file for entry in summary.manifest.files if entry.file.endswith(".jsonl")), key=len)
    path = f"{summary.output.rstrip('/')}/{kilt_file}"
    done = f"{report_text(summary.report)}\n\n{clock(summary.seconds)} wall time."
    if not summary.report["counts"]["written"]:
        return (
            f"{done} No record was written: {path} is empty. The counts above say why; the table misses has every "
            "piece of evidence that was not found, with the reason."
        )
    check = f"kbsource validate-kilt {shlex.quote(path)} --kb {shlex.quote(kb)}"
    return f"{done} The records are in {path}. Check them: {check}"


COMMAND = Command(
    name="map",
    summary="align a dataset, or all of them, to a release",
    description="Finds the evidence of a dataset in the pages of a release and writes the dataset as KILT records,\n"
    "with every alignment and every miss as tables, counts, and manifest.json, which is written last. Any option that\n"
    "is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource map fever --kb releases/enwiki-20261001 --split dev --input fever/dev.jsonl \\\n"
        "      --wiki-pages fever/wiki-pages --output aligned/fever --runner local-multi",
        "kbsource map kilt --kb releases/enwiki-20261001 --from-kb kilt_knowledgesource.json \\\n"
        "      --input nq-dev-kilt.jsonl --output aligned/nq",
        "kbsource map jsonl --kb releases/enwiki-20261001 --input mine.jsonl --output aligned/mine",
        "kbsource map --all --config datasets.yaml --kb releases/enwiki-20261001 --output aligned",
    ),
    add_arguments=_add_arguments,
    run=_run,
    takes_beam_flags=True,
)
