"""What several jobs begin with: their inputs, looked at and hashed before anything reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from kbsource.dump.digests import CheckedStorage, HashedFile, hash_file
from kbsource.dump.lines import LineRange, expand_paths
from kbsource.files import Storage, base_name
from kbsource.release.intact import check_sizes
from kbsource.release.layout import check_output
from kbsource.release.manifest import InputFile
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from pipelines.progress import Done, Progress
from pipelines.runners.running import check_paths
from pipelines.stores.dump_files import check_names, range_size
from pipelines.stores.storage import absolute, storage_for


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


class LineFiles(NamedTuple):
    """Files of lines that a job reads, and the folder that it writes.

    Attributes:
        output: absolute path of the folder.
        storage: of it and of the files.
        hashed: the files, by path.
        ranges: what they are read in.
        inputs: the files, for the manifest.
    """

    output: str
    storage: Storage
    hashed: dict[str, HashedFile]
    ranges: list[LineRange]
    inputs: list[InputFile]

    def job(self, options: dict[str, Any]) -> dict[str, Any]:
        """Gives what decides the bytes of the release, by which a run that was killed is known again."""
        return {"inputs": [asdict(file) for file in self.inputs], "options": options}


def line_files(
    patterns: Sequence[str],
    output: str,
    range_bytes: int | None,
    *,
    plan: Callable[..., list[LineRange]],
    check: Callable[[Sequence[str]], None] | None = None,
    flags: Sequence[str],
    progress: Progress,
) -> LineFiles:
    """Gives the files that patterns stand for, hashed, and cut into ranges.

    Args:
        patterns: paths, with wildcards.
        output: folder that will be written; it must be new, or left by a run that was killed.
        range_bytes: size of the ranges; None for one that suits the files.
        plan: cuts files into ranges, and refuses what cannot be read.
        check: looks at the base names, and refuses files that do not go together.
        flags: of Beam.
        progress: shows how far it has come.

    Raises:
        SetupError: a file or the folder is wrong.
    """
    check_paths(flags, *patterns, output)
    folder = absolute(output.rstrip("/") or "/")
    storage = storage_for(folder, *patterns)
    check_output(folder, storage)
    paths = [absolute(path) for path in expand_paths(patterns, storage)]
    check_names(paths)
    if check is not None:
        check([base_name(path) for path in paths])
    n_bytes = range_bytes or range_size(sum(storage.size(path) for path in paths))
    plan(paths, storage, range_bytes=n_bytes)  # what cannot be read is refused before it is hashed
    hashed = hash_inputs(paths, storage, progress)
    ranges = plan(paths, CheckedStorage(storage, hashed), range_bytes=n_bytes)
    inputs = [InputFile(base_name(path), hashed[path].n_bytes, hashed[path].sha256) for path in paths]
    return LineFiles(folder, storage, hashed, ranges, inputs)


class PagesInput(NamedTuple):
    """A release of pages that a job reads, and the folder that it writes.

    Attributes:
        kb, output: absolute paths of the folders.
        storage: of both.
        release: its manifest; its files of pages have their sizes.
    """

    kb: str
    output: str
    storage: Storage
    release: PagesManifest


def pages_input(kb: str, output: str, *, flags: Sequence[str]) -> PagesInput:
    """Gives the release that a job reads.

    Raises:
        SetupError: a folder is wrong; a DataError where a file of pages is damaged.
    """
    check_paths(flags, kb, output)
    read, written = absolute(kb), absolute(output.rstrip("/") or "/")
    storage = storage_for(written, read)
    check_output(written, storage)
    release = PAGES_RELEASE.read(read, storage)
    check_sizes(read, release.tables["pages"], storage)
    return PagesInput(read, written, storage, release)
