"""``kbsource validate-kilt``: does a KILT file fit a release?"""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from pipelines.commands.flags.common import Command

if TYPE_CHECKING:
    from kbsource.files import Storage
    from mapping.search.numbering import Numbering
    from mapping.write.validate import Validation

# What a file that was made for another snapshot breaks.
_OF_ANOTHER = frozenset({"page_unknown", "paragraph_range", "section_differs", "title_differs"})

_RIGHTFUL = ", as its manifest says: every record was left out. report.json beside it has the reasons."
_BROKEN = (
    ". Warning: the manifest beside it does not say that it has no records, or there is none; was the download or the "
    "run broken off?"
)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("file", metavar="FILE", help="KILT file; .gz and .bz2 too")
    add("--kb", required=True, metavar="RELEASE", help="folder of the release it was made for")
    add(
        "--alignments",
        metavar="DIR",
        help="folder that kbsource map wrote, to compute BLEU again (default: the file's own, where it is one)",
    )
    add("--numbering", choices=("kilt", "elements"), help="of paragraphs (default: as in --alignments, else kilt)")
    add("--json", action="store_true", help="the result as one JSON object")


def _run(args: argparse.Namespace) -> int:
    from kbsource.errors import SetupError
    from kbsource.lookup import KnowledgeSource
    from mapping.write.validate import validate_kilt
    from pipelines.stores.storage import storage_for

    storage = storage_for(args.file, args.alignments or args.file)
    if args.alignments is not None and not _has_alignments(args.alignments, storage):
        raise SetupError(f"{args.alignments} has no table alignments/; give a folder that kbsource map wrote.")
    folder = args.alignments or _own_folder(args.file, storage)
    with KnowledgeSource.open(args.kb, storage_for(args.kb)) as source:
        result = validate_kilt(
            args.file,
            source,
            storage,
            numbering=args.numbering or _numbering(folder, storage),
            alignments=folder,
        )
    is_rightful = not result.is_empty or _rows_written(args.file, storage) == 0
    is_ok = result.is_valid and is_rightful
    if args.json:
        value = {"ok": is_ok, **{field.name: getattr(result, field.name) for field in dataclasses.fields(result)}}
        value["findings"] = [finding._asdict() for finding in result.findings]
        print(json.dumps(value, ensure_ascii=False, indent=2))
        return 0 if is_ok else 1
    if result.is_empty:
        print(f"{args.file} is empty{_RIGHTFUL if is_rightful else _BROKEN}")
        return 0 if is_ok else 1
    print(validation_text(result, is_scored=folder is not None))
    return 0 if is_ok else 1


def validation_text(result: Validation, *, is_scored: bool) -> str:
    """Gives what was checked and found, for reading; ``is_scored`` where alignments were at hand."""
    from mapping.write.validate import RULES

    lines = [
        f"line {finding.line}, {finding.example_id}: {RULES[finding.rule]} ({finding.rule}): {finding.detail}"
        for finding in result.findings
    ]
    lines += [f"{count:>8,} times: {RULES[rule]} ({rule})" for rule, count in sorted(result.broken.items())]
    if sum(result.broken.values()) > len(result.findings):
        lines.append("Of each rule only the first cases are shown.")
    lines.append(
        f"{'Valid' if result.is_valid else 'NOT valid'}: {result.records:,} records, {result.outputs:,} outputs, "
        f"{result.spans:,} spans checked, {result.located:,} with characters, BLEU of {result.rescored:,} recomputed."
    )
    if result.outputs and not result.spans:
        lines.append(
            "No output has provenance, so nothing was compared with the release. A file of your own with evidence in "
            "its place is aligned by kbsource map jsonl."
        )
    elif result.located and not result.rescored and is_scored:
        lines.append("The table alignments names none of its records, so BLEU was not computed: is it of another file?")
    if result.broken.keys() & _OF_ANOTHER:
        lines.append("Was it made for this release? kbsource map kilt aligns a file of another snapshot to it.")
    return "\n".join(lines)


def _has_alignments(folder: str, storage: Storage) -> bool:
    return storage.exists(f"{folder}/alignments")


def _own_folder(file: str, storage: Storage) -> str | None:
    folder = _folder_of(file)
    return folder if _has_alignments(folder, storage) else None


def _folder_of(file: str) -> str:
    return file.rpartition("/")[0] or "."


def _rows_written(file: str, storage: Storage) -> int | None:
    """Gives the records that the manifest beside a file says it has; None where none says it."""
    entries = _manifest(_folder_of(file), storage).get("files", [])
    return next((entry.get("rows") for entry in entries if entry.get("file") == file.rpartition("/")[2]), None)


def _numbering(folder: str | None, storage: Storage) -> Numbering:
    options = {} if folder is None else _manifest(folder, storage).get("options", {})
    return "elements" if options.get("numbering") == "elements" else "kilt"


def _manifest(folder: str, storage: Storage) -> dict[str, Any]:
    """Gives the manifest of a folder; an empty one where there is none."""
    from kbsource.release.kind import parse_content

    path = f"{folder}/manifest.json"
    if not storage.exists(path):
        return {}
    with storage.open_read(path) as file:
        return parse_content(file.read(), path)


COMMAND = Command(
    name="validate-kilt",
    summary="check a KILT file against a release",
    description="Checks types, ids, pages, places and sections of a KILT file, and BLEU where the evidence is known.\n"
    "Exit code 1 when a rule is broken, and for an empty file, unless the manifest beside it says that it is empty.",
    examples=(
        "kbsource validate-kilt aligned/fever/fever-dev-kilt.jsonl --kb releases/enwiki-20261001",
        "kbsource validate-kilt nq-dev-kilt.jsonl --kb releases/enwiki-20190801 --json",
    ),
    add_arguments=_add_arguments,
    run=_run,
)
