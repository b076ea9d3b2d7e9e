"""What the commands share: how each is declared, and how tables of facts are printed."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.options.fields import Flags, add_flags

_NARROWEST, _WIDEST = 40, 100


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
        describe: declares what ``--help`` shows instead, by what else is typed; None where it shows all.
        needs: extra of kbsource that brings all that it imports; see ``extras.missing_extra``.
        parts: commands of which one is typed behind its name; see ``command_group``.
    """

    name: str
    summary: str
    description: str
    examples: tuple[str, ...]
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    takes_beam_flags: bool = False
    describe: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None
    parts: tuple[Command, ...] = ()
    needs: str = "align"

    def add_to(self, commands: argparse._SubParsersAction[CommandParser]) -> None:
        """Adds the command's parser."""
        parser = commands.add_parser(
            self.name,
            help=self.summary,
            description=textwrap.fill(self.description, text_width(), break_on_hyphens=False),
            epilog="examples:\n" + "\n".join(f"  {example}" for example in self.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.command = self

    def flags(self) -> list[str]:
        """Gives all flags that it has, and those of its parts."""
        parser = argparse.ArgumentParser(add_help=False)
        self.add_arguments(parser)
        return [*parser._option_string_actions, *(flag for part in self.parts for flag in part.flags())]


class CommandParser(argparse.ArgumentParser):
    """The parser of a command, which declares its arguments once they are needed: those of others cost time."""

    command: Command | None = None

    def declare(self) -> None:
        """Declares its arguments, if that is not done."""
        command, self.command = self.command, None
        if command is not None:
            command.add_arguments(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See argparse."""
        describe = None if self.command is None else self.command.describe
        if describe is not None and not {"-h", "--help"}.isdisjoint(args or ()):
            self.command = None
            describe(self, args)
        self.declare()
        return super().parse_known_args(args, namespace)


def command_group(*, name: str, summary: str, description: str, parts: tuple[Command, ...]) -> Command:
    """Gives a command behind whose name one of others is typed."""

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="part", metavar="NAME", required=True, parser_class=CommandParser)
        for part in parts:
            part.add_to(commands)

    def run(args: argparse.Namespace) -> int:
        return next(part for part in parts if part.name == args.part).run(args)

    examples = tuple(part.examples[0] for part in parts)
    return Command(name, summary, description, examples, add_arguments, run, parts=parts)


def add_run_arguments(parser: Flags) -> None:
    """Declares what every long command takes: the runner, and the form of the summary."""
    add = parser.add_argument
    add(
        "--runner",
        default="local",
        metavar="NAME",
        help="local: one worker; local-multi: one a core; spark, flink, dataflow: a cluster, see "
        "docs/running.md; or a runner of Beam (default: %(default)s)",
    )
    add("--workers", type=int, metavar="N", help="workers for local-multi (default: one per core)")
    add("--json", action="store_true", help="the result as one JSON object")


def add_job_arguments(options: type, parser: argparse.ArgumentParser) -> None:
    """Declares the options of a job, and what every one takes."""
    add_flags(parser, options)
    add_run_arguments(parser)


def run_flags(args: argparse.Namespace) -> list[str]:
    """Gives the flags of Beam that the arguments of ``add_run_arguments`` stand for."""
    from pipelines.runners.presets import beam_flags

    return beam_flags(args.runner, workers=args.workers, beam_args=args.beam_args)


def summary_json(summary: Any, **values: Any) -> str:
    """Gives what a job made as one JSON object: where it is, how long it took, and ``values``."""
    value = {"output": summary.output, "seconds": round(summary.seconds, 1), **values}
    return json.dumps(value, ensure_ascii=False, indent=2)


def input_lines(path: str) -> Iterator[tuple[int, str]]:
    """Gives number and text of the lines of a file, packed or not, or of the standard input for ``-``."""
    if path == "-":
        for number, line in enumerate(sys.stdin, start=1):
            text = line.removeprefix("\ufeff") if number == 1 else line
            if text.strip():
                yield number, text
        return
    from mapping.sources.reading.files_in import iter_lines
    from pipelines.stores.storage import storage_for

    for raw in iter_lines(storage_for(path), path):
        yield raw.line, raw.data.decode("utf-8", "replace")


def text_width() -> int:
    """Gives the most characters of a line of running text: those of the terminal, 100 where it is wider or there is
    none, 40 where it is narrower."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns))


def facts_table(rows: Iterable[tuple[str, Any]]) -> str:
    """Gives names and values in two columns; numbers with thousands separators, to the right.

    >>> print(facts_table([("pages", 1200), ("title", "A")]))
    pages  1,200
    title  A
    """
    shown = [(name, f"{value:,}" if isinstance(value, int) else str(value)) for name, value in rows]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in shown)
