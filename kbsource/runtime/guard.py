"""Runs work that may hang, crash or exhaust memory in a supervised process.

A signal cannot interrupt C code, a thread cannot be killed, and a crash ends the whole process. Only a separate process
protects against a page that no parser survives. The process is a fork of the fork server, if this process has one (see
``kbsource.runtime.fork_server``), and otherwise a new interpreter. It runs many tasks, and reports the current page
through ``kbsource.runtime.beat``, so that guarding a page costs two memory writes.

Protocol: one JSON line per task on the standard input, one JSON line per answer on the standard output. The process
ends when its standard input is closed, so it never outlives its supervisor.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Protocol

import msgspec

from kbsource.errors import SetupError, told_fault
from kbsource.runtime.beat import Beat
from kbsource.runtime.confinement import Confinement
from kbsource.runtime.fork_server import Fork, ForkServer, ServerGoneError, forget_server, import_path, running_server
from kbsource.temporary import SCRATCH_VARIABLE

_TAIL_BYTES = 4000
_GUARDED = "kbsource.runtime.guarded:become"
_LONGEST_POLL_S, _STOP_POLL_S = 1.0, 0.1
MEMORY_EXIT_CODE = 70
"""Exit code of a worker that reached its memory limit. (EX_SOFTWARE of sysexits.h.)"""


class WorkerDiedError(Exception):
    """The process ended, or was killed, before it returned a result."""

    def __init__(self, page: int, kind: str, detail: str, *, is_killed: bool = False) -> None:
        super().__init__(f"{kind} at page {page}: {detail}")
        self.page = page  #: number of the page being processed, from 1; 0 between pages
        #: ``timeout`` (one page took too long), ``crash`` (a signal or the memory limit ended it), ``error`` (it raised
        #: an exception) or ``stopped`` (its caller cancelled it)
        self.kind = kind
        self.detail = detail  #: exit code and the end of its standard error
        self.is_killed = is_killed  #: SIGKILL ended it, which comes from outside


class _Process(Protocol):
    """A running process with pipes; as ``subprocess.Popen``."""

    pid: int

    @property
    def stdin(self) -> Any: ...
    @property
    def stdout(self) -> Any: ...
    def kill(self) -> None: ...
    def wait(self) -> int: ...


class _Forked:
    """A process that the fork server started."""

    def __init__(self, server: ForkServer, scratch: Mapping[str, str], argv: Sequence[str], *, errors: int) -> None:
        """Starts the process. Raises ServerGoneError if the server is gone."""
        (tasks, written), (read, answers) = os.pipe(), os.pipe()
        self.stdin: BinaryIO = open(written, "wb", buffering=0)  # noqa: SIM115  # lives as long as the process
        self.stdout: BinaryIO = open(read, "rb", buffering=0)  # noqa: SIM115
        self._code: int | None = None
        with open(tasks, "rb", buffering=0), open(answers, "wb", buffering=0):
            files = tasks, answers, errors
            values = {"argv": [*argv], "environment": {**scratch}}
            try:
                self._fork: Fork = server.fork(_GUARDED, values, name="kbsource-guard", files=files)
            except ServerGoneError:
                self.stdin.close()
                self.stdout.close()
                raise
        self._server, self._lock = server, threading.Lock()
        self.pid = self._fork.pid

    def kill(self) -> None:
        self._fork.kill()

    def wait(self) -> int:
        with self._lock:  # another thread may close the guard
            if self._code is None:
                try:
                    self._code = self._fork.wait()
                except ServerGoneError:
                    forget_server(self._server)
                    self._code = -signal.SIGKILL
            return self._code


class Guard:
    """Runs tasks one after the other in a separate process, which is started with the first task.

    Use it as a context manager: the process ends with the context.
    """

    def __init__(
        self,
        function: str,
        *,
        beat_path: str,
        scratch: str | None = None,
        page_timeout_s: float | None = None,
        memory_bytes: int | None = None,
        confinement: Confinement | None = None,
    ) -> None:
        """Prepares the worker.

        Args:
            function: ``module:name`` of a function of (task, Beat) that does a task and returns a JSON value.
            beat_path: local file for the worker's beat, whose counts continue through all tasks and processes.
            scratch: folder of the caller in which the worker's temporary folders are created.
            confinement: what the worker may do; None if it may do everything that this user may do.
        """
        self._function = function
        self._beat_path = beat_path
        self._beat = Beat.create(beat_path)
        self._scratch = {} if scratch is None else {SCRATCH_VARIABLE: scratch}
        self._page_timeout_s = page_timeout_s
        self._memory_bytes = memory_bytes
        self._confinement = confinement
        self._process: _Process | None = None
        self._is_closed = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the guard

    def __enter__(self) -> Guard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process for good, even if another thread is waiting for its answer."""
        self._is_closed = True
        self._kill()

    @property
    def pid(self) -> int | None:
        """Process id of the worker; None if it is not running."""
        return self._process.pid if self._process else None

    def run(self, task: Mapping[str, Any], *, stopped: threading.Event | None = None) -> Any:
        """Returns the result of the function for the task.

        Args:
            stopped: an event that another thread sets to end the process and the task.

        Raises:
            SetupError: the function raised it, there is a fault of the machine or of a table (see ``named_faults``), or
                the guard was closed.
            WorkerDiedError: the task ended the process. The next call starts a new one.
        """
        if self._is_closed:
            raise SetupError("the guard is closed; make a new one")
        beat = self._beat
        beat.leave()
        process = self._process or self._start()
        line = json.dumps(task).encode() + b"\n"
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            raise self._died(process, beat) from None
        answer = json.loads(self._wait(process, beat, stopped))
        if "fault" in answer:
            raise told_fault(answer["fault"])
        return answer["done"]

    def _start(self) -> _Process:
        argv = [
            self._function,
            self._beat_path,
            str(self._memory_bytes or 0),
            msgspec.json.encode(self._confinement).decode(),
        ]
        server = running_server() if self._confinement is None else None
        if server is not None:
            try:
                self._process = _Forked(server, self._scratch, argv, errors=self._errors.fileno())
                return self._process
            except ServerGoneError:
                forget_server(server)
        environment = {
            # NumPy's linear algebra is not used, and its idle threads waste time.
            "OPENBLAS_NUM_THREADS": "1",
            **os.environ,
            **self._scratch,
            "PYTHONPATH": import_path(),
        }
        # The current folder may be a release from a stranger that contains a Python module.
        command = [sys.executable, "-P", "-m", "kbsource.runtime.guarded", *argv]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment, bufsize=0
        )
        return self._process

    def _wait(self, process: _Process, beat: Beat, stopped: threading.Event | None) -> bytes:
        """Waits for the answer line and returns it. Meanwhile, watches the beat for pages that take too long."""
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN | select.POLLHUP)
        timeout_s = self._page_timeout_s
        interval_s = _LONGEST_POLL_S if timeout_s is None else min(_LONGEST_POLL_S, timeout_s / 4)
        if stopped is not None:
            interval_s = min(interval_s, _STOP_POLL_S)
        seen, since = beat.read().serial, time.monotonic()
        answer = b""
        while True:
            if poll.poll(interval_s * 1000):
                piece = os.read(process.stdout.fileno(), 1 << 16)
                if not piece:
                    raise self._died(process, beat)
                answer += piece
                if answer.endswith(b"\n"):
                    return answer
                continue
            reading, now = beat.read(), time.monotonic()
            if stopped is not None and stopped.is_set():
                self._kill()
                raise WorkerDiedError(reading.page, "stopped", "stopped by its caller")
            if reading.page == 0 or reading.serial != seen:
                seen, since = reading.serial, now
            elif timeout_s is not None and now - since > timeout_s:
                self._kill()
                raise WorkerDiedError(reading.page, "timeout", f"did not finish within {timeout_s:g} s")

    def _died(self, process: _Process, beat: Beat) -> WorkerDiedError:
        code = process.wait()
        if self._is_closed:
            raise SetupError("the guard was closed while its process was running")
        page = beat.read().page
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _TAIL_BYTES))
        tail = self._errors.read().decode("utf-8", "replace").strip()
        self._errors.truncate(0)
        self._errors.seek(0)
        self._kill()
        if code == MEMORY_EXIT_CODE:
            return WorkerDiedError(page, "crash", f"more than {self._memory_bytes} bytes of memory")
        if code == 1:
            return WorkerDiedError(page, "error", tail)
        reason = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        is_killed = code == -signal.SIGKILL
        return WorkerDiedError(page, "crash", f"{reason}\n{tail}" if tail else reason, is_killed=is_killed)

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
