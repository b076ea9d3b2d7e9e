"""``kbsource trec``: runs of TREC as predictions of KILT, and back."""

from __future__ import annotations

import argparse
from functools import partial

from pipelines.commands.flags.common import Command
from pipelines.commands.retrieval.lines import write_converted


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="a run (query, Q0, document, rank, score, name), or predictions as KILT has them")
    add("--output", required=True, metavar="FILE", help="the other form; appears when it is complete")
    add("--queries", metavar="FILE", help="for a run: records with id and input, which predictions then have too")


def _run(args: argparse.Namespace) -> int:
    from itertools import islice

    from kbsource.errors import SetupError
    from mapping.retrieval.runs import converted, found_of, predictions_of, read_queries, trec_lines
    from mapping.sources.reading.files_in import iter_lines
    from pipelines.stores.storage import storage_for

    first = next(islice(iter_lines(storage_for(args.file), args.file), 1), None)
    if first is not None and first.data.lstrip().startswith(b"{"):
        if args.queries is not None:
            raise SetupError(f"--queries: {args.file} has predictions, of which no more is needed; leave it out.")
        return write_converted(
            args.file, args.output, partial(converted, line_of=lambda record: trec_lines(*found_of(record)))
        )
    texts = {} if args.queries is None else read_queries(args.queries, storage_for(args.queries))
    return write_converted(args.file, args.output, partial(predictions_of, texts=texts))


COMMAND = Command(
    name="trec",
    summary="runs of TREC as predictions of KILT, and back",
    description="Writes a run as the predictions that evaluate kilt takes, or predictions as a run for trec_eval,\n"
    "ranx or ir_measures. Documents are passages, by their ids, or pages.",
    examples=(
        "kbsource trec run.trec --queries aligned/nq/nq-dev-kilt.jsonl --output predictions.jsonl",
        "kbsource trec predictions.jsonl --output run.trec",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
