"""What a guarded process does with a chunk: reads it, gives it to the function of the step, writes what comes."""

from __future__ import annotations

import base64
import pickle
from functools import lru_cache
from typing import Any

from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import ChunkFunction, Key, Stored, Work, read_stored, row_alone, with_numbers, write_chunk
from pipelines.stores.storage import storage_for

DO_CHUNK = f"{__name__}:do_chunk"
"""What does a task, for ``kbsource.runtime.guard``."""


def chunk_task(
    make: str, given: tuple[Any, ...], key: Key, chunk: Stored | None, output: str, verdicts: dict[int, tuple[int, str]]
) -> dict[str, Any]:
    """Gives the task of a chunk as JSON values.

    Args:
        make: from ``packed``.
        given: JSON values that it is called with.
        key: of the chunk.
        chunk: its rows; None for a chunk that is known by its key alone.
        output: path of the file to write.
        verdicts: see ``kbsource.runtime.chunks.Work``.
    """
    return {"make": make, "given": given, "key": key, "chunk": chunk, "output": output, "verdicts": verdicts}


def packed(make: Any) -> str:
    """Gives a function, or whatever else can be called, as text for the task of a guarded process of this one."""
    return base64.b64encode(pickle.dumps(make)).decode("ascii")


@lru_cache(maxsize=1)
def _made(make: str, given: tuple[Any, ...]) -> ChunkFunction:
    # Not data: what the process that started this one wrote a moment ago.
    function: ChunkFunction = pickle.loads(base64.b64decode(make))(*given)  # noqa: S301
    return function


def do_chunk(task: dict[str, Any], beat: Beat) -> list[Any] | None:
    """Does a chunk and gives its ``Stored``; with ``alone``, the number of a row, does that row and writes nothing.

    Raises:
        SetupError: something about the whole job is wrong.
    """
    function = _made(task["make"], tuple(task["given"]))
    verdicts = {int(number): (times, how) for number, (times, how) in task["verdicts"].items()}
    work = Work(Key(*task["key"]), beat, verdicts, task.get("alone", 0))
    chunk = None if task["chunk"] is None else Stored(*task["chunk"])
    batches = iter(()) if chunk is None else read_stored(chunk, storage_for(chunk.path))
    if work.alone:
        for _ in function(row_alone(batches, work.alone), work):
            pass
        return None
    output = task["output"]
    made = function(with_numbers(batches), work)
    return list(write_chunk(made, function.schema, work.report, path=output, storage=storage_for(output)))
