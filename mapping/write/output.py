"""The folder of an alignment: how one is begun, and its manifest, which is written last.

::

    fever-dev-kilt.jsonl                        the records, as KILT publishes them
    alignments/  misses/  rejected/             every evidence and every rejected record, Parquet
    crosswalk/                                  for KILT files: old spans and new ones
    report.json                                 counts
    manifest.json                               written last: without it the folder is not finished
    BUILDING, _staging/                         only while the job runs
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from kbsource.errors import SetupError
from kbsource.files import Storage, atomic_write, base_name, join, sha256_of
from kbsource.release.layout import BUILDING, MANIFEST, STAGING, check_output, mark_unfinished, stored_files
from kbsource.release.manifest import FileEntry, InputFile, Manifest
from mapping.schema import TABLES

FORMAT = "kbsource-alignment-1"
ALL_FORMAT = "kbsource-alignments-1"
"""Of a folder with an alignment in each of its folders."""
TABLES_FORMAT = "kbsource-tables-1"
"""Of a folder of tables that somebody's own pipeline wrote."""
REPORT = "report.json"
_MARK = b"kbsource map in progress; without a manifest.json this folder is not finished\n"
_KILT_FILES = "*-kilt.jsonl"
_OF_QAMPARI = ("questions", "queries", "qampari_data", "validation.jsonl", "validation_key.jsonl", "paraphrase.jsonl")
_OF_PASSAGES = ("passages", "pyserini", "dpr", "qampari_contexts", "qampari_fid", "unplaced.jsonl")


def begin_output(output: str, storage: Storage) -> str:
    """Makes a clean folder for an alignment or for QAMPARI, marks it as unfinished and gives the path of its staging
    folder.

    What an interrupted run left behind is removed, and nothing else.

    Raises:
        SetupError: as ``check_output``.
    """
    check_output(output, storage)
    if storage.exists(join(output, BUILDING)):
        leftovers = [*storage.glob(join(output, _KILT_FILES)), *storage.glob(join(output, "*.tmp"))]
        ours = (STAGING, *TABLES, *_OF_QAMPARI, *_OF_PASSAGES, REPORT, BUILDING)
        for path in [*leftovers, *(join(output, name) for name in ours)]:
            storage.delete_tree(path)
    return mark_unfinished(output, storage, _MARK)


def manifest_bytes(values: dict[str, Any], *, form: str = FORMAT) -> bytes:
    """Gives a manifest's content: JSON with sorted keys and, as ``manifest_sha256``, the hash of all else in it."""
    values = {**values, "format": form}
    return _json({**values, "manifest_sha256": hashlib.sha256(_json(values)).hexdigest()})


def commit_output(
    output: str, values: dict[str, Any], *, files: Sequence[FileEntry], storage: Storage, form: str = FORMAT
) -> None:
    """Checks what was written against the entries, writes the manifest in its ``form``, and removes mark and staging.

    Raises:
        SetupError: a file is missing, has another size, or is not listed.
    """
    listed = {entry.file: entry.bytes for entry in files}
    found = {file for file in stored_files(output, storage) if file != BUILDING and not file.startswith(f"{STAGING}/")}
    if odd := sorted(found ^ set(listed)):
        raise SetupError(f"{output}: {odd[0]} is missing or no part of what was made; run the job again.")
    for file, n_bytes in sorted(listed.items()):
        if (size := storage.size(join(output, file))) != n_bytes:
            raise SetupError(f"{output}: {file} has {size} bytes, {n_bytes} were written; run the job again.")
    with atomic_write(storage, join(output, MANIFEST)) as sink:
        sink.write(manifest_bytes(values, form=form))
    storage.delete_tree(join(output, STAGING))
    storage.delete_tree(join(output, BUILDING))


def release_facts(release: Manifest) -> dict[str, Any]:
    """Gives what names a release."""
    return {
        "manifest": MANIFEST,
        "manifest_sha256": orjson.loads(release.to_bytes())["manifest_sha256"],
        "wiki": release.site.dbname,
        "dump_date": release.dump.date,
    }


def input_files(paths: Iterable[str], storage: Storage) -> list[InputFile]:
    """Gives the files that were read, those of folders by their path in it; a release by its manifest alone."""
    result = []
    for path in paths:
        manifest = join(path, MANIFEST)
        if storage.exists(manifest):
            result.append((f"{base_name(path)}/{MANIFEST}", manifest))
            continue
        inside = stored_files(path, storage)
        result += [(f"{base_name(path)}/{name}", join(path, name)) for name in inside] or [(base_name(path), path)]
    return [InputFile(name, storage.size(path), sha256_of(storage, path)) for name, path in result]


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
