"""The corpus of passages: every page of a release cut into passages, by one pipeline.

Pages are cut chunk by chunk; the passages of each file of pages become files of their own; one worker joins what
belongs into one file and writes the manifest, last of all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import DataError, named_faults
from kbsource.files import join
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PagesManifest
from kbsource.runtime.chunks import Key, Stored
from mapping.passages.corpus import (
    COUNTS,
    checked_pages,
    join_lines,
    read_page_chunks,
    read_pages,
    write_shard,
)
from mapping.passages.forms import KiltPages, line_forms
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.search.tokens import tokeniser_name
from pipelines.jobs.shared_inputs import pages_input
from pipelines.options.passages import PassagesOptions
from pipelines.primitives.together import Together
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import storage_for
from pipelines.transforms.cut_passages import CutPassages


@dataclass(frozen=True, slots=True)
class PassagesSummary:
    """What was made.

    Attributes:
        output: folder of the corpus.
        manifest: as written.
        seconds: wall time.
    """

    output: str
    manifest: ListingManifest
    seconds: float


def make_passages(options: PassagesOptions, *, flags: Sequence[str], progress: Progress) -> PassagesSummary:
    """Makes a corpus of passages.

    Args:
        options: what to make.
        flags: of Beam, from ``runners.beam_flags``.
        progress: shows how far it has come.

    Raises:
        DataError: a file of pages is damaged, or pages are missing.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    kb, output, storage, release = pages_input(options.kb, options.output, flags=flags)
    job = {"release": release.facts(), "options": options.data_options()}
    with ReleaseFolder(output, storage, kind=PASSAGES_CORPUS, job=job) as out:
        _ = pipeline | "passages" >> MakePassages(options, release, kb=kb, output=output, staging=out.staging)
        sizes = [entry.rows or 0 for entry in release.tables["pages"]]
        with progress.stage("passages", chunks_done(out.staging, _chunks(out.staging), sizes, unit="pages")):
            run_pipeline(pipeline, "passages")
    return PassagesSummary(options.output, PASSAGES_CORPUS.read(output, storage), time.monotonic() - started)


def _chunks(staging: str) -> str:
    return join(staging, "cut")


