"""Records with what became of their evidences: filtered, and written as alignments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam

from kbsource.errors import SetupError, fault_values, named_faults
from kbsource.files import join
from kbsource.runtime.chunks import Key, Stored
from mapping.decide.sample import Cuts, cut
from mapping.entail.signal import ModelOptions
from pipelines.alignment.dataset_part import DatasetPart, filter_options
from pipelines.alignment.filtering import Filtered, FilterOptions, filter_records, standing
from pipelines.alignment.merge import merge_chunk
from pipelines.alignment.output import commit_part
from pipelines.alignment.reading import ReadDataset
from pipelines.alignment.rows import chunk_group, chunk_groups
from pipelines.alignment.settled import AlignedChunk
from pipelines.alignment.verify import ORDER, read_pairs
from pipelines.primitives.regroup import Regroup
from pipelines.runners.workers import WorkerDoFn
from pipelines.stores.storage import absolute
from pipelines.transforms.read_evidence import FAULTS
from pipelines.transforms.verify_entailment import Answers, Pairs, VerifyEntailment

_DONE = "done"


class JoinOutcomes(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(examples, outcomes) -> (Key, ``AlignedChunk``): each chunk of records with what became of their evidences.

    Takes a tuple of what ``ReadEvidence`` gives as ``examples`` and what ``AlignSpans`` gives of its ``evidence``, and
    gives references to both under the keys of the examples; with models, what they say of the spans too. Where datasets
    went through several ``AlignSpans``, the tuple has what each gives.

    Args:
        folder: takes the rows between the steps; for one job with one input only.
        models: by number of the dataset; none is asked about the others.
    """

    def __init__(self, folder: str, *, models: dict[int, ModelOptions] | None = None) -> None:
        super().__init__()
        self._folder, self._models = absolute(folder), models or {}

    def expand(self, rows: Any) -> Any:
        examples, *outcomes = rows
        found = [
            one | f"by chunk {number}" >> Regroup(join(self._folder, str(number)), chunk_groups, order=ORDER)
            for number, one in enumerate(outcomes)
        ] | "all outcomes" >> beam.Flatten()
        joined = {"examples": examples | "keyed" >> beam.MapTuple(_keyed), "outcomes": found}
        asked: dict[ModelOptions, set[int]] = {}
        for part, model in self._models.items():
            asked.setdefault(model, set()).add(part)
        for number, (model, parts) in enumerate(asked.items()):
            joined[f"answers {number}"] = (
                found
                | f"pairs {number}" >> beam.ParDo(_ReadPairs(frozenset(parts)))
                | f"verify {number}" >> VerifyEntailment(model)
                | f"answers {number}" >> beam.MapTuple(_by_chunk)
            )
        return joined | "join" >> beam.CoGroupByKey() | "in order" >> beam.MapTuple(_aligned)


def _keyed(key: Key, stored: Stored) -> tuple[int, tuple[Key, Stored]]:
    return chunk_group(key), (key, stored)


class _ReadPairs(WorkerDoFn):
    """(chunk, pieces of its outcomes) -> ((chunk, number of the list), pairs)."""

    def __init__(self, parts: frozenset[int]) -> None:
        super().__init__()
        self._parts = parts

    def process(self, element: tuple[int, tuple[Stored, ...]]) -> Iterator[tuple[tuple[int, int], Pairs]]:
        group, pieces = element
        if group >> 32 in self._parts:
            with named_faults():
                for number, pairs in enumerate(read_pairs(pieces)):
                    yield (group, number), pairs


def _by_chunk(key: tuple[int, int], answers: Answers) -> tuple[int, tuple[int, Answers]]:
    group, number = key
    return group, (number, answers)


def _aligned(_: int, joined: dict[str, Iterable[Any]]) -> tuple[Key, AlignedChunk]:
    ((key, examples),) = joined["examples"]
    pieces = tuple(Stored(*piece) for pieces in joined["outcomes"] for piece in pieces)
    lists = sorted(text for name, given in joined.items() if name.startswith("answers") for text in given)
    return Key(*key), AlignedChunk(
        Stored(*examples), pieces, tuple(answer for _, answers in lists for answer in answers)
    )


