"""Processes of commands and of jobs: forks of one server for each process of tests, which has imported what they need,
because each of them would take seconds to import it.

Tests of what a command imports, or of how it starts, start a new interpreter instead.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from kbsource.runtime.fork_server import ForkServer, n_threads, new_server, running_server
from kbsource.runtime.guard import Guard
from pipelines.commands import COMMANDS
from tests.support.real_data import ROOT

PREPARE = f"{__name__}:prepare"
"""Imports what commands and jobs import, for ``fork_server.new_server``."""
_IMPORTED_LATE = ("duckdb", "lupa.lua51", "numpy.ma", "pipelines.app", "pipelines.cli")
_TIMEOUT_S = 300


class Ended(NamedTuple):
    """How a command ended."""

    code: int  #: as in ``subprocess``: negative for a signal
    errors: str  #: all that it and its processes printed to standard error


class CommandProcess:
    """A running ``kbsource``, which is killed at the end of the context."""

    def __init__(
        self, arguments: Sequence[str], *, temporary: Path | None = None, file_bytes: int | None = None
    ) -> None:
        """Starts it.

        Args:
            arguments: of ``kbsource``.
            temporary: folder for its temporary files, made if missing; None for the one of this process.
            file_bytes: size above which its processes may write no file; None for no limit.
        """
        if temporary is not None:
            temporary.mkdir(exist_ok=True)
        values = {
            "arguments": [*arguments],
            "temporary": None if temporary is None else str(temporary),
            "file_bytes": file_bytes,
        }
        read, write = os.pipe()
        self._errors = open(read, "rb")  # noqa: SIM115  # closed at the end of the context
        with open(os.devnull, "r+b") as nothing, open(write, "wb") as errors:
            files = (nothing.fileno(), nothing.fileno(), errors.fileno())
            self._fork = server().fork(f"{__name__}:run_given", values, name="kbsource", files=files)
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._code: Future[int] = self._thread.submit(self._fork.wait)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._fork.pid

    def is_running(self) -> bool:
        """Reports whether it has not ended yet."""
        return not self._code.done()

    def wait(self) -> Ended:
        """Waits for its end, and for that of every process that it started."""
        code = self._code.result(timeout=_TIMEOUT_S)
        return Ended(code, self._errors.read().decode())

    def __enter__(self) -> CommandProcess:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_running():
            self._fork.kill()
        self._thread.shutdown()
        self._errors.close()


def run_command(arguments: Sequence[str], *, file_bytes: int | None = None) -> Ended:
    """Runs ``kbsource`` to its end."""
    with CommandProcess(arguments, file_bytes=file_bytes) as command:
        return command.wait()


def server() -> ForkServer:
    """Returns the server of this process, and starts it if necessary."""
    return running_server() or new_server(PREPARE)


def forked_guard(*given: Any, **options: Any) -> Guard:
    """Returns a guard whose process is a fork, where otherwise only those of whole commands are."""
    server()
    return Guard(*given, **options)


def prepare() -> None:
    """Imports what commands import, in the process that becomes the server."""
    # As a command sets them, before Arrow and NumPy are imported.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from pipelines.runners.local_worker import IMPORTS
    from pipelines.runners.presets import import_local_beam, quiet_beam

    quiet_beam()
    jobs = {f"pipelines.jobs.{command.job}" for command in COMMANDS.values() if command.job is not None}
    commands = {f"pipelines.{command.place.partition(':')[0]}" for command in COMMANDS.values()}
    import_local_beam("pipelines.runners.running", *IMPORTS, *sorted(jobs), *sorted(commands), *_IMPORTED_LATE)
    tempfile.tempdir = None  # a fork has the one of its environment
    assert n_threads() == 1


def run_given(values: dict[str, Any]) -> None:
    """Becomes a command in a fork of the server."""
    from pipelines.cli import run_and_leave

    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(ROOT)
    if values["temporary"] is not None:
        os.environ["TMPDIR"] = values["temporary"]
    if values["file_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (values["file_bytes"], values["file_bytes"]))
    sys.argv[1:] = values["arguments"]
    sys.exit(run_and_leave())
