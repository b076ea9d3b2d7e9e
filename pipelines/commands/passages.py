"""``kbsource passages``: the pages of a release cut into passages, which retrievers index."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING

from mapping.passages.cut import MAX_WORDS
from mapping.passages.forms import FORMS
from pipelines.commands.flags.common import Command, add_run_arguments, facts_table, run_flags
from pipelines.progress import clock, size

if TYPE_CHECKING:
    from pipelines.jobs.passages import PassagesSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--kb", required=True, metavar="RELEASE", help="folder of a release")
    add("--output", required=True, metavar="DIR", help="folder of the corpus; new, or left by a run that was killed")
    add(
        "--max-words",
        type=int,
        default=MAX_WORDS,
        metavar="N",
        help="most words of a passage (default: %(default)s)",
    )
    add(
        "--split-long-sentences",
        action="store_true",
        help="cut a sentence of more words behind each N of them; else it is a passage by itself",
    )
    add(
        "--format",
        action="append",
        choices=tuple(FORMS),
        default=[],
        metavar="NAME",
        help="write the passages in this form too; may be given several times: "
        + "; ".join(f"{name}, {form.meaning}" for name, form in FORMS.items()),
    )
    add_run_arguments(parser)


def _run(args: argparse.Namespace) -> int:
    from mapping.passages.corpus import CutOptions
    from pipelines.jobs.passages import make_passages
    from pipelines.options.passages import PassagesOptions
    from pipelines.progress import Progress

    options = PassagesOptions(
        kb=args.kb,
        output=args.output,
        cut=CutOptions(args.max_words, args.split_long_sentences),
        formats=tuple(args.format),
        worker_memory_bytes=args.worker_memory << 20,
    )
    summary = make_passages(options, flags=run_flags(args), progress=Progress())
    print(summary_json(summary) if args.json else summary_text(summary, args.kb))
    return 0


def summary_json(summary: PassagesSummary) -> str:
    """Gives what was made as one JSON object."""
    value = {
        "output": summary.output,
        "seconds": round(summary.seconds, 1),
        "counts": summary.manifest.facts["counts"],
        "bytes": {entry.file: entry.bytes for entry in summary.manifest.entries()},
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def summary_text(summary: PassagesSummary, kb: str) -> str:
    """Gives what was made for reading, and what to do next."""
    counts = summary.manifest.facts["counts"]
    rows: list[tuple[str, object]] = [
        ("pages", counts["pages"]),
        ("  without running text", counts["pages_without_text"]),
        ("passages", counts["passages"]),
        ("  of one longer sentence", counts["long_passages"]),
        ("words", counts["words"]),
        ("  in a passage (mean)", f"{counts['words'] / max(counts['passages'], 1):.1f}"),
        ("files", size(sum(entry.bytes for entry in summary.manifest.entries()))),
        ("wall time", clock(summary.seconds)),
    ]
    again = f"kbsource verify {shlex.quote(summary.output)} --kb {shlex.quote(kb)}"
    return f"{facts_table(rows)}\n\nThe corpus is in {summary.output}. Check it: {again}"


COMMAND = Command(
    name="passages",
    summary="cut the pages of a release into passages for retrievers",
    description="Cuts the running text of every page into passages of consecutive whole sentences and writes a\n"
    "Parquet table with the exact place of each, and manifest.json, which is written last. Nothing of the\n"
    "text is lost. Any option that is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource passages --kb releases/enwiki-20261001 --output passages/enwiki-20261001 --runner local-multi",
        "kbsource passages --kb releases/enwiki-20261001 --output passages/enwiki-20261001 \\\n"
        "      --format pyserini --format dpr --max-words 120 --split-long-sentences",
    ),
    add_arguments=_add_arguments,
    run=_run,
    takes_beam_flags=True,
)
