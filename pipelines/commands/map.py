"""``kbsource map``: a dataset becomes KILT records whose evidence stands in a release."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, add_run_arguments, run_flags, summary_json
from pipelines.options.fields import Flags, add_flags, flags_of, nearest
from pipelines.progress import clock
from pipelines.terminal import print_text

if TYPE_CHECKING:
    from pipelines.alignment.many_datasets import AllSummary, Planned
    from pipelines.jobs.map_dataset import MapSummary

_NEEDED = ("kb", "inputs", "output", "split")
_OF_THE_RUN = ("scratch", "worker_memory_bytes")
_USAGE = (
    "kbsource map DATASET --kb RELEASE --input FILE [FILE ...] --output DIR [options]\n"
    "       kbsource map --all --config FILE --kb RELEASE --output DIR [options]"
)
_WITH_ALL = frozenset(
    ("command", "all", "config", "kb", "output", "scratch", "worker_memory", "runner", "workers", "json", "beam_args")
)
"""What may stand on the command line beside --all."""


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from pipelines.commands.flags.map_flags import add_dataset_flags

    _add_needed(parser)
    add_dataset_flags(parser)
    _add_alignment(parser)
    _add_run(parser)
    parser.usage = _USAGE


def _describe(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Declares what ``--help`` shows: the options of a dataset that is named, else those that are needed."""
    from mapping.sources import DATASETS
    from pipelines.commands.flags.map_flags import dataset_flags

    dataset = next((word for word in given if word in DATASETS), None)
    if dataset is None:
        parser.usage = _USAGE
        _add_needed(parser)
        add_run_arguments(parser)
        names = "\n".join(f"  {name:20} {one.summary}" for name, one in DATASETS.items())
        hint = "kbsource map DATASET --help shows all options of one."
        parser.epilog = f"datasets:\n{names}\n\n{hint}\n\n{parser.epilog}"
        return
    own = dataset_flags(dataset)
    files = "".join(
        f" {flag_option.flag} {flag_option.metavar}" for flag_option in own if flag_option.name == "references"
    )
    parser.usage = f"kbsource map {dataset} --kb RELEASE --input FILE{files} --output DIR [options]"
    parser.description = f"{DATASETS[dataset].summary}.\n\n{parser.description}"
    parser.epilog = (
        f"examples:\n  kbsource map {dataset} --kb releases/enwiki-20261001 --input FILE{files} "
        f"--output aligned/{dataset}"
    )
    _add_files(parser)
    if own:
        add_flags(parser.add_argument_group(f"options of {dataset}"), own)
    _add_alignment(parser.add_argument_group("how evidence is aligned"))
    _add_run(parser.add_argument_group("how it is run"))


def _add_needed(parser: argparse.ArgumentParser) -> None:
    from mapping.sources import DATASETS

    add = parser.add_argument
    add("dataset", nargs="?", type=_dataset, metavar="DATASET", help=", ".join(DATASETS))
    add("--all", action="store_true", help="every dataset and split that --config names")
    add("--config", metavar="FILE", help="with --all: datasets and their files, in YAML")
    _add_files(parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    from pipelines.options.map import MapOptions

    add_flags(
        parser,
        [flag_option for flag_option in flags_of(MapOptions) if flag_option.name in _NEEDED],
        optional=("inputs", "split"),
    )


def _add_alignment(parser: Flags) -> None:
    from pipelines.commands.flags.map_flags import add_verify_flags
    from pipelines.options.map import MapOptions

    add_flags(parser, MapOptions, but=(*_NEEDED, *_OF_THE_RUN))
    add_verify_flags(parser)


def _add_run(parser: Flags) -> None:
    from pipelines.options.map import MapOptions

    add_flags(parser, [flag_option for flag_option in flags_of(MapOptions) if flag_option.name in _OF_THE_RUN])
    add_run_arguments(parser)


def _dataset(name: str) -> str:
    from mapping.sources import DATASETS

    if name not in DATASETS:
        known = ", ".join(DATASETS)
        raise argparse.ArgumentTypeError(f"no dataset {name!r}.{nearest(name, DATASETS)} Choose one of: {known}")
    return name


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from mapping.sources import DATASETS
    from pipelines.commands.flags.map_flags import map_options, split_of
    from pipelines.jobs.map_dataset import map_dataset
    from pipelines.progress import Progress

    if args.all:
        return _run_all(args)
    if args.config is not None:
        raise SetupError("--config is for --all; a single dataset has its options on the command line.")
    if args.dataset is None:
        raise SetupError(f"Name a dataset ({', '.join(DATASETS)}), or --all with --config FILE.")
    options = map_options(args.dataset, vars(args), split=args.split or split_of(args.input or ()))
    summary = map_dataset(options, flags=run_flags(args), progress=Progress())
    if args.json:
        print(summary_json(summary, **summary.report))
    else:
        print_text(summary_text(summary, args.kb))
    return 0


def _run_all(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from pipelines.jobs.map_dataset import map_all
    from pipelines.progress import Progress

    if args.config is None:
        raise SetupError("--all needs --config FILE, which names the datasets and their files.")
    if odd := [name for name, value in vars(args).items() if value is not None and name not in _WITH_ALL]:
        raise SetupError(
            f"with --all, {odd[0].replace('_', '-')!r} belongs into {args.config}, not on the command line."
        )
    output = args.output.rstrip("/") or "/"
    planned = planned_alignments(vars(args))
    summary = map_all(planned, kb=args.kb, output=output, flags=run_flags(args), progress=Progress())
    if args.json:
        print(summary_json(summary, kept=summary.kept, **summary.report))
    else:
        print_text(all_text(summary))
    return 0


def planned_alignments(given: dict[str, Any]) -> list[Planned]:
    """Gives what the configuration names with the options of the command line.

    Raises:
        SetupError: as ``read_config``; an option is wrong.
    """
    from kbsource.errors import SetupError
    from kbsource.files import join
    from pipelines.alignment.many_datasets import Planned
    from pipelines.commands.flags.map_config import read_config
    from pipelines.commands.flags.map_flags import map_options

    planned = []
    for entry in read_config(given["config"]):
        flags = {**given, **entry.flags, "output": join(given["output"], entry.name, entry.split)}
        try:
            planned.append(Planned(entry.name, map_options(entry.dataset, flags, split=entry.split), entry.where))
        except SetupError as error:
            raise SetupError(f"{entry.where}: {error}") from error
    return planned


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


def all_text(summary: AllSummary) -> str:
    """Gives what all alignments made for reading."""
    from mapping.write.overview import overview_text

    kept = f", {len(summary.kept)} of them done before" if summary.kept else ""
    n_aligned = len(summary.report["datasets"])
    return (
        f"{overview_text(summary.report)}\n\n{clock(summary.seconds)} wall time for {n_aligned} alignments{kept}. "
        f"They are in {summary.output}, each in a folder of its own."
    )


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
    describe=_describe,
)
