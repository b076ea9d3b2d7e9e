"""What a guarded process does for a corpus of passages: one file of pages becomes one file of passages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from kbsource.beat import Beat
from kbsource.files import Storage, join
from kbsource.release.manifest import FileEntry
from kbsource.staging import read_json, write_json
from mapping.passages.corpus import CutOptions, ShardReport, check_pages, write_shard
from pipelines.storage import storage_for

CUT = "passages"
RUN_TASK = f"{__name__}:run_task"
"""What does a task, for ``kbsource.guard``."""


@dataclass(frozen=True, slots=True)
class PassagesJob:
    """What all tasks share.

    Attributes:
        kb: folder of the release.
        output: folder of the corpus.
        pages: the pages files of the release, in order.
        cut: how pages are cut.
        formats: forms of lines.
    """

    kb: str
    output: str
    pages: tuple[FileEntry, ...]
    cut: CutOptions
    formats: tuple[str, ...]

    def write(self, staging: str, storage: Storage) -> None:
        """Writes the description into the staging folder."""
        write_json(storage, join(staging, "job.json"), asdict(self))

    @classmethod
    def read(cls, staging: str, storage: Storage) -> PassagesJob:
        """Gives back what ``write`` wrote."""
        value = read_json(storage, join(staging, "job.json"))
        pages = tuple(FileEntry(**one) for one in value["pages"])
        formats = tuple(value["formats"])
        return cls(**{**value, "pages": pages, "formats": formats, "cut": CutOptions(**value["cut"])})


def parts_folder(staging: str) -> str:
    """Gives the folder for the parts of files that are joined."""
    return join(staging, "parts")


def _report_path(staging: str, number: int) -> str:
    return join(staging, "reports", f"{number:05d}.json")


def read_shard_report(staging: str, number: int, storage: Storage) -> ShardReport:
    """Gives what became of one file of pages."""
    return ShardReport.from_json(read_json(storage, _report_path(staging, number)))


def run_task(task: dict[str, Any], beat: Beat) -> None:
    """Does one task; all that comes of it is in files.

    Raises:
        DataError: the file of pages is not what the release's manifest says.
        SetupError: something about the whole job is wrong.
    """
    staging, number = task["staging"], task["number"]
    job = _job(staging)
    storage = storage_for(job.kb, job.output)
    check_pages(job.kb, job.pages[number], storage)
    report = write_shard(
        join(job.kb, job.pages[number].file),
        number,
        len(job.pages),
        output=job.output,
        parts=parts_folder(staging),
        options=job.cut,
        formats=job.formats,
        storage=storage,
        on_page=lambda: beat.done(pages=1, n_bytes=1),
    )
    write_json(storage, _report_path(staging, number), report.to_json())


@lru_cache(maxsize=1)
def _job(staging: str) -> PassagesJob:
    return PassagesJob.read(staging, storage_for(staging))
