"""The command line: ``kbsource COMMAND …``.

Exit codes: 0 done; 1 the data are not in order; 2 the set-up is not in order; 130 interrupted.
"""

from __future__ import annotations

import argparse
import atexit
import codecs
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper

from kbsource import __version__
from kbsource.errors import DataError, SetupError, named_faults
from pipelines.commands import (
    amber,
    build,
    campaign,
    evaluate,
    export_kilt,
    locate,
    nli,
    passages,
    validate_kilt,
)
from pipelines.commands import map as map_command
from pipelines.commands.dumps import check_dump, pageviews, wikidata
from pipelines.commands.flags.common import Command, CommandParser
from pipelines.commands.linking import construct as entity_linking
from pipelines.commands.linking import link
from pipelines.commands.qampari import construct as qampari
from pipelines.commands.qampari import contexts as qampari_contexts
from pipelines.commands.qampari import tasks as qampari_tasks
from pipelines.commands.release import publish, report, show, templates, verify
from pipelines.commands.retrieval import beir, search, trec
from pipelines.options.fields import nearest
from pipelines.runners.presets import UnknownFlagError, quiet_beam
from pipelines.stores.object_stores import parse_flags
from pipelines.stores.storage import use_options

OK, DATA_FAULT, SETUP_FAULT, INTERRUPTED = 0, 1, 2, 130

COMMANDS: tuple[Command, ...] = (
    check_dump.COMMAND,
    build.COMMAND,
    wikidata.COMMAND,
    pageviews.COMMAND,
    verify.COMMAND,
    show.COMMAND,
    publish.COMMAND,
    templates.COMMAND,
    report.COMMAND,
    export_kilt.COMMAND,
    locate.COMMAND,
    map_command.COMMAND,
    nli.COMMAND,
    validate_kilt.COMMAND,
    passages.COMMAND,
    search.COMMAND,
    beir.COMMAND,
    trec.COMMAND,
    qampari.COMMAND,
    qampari_tasks.COMMAND,
    qampari_contexts.COMMAND,
    amber.COMMAND,
    entity_linking.COMMAND,
    link.COMMAND,
    evaluate.COMMAND,
    campaign.COMMAND,
)


def make_parser() -> argparse.ArgumentParser:
    """Gives the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="kbsource",
        description="Builds verifiable knowledge sources from Wikipedia dumps.",
        epilog="kbsource COMMAND --help says more about each command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"kbsource {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=CommandParser)
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code."""
    quiet_beam()
    parser = make_parser()
    given = _arguments() if argv is None else argv
    for argument in given:
        if not argument.isascii() and any("\ud800" <= letter <= "\udfff" for letter in argument):
            parser.error(f"{argument!a}: arguments are read as UTF-8, and this one is not in it")
    args, rest = parser.parse_known_args(given)
    command = next(known for known in COMMANDS if known.name == args.command)
    if rest and not command.takes_beam_flags:
        options, rest = parse_flags(rest)
        use_options(options)
    if rest and not command.takes_beam_flags:
        parser.error(f"{command.name} has no option or argument {rest[0]}.{nearest(rest[0], command.flags())}")
    args.beam_args = rest
    code = OK
    try:
        with named_faults():
            code = command.run(args)
            _flush_output()
        return code
    except SetupError as error:
        near = nearest(error.flag, command.flags()) if isinstance(error, UnknownFlagError) else ""
        print(f"kbsource {command.name}: {error}{near}", file=sys.stderr)
        return DATA_FAULT if isinstance(error, DataError) else SETUP_FAULT
    except BrokenPipeError:
        # Whoever read the output has had enough (``| head``); the interpreter must not complain when it
        # flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    except KeyboardInterrupt:
        print(f"\nkbsource {command.name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _arguments() -> list[str]:
    """Gives what was typed as UTF-8, whatever the locale."""
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
        print("\nkbsource: interrupted", file=sys.stderr)
        ending.code = INTERRUPTED
    return ending.code


class _Ending:
    """The end of the process.

    Attributes:
        code: its exit code; 1, as the interpreter has it, where an exception ends it.
    """

    def __init__(self) -> None:
        self.code = 1

    def end(self) -> None:
        try:
            with named_faults():
                _flush_output()
        except BrokenPipeError:
            pass  # as in ``main``
        except (SetupError, OSError) as error:
            if not self.code:  # else it was said before
                self.code = SETUP_FAULT
                print(f"kbsource: {error}", file=sys.stderr)
        with suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()
        os._exit(self.code)


def _flush_output() -> None:
    # None is the standard output of a process that was started without one.
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(run_and_leave())
