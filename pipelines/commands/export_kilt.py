"""``kbsource export-kilt``: the pages of a release as records of the KILT knowledge source."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext

from pipelines.commands.flags.common import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release of pages")
    parser.add_argument(
        "--output",
        required=True,
        metavar="FILE",
        help="JSON Lines file; appears when it is complete. - for the standard output",
    )


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError, counted
    from kbsource.files import atomic_write
    from kbsource.kilt import write_kilt
    from kbsource.lookup import KnowledgeSource
    from kbsource.release.pages.page_items_reader import TABLE, PageItemsReader
    from pipelines.progress import Done, Progress
    from pipelines.stores.storage import storage_for

    if os.path.isdir(args.output):
        raise SetupError(f"--output {args.output} is a folder; name a file, like {args.output.rstrip('/')}/kilt.jsonl.")
    is_piped = args.output in ("-", "/dev/stdout")
    done = 0

    def see(n_pages: int) -> None:
        nonlocal done
        done = n_pages

    storage = storage_for(args.release)
    with KnowledgeSource.open(args.release, storage) as source:
        total = sum(entry.bytes for entry in source.manifest.tables["pages"])
        n_pages = len(source)
        has_terms = TABLE in source.manifest.tables
        terms = PageItemsReader(args.release, source.manifest, storage).terms if has_terms else None

        def poll() -> Done:
            return Done(total * done // max(n_pages, 1), total, done)

        with (
            Progress().stage("export", poll),
            nullcontext(sys.stdout.buffer) if is_piped else atomic_write(storage_for(args.output), args.output) as sink,
        ):
            n_written = write_kilt(source, sink, terms=terms, on_progress=see)
    called = "" if has_terms else " Items have their ids alone; a release built with --wikidata has their names too."
    place = "the standard output" if is_piped else args.output
    print(f"{counted(n_written, 'pages')} written to {place}.{called}", file=sys.stderr if is_piped else sys.stdout)
    return 0


COMMAND = Command(
    name="export-kilt",
    summary="write a release in the form of the KILT knowledge source",
    description="Writes one JSON record a line, as the KILT knowledge source has them, in the order of the release.\n"
    "wikidata_info has label, description and aliases where the release was built with --wikidata.\n"
    "mongoimport and the datasets library load the file as it is.",
    examples=(
        "kbsource export-kilt releases/enwiki-20261001 --output kilt_knowledgesource.jsonl",
        "kbsource export-kilt releases/enwiki-20261001 --output - | gzip > kilt_knowledgesource.jsonl.gz",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="",
)
