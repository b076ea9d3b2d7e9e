"""What the commands share: how each is declared, and how tables of facts are printed."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: as it is typed.
        summary: one line for the list of commands.
        description: what it does, for ``--help``.
        examples: command lines for ``--help``.
        add_arguments: declares its arguments.
        run: does it and gives the exit code.
        takes_beam_flags: further options are passed on to Beam, as ``args.beam_args``.
    """

    name: str
    summary: str
    description: str
    examples: tuple[str, ...]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    takes_beam_flags: bool = False

    def add_to(self, commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        """Adds the command's parser."""
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=self.description,
            epilog="examples:\n" + "\n".join(f"  {example}" for example in self.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.add_arguments(parser)


def facts_table(rows: Iterable[tuple[str, Any]]) -> str:
    """Gives names and values in two columns; numbers with thousands separators, to the right.

    >>> print(facts_table([("pages", 1200), ("title", "A")]))
    pages  1,200
    title  A
    """
    shown = [(name, f"{value:,}" if isinstance(value, int) else str(value)) for name, value in rows]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in shown)
