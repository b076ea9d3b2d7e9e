"""Messages about arguments of a command line or a configuration that cannot be read. They state what is wrong and what
to give instead.
"""

from __future__ import annotations

from typing import Literal, get_args, get_origin

from cyclopts import CycloptsError, Token
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownOptionError,
    ValidationError,
)

from pipelines.terminal import nearest

_OF_EVERY_COMMAND = ("--json", "--storage", "--force", "--download", "--help")
_KINDS = {int: "Give a whole number.", float: "Give a number.", bool: "Give it without a value."}


def fault_text(error: CycloptsError) -> str:
    """Returns the message about an invalid argument."""
    error.verbose = False
    said = str(error)
    if isinstance(error, MissingArgumentError) and error.argument is not None and not error.argument.tokens:
        # For flattened options, the first required one.
        parts = [part for part in error.argument.children_recursive if part.field_info.required and not part.has_tokens]
        missing = parts[0] if parts else error.argument
        said = f"{missing.name if missing.index is None else missing.name.lstrip('-').upper()} is needed."
        if error.keyword is not None:
            said = f"{error.keyword} needs a value."
    elif isinstance(error, ValidationError) and error.argument is not None and error.argument.tokens:
        typed = ",".join(token.value for token in error.argument.tokens)
        said = f"{error.argument.name} is {typed or 'empty'}. {error.exception_message}"
    elif isinstance(error, UnknownOptionError):
        typed = error.token.keyword or error.token.value
        known = {*_OF_EVERY_COMMAND, *(name for argument in error.argument_collection for name in argument.names)}
        said = f"there is no option {typed}.{nearest(typed, known)}"
    elif isinstance(error, RepeatArgumentError) and error.token.keyword is not None:
        said = f"{error.token.keyword} is given twice; give it only once."
    elif isinstance(error, CoercionError) and error.token is not None:
        said = _misfit(error, error.token) or said
    return said


def _misfit(error: CoercionError, token: Token) -> str:
    """Returns the message about a value of the wrong kind; empty if no option has that kind."""
    name = token.keyword or (error.argument.name.lstrip("-").upper() if error.argument is not None else "")
    wanted = (
        str(error.msg)
        if error.msg is not None
        else next((said for kind, said in _KINDS.items() if error.target_type is kind), "")
    )
    if get_origin(error.target_type) is Literal:
        choices = [str(choice) for choice in get_args(error.target_type)]
        wanted = f"Choose one of {', '.join(choices)}.{nearest(token.value, choices)}"
    return f"{name} is {token.value or 'empty'}. {wanted}" if wanted else ""
