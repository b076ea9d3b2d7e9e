"""Rows that a model is asked about, some together, by one pipeline, and what it says of them, in their order.

Both lie in a folder while that is made: what is asked, a row group for each element, and a file of answers for each. So
a run that was killed goes on behind the answers that are there; a folder must only be given again to the same job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.files import Folder, glob, join
from kbsource.release.reader import row_groups
from kbsource.rows import Row
from kbsource.runtime.chunks import ChunkKey, Report, chunk_path, once, read_chunk_report, read_rows, write_chunk
from pipelines.progress import Done, Progress
from pipelines.runners.running import NotRunError, run_pipeline
from pipelines.transforms.tables import ReadTable
from pipelines.transforms.verify_entailment import ListHandler, PlacedModel, RunModel

R = TypeVar("R", bound=Row)
A = TypeVar("A", bound=Row)


def through_model(
    pipeline: Any,
    questions: Iterable[Sequence[R]],
    asked: type[R],
    answers: type[A],
    *,
    name: str,
    together: int,
    staging: Folder,
    model: PlacedModel,
    open_model: Callable[[], Any],
    answer: Callable[[Any, Sequence[R]], Iterable[A]],
    progress: Progress,
) -> tuple[int, Iterator[tuple[list[R], list[A]]]]:
    """Asks a model about rows, those of some questions at once: how many questions there were, and what comes of them,
    some at a time in their order.

    The caller deletes the folder once all of it is written elsewhere.

    Args:
        questions: the rows of each; one at least.
        name: of the job.
        together: questions that a worker takes at once: what the model says depends on nothing else.
        model: where it lies, and what the machines are to have that run it.
        open_model: opens it, once a process; with ``answer`` importable where workers run, and pickled.
        answer: what the model says of the rows of some questions.
    """
    path, folder = str(staging / "asked.parquet"), str(staging / "answers")
    # Also where they are there: lines that cannot be used are told by every run.
    n_questions = _write(path, questions, asked, together)
    ask = partial(_ask, answer=answer, asked=asked, answers=answers, folder=folder)

    def seen() -> Done:
        n_done = min(len(glob(join(folder, "*.arrow"))) * together, n_questions)
        return Done(n_done, n_questions, unit="questions")

    try:
        _ = (
            pipeline
            | "asked" >> ReadTable([path], None, chunk_rows=1)
            | name >> RunModel(ListHandler(open_model, ask), model)
        )
        with progress.stage(name, seen):
            run_pipeline(pipeline, name)
    except NotRunError:
        staging.delete()
        raise
    return n_questions, _answered(path, folder, asked, answers)


def _write(path: str, questions: Iterable[Sequence[R]], asked: type[R], together: int) -> int:
    """Writes the rows of so many questions to a row group; gives the number of questions."""
    n_questions, source = 0, iter(questions)
    with Folder.of(path).create() as sink, pq.ParquetWriter(sink, schema_of(asked)) as target:
        while group := list(islice(source, together)):
            n_questions += len(group)
            target.write_batch(batch_of([row for rows in group for row in rows], asked))
    return n_questions


def _ask(
    model: Any,
    element: tuple[ChunkKey, pa.RecordBatch],
    *,
    answer: Callable[[Any, Sequence[R]], Iterable[A]],
    asked: type[R],
    answers: type[A],
    folder: str,
) -> int:
    """The answers to a row group, in a file of the folder, which is made unless it is there."""
    path = chunk_path(folder, ChunkKey(*element[0]))

    def make() -> None:
        found = list(answer(model, list(rows_of(element[1], asked))))
        write_chunk([batch_of(found, answers)], schema_of(answers), Report(), path=path)

    return once(path, make, read_chunk_report)[0].n_rows


def _answered(path: str, folder: str, asked: type[R], answers: type[A]) -> Iterator[tuple[list[R], list[A]]]:
    for number, group in enumerate(row_groups(path)):
        stored, _ = read_chunk_report(chunk_path(folder, ChunkKey(0, number)))
        yield list(rows_of(group, asked)), list(read_rows(stored, answers))
