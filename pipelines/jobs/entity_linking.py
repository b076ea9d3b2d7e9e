"""Entity-linking data: one pipeline samples the links of a release as records and counts them in an alias table.

Pages are read twice, range by range. The first pass hashes the record of every link and counts the meanings of its
mention. Hashes are sorted, which groups equal records, and the smallest hashes are chosen; counts are sorted by
mention. The second pass extracts only the chosen links and numbers them in the order of the release. The only text that
is shuffled is mentions.
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
from kbsource.release.writer import LinesFile, write_batches, write_rejected
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_stored
from kbsource.runtime.regroup import ByNumber
from mapping.entity_linking.aliases import alias_rows, mention_groups, prefixes
from mapping.entity_linking.kind import ENTITY_LINKING
from mapping.entity_linking.links import (
    COLUMNS,
    N_BUCKETS,
    Exclusion,
    Sampling,
    Targets,
    chosen_lines,
    distinct_keys,
    draw,
    hash_groups,
    read_exclusion,
    rows_of_split,
    scan_links,
)
from mapping.entity_linking.records import (
    ALIASES,
    CHOSEN,
    KEY_ORDER,
    KEYS,
    LINES,
    LINKS,
    MENTION_ORDER,
    PLACE,
    SKIPPED,
    SPLITS,
    lines_path,
)
from mapping.passages.corpus import checked_pages
from pipelines.jobs.shared_inputs import MadeRelease, pages_input
from pipelines.options import EntityLinkingOptions
from pipelines.primitives.group_map import COUNTS, By, GroupWork, Piece, map_groups, send_rows
from pipelines.primitives.page_texts import PagesPlan, ReleasePages
from pipelines.primitives.shuffle import CollectSorted
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import WorkerDoFn, do, wired
from pipelines.transforms.tables import WriteTable, by_name

RANGE_BYTES = 4 << 20
"""Minimum bytes of ``COLUMNS`` that are read together."""
GROUP_BYTES, MOST_GROUPS = 16 << 20, 256
"""Approximate bytes of page files per group of the shuffle."""
_SAMPLED = 64


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

    files: tuple[FileEntry, ...]  # of the pages
    sampling: Sampling  # decides which links become records
    excluded: tuple[int, ...]  # ids of pages whose links are not used

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
    """Yields the numbers of the ranges of a file of pages, after checking that the file has not changed."""
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


def mention_bounds(plan: LinkingPlan) -> tuple[int, ...]:
    """Returns the prefixes at which groups of mentions start. A sample of row groups is used to make the groups about
    equal.

    The prefixes determine how evenly the work is spread and which file contains a row of the table.
    """
    if plan.n_groups == 1:
        return ()
    column, found = "anchors.list.element.text", []
    for number in np.unique(np.linspace(0, len(plan.files) - 1, _SAMPLED, dtype=np.int64)).tolist():
        path = plan.path(number)
        with Folder.of(path).open_ranges() as raw, parquet_file(raw) as file:
            n_groups = file.metadata.num_row_groups
            for group in np.unique(np.linspace(0, n_groups - 1, max(1, _SAMPLED // len(plan.files)), dtype=np.int64)):
                if n_groups:
                    anchors = file.read_row_group(int(group), columns=[column], use_threads=False)["anchors"]
                    texts = anchors.combine_chunks().flatten().field("text").to_pylist()
                    found.append(prefixes(" ".join(text.split()) for text in texts)[:, 0])
    ordered = np.unique(np.concatenate([np.empty(0, np.int64), *found]))
    cuts = np.arange(1, plan.n_groups) * len(ordered) // plan.n_groups
    return tuple(np.unique(ordered[cuts]).tolist()) if len(ordered) else ()


OF_MENTIONS, OF_KEYS = "mentions", "keys"
_DUPLICATES = "duplicates"
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
    """Number of a range -> (key, KEYS) and, by name, (key, MENTIONS) and (key, counts) of its links."""

    def __init__(self, plan: LinkingPlan) -> None:
        super().__init__()
        self._plan, self._excluded = plan, np.array(plan.excluded, np.int64)
        self._targets: Targets | None = None

    def process(self, place: int, targets: str) -> Iterator[Any]:
        plan, range_ = self._plan, Range.at(place)
        key = ChunkKey(range_.file, range_.first)
        with named_faults():
            if self._targets is None:
                folder = local_copy(Folder.of(targets), [_TARGETS], version=plan.pages.sha256)
                self._targets = Targets(np.load(os.path.join(folder, _TARGETS), mmap_mode="r"))
            scanned = scan_links(
                plan.read(range_), place, sampling=plan.sampling, targets=self._targets, excluded=self._excluded
            )
        yield key, scanned.keys
        yield beam.pvalue.TaggedOutput(OF_MENTIONS, (key, scanned.mentions))
        yield beam.pvalue.TaggedOutput(COUNTS, (key, dict(scanned.counts)))


def find_distinct(work: GroupWork) -> None:
    """Keeps the first of equal keys. Counts the duplicates, and the keys kept in each bucket."""
    of_buckets = np.zeros(N_BUCKETS, np.int64)
    for batch in distinct_keys(_count_keys(work)):
        work.counts[_DUPLICATES] -= batch.num_rows
        of_buckets += np.bincount(batch["bucket"].to_numpy(), minlength=N_BUCKETS)
        work.write("distinct", batch)
    work.counts.update({str(bucket): int(of_buckets[bucket]) for bucket in np.flatnonzero(of_buckets).tolist()})


def _count_keys(work: GroupWork) -> Iterator[pa.RecordBatch]:
    for batch in work.rows(OF_KEYS):
        work.counts[_DUPLICATES] += batch.num_rows
        yield batch


def draw_keys(counted: Sequence[tuple[ChunkKey, Mapping[str, int]]], *, sampling: Sampling) -> Iterator[dict[str, Any]]:
    """Yields the draw based on the counts of ``find_distinct``, the shares by group, and the number of duplicates."""
    of_groups = np.zeros((len(counted), N_BUCKETS), np.int64)
    for row, (_, counts) in enumerate(counted):
        for name, n_keys in counts.items():
            if name != _DUPLICATES:
                of_groups[row, int(name)] = n_keys
    drawn = draw(list(of_groups), sampling)
    groups = {key[1]: own for (key, _), own in zip(counted, drawn.groups, strict=True)}
    n_duplicates = sum(counts[_DUPLICATES] for _, counts in counted)
    yield {**drawn._asdict(), "groups": groups, _DUPLICATES: n_duplicates}


def choose(work: GroupWork, drawn: Mapping[str, Any]) -> None:
    """Writes the links whose keys are drawn, by split."""
    left = dict(drawn["groups"][work.group])
    for batch in work.rows("distinct"):
        for split in SPLITS:
            rows = rows_of_split(batch, split, drawn["n_dev_buckets"]).slice(0, left[split])
            left[split] -= rows.num_rows
            work.write(split, rows.select(PLACE).cast(CHOSEN))


def sized(place: int, chosen: Piece) -> tuple[int, tuple[str, int]]:
    """Returns how many links of a split were chosen in a range."""
    split, _, stored = chosen
    return place, (split, BatchRef(*stored).n_rows)


def first_numbers(sizes: Sequence[tuple[int, tuple[str, int]]]) -> Iterator[dict[int, dict[str, int]]]:
    """Yields the number of the first record of each split in each range; sizes must be in order.

    >>> next(first_numbers([(3, ("train", 2)), (7, ("dev", 1)), (7, ("train", 4)), (9, ("train", 1))]))[9]
    {'train': 6, 'dev': 1}
    """
    total = dict.fromkeys(SPLITS, 0)
    found: dict[int, dict[str, int]] = {}
    for place, (split, n_records) in sizes:
        found.setdefault(place, dict(total))
        total[split] += n_records
    yield found


def cut_lines(work: GroupWork, starts: Mapping[int, Mapping[str, int]], *, plan: LinkingPlan) -> None:
    """Writes the records of the chosen links of a range."""
    chosen = {split: np.sort(work.table(split, CHOSEN)["link"].to_numpy()) for split in SPLITS}
    pages = plan.read(Range.at(work.group))
    work.write("lines", chosen_lines(pages, chosen, starts[work.group], plan.sampling.context))


def count_aliases(work: GroupWork) -> None:
    """Writes the part of the alias table for a range of mentions."""
    for batch in rebatched(alias_rows(work.rows(OF_MENTIONS)), ALIAS_GROUP_ROWS):
        work.write("aliases", batch)


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
_Counts = Sequence[tuple[ChunkKey, Mapping[str, int]]]


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
            n_groups=min(MOST_GROUPS, 1 + sum(entry.bytes for entry in files) // GROUP_BYTES),
            output=output,
            staging=out.staging,
        )
        _ = pipeline | "entity linking" >> link_entities(plan, facts, exclusion)
        read, n_pages = join(plan.folder("distinct"), "given", OF_KEYS), [entry.rows or 0 for entry in plan.files]
        with progress.stage("links", chunks_done(out.staging, read, n_pages, unit="pages")):
            steps = run_pipeline(pipeline, "entity-linking")
    return MadeRelease(options.output, ENTITY_LINKING.read(output), time.monotonic() - started, steps)


@wired
def link_entities(pipeline: Any, plan: LinkingPlan, facts: Mapping[str, Any], exclusion: Exclusion) -> Any:
    """The pages of a release -> the folder of the data, once it is complete. Applied to a pipeline."""
    folder = plan.folder
    targets = pipeline | "begin" >> beam.Impulse() | "targets" >> do(write_targets, plan=plan)
    scanned = (
        pipeline
        | "files" >> beam.Create(list(range(len(plan.files))), reshuffle=False)
        | "spread files" >> beam.Reshuffle()
        | "ranges" >> do(cut_ranges, plan=plan)
        | "spread ranges" >> beam.Reshuffle()
        | "scan" >> beam.ParDo(ScanLinks(plan), Given(targets)).with_outputs(OF_MENTIONS, COUNTS, main=OF_KEYS)
    )
    by_hash = partial(hash_groups, n_groups=plan.n_groups)
    distinct = {OF_KEYS: scanned[OF_KEYS]} | "distinct" >> map_groups(
        find_distinct, folder("distinct"), outputs={"distinct": KEYS}, by={OF_KEYS: By(by_hash, KEY_ORDER)}
    )
    drawn = distinct[COUNTS] | "draw" >> CollectSorted(partial(draw_keys, sampling=plan.sampling))
    chosen = {"distinct": distinct["distinct"]} | "choose" >> map_groups(
        choose, folder("chosen"), outputs=dict.fromkeys(SPLITS, CHOSEN), given=(Given(drawn),)
    )
    of_splits = {split: chosen[split] for split in SPLITS}
    by_place, sent = send_rows(of_splits, folder("places"), dict.fromkeys(SPLITS, By(ByNumber("place"))))
    sizes = tuple(by_place.values()) | "of splits" >> beam.Flatten()
    starts = sizes | "sizes" >> beam.MapTuple(sized) | "starts" >> CollectSorted(first_numbers)
    cut = by_place | "cut" >> map_groups(
        partial(cut_lines, plan=plan),
        folder("cut"),
        outputs={"lines": LINES},
        by=sent,
        given=(Given(starts),),
    )
    lines = Given(cut["lines"] | "lines" >> CollectSorted())
    written = (
        pipeline
        | "records" >> beam.Create([*SPLITS, "links"], reshuffle=False)
        | "spread records" >> beam.Reshuffle()
        | "write records" >> do(write_records, lines, plan=plan)
    )
    by_mention = partial(mention_groups, bounds=mention_bounds(plan))
    counted = {OF_MENTIONS: scanned[OF_MENTIONS]} | "count" >> map_groups(
        count_aliases,
        folder("aliases"),
        outputs={"aliases": ALIASES},
        by={OF_MENTIONS: By(by_mention, MENTION_ORDER)},
    )
    aliases = (
        counted["aliases"]
        | "parts" >> beam.MapTuple(_as_part)
        | "aliases" >> WriteTable("aliases", plan.output, kind=ENTITY_LINKING)
    )
    entries = (written, aliases) | "files of all" >> beam.Flatten() | beam.Map(by_name) | "written" >> CollectSorted()
    given = map(Given, (scanned[COUNTS] | "counts of links" >> CollectSorted(), drawn))
    return entries | "commit" >> do(_commit, *given, output=plan.output, facts=facts, exclusion=exclusion)


def _as_part(key: ChunkKey, stored: BatchRef) -> tuple[ChunkKey, BatchRef]:
    """Makes the output of a group a separate part, and so a separate file."""
    return ChunkKey(key[1], 0), stored


def _commit(
    entries: Sequence[tuple[str, FileEntry]],
    scanned: _Counts,
    drawn: Mapping[str, Any],
    *,
    output: str,
    facts: Mapping[str, Any],
    exclusion: Exclusion,
) -> Iterator[str]:
    """Entries of all files, and counts -> the folder of the data. Writes the rejected records and finally the
    manifest."""
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
