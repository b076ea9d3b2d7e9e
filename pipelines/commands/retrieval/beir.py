"""``kbsource beir``: an aligned data set over passages, as BEIR has data sets."""

from __future__ import annotations

import argparse
import json

from pipelines.commands.flags.common import Command, facts_table


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--alignment", required=True, metavar="DIR", help="folder that kbsource map wrote for one data set")
    add("--passages", required=True, metavar="DIR", help="passages of the same release")
    add("--output", required=True, metavar="DIR", help="empty folder")
    add(
        "--level",
        choices=("passage", "page"),
        default="passage",
        help="relevant is a passage that has a part of the evidence, or every passage of its page (default: passage)",
    )
    add("--json", action="store_true", help="the summary as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from mapping.retrieval.beir import make_beir
    from pipelines.stores.storage import absolute, storage_for

    storage = storage_for(args.alignment, args.passages, args.output)
    counts = make_beir(args.alignment, args.passages, absolute(args.output), storage, level=args.level).facts["counts"]
    print(json.dumps(counts) if args.json else facts_table((name.replace("_", " "), n) for name, n in counts.items()))
    return 0


COMMAND = Command(
    name="beir",
    summary="write an aligned data set over passages as BEIR has data sets",
    description="Writes corpus, queries and qrels, which BEIR's GenericDataLoader reads, and qrels as TREC has them.",
    examples=(
        "kbsource beir --alignment aligned/nq --passages passages/enwiki-20261001 --output beir/nq",
        "kbsource beir --alignment aligned/wned --passages passages/enwiki-20261001 --output beir/wned --level page",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
