"""Checking from the outside what a command wrote: alignments, passages, QAMPARI releases and what is made from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa

from kbsource.errors import SetupError
from kbsource.files import Storage, join, sha256_of, storage_or_local
from kbsource.lookup import KnowledgeSource
from kbsource.release import findings
from kbsource.release.findings import Finding, Findings
from kbsource.release.layout import MANIFEST
from kbsource.release.manifest import FileEntry, IndexFile
from kbsource.release.reader import opened_table
from kbsource.release.sizes import check_sizes
from kbsource.release.table_checks import stored_schema
from kbsource.release.verify import check_files
from kbsource.schema import ALL_TABLES
from mapping.contexts import check_contexts
from mapping.contexts.export import CONTEXTS_FORMAT
from mapping.passages import check_corpus, corpus
from mapping.passages.schema import TABLES as PASSAGES_TABLES
from mapping.qampari import check_release, release_files
from mapping.qampari.crowd.tasks import TASKS_FORMAT
from mapping.qampari.schema import TABLES as QAMPARI_TABLES
from mapping.schema import TABLES, VERIFICATION
from mapping.write.output import ALL_FORMAT, FORMAT, TABLES_FORMAT, manifest_bytes

FORMATS = (FORMAT, ALL_FORMAT, corpus.FORMAT, release_files.FORMAT, TASKS_FORMAT, CONTEXTS_FORMAT, TABLES_FORMAT)
"""What a manifest may say that it is of to be checked here."""
RULES = {**findings.RULES, **check_release.RULES, **check_corpus.RULES, **check_contexts.RULES}
"""Every rule and what it means that it is broken."""

_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class OutputReport:
    """What was found, by file and rule; a sound folder has no findings.

    Attributes:
        n_files, n_bytes: files hashed and their size.
        n_rows: rows of tables and lines of other files.
        n_questions, n_answers, n_proofs: of the table of questions, where there is one.
        n_passages: of a corpus of passages.
        has_texts: proofs or passages were compared with the pages, or the passages, that they are from.
    """

    findings: tuple[Finding, ...]
    n_files: int
    n_bytes: int
    n_rows: int = 0
    n_questions: int = 0
    n_answers: int = 0
    n_proofs: int = 0
    n_passages: int = 0
    has_texts: bool = False

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


@dataclass(frozen=True, slots=True)
class _Listed:
    """A manifest's files in the form in which those of releases are checked."""

    tables: dict[str, tuple[FileEntry, ...]]
    content: bytes
    index: tuple[IndexFile, ...] = ()

    def to_bytes(self) -> bytes:
        return self.content


def is_output(path: str, storage: Storage | None = None) -> bool:
    """Says whether a folder's manifest, if it has any, is one of ``FORMATS``; a local one, without a storage."""
    storage = storage_or_local(path, storage)
    if not storage.exists(join(path, MANIFEST)):
        return False
    with storage.open_read(join(path, MANIFEST)) as file:
        content = file.read()
    return any(f'"format": "{one}"'.encode() in content for one in FORMATS)