class Filter(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, ``AlignedChunk``) -> ``Filtered``: every record, decided by the rules of a dataset.

    The records of a chunk come in order. One that is kept has its KILT form in ``record``; ``decision.reason`` says why
    another is not.

    Args:
        options: the rules.

    Raises:
        DataError: an evidence has no outcome, or two.
    """

    def __init__(self, options: FilterOptions) -> None:
        super().__init__()
        self._options = options

    def expand(self, chunks: Any) -> Any:
        return chunks | "filter" >> beam.ParDo(_FilterChunk(self._options))


class _FilterChunk(WorkerDoFn):
    def __init__(self, options: FilterOptions) -> None:
        super().__init__()
        self._options = options

    def process(self, element: tuple[Key, AlignedChunk]) -> Iterator[Filtered]:
        with named_faults():
            yield from filter_records(AlignedChunk(*element[1]), self._options)


class WriteAlignment(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(chunks, datasets, rejected) -> numbers of the datasets whose alignments are written, their manifests last.

    Takes what ``JoinOutcomes`` gives and the outputs ``datasets`` and ``rejected`` of ``ReadEvidence``.

    Outputs:
        ``done``: numbers of the datasets.
        ``faults``: (number, ``kbsource.errors.fault_values``) of those whose counts do not add up, or which have not
            enough records to draw from.

    Args:
        parts: the datasets.
        staging: folder for what is only needed while the job runs; for one job with one input only.
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
            | "draw" >> beam.ParDo(_Draw(self._parts)).with_outputs(FAULTS, main=_DONE)
        )
        read = beam.pvalue.AsDict(datasets)
        merged = chunks | "merge" >> beam.ParDo(
            _MergeChunk(self._parts, self._staging), read, beam.pvalue.AsDict(drawn[_DONE])
        )
        bad = rejected | "of datasets" >> beam.MapTuple(_of_part)
        done = (
            {"reports": merged, "rejected": bad}
            | "all chunks" >> beam.CoGroupByKey()
            | "commit" >> beam.ParDo(_Commit(self._parts, self._staging), read).with_outputs(FAULTS, main=_DONE)
        )
        return {_DONE: done[_DONE], FAULTS: (drawn[FAULTS], done[FAULTS]) | "faults" >> beam.Flatten()}


def _of_sampled(
    element: tuple[Key, AlignedChunk], is_sampled: Sequence[bool]
) -> Iterator[tuple[int, tuple[int, AlignedChunk]]]:
    key, chunk = element
    if is_sampled[key[0]]:
        yield key[0], (key[1], chunk)


def _of_part(key: Key, stored: Stored) -> tuple[int, tuple[int, Stored]]:
    return key[0], (key[1], stored)


class _Draw(WorkerDoFn):
    """(dataset, all its chunks) -> (dataset, ``Cuts``)."""

    def __init__(self, parts: tuple[DatasetPart, ...]) -> None:
        super().__init__()
        self._parts = parts

    def process(self, element: tuple[int, Iterable[tuple[int, AlignedChunk]]]) -> Iterator[Any]:
        number, chunks = element
        options = self._parts[number].options
        ordered = (AlignedChunk(*chunk) for _, chunk in sorted(chunks))
        try:
            with named_faults():
                yield number, cut(standing(ordered, filter_options(options)), options.choices.sample_records or 0)
        except SetupError as fault:
            yield beam.pvalue.TaggedOutput(FAULTS, (number, fault_values(fault)))


class _MergeChunk(WorkerDoFn):
    """(Key, ``AlignedChunk``) -> (dataset, report of the chunk)."""

    def __init__(self, parts: tuple[DatasetPart, ...], staging: str) -> None:
        super().__init__()
        self._parts, self._staging = parts, staging

    def process(
        self, element: tuple[Key, AlignedChunk], datasets: dict[int, ReadDataset], cuts: dict[int, Cuts]
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        key = Key(*element[0])
        part = self._parts[key.part]
        if part.is_sampled and key.part not in cuts:
            return
        with named_faults():
            yield (
                key.part,
                merge_chunk(
                    AlignedChunk(*element[1]),
                    part,
                    key,
                    n_chunks=len(ReadDataset(*datasets[key.part]).examples),
                    cuts=Cuts(*cuts[key.part]) if part.is_sampled else None,
                    staging=self._staging,
                ),
            )


class _Commit(WorkerDoFn):
    """(dataset, reports of its chunks and its rejected records) -> dataset."""

    def __init__(self, parts: tuple[DatasetPart, ...], staging: str) -> None:
        super().__init__()
        self._parts, self._staging = parts, staging

    def process(self, element: tuple[int, dict[str, Iterable[Any]]], datasets: dict[int, ReadDataset]) -> Iterator[Any]:
        number, given = element
        reports = sorted(given["reports"], key=_chunk_of)
        if not reports:  # there was nothing to draw
            return
        rejected = [Stored(*stored) for _, stored in sorted(given["rejected"])]
        try:
            with named_faults():
                commit_part(
                    self._parts[number],
                    number,
                    reports,
                    tally=ReadDataset(*datasets[number]).tally,
                    rejected=rejected,
                    staging=self._staging,
                )
                yield number
        except SetupError as fault:
            yield beam.pvalue.TaggedOutput(FAULTS, (number, fault_values(fault)))


def _chunk_of(report: dict[str, Any]) -> int:
    chunk: int = report["chunk"]
    return chunk
