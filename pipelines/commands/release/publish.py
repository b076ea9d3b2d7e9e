"""``kbsource publish``: a release as a folder that can be uploaded as it is."""

from __future__ import annotations

import argparse
import datetime
import re

from pipelines.commands.flags.common import Command

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    from mapping.publish.rights import LICENCES

    parser.add_argument("release", metavar="RELEASE", help="folder of a release of any kind")
    parser.add_argument("--output", metavar="DIR", required=True, help="empty folder, or one to be made")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--link", action="store_true", help="hard links to the files of the release, or nothing")
    how.add_argument("--copy", action="store_true", help="copies of them; by default links where that is possible")
    parser.add_argument(
        "--licence",
        choices=tuple(LICENCES),
        metavar="ID",
        help=f"licence of the text, where it is not Wikipedia's: {', '.join(LICENCES)}",
    )
    parser.add_argument("--repo-id", metavar="OWNER/NAME", type=_repo_id, help="where on the hub it will lie")
    parser.add_argument("--date", metavar="DATE", type=_day, help="day of publication, as 2026-12-01")


def _repo_id(text: str) -> str:
    if _REPO_ID.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OWNER/NAME")
    return text


def _day(text: str) -> str:
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no date like 2026-12-01") from error


def _run(args: argparse.Namespace) -> int:
    from mapping.kinds import KINDS
    from mapping.publish.folder import publish
    from pipelines.progress import Done, Progress
    from pipelines.stores.storage import absolute, storage_for

    done, total = 0, 0

    def see(n_done: int, n_total: int) -> None:
        nonlocal done, total
        done, total = n_done, n_total

    storage = storage_for(args.release, args.output)
    with Progress().stage("publish", lambda: Done(done, total)):
        subject = publish(
            args.release,
            absolute(args.output),
            KINDS,
            storage,
            way="link" if args.link else "copy" if args.copy else "auto",
            licence=args.licence,
            repo_id=args.repo_id,
            day=args.date,
            on_progress=see,
        )
    print(f"{args.output}: {subject.title}, ready to be uploaded.")
    return 0


COMMAND = Command(
    name="publish",
    summary="prepare a folder of a release that can be uploaded to a dataset hub",
    description="Makes a folder with the files of a release of any kind, as they are, and what describes them: a\n"
    "dataset card, croissant.json, LICENSE and ATTRIBUTION.md, CITATION.cff, prov.json. The release itself\n"
    "is not touched.",
    examples=(
        "kbsource publish releases/enwiki-20261001 --output published/enwiki-20261001",
        "kbsource publish aligned --output published/aligned --copy --repo-id lab/aligned --date 2026-12-01",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