def verify_output(
    path: str,
    storage: Storage | None = None,
    *,
    kb: str | None = None,
    qampari: str | None = None,
    passages: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> OutputReport:
    """Checks a folder for which ``is_output`` holds, and gives everything that is wrong with it.

    Files are hashed first; rows, columns and laws are then checked in those that are what was written.

    Args:
        path: the folder.
        storage: of all folders; None for the local file system.
        kb: folder of the release of pages that proofs or passages are from; None does not compare their texts.
        qampari, passages: folders of the QAMPARI release and of the corpus that questions with passages were made
            from; both or none.
        on_progress: told the bytes done and the bytes to do: every file once for its hash, once for what is in it.

    Raises:
        SetupError: ``kb``, ``qampari`` or ``passages`` is not what the folder was made from, or is given for what was
            not made from such.
    """
    found = Findings(RULES)
    storage = storage_or_local(path, storage)
    try:
        content, manifest = _read_manifest(path, storage)
        entries = list(_entries(path, manifest, found, storage))
    except _OddManifestError as error:
        found.add(error.file, "manifest", str(error))
        return OutputReport(found.sorted(), 1, storage.size(join(path, error.file)))
    is_release, is_corpus = (manifest["format"] == one for one in (release_files.FORMAT, corpus.FORMAT))
    if kb is not None and not (is_release or is_corpus):
        raise SetupError(
            f"{path}: --kb is for QAMPARI releases, whose proofs are texts of pages, and for passages; leave it out."
        )
    is_contexts = manifest["format"] == CONTEXTS_FORMAT
    if (qampari, passages) != (None, None) and (not is_contexts or None in (qampari, passages)):
        raise SetupError(
            f"{path}: --qampari and --passages are for questions with passages (qampari-contexts); give both of what "
            "these were made from, or none."
        )
    total, done = 2 * sum(entry.bytes for entry in entries), 0

    def add(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        if on_progress is not None:
            on_progress(done, total)

    intact = check_files(path, _Listed({"files": tuple(entries)}, content), found, add, storage)
    n_rows = 0
    sound = set()
    for entry in entries:
        if entry.file in intact:
            n_found, is_sound = _check_rows(path, entry, found, storage, is_own=manifest["format"] == TABLES_FORMAT)
            n_rows += n_found
            sound |= {entry.file} if is_sound else set()
        if not (is_release or is_corpus or is_contexts):
            add(entry.bytes)
    counts: tuple[int, int, int] | None = None
    n_passages = None
    if is_release:
        counts = _check_laws(path, storage, manifest, entries, sound, kb=kb, found=found, add=add)
    elif is_corpus and sound == {entry.file for entry in entries}:
        n_passages = _check_passages(path, storage, manifest, entries, kb=kb, found=found, add=add)
    elif is_contexts and sound == {entry.file for entry in entries}:
        counts = _check_contexts(
            path, storage, manifest, entries, qampari=qampari, passages=passages, found=found, add=add
        )
    return OutputReport(
        found.sorted(),
        len(entries),
        sum(entry.bytes for entry in entries),
        n_rows,
        *(counts or (0, 0, 0)),
        n_passages=n_passages or 0,
        has_texts=(kb, qampari) != (None, None) and (counts, n_passages) != (None, None),
    )


def _check_laws(
    path: str,
    storage: Storage,
    manifest: Mapping[str, Any],
    entries: list[FileEntry],
    sound: set[str],
    *,
    kb: str | None,
    found: Findings,
    add: Callable[[int], None],
) -> tuple[int, int, int] | None:
    """Gives how much was checked; None where files are not what was written, so that laws say nothing."""
    sizes = {entry.file: entry.bytes for entry in entries}
    try:
        form = release_files.Form(**manifest["form"])
    except (KeyError, TypeError):
        found.add(MANIFEST, "manifest", "form is not that of a QAMPARI release")
        return None
    needed = release_files.release_paths()
    for file in sorted(needed - set(sizes)):
        found.add(file, "missing", "no QAMPARI release is without it")
    if not needed <= sound:
        return None
    source = None if kb is None else _open_source(path, kb, manifest, storage)
    try:
        checks = check_release.ReleaseChecks(
            path, storage, form, found=found, source=source, on_file=lambda file: add(sizes[file])
        )
        return checks.run()[1:]
    finally:
        if source is not None:
            source.close()


def _check_passages(
    path: str,
    storage: Storage,
    manifest: Mapping[str, Any],
    entries: list[FileEntry],
    *,
    kb: str | None,
    found: Findings,
    add: Callable[[int], None],
) -> int:
    sizes = {entry.file: entry.bytes for entry in entries}
    pages = None
    if kb is not None:
        with _open_source(path, kb, manifest, storage) as source:
            given = source.manifest.tables["pages"]
        check_sizes(kb, given, storage)
        for entry in given:
            corpus.checked_pages(kb, entry, storage)
        pages = [join(kb, entry.file) for entry in given]
    checks = check_corpus.CorpusChecks(
        path, storage, manifest, found=found, pages=pages, on_file=lambda file: add(sizes[file])
    )
    return checks.run()


def _check_contexts(
    path: str,
    storage: Storage,
    manifest: Mapping[str, Any],
    entries: list[FileEntry],
    *,
    qampari: str | None,
    passages: str | None,
    found: Findings,
    add: Callable[[int], None],
) -> tuple[int, int, int] | None:
    sizes = {entry.file: entry.bytes for entry in entries}
    sources = None
    if qampari is not None and passages is not None:
        sources = check_contexts.open_sources(path, manifest, qampari, passages, storage)
    checks = check_contexts.ContextsChecks(
        path, storage, manifest, found=found, sources=sources, on_file=lambda file: add(sizes[file])
    )
    return checks.run()


def _open_source(path: str, kb: str, manifest: Mapping[str, Any], storage: Storage) -> KnowledgeSource:
    source = KnowledgeSource.open(kb, storage)
    made_from = (manifest.get("release") or {}).get("manifest_sha256")
    given = orjson.loads(source.manifest.to_bytes())["manifest_sha256"]
    if made_from is not None and made_from != given:
        source.close()
        raise SetupError(f"{path} was made from another release than {kb}: give the one with manifest {made_from}.")
    return source


class _OddManifestError(Exception):
    """A manifest is not what was written; ``file`` says which one."""

    def __init__(self, file: str, detail: str) -> None:
        super().__init__(detail)
        self.file = file


def _read_manifest(path: str, storage: Storage, file: str = MANIFEST) -> tuple[bytes, dict[str, Any]]:
    with storage.open_read(join(path, file)) as opened:
        content = opened.read()
    try:
        value = json.loads(content)
    except ValueError as error:
        raise _OddManifestError(file, f"not JSON: {error}") from error
    if not isinstance(value, dict) or value.get("format") not in FORMATS:
        raise _OddManifestError(file, "not of a format that is known")
    values = {name: one for name, one in value.items() if name != "manifest_sha256"}
    if manifest_bytes(values, form=value["format"]) != content:
        raise _OddManifestError(file, "changed since it was written")
    return content, value


def _entries(path: str, manifest: Mapping[str, Any], found: Findings, storage: Storage) -> Iterator[FileEntry]:
    """Gives every file that is listed: of a folder of alignments also theirs, and their manifests."""
    for one in manifest["files"]:
        yield FileEntry(one["file"], one.get("rows", -1), one["bytes"], one["sha256"])
    for alignment in manifest.get("alignments", ()):
        file = f"{alignment['folder']}/{MANIFEST}"
        if not storage.exists(join(path, file)):
            found.add(file, "missing", "align this dataset again")
            continue
        _, inner = _read_manifest(path, storage, file)
        if inner["manifest_sha256"] != alignment["manifest_sha256"]:
            found.add(file, "manifest", f"{inner['manifest_sha256']}, {alignment['manifest_sha256']} was written")
        yield FileEntry(file, -1, storage.size(join(path, file)), sha256_of(storage, join(path, file)))
        for one in _entries(join(path, alignment["folder"]), inner, found, storage):
            yield FileEntry(f"{alignment['folder']}/{one.file}", one.rows, one.bytes, one.sha256)


def _check_rows(path: str, entry: FileEntry, found: Findings, storage: Storage, *, is_own: bool) -> tuple[int, bool]:
    """Gives the rows or lines of a file, and whether they are as many as were written and have their columns.

    Args:
        path: of the folder.
        entry: of the file.
        found: takes what is wrong.
        storage: of the folder.
        is_own: the tables are those of releases of pages, written by somebody's own pipeline.
    """
    if entry.file.endswith(".parquet"):
        return _check_table(path, entry, found, storage, is_own=is_own)
    if entry.rows < 0 or entry.file.endswith(".json"):
        return 0, True
    n_lines = 0
    with storage.open_read(join(path, entry.file)) as file:
        while block := file.read(_CHUNK_BYTES):
            n_lines += block.count(b"\n")
    return n_lines, _check_number(entry, n_lines, found)


def _check_table(path: str, entry: FileEntry, found: Findings, storage: Storage, *, is_own: bool) -> tuple[int, bool]:
    table = entry.file.split("/")[-2] if "/" in entry.file else ""
    known = {**TABLES, **QAMPARI_TABLES, **PASSAGES_TABLES}.get(table)
    if is_own and table in ALL_TABLES:
        known = stored_schema(table)
    try:
        with opened_table(join(path, entry.file), storage) as file:
            stored, n_rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowInvalid, OSError) as error:
        found.add(entry.file, "unreadable", str(error))
        return 0, False
    allowed = [] if known is None else [known]
    if table == "alignments" and known is not None:
        allowed.append(pa.schema([*known, *VERIFICATION]))
    if not any(stored.equals(one, check_metadata=False) for one in allowed):
        found.add(entry.file, "schema", f"columns {', '.join(stored.names)}")
        return n_rows, False
    return n_rows, _check_number(entry, n_rows, found)


def _check_number(entry: FileEntry, n_rows: int, found: Findings) -> bool:
    if n_rows != entry.rows:
        found.add(entry.file, "rows", f"{n_rows} rows, {entry.rows} were written")
    return n_rows == entry.rows
