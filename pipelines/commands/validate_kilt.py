"""``kbsource validate-kilt``: does a KILT file fit a release?"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from typing import TYPE_CHECKING

from pipelines.commands.common import Command

if TYPE_CHECKING:
    from mapping.places import Numbering


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="KILT file; .gz and .bz2 too")
    add("--kb", required=True, metavar="RELEASE", help="folder of the release it was made for, on a local disk")
    add(
        "--alignments",
        metavar="DIR",
        help="folder that kbsource map wrote, to compute BLEU again (default: the file's own, where it is one)",
    )
    add("--numbering", choices=("kilt", "elements"), help="of paragraphs (default: as in --alignments, else kilt)")
    add("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.lookup import KnowledgeSource
    from mapping.validate import RULES, validate_kilt
    from pipelines.storage import storage_for

    folder = args.alignments or _own_folder(args.file)
    with KnowledgeSource.open(args.kb) as source:
        result = validate_kilt(
            args.file,
            source,
            storage_for(args.file, folder or args.file),
            numbering=args.numbering or _numbering(folder),
            alignments=folder,
        )
    if args.json:
        findings = [one._asdict() for one in result.findings]
        value = {"ok": result.is_valid, **dataclasses.asdict(result), "findings": findings}
        print(json.dumps(value, ensure_ascii=False, indent=2))
        return 0 if result.is_valid else 1
    for finding in result.findings:
        print(f"line {finding.line}, {finding.example_id}: {RULES[finding.rule]} ({finding.rule}): {finding.detail}")
    for rule, count in sorted(result.broken.items()):
        print(f"{count:>8,} times: {RULES[rule]} ({rule})")
    print(
        f"{'Valid' if result.is_valid else 'NOT valid'}: {result.records:,} records, {result.outputs:,} outputs, "
        f"{result.spans:,} spans checked, {result.located:,} with characters, BLEU of {result.rescored:,} recomputed."
    )
    return 0 if result.is_valid else 1


def _own_folder(file: str) -> str | None:
    folder = os.path.dirname(file) or "."
    return folder if os.path.isdir(os.path.join(folder, "alignments")) else None


def _numbering(folder: str | None) -> Numbering:
    manifest = os.path.join(folder, "manifest.json") if folder is not None else ""
    if not os.path.isfile(manifest):
        return "kilt"
    with open(manifest, encoding="utf-8") as file:
        options = json.load(file).get("options", {})
    return "elements" if options.get("numbering") == "elements" else "kilt"


COMMAND = Command(
    name="validate-kilt",
    summary="check a KILT file against a release",
    description="Checks types, ids, pages, places and sections of a KILT file, and BLEU where the evidence is known.\n"
    "Exit code 1 when a rule is broken.",
    examples=(
        "kbsource validate-kilt aligned/fever/fever-dev-kilt.jsonl --kb releases/enwiki-20261001",
        "kbsource validate-kilt nq-dev-kilt.jsonl --kb releases/enwiki-20190801 --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
