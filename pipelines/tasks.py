"""What a guarded process does for the build: one range scanned, or one shard of pages written.

A task is a small JSON object: its kind, the staging folder, and a number. Everything else is read from the
job's own description in the staging folder, so that a task weighs nothing on its way through a runner.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

from kbsource.beat import Beat
from kbsource.dump.ranges import DumpRange
from kbsource.dump.reader import read_range
from kbsource.files import CHUNK_BYTES, LocalStorage, Storage, base_name, join
from kbsource.identity import stable_sha256
from kbsource.page_props import FILE as PAGE_PROPS_FILE
from kbsource.page_props import PageProps
from kbsource.shards import Parser, Shard, write_page_shard
from kbsource.site import Site
from kbsource.staging import Selection, read_json, scan_range, write_json
from kbsource.title_index import ARTICLES_FILE, TITLES_FILE, TitleIndex
from pipelines.storage import is_local, storage_for

SCAN, PAGES = "scan", "pages"
RUN_TASK = f"{__name__}:run_task"
"""What does a task, for ``kbsource.guard``."""
_MAIN_NAMESPACE = frozenset({0})


@dataclass(frozen=True, slots=True)
class Job:
    """What all tasks of a build share.

    Attributes:
        output: folder of the release.
        site: facts of the wiki.
        ranges: of the dump.
        as_of: as in BuildOptions.
        limit_pages: as in BuildOptions; with a limit, one task scans all ranges.
        has_titles: ``titles.json`` in the staging folder lists the titles that are wanted.
        has_page_props: page_props was given.
        parser: as in BuildOptions.
    """

    output: str
    site: Site
    ranges: tuple[DumpRange, ...]
    as_of: str | None
    limit_pages: int | None
    has_titles: bool
    has_page_props: bool
    parser: str

    def write(self, staging: str, storage: Storage) -> None:
        """Writes the description into the staging folder."""
        value = {name: getattr(self, name) for name in self.__slots__}
        value |= {"site": self.site.to_json(), "ranges": [asdict(one) for one in self.ranges]}
        write_json(storage, join(staging, "job.json"), value)

    @classmethod
    def read(cls, staging: str, storage: Storage) -> Job:
        """Gives back what ``write`` wrote."""
        value = read_json(storage, join(staging, "job.json"))
        value["site"] = Site.from_json(value["site"])
        value["ranges"] = tuple(DumpRange(**one) for one in value["ranges"])
        return cls(**value)


def run_task(task: dict[str, Any], beat: Beat) -> None:
    """Does one task; all that comes of it is in files.

    Raises:
        SetupError: something about the whole job is wrong.
    """
    if task["kind"] == SCAN:
        _scan(task["staging"], task["number"], beat)
    else:
        _write_pages(task, beat)


@lru_cache(maxsize=1)
def _job(staging: str) -> Job:
    return Job.read(staging, storage_for(staging))


@lru_cache(maxsize=1)
def _titles(staging: str) -> frozenset[str]:
    return frozenset(read_json(storage_for(staging), join(staging, "titles.json")))


def _scan(staging: str, number: int, beat: Beat) -> None:
    """Scans one range; with a limit on pages all ranges, one after the other, as far as it reaches."""
    job = _job(staging)
    titles = _titles(staging) if job.has_titles else None
    remaining = job.limit_pages
    for part in (number,) if remaining is None else range(len(job.ranges)):
        dump_range = job.ranges[part]
        storage = storage_for(dump_range.path, staging)
        records = read_range(
            dump_range,
            storage,
            job.site,
            as_of=job.as_of,
            text_namespaces=_MAIN_NAMESPACE,
            on_progress=lambda n_bytes: beat.done(pages=0, n_bytes=n_bytes),
        )
        report = scan_range(
            records,
            storage,
            staging=staging,
            part=part,
            file=base_name(dump_range.path),
            site=job.site,
            selection=Selection(remaining, titles),
            beat=beat,
        )
        if remaining is not None:
            remaining -= report.n_pages


def _write_pages(task: dict[str, Any], beat: Beat) -> None:
    staging = task["staging"]
    job, tools = _job(staging), _tools(staging)
    write_page_shard(
        Shard.from_json(task["shard"]),
        storage_for(job.output),
        output=job.output,
        staging=staging,
        parser=tools.parser,
        resolver=tools.titles,
        properties=tools.page_props,
        site=job.site,
        skipped=frozenset(task["skipped"]),
        verdicts={int(page): verdict for page, verdict in task.get("verdicts", {}).items()},
        beat=beat,
    )


@dataclass(frozen=True, slots=True)
class _Tools:
    """What pages are made with; opened once for each process."""

    parser: Parser
    titles: TitleIndex
    page_props: PageProps | None


@lru_cache(maxsize=1)
def _tools(staging: str) -> _Tools:
    job = _job(staging)
    folder = local_index(staging, storage_for(staging), has_page_props=job.has_page_props)
    module, _, name = job.parser.partition(":")
    parser: Parser = getattr(importlib.import_module(module), name)(job.site)
    tools = _Tools(parser, TitleIndex.open(folder), PageProps.open(folder) if job.has_page_props else None)
    return tools


def index_files(*, has_page_props: bool) -> tuple[str, ...]:
    """Gives the names of the index files that the workers need."""
    return (TITLES_FILE, ARTICLES_FILE, *((PAGE_PROPS_FILE,) if has_page_props else ()))


def local_index(staging: str, storage: Storage, *, has_page_props: bool) -> str:
    """Gives a local folder with the index files: the staging folder's own, or a copy shared by a machine's
    workers."""
    folder = join(staging, "index")
    if is_local(staging):
        return folder
    files = index_files(has_page_props=has_page_props)
    stamp = stable_sha256(folder, *(str(storage.size(join(folder, name))) for name in files))
    copy = os.path.join(tempfile.gettempdir(), f"kbsource-index-{stamp[:16]}")
    local = LocalStorage()
    for name in files:
        target = os.path.join(copy, name)
        if not local.exists(target):
            # A name of its own: several workers may fetch at once, and whoever ends last replaces equal
            # bytes.
            partial = f"{target}.{os.getpid()}"
            copy_file(storage, join(folder, name), local, partial)
            local.rename(partial, target)
    return copy


def copy_file(source_storage: Storage, source: str, target_storage: Storage, target: str) -> None:
    """Copies a file from one storage to another."""
    with source_storage.open_read(source) as reader, target_storage.open_write(target) as writer:
        while block := reader.read(CHUNK_BYTES):
            writer.write(block)
