"""``kbsource verify``: is what a command wrote as it was written, and do its laws hold?"""

from __future__ import annotations

import argparse
import dataclasses
import json

from pipelines.commands.flags.common import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release or an alignment")
    parser.add_argument(
        "--kb",
        metavar="DIR",
        help="for passages or a QAMPARI release: the release of pages that it was made from, to cut the pages again or "
        "to compare proofs with their texts",
    )
    made_from = "for questions with passages, with the other one: the {} that they were made from, to find them again"
    parser.add_argument("--qampari", metavar="DIR", help=made_from.format("QAMPARI release"))
    parser.add_argument("--passages", metavar="DIR", help=made_from.format("passages"))
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.files import join
    from kbsource.release.layout import MANIFEST
    from kbsource.release.verify import VerifyReport, verify_release
    from kbsource.wikidata.manifest import is_wikidata_release
    from kbsource.wikidata.verify import WikidataReport, verify_wikidata
    from mapping.verify_output import RULES, OutputReport, is_output, verify_output
    from pipelines.progress import Done, Progress
    from pipelines.stores.storage import storage_for

    storage = storage_for(*(path for path in (args.release, args.kb, args.qampari, args.passages) if path is not None))
    done, total = 0, 0

    def see(n_done: int, n_total: int) -> None:
        nonlocal done, total
        done, total = n_done, n_total

    report: VerifyReport | WikidataReport | OutputReport
    with Progress().stage("verify", lambda: Done(done, total)):
        if is_output(args.release, storage):
            report = verify_output(
                args.release, storage, kb=args.kb, qampari=args.qampari, passages=args.passages, on_progress=see
            )
        elif any((args.kb, args.qampari, args.passages)) and storage.exists(join(args.release, MANIFEST)):
            raise SetupError(
                f"{args.release}: --kb is for QAMPARI releases and passages, --qampari and --passages are for "
                "questions with passages, and the manifest here is of none of these, or damaged; leave them out."
            )
        elif is_wikidata_release(args.release, storage):
            report = verify_wikidata(args.release, storage, on_progress=see)
        else:
            report = verify_release(args.release, storage, on_progress=see)
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
    elif isinstance(report, OutputReport):
        checked += f"{report.n_rows:,} rows"
        against = " with their texts" if report.has_texts else ""
        if report.n_passages:
            checked += f", {report.n_passages:,} passages{against}"
        if report.n_questions:
            checked += (
                f", {report.n_questions:,} questions, {report.n_answers:,} answers, {report.n_proofs:,} proofs{against}"
            )
        checked += " checked"
    else:
        checked += f"{report.n_pages:,} pages, {report.n_anchors:,} anchors, {report.n_redirects:,} redirects checked"
    print(f"{'Sound' if report.is_sound else 'NOT sound'}: {checked}.")
    return 0 if report.is_sound else 1


COMMAND = Command(
    name="verify",
    summary="recompute everything that a release claims",
    description="Recomputes hashes, counts, schemas and laws of a release, an alignment, passages, a QAMPARI\n"
    "release or questions with passages from its files alone. Exit code 1 when anything is not as the manifest says.",
    examples=(
        "kbsource verify releases/enwiki-20261001",
        "kbsource verify --json releases/enwiki-20261001",
        "kbsource verify qampari/enwiki-20261001 --kb releases/enwiki-20261001",
        "kbsource verify passages/enwiki-20261001 --kb releases/enwiki-20261001",
        "kbsource verify contexts --qampari qampari/enwiki-20261001 --passages passages/enwiki-20261001",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
