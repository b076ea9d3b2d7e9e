"""``kbsource wikidata``: a JSON dump of Wikidata becomes a release of tables."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, add_job_arguments, run_flags, summary_json
from pipelines.commands.flags.dump_releases import Row, rejected_rows, release_text, table_bytes
from pipelines.options.fields import from_flags
from pipelines.terminal import print_text

if TYPE_CHECKING:
    from pipelines.jobs.wikidata import WikidataSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from pipelines.options.wikidata import WikidataOptions

    add_job_arguments(WikidataOptions, parser)


def _run(args: argparse.Namespace) -> int:
    from pipelines.jobs.wikidata import make_wikidata
    from pipelines.options.wikidata import WikidataOptions
    from pipelines.progress import Progress

    options = from_flags(vars(args), WikidataOptions)
    summary = make_wikidata(options, flags=run_flags(args), progress=Progress())
    if args.json:
        print(summary_json(summary, **summary_values(summary)))
    else:
        print_text(summary_text(summary))
    return 0


def summary_values(summary: WikidataSummary) -> dict[str, Any]:
    """Gives what was made, for JSON."""
    manifest = summary.manifest
    return {
        "counts": dataclasses.asdict(manifest.totals),
        "findings": manifest.findings,
        "rows": {name: manifest.n_rows(name) for name in manifest.tables},
        "bytes": table_bytes(manifest.tables),
    }


def summary_text(summary: WikidataSummary) -> str:
    """Gives what was made for reading, and what to do next."""
    manifest = summary.manifest
    totals = manifest.totals
    rows: list[Row] = [
        ("lines read", totals.lines_read),
        ("  items", totals.items),
        ("  properties", totals.properties),
        ("  other entities", totals.other_entities),
        *rejected_rows(totals.rejected),
    ]
    for name in ("sitelinks", "statements", "classes"):
        rows.append((f"rows of {name}", manifest.n_rows(name)))
    return release_text(rows, manifest.tables, output=summary.output, seconds=summary.seconds)


COMMAND = Command(
    name="wikidata",
    summary="make a release of tables from a dump of Wikidata",
    description="Makes Parquet tables of items, properties, sitelinks, statements and the class closure, and\n"
    "manifest.json, which is written last. Any option that is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource wikidata --dump dumps/wikidata-20261001-all.json.bz2 --output releases/wikidata-20261001 \\\n"
        "      --sites enwiki --runner local-multi",
        "kbsource wikidata --dump entities.ndjson --languages de,en --qualifiers all --output releases/try",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="build",
    takes_beam_flags=True,
)
