"""Command lines parsed faster in a process of tests, where each of thousands is parsed as if it were the first."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any

from cyclopts import field_info
from cyclopts.argument import ArgumentCollection, _argument, _collection

_made: dict[Any, ArgumentCollection] = {}


def _from_callable(
    cls: type[ArgumentCollection],
    function: Callable[..., Any],
    *parameters: Any,
    reserved: Iterable[str] = (),
    make: Any = ArgumentCollection._from_callable.__func__,  # type: ignore[attr-defined]  # a class method
    **options: Any,
) -> ArgumentCollection:
    taken = tuple(reserved)
    key = cls, function, parameters, taken, *sorted(options.items())
    if key not in _made:
        _made[key] = make(cls, function, *parameters, reserved=taken, **options)
    return _fresh(_made[key])


def _fresh(made: ArgumentCollection) -> ArgumentCollection:
    """Arguments that no command line was parsed into."""
    copies = {id(argument): copy.copy(argument) for argument in made}
    for argument in copies.values():
        argument.tokens = []
        argument.children = ArgumentCollection([copies[id(child)] for child in argument.children])
    return ArgumentCollection(copies.values())


def parse_faster() -> None:
    """Makes cyclopts remember what it finds out about the function of a command, which is half of its time."""
    _collection._resolve_groups_from_callable = functools.cache(_collection._resolve_groups_from_callable)
    field_info.get_type_hints = functools.cache(field_info.get_type_hints)
    ArgumentCollection._from_callable = classmethod(_from_callable)
    # Once a test has imported pydantic, it would check all values again; commands do not import it.
    _argument.parse_version = lambda _: (1,)
