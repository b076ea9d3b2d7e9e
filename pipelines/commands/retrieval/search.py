"""``kbsource search``: the passages that BM25 finds for a query, or for every record of a file."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import Command
from pipelines.commands.retrieval.lines import write_converted

if TYPE_CHECKING:
    from mapping.sources.reading.fields import Json

_TOP, _SHOWN = 100, 10


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("query", nargs="?", metavar="QUERY", help="what is looked for")
    add("--passages", required=True, metavar="DIR", help="passages, as kbsource passages makes them")
    add("--index", required=True, metavar="DIR", help="folder of their index; made where there is none")
    add("--queries", metavar="FILE", help="JSON Lines with id and input, as KILT has them, in place of QUERY")
    add("--output", metavar="FILE", help="what is found for --queries; appears when it is complete")
    add(
        "--top",
        type=int,
        metavar="N",
        help=f"most passages of a query (default: {_TOP} for a file, {_SHOWN} for a QUERY)",
    )
    add(
        "--form", choices=("kilt", "trec"), default="kilt", help="predictions of KILT, or a run of TREC (default: kilt)"
    )
    add(
        "--negatives",
        type=int,
        metavar="N",
        help="write lines that retrievers are trained on: found passages of gold pages, and N that are of none and "
        "name no answer",
    )


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.release.layout import MANIFEST
    from mapping.retrieval.index import PassageIndex, make_index
    from mapping.retrieval.runs import RankedDocument, converted, prediction_line, query_of, training_line, trec_lines
    from pipelines.progress import Progress
    from pipelines.stores.storage import storage_for

    if (args.query is None) == (args.queries is None) or (args.queries is None) != (args.output is None):
        raise SetupError("Give a QUERY, or --queries FILE with --output FILE.")
    if args.negatives is not None and (args.queries is None or args.form != "kilt"):
        raise SetupError("--negatives makes lines of their own form out of --queries; leave --form and QUERY out.")
    for name in ("top", "negatives"):
        if (value := getattr(args, name)) is not None and value < 1:
            raise SetupError(f"--{name} is {value}; give at least 1.")
    storage = storage_for(args.passages)
    if not os.path.exists(os.path.join(args.index, MANIFEST)):
        progress = Progress()
        progress.note(f"indexing {args.passages} into {args.index}")
        progress.note(f"{make_index(args.passages, args.index, storage):,} passages indexed")
    index = PassageIndex(args.passages, args.index, storage)
    if args.query is not None:
        for one in index.search(args.query, args.top or _SHOWN):
            print(f"{one.score:8.3f}  {one.passage_id}  {one.title}\n          {one.text}")
        return 0
    trains = args.negatives is not None
    n_asked = args.top or _TOP

    def line_of(record: Json) -> bytes:
        query = query_of(record)
        hits = index.search(query.text, n_asked, with_texts=args.form != "trec")
        if trains:
            return training_line(query, hits, n_negatives=args.negatives)
        if args.form == "trec":
            return trec_lines(query.query_id, (RankedDocument(hit.passage_id, hit.score) for hit in hits))
        return prediction_line(query, hits)

    return write_converted(args.queries, args.output, partial(converted, line_of=line_of))


COMMAND = Command(
    name="search",
    summary="find passages by BM25: candidates, baselines, hard negatives",
    description="Indexes passages where that was not done yet, and finds those that are best for a query by BM25,\n"
    "or for every record of a file. Passages of one score stand in the order of the corpus.",
    examples=(
        'kbsource search --passages passages/enwiki-20261001 --index bm25/enwiki-20261001 "Who wrote Faust?"',
        "kbsource search --passages passages/enwiki-20261001 --index bm25/enwiki-20261001 \\\n"
        "      --queries aligned/nq/nq-dev-kilt.jsonl --output bm25-nq-dev.jsonl",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="search",
)
