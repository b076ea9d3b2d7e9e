"""Command lines of commands that need only releases."""

from __future__ import annotations

from pipelines.app import make_app


def required_line(name: str, *, release: str, output: str) -> str:
    """Returns the required arguments of a command that needs only releases and an output."""
    words = []
    for argument in make_app()[name].assemble_argument_collection():
        if argument.required and argument.name != "*":
            is_release = argument.parameter.metavar == "RELEASE"
            assert is_release or argument.name == "--output", f"give arguments of {name} in one of the tables"
            words += [release] if is_release else ["--output", output]
    return " ".join(words)
