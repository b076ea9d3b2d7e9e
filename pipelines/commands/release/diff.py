"""``kbsource diff``: what became of the pages of a release in a later one."""

from __future__ import annotations

import argparse
import json
import os

from pipelines.commands.flags.common import Command, facts_table

_MEMORY_MB = 1000


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("old", metavar="OLD", help="folder of the older release")
    parser.add_argument("new", metavar="NEW", help="folder of the newer release, of the same wiki")
    parser.add_argument("--output", required=True, metavar="DIR", help="local folder for the diff; must not exist yet")
    parser.add_argument(
        "--memory-mb",
        type=int,
        default=_MEMORY_MB,
        metavar="N",
        help="most that the joins of both releases take, in MB; the rest goes to the disk (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of these joins (default: one per core)")
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.diff.making import DiffOptions, make_diff
    from kbsource.errors import SetupError
    from pipelines.progress import Done, Progress
    from pipelines.stores.storage import storage_for

    threads = (os.cpu_count() or 1) if args.threads is None else args.threads
    for name, value, least in (("memory-mb", args.memory_mb, 100), ("threads", threads, 1)):
        if value < least:
            raise SetupError(f"--{name} is {value}; give at least {least}.")
    seen = Done(0, 1, unit="releases")

    def see(unit: str, n_done: int, n_total: int) -> None:
        nonlocal seen
        seen = Done(n_done, n_total, unit=unit)

    with Progress().stage("diff", lambda: seen):
        report = make_diff(
            args.old,
            args.new,
            args.output,
            storage_for(args.old, args.new),
            options=DiffOptions(args.memory_mb, threads),
            on_step=see,
        ).report
    if args.json:
        print(json.dumps({"output": args.output, **report}, ensure_ascii=False, indent=2))
        return 0
    counts, text = report["counts"], report["text"]
    rows = [(f"pages {outcome}", n) for outcome, n in counts["page_changes"].items()]
    rows += [("text kept", f"{100 * text['kept_share']:.2f} %"), ("items moved", report["flags"]["qid_moved"])]
    rows += [(f"redirects {outcome}", n) for outcome, n in counts["redirect_changes"].items()]
    print(facts_table(rows))
    return 0


COMMAND = Command(
    name="diff",
    summary="say what became of every page of a release in a later one",
    description="Compares two releases of one wiki: pages that changed, were renamed, merged, split, made again, are\n"
    "gone or new; their sections; and where each piece of an old page stands now. Writes tables and a report.\n"
    "Needs pip install 'kbsource[diff]'.",
    examples=(
        "kbsource diff releases/enwiki-20190801 releases/enwiki-20261001 --output diffs/enwiki-2019-2026",
        "kbsource verify diffs/enwiki-2019-2026 --old releases/enwiki-20190801 --new releases/enwiki-20261001",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
