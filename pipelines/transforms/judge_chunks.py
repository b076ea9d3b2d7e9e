"""The questions about an alignment put before a model, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from kbsource.errors import named_faults
from mapping.entailment import ModelOptions
from pipelines.alignment.verify import read_pairs, write_answers
from pipelines.transforms.entailment import Answers, JudgePairs, Pairs
from pipelines.transforms.run_tasks import run_pipeline


def judge_chunks(staging: str, n_chunks: int, options: ModelOptions, beam_options: PipelineOptions) -> None:
    """Runs one pipeline that answers the questions of all chunks.

    Raises:
        SetupError: the model cannot be opened, the machine is at fault, or the runner gave up.
    """
    pipeline = beam.Pipeline(options=beam_options)
    _ = pipeline | JudgeChunks(staging, n_chunks, options)
    run_pipeline(pipeline, "verify")


class JudgeChunks(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """Answers the staged questions of every chunk; gives the numbers of the chunks that are done.

    Texts are read where they are judged; only probabilities are shuffled.
    """

    def __init__(self, staging: str, n_chunks: int, options: ModelOptions) -> None:
        super().__init__()
        self._staging = staging
        self._n_chunks = n_chunks
        self._options = options

    def expand(self, begin: Any) -> Any:
        return (
            begin
            | "chunks" >> beam.Create(range(self._n_chunks), reshuffle=False)
            | "spread" >> beam.Reshuffle()
            | "read" >> beam.ParDo(_ReadPairs(self._staging))
            | "judge" >> JudgePairs(self._options)
            | "by chunk" >> beam.MapTuple(_by_chunk)
            | "gather" >> beam.GroupByKey()
            | "write" >> beam.ParDo(_WriteAnswers(self._staging))
        )


class _ReadPairs(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    def __init__(self, staging: str) -> None:
        self._staging = staging

    def process(self, chunk: int) -> Iterator[tuple[tuple[int, int], Pairs]]:
        # A chunk without questions has answers too: none.
        yield (chunk, -1), ()
        with named_faults():
            yield from read_pairs(self._staging, chunk)


def _by_chunk(key: tuple[int, int], answers: Answers) -> tuple[int, tuple[int, Answers]]:
    chunk, number = key
    return chunk, (number, answers)


class _WriteAnswers(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    def __init__(self, staging: str) -> None:
        self._staging = staging

    def process(self, element: tuple[int, Iterable[tuple[int, Answers]]]) -> Iterator[int]:
        chunk, lists = element
        with named_faults():
            write_answers(self._staging, chunk, dict(lists))
        yield chunk
