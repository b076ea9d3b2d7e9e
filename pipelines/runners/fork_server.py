"""Workers of the local runner: forks of a process that imports Beam at the same time as this one.

This module does not import Beam, so the process can be started before anything else is imported.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from functools import cache

from kbsource.runtime.guard import import_path

_COMMAND = "from pipelines.runners.local_worker import main; main({})"


class ForkServer:
    """The process that forks workers; it ends together with this process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", "-c", _COMMAND.format(theirs.fileno())]
            environment = {**os.environ, "PYTHONPATH": import_path()}
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])
        self._lock = threading.Lock()
        self._codes: list[Future[int]] = []
        self._code: int | None = None  # exit code of the server, after its end
        atexit.register(self._end)
        self._listener = threading.Thread(target=self._listen, name="fork server", daemon=True)
        self._listener.start()

    @property
    def is_gone(self) -> bool:
        """Returns whether the process has ended."""
        return self._code is not None

    def run(self, environment: Mapping[str, str]) -> int:
        """Runs a worker to its end and returns its exit code. The worker has the working folder and the environment of
        this process."""
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


@cache
def _started() -> ForkServer:
    return ForkServer()


def fork_server() -> ForkServer:
    """Returns the fork server of this process, and starts it on the first call."""
    if _started().is_gone:
        _started.cache_clear()
    return _started()
