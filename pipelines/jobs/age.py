"""The age of a benchmark: one pipeline searches for its evidence in several releases.

Each page has a hash of all its searched text. Evidence is resolved in every release. If several releases have an
identical page, only the first of them is searched, so an unchanged page costs one search.

Evidence that its page has lost is followed as ``kbsource diff`` follows text. The element that last contained it, or
the part of the element that the page lost, is searched for among the elements that other pages have gained since. The
page found this way is searched in that release and in the later ones.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import apache_beam as beam
import pyarrow as pa
from msgspec.structs import replace

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.diff.making import LONG_CHARS
from kbsource.diff.matching import match_elements
from kbsource.errors import DataError, SetupError, told_fault
from kbsource.files import Folder, absolute, base_name, join
from kbsource.local_copies import local_copy
from kbsource.records import BadRecord
from kbsource.release.layout import check_output
from kbsource.release.manifest import ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder
from kbsource.release.pages.kind import PAGES_RELEASE, PagesManifest
from kbsource.release.reader import check_sizes
from kbsource.release.sql import add_release, connected
from kbsource.rows import Int32, Row
from kbsource.runtime.chunks import BatchRef, ChunkKey, Report, Work, read_batches, read_rows, write_chunk
from kbsource.runtime.database import insert
from mapping.age import AGE, LOST, EvidenceResult, Fate, KnownPage, as_date, commit_age, fates_of, first_with
from mapping.decide import with_outcome
from mapping.records import Alignment, input_from_json
from mapping.search.details import PageWords, has_other_details
from mapping.search.page_search import SearchSettings, locate_nowhere
from mapping.search.tokens import Tokeniser, tokeniser_name
from mapping.write.kind import REPORT
from pipelines.alignment.reading import ReadRecord, check_files
from pipelines.alignment.search import Search
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.age import AgeOptions
from pipelines.options.map_dataset import DatasetOptions
from pipelines.primitives.guarded_map import CHUNKS, GuardedMap
from pipelines.primitives.page_texts import PageTexts, ReleasePages
from pipelines.primitives.shuffle import CollectSorted, keep_batch
from pipelines.progress import Done, Progress, beats_in
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.runners.workers import do, wired
from pipelines.transforms.align import EVIDENCE, EXAMPLES, FAULTS, REJECTED, ReadEvidence, ResolvePages

_ROWS_AT_ONCE = 1 << 16
_LEAST_CHARS = 20
"""Minimum length of a text that is searched for in other pages. A text shorter than ``LONG_CHARS`` must occur in only
one page, before and after."""
_KIND, _ENDING = "kilt", "-kilt"
_BEATS, _FATES = "beats", "fates"
_PAGES = """
select hash(title, is_disambiguation, elements) as version,
    coalesce(list_sum([length(element.text) for element in elements[2:]]), 0)::bigint as n_chars,
    infoboxes[1].name as infobox
