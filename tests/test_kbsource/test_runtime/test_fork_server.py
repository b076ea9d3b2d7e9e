"""The fork server: what its forks inherit, how they end, and that neither it nor they stay behind or hang."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbsource.runtime import fork_server
from kbsource.runtime.fork_server import ForkServer, ServerGoneError, forked_server, new_server, running_server
from tests.support.real_data import ROOT

WORK = "tests.support.forked_work"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ForkServer]:
    monkeypatch.setattr(fork_server, "_server", None)
    opened = new_server(f"{WORK}:prepare")
    yield opened
    opened.end()


def _is_there(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def _wait_for_end(pid: int) -> None:
    until = time.monotonic() + 30
    while _is_there(pid):
        assert time.monotonic() < until, "the process is still there"
        time.sleep(0.01)


def test_a_fork_has_the_folder_the_path_and_the_environment_of_the_process_that_requests_it(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KBSOURCE_SEEN", "x" * 200_000)  # more than a pipe holds
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        files = os.open(os.devnull, os.O_RDONLY), output.fileno(), errors.fileno()
        code = server.fork(f"{WORK}:describe", {"a": 1}, name="kbsource-test", files=files).wait()
        os.close(files[0])
        output.seek(0)
        errors.seek(0)
        shown, noise = output.read().decode(), errors.read()

    facts = [
        str(tmp_path),
        "x" * 200_000,
        str(tmp_path),
        1,
        True,
        True,
        "kbsource-test" if sys.platform == "linux" else "",
    ]
    assert (code, shown, noise) == (0, f"{facts} {{'a': 1}} False\n", b"noise\n")


@pytest.mark.parametrize(("how", "code"), [("return", 0), ("exit", 3), ("raise", 1)])
def test_the_exit_code_of_a_fork_is_that_of_a_program(server: ForkServer, how: str, code: int) -> None:
    with tempfile.TemporaryFile() as errors:
        fork = server.fork(f"{WORK}:leave", {"how": how}, name="test", files=(errors.fileno(),) * 3)
        assert fork.wait() == code
        errors.seek(0)
        assert errors.read().decode().endswith("IndexError: list index out of range\n") == (how == "raise")


def test_exit_functions_of_a_fork_run(server: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "left"
    assert server.fork(f"{WORK}:leave", {"how": "exit function", "path": str(path)}, name="test").wait() == 0
    assert path.exists()


def test_a_fork_is_killed_on_request_and_when_nobody_waits_for_it(server: ForkServer) -> None:
    fork = server.fork(f"{WORK}:leave", {"how": "wait"}, name="test")
    assert _is_there(fork.pid)
    fork.kill()
    fork.kill()
    assert fork.wait() == -signal.SIGKILL
    fork.kill()

    fork = server.fork(f"{WORK}:leave", {"how": "wait"}, name="test")
    pid = fork.pid
    del fork
    gc.collect()
    _wait_for_end(pid)


def test_a_fork_with_threads_gets_further_forks_from_the_server(server: ForkServer, tmp_path: Path) -> None:
    path = tmp_path / "left"
    assert server.fork(f"{WORK}:delegate", {"path": str(path)}, name="test").wait() == 2
    assert path.exists()


def test_many_threads_get_their_forks(server: ForkServer) -> None:
    def code(number: int) -> int:
        fork = server.fork(f"{WORK}:leave", {"how": ("return", "exit", "wait")[number % 3]}, name="test")
        if number % 3 == 2:
            fork.kill()
        return fork.wait()

    with ThreadPoolExecutor(8) as pool:
        codes = list(pool.map(code, range(48)))

    assert codes == [0, 3, -signal.SIGKILL] * 16


def test_nothing_waits_for_a_server_that_was_killed(server: ForkServer) -> None:
    fork = server.fork(f"{WORK}:leave", {"how": "wait"}, name="test")
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(ServerGoneError):
        fork.wait()
    with pytest.raises(ServerGoneError):
        server.fork(f"{WORK}:leave", {"how": "return"}, name="test")
    assert server.end() == -signal.SIGKILL
    if sys.platform == "linux":
        _wait_for_end(fork.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_process_whose_parent_was_gone_before_it_began_ends() -> None:
    program = """
import os
from kbsource.runtime.fork_server import end_with_parent
end_with_parent(os.getppid() + 1)
print("still here")
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, text=True)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_server_that_cannot_import_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_server", None)
    server = new_server("tests.support.forked_work:no_such_function")
    with pytest.raises(ServerGoneError):
        server.fork(f"{WORK}:leave", {"how": "return"}, name="test")
    assert server.end() == 1


def test_forks_end_with_the_process_that_started_the_server(tmp_path: Path) -> None:
    program = f"""
import os, signal
from kbsource.runtime.fork_server import forked_server
server = forked_server()
fork = server.fork("{WORK}:leave", {{"how": "wait"}}, name="test")
print(server.pid, fork.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, text=True)
    assert done.returncode == -signal.SIGKILL
    for pid in map(int, done.stdout.split()):
        _wait_for_end(pid)


def test_a_process_with_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_server", None)
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert forked_server() is None
        assert running_server() is None
    finally:
        over.set()
        thread.join()


def test_forks_inherit_no_lock_that_a_thread_holds_and_no_exit_function(tmp_path: Path) -> None:
    """The process has threads that hold a lock, allocate memory and write, in all its time after the first fork."""
    program = f"""
import atexit, os, sys, threading
from pathlib import Path
from kbsource.runtime.fork_server import forked_server
from tests.support import forked_work

atexit.register(Path({str(tmp_path / "left")!r}).open("a").write, "x")
sys.stdout.write("once ")
server = forked_server()

def work():
    while not over.is_set():
        with forked_work.LOCK:
            [bytearray(1 << 16) for _ in range(20)]

over = threading.Event()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for number in range(60):
    with open(os.devnull) as file, open({str(tmp_path / "shown")!r}, "ab") as shown:
        files = file.fileno(), shown.fileno(), shown.fileno()
        codes.append(server.fork("{WORK}:describe", {{}}, name="test", files=files).wait())
over.set()
print(sum(codes), len(codes))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, timeout=240, text=True)

    assert (done.returncode, done.stdout) == (0, "once 0 60\n")
    assert (tmp_path / "left").read_text() == "x"
    shown = (tmp_path / "shown").read_text().splitlines()
    assert [", 1, True, " in line for line in shown if line != "noise"] == [True] * 60
