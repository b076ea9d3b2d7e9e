"""What several jobs begin with: their inputs, looked at and hashed before anything reads them; and what they give."""

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
from kbsource.wikidata.kind import EntityCounts
from pipelines.options import PageviewsOptions, WikidataOptions
from pipelines.progress import Progress
from pipelines.runners.running import check_paths

M = TypeVar("M", bound=Manifest)


@dataclass(frozen=True, slots=True)
class MadeRelease(Generic[M]):
    """A release that a job made."""

    output: str  # its folder, as it was named
    manifest: M  # as written
    seconds: float  # wall time
    steps: dict[str, float] = field(default_factory=dict)  # seconds that steps worked, in all processes
    report: dict[str, Any] = field(default_factory=dict)  # as in ``report.json``, where there is one
    kept: tuple[str, ...] = ()  # of releases inside of it, the folders of those that were done before


def output_folder(output: str) -> str:
    """The folder that is written, from the root; raises SetupError: it is neither new nor left by a run that was
    killed."""
    folder = absolute(output.rstrip("/") or "/")
    check_output(folder)
    return folder


class LineFiles(NamedTuple):
    """Files of lines that a job reads, and the folder that it writes."""

    output: str  # absolute path of the folder
    hashed: dict[str, HashedFile]  # the files, by path
    ranges: list[LineRange]  # what they are read in
    inputs: list[InputFile]  # the files, for the manifest

    def job(self, options: dict[str, Any]) -> dict[str, Any]:
        """What decides the bytes of the release, by which a run that was killed is known again."""
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
    """The files that patterns stand for, hashed, and cut into ranges of a size that suits them unless one is given.

    ``plan`` cuts files into ranges, and refuses what cannot be read; ``check`` looks at the paths, and refuses files
    that do not go together. The output is a folder that is new, or left by a run that was killed.

    Raises:
        SetupError: a file or the folder is wrong.
    """
    check_paths(flags, *patterns, output)
    folder = output_folder(output)
    paths = from_root(expand_paths(patterns))
    if check is not None:
        check(paths)
    n_bytes = range_size(size_of(paths), range_bytes)
    plan(paths, range_bytes=n_bytes)  # what cannot be read is refused before it is hashed
    with progress.adding("hash", size_of(paths)) as add:
        hashed = {path: hash_file(path, on_bytes=add) for path in paths}
    ranges = plan(paths, range_bytes=n_bytes, files=CheckedFiles(hashed))
    inputs = [InputFile(base_name(path), hashed[path].n_bytes, hashed[path].sha256) for path in paths]
    return LineFiles(folder, hashed, ranges, inputs)


def check_lines(
    totals: EntityCounts | LineCounts,
    inputs: Sequence[InputFile],
    damaged_bytes: int,
    options: PageviewsOptions | WikidataOptions,
    rejected: Iterable[BadRecord],
) -> dict[str, int]:
    """The findings about damage of files of lines; raises DataError: too many lines could not be used, of which the
    first of ``rejected`` are shown."""
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
    """A release of pages that a job reads, and the folder that it writes, from the root; and the manifest of the
    release, whose files of pages have their sizes.

    Raises:
        SetupError: a folder is wrong; a DataError where a file of pages is damaged.
    """
    check_paths(flags, kb, output)
    read, written = absolute(kb), output_folder(output)
    release = PAGES_RELEASE.read(read)
    check_sizes(read, release.tables["pages"])
    return read, written, release


def checked_paths(folder: str, entries: Sequence[FileEntry]) -> tuple[str, ...]:
    """The paths of files of a release, none of which is missing or cut off.

    Raises:
        SetupError: one is.
    """
    check_sizes(folder, entries)
    return tuple(join(folder, entry.file) for entry in entries)


def named_inputs(options: Any, *names: str) -> dict[str, list[dict[str, Any]]]:
    """Files and releases for a manifest, by the option that names each; of those that are given."""
    given = {name: path for name in names if (path := getattr(options, name)) is not None}
    return {name: [asdict(input_file) for input_file in input_files([path])] for name, path in given.items()}