class MakePassages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """The pages of a release -> the path of their corpus, once it is whole. Applied to a pipeline.

    Args:
        options: what to make.
        release: manifest of the release.
        kb: folder of the release.
        output: folder of the corpus, marked as unfinished.
        staging: folder in it for what is only needed meanwhile.
    """

    def __init__(self, options: PassagesOptions, release: PagesManifest, *, kb: str, output: str, staging: str) -> None:
        super().__init__()
        self._options, self._release, self._kb, self._staging = options, release, kb, staging
        self._write = _Write(options.formats, release, kb=kb, output=output, staging=staging)
        self._commit = _Commit(options, release, output, staging)

    def expand(self, pipeline: Any) -> Any:
        options, files = self._options, list(enumerate(self._release.tables["pages"]))
        cut = (
            pipeline
            | "files" >> beam.Create(files, reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "pages" >> beam.ParDo(_ReadPages(self._kb))
            | "cut"
            >> CutPassages(
                options.cut,
                lang=self._release.site.lang,
                folder=_chunks(self._staging),
                memory_bytes=options.worker_memory_bytes,
                beats=join(self._staging, "beats"),
            )
        )
        counts = cut.counts | "counts" >> Together()
        return (
            cut.chunks
            | "in order" >> Together()
            | "by file" >> beam.FlatMap(_by_file, len(files))
            | "spread files" >> beam.Reshuffle()
            | "write" >> beam.ParDo(self._write)
            | "written" >> Together()
            | "corpus" >> beam.ParDo(self._commit, beam.pvalue.AsSingleton(counts))
        )


class _ReadPages(WorkerDoFn):
    """A file of pages -> (Key, record batch), once it is known to be as it was written."""

    def __init__(self, kb: str) -> None:
        super().__init__()
        self._kb = kb

    def process(self, element: tuple[int, FileEntry]) -> Iterator[tuple[Key, pa.RecordBatch]]:
        number, entry = element
        with named_faults():
            storage = checked_pages(self._kb, entry, storage_for(self._kb))
            for chunk, batch in enumerate(read_page_chunks(join(self._kb, entry.file), storage)):
                yield Key(number, chunk), batch


def _by_file(chunks: list[tuple[Key, Stored]], n_files: int) -> Iterator[tuple[int, int, list[Stored]]]:
    """Gives, for every file, its number, that of all and its chunks."""
    parts = {part: [stored for _, stored in group] for part, group in groupby(chunks, key=_part_of)}
    for number in range(n_files):
        yield number, n_files, parts.get(number, [])


def _part_of(chunk: tuple[Key, Stored]) -> int:
    return chunk[0][0]


def _parts_folder(staging: str) -> str:
    return join(staging, "parts")


class _Write(WorkerDoFn):
    """The passages of a file of pages -> (Key, entries of the files written)."""

    def __init__(self, formats: Sequence[str], release: PagesManifest, *, kb: str, output: str, staging: str) -> None:
        super().__init__()
        self._formats, self._kb, self._output, self._staging = tuple(formats), kb, output, staging
        self._files = tuple(entry.file for entry in release.tables["pages"])

    def process(self, element: tuple[int, int, list[Stored]]) -> Iterator[tuple[Key, list[FileEntry]]]:
        number, n_files, chunks = element
        path = join(self._kb, self._files[number])
        with named_faults():
            entries = write_shard(
                (Stored(*chunk) for chunk in chunks),
                number,
                n_files,
                output=self._output,
                parts=_parts_folder(self._staging),
                formats=self._formats,
                pages=KiltPages(read_pages(path, storage_for(self._kb)), path),
                storage=storage_for(self._output),
            )
        yield Key(number, 0), entries


class _Commit(WorkerDoFn):
    """Joins what belongs into one file, and writes the manifest, last of all."""

    def __init__(self, options: PassagesOptions, release: PagesManifest, output: str, staging: str) -> None:
        super().__init__()
        self._options, self._output, self._staging = options, output, staging
        self._release, self._n_pages, self._lang = release.facts(), release.totals.articles, release.site.lang

    def process(
        self, element: list[tuple[Key, list[FileEntry]]], counted: list[tuple[Key, dict[str, int]]]
    ) -> Iterator[str]:
        shards = [entries for _, entries in element]
        total = sum((Counter(counts) for _, counts in counted), Counter(dict.fromkeys(COUNTS, 0)))
        counts = {name: total[name] for name in COUNTS}
        with named_faults():
            self._check(counts, sum(table.rows or 0 for table, *_ in shards))
            self._commit(shards, counts)
        yield self._output

    def _check(self, counts: dict[str, int], n_rows: int) -> None:
        if counts["pages"] != self._n_pages or counts["passages"] != n_rows:
            raise DataError(
                f"The counts do not add up, so nothing was released: {counts['pages']} pages of {self._n_pages}, "
                f"{n_rows} rows of {counts['passages']} passages."
            )

    def _commit(self, shards: Sequence[list[FileEntry]], counts: dict[str, int]) -> None:
        storage, output = storage_for(self._output), self._output
        files = [table for table, *_ in shards]
        for number, form in enumerate(line_forms(self._options.formats), start=1):
            own = [entries[number] for entries in shards]
            if form.is_joined:
                own = [join_lines(form, own, output=output, parts=_parts_folder(self._staging), storage=storage)]
            files += own
        facts = {
            "release": self._release,
            "options": self._options.data_options(),
            "lang": self._lang,
            "counts": counts,
            "code": {**asdict(code_facts()), "tokeniser": tokeniser_name(self._lang)},
        }
        commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing(files, facts), output, storage)
