"""``kbsource verify``: is a release what was written, and do its laws hold?"""

from __future__ import annotations

import argparse
import dataclasses
import json

from pipelines.commands.common import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.files import LocalStorage
    from kbsource.release.findings import RULES
    from kbsource.release.verify import verify_release
    from kbsource.wikidata.manifest import is_wikidata_release
    from kbsource.wikidata.verify import WikidataReport, verify_wikidata
    from pipelines.progress import Done, Progress

    done, total = 0, 0

    def see(n_done: int, n_total: int) -> None:
        nonlocal done, total
        done, total = n_done, n_total

    with Progress().stage("verify", lambda: Done(done, total)):
        is_wikidata = is_wikidata_release(args.release, LocalStorage())
        report = (verify_wikidata if is_wikidata else verify_release)(args.release, on_progress=see)
    if args.json:
        print(json.dumps({"ok": report.is_sound, **dataclasses.asdict(report)}, ensure_ascii=False, indent=2))
        return 0 if report.is_sound else 1
    for finding in report.findings:
        print(f"{finding.file}: {RULES[finding.rule]} ({finding.rule}, {finding.n_cases} cases): {finding.example}")
    checked = f"{report.n_files} files, {report.n_bytes:,} bytes, "
    if isinstance(report, WikidataReport):
        checked += (
            f"{report.n_entities:,} entities, {report.n_statements:,} statements, {report.n_sitelinks:,} sitelinks, "
            f"{report.n_classes:,} pairs of classes checked"
        )
    else:
        checked += f"{report.n_pages:,} pages, {report.n_anchors:,} anchors, {report.n_redirects:,} redirects checked"
    print(f"{'Sound' if report.is_sound else 'NOT sound'}: {checked}.")
    return 0 if report.is_sound else 1


COMMAND = Command(
    name="verify",
    summary="recompute everything that a release claims",
    description="Recomputes hashes, counts, schemas and laws of a release from its files alone. Exit code 1 when\n"
    "anything is not as the manifest says.",
    examples=("kbsource verify releases/enwiki-20261001", "kbsource verify --json releases/enwiki-20261001"),
    add_arguments=_add_arguments,
    run=_run,
)
