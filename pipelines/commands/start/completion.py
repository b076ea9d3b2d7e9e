"""``kbsource completion``: commands and options completed by the shell."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable

from pipelines.commands.flags.common import Command, CommandParser

_PROFILES = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/config.fish"}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=tuple(_PROFILES), help="the shell whose commands are printed")


def _run(args: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    print(f"# {_PROFILES[args.shell]} gets this line: {profile_line(args.shell)}")
    print(shellcode(["kbsource"], shell=args.shell))
    return 0


def profile_line(shell: str) -> str:
    """Gives what turns completion on, in the words of a shell."""
    return "kbsource completion fish | source" if shell == "fish" else f'eval "$(kbsource completion {shell})"'


def is_asked() -> bool:
    """Says whether it is the shell that asks, while somebody types."""
    return "_ARGCOMPLETE" in os.environ


def answer(parser: argparse.ArgumentParser) -> None:
    """Tells the shell what may come next, and ends the process.

    Args:
        parser: of the whole command line; of its commands the one that is typed declares its options.
    """
    import argcomplete

    _declare(parser, os.environ.get("COMP_LINE", "").split()[1:])
    argcomplete.autocomplete(parser)


def _declare(parser: argparse.ArgumentParser, words: Iterable[str]) -> None:
    for word in words:
        known = next((part for part in parser._actions if isinstance(part, argparse._SubParsersAction)), None)
        if known is None or word not in known.choices:
            return
        parser = known.choices[word]
        if isinstance(parser, CommandParser):
            parser.declare()


COMMAND = Command(
    name="completion",
    summary="let the shell complete commands and options",
    description="Prints what makes a shell complete commands, options and paths. Its first line says which line the\n"
    "shell's profile gets.",
    examples=('eval "$(kbsource completion bash)"', "kbsource completion fish | source"),
    add_arguments=_add_arguments,
    run=_run,
    needs="completion",
)
