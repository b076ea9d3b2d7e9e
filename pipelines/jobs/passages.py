"""The corpus of passages: one pipeline cuts every page of a release into passages.

Pages are cut chunk by chunk. The passages of each file of pages are written to separate files. One worker joins the
files that belong together and finally writes the manifest.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import apache_beam as beam
import pyarrow as pa

from kbsource.errors import DataError, SetupError
from kbsource.files import absolute, join
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_hashes, check_same_facts
from kbsource.release.sql import with_counts
from kbsource.runtime.chunks import BatchRef, ChunkKey
from mapping.passages.corpus import (
    TABLE,
    Base,
    checked_pages,
    join_parts,
    read_page_chunks,
    read_pages,
    write_shard,
)
from mapping.passages.forms import KiltPages, line_forms
from mapping.passages.kind import PASSAGES_CORPUS
from mapping.search.tokens import tokeniser_name
from pipelines.jobs.shared_inputs import MadeRelease, pages_input
from pipelines.options.passages import PassagesOptions
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do, wired
from pipelines.transforms.passages import CutPassages

_CUT = "cut"
"""Folder in the staging folder for the chunks."""


def make_passages(
    options: PassagesOptions, *, flags: Sequence[str], progress: Progress
) -> MadeRelease[ListingManifest]:
    """Makes a corpus of passages.

    Raises:
        DataError: a file of pages is damaged, or pages are missing.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    kb, output, release = pages_input(options.kb, options.output, flags=flags)
    job = {"release": release.facts(), "options": options.data_options()}
    with ReleaseFolder(output, kind=PASSAGES_CORPUS, job=job) as out:
        _ = pipeline | "passages" >> cut_corpus(options, release, kb=kb, output=output, staging=out.staging)
        sizes = [entry.rows or 0 for entry in release.tables["pages"]]
        with progress.stage("passages", chunks_done(out.staging, join(out.staging, _CUT), sizes, unit="pages")):
            steps = run_pipeline(pipeline, "passages", counts=(counts := Counter[str]()))
    report = {"taken_over": counts["taken_over"]} if counts and options.base is not None else {}
    return MadeRelease(options.output, PASSAGES_CORPUS.read(output), time.monotonic() - started, steps, report)


@wired
def cut_corpus(
    pipeline: Any, options: PassagesOptions, release: PagesManifest, *, kb: str, output: str, staging: str
) -> Any:
    """Cuts the pages of a release into passages, and writes the corpus. Applied to a pipeline; the result is the path
    of the corpus, once it is complete.

    Args:
        output: folder of the corpus, marked as unfinished.
        staging: folder in it for temporary files.
    """
    files, lang = release.tables["pages"], release.site.lang
    where = {"output": output, "parts": join(staging, "parts"), "formats": tuple(options.formats)}
    facts = {
        "release": release.facts(),
        "options": options.data_options(),
        "lang": lang,
        # Imported here, to fail before cutting if it is not installed.
        "code": {**code_facts(), "tokeniser": tokeniser_name(lang)},
    }
    cut = (
        pipeline
        | "files" >> beam.Create(list(enumerate(files)), reshuffle=False)
        | "spread" >> beam.Reshuffle()
        | "pages" >> do(_read_pages, kb=kb, has_tables=options.cut.tables)
        | "cut"
        >> CutPassages(
            options.cut,
            lang=lang,
            base=_base(options, facts),
            folder=join(staging, _CUT),
            memory_bytes=options.worker_memory_bytes,
            beats=join(staging, "beats"),
        )
    )
    counts = beam.pvalue.AsSingleton(cut.counts | "counts" >> CollectSorted())
    return (
        cut.chunks
        | "in order" >> CollectSorted()
        | "by file" >> beam.FlatMap(_by_file, len(files))
        | "spread files" >> beam.Reshuffle()
        | "write" >> do(_write, kb=kb, files=files, **where)
        | "written" >> CollectSorted()
        | "corpus" >> do(_commit, counts, n_pages=release.totals.articles, facts=facts, **where)
    )


