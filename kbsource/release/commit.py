"""The last step of a build: everything is checked, then the manifest makes a release of it."""

from __future__ import annotations

from kbsource.errors import SetupError
from kbsource.files import Storage, join
from kbsource.release.layout import BUILDING, STAGING, stored_files
from kbsource.release.manifest import AnyManifest, Manifest, check_counts, write_manifest


def commit_release(output: str, manifest: Manifest, *, storage: Storage) -> None:
    """Checks what was written against the manifest, writes the manifest, and removes mark and staging.

    Killed before the manifest has its name, there is no release; killed after it, there is a whole one.

    Raises:
        SetupError: the counts do not add up, a file is missing, has another size, or is not listed.
    """
    check_counts(manifest)
    commit_files(output, manifest, storage=storage)


def commit_files(output: str, manifest: AnyManifest, *, storage: Storage) -> None:
    """Does what ``commit_release`` does for a manifest of any kind whose counts are checked.

    Raises:
        SetupError: a file is missing, has another size, or is not listed.
    """
    listed = {entry.file: entry.bytes for entries in manifest.tables.values() for entry in entries}
    listed.update({entry.file: entry.bytes for entry in manifest.index})
    found = {file for file in stored_files(output, storage) if file != BUILDING and not file.startswith(f"{STAGING}/")}
    if missing := sorted(set(listed) - found):
        raise SetupError(f"{output}: {missing[0]} was not written ({len(missing)} files missing); build again")
    if extra := sorted(found - set(listed)):
        raise SetupError(f"{output}: {extra[0]} is no part of the release ({len(extra)} such files); build again")
    for file, n_bytes in sorted(listed.items()):
        size = storage.size(join(output, file))
        if size != n_bytes:
            raise SetupError(f"{output}: {file} has {size} bytes, {n_bytes} were written; build again")
    write_manifest(manifest, output, storage)
    storage.delete_tree(join(output, STAGING))
    storage.delete_tree(join(output, BUILDING))
