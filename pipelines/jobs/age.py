"""The age of a benchmark: its evidence is looked for in one release after the other, by one pipeline.

Every page has a hash of all that is searched in it. Evidence is resolved in every release, but searched for in the
first one of those whose page is the same: a page that did not change costs one search however many releases have it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import batch_of, schema_of
from kbsource.errors import DataError, SetupError, told_fault
from kbsource.files import Folder, absolute, base_name, join
from kbsource.records import BadRecord
from kbsource.release.layout import check_output
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_sizes
from kbsource.release.sql import add_release, connected
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, Work, read_batches, read_rows, write_chunk
from mapping.age import AGE, Fate, PageFacts, as_date, commit_age, fates_of, first_with
from mapping.decide import with_outcome
from mapping.records import Alignment
from mapping.search.page_search import SearchSettings, locate_nowhere
from mapping.search.tokens import tokeniser_name
from mapping.write.kind import REPORT
from pipelines.alignment.reading import EvidenceFiles
from pipelines.alignment.search import Search
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options import AgeOptions
from pipelines.primitives.guarded_map import CHUNKS, GuardedMap
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import CollectSorted, keep_batch
from pipelines.progress import Done, Progress, beats_in
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import do, wired
from pipelines.transforms.align import EVIDENCE, FAULTS, REJECTED, ReadEvidence, ResolvePages

_ROWS_AT_ONCE = 1 << 16
_KIND, _ENDING = "kilt", "-kilt"
_BEATS, _FATES = "beats", "fates"
_PAGES = """
select hash(title, is_disambiguation, elements) as version,
    coalesce(list_sum([length(element.text) for element in elements[2:]]), 0)::bigint as n_chars,
    infoboxes[1].name as infobox
