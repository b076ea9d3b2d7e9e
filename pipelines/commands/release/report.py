"""``kbsource report``: what releases are and hold, as one web page or as Markdown."""

from __future__ import annotations

import argparse
import sys

from pipelines.commands.flags.common import Command

_ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "releases", metavar="PATH", nargs="+", help="folder of a release of any kind; each has a section"
    )
    parser.add_argument("--output", metavar="FILE", help="takes the report (default: the standard output)")
    parser.add_argument(
        "--format",
        choices=("html", "markdown"),
        help="one HTML file that needs no other, or Markdown (default: by the ending of --output, else html)",
    )


def _run(args: argparse.Namespace) -> int:
    from kbsource.files import atomic_write
    from mapping.reports.as_markdown import write_markdown
    from mapping.reports.as_web_page import write_web_page
    from mapping.reports.of_releases import report_on
    from pipelines.stores.storage import storage_for

    storage = storage_for(*args.releases, *([args.output] if args.output else []))
    endings = (known for ending, known in _ENDINGS.items() if (args.output or "").endswith(ending))
    write = write_markdown if (args.format or next(endings, "html")) == "markdown" else write_web_page
    text = write(report_on(args.releases, storage))
    if args.output is None:
        sys.stdout.write(text)
        return 0
    with atomic_write(storage, args.output) as file:
        file.write(text.encode())
    print(f"report  {args.output}")
    return 0


COMMAND = Command(
    name="report",
    summary="write what releases are and hold as one web page",
    description="Writes a report on releases of any kind as one HTML file, which needs no script and nothing from\n"
    "elsewhere, or the same as Markdown. Of pages: inputs, counts and their law, sizes, losses, templates,\n"
    "distributions, markup left in 1,000 sampled articles. Of alignments: BLEU and outcomes beside the KILT\n"
    "paper, how far evidence moved, the worst spans, both signals crossed. Of QAMPARI and AmbER sets: funnel and\n"
    "statistics beside the papers. The same releases give the same bytes.",
    examples=(
        "kbsource report releases/enwiki-20261001 --output enwiki.html",
        "kbsource report releases/enwiki-20261001 aligned --output report.html",
        "kbsource report aligned/fever --format markdown",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
