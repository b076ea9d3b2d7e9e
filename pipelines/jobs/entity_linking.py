"""Entity-linking data: one pipeline samples the links of a release as records and counts them in an alias table.

Pages are read twice, range by range. The first pass hashes the record of every link and counts the meanings of its
mention. One worker joins the hashes with SQL: it keeps the first of equal records, draws the records with the smallest
hashes, and numbers them in the order of the release. Another worker sums the counts by mention. The second pass
extracts only the drawn links.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import rebatched
from kbsource.errors import named_faults
from kbsource.files import Folder, join
from kbsource.local_copies import local_copy
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import shard_path
from kbsource.release.manifest import FileEntry, ListingManifest, code_facts, input_files
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.reader import parquet_file, row_groups
from kbsource.release.sql import with_counts
from kbsource.release.writer import (
    ROWS_PER_FILE,
    LinesFile,
    RollingFiles,
    name_files,
    write_batches,
    write_rejected,
)
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    once_json,
    read_chunk_report,
    read_stored,
    write_chunk,
)
from kbsource.runtime.database import ordered_batches
from kbsource.runtime.regroup import one_run_each
from kbsource.runtime.warehouse import StoredTable, warehouse
from mapping.entity_linking.aliases import ALIAS_ROWS
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.links import (
    CHOSEN_LINKS,
    COLUMNS,
    DISTINCT_KEYS,
    KEYS_OF_BUCKETS,
    Exclusion,
    Sampling,
    ScannedLinks,
    Targets,
    chosen_lines,
    dev_buckets,
    read_exclusion,
    scan_links,
)
from mapping.entity_linking.records import (
    ALIASES,
    CHOSEN,
    KEYS,
    LINES,
    LINKS,
    MENTIONS,
    SKIPPED,
    SPLITS,
    lines_path,
)
from mapping.passages.corpus import checked_pages
from pipelines.jobs.shared_inputs import MadeRelease, pages_input
from pipelines.options.entity_linking import EntityLinkingOptions
from pipelines.primitives.page_texts import PagesPlan, ReleasePages
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Progress, chunks_done
from pipelines.runners.counters import count
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn, do, wired
from pipelines.transforms.tables import by_name

RANGE_BYTES = 4 << 20
"""Minimum bytes of ``COLUMNS`` that are read together."""


class Range(NamedTuple):
    """Row groups of a file of pages that are read together. Their numbers follow the order of the release."""

    file: int
    first: int
    n_groups: int

    @property
    def place(self) -> int:
        """Returns the range as a number."""
        return self.file << 40 | self.first << 16 | self.n_groups

    @classmethod
    def at(cls, place: int) -> Range:
        """Returns the range for a number."""
        return cls(place >> 40, place >> 16 & 0xFFFFFF, place & 0xFFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkingPlan(PagesPlan):
    """Settings shared by all steps."""

    files: tuple[FileEntry, ...]  # files of the table of pages
    sampling: Sampling  # decides which links become records
    excluded: tuple[int, ...]  # ids of pages whose links are not used
    memory_mb: int  # memory limit of joins, in MB

    def path(self, file: int) -> str:
        """Returns the path of a file of pages."""
        return join(self.pages.folder, self.files[file].file)

    def read(self, range_: Range) -> pa.RecordBatch:
        """Returns ``COLUMNS`` of the pages in a range."""
        path = self.path(range_.file)
        with Folder.of(path).open_ranges() as raw, parquet_file(raw, pre_buffer=True) as file:
            groups = range(range_.first, range_.first + range_.n_groups)
            table = file.read_row_groups(groups, columns=list(COLUMNS), use_threads=False)
        return table.combine_chunks().to_batches()[0]


def cut_ranges(file: int, *, plan: LinkingPlan) -> Iterator[int]:
    """Checks that a file of pages has not changed, and iterates over the numbers of its ranges."""
    with checked_pages(plan.pages.folder, plan.files[file]).open() as raw:
        metadata = pq.read_metadata(raw)
    first = n_bytes = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = map(group.column, range(group.num_columns))
        n_bytes += sum(column.total_uncompressed_size for column in columns if column.path_in_schema in COLUMNS)
        if n_bytes >= RANGE_BYTES or number == metadata.num_row_groups - 1:
            yield Range(file, first, number + 1 - first).place
            first, n_bytes = number + 1, 0


OF_MENTIONS, OF_KEYS, COUNTS, DRAWN, CHOSEN_RANGES = "mentions", "keys", "counts", "drawn", "chosen"
_Chunks = Sequence[tuple[ChunkKey, BatchRef]]
_Counts = Sequence[tuple[ChunkKey, Mapping[str, int]]]
ALIAS_GROUP_ROWS = 4096
"""Rows per row group of aliases, the least that a look-up reads."""
_LINK_GROUP_ROWS = 1 << 16
_TARGETS = "targets.npy"


def write_targets(_: bytes, *, plan: LinkingPlan) -> Iterator[str]:
    """Writes the ids of the pages that links may point to, for ``Targets``, and returns the folder."""
    codes = [
        Targets.code(table["page_id"].to_numpy(), table["is_disambiguation"].to_numpy())
        for path in map(plan.path, range(len(plan.files)))
        for table in row_groups(path, ("page_id", "is_disambiguation"))
    ]
    with Folder.of(join(plan.folder("targets"), _TARGETS)).create() as file:
        np.save(file, np.sort(np.concatenate([np.empty(0, np.int64), *codes])), allow_pickle=False)
    yield plan.folder("targets")


class ScanLinks(WorkerDoFn):
    """Reads the links in a range of pages: a hash of each record, and the counts of each mention.

    Number of a range -> (key, ``BatchRef`` of KEYS). Named outputs have (key, ``BatchRef`` of MENTIONS) and (key,
    counts).
    """

    def __init__(self, plan: LinkingPlan) -> None:
        super().__init__()
        self._plan, self._excluded = plan, np.array(plan.excluded, np.int64)
        self._targets: Targets | None = None

    def process(self, place: int, targets: str) -> Iterator[Any]:
        range_ = Range.at(place)
        key = ChunkKey(range_.file, range_.first)
        mentions_path = chunk_path(self._plan.folder(OF_MENTIONS), key)

        def make(path: str) -> None:
            scanned = self._scan(place, targets)
            for batch, counts, own_path in (
                (scanned.mentions, Counter[str](), mentions_path),
                (scanned.keys, scanned.counts, path),  # last, because it shows that the range is done
            ):
                write_chunk([batch], batch.schema, Report(counts), path=own_path)

        with named_faults():
            keys = keep_chunk(self._plan.folder(OF_KEYS), key, make)
            mentions, _ = read_chunk_report(mentions_path)
            counts = read_chunk_report(keys.path)[1].counts
            count(counts)
        yield key, keys
        yield beam.pvalue.TaggedOutput(OF_MENTIONS, (key, mentions))
        yield beam.pvalue.TaggedOutput(COUNTS, (key, dict(counts)))

    def _scan(self, place: int, targets: str) -> ScannedLinks:
        plan = self._plan
        if self._targets is None:
            folder = local_copy(Folder.of(targets), [_TARGETS], version=plan.pages.sha256)
            self._targets = Targets(np.load(os.path.join(folder, _TARGETS), mmap_mode="r"))
        pages = plan.read(Range.at(place))
        return scan_links(pages, place, sampling=plan.sampling, targets=self._targets, excluded=self._excluded)


def draw_links(keys: _Chunks, *, plan: LinkingPlan) -> Iterator[Any]:
    """Draws the links that become records.

    All KEYS -> (number of a range, ``BatchRef`` of its CHOSEN). A named output has the counts of the draw.
    """

    def make(path: str) -> None:
        with warehouse({"keys": _stored(KEYS, keys)}, memory_mb=plan.memory_mb) as db:
            db.execute(DISTINCT_KEYS)
            of_buckets = dict(db.execute(KEYS_OF_BUCKETS).fetchall())
            n_dev_buckets, n_distinct = dev_buckets(of_buckets, plan.sampling), sum(of_buckets.values())
            n_dev = sum(n for bucket, n in of_buckets.items() if bucket < n_dev_buckets)
            counts = {
                "found": {"train": n_distinct - n_dev, "dev": n_dev},
                "duplicates": sum(BatchRef(*stored).n_rows for _, stored in keys) - n_distinct,
            }
            query = CHOSEN_LINKS.format(n_dev_buckets=n_dev_buckets, train=plan.sampling.train, dev=plan.sampling.dev)
            of_ranges = one_run_each(ordered_batches(db, query, CHOSEN), "place")
            write_chunk(of_ranges, CHOSEN, Report(facts=counts), path=path)

    chosen = keep_chunk(plan.folder("chosen"), ChunkKey(0, 0), make)
    drawn = read_chunk_report(chosen.path)[1].facts
    count({"duplicates": drawn["duplicates"]})
    yield beam.pvalue.TaggedOutput(DRAWN, drawn)
    for number, batch in enumerate(read_stored(chosen)):
        yield batch["place"][0].as_py(), BatchRef(chosen.path, number, 1, batch.num_rows, 0)


def _stored(schema: pa.Schema, chunks: _Chunks) -> StoredTable:
    return StoredTable(schema, [BatchRef(*stored) for _, stored in chunks])


def cut_lines(element: tuple[int, BatchRef], *, plan: LinkingPlan) -> Iterator[tuple[ChunkKey, BatchRef]]:
    """Makes the records of the drawn links of a range.

    (number of a range, ``BatchRef`` of its CHOSEN) -> (key, ``BatchRef`` of its LINES).
    """
    range_, (chosen,) = Range.at(element[0]), read_stored(BatchRef(*element[1]))
    key = ChunkKey(range_.file, range_.first)

    def make(path: str) -> None:
        write_chunk([chosen_lines(plan.read(range_), chosen, plan.sampling.context)], LINES, Report(), path=path)

    yield key, keep_chunk(plan.folder("lines"), key, make)


def write_aliases(mentions: _Chunks, *, plan: LinkingPlan) -> Iterator[FileEntry]:
    """Writes the alias table from all MENTIONS, and returns the entries of its files."""

    def make() -> list[dict[str, Any]]:
        with (
            warehouse({"mentions": _stored(MENTIONS, mentions)}, memory_mb=plan.memory_mb) as db,
            RollingFiles(
                plan.output, "aliases", schema=ALIASES, names="{:05d}.unnamed", rows_per_file=ROWS_PER_FILE
            ) as files,
        ):
            for batch in ordered_batches(db, ALIAS_ROWS, ALIASES, n_rows=ALIAS_GROUP_ROWS):
                files.write(batch)
        folder = plan.output
        return [
            asdict(entry)
            for entry in name_files(files.entries, "aliases", schema=ALIASES, folder=folder, output=folder)
        ]

    yield from (FileEntry(**entry) for entry in once_json(join(plan.folder("aliases"), "files.json"), make))


def write_records(name: str, lines: Sequence[tuple[ChunkKey, BatchRef]], *, plan: LinkingPlan) -> Iterator[FileEntry]:
    """Writes all LINES in order to the file of a split or table, and returns its entry."""
    chunks = [BatchRef(*stored) for _, stored in lines]
    if name in SPLITS:
        with LinesFile(plan.output, lines_path(name)) as file:
            for batch in _batches(chunks, ("is_dev", "line")):
                for line in batch.filter(pa.compute.equal(batch["is_dev"], name == "dev"))["line"].to_pylist():
                    file.write(line)
        yield file.entry
    else:
        rows = rebatched(_batches(chunks, LINKS.names), _LINK_GROUP_ROWS)
        yield write_batches(rows, name, LINKS, output=plan.output, file=shard_path(name, 0, 1))


def _batches(chunks: Iterable[BatchRef], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        yield from read_stored(chunk, columns)


Given = beam.pvalue.AsSingleton


def make_entity_linking(
    options: EntityLinkingOptions, *, flags: Sequence[str], progress: Progress
) -> MadeRelease[ListingManifest]:
    """Makes entity-linking data.

    Raises:
        DataError: a file of pages is damaged.
        SetupError: a file, an option or the output folder is wrong.
    """
    started = time.monotonic()
    pipeline = new_pipeline(flags)
    kb, output, release = pages_input(options.kb, options.output, flags=flags)
    exclusion, inputs = Exclusion(), []
    if options.exclude is not None:
        with KnowledgeSource.open(kb) as source:
            exclusion = read_exclusion(options.exclude, source)
        inputs = [asdict(input_file) for input_file in input_files([options.exclude])]
    facts = {"release": release.facts(), "options": options.data_options(), "inputs": {"exclude": inputs}}
    with ReleaseFolder(output, kind=ENTITY_LINKING, job=facts) as out:
        sampling = Sampling(options.train, options.dev, options.seed, options.context)
        files = release.tables["pages"]
        plan = LinkingPlan(
            pages=ReleasePages.of(kb, release),
            files=files,
            sampling=sampling,
            excluded=exclusion.page_ids,
            memory_mb=options.memory,
            output=output,
            staging=out.staging,
        )
        _ = pipeline | "entity linking" >> link_entities(plan, facts, exclusion)
        read, n_pages = plan.folder(OF_KEYS), [entry.rows or 0 for entry in plan.files]
        with progress.stage("links", chunks_done(out.staging, read, n_pages, unit="pages")):
            steps = run_pipeline(pipeline, "entity-linking")
    return MadeRelease(options.output, ENTITY_LINKING.read(output), time.monotonic() - started, steps)


@wired
def link_entities(pipeline: Any, plan: LinkingPlan, facts: Mapping[str, Any], exclusion: Exclusion) -> Any:
    """Reads the pages of a release and writes entity-linking data; the result has one element, the folder of the data,
    once it is complete."""
    targets = pipeline | "begin" >> beam.Impulse() | "targets" >> do(write_targets, plan=plan)
    scanned = (
        pipeline
        | "files" >> beam.Create(list(range(len(plan.files))), reshuffle=False)
        | "spread files" >> beam.Reshuffle()
        | "ranges" >> do(cut_ranges, plan=plan)
        | "spread ranges" >> beam.Reshuffle()
        | "scan" >> beam.ParDo(ScanLinks(plan), Given(targets)).with_outputs(OF_MENTIONS, COUNTS, main=OF_KEYS)
    )
    drawn = (
        scanned[OF_KEYS]
        | "keys" >> CollectSorted()
        | "draw" >> do(draw_links, plan=plan).with_outputs(DRAWN, main=CHOSEN_RANGES)
    )
    cut = drawn[CHOSEN_RANGES] | "spread chosen" >> beam.Reshuffle() | "cut" >> do(cut_lines, plan=plan)
    lines = Given(cut | "lines" >> CollectSorted())
    written = (
        pipeline
        | "records" >> beam.Create([*SPLITS, "links"], reshuffle=False)
        | "spread records" >> beam.Reshuffle()
        | "write records" >> do(write_records, lines, plan=plan)
    )
    aliases = scanned[OF_MENTIONS] | "aliases" >> CollectSorted(partial(write_aliases, plan=plan))
    entries = (written, aliases) | "files of all" >> beam.Flatten() | beam.Map(by_name) | "written" >> CollectSorted()
    given = map(Given, (scanned[COUNTS] | "counts of links" >> CollectSorted(), drawn[DRAWN]))
    return entries | "commit" >> do(_commit, *given, output=plan.output, facts=facts, exclusion=exclusion)


def _commit(
    entries: Sequence[tuple[str, FileEntry]],
    scanned: _Counts,
    drawn: Mapping[str, Any],
    *,
    output: str,
    facts: Mapping[str, Any],
    exclusion: Exclusion,
) -> Iterator[str]:
    """Writes the rejected records and finally the manifest.

    Entries of all files, and counts -> the folder of the data.
    """
    of_links = sum((Counter(counter) for _, counter in scanned), Counter[str]())
    counts = {
        **{name: of_links[name] for name in ("pages", "excluded_pages", "links")},
        "skipped": {name: of_links[name] for name in SKIPPED},
        "duplicates": drawn["duplicates"],
        "distinct": drawn["found"],
        "exclusion": {"lines": exclusion.n_lines, "unmatched": len(exclusion.rejected)},
    }
    files = [*(entry for _, entry in entries), write_rejected(exclusion.rejected, output=output)]
    facts = with_counts(ENTITY_LINKING, files, {**facts, "counts": counts, "code": code_facts()}, output)
    commit(ENTITY_LINKING, ENTITY_LINKING.listing(files, facts), output)
    yield output
