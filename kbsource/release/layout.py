"""Paths of the files in a release, and the file that marks it as finished.

::

    pages/pages-00000-of-00012.parquet      a table, here with one row per article
    index/*.arrow                           of pages: title index and page locations, memory-mapped, with checksums
    manifest.json                           written last: without it there is no release
    README.md, LICENSE, …                   files added on purpose, see ``EXTRA``
    BUILDING, _staging/                     only while the release is being written
"""

from __future__ import annotations

import glob as globbing
import os
import re
from collections.abc import Collection, Iterator

from kbsource.errors import SetupError
from kbsource.files import Folder, base_name, glob, is_local, join

MANIFEST = "manifest.json"
BUILDING = "BUILDING"
MARKS = (BUILDING, f"{BUILDING}.tmp")
"""Files that mark a folder as being written by a run. In a bucket, the second file exists for a moment when a run
renews its mark.
"""
STAGING = "_staging"
INDEX = "index"
EXTRA = frozenset(
    """
    README.md LICENSE LICENSE.txt ATTRIBUTION.md CITATION.cff croissant.json prov.json .gitattributes hub
    """.split()
)
"""Files and folders that people or ``kbsource publish`` may add to a finished release, at its top level."""


def shard_path(table: str, shard: int, n_shards: int) -> str:
    """Returns a shard's path in the release: ``pages/pages-00000-of-00012.parquet``."""
    return f"{table}/{table}-{shard:05d}-of-{n_shards:05d}.parquet"


def table_of(file: str) -> str | None:
    """Returns the table of a shard from its path, which may be inside a folder of releases; None if the file is not a
    shard.

    >>> table_of("fever/dev/misses/misses-00000-of-00001.parquet"), table_of("report.json")
    ('misses', None)
    """
    return (["", *file.split("/")])[-2] if file.endswith(".parquet") else None


def is_shard(file: str, table: str) -> bool:
    """Returns whether a path has the form of ``shard_path`` for a table.

    >>> is_shard("pages/pages-00000-of-00012.parquet", "pages"), is_shard("pages/../x.parquet", "pages")
    (True, False)
    """
    return re.fullmatch(rf"{re.escape(table)}/{re.escape(table)}-[0-9]{{5,}}-of-[0-9]{{5,}}\.parquet", file) is not None


_UNFIT = re.compile(r"[\x00-\x1f\x7f]")


def is_path(path: str) -> bool:
    """Returns whether a text may be the path of a file or folder in a release.

    >>> is_path("pages/pages-00000-of-00001.parquet"), is_path("qrels/../../x.tsv"), is_path("/etc/x")
    (True, False, False)
    """
    return not _UNFIT.search(path) and {"", ".", ".."}.isdisjoint(path.split("/"))


def parents(path: str) -> Iterator[str]:
    """Returns the folders that contain a path, outermost first.

    >>> [*parents("fever/dev/report.json")]
    ['fever', 'fever/dev']
    """
    return (path[: match.start()] for match in re.finditer("/", path))


def index_path(file: str) -> str:
    """Returns the path of an index file in the release: ``index/titles.arrow``."""
    return f"{INDEX}/{base_name(file)}"


def no_release(output: str) -> str:
    """Returns a message for a folder without a manifest: why it is not a finished release, and what to do."""
    if Folder.of(join(output, BUILDING)).exists():
        return (
            "no finished release: the run that was writing it was interrupted. Run the same command again to resume it"
        )
    if is_local(output) and os.path.exists(output) and not os.path.isdir(output):
        return "not a folder; name the folder of a release"
    if not stored_files(output):
        return "no such folder, or an empty one, so there is no finished release; check the path"
    return f"no finished release: the folder has no {MANIFEST}; name another folder, or make the release"


def stored_files(output: str) -> list[str]:
    """Returns the paths of all files below a folder, relative to it, sorted."""
    prefix = output.rstrip("/") + "/"
    return sorted(path.removeprefix(prefix) for path in glob(globbing.escape(prefix) + "**"))


def is_in(file: str, names: Collection[str]) -> bool:
    """Returns whether a file is one of these names, or is inside a folder with one of these names.

    >>> is_in("fever/dev/report.json", ["fever/dev"]), is_in("fever/development.json", ["fever/dev"])
    (True, False)
    """
    return any(file == name or file.startswith(f"{name}/") for name in names)


def check_output(output: str, *, kept: Collection[str] = ()) -> None:
    """Checks that a folder can be used for output. Call it before any long work.

    Args:
        kept: folders inside it that contain finished releases and will stay unchanged.

    Raises:
        SetupError: the folder contains a finished release, or files that kbsource did not write.
    """
    files = [file for file in stored_files(output) if not is_in(file, kept)]
    if MANIFEST in files:
        raise SetupError(
            f"{output}: the folder contains a finished release, which is never overwritten; choose another folder."
        )
    if files and not any(mark in files for mark in MARKS):
        raise foreign_file(output, files[0])


def foreign_file(output: str, file: str) -> SetupError:
    """Returns the error for a folder that contains a file kbsource did not write."""
    return SetupError(
        f"{output}: the folder is not empty and was not left by a killed run (it contains {file}); "
        f"choose an empty folder."
    )
