"""Hashes of a job's input files, worked out before anything reads them."""

from __future__ import annotations

from collections.abc import Sequence

from kbsource.dump.digests import HashedFile, hash_file
from kbsource.files import Storage
from pipelines.progress import Done, Progress


def hash_inputs(paths: Sequence[str], storage: Storage, progress: Progress) -> dict[str, HashedFile]:
    """Gives the hashes of files, by path, for ``kbsource.dump.digests.CheckedStorage``.

    Args:
        paths: of the files.
        storage: of the paths.
        progress: shows how far it has come.
    """
    total, n_done = sum(storage.size(path) for path in paths), 0

    def count(n_bytes: int) -> None:
        nonlocal n_done
        n_done += n_bytes

    with progress.stage("hash", lambda: Done(n_done, total)):
        return {path: hash_file(path, storage, on_bytes=count) for path in paths}
