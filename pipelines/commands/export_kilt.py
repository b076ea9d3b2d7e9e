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
    from pipelines.progress import Done, Progress
    from pipelines.storage import storage_for

    done = 0

    def see(n_pages: int) -> None:
        nonlocal done
        done = n_pages

    with KnowledgeSource.open(args.release) as source:
        total = sum(entry.bytes for entry in source.manifest.tables["pages"])
        n_pages = len(source)

        def poll() -> Done:
            return Done(total * done // max(n_pages, 1), total, done)

        with (
            Progress().stage("export", poll),
            atomic_write(storage_for(args.output), args.output) as sink,
        ):
            n_written = write_kilt(source, sink, on_progress=see)
    print(f"{n_written:,} pages written to {args.output}.")
    return 0


COMMAND = Command(
    name="export-kilt",
    summary="write a release in the form of the KILT knowledge source",
    description="Writes one JSON record a line, as the KILT knowledge source has them, in the order of the release.\n"
    "mongoimport and the datasets library load the file as it is.",
    examples=("kbsource export-kilt releases/enwiki-20261001 --output kilt_knowledgesource.jsonl",),
    add_arguments=_add_arguments,
    run=_run,
)
