"""``kbsource wikidata``: a JSON dump of Wikidata becomes a release of tables."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
from typing import TYPE_CHECKING

from pipelines.commands.common import Command, add_dump_arguments, add_run_arguments, facts_table
from pipelines.progress import clock, size

if TYPE_CHECKING:
    from pipelines.jobs.wikidata import WikidataSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--dump",
        action="append",
        required=True,
        metavar="PATTERN",
        help="JSON dump (.json.bz2, .json.gz, .json, .ndjson), one entity a line; may be given several times",
    )
    add_dump_arguments(parser, records="lines")
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
    from pipelines.options_wikidata import WikidataOptions
    from pipelines.progress import Progress
    from pipelines.runners import beam_flags

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
    flags = beam_flags(args.runner, workers=args.workers, beam_args=args.beam_args)
    summary = make_wikidata(options, flags=flags, progress=Progress())
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
        "rows": {name: sum(one.rows for one in entries) for name, entries in manifest.tables.items()},
        "bytes": {name: sum(one.bytes for one in entries) for name, entries in manifest.tables.items()},
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def summary_text(summary: WikidataSummary) -> str:
    """Gives what was made for reading, and what to do next."""
    manifest = summary.manifest
    totals = manifest.totals
    rows: list[tuple[str, object]] = [
        ("lines read", totals.lines_read),
        ("  items", totals.items),
        ("  properties", totals.properties),
        ("  other entities", totals.other_entities),
        ("  rejected", totals.n_rejected),
        *((f"    {reason}", count) for reason, count in sorted(totals.rejected.items())),
    ]
    for name in ("sitelinks", "statements", "classes"):
        rows.append((f"rows of {name}", sum(entry.rows for entry in manifest.tables[name])))
    n_bytes = sum(entry.bytes for entries in manifest.tables.values() for entry in entries)
    rows += [("tables", size(n_bytes)), ("wall time", clock(summary.seconds))]
    done = f"The release is in {summary.output}. Check it: kbsource verify {shlex.quote(summary.output)}"
    return f"{facts_table(rows)}\n\n{done}"


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
