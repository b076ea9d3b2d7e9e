"""Runs queries that people type. A query can read only the tables of releases, cannot write, and has a time limit.

Three layers prevent harm. First, ``kbsource.release.queries`` rejects a query unless its plan only reads. Second, the
connection opens no file outside the release. Third, the query runs in its own process. This process can write only to
its bounded spill folder (``kbsource.runtime.confinement``), its memory is limited by the system, and it is killed after
a time limit. DuckDB itself cannot guarantee the limits of memory and time: allocations of single functions are not
counted (``select len(range(500000000))`` took 16 GB under a limit of 200 MB), and ``interrupt`` waits until they end
(81 s).
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event, Lock
from typing import Any, NamedTuple

from kbsource.errors import RecordError, SetupError
from kbsource.release.kind import kind_of, read_content
from kbsource.release.macros import add_macros
from kbsource.release.queries import run_query
from kbsource.release.results import ResultForm, write_result
from kbsource.release.sql import add_tables, connected
from kbsource.runtime.beat import Beat
from kbsource.runtime.confinement import Confinement, landlock_version, missing_restrictions
from kbsource.runtime.guard import Guard, WorkerDiedError
from kbsource.temporary import TemporaryFolder, remove_left_behind
from mapping.kinds import KINDS

MOST_ROWS = 1_000
LONGEST_S = 10.0
MEMORY_MB, PROCESS_MB, SPILL_MB = 300, 1_200, 1_000
"""Limits in MB: memory counted by DuckDB, memory of its process in total, and disk space for a query."""
MOST_QUERIES = 4
"""Maximum number of running and waiting queries; one runs at a time."""
_CELL_CHARS = 2_000


class Limits(NamedTuple):
    """Limits for a query; the defaults are the inspector's."""

    memory_mb: int = MEMORY_MB
    process_mb: int = PROCESS_MB
    spill_mb: int | None = SPILL_MB  #: None for all free space
    longest_s: float | None = LONGEST_S  #: None for no limit
    most_rows: int = MOST_ROWS  #: maximum rows of an answer that is not a file
    threads: int = 2
    counts_rows: bool = False  #: count the rows beyond ``most_rows`` too


class QueriedRelease(NamedTuple):
    """A release whose tables are queried."""

    path: str
    tables: Mapping[str, list[str]]  #: paths of the files of each table
    schema: str = "main"  #: schema of its views
    has_places: bool = True  #: whether the views have ``_file``, ``_file_number``, ``_row`` and ``_part``


class Answer(NamedTuple):
    """The result of a query."""

    columns: list[str]
    rows: list[list[Any]]
    is_cut: bool = False  #: rows beyond the limit were left out
    n_rows: int = 0  #: rows of a file, or all rows where they are counted
    file: str | None = None  #: path of the rows, in the scratch folder; the caller removes it
    seconds: float = 0.0
    fault: str | None = None  #: why there is no result
    error: SetupError | None = None  #: raised if the release or the machine is at fault


class Running(NamedTuple):
    """A running or waiting query."""

    answer: Future[Answer]
    stopped: Event

    def stop(self) -> None:
        """Removes it from the queue, or ends its process."""
        self.stopped.set()
        self.answer.cancel()


