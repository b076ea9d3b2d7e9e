"""``kbsource pageviews``: the page views that Wikimedia publishes become a release, a table of sums."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from pipelines.commands.flags.common import Command, add_job_arguments, run_flags, summary_json
from pipelines.commands.flags.dump_releases import Row, rejected_rows, release_text, table_bytes
from pipelines.options.fields import from_flags
from pipelines.terminal import print_text


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from pipelines.options.pageviews import PageviewsOptions

    add_job_arguments(PageviewsOptions, parser)


def _run(args: argparse.Namespace) -> int:
    from pipelines.jobs.pageviews import make_pageviews
    from pipelines.options.pageviews import PageviewsOptions
    from pipelines.progress import Progress

    options = from_flags(vars(args), PageviewsOptions)
    summary = make_pageviews(options, flags=run_flags(args), progress=Progress())
    manifest, totals = summary.manifest, summary.manifest.totals
    if args.json:
        sizes = table_bytes(manifest.tables)
        print(summary_json(summary, counts=asdict(totals), views=manifest.views, bytes=sizes))
        return 0
    rows: list[Row] = [
        (f"lines of {options.site}", totals.lines_read),
        ("  used", totals.used),
        ("  of other namespaces", totals.other_namespaces),
        ("  of no page", totals.no_page),
        *rejected_rows(totals.rejected),
        ("titles and pages", manifest.n_rows("pageviews")),
        ("views", manifest.views),
    ]
    print_text(release_text(rows, manifest.tables, output=summary.output, seconds=summary.seconds))
    return 0


COMMAND = Command(
    name="pageviews",
    summary="make a release of the page views of a time",
    description="Sums the views of the articles of one Wikipedia over files of page views, pageview_complete or\n"
    "pagecounts, by title and page id, and writes a Parquet table and manifest.json, which is written last.\n"
    "Any option that is not listed here is passed to Beam as it is.",
    examples=(
        "kbsource pageviews --input 'views/pageviews-202610*-user.bz2' --output releases/views-202610",
        "kbsource pageviews --input pagecounts-2019-10-views-ge-5-totals.bz2 --site dewiki --output releases/views",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="build",
    takes_beam_flags=True,
)
