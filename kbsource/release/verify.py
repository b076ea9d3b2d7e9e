"""Checking a release from the outside: every hash, every count, every law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kbsource.errors import SetupError
from kbsource.files import Storage, join, sha256_of, storage_or_local
from kbsource.release.findings import Finding, Findings
from kbsource.release.layout import MANIFEST, no_release, stored_files
from kbsource.release.manifest import AnyManifest, Manifest, count_faults, read_manifest
from kbsource.release.table_checks import TableChecks


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found, by file and rule; a sound release has no findings.

    Attributes:
        n_files, n_bytes: files hashed and their size.
        n_pages, n_anchors, n_redirects: rows whose laws were checked.
    """

    findings: tuple[Finding, ...]
    n_files: int
    n_bytes: int
    n_pages: int
    n_anchors: int
    n_redirects: int

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def verify_release(
    path: str, storage: Storage | None = None, *, on_progress: Callable[[int, int], None] | None = None
) -> VerifyReport:
    """Checks a release and gives everything that is wrong with it.

    Files are hashed first; the laws are then checked in those that are what was written. Memory: one row
    group, and about 50 bytes per page.

    Args:
        path: folder of the release.
        storage: of the folder; None for the local file system.
        on_progress: told the bytes done and the bytes to do: every file once for its hash, pages files once
            more for their laws.

    Raises:
        SetupError: the folder holds no finished release.
    """
    storage = storage_or_local(path, storage)
    found = Findings()
    if not storage.exists(join(path, MANIFEST)):
        raise SetupError(f"{path}: {no_release(path, storage)}")
    try:
        manifest = read_manifest(path, storage)
    except SetupError as error:
        found.add(MANIFEST, "manifest", str(error))
        return VerifyReport(found.sorted(), 1, storage.size(join(path, MANIFEST)), 0, 0, 0)
    progress = _Progress(manifest, on_progress)
    intact = check_files(path, manifest, found, progress.add, storage)
    for fault in count_faults(manifest):
        found.add(MANIFEST, "counts", fault)
    checks = TableChecks(path, manifest, intact, found, storage)
    for entry in manifest.tables["pages"]:
        checks.check_pages_file(entry)
        progress.add(entry.bytes)
    checks.check_other_tables()
    checks.check_whole()
    sizes = [entry.bytes for entries in manifest.tables.values() for entry in entries]
    sizes += [entry.bytes for entry in manifest.index]
    return VerifyReport(found.sorted(), len(sizes), sum(sizes), checks.n_pages, checks.n_anchors, checks.n_redirects)


class _Progress:
    def __init__(self, manifest: Manifest, on_progress: Callable[[int, int], None] | None) -> None:
        pages = sum(entry.bytes for entry in manifest.tables["pages"])
        tables = sum(entry.bytes for entries in manifest.tables.values() for entry in entries)
        self._total = tables + sum(entry.bytes for entry in manifest.index) + pages
        self._done = 0
        self._on_progress = on_progress

    def add(self, n_bytes: int) -> None:
        self._done += n_bytes
        if self._on_progress is not None:
            self._on_progress(self._done, self._total)


def check_files(
    path: str, manifest: AnyManifest, found: Findings, on_file: Callable[[int], None], storage: Storage
) -> frozenset[str]:
    """Checks names, sizes and hashes, and gives the files that are what was written.

    Args:
        path: folder of the release.
        manifest: of a release of any kind.
        found: takes what is wrong.
        on_file: told the size of every file once it was looked at.
        storage: of the folder.
    """
    entries = [entry for table in manifest.tables.values() for entry in table]
    listed: dict[str, tuple[int, str]] = {entry.file: (entry.bytes, entry.sha256) for entry in entries}
    listed.update({entry.file: (entry.bytes, entry.sha256) for entry in manifest.index})
    present = set(stored_files(path, storage))
    for file in sorted(present - set(listed) - {MANIFEST}):
        found.add(file, "unlisted", "remove it, or fetch the release again")
    intact = set()
    for file, (n_bytes, sha256) in sorted(listed.items()):
        if file not in present:
            found.add(file, "missing", "fetch or build the release again")
        elif (size := storage.size(join(path, file))) != n_bytes:
            found.add(file, "size", f"{size} bytes, {n_bytes} were written")
        elif (digest := sha256_of(storage, join(path, file))) != sha256:
            found.add(file, "sha256", f"{digest}, {sha256} was written")
        else:
            intact.add(file)
        on_file(n_bytes)
    return frozenset(intact)
