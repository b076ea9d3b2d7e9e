"""Options: fields of frozen dataclasses that say what they mean and what they may be.

The options of a job, or of a dataset's reader, are one dataclass beside it. Of its fields those are open to whoever
uses the command line that ``option`` declares; flags, YAML keys and docs/commands.md come from them, see
``pipelines.options.fields``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kbsource.errors import SetupError


@dataclass(frozen=True, slots=True)
class Option:
    """What a field says of itself, beside its type and its default.

    Attributes:
        help: what it means; the default is added to it, unless it speaks of one.
        flag: as it is typed; None for the field's name with dashes. ``--no-…`` turns off what is on.
        metavar: stands for the value in help.
        choices: values that it takes, with their meanings where this is a mapping; a ``Literal`` says them itself.
        lowest, highest, above, below: bounds of a number; the last two are no values themselves.
        remedy: what to do when a bound is broken; None for ``give at least LOWEST``.
        form: pattern that each text must match.
        like: a text that does, for the message.
        unit: what one of the number that is typed is in the field; bounds are in what is typed.
        unit_name: written behind the number in messages.
        bare: value of a flag that is given without one; None where a value is needed.
        parse: gives the field's value for the text that is typed; raises SetupError.
        is_repeated: several values are given by several flags, else behind one.
    """

    help: str
    flag: str | None = None
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


def option(default: Any = MISSING, help: str = "", **rest: Any) -> Any:  # as in argparse
    """Declares a field of a dataclass as an option; without a default it is needed. See ``Option`` for the rest."""
    return field(default=default, metadata={_KEY: Option(help, **rest)})


_KEY = "option"


@dataclass(frozen=True, slots=True)
class Declared:
    """An option of a dataclass.

    Attributes:
        name: of the field.
        kind: type of one value: ``bool``, ``int``, ``float`` or ``str``.
        is_many: the field holds several values.
        choices: that it may have; empty for any.
        default: of the field; ``MISSING`` for none.
        option: what is declared.
    """

    name: str
    kind: type
    is_many: bool
    choices: tuple[str, ...]
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """As it is typed."""
        return self.option.flag or "--" + self.name.replace("_", "-")


def declared(options: type[Any]) -> Mapping[str, Declared | type]:
    """Gives the options of a dataclass by field, in order, and for a field that is such a dataclass its type."""
    hints = get_type_hints(options)
    found: dict[str, Declared | type] = {}
    for one in fields(options):
        hint, is_many = hints[one.name], False
        if _KEY not in one.metadata:
            if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
                found[one.name] = hint
            continue
        if get_origin(hint) in (Union, UnionType):
            hint = next(kind for kind in get_args(hint) if kind is not type(None))
        if get_origin(hint) in (tuple, frozenset):
            hint, is_many = get_args(hint)[0], True
        said: Option = one.metadata[_KEY]
        choices = get_args(hint) if get_origin(hint) is Literal else tuple(said.choices)
        kind = hint if hint in (bool, int, float) else str
        found[one.name] = Declared(one.name, kind, is_many, choices, one.default, said)
    return found


def check_options(options: Any) -> None:
    """Checks the values of all options; None is always right.

    Raises:
        SetupError: names the option, its value and what it may be.
    """
    for name, one in declared(type(options)).items():
        value = getattr(options, name)
        if isinstance(one, Declared) and value is not None:
            for part in value if one.is_many else (value,):
                _check(one, part)


def _check(one: Declared, value: Any) -> None:
    said = one.option
    if one.choices and value not in one.choices:
        raise SetupError(f"{one.flag} {value}: choose one of {', '.join(one.choices)}.")
    if said.form is not None and not re.fullmatch(said.form, value):
        raise SetupError(f"{one.flag} {'has' if one.is_many else 'is'} {value!r}; write it like {said.like}.")
    if one.kind not in (int, float):
        return
    typed = value / said.unit
    if (
        (said.lowest is not None and typed < said.lowest)
        or (said.highest is not None and typed > said.highest)
        or (said.above is not None and typed <= said.above)
        or (said.below is not None and typed >= said.below)
    ):
        remedy = said.remedy or f"give at least {said.lowest}"
        raise SetupError(f"{one.flag} is {number_text(value, said)}; {remedy}.")


def number_text(value: float, said: Option) -> str:
    """Gives a number as it is typed.

    >>> number_text(4 << 30, Option("", unit=1 << 20, unit_name=" MB"))
    '4096 MB'
    """
    typed = value // said.unit if said.unit > 1 else value
    return (f"{typed:.10g}" if isinstance(typed, float) else str(typed)) + said.unit_name


def listed(typed: str) -> tuple[str, ...]:
    """Gives the parts of a list that is typed with commas.

    >>> listed("en, de")
    ('en', 'de')
    """
    return tuple(part.strip() for part in typed.split(",") if part.strip())
