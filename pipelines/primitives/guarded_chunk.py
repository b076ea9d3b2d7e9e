"""Processes a chunk in a guarded process: reads it, calls the function of the step, and writes the result.

This module does not import Beam, which would take each of these processes two seconds.
"""

from __future__ import annotations

import base64
import pickle
from functools import lru_cache
from itertools import chain
from typing import Any

from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkFunction,
    ChunkKey,
    Work,
    numbered_batches,
    read_stored,
    row_alone,
    write_chunk,
)

DO_CHUNK = f"{__name__}:do_chunk"
"""The function that performs a task, for ``kbsource.runtime.guard``."""


def pickled_text(make: Any) -> str:
    """Returns a callable as text, for the task of a guarded process started by this process."""
    return base64.b64encode(pickle.dumps(make)).decode("ascii")


@lru_cache(maxsize=1)
def _make(make: str, given: tuple[Any, ...]) -> ChunkFunction:
    # Unpickling is safe here: the parent process wrote this text a moment ago.
    function: ChunkFunction = pickle.loads(base64.b64decode(make))(*given)  # noqa: S301
    return function


def do_chunk(task: dict[str, Any], beat: Beat) -> list[Any] | None:
    """Processes a chunk and returns its ``BatchRef``. If the task has ``alone``, the number of a row, processes only
    this row and writes nothing.

    The task contains ``make`` from ``pickled_text`` and its arguments ``given``, the ``key``, the ``chunk`` of rows as
    references (none if the key is enough), the path of the ``output``, and ``verdicts`` as in ``Work``.

    Raises:
        SetupError: an error that affects the whole job.
    """
    function = _make(task["make"], tuple(task["given"]))
    verdicts = {int(number): (times, how) for number, (times, how) in task["verdicts"].items()}
    work = Work(ChunkKey(*task["key"]), beat, verdicts, task.get("alone", 0))
    batches = chain.from_iterable(read_stored(BatchRef(*stored)) for stored in task["chunk"])
    if work.alone:
        for _ in function(row_alone(batches, work.alone), work):
            pass
        return None
    made = function(numbered_batches(batches), work)
    return list(write_chunk(made, function.schema, work.report, path=task["output"]))
