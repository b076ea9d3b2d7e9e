"""``kbsource qampari-contexts``: questions of a QAMPARI release with the passages that prove their answers."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack

from pipelines.commands.flags.common import Command, facts_table
from pipelines.options.fields import add_flags, from_flags
from pipelines.terminal import print_text


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.contexts.writing import ContextsOptions

    add = parser.add_argument
    add("release", metavar="RELEASE", help="folder of a QAMPARI release, or of QAMPARI's files as they are published")
    add("--passages", required=True, metavar="DIR", help="passages of the knowledge source that it was made from")
    add(
        "--retrieved",
        action="append",
        default=[],
        metavar="FILE",
        help="qid and ctxs, a list of passages with id, title, text and score, best first, as for evaluate; may be "
        "given several times. Without it there are no hard negatives and no ranked passages",
    )
    add(
        "--kb",
        metavar="RELEASE",
        help="for published files, whose proofs are looked for in its pages: the release that the passages are from",
    )
    add("--output", required=True, metavar="DIR", help="empty folder")
    add_flags(parser, ContextsOptions)
    add("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.release.reader import read_table
    from mapping.contexts.export import ContextsFiles, export_contexts
    from mapping.contexts.writing import ContextsOptions
    from pipelines.progress import Progress
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.release, args.passages, args.output, *args.retrieved)
    with ExitStack() as stack:
        finder = None
        if args.kb is not None:
            from mapping.contexts.proof_finder import ReleaseProofs

            finder = stack.enter_context(ReleaseProofs(args.kb, storage_for(args.kb)))
        report = export_contexts(
            ContextsFiles(args.release, args.passages, tuple(args.retrieved)),
            args.output,
            storage,
            from_flags(vars(args), ContextsOptions),
            finder=finder,
            note=Progress().note,
        )
    for bad in read_table(args.output, "rejected", storage):
        print(f"{bad['file']}, {bad['detail']} ({bad['reason']})", file=sys.stderr)
    if args.json:
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        questions, proofs = report["questions"], report["proofs"]
        rows = {
            **{f"questions of {split}": questions[split] for split in ("train", "dev", "test")},
            "proofs": proofs["all"],
            "  in a passage": proofs["placed"],
            **{f"  not: {reason}": count for reason, count in proofs["unplaced"].items()},
            "hard negatives": report["hard_negatives"],
            "questions with fewer than positives": questions["fewer_negatives_than_positives"],
            "questions without ranked passages": questions["without_retrieved"],
            "lines rejected": sum(report["rejected"].values()),
        }
        print_text(facts_table(rows.items()))
    return 1 if report["rejected"] else 0


COMMAND = Command(
    name="qampari-contexts",
    summary="the questions of a QAMPARI release with passages, for retrievers and readers",
    description="Writes for each question the passages that hold its proofs and, out of what a retriever found, hard\n"
    "negatives and ranked passages: in DPR's form and in that of Fusion-in-Decoder. Proofs that no passage\n"
    "holds are listed with the reason. A ranked line, or a published question, that cannot be used is named on\n"
    "the standard error with file, line and reason, and the exit code is 1.",
    examples=(
        "kbsource qampari-contexts qampari/enwiki-20261001 --passages passages/enwiki-20261001 --output contexts",
        "kbsource qampari-contexts qampari/enwiki-20261001 --passages passages/enwiki-20261001 \\\n"
        "      --retrieved bm25-train.jsonl --retrieved bm25-dev.jsonl --output contexts --top 100",
        "kbsource qampari-contexts downloads/qampari_data --kb releases/enwiki-20261001 \\\n"
        "      --passages passages/enwiki-20261001 --output contexts",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