class Sandbox:
    """A process that answers queries one after another. The first query starts it.

    Args:
        paths: folders of the releases that are queried.
    """

    def __init__(self, paths: Sequence[str], limits: Limits = Limits()) -> None:  # noqa: B008  immutable
        self._limits = limits
        self._turn = Lock()
        self._running: dict[str, Running] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="queries")
        self._scratch = TemporaryFolder()
        self._guard: Guard | None = None
        has_network = any("://" in path for path in paths)
        self._confinement = Confinement(
            writes=(self._scratch.name,),
            # Credentials of stores may be anywhere, so a process that reads from stores may read everything.
            reads=None if has_network else tuple(os.path.realpath(path) for path in paths),
            has_network=has_network,
            largest_file_bytes=None if limits.spill_mb is None else limits.spill_mb * 10**6,
        )

    @property
    def scratch(self) -> str:
        """Returns the folder that the process writes to."""
        return self._scratch.name

    @property
    def missing(self) -> list[str]:
        """Returns the restrictions that the kernel cannot enforce. The other layers still apply."""
        return missing_restrictions(landlock_version())

    def submit(
        self, query: str, sources: Sequence[QueriedRelease], *, name: str = "", form: ResultForm | None = None
    ) -> Running:
        """Queues a query on the tables of releases.

        Args:
            name: identifies the query for ``stop``.
            form: the form of a file with all rows; None returns the first rows as values.

        Raises:
            RecordError: ``busy`` if the maximum number of queries is waiting.
        """
        whole = [
            source._replace(path=os.path.abspath(source.path) if "://" not in source.path else source.path)
            for source in sources
        ]
        task = {
            "query": query,
            "sources": [source._asdict() for source in whole],
            "limits": self._limits._asdict(),
            "form": form,
            "file": os.path.join(self._scratch.name, f"result-{secrets.token_hex(8)}"),
        }
        with self._turn:
            if len(self._running) >= MOST_QUERIES:
                raise RecordError(
                    "busy", f"{MOST_QUERIES} queries are running or waiting; run yours again in a few seconds"
                )
            stopped = Event()
            running = Running(self._thread.submit(self._answer, task, stopped), stopped)
            self._running[name] = running
        running.answer.add_done_callback(lambda _: self._forget(name, running))
        return running

    def stop(self, name: str) -> None:
        """Stops the query with a name if it is running or waiting."""
        running = self._running.get(name)
        if running is not None:
            running.stop()

    def close(self) -> None:
        """Ends the process and all queries."""
        for running in list(self._running.values()):
            running.stop()
        if self._guard is not None:
            self._guard.close()
        self._thread.shutdown()
        self._scratch.cleanup()

    def _forget(self, name: str, running: Running) -> None:
        with self._turn:
            if self._running.get(name) is running:
                del self._running[name]

    def _answer(self, task: dict[str, Any], stopped: Event) -> Answer:
        if stopped.is_set():
            return Answer([], [], fault="Stopped.")
        if self._guard is None:
            self._guard = Guard(
                f"{__name__}:answer",
                beat_path=os.path.join(self._scratch.name, "beat"),
                scratch=self._scratch.name,
                page_timeout_s=self._limits.longest_s,
                memory_bytes=self._limits.process_mb * 10**6,
                confinement=self._confinement,
            )
        begun = time.perf_counter()
        try:
            found = self._guard.run(task, stopped=stopped)
        except SetupError as error:
            return Answer([], [], fault=str(error), error=error)
        except WorkerDiedError as death:
            remove_left_behind(self._scratch.name)  # what it had spilled
            with suppress(FileNotFoundError):
                os.remove(task["file"])
            return Answer([], [], fault=self._reason(death))
        return Answer(**found, seconds=time.perf_counter() - begun)

    def _reason(self, death: WorkerDiedError) -> str:
        if death.kind == "stopped":
            return "Stopped."
        if death.kind == "timeout":
            return f"Stopped: it took more than {self._limits.longest_s:g} s."
        if death.kind == "error":
            return f"Failed: {death.detail.splitlines()[-1] if death.detail else 'its process ended'}"
        return _TOO_MUCH_MEMORY


_TOO_MUCH_MEMORY = "Stopped: it took too much memory."


def answer(task: Mapping[str, Any], beat: Beat) -> dict[str, Any]:
    """Returns the result of a query as JSON values. Runs in the separate process."""
    import duckdb

    beat.enter(1)
    sources, limits = [QueriedRelease(**source) for source in task["sources"]], Limits(**task["limits"])
    reads = [source.path for source in sources]
    with connected(reads=reads, memory_mb=limits.memory_mb, threads=limits.threads, spill_mb=limits.spill_mb) as db:
        macros: set[str] = set()
        for source in sources:
            kind = kind_of(read_content(source.path), source.path, KINDS)
            add_tables(db, kind.declared, source.tables, source.path, schema=source.schema, places=source.has_places)
            macros.update(macro.name for macro in add_macros(db, source.tables, schema=source.schema))
        try:
            found = run_query(db, task["query"], macros=macros)
            if task["form"] is not None:
                n_rows = write_result(found, task["file"], task["form"])
                return {"columns": list(found.columns), "rows": [], "n_rows": n_rows, "file": task["file"]}
            rows = found.limit(limits.most_rows + 1).fetchall()
            is_cut = len(rows) > limits.most_rows
            if is_cut and limits.counts_rows:
                ((n_rows,),) = found.aggregate("count(*)").fetchall()
            else:
                n_rows = len(rows)
        except MemoryError:
            return _fault(_TOO_MUCH_MEMORY)
        except (ValueError, duckdb.Error) as error:
            with suppress(FileNotFoundError):
                os.remove(task["file"])
            return _fault(str(error))
        return {
            "columns": list(found.columns),
            "rows": [[_plain(value) for value in row] for row in rows[: limits.most_rows]],
            "is_cut": is_cut,
            "n_rows": n_rows,
        }


def _fault(message: str) -> dict[str, Any]:
    return {"columns": [], "rows": [], "fault": message}


def _plain(value: Any) -> Any:
    """Returns a value as JSON; long texts are truncated."""
    if isinstance(value, list):
        return [_plain(inner) for inner in value[:100]]
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if value is None or isinstance(value, (bool, int, float)):
        return value
    text = str(value)
    return text if len(text) <= _CELL_CHARS else f"{text[:_CELL_CHARS]}…"