from pages order by _file_number, _row
"""
"""Facts about the pages of a release, in page order."""


_PLACES = """
insert into places
select {number}, text_hash, page_id, title from (
    select page_id, title, md5(unnest(list_filter(
        list_transform(elements[2:], lambda element: element.text), lambda text: length(text) >= {least}
    ))) as text_hash
    from release_{number}.pages where not is_disambiguation
) semi join lost using (text_hash)
"""
"""Pages of a release with an element whose text is searched for. A page may occur several times."""
_FOLLOWED = """
create table followed as
with n_pages as (
    select release, text_hash, count(distinct page_id) as n from places group by all
), new_places as (
    select distinct wanted.base, place.*
    from (select distinct base, release, text_hash, is_short from lost) wanted
    join places place using (release, text_hash)
    where not exists (
        select 1 from places before where before.release = wanted.base and before.text_hash = place.text_hash
            and (before.page_id = place.page_id or before.title = place.title)
    ) and (not is_short or not exists (
        select 1 from n_pages where n > 1 and n_pages.text_hash = wanted.text_hash
            and n_pages.release in (wanted.base, wanted.release)
    ))
), there as (
    select lost.part, lost.chunk, lost.ordinal, lost.output, lost.evidence, lost.base, lost.release,
        min({'is_piece': is_piece, 'page_id': place.page_id})
            filter (where place.page_id is not null).page_id as page_id
    from lost
    left join new_places place on place.base = lost.base and place.release = lost.release
        and place.text_hash = lost.text_hash and place.page_id is distinct from lost.page_id
    group by all
)
select * replace (last_value(page_id ignore nulls) over (
    partition by part, chunk, ordinal, output, evidence, base order by release
) as page_id) from there
"""
"""The page to which evidence was moved, by release: the page that has its text, else the last page that had it."""
_STARTS = """
select part, chunk, ordinal, output, evidence, release, page_id, title, {starts}[_file_number + 1] + _row as position
from release_{number}.pages join followed using (page_id) where release = {number}
"""


class Lost(Row):
    """A text to search for in a release, because the page that contained the evidence has lost it."""

    part: Int32
    chunk: Int32
    ordinal: int
    output: Int32
    evidence: Int32
    base: Int32  # number of the last earlier release whose page contained the evidence
    release: Int32
    page_id: int | None  # id of the page that no longer contains the evidence
    text_hash: str
    is_piece: bool  # true if the text is only a part of the element that contained the evidence
    is_short: bool  # true if the text is so short that other pages may contain it by chance


class Followed(Row):
    """A page of a release that is searched for evidence moved to it."""

    part: Int32
    chunk: Int32
    ordinal: int
    output: Int32
    evidence: Int32
    release: Int32
    page_id: int
    title: str
    position: int


class Located(Alignment):
    """A search result in a release."""

    has_other_details: bool = False
    """True if the most similar text differs from the evidence in numbers, dates or names."""


class Snapshot(NamedTuple):
    """A release and the file with the facts about its pages."""

    kb: str  # folder of the release
    date: str  # date of the release's dump, yyyymmdd
    facts: str  # file with the facts about its pages


def measure_age(options: AgeOptions, *, flags: Sequence[str], progress: Progress) -> MadeRelease[ListingManifest]:
    """Measures how fast a benchmark ages.

    Raises:
        DataError: too many records cannot be used, or the counts violate an invariant.
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
    parts = [
        DatasetOptions(dataset=_KIND, inputs=(path,), references=old, max_rejects=options.max_rejects)
        for path in options.inputs
    ]
    for part in parts:
        check_files(part)
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
        dates = [snapshot.date for snapshot in snapshots]
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
    """Returns folders of releases with their manifests, the oldest first.

    Raises:
        SetupError: they belong to different wikis, one has no date, or two have the same date.
    """
    found = []
    for path in map(absolute, releases):
        manifest = PAGES_RELEASE.read(path)
        check_sizes(path, manifest.tables["pages"])
        try:
            as_date(manifest.dump.date or "")
        except ValueError:
            raise SetupError(
                f"the manifest of {path} has no date for its dump. Build the release from a dump whose file name "
                f"contains the date, as Wikimedia's do."
            ) from None
        found.append((path, manifest))
    found.sort(key=lambda release: str(release[1].dump.date))
    for (before, first), (path, second) in pairwise(found):
        if first.site.dbname != second.site.dbname:
            wikis = f"{before} is a release of {first.site.dbname}, {path} of {second.site.dbname}"
            raise SetupError(f"{wikis}; name releases of the same wiki.")
        if first.dump.date == second.dump.date:
            raise SetupError(
                f"{before} and {path} have the same date, {first.dump.date}; name releases with different dates."
            )
    return found


def dataset_name(path: str) -> str:
    """Returns the name of the dataset in a file.

    >>> dataset_name("gs://bucket/fever-dev-kilt.jsonl.gz")
    'fever-dev'
    """
    return base_name(path).partition(".")[0].removesuffix(_ENDING)


def _snapshot(kb: str, manifest: PagesManifest, staging: str, progress: Progress) -> Snapshot:
    """Returns a release with the facts about its pages, which are written if they do not exist yet."""
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
    """Returns the memory-mapped facts about the pages of a release."""
    file = Folder.of(facts)
    local = join(local_copy(file.parent, [file.name]), file.name)
    return pa.ipc.open_file(pa.memory_map(local)).read_all()


