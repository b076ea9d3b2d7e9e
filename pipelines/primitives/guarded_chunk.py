"""What a guarded process does with a chunk: reads it, gives it to the function of the step, writes what comes.

Without Beam, whose import would cost each of these processes two seconds.
"""

from __future__ import annotations

import base64
import pickle
from functools import lru_cache
from typing import Any

from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import (
    BatchRef,
    ChunkFunction,
    ChunkKey,
    Work,
    read_stored,
    row_alone,
    with_numbers,
    write_chunk,
)

DO_CHUNK = f"{__name__}:do_chunk"
"""What does a task, for ``kbsource.runtime.guard``."""


def packed(make: Any) -> str:
    """A function, or whatever else can be called, as text for the task of a guarded process of this one."""
    return base64.b64encode(pickle.dumps(make)).decode("ascii")


@lru_cache(maxsize=1)
def _made(make: str, given: tuple[Any, ...]) -> ChunkFunction:
    # Not data: what the process that started this one wrote a moment ago.
    function: ChunkFunction = pickle.loads(base64.b64decode(make))(*given)  # noqa: S301
    return function


def do_chunk(task: dict[str, Any], beat: Beat) -> list[Any] | None:
    """Does a chunk and gives its ``BatchRef``; with ``alone``, the number of a row, does that row and writes nothing.

    The task has ``make`` from ``packed`` and the values ``given`` to it, the ``key`` and the ``chunk`` of rows, None
    for one that is known by its key alone, the path of the ``output``, and ``verdicts`` as ``Work`` has them.

    Raises:
        SetupError: something about the whole job is wrong.
    """
    function = _made(task["make"], tuple(task["given"]))
    verdicts = {int(number): (times, how) for number, (times, how) in task["verdicts"].items()}
    work = Work(ChunkKey(*task["key"]), beat, verdicts, task.get("alone", 0))
    batches = iter(()) if task["chunk"] is None else read_stored(BatchRef(*task["chunk"]))
    if work.alone:
        for _ in function(row_alone(batches, work.alone), work):
            pass
        return None
    made = function(with_numbers(batches), work)
    return list(write_chunk(made, function.schema, work.report, path=task["output"]))
