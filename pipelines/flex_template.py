"""The entry point of Flex Templates: Dataflow jobs that users start from a form.

The launcher calls this module with the form's values, ``--command=build --dump=gs://… --output=gs://…``. The module
performs the job's checks and submits the pipeline without waiting for it. A form has the options of its command;
``python -m pipelines.flex_template build`` prints them for ``gcloud … --metadata-file``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from cyclopts import Argument

from kbsource.errors import SetupError
from mapping.options import Like, path_like
from pipelines.app import ParsedCommand, make_app, parse_command
from pipelines.runners.clusters import DATAFLOW_RUNNER
from pipelines.runners.running import NotRunError, instead_of_running
from pipelines.terminal import Summary

_COMMAND = "command"
_GOOGLES = r"gs://[^,{}\n]+"
_NOT_IN_FORMS = frozenset(("--runner", "--workers", "--dry-run", "--scratch"))
_OVERVIEW = ["map", "all"]  # This command writes its overview after the datasets.


def arguments_of(command: str) -> list[Argument]:
    """Returns the options of a job's command.

    Raises:
        SetupError: there is no such job, or the job needs a process that waits for its end.
    """
    words = command.split()
    _, apps, rest = make_app().parse_commands(words)
    is_command = not rest and apps[-1].default_command is not None
    found = list(apps[-1].assemble_argument_collection(parse_docstring=True)) if is_command else []
    if not any(argument.name == "--runner" for argument in found) or words == _OVERVIEW:
        raise SetupError(f"{command!r} is not a command that runs one job, such as build, qampari or 'map nq'.")
    return [argument for argument in found if argument.show and argument.name not in _NOT_IN_FORMS]


def metadata(command: str) -> dict[str, Any]:
    """Returns the form of a command. ``gcloud dataflow flex-template build`` calls it the metadata.

    Source: https://cloud.google.com/dataflow/docs/reference/rest/v1b3/TemplateMetadata, 2026-11-24.
    """
    chosen = {
        "name": _COMMAND,
        "label": _COMMAND,
        "helpText": "The job, by the name of its command.",
        "paramType": "ENUM",
        "enumOptions": [{"value": command}],
        "defaultValue": command,
    }
    parameters = [chosen, *map(_parameter, arguments_of(command))]
    app = make_app()
    for word in command.split():
        app = app[word]
    return {
        "name": f"kbsource {command}",
        "description": app.help.partition("\n")[0],
        "parameters": parameters,
    }


def _parameter(argument: Argument) -> dict[str, Any]:
    name, types, metavar = _form_name(argument), set(_types(argument.hint)), argument.parameter.metavar
    validators: Any = argument.parameter.validator
    is_place = path_like in validators and name != "model"  # A model may also be a name on the hub.
    kind: dict[str, Any] = {"paramType": "TEXT"}
    if tuple in types:
        pass  # Several values are separated by commas.
    elif choices := argument.get_choices():
        kind = {"paramType": "ENUM", "enumOptions": [{"value": choice} for choice in choices]}
    elif bool in types:
        kind = {"paramType": "BOOLEAN"}
    elif types & {int, float}:
        kind = {"paramType": "NUMBER"}
    elif is_place:
        of_folder = "GCS_WRITE_FOLDER" if name == "output" else "GCS_READ_FOLDER"
        kind = {"paramType": "GCS_READ_FILE" if metavar == "FILE" else of_folder}
    pattern = _GOOGLES if is_place else None
    pattern = next((like.pattern for like in validators if isinstance(like, Like)), pattern)
    if pattern is not None:
        several = f"{pattern}(,{pattern})*" if tuple in types else pattern
        kind["regexes"] = [f"^({several}){'' if argument.required else '?'}$"]
    said = f"{argument.parameter.help or metavar}{' Separate several values with commas.' * (tuple in types)}"
    optional = {} if argument.required else {"isOptional": True}
    return {"name": name, "label": name.replace("_", " "), "helpText": said, **kind, **optional}


def _form_name(argument: Argument) -> str:
    return _flag(argument)[2:].replace("-", "_")


def _flag(argument: Argument) -> str:
    return next(name for name in argument.names if name.startswith("--"))


def _types(hint: Any) -> Iterator[Any]:
    """Lists the possible types of an option, except None."""
    origin = get_origin(hint)
    if origin in (Annotated, Union, UnionType):
        for part in get_args(hint)[: 1 if origin is Annotated else None]:
            yield from _types(part)
    else:
        yield origin or hint


def form_command(argv: Sequence[str]) -> ParsedCommand:
    """Returns the command line for the values of a form. The runner is Dataflow unless the values name another. Values
    that are not options of the command are passed to Beam.

    >>> command = form_command(["--command=build", "--dump=gs://b/1,gs://b/2", "--output=gs://b/r", "--as_of="])
    >>> command.arguments.args[0].dump
    ('gs://b/1', 'gs://b/2')

    Raises:
        SetupError: a value is wrong.
    """
    given = [argument.partition("=")[::2] for argument in argv]
    command = dict(given).get(f"--{_COMMAND}", "")
    known = {f"--{_form_name(argument)}": argument for argument in arguments_of(command)}
    runner = dict(given).get("--runner", DATAFLOW_RUNNER)
    words = [*command.split(), f"--runner={'dataflow' if runner == DATAFLOW_RUNNER else runner}"]
    taken = (f"--{_COMMAND}", "--runner")
    words += [word for name, value in given if name not in taken for word in _words(name, value, known)]
    found = parse_command(words)
    if found is None:
        raise SetupError("--help is not a field of the form; leave it out.")
    return found


def _words(name: str, value: str, known: dict[str, Argument]) -> Iterator[str]:
    if (argument := known.get(name)) is None:
        yield f"{name}={value}" if value else name
    elif value:  # an empty field is passed as an empty string
        parts = value.split(",") if tuple in _types(argument.hint) else (value,)
        yield from (f"{_flag(argument)}={part}" for part in parts)


def main(argv: Sequence[str] | None = None) -> None:
    """Starts a job without waiting for its end, as launchers require, or prints the form of a command."""
    given = sys.argv[1:] if argv is None else argv
    if not any(argument.startswith("-") for argument in given):
        Summary(values=metadata(" ".join(given))).show(as_json=True)
        return
    try:
        with instead_of_running(lambda pipeline: pipeline.run()):
            form_command(given).call()
    except NotRunError:
        return
    except SetupError as error:
        sys.exit(f"kbsource: {error}")


if __name__ == "__main__":
    main()