@wired
def look_in_all(
    pipeline: Any,
    parts: Sequence[DatasetOptions],
    snapshots: Sequence[Snapshot],
    options: AgeOptions,
    staging: str,
) -> Any:
    """Searches for the evidence of datasets in every release. Applied to a pipeline.

    Outputs:
        ``fates``: (key, ``BatchRef``) of rows of ``Fate``.
        ``rejected``: as in ``ReadEvidence``.

    Args:
        parts: the datasets.
        snapshots: the releases, ordered by date.
        staging: folder for intermediate files. Use another folder for each job and input.
    """
    read = pipeline | ReadEvidence(parts, staging)
    _ = read[FAULTS] | "fail" >> do(_fail)
    resolved = {
        number: read[EVIDENCE]
        | f"resolve {number}" >> ResolvePages(snapshot.kb, folder=join(staging, f"resolved-{number}"))
        | f"by chunk {number}" >> beam.MapTuple(_keyed)
        for number, snapshot in enumerate(snapshots)
    }
    wanted = (
        resolved
        | "all releases" >> beam.CoGroupByKey()
        | "wanted" >> do(_rows_to_search, snapshots=snapshots, folder=join(staging, "wanted"))
    )
    found = (wanted | "spread" >> beam.Reshuffle() | "search" >> _search_step(snapshots, options, staging, "found"))[
        CHUNKS
    ] | "found" >> beam.MapTuple(partial(_by_chunk, n_releases=len(snapshots)))
    joined = {"found": found, **{f"resolved {number}": rows for number, rows in resolved.items()}}
    lost = (
        joined
        | "own pages" >> beam.CoGroupByKey()
        | "lost" >> do(_lost, snapshots=snapshots, threshold=options.threshold, folder=join(staging, "lost"))
    )
    followed = beam.pvalue.AsSingleton(
        lost | "follow" >> CollectSorted(partial(_follow, snapshots=snapshots, folder=join(staging, "followed")))
    )
    joined["elsewhere"] = (
        resolved
        | "with others" >> beam.CoGroupByKey()
        | "other pages" >> do(_elsewhere, followed, n_releases=len(snapshots), folder=join(staging, "elsewhere"))
        | "spread others" >> beam.Reshuffle()
        | "search others" >> _search_step(snapshots, options, staging, "found-elsewhere")
    )[CHUNKS] | "found elsewhere" >> beam.MapTuple(partial(_by_chunk, n_releases=len(snapshots)))
    joined["examples"] = read[EXAMPLES] | "by chunk" >> beam.MapTuple(_keyed)
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


def _search_step(snapshots: Sequence[Snapshot], options: AgeOptions, staging: str, name: str) -> GuardedMap:
    return GuardedMap(
        partial(Searches, tuple(ReleasePages.open(snapshot.kb) for snapshot in snapshots), options.threshold),
        folder=join(staging, name),
        timeout_s=options.evidence_timeout_s,
        memory_bytes=options.worker_memory_bytes,
        beats=join(staging, _BEATS),
    )


def _fail(element: tuple[int, Mapping[str, str]]) -> Iterable[Any]:
    raise told_fault(element[1])


def _keyed(key: ChunkKey, stored: BatchRef) -> tuple[int, BatchRef]:
    return key[0] << 32 | key[1], stored


_Known = dict[tuple[int, int, int], list[Alignment]]


def _by_evidence(stored: Sequence[BatchRef]) -> _Known:
    """Returns the rows of a chunk in each release, by record, output and evidence."""
    known: _Known = {}
    for rows in stored:
        for row in read_rows(rows, Alignment):
            known.setdefault((row.ordinal, *row.key), []).append(row)
    return dict(sorted(known.items()))


def _facts(rows: Sequence[Alignment], snapshots: Sequence[Snapshot]) -> list[KnownPage | None]:
    """Returns the facts about a row's page in each release; None if there is no page."""
    return [
        None
        if row.position < 0
        else KnownPage(*(column[row.position].as_py() for column in _pages(snapshot.facts).columns))
        for row, snapshot in zip(rows, snapshots, strict=True)
    ]