def _base(options: PassagesOptions, facts: Mapping[str, Any]) -> Base | None:
    """Returns the files to reuse passages from; None without a base.

    Args:
        facts: facts about the new corpus, as in its manifest.

    Raises:
        SetupError: its passages may differ from those that would be made here, or belong to other pages.
    """
    if options.base is None and options.base_kb is None:
        return None
    if options.base is None or options.base_kb is None:
        raise SetupError(
            "Give --base and --base-kb together: the passages, and the release of pages that they were cut from."
        )
    folders = {"pages": absolute(options.base_kb), TABLE: absolute(options.base)}
    kb, corpus = PAGES_RELEASE.read(folders["pages"]), PASSAGES_CORPUS.read(folders[TABLE])
    if corpus.facts["release"] != kb.facts():
        raise SetupError(
            f"The passages {options.base} were not cut from {options.base_kb}; name the release that they were cut "
            f"from."
        )
    had, has = (
        {"lang": own_facts["lang"], "code": own_facts["code"], "option": {**own_facts["options"], "formats": None}}
        for own_facts in (corpus.facts, facts)  # formats do not affect passages
    )
    check_same_facts(options.base, had, has)
    files = {"pages": kb.tables["pages"], TABLE: corpus.tables[TABLE]}
    for table, entries in files.items():
        check_hashes(folders[table], entries)
    return {table: (folders[table], tuple(entry.file for entry in entries)) for table, entries in files.items()}


def _read_pages(
    element: tuple[int, FileEntry], *, kb: str, has_tables: bool
) -> Iterator[tuple[ChunkKey, pa.RecordBatch]]:
    """Reads a file of pages, after checking that it has not changed.

    A file of pages -> (key, record batch).
    """
    number, entry = element
    for chunk, batch in enumerate(read_page_chunks(checked_pages(kb, entry), has_tables=has_tables)):
        yield ChunkKey(number, chunk), batch


def _by_file(chunks: list[tuple[ChunkKey, BatchRef]], n_files: int) -> Iterator[tuple[int, int, list[BatchRef]]]:
    """Iterates over the files: the number of each, the number of files, and the file's chunks."""
    parts = {part: [stored for _, stored in group] for part, group in groupby(chunks, key=lambda chunk: chunk[0][0])}
    for number in range(n_files):
        yield number, n_files, parts.get(number, [])


def _write(
    element: tuple[int, int, list[BatchRef]],
    *,
    kb: str,
    files: Sequence[FileEntry],
    output: str,
    parts: str,
    formats: Any,
) -> Iterator[tuple[ChunkKey, list[FileEntry]]]:
    """Writes the passages of one file of pages.

    passages -> (key, entries of the files that were written).
    """
    number, n_files, chunks = element
    path = join(kb, files[number].file)
    batches, pages = (BatchRef(*chunk) for chunk in chunks), KiltPages(read_pages(path), path)
    entries = write_shard(batches, number, n_files, output=output, parts=parts, formats=formats, pages=pages)
    yield ChunkKey(number, 0), entries


def _commit(
    element: list[tuple[ChunkKey, list[FileEntry]]],
    counted: list[tuple[ChunkKey, dict[str, int]]],
    *,
    n_pages: int,
    facts: dict[str, Any],
    formats: Sequence[str],
    output: str,
    parts: str,
) -> Iterator[str]:
    """Joins the files that belong together, and finally writes the manifest.

    Raises:
        DataError: counts do not add up.
    """
    shards = [entries for _, entries in element]
    cut = sum((Counter(counts) for _, counts in counted), Counter[str]())
    n_rows = sum(table.rows or 0 for table, *_ in shards)
    if cut["pages"] != n_pages or cut["passages"] != n_rows:
        raise DataError(
            f"The counts do not add up, so no release was made: {cut['pages']} of {n_pages} pages were cut, and "
            f"{n_rows} of {cut['passages']} passages were written."
        )
    files = [table for table, *_ in shards]
    for number, form in enumerate(line_forms(formats), start=1):
        own = [entries[number] for entries in shards]
        files += [join_parts(form, own, output=output, parts=parts)] if form.is_joined else own
    facts = with_counts(PASSAGES_CORPUS, files, {**facts, "counts": {"pages": n_pages}}, output)
    commit(PASSAGES_CORPUS, PASSAGES_CORPUS.listing(files, facts), output)
    yield output
