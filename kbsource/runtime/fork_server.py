"""Starts processes as forks of a server, so that they need not import again what the server has imported.

A process with several threads must not be forked, because the fork inherits locks that other threads hold, such as
those of gRPC, and nothing releases them. A command therefore forks the server while it still has one thread, after it
has imported everything that its processes need. The server never starts a thread and never opens a channel. It forks a
process for each request of the command or of one of its forks.

Protocol: a request is one byte on a socket that the command and its forks share. With it come file descriptors: the
control socket of the new process, a pipe that contains the function and its values as JSON, and perhaps the standard
input, output and error. On the control socket, the server sends the process id, and finally the exit code. If it
receives a byte, or if the other end is closed, it kills the process. So no process outlives the one that requested it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, NoReturn

from kbsource.runtime.imports import hold_collector, release_collector

_COMMAND = "from kbsource.runtime.fork_server import main; main({}, {!r})"
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15  # prctl(2)
_BYTE = b"\0"
_FILES = 5  # maximum number of file descriptors in a request


class ServerGoneError(Exception):
    """The fork server has ended, and its forks with it."""


class Fork:
    """A process that the server forked. It is killed if this object is deleted before ``wait`` has returned."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self._answers = control, control.makefile("rb")
        self.pid = self._number()

    def kill(self) -> None:
        """Kills the process, if it is still running."""
        with contextlib.suppress(OSError):  # the server is gone, and the process with it
            self._control.send(_BYTE)

    def wait(self) -> int:
        """Waits for the end of the process, and returns its exit code; as in ``subprocess``, it is negative for a
        signal.

        Raises:
            ServerGoneError: the server has ended before the process.
        """
        try:
            return self._number()
        finally:
            self._answers.close()
            self._control.close()

    def _number(self) -> int:
        with contextlib.suppress(ConnectionError):
            if line := self._answers.readline():
                return int(line)
        raise ServerGoneError("the fork server is gone")


class ForkServer:
    """The server, as seen by the process that started it or by one of its forks."""

    def __init__(
        self,
        requests: socket.socket,
        pid: int,
        *,
        alive: socket.socket | None = None,
        wait: Callable[[], int] | None = None,
    ) -> None:
        """See ``forked_server`` and ``new_server``.

        Args:
            requests: socket for requests.
            pid: process id of the server.
            alive: the server ends when this socket is closed; None in a fork of the server.
            wait: waits for the end of the server and returns its exit code; None in a fork of the server.
        """
        self.pid = pid
        self._requests, self._alive, self._wait = requests, alive, wait
        self._lock = threading.Lock()
        self._code: int | None = None

    def fork(self, function: str, values: Mapping[str, Any], *, name: str, files: Sequence[int] = ()) -> Fork:
        """Starts a process with the folder, the import path and the environment of this process.

        Args:
            function: ``module:name`` of a function of ``values``; the process ends with it.
            values: JSON values.
            name: name of the process in ``ps`` and ``top``, at most 15 characters.
            files: its standard input, output and error; empty for those of the server.

        Raises:
            ServerGoneError: the server has ended.
        """
        request = {"function": function, "values": values, "name": name}
        request |= {"environment": dict(os.environ), "path": sys.path, "folder": os.getcwd()}
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        try:
            with open(write, "wb") as pipe:
                with open(read, "rb"), theirs:  # afterwards, only the new process can read the pipe
                    socket.send_fds(self._requests, [_BYTE], [theirs.fileno(), read, *files])
                pipe.write(json.dumps(request).encode())
        except OSError as error:
            ours.close()
            raise ServerGoneError("the fork server is gone") from error
        return Fork(ours)

    def end(self) -> int:
        """Ends the server and its forks, and returns its exit code."""
        if self._alive is None or self._wait is None:
            raise ValueError("only the process that started the server can end it")
        with self._lock:
            if self._code is None:
                self._alive.close()
                self._requests.close()
                self._code = self._wait()
        return self._code


_server: ForkServer | None = None


def running_server() -> ForkServer | None:
    """Returns the server that this process started or of which it is a fork; None if there is none, or if it is known
    to be gone.
    """
    return _server


def forget_server(gone: ForkServer) -> None:
    """Makes this process stop using a server that is gone."""
    global _server
    if _server is gone:
        _server = None


