"""``kbsource check-dump``: is a dump complete and sound?"""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pipelines.commands.flags.common import Command
from pipelines.terminal import Style, styled

if TYPE_CHECKING:
    from kbsource.dump.check import DumpFinding

_REMEDIES = {
    "end_not_checked": "Read all of it: --deep.",
    "truncated_dump": "Download it again, or build what can be read of it with --allow-truncated.",
}
"""What to do, with the options of the commands, by code of the finding."""


_STYLES: dict[str, Style] = {"error": "red", "warning": "yellow", "info": "bold"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("dump", nargs="+", metavar="PATTERN", help="files of one dump, or patterns; quote patterns")
    parser.add_argument(
        "--deep", action="store_true", help="decode everything: every page, the index against the content"
    )
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.dump.check import check_dump
    from kbsource.dump.ranges import expand_inputs
    from kbsource.errors import counted
    from pipelines.progress import Done, Progress
    from pipelines.stores.storage import storage_for

    storage = storage_for(*args.dump)
    paths = expand_inputs(args.dump, storage)
    total = sum(storage.size(path) for path in paths) * (2 if args.deep else 1)
    done = 0

    def add(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes

    with Progress().stage("check", lambda: Done(done, total)):
        report = check_dump(paths, storage, deep=args.deep, on_progress=add)
    findings = _named(report.findings, deep=args.deep)
    if args.json:
        value = {
            "ok": not report.has_errors,
            "files": [
                {
                    "path": input_.path,
                    "name": input_.name,
                    "n_bytes": input_.hashed.n_bytes,
                    "sha256": input_.hashed.sha256,
                }
                for input_ in report.inputs
            ],
            "findings": [dataclasses.asdict(one) for one in findings],
        }
        print(json.dumps(value, ensure_ascii=False, indent=2))
        return 1 if report.has_errors else 0
    for finding in findings:
        place = f"{finding.file}: " if finding.file else ""
        print(f"{styled(f'{finding.severity.upper():7}', _STYLES[finding.severity])} {place}{finding.message}")
        if finding.remedy:
            print(f"        {finding.remedy}")
    n_errors = sum(one.severity == "error" for one in findings)
    n_warnings = sum(one.severity == "warning" for one in findings)
    verdict = styled("The dump is not in order", "red") if n_errors else styled("The dump is in order", "green")
    shown = {"files": len(paths), "errors": n_errors, "warnings": n_warnings}
    print(f"{verdict}: {', '.join(counted(n, name) for name, n in shown.items())}.")
    return 1 if n_errors else 0


def _named(findings: Iterable[DumpFinding], *, deep: bool) -> list[DumpFinding]:
    """Gives the findings with options by name, without what no longer holds when all was read."""
    shown = [finding for finding in findings if not (deep and finding.code == "end_not_checked")]
    return [
        dataclasses.replace(finding, remedy=_REMEDIES[finding.code])
        if finding.code in _REMEDIES and finding.remedy
        else finding
        for finding in shown
    ]


COMMAND = Command(
    name="check-dump",
    summary="say whether a dump is complete and sound",
    description="Checks a dump without building anything: sizes and checksums, head and end of every file, parts that\n"
    "belong together, index. Every finding says what it means and what to do. Exit code 1 when there are errors.",
    examples=(
        "kbsource check-dump 'dumps/enwiki-20261001-pages-articles-multistream*.xml*.bz2'",
        "kbsource check-dump --deep --json dumps/ltgwiki-20261001-pages-articles.xml.gz",
    ),
    add_arguments=_add_arguments,
    run=_run,
    needs="build",
)
