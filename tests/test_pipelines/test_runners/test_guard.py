"""The guarded process: what it survives, what it says, and that it never stays behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.runtime import fork_server
from kbsource.runtime.beat import Beat
from kbsource.runtime.confinement import Confinement
from kbsource.runtime.fork_server import ForkServer, new_server, running_server
from kbsource.runtime.guard import Guard, WorkerDiedError
from kbsource.temporary import TemporaryFolder

WORK = "tests.support.guarded_work:work"


@pytest.fixture(scope="module", params=["new interpreter", "fork"])
def server(request: pytest.FixtureRequest) -> Iterator[ForkServer | None]:
    """The fork server, or None, for all tests of this module: they run once with each."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fork_server, "_server", None)
        opened = new_server("tests.support.forked_work:prepare") if request.param == "fork" else None
        yield opened
        if opened is not None:
            opened.end()


@pytest.fixture
def beat_path(tmp_path: Path, server: ForkServer | None) -> str:
    assert running_server() is server
    return str(tmp_path / "beats" / "0.beat")


@pytest.fixture
def guard(beat_path: str) -> Iterator[Guard]:
    with Guard(WORK, beat_path=beat_path, page_timeout_s=0.3, memory_bytes=2 << 30) as opened_guard:
        yield opened_guard


def test_one_process_does_many_tasks(guard: Guard, beat_path: str) -> None:
    answers = [guard.run({"n_pages": n}) for n in (1, 2, 3)]

    assert [answer["n_pages"] for answer in answers] == [1, 2, 3]
    assert {answer["pid"] for answer in answers} == {guard.pid}
    assert guard.pid != os.getpid()


def test_temporary_folders_of_the_process_go_with_its_callers(
    beat_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with TemporaryFolder(str(tmp_path)) as scratch, Guard(WORK, beat_path=beat_path, scratch=scratch) as guard:
        guard.run({"n_pages": 1, "has_folder": True})
        assert list(Path(scratch).glob("kbsource-*"))
    assert not list(tmp_path.glob("kbsource-*"))


@pytest.mark.parametrize(
    ("how", "kind", "detail"),
    [
        ("hang", "timeout", "0.3 s"),
        ("hang in C", "timeout", "0.3 s"),
        ("segfault", "crash", "SIGSEGV"),
        ("exit", "crash", "exit code 3"),
        ("memory", "crash", "bytes of memory"),
        ("raise", "error", "IndexError: list index out of range"),
    ],
)
def test_a_page_that_goes_wrong_is_named_and_the_next_task_gets_a_new_process(
    guard: Guard, beat_path: str, how: str, kind: str, detail: str
) -> None:
    with pytest.raises(WorkerDiedError) as caught:
        guard.run({"n_pages": 5, "bad_page": 4, "how": how})

    assert (caught.value.page, caught.value.kind) == (4, kind)
    assert detail in caught.value.detail
    assert Beat.open(beat_path).read().pages_done == 3
    assert guard.run({"n_pages": 2})["n_pages"] == 2


def test_an_error_is_no_crash_however_libraries_end(
    beat_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fork_server, "_server", None)  # only a new interpreter imports it
    (tmp_path / "sitecustomize.py").write_text(
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.__cxa_atexit(libc.abort, None, None)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    with Guard(WORK, beat_path=beat_path) as guard, pytest.raises(WorkerDiedError) as caught:
        guard.run({"n_pages": 2, "bad_page": 1, "how": "raise"})

    assert caught.value.kind == "error"
    assert caught.value.detail.endswith("IndexError: list index out of range")


def test_a_death_outside_of_pages_names_no_page(guard: Guard, beat_path: str) -> None:
    with pytest.raises(WorkerDiedError) as caught:
        guard.run({"n_pages": 2, "how": "exit"})

    assert (caught.value.page, caught.value.kind) == (0, "crash")


def test_a_process_killed_between_tasks_is_reported(guard: Guard, beat_path: str) -> None:
    guard.run({"n_pages": 1})
    assert guard.pid is not None
    os.kill(guard.pid, signal.SIGKILL)

    with pytest.raises(WorkerDiedError, match="SIGKILL"):
        guard.run({"n_pages": 1})


def test_wrong_set_up_comes_through_and_leaves_the_process_alive(guard: Guard, beat_path: str) -> None:
    with pytest.raises(SetupError, match="no such index; build it first"):
        guard.run({"n_pages": 0, "how": "set-up"})

    assert guard.run({"n_pages": 1})["pid"] == guard.pid


def test_what_the_work_prints_does_not_mix_with_answers(guard: Guard, beat_path: str) -> None:
    assert guard.run({"n_pages": 1, "how": "print"})["n_pages"] == 1


def test_the_process_ends_with_the_guard(beat_path: str) -> None:
    with Guard(WORK, beat_path=beat_path) as guard:
        pid = guard.run({"n_pages": 1})["pid"]

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_new_process_starts_when_the_fork_server_is_gone(beat_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_server, "_server", None)
    server = new_server("tests.support.forked_work:prepare")
    with Guard(WORK, beat_path=beat_path) as own:
        own.run({"n_pages": 1})
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(WorkerDiedError, match="SIGKILL") as caught:
            own.run({"n_pages": 2, "bad_page": 1, "how": "hang"})
        assert caught.value.is_killed
        assert own.run({"n_pages": 1})["n_pages"] == 1
        assert running_server() is None
    server.end()


def test_a_confined_process_is_never_a_fork(beat_path: str, server: ForkServer | None) -> None:
    allowed = Confinement(writes=(os.path.dirname(beat_path),), reads=None, has_network=False, largest_file_bytes=None)
    with Guard(WORK, beat_path=beat_path, confinement=allowed) as guard:
        pid = guard.run({"n_pages": 1})["pid"]
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent == os.getpid()
