"""Whether the files of a release are what its manifest says: at a glance by their sizes, or in full by their hashes."""

from __future__ import annotations

from collections.abc import Iterable

from kbsource.errors import SetupError
from kbsource.files import Storage, join, sha256_of
from kbsource.release.manifest import FileEntry


def file_fault(folder: str, entry: FileEntry, storage: Storage, *, hashes: bool) -> tuple[str, str] | None:
    """Gives the rule that a file breaks, and what was seen; None for one that is what was written.

    Args:
        folder: of the release.
        entry: of its manifest.
        storage: of the folder.
        hashes: the file is read; else its size must do.
    """
    path = join(folder, entry.file)
    if not storage.exists(path):
        return "missing", "fetch or make the release again"
    if (size := storage.size(path)) != entry.bytes:
        return "size", f"{size} bytes, {entry.bytes} were written"
    if hashes and (digest := sha256_of(storage, path)) != entry.sha256:
        return "sha256", f"{digest}, {entry.sha256} was written"
    return None


def check_sizes(folder: str, entries: Iterable[FileEntry], storage: Storage) -> None:
    """Raises where a file of a release is missing or was cut off, before work that takes hours.

    Args:
        folder: of the release.
        entries: of its manifest, for the files that are needed.
        storage: of the folder.

    Raises:
        SetupError: names the first such file, and the remedy.
    """
    _check(folder, entries, storage, hashes=False)


def check_hashes(folder: str, entries: Iterable[FileEntry], storage: Storage) -> None:
    """Raises where a file of a release is not as it was written; reads all of them. The rest as ``check_sizes``."""
    _check(folder, entries, storage, hashes=True)


def _check(folder: str, entries: Iterable[FileEntry], storage: Storage, *, hashes: bool) -> None:
    for entry in entries:
        if (fault := file_fault(folder, entry, storage, hashes=hashes)) is not None:
            rule, seen = fault
            said = "is missing" if rule == "missing" else f"has {seen}"
            if hashes:
                said = f"is not as it was written ({rule})"
            path = join(folder, entry.file)
            raise SetupError(f"{path} {said}; fetch or make the release again, and check it with kbsource verify.")
