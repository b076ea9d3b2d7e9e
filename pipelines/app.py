"""The command line, which cyclopts builds from the functions in ``pipelines.commands``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from inspect import BoundArguments, cleandoc, signature
from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_type_hints

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import UnusedCliTokensError

from kbsource import __version__
from kbsource.errors import SetupError
from kbsource.files import Folder, is_local, use_options
from kbsource.runtime.fork_server import forked_server
from kbsource.runtime.imports import release_collector
from mapping.hub import allow_downloads
from mapping.options import (
    DEFAULTS,
    LONGEST_PATH,
    OUTPUT_FOLDERS,
    Short,
    check_new,
    names_model,
    paths_of,
    with_choices,
    without_unknown,
    written_files,
)
from pipelines.argument_faults import fault_text
from pipelines.commands import COMMANDS, GROUPS
from pipelines.runners.local_worker import IMPORTS, worker_server
from pipelines.runners.presets import LOCAL, UnknownFlagError, import_local_beam, n_usual_workers, quiet_beam
from pipelines.terminal import Summary, nearest, text_width

if TYPE_CHECKING:
    from pipelines.options.shared import RunOptions

HELP = frozenset(("-h", "--help"))
WORTH_WORKERS_BYTES = 100 << 20
"""Size of local inputs above which several worker processes save time, even though each takes seconds to start."""
_COMMON = Group("Every command", sort_key=9)


class _Common(NamedTuple):
    tokens: tuple[str, ...]
    as_json: bool
    stores: tuple[str, ...]
    force: bool
    download: bool


def _common(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    json: Annotated[bool, Parameter(group=_COMMON)] = False,
    storage: Annotated[
        tuple[str, ...],
        Parameter(group=_COMMON, metavar="KEY=VALUE", consume_multiple=False, validator=Short(LONGEST_PATH)),
    ] = (),
    force: Annotated[bool, Parameter(group=_COMMON)] = False,
    download: Annotated[bool, Parameter(group=_COMMON)] = False,
) -> _Common:
    """Options of every command.

    Args:
        json: Print the result as one JSON object.
        storage: Storage option, such as aws_endpoint_url=http://store:9000; may be repeated.
        force: Overwrite existing files; for commands that write a file.
        download: Download models that are named OWNER/NAME and are not in this machine's cache; for commands that use a
            model. No other option opens a connection to a model hub.
    """
    return _Common(tokens, json, storage, force, download)


def make_app() -> App:
    """Returns the whole command line. A command is imported when it is used."""
    app = App(name="kbsource", version=__version__, default_parameter=DEFAULTS, exit_on_error=False, print_error=False)
    for group, commands in GROUPS.items():
        for command in commands:
            app.command(f"pipelines.{command.place}", name=command.name, group=group)
    app.meta.default(_common)
    return app


class ParsedCommand(NamedTuple):
    """A parsed command line: a command with its arguments."""

    function: Callable[..., Summary]
    arguments: BoundArguments
    as_json: bool
    options: Collection[str]  # options of the command

    def call(self) -> Summary:
        """Runs the command."""
        return self.function(*self.arguments.args, **self.arguments.kwargs)


def run_command(given: Sequence[str], *, is_whole_process: bool = False) -> int:
    """Runs a command line, prints its summary, and returns the exit code.

    Args:
        is_whole_process: this process does nothing else, so it may be forked.

    Raises:
        SetupError: raised by ``parse_command`` or by the command.
    """
    quiet_beam()
    job = _job_of(given)
    if is_whole_process and job is not None:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's threads would keep this process from forking
    typed = parse_command(given)
    if typed is None:
        return 0
    run = typed.arguments.arguments.get("run")
    is_run_here = False
    if run is not None and run.runner == LOCAL:
        run = typed.arguments.arguments["run"] = _with_workers(run, typed)
        is_run_here = not run.dry_run
        if is_run_here:
            _import_job(job, has_several=run.workers != 1, is_whole_process=is_whole_process)
    if is_whole_process:
        release_collector()
        if is_run_here:
            forked_server()
    try:
        if run is not None and run.dry_run:
            from pipelines.trial import dry_run  # imports Beam

            hints = get_type_hints(typed.function, include_extras=True)
            summary = dry_run(typed.call, typed.arguments.arguments, hints)
        else:
            summary = typed.call()
    except UnknownFlagError as error:
        raise SetupError(f"{error}{nearest(error.flag, typed.options)}") from error
    summary.show(as_json=typed.as_json)
    return summary.code


def _job_of(given: Sequence[str]) -> str | None:
    """Returns the module of the Beam job of a command; None if the command has none."""
    command = COMMANDS.get(given[0])
    return None if command is None or command.job is None else f"pipelines.jobs.{command.job}"


def _import_job(job: str | None, *, has_several: bool, is_whole_process: bool) -> None:
    """Imports what a local job needs."""
    if has_several and not is_whole_process:
        worker_server()  # imports Beam at the same time as this process
    names = "pipelines.runners.running", *(IMPORTS if has_several else ()), *((job,) if job else ())
    import_local_beam(*names)


def _with_workers(run: RunOptions, typed: ParsedCommand) -> RunOptions:
    """Returns the options of a local run with the number of its workers."""
    if run.workers is not None:
        return run
    n_workers, values = n_usual_workers(), typed.arguments.arguments
    hints = get_type_hints(typed.function, include_extras=True)
    if n_workers == 1 or not _are_large(paths_of(values, hints)):
        return replace(run, workers=1)
    if names_model(values, hints):
        sys.stderr.write(f"Using one worker process; with --workers {n_workers}, each process would load the model.\n")
        return replace(run, workers=1)
    sys.stderr.write(f"Using {n_workers} worker processes; use --workers to set another number.\n")
    return replace(run, workers=n_workers)


def _are_large(paths: Iterable[tuple[str, str]]) -> bool:
    """Returns whether a command's inputs are large: files on a web server, or at least ``WORTH_WORKERS_BYTES`` on this
    machine.

    Inputs in buckets are not measured, because that takes a request for each file.

    Args:
        paths: the files and folders that the command names, each with the name of its option.
    """
    named = [path for name, path in paths if name not in OUTPUT_FOLDERS]
    folders = [Folder.of(path) for path in dict.fromkeys(named) if is_local(path)]
    n_bytes = sum(folder.size(file) for folder in folders for file in folder.files()) + sum(
        folder.size() for folder in folders if os.path.isfile(folder.url)
    )
    return n_bytes >= WORTH_WORKERS_BYTES or any(path.startswith(("http://", "https://")) for path in named)


def parse_command(given: Sequence[str]) -> ParsedCommand | None:
    """Returns the parsed command line; None for ``--help``, which is printed.

    Raises:
        SetupError: the command line is invalid; the message suggests similar names.
    """
    try:
        return _parsed(given)
    except CycloptsError as error:
        raise SetupError(parse_fault(error)) from error


def _parsed(given: Sequence[str]) -> ParsedCommand | None:
    app = make_app()
    names, apps, rest = app.parse_commands([token for token in given if token not in HELP])
    command = apps[-1]
    if HELP & set(given):
        from rich.console import Console

        app.console = Console(width=text_width())
        app.meta(given, result_action="return_value")
        if examples := docstring_examples(command.default_command):
            sys.stdout.write(f"\n{examples}\n")  # The console would wrap these lines, which people paste.
        return None
    if command.default_command is None:
        parts = [name for name in command if not name.startswith("-")]
        odd = f"there is no {rest[0]}.{nearest(rest[0], parts)} " if rest else ""
        raise SetupError(f"{odd}Use one of {', '.join(parts)}. See kbsource {' '.join(names)} --help.")
    common: _Common = app.meta(given, result_action="return_value")
    if common.stores:
        use_options(dict(map(_setting, common.stores)))
    if common.download and not _takes_model(command):
        raise SetupError(f"--download: kbsource {' '.join(names)} uses no model; leave it out.")
    allow_downloads(common.download)
    options, tokens, of_beam = option_names(command), list(common.tokens), list[str]()
    if takes_beam := "run" in signature(command.default_command).parameters:
        tokens, of_beam = without_unknown(tokens, options)
    function, bound, _ = app.parse_args(_chosen(command.default_command, tokens))
    if takes_beam:
        run = bound.arguments.get("run", bound.signature.parameters["run"].default)
        bound.arguments["run"] = replace(run, beam_args=tuple(of_beam))
    written = list(written_files(bound.arguments, get_type_hints(function, include_extras=True)))
    if common.force and not written:
        raise SetupError(
            f"--force: kbsource {' '.join(names)} writes no file, so nothing can be overwritten; leave it out."
        )
    for flag, path in written if not common.force else ():
        if path is not None:
            check_new(flag, path)
    return ParsedCommand(function, bound, common.as_json, options)


def _chosen(function: Callable[..., Any], tokens: list[str]) -> list[str]:
    """Returns the arguments, with ``--as`` expanded to its options if the command has it."""
    for hint in get_type_hints(function).values():
        if (choices := getattr(hint, "CHOICES", None)) is not None:
            return with_choices(tokens, hint, choices)
    return tokens


def _setting(typed: str) -> tuple[str, str]:
    key, equals, value = typed.partition("=")
    if not key or not equals:
        raise SetupError(f"--storage {typed}: give KEY=VALUE, like aws_endpoint_url=http://store:9000")
    return key.replace("-", "_").lower(), value


def option_names(command: App) -> set[str]:
    """Returns the names of a command's options."""
    arguments = command.assemble_argument_collection()
    return {name for argument in arguments for name in argument.names if name.startswith("--")}


