"""The command line: ``kbsource COMMAND …``.

Exit codes: 0 done; 1 the data are not in order; 2 the set-up is not in order; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from kbsource import __version__
from kbsource.errors import SetupError, lasting_fault
from pipelines.commands import (
    build,
    check_dump,
    evaluate,
    export_kilt,
    locate,
    nli,
    passages,
    qampari,
    qampari_contexts,
    qampari_tasks,
    show,
    validate_kilt,
    verify,
    wikidata,
)
from pipelines.commands import map as map_command
from pipelines.commands.common import Command

OK, DATA_FAULT, SETUP_FAULT, INTERRUPTED = 0, 1, 2, 130

COMMANDS: tuple[Command, ...] = (
    check_dump.COMMAND,
    build.COMMAND,
    wikidata.COMMAND,
    verify.COMMAND,
    show.COMMAND,
    export_kilt.COMMAND,
    locate.COMMAND,
    map_command.COMMAND,
    nli.COMMAND,
    validate_kilt.COMMAND,
    passages.COMMAND,
    qampari.COMMAND,
    qampari_tasks.COMMAND,
    qampari_contexts.COMMAND,
    evaluate.COMMAND,
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
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit code."""
    parser = make_parser()
    args, rest = parser.parse_known_args(sys.argv[1:] if argv is None else argv)
    command = next(one for one in COMMANDS if one.name == args.command)
    if rest and not command.takes_beam_flags:
        parser.error(f"{command.name} has no option or argument {rest[0]}")
    args.beam_args = rest
    try:
        return command.run(args)
    except SetupError as error:
        print(f"kbsource {command.name}: {error}", file=sys.stderr)
        return DATA_FAULT if _is_data_fault(error) else SETUP_FAULT
    except BrokenPipeError:
        # Whoever read the output has had enough (``| head``); the interpreter must not complain when it
        # flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (OSError, ValueError) as error:
        fault = lasting_fault(error)
        if fault is None:
            raise
        print(f"kbsource {command.name}: {fault}", file=sys.stderr)
        # What the system says has a number; a damaged table has none.
        return SETUP_FAULT if isinstance(error, OSError) and error.errno else DATA_FAULT
    except KeyboardInterrupt:
        print(f"\nkbsource {command.name}: interrupted", file=sys.stderr)
        return INTERRUPTED


def _is_data_fault(error: SetupError) -> bool:
    from kbsource.assembly import DataError

    return isinstance(error, DataError)


if __name__ == "__main__":
    sys.exit(main())
