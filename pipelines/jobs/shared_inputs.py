"""Checks and hashes the inputs of jobs before they are read, and defines the result of a job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from kbsource.dump.digests import CheckedFiles, HashedFile, hash_file
from kbsource.dump.lines import LineRange
from kbsource.dump.ranges import expand_paths, from_root, range_size, size_of
from kbsource.dump.rejects import check_rejects, loss_findings
from kbsource.files import absolute, base_name, join
from kbsource.pageviews import LineCounts
from kbsource.records import BadRecord
from kbsource.release.layout import check_output
from kbsource.release.manifest import FileEntry, InputFile, Manifest, input_files
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_sizes
from kbsource.wikidata.records import EntityCounts
from pipelines.options.pageviews import PageviewsOptions
from pipelines.options.wikidata import WikidataOptions
from pipelines.progress import Progress
from pipelines.runners.running import check_paths

M = TypeVar("M", bound=Manifest)


@dataclass(frozen=True, slots=True)
class MadeRelease(Generic[M]):
    """A release that a job made."""

    output: str  # folder of the release, as the user gave it
    manifest: M  # the manifest as written
    seconds: float  # wall time of the job, in seconds
    steps: dict[str, float] = field(default_factory=dict)  # seconds per step, over all processes
    report: dict[str, Any] = field(default_factory=dict)  # content of ``report.json``, if there is one
    kept: tuple[str, ...] = ()  # folders of inner releases that were finished before


def output_folder(output: str) -> str:
    """Returns the absolute path of the output folder. Raises SetupError if it is neither new nor left by a run that was
    killed."""
    folder = absolute(output.rstrip("/") or "/")
    check_output(folder)
    return folder


class LineFiles(NamedTuple):
    """The line-based files that a job reads, and the folder that it writes."""

    output: str  # absolute path of the folder
    hashed: dict[str, HashedFile]  # the files, by path
    ranges: list[LineRange]  # ranges of these files
    inputs: list[InputFile]  # the files, for the manifest

    def job(self, options: dict[str, Any]) -> dict[str, Any]:
        """Returns everything that determines the content of the release.

        A killed run can be resumed only if this is unchanged.
        """
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
    """Expands patterns, hashes the files, and splits them into ranges. By default, the size of a range depends on the
    files.

    ``plan`` splits files into ranges and rejects unreadable files; ``check`` rejects paths that do not belong together.
    The output folder is new or was left by a run that was killed.

    Raises:
        SetupError: a file or the folder is wrong.
    """
    check_paths(flags, *patterns, output)
    folder = output_folder(output)
    paths = from_root(expand_paths(patterns))
    if check is not None:
        check(paths)
    n_bytes = range_size(size_of(paths), range_bytes)
    plan(paths, range_bytes=n_bytes)  # rejects unreadable files before hashing
    with progress.adding("hash", size_of(paths)) as add:
        hashed = {path: hash_file(path, on_bytes=add) for path in paths}
    ranges = plan(paths, range_bytes=n_bytes, files=CheckedFiles(hashed))
    inputs = [InputFile(base_name(path), hashed[path].n_bytes, hashed[path].sha256) for path in paths]
    return LineFiles(folder, hashed, ranges, inputs)


def line_findings(
    totals: EntityCounts | LineCounts,
    inputs: Sequence[InputFile],
    damaged_bytes: int,
    options: PageviewsOptions | WikidataOptions,
    rejected: Iterable[BadRecord],
) -> dict[str, int]:
    """Returns the findings about damaged line-based files. Raises DataError if too many lines cannot be used; its
    message shows the first ones of ``rejected``."""
    n_bytes = sum(file.bytes for file in inputs)
    loss = loss_findings(totals.lines_read, n_bytes=n_bytes, damaged_bytes=damaged_bytes)
    check_rejects(
        Counter(totals.rejected),
        totals.lines_read,
        max_share=options.max_rejects,
        allow_truncated=options.allow_truncated,
        what="lines",
        loss=loss,
        first=rejected,
    )
    return loss


def pages_input(kb: str, output: str, *, flags: Sequence[str]) -> tuple[str, str, PagesManifest]:
    """Returns the absolute paths of the release that a job reads and of the folder that it writes, and the manifest of
    the release. The sizes of its files of pages are checked.

    Raises:
        SetupError: a folder is wrong; it is a DataError if a file of pages is damaged.
    """
    check_paths(flags, kb, output)
    read, written = absolute(kb), output_folder(output)
    release = PAGES_RELEASE.read(read)
    check_sizes(read, release.tables["pages"])
    return read, written, release


def checked_paths(folder: str, entries: Sequence[FileEntry]) -> tuple[str, ...]:
    """Returns the paths of files of a release after checking that none is missing or truncated.

    Raises:
        SetupError: one is missing or truncated.
    """
    check_sizes(folder, entries)
    return tuple(join(folder, entry.file) for entry in entries)


def named_inputs(options: Any, *names: str) -> dict[str, list[dict[str, Any]]]:
    """Returns the given files and releases for a manifest, by option."""
    given = {name: path for name in names if (path := getattr(options, name)) is not None}
    return {name: [asdict(input_file) for input_file in input_files([path])] for name, path in given.items()}
