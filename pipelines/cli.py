"""The command line: ``kbsource COMMAND …``. A command is a function; this has their names, and prints what they give.

Exit codes: 0 done; 1 the data are not in order; 2 the set-up is not in order; 130 interrupted.
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
from pipelines.commands import COMMANDS, GROUPS
from pipelines.extras import missing_extra
from pipelines.terminal import nearest, print_text, styled, told

HELP = {"-h", "--help"}
OK, DATA_FAULT, SETUP_FAULT, INTERRUPTED = 0, 1, 2, 130


_PATH = """\
kbsource demo                                               all of it, on a small invented wiki
kbsource build DUMP --output releases/wiki                  a dump becomes a release
kbsource verify releases/wiki                               is it what it claims to be?
kbsource inspect releases/wiki                              read it in a browser
kbsource map fever releases/wiki --input … --output fever   the evidence of a dataset, found again in it"""


def overview() -> str:
    """What bare ``kbsource`` says: the natural path, and all commands in groups."""
    width = max(map(len, COMMANDS)) + 4
    parts = [
        "usage: kbsource COMMAND …\n\nBuilds verifiable knowledge sources from Wikipedia dumps.",
        f"The way through:\n{textwrap.indent(_PATH, '  ')}",
        *(
            f"{styled(group, 'bold')}\n" + "\n".join(f"  {one.name:<{width - 2}}{one.summary}" for one in commands)
            for group, commands in GROUPS.items()
        ),
        "kbsource COMMAND --help says more about each. Every command takes --json, for its summary as JSON, and\n"
        "--storage KEY=VALUE, for where a store is. Those that write a file take --force, to overwrite it.",
    ]
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command, prints what it gives, and gives its exit code."""
    given = list(_arguments() if argv is None else argv)
    if not given or given[0] in HELP:
        print_text(overview())
        return OK
    if given[0] == "--version":
        print_text(f"kbsource {__version__}")
        return OK
    command = COMMANDS.get(given[0])
    if command is None:
        return _refuse("kbsource:", f"there is no command {given[0]}.{nearest(given[0], COMMANDS)} kbsource lists all.")
    code = OK
    try:
        with named_faults():
            for argument in given:
                if not argument.isascii() and any("\ud800" <= letter <= "\udfff" for letter in argument):
                    raise SetupError(f"{argument!a}: arguments are read as UTF-8, and this one is not in it")
            from pipelines.app import run_command  # takes a while

            code = run_command(given)
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
        # Whoever read the output has had enough (``| head``); the interpreter must not complain when it
        # flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    except KeyboardInterrupt:
        return _refuse(f"\nkbsource {command.name}:", "interrupted", INTERRUPTED)


def _refuse(who: str, why: str, code: int = SETUP_FAULT) -> int:
    sys.stderr.write(f"{styled(who, 'red', sys.stderr)} {told(why)}\n")
    return code


def _arguments() -> list[str]:
    """What was typed, as UTF-8, whatever the locale."""
    return [os.fsencode(argument).decode("utf-8", "surrogateescape") for argument in sys.argv[1:]]


def run_and_leave() -> int:
    """Runs one command as a process of its own and gives its exit code, with which the process then ends for certain.

    Threads of Arrow's pools outlive the interpreter, and what C++ destroys at the very end may abort the process, or
    keep it for ever, when all is done and written. So it ends before that: by its first exit callback, which is the
    last to be called. The others, and with them loggers, temporary folders and processes of ``multiprocessing``, and
    every thread that is no daemon have come to their end by then, as in any process of Python.

    Source: https://github.com/apache/arrow/issues/34314 and 50482, both open in November 2026.
    """
    # Arrow's own pool keeps what it was given back: hundreds of megabytes in a process that holds ten.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    ending = _Ending()
    atexit.register(ending.end)
    for stream in (sys.stdout, sys.stderr):
        # Titles and texts are in any script, whatever the locale; what reads them wants UTF-8.
        if isinstance(stream, TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(encoding="utf-8")
    try:
        ending.code = main()
    except SystemExit as leaving:
        ending.code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        raise
    except KeyboardInterrupt:  # before a command began, or between its end and this
        _refuse("\nkbsource:", "interrupted")
        ending.code = INTERRUPTED
    return ending.code


class _Ending:
    """The end of the process."""

    def __init__(self) -> None:
        self.code = 1  # as the interpreter has it where an exception ends it

    def end(self) -> None:
        try:
            with named_faults():
                _flush_output()
        except BrokenPipeError:
            pass  # as in ``main``
        except (SetupError, OSError) as error:
            if not self.code:  # else it was said before
                self.code = SETUP_FAULT
                _refuse("kbsource:", str(error))
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(self.code)


def _flush_output() -> None:
    # None is the standard output of a process that was started without one.
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(run_and_leave())
