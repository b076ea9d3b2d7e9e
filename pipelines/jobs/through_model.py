"""Runs a model over questions with their passages, some at a time, in one pipeline, and writes the answers to a file.

While the job runs, a folder next to the output contains the questions, one row group per batch, and a file of answers
for each batch. Its name is derived from everything that affects the output. A run that was killed is therefore resumed
after the existing answers. A folder without answers is removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kbsource.columns import batch_of, rows_of, schema_of
from kbsource.errors import RecordError
from kbsource.files import Folder, absolute, base_name, glob, join
from kbsource.identity import stable_sha256
from kbsource.records import BadRecord
from kbsource.release.manifest import code_facts
from kbsource.release.output import locked_output
from kbsource.rows import Row
from kbsource.runtime.chunks import (
    ChunkKey,
    Report,
    chunk_path,
    keep_chunk,
    read_chunk_report,
    read_stored,
    write_chunk,
)
from mapping.entail.signal import PlacedModel
from mapping.retrieval.queries import Query
from pipelines.progress import Progress, chunks_done
from pipelines.runners.running import check_paths, new_pipeline, run_pipeline
from pipelines.transforms.tables import ReadTable
from pipelines.transforms.verify_entailment import ListHandler, RunModel

_LINES = pa.schema([("line", pa.binary())])
Answer = Callable[[Any, Sequence[Any]], Iterable[bytes | RecordError]]
"""Returns a line for each question, or the reason why there is no line. It is pickled and must be importable by
workers."""


def through_model(
    questions: Iterable[Any],
    output: str,
    *,
    row: type[Row] = Query,
    unit: str = "questions",
    source: str,
    name: str,
    together: int,
    decides: Iterable[str],
    model: PlacedModel,
    open_model: Callable[[], Any],
    answer: Answer,
    flags: Sequence[str],
    progress: Progress,
) -> tuple[int, list[BadRecord]]:
    """Runs a model over questions and writes its output in their order. Returns the number of questions, and the
    questions for which the model wrote no line.

    Args:
        output: file; appears when it is complete.
        row: type of the questions, with a ``query_id``.
        unit: what the progress display calls a question.
        source: file of the questions.
        name: name of the job.
        together: number of questions in one batch. The output for a question depends only on the questions in its
            batch.
        decides: strings that list everything, apart from the code, that affects the bytes of the output.
        model: path of the model, and the requirements of machines that run it.
        open_model: opens the model, once per process.
    """
    pipeline = new_pipeline(flags)
    check_paths(flags, output)
    output = absolute(output)
    staging = Folder.of(f"{output}.{stable_sha256(*decides, repr(code_facts()))[:16]}.partial")
    path, folder = str(staging / "asked.parquet"), str(staging / "answers")
    ask = partial(_ask, row=row, answer=answer, stage=name, file=base_name(source), folder=folder)
    refused: list[BadRecord] = []
    with locked_output(output):
        try:
            # Even if the answers exist: every run reports the lines that cannot be used.
            sizes = list(_write(path, questions, row, together))
            _ = (
                pipeline
                | "asked" >> ReadTable([path], None, chunk_rows=1)
                | name >> RunModel(ListHandler(open_model, ask), model)
            )
            with progress.stage(name, chunks_done(str(staging), folder, sizes, unit=unit)):
                run_pipeline(pipeline, name)
            with Folder.of(output).create() as target:
                for number in range(len(sizes)):
                    stored, report = read_chunk_report(chunk_path(folder, ChunkKey(number, 0)))
                    for batch in read_stored(stored):
                        target.writelines(batch["line"].to_pylist())
                    refused += report.rejected
        except BaseException:
            if glob(join(folder, "*.arrow")):
                progress.note(
                    f"The finished part is in {staging}. Run the same command again to resume it, or remove that "
                    f"folder."
                )
            else:
                staging.delete()
            raise
        staging.delete()
    return sum(sizes), refused


def _write(path: str, questions: Iterable[Any], row: type[Row], together: int) -> Iterator[int]:
    """Writes ``together`` questions per row group, and yields the number of each group."""
    source = iter(questions)
    with Folder.of(path).create() as sink, pq.ParquetWriter(sink, schema_of(row)) as target:
        while group := list(islice(source, together)):
            target.write_batch(batch_of(group, row))
            yield len(group)


def _ask(
    model: Any,
    element: tuple[ChunkKey, pa.RecordBatch],
    *,
    row: type[Any],
    answer: Answer,
    stage: str,
    file: str,
    folder: str,
) -> int:
    """Returns the file of answers to a row group in the folder, and writes it if it does not exist."""

    def make(path: str) -> None:
        questions, lines, report = list(rows_of(element[1], row)), list[bytes](), Report()
        for asked, result in zip(questions, answer(model, questions), strict=True):
            if isinstance(result, bytes):
                lines.append(result)
            else:
                report.rejected.append(BadRecord(stage, asked.query_id, result.reason, result.detail, file, -1))
        write_chunk([pa.record_batch([pa.array(lines, pa.binary())], _LINES)], _LINES, report, path=path)

    return keep_chunk(folder, ChunkKey(element[0][1], 0), make).n_rows
