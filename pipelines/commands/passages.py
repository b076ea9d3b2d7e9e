"""``kbsource passages``: the pages of a release cut into passages, which retrievers index."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, add_job_arguments, facts_table, run_flags, summary_json
from pipelines.options.fields import from_flags
from pipelines.progress import clock, size
from pipelines.terminal import print_text

if TYPE_CHECKING:
    from pipelines.jobs.passages import PassagesSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from pipelines.options.passages import PassagesOptions

    add_job_arguments(PassagesOptions, parser)


def _run(args: argparse.Namespace) -> int:
    from pipelines.jobs.passages import make_passages
    from pipelines.options.passages import PassagesOptions
    from pipelines.progress import Progress

    options = from_flags(vars(args), PassagesOptions)
    summary = make_passages(options, flags=run_flags(args), progress=Progress())
    if args.json:
        print(summary_json(summary, **summary_values(summary)))
    else:
        print_text(summary_text(summary, args.kb))
    return 0


def summary_values(summary: PassagesSummary) -> dict[str, Any]:
    """Gives what was made, for JSON."""

    return {
        "counts": summary.manifest.facts["counts"],
        "bytes": {entry.file: entry.bytes for entry in summary.manifest.entries()},
    }


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