from pages order by _file_number, _row
"""
"""Facts of the pages of a release, in their order."""


class Snapshot(NamedTuple):
    """A release, and where the facts of its pages are."""

    kb: str  # its folder
    date: str  # yyyymmdd
    facts: str  # file with the facts of its pages


def age(options: AgeOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Says how fast a benchmark rots.

    Raises:
        DataError: too many records cannot be used, or a law of the counts does not hold.
        SetupError: a file, an option, a release or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    old = () if options.from_kb is None else (options.from_kb,)
    check_paths(flags, *options.releases, *options.inputs, options.output, *old)
    output = absolute(options.output.rstrip("/") or "/")
    check_output(output)
    ordered = in_order_of_dates(options.releases)
    for before, path in combinations(options.inputs, 2):
        if dataset_name(before) == (name := dataset_name(path)):
            raise SetupError(f"{before} and {path} are both called {name!r}; rename one of them.")
    parts = [EvidenceFiles(_KIND, (path,), references=old, max_rejects=options.max_rejects) for path in options.inputs]
    for part in parts:
        part.check()
    progress.note("inputs: hashing")
    job = {
        "releases": [manifest.facts() for _, manifest in ordered],
        "inputs": {
            "records": [asdict(entry) for entry in input_files(options.inputs)],
            "references": [asdict(entry) for entry in input_files(old)],
        },
        "options": options.data_options(),
        "code": {**code_facts(), "tokeniser": tokeniser_name(ordered[0][1].site.lang)},
    }
    with ReleaseFolder(output, kind=AGE, job=job) as out:
        snapshots = [_snapshot(kb, manifest, out.staging, progress) for kb, manifest in ordered]
        found = pipeline | "age" >> look_in_all(parts, snapshots, options, out.staging)
        rejected = beam.pvalue.AsSingleton(found[REJECTED] | "rejected" >> CollectSorted())
        dates = [one.date for one in snapshots]
        _ = (
            found[_FATES]
            | "in order" >> CollectSorted()
            | "commit" >> do(_commit, rejected, output=output, dates=dates, facts=job)
        )
        beats = beats_in(join(out.staging, _BEATS), "")
        with progress.stage("age", lambda: Done(beats().amount_done, 0, unit="searches")):
            steps = run_pipeline(pipeline, "age")
    report = Folder.of(join(output, REPORT)).read_json()
    return MadeRelease(options.output, AGE.read(output), time.monotonic() - started, steps, report)


def in_order_of_dates(releases: Sequence[str]) -> list[tuple[str, PagesManifest]]:
    """Folders of releases with their manifests, the oldest first.

    Raises:
        SetupError: they are not of one wiki, one has no date, or two have the same.
    """
    found = []
    for path in map(absolute, releases):
        manifest = PAGES_RELEASE.read(path)
        check_sizes(path, manifest.tables["pages"])
        try:
            as_date(manifest.dump.date or "")
        except ValueError:
            raise SetupError(
                f"{path} does not say of which day its dump is; name dumps as Wikimedia does, with the date in it."
            ) from None
        found.append((path, manifest))
    found.sort(key=lambda release: str(release[1].dump.date))
    for (before, first), (path, second) in pairwise(found):
        if first.site.dbname != second.site.dbname:
            wikis = f"{before} is of {first.site.dbname}, {path} of {second.site.dbname}"
            raise SetupError(f"{wikis}; name releases of one wiki.")
        if first.dump.date == second.dump.date:
            raise SetupError(f"{before} and {path} are of one day, {first.dump.date}; name releases of different days.")
    return found


def dataset_name(path: str) -> str:
    """What the evidence of a file is called.

    >>> dataset_name("gs://bucket/fever-dev-kilt.jsonl.gz")
    'fever-dev'
    """
    return base_name(path).partition(".")[0].removesuffix(_ENDING)


def _snapshot(kb: str, manifest: PagesManifest, staging: str, progress: Progress) -> Snapshot:
    """A release with the facts of its pages, which are written unless they are there."""
    facts = join(staging, "pages", f"{manifest.sha256}.arrow")
    if not Folder.of(facts).exists():
        progress.note(f"{kb}: hashing {manifest.totals.articles:,} pages")
        with connected(reads=[kb]) as db:
            add_release(db, PAGES_RELEASE, kb, places=True)
            rows = db.sql(_PAGES).to_arrow_reader(_ROWS_AT_ONCE)
            write_chunk(rows, rows.schema, Report(), path=facts, is_packed=False)
    return Snapshot(kb, str(manifest.dump.date), facts)


@lru_cache
def _pages(facts: str) -> pa.Table:
    """The facts of the pages of a release, mapped."""
    file = Folder.of(facts)
    local = join(file.parent.local_copy([file.name]), file.name)
    return pa.ipc.open_file(pa.memory_map(local)).read_all()


@wired
def look_in_all(
    pipeline: Any,
    parts: Sequence[EvidenceFiles],
    snapshots: Sequence[Snapshot],
    options: AgeOptions,
    staging: str,
) -> Any:
    """Evidence of datasets in every release. Applied to a pipeline.

    Outputs:
        ``fates``: (key, ``BatchRef``) of rows of ``Fate``.
        ``rejected``: as ``ReadEvidence`` gives them.

    Args:
        parts: the datasets.
        snapshots: the releases, in the order of their dates.
        staging: folder for what lies between the steps; for one job with one input only.
    """
    read = pipeline | ReadEvidence(parts, staging)
    _ = read[FAULTS] | "fail" >> do(_fail)
    resolved = {
        number: read[EVIDENCE]
        | f"resolve {number}" >> ResolvePages(one.kb, folder=join(staging, f"resolved-{number}"))
        | f"by chunk {number}" >> beam.MapTuple(_keyed)
        for number, one in enumerate(snapshots)
    }
    wanted = (
        resolved
        | "all releases" >> beam.CoGroupByKey()
        | "wanted" >> do(_wanted, snapshots=snapshots, folder=join(staging, "wanted"))
    )
    found = (
        wanted
        | "spread" >> beam.Reshuffle()
        | "search"
        >> GuardedMap(
            partial(Searches, tuple(ReleasePages.open(one.kb) for one in snapshots)),
            folder=join(staging, "found"),
            timeout_s=options.evidence_timeout_s,
            memory_bytes=options.worker_memory_bytes,
            beats=join(staging, _BEATS),
        )
    )[CHUNKS] | "found" >> beam.MapTuple(partial(_by_chunk, n_releases=len(snapshots)))
    joined = {"found": found, **{f"resolved {number}": rows for number, rows in resolved.items()}}
    fates = (
        joined
        | "all" >> beam.CoGroupByKey()
        | "fates"
        >> do(
            _fates,
            snapshots=snapshots,
            names=[dataset_name(part.inputs[0]) for part in parts],
            threshold=options.threshold,
            folder=join(staging, _FATES),
        )
    )
    return {_FATES: fates, REJECTED: read[REJECTED]}


def _fail(element: tuple[int, Mapping[str, str]]) -> Iterable[Any]:
    raise told_fault(element[1])


def _keyed(key: ChunkKey, stored: BatchRef) -> tuple[int, BatchRef]:
    return key[0] << 32 | key[1], stored


_Known = dict[tuple[int, int, int], list[Alignment]]


def _by_evidence(stored: Sequence[BatchRef]) -> _Known:
    """The rows of a chunk in each release, by record, output and evidence."""
    known: _Known = {}
    for rows in stored:
        for row in read_rows(rows, Alignment):
            known.setdefault((row.ordinal, *row.key), []).append(row)
    return dict(sorted(known.items()))


def _facts(rows: Sequence[Alignment], snapshots: Sequence[Snapshot]) -> list[PageFacts | None]:
    """What is known of the page of a row in each release; None without one."""
    return [
        None if row.position < 0 else PageFacts(*(column[row.position].as_py() for column in _pages(one.facts).columns))
        for row, one in zip(rows, snapshots, strict=True)
    ]


def _wanted(
    element: tuple[int, dict[int, Iterable[BatchRef]]], *, snapshots: Sequence[Snapshot], folder: str
) -> Iterator[Any]:
    """(chunk, its rows in each release) -> (key, those that must be searched for in a release) for each of these.

    The first number of the key is that of the dataset times that of all releases, and that of the release.
    """
    chunk, given = element
    key = ChunkKey(chunk >> 32, chunk & 0xFFFFFFFF)
    new: list[list[Alignment]] = [[] for _ in snapshots]
    for rows in _by_evidence([BatchRef(*next(iter(given[number]))) for number in range(len(snapshots))]).values():
        pages = _facts(rows, snapshots)
        for number, row in enumerate(rows):
            if pages[number] is not None and first_with(pages, number) == number:
                new[number].append(row)
    for number, rows in enumerate(new):
        in_order = sorted(rows, key=lambda row: row.position)
        of_release = ChunkKey(key.part * len(snapshots) + number, key.chunk)
        yield of_release, keep_batch(of_release, batch_of(in_order, Alignment), folder)


def _by_chunk(key: ChunkKey, stored: BatchRef, n_releases: int) -> tuple[int, tuple[int, BatchRef]]:
    part, number = divmod(key[0], n_releases)
    return part << 32 | key[1], (number, stored)


class Searches:
    """The search of all releases; the keys of chunks say which is meant."""

    schema = schema_of(Alignment)

    def __init__(self, releases: Sequence[ReleasePages]) -> None:
        self._releases, self._searches = releases, dict[int, Search]()

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        number = work.key.part % len(self._releases)
        if number not in self._searches:
            self._searches[number] = Search(self._releases[number], SearchSettings(), {})
        return self._searches[number](rows, work)


def _fates(
    element: tuple[int, dict[str, Iterable[Any]]],
    *,
    snapshots: Sequence[Snapshot],
    names: Sequence[str],
    threshold: float,
    folder: str,
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """(chunk, its rows as resolved and as found) -> (key, rows of ``Fate``)."""
    chunk, given = element
    key = ChunkKey(chunk >> 32, chunk & 0xFFFFFFFF)
    found = {
        number: {(row.ordinal, *row.key): row for row in read_rows(BatchRef(*stored), Alignment)}
        for number, stored in given["found"]
    }
    resolved = [BatchRef(*next(iter(given[f"resolved {number}"]))) for number in range(len(snapshots))]
    rows: list[Fate] = []
    for place, own in _by_evidence(resolved).items():
        pages = _facts(own, snapshots)
        outcomes = [
            locate_nowhere(row) if page is None else _as_found(row, found[first_with(pages, number)].get(place), place)
            for number, (row, page) in enumerate(zip(own, pages, strict=True))
        ]
        rows += fates_of(
            names[key.part], [with_outcome(one, threshold) for one in outcomes], pages, [one.date for one in snapshots]
        )
    yield key, keep_batch(key, batch_of(rows, Fate), folder)


def _as_found(row: Alignment, found: Alignment | None, place: tuple[int, int, int]) -> Alignment:
    """What was found for an evidence in the first release that has its page as this one has it."""
    if found is None:
        raise DataError(f"evidence {place} has no outcome. Report this, it is a defect.")
    return replace(found, page_id=row.page_id, title=row.title, found_by=row.found_by, hops=row.hops)


def _commit(
    chunks: list[tuple[ChunkKey, BatchRef]],
    rejected: list[tuple[ChunkKey, BatchRef]],
    *,
    output: str,
    dates: Sequence[str],
    facts: Mapping[str, Any],
) -> Iterator[str]:
    """Writes the tables, the report and, last of all, the manifest."""
    batches = (batch for _, stored in chunks for batch in read_batches(BatchRef(*stored)))
    bad = [row for _, stored in rejected for row in read_rows(BatchRef(*stored), BadRecord)]
    commit_age(batches, bad, output=output, dates=dates, facts=facts)
    yield output
