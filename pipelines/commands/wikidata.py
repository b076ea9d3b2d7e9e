"""``kbsource wikidata``: a JSON dump of Wikidata becomes a release of tables."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import Command, add_run_arguments, run_flags
from pipelines.commands.flags.dump_releases import Row, add_dump_arguments, rejected_rows, release_text, table_bytes

if TYPE_CHECKING:
    from pipelines.jobs.wikidata import WikidataSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_dump_arguments(
        parser,
        dump_help="JSON dump (.json.bz2, .json.gz, .json, .ndjson), one entity a line; may be given several times",
        records="lines",
    )
    add(
        "--languages",
        default="en",
        metavar="LIST",
        help="languages of labels, descriptions and aliases, the preferred one first; their variants and mul come "
        "with them (default: %(default)s)",
    )
    add("--sites", default="all", metavar="LIST", help="wikis whose sitelinks are kept, like enwiki,dewiki, or all")
    add(
        "--qualifiers",
        metavar="LIST",
        help="properties of the qualifiers that are kept, like P580,P582, or all, or none (default: those of time, "
        "role and certainty)",
    )
    add_run_arguments(parser)


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _run(args: argparse.Namespace) -> int:
    from kbsource.wikidata.entity import NEEDED_QUALIFIERS
    from pipelines.jobs.wikidata import make_wikidata
    from pipelines.options.wikidata import WikidataOptions
    from pipelines.progress import Progress

    named = {None: NEEDED_QUALIFIERS, "all": None, "none": ()}
    options = WikidataOptions(
        dump=tuple(args.dump),
        output=args.output,
        languages=_listed(args.languages),
        sites=None if args.sites == "all" else _listed(args.sites),
        qualifiers=named[args.qualifiers] if args.qualifiers in named else _listed(args.qualifiers),
        max_rejects=args.max_rejects,
        allow_truncated=args.allow_truncated,
        worker_memory_bytes=args.worker_memory << 20,
        range_bytes=args.range_bytes,
    )
    summary = make_wikidata(options, flags=run_flags(args), progress=Progress())
    print(summary_json(summary) if args.json else summary_text(summary))
    return 0


def summary_json(summary: WikidataSummary) -> str:
    """Gives what was made as one JSON object."""
    manifest = summary.manifest
    value = {
        "output": summary.output,
        "seconds": round(summary.seconds, 1),
        "counts": dataclasses.asdict(manifest.totals),
        "findings": manifest.findings,
        "rows": {name: manifest.n_rows(name) for name in manifest.tables},
        "bytes": table_bytes(manifest.tables),
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


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
    takes_beam_flags=True,
)
