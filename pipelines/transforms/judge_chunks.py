"""The questions about an alignment put before a model, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from kbsource.assembly import DataError
from mapping.entailment import ModelOptions
from pipelines.map_verify import read_pairs, write_answers
from pipelines.transforms.entailment import Answers, JudgePairs, Pairs
from pipelines.transforms.run_tasks import failure_reason


def judge_chunks(staging: str, n_chunks: int, options: ModelOptions, beam_options: PipelineOptions) -> None:
    """Runs one pipeline that answers the questions of all chunks.

    Raises:
        DataError: the runner gave up.
    """
    pipeline = beam.Pipeline(options=beam_options)
    _ = pipeline | JudgeChunks(staging, n_chunks, options)
    try:
        pipeline.run().wait_until_finish()
    except RuntimeError as error:
        # Beam wraps whatever ends a worker, Ctrl-C in a worker of this process too.
        if str(error).startswith("KeyboardInterrupt"):
            raise KeyboardInterrupt from error
        reason = failure_reason(str(error))
        if reason is None:
            raise
        raise DataError(f"The runner gave up on the stage verify: {reason}") from error


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
        yield from read_pairs(self._staging, chunk)


def _by_chunk(key: tuple[int, int], answers: Answers) -> tuple[int, tuple[int, Answers]]:
    chunk, number = key
    return chunk, (number, answers)


class _WriteAnswers(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    def __init__(self, staging: str) -> None:
        self._staging = staging

    def process(self, element: tuple[int, Iterable[tuple[int, Answers]]]) -> Iterator[int]:
        chunk, lists = element
        write_answers(self._staging, chunk, dict(lists))
        yield chunk
