"""``kbsource export-kilt``: the pages of a release as records of the KILT knowledge source."""

from __future__ import annotations

import argparse

from pipelines.commands.common import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release")
    parser.add_argument("--output", required=True, metavar="FILE", help="JSON Lines file; appears when it is complete")


def _run(args: argparse.Namespace) -> int:
    from kbsource.files import atomic_write
    from kbsource.kilt import write_kilt
    from kbsource.lookup import KnowledgeSource
    from kbsource.release.page_items_reader import TABLE, PageItemsReader
    from pipelines.progress import Done, Progress
    from pipelines.storage import storage_for

    done = 0

    def see(n_pages: int) -> None:
        nonlocal done
        done = n_pages

    with KnowledgeSource.open(args.release) as source:
        total = sum(entry.bytes for entry in source.manifest.tables["pages"])
        n_pages = len(source)
        has_terms = TABLE in source.manifest.tables
        terms = PageItemsReader(args.release, source.manifest).terms if has_terms else None

        def poll() -> Done:
            return Done(total * done // max(n_pages, 1), total, done)

        with (
            Progress().stage("export", poll),
            atomic_write(storage_for(args.output), args.output) as sink,
        ):
            n_written = write_kilt(source, sink, terms=terms, on_progress=see)
    called = "" if has_terms else " Items have their ids alone; a release built with --wikidata has their names too."
    print(f"{n_written:,} pages written to {args.output}.{called}")
    return 0


COMMAND = Command(
    name="export-kilt",
    summary="write a release in the form of the KILT knowledge source",
    description="Writes one JSON record a line, as the KILT knowledge source has them, in the order of the release.\n"
    "wikidata_info has label, description and aliases where the release was built with --wikidata.\n"
    "mongoimport and the datasets library load the file as it is.",
    examples=("kbsource export-kilt releases/enwiki-20261001 --output kilt_knowledgesource.jsonl",),
    add_arguments=_add_arguments,
    run=_run,
)
