"""Queries that somebody types, on the tables of one release: they read nothing else, write nothing, and end.

DuckDB keeps the first two (``connected`` and ``asked`` of ``kbsource.release.sql``), but not the last: what functions
allocate is not counted (``select len(range(500000000))`` took 16 GB under a limit of 200 MB), and ``interrupt`` waits
for them to end (81 s). So a query runs in a process of its own whose memory the system bounds, and which is killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from threading import Lock
from typing import Any, NamedTuple

from kbsource.errors import SetupError
from kbsource.release.kind import kind_of, read_content
from kbsource.release.sql import add_tables, asked, connected
from kbsource.runtime.beat import Beat
from kbsource.runtime.guard import Guard, WorkerDiedError
from kbsource.temporary import TemporaryFolder
from mapping.kinds import KINDS

MOST_ROWS = 1_000
LONGEST_S = 10.0
MEMORY_MB, PROCESS_MB = 300, 1_200
"""What DuckDB takes by its own account, and its process in all."""
_CELL_CHARS = 2_000


class Answer(NamedTuple):
    """What a query gave: ``fault`` where it went wrong; ``is_cut`` where there are more rows than ``MOST_ROWS``."""

    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool = False
    seconds: float = 0.0
    fault: str | None = None


class Sandbox:
    """A process that answers one query after the other; started with the first one."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._scratch = TemporaryFolder()
        self._guard: Guard | None = None

    def ask(self, query: str, tables: Mapping[str, list[str]], path: str) -> Answer:
        """The answer to a query on the tables of the release in a folder, whose files are given by table."""
        task = {"query": query, "tables": dict(tables), "path": os.path.abspath(path) if "://" not in path else path}
        with self._turn:
            if self._guard is None:
                self._guard = Guard(
                    f"{__name__}:answer",
                    beat_path=os.path.join(self._scratch.name, "beat"),
                    scratch=self._scratch.name,
                    page_timeout_s=LONGEST_S,
                    memory_bytes=PROCESS_MB * 10**6,
                )
            begun = time.perf_counter()
            try:
                found = self._guard.run(task)
            except SetupError as error:
                return Answer([], [], fault=str(error))
            except WorkerDiedError as death:
                why = f"it took more than {LONGEST_S:g} s" if death.kind == "timeout" else "it took too much memory"
                return Answer([], [], fault=f"Stopped: {why}.")
            return Answer(**found, seconds=time.perf_counter() - begun)

    def close(self) -> None:
        """Ends the process."""
        if self._guard is not None:
            self._guard.close()
        self._scratch.cleanup()


def answer(task: Mapping[str, Any], beat: Beat) -> dict[str, Any]:
    """What a query gives, as JSON values; runs in the process of its own."""
    import duckdb

    beat.enter(1)
    path = task["path"]
    kind = kind_of(read_content(path), path, KINDS)
    with connected(reads=[path], memory_mb=MEMORY_MB) as db:
        add_tables(db, kind.declared, task["tables"], path, places=True)
        try:
            result = asked(db, task["query"])
            rows = result.fetchmany(MOST_ROWS + 1)
        except MemoryError:
            return _fault("Stopped: it took too much memory.")
        except (ValueError, duckdb.Error) as error:
            return _fault(str(error))
        columns = [column[0] for column in result.description or ()]
        return {
            "columns": columns,
            "rows": [[_plain(value) for value in row] for row in rows[:MOST_ROWS]],
            "is_cut": len(rows) > MOST_ROWS,
        }


def _fault(said: str) -> dict[str, Any]:
    return {"columns": [], "rows": [], "fault": said}


def _plain(value: Any) -> Any:
    """A value as JSON has it; long texts are cut."""
    if isinstance(value, list):
        return [_plain(inner) for inner in value[:100]]
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]}…"
