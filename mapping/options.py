"""Options: fields of frozen dataclasses that say what they mean and what they may be.

The options of a job, or of a dataset's reader, are one dataclass beside it. Of its fields those are open to whoever
uses the command line that ``option`` declares; flags, YAML keys and docs/commands.md come from them, see
``pipelines.options.fields``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kbsource.errors import SetupError

_KEY = "option"


@dataclass(frozen=True, slots=True)
class Option:
    """What a field says of itself; the last four come from its name, type and default.

    Attributes:
        help: what it means; the default is added to it, unless it speaks of one.
        flag: as it is typed; by default the field's name with dashes. ``--no-…`` turns off what is on.
        metavar: stands for the value in help.
        choices: values that it takes, with their meanings where this is a mapping; a ``Literal`` says them itself.
        lowest, highest, above, below: bounds of a number; the last two are no values themselves.
        remedy: what to do when a bound is broken, by default ``give at least LOWEST``.
        form, like: pattern that each text must match, and a text that does.
        unit, unit_name: what one of the number that is typed is in the field; bounds are in what is typed.
        bare: value of a flag that is given without one; None where a value is needed.
        parse: gives the field's value for the text that is typed.
        is_repeated: several values are given by several flags, else behind one.
        name: of the field.
        kind: type of one value: ``bool``, ``int``, ``float`` or ``str``.
        is_many: the field holds several values.
        default: of the field; ``MISSING`` for none.
    """

    help: str
    flag: str = ""
    metavar: str | None = None
    choices: Collection[str] = ()
    lowest: float | None = None
    highest: float | None = None
    above: float | None = None
    below: float | None = None
    remedy: str | None = None
    form: str | None = None
    like: str | None = None
    unit: int = 1
    unit_name: str = ""
    bare: Any = None
    parse: Callable[[str], Any] | None = None
    is_repeated: bool = False
    name: str = ""
    kind: type = str
    is_many: bool = False
    default: Any = ()

    def check(self, value: Any) -> None:
        """Raises SetupError for a value that it may not have; names the option, the value and what it may be."""
        if self.choices and value not in self.choices:
            raise SetupError(f"{self.flag} {value}: choose one of {', '.join(self.choices)}.")
        if self.form is not None and not re.fullmatch(self.form, value):
            raise SetupError(f"{self.flag} {'has' if self.is_many else 'is'} {value!r}; write it like {self.like}.")
        if self.kind not in (int, float):
            return
        typed = value / self.unit
        if not (
            (self.lowest is None or typed >= self.lowest)
            and (self.highest is None or typed <= self.highest)
            and (self.above is None or typed > self.above)
            and (self.below is None or typed < self.below)
        ):  # so that what is no number is refused too
            remedy = self.remedy or f"give at least {self.lowest}"
            raise SetupError(f"{self.flag} is {self.typed(value)}{self.unit_name}; {remedy}.")

    def typed(self, value: Any) -> str:
        """Gives a value as it is typed.

        >>> Option("", unit=1 << 20).typed(4 << 30)
        '4096'
        """
        if isinstance(value, tuple):
            return ",".join(map(str, value))
        return f"{value:.10g}" if isinstance(value, float) else str(value // self.unit if self.unit > 1 else value)


def option(default: Any = MISSING, help: str = "", **rest: Any) -> Any:
    """Declares a field of a dataclass as an option; without a default it is needed. See ``Option`` for the rest."""
    return field(default=default, metadata={_KEY: Option(help, **rest)})


def path_option(help: str, metavar: str = "FILE") -> Any:
    """Declares a file, or a folder, that may be given."""
    return option(None, help, metavar=metavar)


def between(lowest: float, highest: float, default: Any, help: str, *, of: str, **rest: Any) -> Any:
    """Declares a number between two, both included; ``of`` says what it is, for the message."""
    remedy = f"give {of} between {lowest} and {highest}"
    return option(default, help, lowest=lowest, highest=highest, remedy=remedy, **rest)


def declared(options: type[Any]) -> Mapping[str, Option | type]:
    """Gives the options of a dataclass by field, in order, and for a field that is such a dataclass its type."""
    hints = get_type_hints(options)
    found: dict[str, Option | type] = {}
    for field_ in fields(options):
        hint, is_many = hints[field_.name], False
        if _KEY not in field_.metadata:
            if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
                found[field_.name] = hint
            continue
        if get_origin(hint) in (Union, UnionType):
            hint = next(kind for kind in get_args(hint) if kind is not type(None))
        if get_origin(hint) in (tuple, frozenset):
            hint, is_many = get_args(hint)[0], True
        said: Option = field_.metadata[_KEY]
        found[field_.name] = replace(
            said,
            flag=said.flag or "--" + field_.name.replace("_", "-"),
            choices=said.choices or (get_args(hint) if get_origin(hint) is Literal else ()),
            name=field_.name,
            kind=hint if hint in (bool, int, float) else str,
            is_many=is_many,
            default=field_.default,
        )
    return found


def check_options(options: Any) -> None:
    """Checks the values of all options; None is always right.

    Raises:
        SetupError: names the option, its value and what it may be.
    """
    for name, one in declared(type(options)).items():
        value = getattr(options, name)
        if isinstance(one, Option) and value is not None:
            for part in value if one.is_many else (value,):
                one.check(part)


@dataclass(frozen=True, slots=True)
class Checked:
    """Options whose values are checked; one with laws of its own calls ``check_options`` in its ``__post_init__``."""

    def __post_init__(self) -> None:
        """Raises SetupError, as ``check_options``."""
        check_options(self)


def listed(typed: str) -> tuple[str, ...]:
    """Gives the parts of a list that is typed with commas.

    >>> listed("en, de")
    ('en', 'de')
    """
    return tuple(part.strip() for part in typed.split(",") if part.strip())
