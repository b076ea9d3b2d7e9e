"""Whether the files of a release are all there, at a glance: by their sizes, before work that takes hours."""

from __future__ import annotations

from collections.abc import Iterable

from kbsource.errors import SetupError
from kbsource.files import Storage, join
from kbsource.release.manifest import FileEntry, IndexFile


def check_sizes(folder: str, entries: Iterable[FileEntry | IndexFile], storage: Storage) -> None:
    """Raises where a file of a release is missing or was cut off; what is in it is for ``kbsource verify``.

    Args:
        folder: of the release.
        entries: of its manifest, for the files that are needed.
        storage: of the folder.

    Raises:
        SetupError: names the first such file, and the remedy.
    """
    for entry in entries:
        path = join(folder, entry.file)
        if not storage.exists(path):
            raise SetupError(f"{path} is missing; fetch or make the release again, and check it with kbsource verify.")
        if (size := storage.size(path)) != entry.bytes:
            raise SetupError(
                f"{path} has {size} bytes, {entry.bytes} were written; fetch or make the release again, and check it "
                "with kbsource verify."
            )
