"""The command line: ``kbsource COMMAND …``. This module finds the function of a command, calls it and prints its
summary.

Exit codes: 0 success; 1 a fault in the data; 2 a fault in the set-up; 130 interrupted.
"""

from __future__ import annotations

import atexit
import codecs
import os
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from kbsource import __version__
from kbsource.errors import DataError, SetupError, named_faults
from kbsource.runtime.imports import hold_collector
from pipelines.commands import COMMANDS, GROUPS
from pipelines.extras import missing_extra
from pipelines.terminal import nearest, print_text, printable, styled

HELP = {"-h", "--help"}
OK, DATA_FAULT, SETUP_FAULT, INTERRUPTED = 0, 1, 2, 130


_PATH = """\
# Try everything on a small invented wiki
kbsource demo
# Build a release of pages from a Wikipedia dump
kbsource build DUMP --output releases/wiki
# Check that the release is complete and unchanged
kbsource verify releases/wiki
# Browse it in a web browser
kbsource inspect releases/wiki
# Find the evidence of a dataset, such as FEVER, in the release
kbsource map fever releases/wiki --input FILE --output aligned/fever"""


def overview() -> str:
    """Returns the text of bare ``kbsource``: the five commands to start with, and all commands by group."""
    width = max(map(len, COMMANDS)) + 4
    parts = [
        "usage: kbsource COMMAND …\n\n"
        "Turns Wikipedia dumps into tables with verified offsets, and aligns datasets to\nthem.",
        f"The five commands to start with:\n{textwrap.indent(_PATH, '  ')}",
        *(
            f"{styled(group, 'bold')}\n"
            + "\n".join(f"  {command.name:<{width - 2}}{command.summary}" for command in commands)
            for group, commands in GROUPS.items()
        ),
        "kbsource COMMAND --help describes a command. Every command accepts --json, which\n"
        "prints its summary as JSON, and --storage KEY=VALUE, which sets the endpoint or\n"
        "the credentials of a bucket. Commands that write a file accept --force, which\n"
        "overwrites it. Commands that use a model accept its name on the Hugging Face\n"
        "hub, and --download, which fetches it.",
    ]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None, *, is_whole_process: bool = False) -> int:
    """Runs one command, prints its summary, and returns the exit code.

    Args:
        is_whole_process: this process does nothing else.
    """
    given = list(_arguments() if argv is None else argv)
    if not given or given[0] in HELP:
        print_text(overview())
        return OK
    if given[0] == "--version":
        print_text(f"kbsource {__version__}")
        return OK
    command = COMMANDS.get(given[0])
    if command is None:
        return _refuse(
            "kbsource:",
            f"there is no command {given[0]}.{nearest(given[0], COMMANDS)} Run kbsource to list all commands.",
        )
    code = OK
    try:
        with named_faults():
            for argument in given:
                if not argument.isascii() and any("\ud800" <= letter <= "\udfff" for letter in argument):
                    raise SetupError(f"{argument!a}: this argument is not valid UTF-8; write it in UTF-8")
            from pipelines.app import run_command  # a slow import

            code = run_command(given, is_whole_process=is_whole_process)
            _flush_output()
        return code
    except SetupError as error:
        return _refuse(
            f"kbsource {command.name}:", str(error), DATA_FAULT if isinstance(error, DataError) else SETUP_FAULT
        )
    except ImportError as error:
        missing = missing_extra(error, needs=command.extra)
        if missing is None:
            raise
        return _refuse(f"kbsource {command.name}:", str(missing))
    except BrokenPipeError:
        # The reader has closed the pipe (``| head``); the interpreter must not report an error when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    except KeyboardInterrupt:
        return _refuse(f"\nkbsource {command.name}:", "interrupted", INTERRUPTED)


def _refuse(who: str, why: str, code: int = SETUP_FAULT) -> int:
    sys.stderr.write(f"{styled(who, 'red', sys.stderr)} {printable(why)}\n")
    return code


def _arguments() -> list[str]:
    """Returns the arguments as UTF-8, whatever the locale."""
    return [os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in sys.argv[1:]]


def run_and_leave() -> int:
    """Runs one command in this process, ends the process, and returns its exit code. The process always ends with that
    code.

    Arrow's thread pools outlive the interpreter. The destructors that C++ runs at exit may then abort the process, or
    make it hang, after all its work is done. The process therefore ends before they run: in its first exit callback,
    which Python calls last. By then all other callbacks have run, so loggers, temporary folders, processes of
    ``multiprocessing`` and all non-daemon threads have ended as in any Python process.

    Source: https://github.com/apache/arrow/issues/34314 and 50482, both open in November 2026.
    """
    # Arrow's own allocator does not return freed memory. It holds hundreds of megabytes in a process that uses ten.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")  # the thread of that allocator
    hold_collector()  # ``run_command`` releases it
    ending = _Ending()
    atexit.register(ending.end)
    for stream in (sys.stdout, sys.stderr):
        # Titles and texts may be in any script, whatever the locale, and readers expect UTF-8.
        if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(encoding="utf-8")
    try:
        ending.code = main(is_whole_process=True)
    except SystemExit as leaving:
        ending.code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        raise
    except KeyboardInterrupt:  # before the command started, or after it ended
        _refuse("\nkbsource:", "interrupted")
        ending.code = INTERRUPTED
    return ending.code


class _Ending:
    """Ends the process with an exit code."""

    def __init__(self) -> None:
        self.code = 1  # the interpreter's code when an exception ends the process

    def end(self) -> None:
        try:
            with named_faults():
                _flush_output()
        except BrokenPipeError:
            pass  # as in ``main``
        except (SetupError, OSError) as error:
            if not self.code:  # Otherwise the fault was reported before.
                self.code = SETUP_FAULT
                _refuse("kbsource:", str(error))
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(self.code)


def _flush_output() -> None:
    # The standard output is None in a process that was started without one.
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(run_and_leave())
