"""``kbsource build``: a dump becomes a release."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command, add_job_arguments, run_flags, summary_json
from pipelines.commands.flags.dump_releases import Row, rejected_rows, release_text, table_bytes
from pipelines.options.fields import from_flags
from pipelines.terminal import print_text

if TYPE_CHECKING:
    from pipelines.jobs.build import BuildSummary


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from pipelines.options.build import BuildOptions

    add_job_arguments(BuildOptions, parser)


def _run(args: argparse.Namespace) -> int:
    from pipelines.jobs.build import build
    from pipelines.jobs.build_inputs import BadDumpError, finding_line
    from pipelines.options.build import BuildOptions
    from pipelines.progress import Progress

    options = from_flags(vars(args), BuildOptions)
    try:
        summary = build(options, flags=run_flags(args), progress=Progress())
    except BadDumpError as error:
        for finding in error.findings:
            print(finding_line(finding), file=sys.stderr)
        raise
    if args.json:
        print(summary_json(summary, **summary_values(summary)))
    else:
        print_text(summary_text(summary))
    return 0


def summary_values(summary: BuildSummary) -> dict[str, Any]:
    """Gives what was made, for JSON."""
    manifest = summary.manifest
    return {
        "counts": dataclasses.asdict(manifest.totals),
        "parse_statuses": manifest.parse_statuses,
        "findings": manifest.findings,
        "qid_conflicts": len(manifest.qid_conflicts),
        "titles_not_found": list(summary.titles_not_found),
        "bytes": table_bytes(manifest.tables),
    }


def summary_text(summary: BuildSummary) -> str:
    """Gives what a build made for reading, and what to do next."""
    manifest = summary.manifest
    totals, findings = manifest.totals, manifest.findings
    rows: list[Row] = [
        ("pages read", totals.pages_read),
        ("  articles", totals.articles),
        ("  redirects", totals.redirects),
        ("  other namespaces", totals.other_namespaces),
        *rejected_rows(totals.rejected),
    ]
    rows += [("not selected", findings["not_selected"])] if findings.get("not_selected") else []
    rows += [
        ("anchors", findings.get("anchors", 0)),
        ("  resolved", findings.get("anchors_resolved", 0)),
        ("disambiguation pages", findings.get("disambiguation_pages", 0)),
        ("with a Wikidata item", findings.get("pages_with_item", 0)),
    ]
    rows += [
        (f"  {title}", findings[name])
        for name, title in (
            ("items_same", "as sitelinks and page_props say"),
            ("items_only_wikidata", "sitelinks alone"),
            ("items_only_page_props", "page_props alone"),
            ("items_differ", "they differ"),
        )
        if name in findings
    ]
    rows += [(f"parsed as {name}", n) for name, n in manifest.parse_statuses.items() if name != "ok"]
    if n_definitions := findings.get("template_definitions"):
        rows += [("template definitions", n_definitions)]
    rows += [("unknown templates", len(manifest.unknown_templates))] if manifest.unknown_templates else []
    n_modules = findings.get("loss_module", 0)
    rows += [("calls of Lua modules without a result", n_modules)] if n_modules else []
    missing = summary.titles_not_found
    remarks = (
        [f"{len(missing)} of the titles asked for are not in the dump, the first: {missing[0]}"] if missing else []
    )
    if manifest.options["templates"] == "definitions" and not n_definitions:
        remarks.append("The dump defines no templates (namespace 10): those that no rule knows show nothing.")
    if n_modules and manifest.options["templates"] == "definitions":
        remarks.append("Definitions call Lua modules, which --templates lua runs.")
    remark = "\n".join(remarks) or None
    return release_text(rows, manifest.tables, output=summary.output, seconds=summary.seconds, remark=remark)


COMMAND = Command(
    name="build",
    summary="build a release from a dump",
    description="Builds a release: Parquet tables of pages, redirects, templates and rejected records, an index, and\n"
    "manifest.json, which is written last. Any option that is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource build --dump 'dumps/enwiki-20261001-pages-articles-multistream*.xml*.bz2' \\\n"
        "      --page-props dumps/enwiki-20261001-page_props.sql.gz --output releases/enwiki-20261001 \\\n"
        "      --runner local-multi",
        "kbsource build --dump dumps/enwiki-20261001-pages-articles.xml.bz2 --limit-pages 1000 --output releases/try",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="build",
    takes_beam_flags=True,
)