def n_threads() -> int:
    """Returns the number of threads of this process, including those of libraries that the system can list."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def forked_server() -> ForkServer | None:
    """Forks this process; the fork becomes the server. Returns None, and does not fork, if this process has a server or
    several threads.
    """
    if _server is not None or n_threads() != 1:
        return None
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # otherwise each fork might write it again
    _open_standard_files()
    (ours, theirs), (alive, watched) = socket.socketpair(), socket.socketpair()
    gc.freeze()  # the garbage collector of a fork would write to shared memory
    if (pid := os.fork()) == 0:
        alive.close()
        with _Leaving():
            _Server(ours, theirs, watched).serve()
    theirs.close()
    watched.close()
    return _known(ForkServer(ours, pid, alive=alive, wait=partial(_wait_for, pid)))


def _wait_for(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _open_standard_files() -> None:
    """Opens standard input, output and error if they are closed, so that no other file gets their numbers."""
    while (file := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(file)


def new_server(prepare: str) -> ForkServer:
    """Starts a server in a new interpreter, for a process that has several threads.

    Args:
        prepare: ``module:name`` of a function without arguments, which imports what the forks need.
    """
    (ours, theirs), (alive, watched) = socket.socketpair(), socket.socketpair()
    with theirs, watched:
        files = [ours.fileno(), theirs.fileno(), watched.fileno()]
        command = [sys.executable, "-P", "-c", _COMMAND.format(files, prepare)]
        environment = {**os.environ, "PYTHONPATH": import_path()}
        process = subprocess.Popen(command, env=environment, pass_fds=files)
    return _known(ForkServer(ours, process.pid, alive=alive, wait=process.wait))


def _known(server: ForkServer) -> ForkServer:
    global _server
    _server = server
    atexit.register(server.end)
    return server


def import_path() -> str:
    """Returns the ``PYTHONPATH`` of a process that imports from the same folders as this one, and from no others."""
    return os.pathsep.join(path or os.getcwd() for path in sys.path)


def main(files: Sequence[int], prepare: str) -> None:
    """Becomes the server of ``new_server``."""
    hold_collector()
    for file in files:
        os.set_inheritable(file, False)
    _named(prepare)()
    release_collector()
    with _Leaving():
        _Server(*(socket.socket(fileno=file) for file in files)).serve()


def end_with_parent(parent: int) -> None:
    """Makes the system kill this process as soon as its parent is gone, so that it cannot write into the folder of a
    later job.

    Args:
        parent: process id of the parent. It must be known from before this process started, because the parent may
            already be gone.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit(1)  # the parent was already gone


def _name_process(name: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NAME, name.encode())


class _Server:
    """The server in its own process."""

    def __init__(self, ours: socket.socket, requests: socket.socket, alive: socket.socket) -> None:
        self._ours, self._requests, self._alive = ours, requests, alive
        self._pid = os.getpid()
        self._controls: dict[int, socket.socket] = {}  # of running forks, by process id
        self._watched: dict[int, int] = {}  # process ids by the numbers of control sockets whose other end is open
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)

    def serve(self) -> NoReturn:
        """Serves until the process that started it is gone."""
        # Ctrl-C is sent to the whole process group; the command handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        _name_process("kbsource-server")
        while True:
            poll = select.poll()
            for file in (self._alive.fileno(), self._requests.fileno(), self._woken, *self._watched):
                poll.register(file, select.POLLIN)
            ready = {file for file, _ in poll.poll()}
            if self._alive.fileno() in ready:
                self._end()
            for file in ready & self._watched.keys():
                self._control(self._watched[file])
            if self._woken in ready:
                os.read(self._woken, 1 << 12)
                self._reap()
            if self._requests.fileno() in ready:
                self._fork()

    def _end(self) -> NoReturn:
        for pid in self._controls:
            os.kill(pid, signal.SIGKILL)
        for pid in self._controls:
            os.waitpid(pid, 0)
        os._exit(0)

    def _control(self, pid: int) -> None:
        """Kills a fork if its owner requests this or is gone."""
        control = self._controls[pid]
        with contextlib.suppress(ConnectionError):
            if control.recv(1):
                os.kill(pid, signal.SIGKILL)
                return
        del self._watched[control.fileno()]
        os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Sends the exit codes of forks that have ended."""
        while self._controls and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with self._controls.pop(ended[0]) as control:
                self._watched.pop(control.fileno(), None)
                _send_number(control, os.waitstatus_to_exitcode(ended[1]))

    def _fork(self) -> None:
        _, files, _, _ = socket.recv_fds(self._requests, 1, _FILES)
        control, request, *standard = files
        if (pid := os.fork()) == 0:
            with _Leaving():
                self._become(control, request, standard)
        for file in (request, *standard):
            os.close(file)
        self._controls[pid] = socket.socket(fileno=control)
        self._watched[control] = pid
        _send_number(self._controls[pid], pid)

    def _become(self, control: int, request_file: int, standard: Sequence[int]) -> None:
        """Runs the requested function in a new fork, and ends the process."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        end_with_parent(self._pid)
        for number, file in enumerate(standard):
            os.dup2(file, number)
        for file in (control, *standard, self._woken, self._wake):
            os.close(file)
        for end in (self._requests, self._alive, *self._controls.values()):
            end.close()
        with open(request_file, "rb") as pipe:
            request = json.load(pipe)
        _name_process(request["name"])
        os.chdir(request["folder"])
        sys.path[:] = request["path"]
        os.environ.clear()
        os.environ.update(request["environment"])
        global _server
        _server = None if standard else ForkServer(self._ours, self._pid)
        if standard:  # a guarded process must not be able to start others
            self._ours.close()
        _named(request["function"])(request["values"])


class _Leaving:
    """Ends a fork as the interpreter would end, without the exit functions that the process before the fork had."""

    def __enter__(self) -> None:
        atexit._clear()
        atexit.register(weakref.finalize._exitfunc)  # type: ignore[attr-defined]  # for finalizers of the fork

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        code = 0
        if isinstance(error, SystemExit):
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        elif error is not None:
            os.write(2, "".join(traceback.format_exception(error)).encode("utf-8", "replace"))
            code = 1
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
        atexit._run_exitfuncs()
        os._exit(code)


def _send_number(control: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # the process that requested it is gone
        control.send(b"%d\n" % number)


def _named(place: str) -> Callable[..., Any]:
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function