def _rows_to_search(
    element: tuple[int, dict[int, Iterable[BatchRef]]], *, snapshots: Sequence[Snapshot], folder: str
) -> Iterator[Any]:
    """Selects the rows that must be searched for in each release.

    (chunk, its rows in each release) -> (key, rows to search for in a release), for each release.

    The first number of the key is the dataset's number times the number of releases, plus the release's number.
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
    """The search of all releases; the key of a chunk selects the release."""

    schema = schema_of(Located)

    def __init__(self, releases: Sequence[ReleasePages], threshold: float) -> None:
        self._releases, self._threshold = releases, threshold
        self._searches = dict[int, tuple[Search, _Details]]()

    def __call__(self, rows: Iterator[tuple[int, pa.RecordBatch]], work: Work) -> Iterator[pa.RecordBatch]:
        number = work.key.part % len(self._releases)
        if number not in self._searches:
            pages = self._releases[number]
            self._searches[number] = Search(pages, SearchSettings(), {}), _Details(pages, self._threshold)
        search, details = self._searches[number]
        for batch in search(rows, work):
            rows_found = rows_of(batch, Alignment)
            located = [Located(**_values(row), has_other_details=details.differ(row)) for row in rows_found]
            yield batch_of(located, Located)


def _values(row: Alignment) -> dict[str, Any]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


class _Details:
    """Checks whether the texts found in a release have other numbers, dates or names than the evidence."""

    def __init__(self, pages: ReleasePages, threshold: float) -> None:
        self._texts, self._lang, self._threshold = PageTexts(pages), pages.lang, threshold
        self._tokeniser = Tokeniser(pages.lang)
        self._words = lru_cache(1)(self._words_of)  # the rows of a page are consecutive

    def differ(self, row: Alignment) -> bool:
        is_near = with_outcome(row, self._threshold).outcome in ("exact", "near")
        if not is_near or row.span is None or row.span.match == "exact":
            return False
        words = self._words(row.position)
        return has_other_details(row.evidence_text or "", row.text or "", words, self._tokeniser, self._lang)

    def _words_of(self, position: int) -> PageWords:
        page = self._texts.page(position)
        body = (element.text for element in page.elements if element.kind not in ("title", "heading"))
        return PageWords.of(page.title, body, self._tokeniser)


_Key = tuple[int, int, int]
_Given = Mapping[str, Iterable[Any]]


def _results(
    given: _Given, snapshots: Sequence[Snapshot], threshold: float
) -> Iterator[tuple[_Key, list[Alignment], list[KnownPage | None], list[EvidenceResult]]]:
    """Joins, for each record, output and evidence, the resolved rows, the pages and the outcomes, in the order of the
    releases."""
    found = {
        number: {(row.ordinal, *row.key): row for row in read_rows(BatchRef(*stored), Located)}
        for number, stored in given["found"]
    }
    resolved = [BatchRef(*next(iter(given[f"resolved {number}"]))) for number in range(len(snapshots))]
    for place, own in _by_evidence(resolved).items():
        pages = _facts(own, snapshots)
        yield (
            place,
            own,
            pages,
            [
                EvidenceResult(locate_nowhere(row))
                if page is None
                else _result_of(row, found[first_with(pages, number)].get(place), place, threshold)
                for number, (row, page) in enumerate(zip(own, pages, strict=True))
            ],
        )


def _result_of(row: Alignment, found: Located | None, place: _Key, threshold: float) -> EvidenceResult:
    """Returns the result for a piece of evidence in the first release with the same version of its page."""
    if found is None:
        raise DataError(f"evidence {place} has no outcome. This is a bug; please report it.")
    own = replace(found, page_id=row.page_id, title=row.title, found_by=row.found_by, hops=row.hops)
    return EvidenceResult(with_outcome(own, threshold), found.has_other_details)


def _lost(
    element: tuple[int, _Given], *, snapshots: Sequence[Snapshot], threshold: float, folder: str
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Finds the evidence that its page has lost.

    (chunk, its resolved and found rows) -> (key, rows of ``Lost``).
    """
    chunk, given = element
    key = ChunkKey(chunk >> 32, chunk & 0xFFFFFFFF)
    texts = [PageTexts(ReleasePages.open(snapshot.kb)) for snapshot in snapshots]

    @lru_cache(64)
    def elements(release: int, position: int) -> list[str]:
        return [element.text for element in texts[release].page(position).elements]

    rows: list[Lost] = []
    for place, own, _, outcomes in _results(given, snapshots, threshold):
        base: int | None = None
        for number, outcome in enumerate(outcomes):
            if outcome.fate in ("exact", "near") and outcome.aligned.span is not None:
                base = number
            elif outcome.fate in LOST and base is not None:
                span, position = outcomes[base].aligned.span, own[number].position
                assert span is not None
                old = elements(base, own[base].position)
                new = elements(number, position) if position >= 0 else None
                for is_piece, text in enumerate(_lost_texts(old, new, span.start_element, span.start_char)):
                    text_hash = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
                    is_short = len(text) < LONG_CHARS
                    page_id = own[number].page_id
                    rows.append(Lost(*key, *place, base, number, page_id, text_hash, bool(is_piece), is_short))
    for pages in texts:
        pages.close()
    yield key, keep_batch(key, batch_of(rows, Lost), folder)


def _lost_texts(old: Sequence[str], new: Sequence[str] | None, element: int, start: int) -> Iterator[str]:
    """Returns the texts to search for elsewhere: the whole element of a page, and the part of it that the page lost.
    Texts of fewer than 20 characters are skipped.

    Args:
        old, new: texts of the page when it contained the element, and later; None if there is no page.
    """
    texts = [old[element]]
    for piece in match_elements(old, new).segments if new is not None and element else ():
        if piece.old_element == element and piece.new_element is None and piece.old_start <= start < piece.old_end:
            texts.append(old[element][piece.old_start : piece.old_end].strip())
    return (text for text in dict.fromkeys(texts) if element and len(text) >= _LEAST_CHARS)


