"""Aligns datasets to a release: reads them, resolves and searches their pages, and filters and writes their records.

::

    ReadEvidence -> evidence -> AlignSpans -> JoinOutcomes -> WriteAlignment, or Filter
                 -> examples ------------------^

Each piece of evidence is one row of ``mapping.records.Alignment`` throughout; each transform adds its results.
``ReadEvidence`` finds the pages in a release while it reads; ``ResolvePages`` does the same for other evidence, or for
several releases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

import apache_beam as beam
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.columns import batch_of
from kbsource.errors import SetupError, fault_values, named_faults
from kbsource.files import absolute, join
from kbsource.runtime.chunks import BatchRef, ChunkKey, read_batches, read_rows
from mapping.decide import Cuts, split_ends
from mapping.entail.signal import ModelOptions
from mapping.records import Alignment, PageKey
from mapping.search.page_search import SearchSettings
from pipelines.alignment.reading import ReadDataset, read_part
from pipelines.alignment.search import ORDER, FindPage, Search, page_finder, resolve_rows, search_chunks
from pipelines.alignment.settling import (
    AlignedChunk,
    AlignedRecord,
    filter_records,
    passing_records,
    read_pairs,
)
from pipelines.alignment.writing import DatasetPart, MergedChunk, commit_part, merge_chunk
from pipelines.options.map_dataset import DatasetOptions
from pipelines.primitives.guarded_map import CHUNKS, GuardedMap
from pipelines.primitives.page_texts import ReleasePages
from pipelines.primitives.shuffle import CollectSorted, Regroup, keep_batch
from pipelines.runners.counters import count
from pipelines.runners.workers import do
from pipelines.transforms.verify_entailment import Answers, Pairs, VerifyEntailment

EXAMPLES, EVIDENCE, REJECTED, DATASETS, FAULTS = "examples", "evidence", "rejected", "datasets", "faults"
TitleMap: TypeAlias = "str | Mapping[int, str | None] | None"


class ReadEvidence(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Reads datasets: their records, and a row for each piece of evidence in them. Applied to a pipeline.

    Outputs:
        ``examples``: (key, ``BatchRef``) of all records, rows of ``pipelines.alignment.reading.ReadRecord``. A key is
            (number of the dataset, number of the chunk). There is at least one key.
        ``evidence``: (key, ``BatchRef``), rows of ``Alignment``. With a release, each row has its page in it, as from
            ``ResolvePages``, and the rows of a file are in page order, but the files have numbers of their own. Without
            a release, the keys are those of the examples.
        ``rejected``: (key, ``BatchRef``) of unusable records, rows of ``BadRecord``.
        ``datasets``: (number of the dataset, ``ReadDataset``) for each dataset that was read completely.
        ``faults``: (number of the dataset, ``kbsource.errors.fault_values``) of a dataset that cannot be read
            completely or has too many bad records; such a dataset has no other outputs.

    The same files always produce the same chunks. A dataset that was already read into the folder is not read again, so
    reuse a folder only for the same job with the same input.

    Args:
        datasets: the options of each dataset.
        folder: for the rows that are read.
        release: folder of the release that has the pages; all workers must be able to read it under this path.
        title_map: file of known page moves, or the files by number of the dataset.

    Raises:
        SetupError: ``release`` contains no finished release.
    """

    def __init__(
        self,
        datasets: Sequence[DatasetOptions],
        folder: str,
        *,
        release: str | None = None,
        title_map: TitleMap = None,
    ) -> None:
        super().__init__()
        pages = None if release is None else ReleasePages.open(release)
        self._n_datasets = len(datasets)
        self._read = do(_read, datasets=tuple(datasets), folder=absolute(folder), pages=pages, title_map=title_map)

    def expand(self, begin: Any) -> Any:
        return (
            begin
            | "datasets" >> beam.Create(range(self._n_datasets), reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "read" >> self._read.with_outputs()
        )


def _read(
    part: int, *, datasets: Sequence[DatasetOptions], folder: str, pages: ReleasePages | None, title_map: TitleMap
) -> Iterator[Any]:
    find_page = None if pages is None else page_finder(pages, _moves_of(part, title_map))
    return _or_fault(part, _outputs(part, datasets[part], folder, find_page))


def _moves_of(part: int, title_map: TitleMap) -> str | None:
    return title_map.get(part) if isinstance(title_map, Mapping) else title_map


def _outputs(part: int, options: DatasetOptions, folder: str, find_page: FindPage | None) -> Iterator[Any]:
    read = read_part(options, part, folder, find_page=find_page)
    for name in (EXAMPLES, EVIDENCE, REJECTED):
        for number, stored in enumerate(getattr(read, name)):
            yield beam.pvalue.TaggedOutput(name, (ChunkKey(part, number), stored))
    yield beam.pvalue.TaggedOutput(DATASETS, (part, read))


def _or_fault(part: int, made: Iterator[Any]) -> Iterator[Any]:
    """Reads the outputs of a dataset, or reports its fault as output ``faults``."""
    try:
        with named_faults():
            yield from made
    except SetupError as fault:
        yield beam.pvalue.TaggedOutput(FAULTS, (part, fault_values(fault)))


_PAIRS_AT_ONCE = 2_000


class EvidenceOfPairs(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Makes evidence of pairs of a page title and a text, for ``ResolvePages``.

    (title, text) -> (key, record batch of ``Alignment``).

    The rows keep title and text as ``page_value`` and ``evidence_text`` throughout, which identify them.
    """

    def expand(self, pairs: Any) -> Any:
        return (
            pairs
            | "together" >> beam.BatchElements(min_batch_size=_PAIRS_AT_ONCE, max_batch_size=_PAIRS_AT_ONCE)
            | "rows" >> beam.Map(evidence_of_pairs)
        )


def evidence_of_pairs(pairs: Sequence[tuple[str, str]]) -> tuple[ChunkKey, pa.RecordBatch]:
    """Returns a chunk of evidence for pairs of a page title and a text to search for in the page.

    Its key is computed from the pairs; ``ordinal`` is the position of a pair.
    """
    key = ChunkKey(0, int.from_bytes(hashlib.sha256(repr(pairs).encode()).digest()[:3]))
    rows = (
        Alignment(PageKey("title", title), text, part=key.part, chunk=key.chunk, ordinal=ordinal)
        for ordinal, (title, text) in enumerate(pairs)
    )
    return key, batch_of(rows, Alignment)


class ResolvePages(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Finds the page of each piece of evidence in a release.

    (key, rows of ``Alignment``) -> (key, the same rows with their pages, where there is one).

    Redirects are followed; ``mapping.search.resolve`` lists the attempts. Input rows are a ``BatchRef`` or a record
    batch. Output rows are record batches, or ``BatchRef`` with a folder. In a chunk, rows without a page come first,
    grouped by title; then the others in page order.

    Args:
        release: its folder; all workers must be able to read it under this path.
        title_map: file of known page moves, or the files by number of the dataset.
        folder: a file per chunk is written to it. Use another folder for each job and input. None for no files.

    Raises:
        SetupError: the folder contains no finished release, or a file of moves is malformed.
    """

    def __init__(self, release: str, *, title_map: TitleMap = None, folder: str | None = None) -> None:
        super().__init__()
        folder = None if folder is None else absolute(folder)
        self._resolve = do(_resolve, pages=ReleasePages.open(release), title_map=title_map, folder=folder)

    def expand(self, chunks: Any) -> Any:
        return chunks | "resolve" >> self._resolve


def _resolve(
    element: tuple[ChunkKey, BatchRef | pa.RecordBatch],
    *,
    pages: ReleasePages,
    title_map: TitleMap,
    folder: str | None,
) -> Iterator[tuple[ChunkKey, BatchRef | pa.RecordBatch]]:
    key = ChunkKey(*element[0])
    rows = resolve_rows(read_batches(element[1]), page_finder(pages, _moves_of(key.part, title_map)))
    yield key, rows if folder is None else keep_batch(key, rows, folder)


TIMEOUT_S = 60.0
MEMORY_BYTES = 4 << 30


class AlignSpans(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Searches the page of each piece of evidence for its text.

    (key, rows of ``Alignment``) -> (key, the same rows with their outcomes).

    A row is returned with span, BLEU, text and ``outcome``. The outcome is ``exact``, ``scored``
    (``mapping.decide.with_outcome`` decides whether that is enough), or the reason why there is no span. If the page is
    missing, the row has similar titles. The search runs in a process next to the worker. Evidence that hangs or crashes
    this process twice, in its chunk and then by itself, gets the outcome ``search_timeout``, ``search_crash`` or
    ``search_error``.

    With a folder, the rows of all chunks are searched in the order of the pages, so that each page is read and
    tokenised once for all datasets. The rows of a chunk must be sorted by page, as from ``ReadEvidence`` or
    ``ResolvePages``. Stored rows are not written again; rows in memory are stored first. The output keys are then
    numbers of the search's own chunks, and rows are ``BatchRef``. Without a folder, each chunk is searched as it
    arrives, its rows pass through memory, and keys do not change; use this for small inputs.

    Args:
        release: its folder; all workers must be able to read it under this path.
        settings: search settings, or the settings by number of the dataset.
        folder: for rows between the steps. Use another folder for each job and input. None for no files.
        timeout_s: maximum seconds per piece of evidence.
        memory_bytes: maximum memory of the search process.
        beats: local folder where the processes report their progress; None for no reports.

    Raises:
        SetupError: the folder contains no finished release, or the search fails too often.
    """

    def __init__(
        self,
        release: str,
        *,
        settings: SearchSettings | Mapping[int, SearchSettings] | None = None,
        folder: str | None = None,
        timeout_s: float = TIMEOUT_S,
        memory_bytes: int = MEMORY_BYTES,
        beats: str | None = None,
    ) -> None:
        super().__init__()
        self._pages = ReleasePages.open(release)
        by_part = settings if isinstance(settings, Mapping) else {}
        of_all = SearchSettings() if settings is None or isinstance(settings, Mapping) else settings
        self._folder = None if folder is None else absolute(folder)
        self._search = GuardedMap(
            partial(Search, self._pages, of_all, dict(by_part)),
            folder=None if self._folder is None else join(self._folder, "found"),
            timeout_s=timeout_s,
            memory_bytes=memory_bytes,
            beats=beats,
        )

    def expand(self, chunks: Any) -> Any:
        if self._folder is not None:
            chunks = (
                chunks
                | "stored" >> do(_stored, folder=join(self._folder, "wanted"))
                | "by page" >> CollectSorted(_by_page)
                | "spread" >> beam.Reshuffle()
            )
        return (chunks | "search" >> self._search)[CHUNKS]


def _stored(element: tuple[ChunkKey, BatchRef | pa.RecordBatch], *, folder: str) -> Iterator[tuple[ChunkKey, BatchRef]]:
    key, rows = ChunkKey(*element[0]), element[1]
    yield key, keep_batch(key, rows, folder) if isinstance(rows, pa.RecordBatch) else rows


def _by_page(stored: Sequence[tuple[ChunkKey, BatchRef]]) -> Iterator[tuple[ChunkKey, tuple[BatchRef, ...]]]:
    """Divides all evidence into chunks of the search.

    All evidence -> (ChunkKey(0, number), its rows in the files), for each chunk.
    """
    for number, rows in enumerate(search_chunks([BatchRef(*chunk) for _, chunk in stored])):
        yield ChunkKey(0, number), rows


def read_alignments(chunk: tuple[ChunkKey, BatchRef | pa.RecordBatch]) -> Iterator[Alignment]:
    """Returns the rows of a chunk from ``ResolvePages`` or ``AlignSpans``."""
    return read_rows(chunk[1], Alignment)


_DONE = "done"


class JoinOutcomes(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Joins each chunk of records with the outcomes of their evidence.

    (examples, outcomes) -> (key, ``AlignedChunk``).

    The input is a tuple of ``examples`` from ``ReadEvidence`` and the output of ``AlignSpans`` for its ``evidence``.
    The output has the keys of the examples. Each value refers to the examples and to their outcomes, and also to the
    models' answers about the spans, if there are models. If different datasets used different ``AlignSpans``, the tuple
    has one output for each.

    Args:
        folder: for rows between the steps. Use another folder for each job and input.
        datasets: options by number of the dataset, for datasets with a model (``verify``); others are not judged. If a
            span scores less than the threshold, the model also judges other sentences.
    """

    def __init__(self, folder: str, *, datasets: Mapping[int, DatasetOptions] | None = None) -> None:
        super().__init__()
        self._folder, self._datasets = absolute(folder), datasets or {}

    def expand(self, rows: Any) -> Any:
        examples, *outcomes = rows
        found = [
            outcome | f"by chunk {number}" >> Regroup(join(self._folder, str(number)), _chunk_groups, order=ORDER)
            for number, outcome in enumerate(outcomes)
        ] | "all outcomes" >> beam.Flatten()
        joined = {"examples": examples | "keyed" >> beam.MapTuple(_keyed), "outcomes": found}
        asked: dict[ModelOptions, dict[int, float]] = {}
        for part, options in self._datasets.items():
            if options.verify is not None:
                asked.setdefault(options.verify.model, {})[part] = options.threshold
        for number, (model, parts) in enumerate(asked.items()):
            joined[f"answers {number}"] = (
                found
                | f"pairs {number}" >> do(_pairs, thresholds=parts)
                | f"verify {number}" >> VerifyEntailment(model)
                | f"answers {number}" >> beam.MapTuple(_by_chunk)
            )
        return joined | "join" >> beam.CoGroupByKey() | "in order" >> beam.MapTuple(_aligned)


def _keyed(key: ChunkKey, stored: BatchRef) -> tuple[int, tuple[ChunkKey, BatchRef]]:
    return key[0] << 32 | key[1], (key, stored)


def _chunk_groups(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """Returns the group of each row: one group per chunk of records, by the number from ``_keyed``."""
    groups: npt.NDArray[np.int64] = batch["part"].to_numpy().astype(np.int64) << 32 | batch["chunk"].to_numpy()
    return groups


def _pairs(
    element: tuple[int, tuple[BatchRef, ...]], *, thresholds: Mapping[int, float]
) -> Iterator[tuple[tuple[int, int], Pairs]]:
    """Makes the pairs of a chunk that a model judges.

    (chunk, parts of its outcomes) -> ((chunk, number of the list), pairs).
    """
    group, pieces = element
    if (threshold := thresholds.get(group >> 32)) is not None:
        for number, pairs in enumerate(read_pairs(pieces, threshold)):
            yield (group, number), pairs


def _by_chunk(key: tuple[int, int], answers: Answers) -> tuple[int, tuple[int, Answers]]:
    group, number = key
    return group, (number, answers)


def _aligned(_: int, joined: dict[str, Iterable[Any]]) -> tuple[ChunkKey, AlignedChunk]:
    ((key, examples),) = joined["examples"]
    pieces = tuple(BatchRef(*piece) for pieces in joined["outcomes"] for piece in pieces)
    lists = sorted(text for name, given in joined.items() if name.startswith("answers") for text in given)
    return ChunkKey(*key), AlignedChunk(
        BatchRef(*examples), pieces, tuple(answer for _, answers in lists for answer in answers)
    )


class Filter(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Decides every record by the rules of its dataset.

    (key, ``AlignedChunk``) -> ``AlignedRecord``.

    The records of a chunk are in order. An accepted record has its KILT form in ``record``; for the others,
    ``decision.reason`` is the reason.

    Raises:
        DataError: a piece of evidence has no outcome, or two.
    """

    def __init__(self, options: DatasetOptions) -> None:
        super().__init__()
        self._options = options

    def expand(self, chunks: Any) -> Any:
        return chunks | "filter" >> do(_filter, options=self._options)


def _filter(element: tuple[ChunkKey, AlignedChunk], *, options: DatasetOptions) -> Iterator[AlignedRecord]:
    return filter_records(AlignedChunk(*element[1]), options)


class WriteAlignment(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Writes the alignments of datasets, each manifest last.

    (chunks, datasets, rejected) -> numbers of the datasets that were written.

    The inputs are the output of ``JoinOutcomes`` and the outputs ``datasets`` and ``rejected`` of ``ReadEvidence``.

    Outputs:
        ``done``: numbers of the datasets.
        ``faults``: (number, ``kbsource.errors.fault_values``) of datasets whose counts do not add up, or which have too
            few records to draw from.

    Args:
        staging: folder for temporary files. Use another folder for each job and input.
    """

    def __init__(self, parts: Sequence[DatasetPart], staging: str) -> None:
        super().__init__()
        self._parts, self._staging = tuple(parts), absolute(staging)

    def expand(self, rows: Any) -> Any:
        chunks, datasets, rejected = rows
        drawn = (
            chunks
            | "to draw from" >> beam.FlatMap(_of_sampled, tuple(part.is_sampled for part in self._parts))
            | "in order" >> beam.GroupByKey()
            | "draw" >> do(_draw, parts=self._parts).with_outputs(FAULTS, main=_DONE)
        )
        read = beam.pvalue.AsDict(datasets)
        own = {"parts": self._parts, "staging": self._staging}
        merged = chunks | "merge" >> do(_merge, read, beam.pvalue.AsDict(drawn[_DONE]), **own)
        bad = rejected | "of datasets" >> beam.MapTuple(_of_part)
        done = (
            {"merged": merged, "rejected": bad}
            | "all chunks" >> beam.CoGroupByKey()
            | "commit" >> do(_commit, read, **own).with_outputs(FAULTS, main=_DONE)
        )
        return {_DONE: done[_DONE], FAULTS: (drawn[FAULTS], done[FAULTS]) | "faults" >> beam.Flatten()}


def _of_sampled(
    element: tuple[ChunkKey, AlignedChunk], is_sampled: Sequence[bool]
) -> Iterator[tuple[int, tuple[int, AlignedChunk]]]:
    key, chunk = element
    if is_sampled[key[0]]:
        yield key[0], (key[1], chunk)


def _of_part(key: ChunkKey, stored: BatchRef) -> tuple[int, tuple[int, BatchRef]]:
    return key[0], (key[1], stored)


def _draw(element: tuple[int, Iterable[tuple[int, AlignedChunk]]], *, parts: Sequence[DatasetPart]) -> Iterator[Any]:
    """Draws the sample of a dataset that has no predefined splits.

    (dataset, all its chunks) -> (dataset, ``Cuts``).
    """
    number, chunks = element
    options = parts[number].options
    ordered = (AlignedChunk(*chunk) for _, chunk in sorted(chunks))

    def drawn() -> Iterator[tuple[int, Cuts]]:
        yield number, split_ends(passing_records(ordered, options), options.choices.sample_records or 0)

    return _or_fault(number, drawn())


def _merge(
    element: tuple[ChunkKey, AlignedChunk],
    datasets: Mapping[int, ReadDataset],
    cuts: Mapping[int, Cuts],
    *,
    parts: Sequence[DatasetPart],
    staging: str,
) -> Iterator[tuple[int, MergedChunk]]:
    """Writes the output of a chunk, unless no sample could be drawn.

    (key, ``AlignedChunk``) -> (dataset, ``MergedChunk``).
    """
    key, chunk = ChunkKey(*element[0]), AlignedChunk(*element[1])
    part, n_chunks = parts[key.part], len(datasets[key.part].examples)
    if part.is_sampled and key.part not in cuts:
        return
    drawn = Cuts(*cuts[key.part]) if part.is_sampled else None
    merged = merge_chunk(chunk, part, key, n_chunks=n_chunks, cuts=drawn, staging=staging)
    count({f"evidences_{outcome}": n for outcome, n in merged.outcomes.items()})
    yield key.part, merged


def _commit(
    element: tuple[int, dict[str, Iterable[Any]]],
    datasets: Mapping[int, ReadDataset],
    *,
    parts: Sequence[DatasetPart],
    staging: str,
) -> Iterator[Any]:
    """Writes the remaining files of a dataset's alignment, its manifest last.

    (dataset, its written chunks and its rejected records) -> dataset.
    """
    number, given = element
    merged = sorted(given["merged"], key=attrgetter("chunk"))
    rejected = [BatchRef(*stored) for _, stored in sorted(given["rejected"])]

    def committed() -> Iterator[int]:
        tally = datasets[number].tally
        commit_part(parts[number], number, merged, tally=tally, rejected=rejected, staging=staging)
        yield number

    return _or_fault(number, committed()) if merged else iter(())
