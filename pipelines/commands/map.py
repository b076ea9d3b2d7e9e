"""``kbsource map``: a dataset becomes KILT records whose evidence stands in a release."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from typing import TYPE_CHECKING, Any

from pipelines.commands.common import Command
from pipelines.progress import clock

if TYPE_CHECKING:
    from mapping.sources.base import Split
    from pipelines.jobs.map_dataset import MapSummary

DATASETS = ("fever", "hotpotqa", "aidayago2", "wned", "cweb", "kilt", "jsonl")
"""Names of the datasets, as in ``mapping.sources.SOURCES``, without importing the readers."""

_REFERENCES = {
    "wiki_pages": ("fever",),
    "abstracts": ("hotpotqa",),
    "raw_text": ("wned", "cweb"),
    "from_kb": ("kilt",),
}
_LINKING = ("aidayago2", "wned", "cweb")
_CHOICES = {
    "window": _LINKING,
    "max_tokens": _LINKING,
    "blank_lines": _LINKING,
    "seed": ("wned", "cweb"),
    "sentence_escapes": ("fever",),
    "keep_meta": ("hotpotqa",),
    "from_numbering": ("kilt",),
}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("dataset", metavar="DATASET", choices=DATASETS, help=", ".join(DATASETS))
    add("--kb", required=True, metavar="RELEASE", help="folder of the release, on a local disk")
    add("--input", required=True, nargs="+", metavar="FILE", help="files of the dataset, in order; .gz and .bz2 too")
    add("--output", required=True, metavar="DIR", help="folder to write; new, or left by a run that was killed")
    add(
        "--split",
        choices=("train", "dev", "test"),
        help="rules that records are filtered by (default: kilt as the file's name says, else dev)",
    )
    add("--wiki-pages", nargs="+", metavar="PATH", help="fever: folder or files of FEVER's own wiki-pages")
    add("--abstracts", nargs="+", metavar="PATH", help="hotpotqa: folder or files of the abstracts it was made from")
    add("--raw-text", nargs="+", metavar="DIR", help="wned, cweb: folder RawText (default: beside the XML file)")
    add("--from-kb", nargs="+", metavar="PATH", help="kilt: release or kilt_knowledgesource.json it was made for")
    add("--window", choices=("right", "released", "whole"), help="entity linking: how the context is cut")
    add("--max-tokens", type=int, metavar="N", help="entity linking: tokens of the input, tags included")
    add("--blank-lines", choices=("skip", "released"), help="entity linking: blank lines of the TSV in the context")
    add("--seed", metavar="NAME", help="wned, cweb: names the random split")
    add("--sentence-escapes", choices=("undone", "kept"), help="fever: -LRB- and its like in the evidence")
    add("--keep-meta", action="store_true", default=None, help="hotpotqa: level and type in the record's meta")
    add("--from-numbering", choices=("kilt", "elements"), help="kilt: how --from-kb counts paragraphs")
    add("--threshold", type=float, default=0.5, metavar="BLEU", help="lowest score that is kept (default: %(default)s)")
    add("--max-elements", type=int, default=1, metavar="N", help="paragraphs a span may cross (default: %(default)s)")
    add("--numbering", choices=("kilt", "elements"), default="kilt", help="of paragraphs (default: %(default)s)")
    add("--strip-section", action="store_true", help="section without the newline at its end")
    add("--title-map", metavar="FILE", help="known moves: a line each, old title, tab, new title or page id")
    add(
        "--accept-fuzzy",
        type=float,
        metavar="SCORE",
        help="take the most similar title for a missing one, from 60 to 100",
    )
    add("--stem", metavar="NAME", help="begins the name of the file that is written (default: the dataset's)")
    add(
        "--max-rejects",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="highest share of the records that may be rejected (default: %(default)s)",
    )
    add(
        "--worker-memory",
        type=int,
        default=4096,
        metavar="MB",
        help="memory of a working process (default: %(default)s)",
    )
    add(
        "--chunk-records",
        type=int,
        default=5000,
        metavar="N",
        help="records of a file of a table (default: %(default)s)",
    )
    add("--scratch", metavar="DIR", help="folder for temporary indexes (default: the system's)")
    add(
        "--runner",
        default="local",
        metavar="NAME",
        help="local: one working process; local-multi: all cores; or a runner of Beam (default: %(default)s)",
    )
    add("--workers", type=int, metavar="N", help="working processes for local-multi (default: one per core)")
    add("--json", action="store_true", help="the report as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from pipelines.jobs.map_dataset import map_dataset
    from pipelines.options_map import MapOptions
    from pipelines.progress import Progress
    from pipelines.runners import beam_flags

    options = MapOptions(
        dataset=args.dataset,
        kb=args.kb,
        inputs=tuple(args.input),
        output=args.output,
        split=args.split or _split_of(args),
        references=_references(args),
        source=_source_options(args),
        threshold=args.threshold,
        max_elements=args.max_elements,
        title_map=args.title_map,
        accept_fuzzy=args.accept_fuzzy,
        numbering=args.numbering,
        strips_section=args.strip_section,
        stem=args.stem,
        max_rejects=args.max_rejects,
        worker_memory_bytes=args.worker_memory << 20,
        chunk_records=args.chunk_records,
    )
    flags = beam_flags(args.runner, workers=args.workers, beam_args=args.beam_args)
    summary = map_dataset(options, flags=flags, progress=Progress())
    print(summary_json(summary) if args.json else summary_text(summary))
    return 0


def _split_of(args: argparse.Namespace) -> Split:
    name = args.input[0].rsplit("/", 1)[-1] if args.dataset == "kilt" else ""
    splits: tuple[Split, ...] = ("train", "dev", "test")
    return next((split for split in splits if f"-{split}" in name), "dev")


def _references(args: argparse.Namespace) -> tuple[str, ...]:
    given: list[str] = []
    for name, datasets in _REFERENCES.items():
        if (paths := getattr(args, name)) is not None:
            _check_belongs(name, datasets, args.dataset)
            given += paths
    return tuple(given)


def _source_options(args: argparse.Namespace) -> Any:
    from mapping.sources.base import SourceOptions

    chosen: dict[str, Any] = {} if args.scratch is None else {"scratch": args.scratch}
    for name, datasets in _CHOICES.items():
        if (value := getattr(args, name)) is not None:
            _check_belongs(name, datasets, args.dataset)
            chosen["numbering" if name == "from_numbering" else name] = value
    return dataclasses.replace(SourceOptions(), **chosen)


def _check_belongs(name: str, datasets: tuple[str, ...], dataset: str) -> None:
    from kbsource.errors import SetupError

    if dataset not in datasets:
        option = "--" + name.replace("_", "-")
        raise SetupError(f"{option} is for {', '.join(datasets)}, not for {dataset}; leave it out.")


def summary_json(summary: MapSummary) -> str:
    """Gives what an alignment made as one JSON object."""
    value = {"output": summary.output, "seconds": round(summary.seconds, 1), **summary.report}
    return json.dumps(value, ensure_ascii=False, indent=2)


def summary_text(summary: MapSummary) -> str:
    """Gives what an alignment made for reading, and what to do next."""
    from mapping.report import report_text

    kilt_file = next(one["file"] for one in summary.manifest["files"] if one["file"].endswith(".jsonl"))
    path = f"{summary.output.rstrip('/')}/{kilt_file}"
    return (
        f"{report_text(summary.report)}\n\n{clock(summary.seconds)} wall time. The records are in {path}. "
        f"Check them: kbsource validate-kilt {shlex.quote(path)} --kb RELEASE"
    )


COMMAND = Command(
    name="map",
    summary="align a dataset to a release",
    description="Finds the evidence of a dataset in the pages of a release and writes the dataset as KILT records,\n"
    "with every alignment and every miss as tables, counts, and manifest.json, which is written last. Any option that\n"
    "is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource map fever --kb releases/enwiki-20261001 --split dev --input fever/dev.jsonl \\\n"
        "      --wiki-pages fever/wiki-pages --output aligned/fever --runner local-multi",
        "kbsource map kilt --kb releases/enwiki-20261001 --from-kb kilt_knowledgesource.json \\\n"
        "      --input nq-dev-kilt.jsonl --output aligned/nq",
        "kbsource map jsonl --kb releases/enwiki-20261001 --input mine.jsonl --output aligned/mine",
    ),
    add_arguments=_add_arguments,
    run=_run,
    takes_beam_flags=True,
)
