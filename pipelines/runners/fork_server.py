"""Workers of the local runner: forks of a process with one thread that has imported Beam, the fork server.

A command forks the fork server from itself, before its first thread, so Beam is imported once. Where that is too late,
as in a program that imports kbsource, the fork server is a new process that imports Beam.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextvars import ContextVar
from functools import cache

from kbsource.runtime.guard import import_path

_COMMAND = "from pipelines.runners.local_worker import main; main({})"


class ForkServer:
    """The process that forks workers; it ends together with this process."""

    def __init__(self, serve: Callable[[int], None] | None = None) -> None:
        """Starts the process.

        Args:
            serve: serves this object on a socket, given by its number, in a fork of this process; None to do so in a
                new process.
        """
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = self._started(theirs) if serve is None else self._forked(serve, theirs)
        self._lock = threading.Lock()
        self._codes: list[Future[int]] = []
        self._code: int | None = None  # exit code of the server, after its end
        atexit.register(self._end)
        self._listener = threading.Thread(target=self._listen, name="fork server", daemon=True)
        self._listener.start()

    def _started(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-c", _COMMAND.format(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": import_path()}
        return subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])

    def _forked(self, serve: Callable[[int], None], theirs: socket.socket) -> _Fork:
        def serve_driver() -> None:
            self._socket.close()
            serve(theirs.detach())

        return _Fork(serve_driver)

    @property
    def is_gone(self) -> bool:
        """Returns whether the process has ended."""
        return self._code is not None

    def run(self, environment: Mapping[str, str]) -> int:
        """Runs a worker to its end, with the folder and the environment of this process, and returns its exit code."""
        request = {"environment": {**os.environ, **environment}, "path": sys.path, "folder": os.getcwd()}
        with self._lock:
            if self._code is not None:
                return self._code
            code: Future[int] = Future()
            self._codes.append(code)
            with contextlib.suppress(ConnectionError):  # ``_listen`` notices that the other end is closed
                self._socket.sendall(json.dumps(request).encode() + b"\n")
        return code.result()

    def _listen(self) -> None:
        with self._socket, self._socket.makefile("rb") as told, contextlib.suppress(ConnectionError):
            for line in told:
                number, code = map(int, line.split())
                self._codes[number].set_result(code)
        with self._lock:
            self._code = self._process.wait() or 1
            for ended in self._codes:  # its forks end with it
                if not ended.done():
                    ended.set_result(self._code)

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()


class _Fork:
    """A fork of this process, which calls a function and ends."""

    def __init__(self, function: Callable[[], None]) -> None:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self._lock = threading.Lock()
        self._code: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            code = 1
            try:
                function()
                code = 0
            finally:
                if code:
                    sys.excepthook(*sys.exc_info())
                os._exit(code)  # what this process does at its end is not for its forks

    def kill(self) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self) -> int:
        """Returns the exit code, as ``subprocess.Popen.wait`` does."""
        with self._lock:
            if self._code is None:
                self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
            return self._code


_serve: ContextVar[Callable[[int], None] | None] = ContextVar("serve", default=None)


@cache
def _started() -> ForkServer:
    return ForkServer(_serve.get())


def fork_server() -> ForkServer:
    """Returns the fork server of this process, and starts it on the first call."""
    if _started().is_gone:
        _started.cache_clear()
    return _started()


def fork_early() -> None:
    """Forks the fork server from this process, which must have imported Beam, and must not have begun a thread or
    opened a channel of gRPC, whose locks forks would inherit.
    """
    from pipelines.runners import local_worker

    token = _serve.set(local_worker.main)
    try:
        fork_server()
    finally:
        _serve.reset(token)