def _takes_model(command: App) -> bool:
    """Returns whether a command accepts a model, or a configuration that may name one."""
    arguments = command.assemble_argument_collection()
    return any(argument.parameter.metavar == "MODEL" or "--config" in argument.names for argument in arguments)


def docstring_examples(function: Callable[..., Any] | None) -> str:
    """Returns the section ``Examples`` of a docstring as Markdown."""
    lines = iter(cleandoc(getattr(function, "__doc__", None) or "").split("\n"))
    if not any(line == "Examples:" for line in lines):
        return ""
    return "Examples:\n\n" + "\n".join(takewhile(lambda line: not line or line.startswith(" "), lines)).rstrip()


def completion(shell: Literal["bash", "zsh", "fish"], /) -> Summary:
    """Let the shell complete commands and options.

    Prints a script that makes a shell complete commands, options and paths. The first line of the script tells you what
    to add to your shell's profile.

    Args:
        shell: Shell that runs the script.

    Examples:
        eval "$(kbsource completion bash)"
        kbsource completion fish | source
    """
    line = "kbsource completion fish | source" if shell == "fish" else f'eval "$(kbsource completion {shell})"'
    profile = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/config.fish"}[shell]
    script = make_app().meta.generate_completion(prog_name="kbsource", shell=shell)
    return Summary(stream=(f"# Add this line to {profile}: {line}", script))


def parse_fault(error: CycloptsError) -> str:
    """Returns the message about an invalid command line."""
    chain = error.command_chain or ()
    said = fault_text(error)
    if isinstance(error, UnusedCliTokensError):
        arguments = make_app().parse_commands(list(chain))[1][-1].assemble_argument_collection()
        names = [argument.name.lstrip("-").upper() for argument in arguments if argument.index is not None]
        values = " ".join(map(quote, error.unused_tokens or ()))
        said = (
            f"{values}: kbsource {' '.join(chain)} accepts only {' and '.join(names) or 'options'}. Give other values "
            f"with the name of their option, and put a value that contains spaces in quotes."
        )
    return f"{said} See {' '.join(('kbsource', *chain, '--help'))}."
