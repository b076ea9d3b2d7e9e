"""The command line as a process of its own: it gives its exit code, all that it prints, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pipelines.cli import main
from tests.support import mini_wiki
from tests.support.real_data import ROOT

MODULE = [sys.executable, "-m", "pipelines.cli"]
ENDS_BADLY = "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.__cxa_atexit(libc.abort, None, None)\n"
"""Of a module that every interpreter imports: what is destroyed after the interpreter's own end aborts the process, as
threads of Arrow do now and then."""


def script() -> list[str]:
    """Gives what the installed command does."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        module, _, function = tomllib.load(file)["project"]["scripts"]["kbsource"].partition(":")
    return [sys.executable, "-c", f"import sys; from {module} import {function}; sys.exit({function}())"]


def replaced(body: str) -> list[str]:
    """Gives the installed command with a body of its own in place of the command line's."""
    return [*script()[:2], f"import pipelines.cli\ndef body(**_):\n{body}\npipelines.cli.main = body\n{script()[2]}"]


def environment(*folders: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return {**inherited, "PYTHONPATH": os.pathsep.join(str(folder) for folder in (*folders, ROOT))}


def run(command: list[str], *folders: Path) -> tuple[int, str, str]:
    ended = subprocess.run(command, env=environment(*folders), capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("command", [MODULE, script()], ids=["module", "script"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["show", "{release}", "12"], 0),
        (["show", "{release}", "No such page"], 1),
        (["show", "nowhere", "12"], 2),
        (["--version"], 0),
        (["show"], 2),
    ],
)
def test_how_libraries_end_changes_no_exit_code(
    release: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    arguments: list[str],
    code: int,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(ENDS_BADLY)
    arguments = [argument.replace("{release}", str(release)) for argument in arguments]
    try:
        inside = main(arguments)
    except SystemExit as ended:
        inside = int(ended.code or 0)
    printed = capsys.readouterr()

    assert run([*command, *arguments], tmp_path) == (code, printed.out, printed.err)
    assert inside == code


@pytest.mark.parametrize(("place", "name"), [("pipelines.commands", "kbsource"), ("pyarrow", "kbsource show")])
def test_an_interrupt_while_it_loads_leaves_no_traceback(place: str, name: str, tmp_path: Path) -> None:
    interrupts = f"if name == {place!r}:\n            raise KeyboardInterrupt"
    finder = f"class Finder:\n    def find_spec(self, name, *rest):\n        {interrupts}\n"
    (tmp_path / "sitecustomize.py").write_text(f"import sys\n{finder}sys.meta_path.insert(0, Finder())\n")
    assert run([*script(), "show", "nowhere", "12"], tmp_path)[::2] == (130, f"\n{name}: interrupted\n")


def test_all_that_was_printed_arrives() -> None:
    code, printed, _ = run(replaced("    print('0123456789' * 100_000)\n    return 1"))

    assert (code, printed) == (1, "0123456789" * 100_000 + "\n")


LATE = """
    import atexit, logging.handlers, multiprocessing, tempfile, threading, time
    global folder
    folder = tempfile.TemporaryDirectory()
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,), daemon=True)
    child.start()
    log = logging.getLogger("late")
    log.addHandler(logging.handlers.MemoryHandler(9, target=logging.StreamHandler()))
    log.error("logged")
    atexit.register(print, "called back")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    print(folder.name, child.pid)
    return 0
"""


def test_threads_and_clean_ups_come_to_their_end() -> None:
    code, printed, errors = run(replaced(LATE))

    first, *later = printed.splitlines()
    folder, pid = first.split()
    assert (code, later, errors) == (0, ["thread", "called back"], "logged\n")
    assert not Path(folder).exists()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.slow
def test_a_build_leaves_no_process_and_no_temporary_folder(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    build = ["build", f"--dump={mini_wiki.MULTISTREAM}", f"--output={tmp_path / 'release'}", "--max-rejects=0.05"]
    command = [*MODULE, *build, "--workers=2"]
    variables = {**environment(), "TMPDIR": str(temporary)}
    with subprocess.Popen(command, env=variables, process_group=0, stderr=subprocess.PIPE, text=True) as process:
        _, errors = process.communicate()

    assert process.returncode == 0, errors
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "code"), [("12", 0), ("No such page", 1)])
def test_a_reader_that_has_had_enough_changes_nothing(release: Path, page: str, code: int) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [*MODULE, "show", str(release), page]
    ended = subprocess.run(command, env=environment(), stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)

    assert ended.returncode == code
    assert "BrokenPipe" not in ended.stderr


def test_a_standard_output_that_is_closed_is_none(release: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *MODULE, "show", str(release), "12"]

    assert run(closed) == (0, "", "")


@pytest.mark.parametrize("arguments", [["show", "{release}", "12"], ["show", "--help"]])
def test_output_that_finds_no_room_is_a_fault_of_the_set_up(release: Path, arguments: list[str]) -> None:
    arguments = [argument.replace("{release}", str(release)) for argument in arguments]
    with open("/dev/full", "w") as full:
        command = [*MODULE, *arguments]
        ended = subprocess.run(command, env=environment(), stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 2
    assert ended.stderr.startswith("kbsource")
    assert "No space left on device. The disk is full. Make room" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        ("raise RuntimeError('a defect')", 1, "RuntimeError: a defect"),
        ("raise SystemExit('said at last')", 1, "said at last"),
        ("raise SystemExit", 0, ""),
        ("raise KeyboardInterrupt", 130, "kbsource: interrupted"),
    ],
)
def test_what_else_ends_a_process_has_its_exit_code_too(tmp_path: Path, fault: str, code: int, said: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(ENDS_BADLY)

    found, _, errors = run(replaced(f"    {fault}"), tmp_path)

    assert found == code
    assert errors.rstrip().endswith(said)


@pytest.mark.slow
def test_what_is_typed_and_printed_is_utf_8_in_any_locale(release: Path) -> None:
    plain = {**environment(), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    plain.pop("PYTHONIOENCODING", None)
    command = [*MODULE, "show", str(release), "Élodie Nobody"]

    ended = subprocess.run(command, env=plain, capture_output=True, check=False)

    assert ended.returncode == 1
    assert "no page for 'Élodie Nobody'".encode() in ended.stderr


def test_an_argument_in_another_encoding_is_refused(release: Path) -> None:
    command = [*map(str.encode, MODULE), b"show", str(release).encode(), "Élodie".encode("latin-1")]

    ended = subprocess.run(command, env=environment(), capture_output=True, check=False)

    assert ended.returncode == 2
    assert b"this argument is not valid UTF-8" in ended.stderr
