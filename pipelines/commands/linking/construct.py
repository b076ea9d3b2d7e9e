"""``kbsource entity-linking``: mentions with their contexts and an alias table, out of the links of a release."""

from __future__ import annotations

import argparse
import shlex
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import Command, add_job_arguments, facts_table, run_flags, summary_json
from pipelines.options.fields import from_flags
from pipelines.progress import clock, size
from pipelines.terminal import print_text

if TYPE_CHECKING:
    from pipelines.jobs.entity_linking import EntityLinkingSummary
    from pipelines.options.entity_linking import EntityLinkingOptions


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from pipelines.options.entity_linking import EntityLinkingOptions

    add_job_arguments(EntityLinkingOptions, parser)


def _run(args: argparse.Namespace) -> int:
    from pipelines.jobs.entity_linking import make_entity_linking
    from pipelines.options.entity_linking import EntityLinkingOptions
    from pipelines.progress import Progress

    options = from_flags(vars(args), EntityLinkingOptions)
    summary = make_entity_linking(options, flags=run_flags(args), progress=Progress())
    counts = summary.manifest.facts["counts"]
    if args.json:
        print(summary_json(summary, counts=counts))
    else:
        print_text(summary_text(summary, options))
    return 0


def summary_text(summary: EntityLinkingSummary, options: EntityLinkingOptions) -> str:
    """Gives what was made for reading, and what to do next."""
    counts = summary.manifest.facts["counts"]
    rows: list[tuple[str, object]] = [("pages", counts["pages"])]
    if options.exclude is not None:
        rows.append(("  excluded", counts["excluded_pages"]))
        rows.append(("  lines of the list that name none", counts["exclusion"]["unmatched"]))
    rows.append(("links", counts["links"]))
    rows += [(f"  skipped: {reason}", n_links) for reason, n_links in counts["skipped"].items() if n_links]
    rows.append(("  that say what another says", counts["duplicates"]))
    for split, wanted in (("train", options.train), ("dev", options.dev)):
        fewer = f" of {wanted:,} wanted: the pages of {split} have no more" if counts[split] < wanted else ""
        rows.append((split, f"{counts[split]:,}{fewer}" if fewer else counts[split]))
    rows += [
        ("mentions", counts["mentions"]),
        ("  with their pages", counts["aliases"]),
        ("files", size(sum(entry.bytes for entry in summary.manifest.entries()))),
        ("wall time", clock(summary.seconds)),
    ]
    again = f"kbsource verify {shlex.quote(summary.output)} --kb {shlex.quote(options.kb)}"
    return f"{facts_table(rows)}\n\nThe data are in {summary.output}. Check them: {again}"


COMMAND = Command(
    name="entity-linking",
    summary="make entity-linking data and an alias table out of the links of a release",
    description="Samples the links of paragraphs and list items into records as KILT publishes BLINK's, train and dev\n"
    "from different pages, and counts what every mention means into an alias table, which `kbsource link`\n"
    "uses. manifest.json is written last. Any option that is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource entity-linking --kb releases/enwiki-20261001 --output linking/enwiki-20261001 --runner local-multi",
        "kbsource entity-linking --kb releases/enwiki-20261001 --output linking/small --train 100000 --dev 1000 \\\n"
        "      --context-chars 250 --exclude wned-pages.txt",
    ),
    add_arguments=_add_arguments,
    run=_run,
    takes_beam_flags=True,
)
