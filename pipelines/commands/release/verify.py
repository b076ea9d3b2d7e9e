"""``kbsource verify``: is what a command wrote as it was written, and do its laws hold?"""

from __future__ import annotations

import argparse
import dataclasses
import json

from pipelines.commands.flags.common import Command


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("release", metavar="RELEASE", help="folder of a release of any kind")
    parser.add_argument(
        "--kb",
        metavar="DIR",
        help="for passages, entity-linking data or a QAMPARI release: the release of pages that it was made from, to "
        "cut the pages again or to compare proofs with their texts",
    )
    made_from = "for questions with passages, with the other one: the {} that they were made from, to find them again"
    parser.add_argument("--qampari", metavar="DIR", help=made_from.format("QAMPARI release"))
    parser.add_argument("--passages", metavar="DIR", help=made_from.format("passages"))
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import counted
    from kbsource.release.findings import RULES
    from kbsource.release.verify import verify
    from mapping.kinds import KINDS
    from pipelines.progress import Done, Progress
    from pipelines.stores.storage import storage_for

    names = ("kb", "qampari", "passages")
    sources = {name: path for name in names if (path := getattr(args, name)) is not None}
    storage = storage_for(args.release, *sources.values())
    done, total = 0, 0

    def see(n_done: int, n_total: int) -> None:
        nonlocal done, total
        done, total = n_done, n_total

    with Progress().stage("verify", lambda: Done(done, total)):
        report = verify(args.release, KINDS, storage, sources=sources, on_progress=see)
    if args.json:
        values = dataclasses.asdict(report)
        counts = {f"n_{name.rpartition(' ')[2]}": n for name, n in values.pop("counts").items()}
        print(json.dumps({"ok": report.is_sound, **values, **counts}, ensure_ascii=False, indent=2))
        return 0 if report.is_sound else 1
    rules = {slug: meaning for known in (RULES, *(kind.rules for kind in KINDS)) for slug, meaning in known.items()}
    for finding in report.findings:
        n_cases = counted(finding.n_cases, "cases")
        print(f"{finding.file}: {rules[finding.rule]} ({finding.rule}, {n_cases}): {finding.example}")
    sizes = {"files": report.n_files, "bytes": report.n_bytes, "rows": report.n_rows, **report.counts}
    against = " with their texts" if report.has_texts else ""
    verdict = "Sound" if report.is_sound else "NOT sound"
    print(f"{verdict}: {', '.join(counted(n, name) for name, n in sizes.items())}{against} checked.")
    if report.extra:
        print(f"Added beside it, not checked: {', '.join(report.extra)}.")
    return 0 if report.is_sound else 1


COMMAND = Command(
    name="verify",
    summary="recompute everything that a release claims",
    description="Recomputes hashes, counts, schemas and laws of a release of any kind from its files alone. Exit\n"
    "code 1 when anything is not as the manifest says. What kbsource publish and people\n"
    "add at the top, like README.md, LICENSE and croissant.json, is named, and no fault.",
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