def _follow(
    lost: Sequence[tuple[ChunkKey, BatchRef]], *, snapshots: Sequence[Snapshot], folder: str
) -> Iterator[BatchRef]:
    """Finds the pages to which lost evidence may have moved, ordered by chunk, ordinal, output, evidence and release.

    Rows of ``Lost`` -> rows of ``Followed``.
    """
    batches = [batch for _, stored in lost for batch in read_batches(BatchRef(*stored))]
    rows: list[Any] = []
    if any(batch.num_rows for batch in batches):
        with connected(reads=[snapshot.kb for snapshot in snapshots]) as db:
            insert(db, "lost", batches, schema_of(Lost))
            db.execute("create table places (release integer, text_hash varchar, page_id bigint, title varchar)")
            for number, snapshot in enumerate(snapshots):
                add_release(db, PAGES_RELEASE, snapshot.kb, schema=f"release_{number}", places=True)
                db.execute(_PLACES.format(number=number, least=_LEAST_CHARS))
            db.execute(_FOLLOWED)
            for number, snapshot in enumerate(snapshots):
                starts = ReleasePages.open(snapshot.kb).starts()
                rows += db.execute(_STARTS.format(number=number, starts=starts)).fetchall()
    followed = [Followed(*row) for row in sorted(rows)]
    yield keep_batch(ChunkKey(0, 0), batch_of(followed, Followed), folder)


def _elsewhere(
    element: tuple[int, Mapping[int, Iterable[BatchRef]]], followed: BatchRef, *, n_releases: int, folder: str
) -> Iterator[Any]:
    """Selects the rows that must be searched for in other pages, as ``_rows_to_search`` does for their own pages.

    (chunk, its rows in each release) -> (key, rows to search for).
    """
    chunk, given = element
    key = ChunkKey(chunk >> 32, chunk & 0xFFFFFFFF)
    known = _by_evidence([BatchRef(*next(iter(given[number]))) for number in range(n_releases)])
    others: list[list[Alignment]] = [[] for _ in range(n_releases)]
    for to in read_rows(BatchRef(*followed), Followed):
        if (to.part, to.chunk) == key:
            row = known[to.ordinal, to.output, to.evidence][to.release]
            others[to.release].append(replace(row, position=to.position, page_id=to.page_id, title=to.title, hops=0))
    for number, rows in enumerate(others):
        in_order = sorted(rows, key=lambda row: row.position)
        of_release = ChunkKey(key.part * n_releases + number, key.chunk)
        yield of_release, keep_batch(of_release, batch_of(in_order, Alignment), folder)


def _fates(
    element: tuple[int, _Given],
    *,
    snapshots: Sequence[Snapshot],
    names: Sequence[str],
    threshold: float,
    folder: str,
) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Determines the fate of each piece of evidence in each release.

    (chunk, its records, its resolved and found rows) -> (key, rows of ``Fate``).
    """
    chunk, given = element
    key = ChunkKey(chunk >> 32, chunk & 0xFFFFFFFF)
    elsewhere: dict[_Key, dict[int, EvidenceResult]] = {}
    for number, stored in given["elsewhere"]:
        for row in read_rows(BatchRef(*stored), Located):
            found = EvidenceResult(with_outcome(row, threshold), row.has_other_details)
            elsewhere.setdefault((row.ordinal, *row.key), {})[number] = found
    records = (row for stored in given["examples"] for row in read_rows(BatchRef(*stored), ReadRecord))
    questions = {row.ordinal: input_from_json(row.example) for row in records if row.example is not None}
    dates = [snapshot.date for snapshot in snapshots]
    rows: list[Fate] = []
    for place, _, pages, outcomes in _results(given, snapshots, threshold):
        question, moved = questions.get(place[0]), elsewhere.get(place)
        rows += fates_of(names[key.part], outcomes, pages, dates, question=question, elsewhere=moved)
    yield key, keep_batch(key, batch_of(rows, Fate), folder)


def _commit(
    chunks: list[tuple[ChunkKey, BatchRef]],
    rejected: list[tuple[ChunkKey, BatchRef]],
    *,
    output: str,
    dates: Sequence[str],
    facts: Mapping[str, Any],
) -> Iterator[str]:
    """Writes the tables, the report and finally the manifest."""
    batches = (batch for _, stored in chunks for batch in read_batches(BatchRef(*stored)))
    bad = [row for _, stored in rejected for row in read_rows(BatchRef(*stored), BadRecord)]
    commit_age(batches, bad, output=output, dates=dates, facts=facts)
    yield output
