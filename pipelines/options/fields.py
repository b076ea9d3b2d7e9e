"""Flags out of the fields that dataclasses of options declare, and such dataclasses out of what was typed."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING
from typing import Any, TypeVar

from mapping.options import Declared, declared, number_text, option

Options = TypeVar("Options")
Flags = argparse.ArgumentParser | argparse._ArgumentGroup


def output_option(what: str) -> Any:
    """Declares the folder that a job writes."""
    return option(help=f"folder of {what}; new, or left by a run that was killed", metavar="DIR")


def rejects_option(default: float, *, of: str) -> Any:
    """Declares the highest share of the records that may be rejected."""
    return option(
        default,
        f"highest share of the {of} that may be rejected",
        metavar="SHARE",
        lowest=0,
        highest=1,
        remedy=f"give a share of the {of} between 0 and 1",
    )


def memory_option() -> Any:
    """Declares the memory that a working process may allocate, in bytes."""
    return option(
        4 << 30,
        "most memory that one working process may allocate",
        flag="--worker-memory",
        metavar="MB",
        lowest=256,
        remedy="a worker needs at least 256 MB",
        unit=1 << 20,
        unit_name=" MB",
    )


def range_option() -> Any:
    """Declares the size of the pieces that a dump is read in; None for one that suits the dump."""
    meaning = "bytes of the pieces that the dump is read in (default: 1 to 32 MiB, by the size of the dump)"
    return option(None, meaning, metavar="N", lowest=1)


def truncated_option() -> Any:
    """Declares that a dump may break off."""
    return option(False, "take what can be read of a dump that breaks off")


def flags_of(options: type) -> Iterator[Declared]:
    """Gives the options of a dataclass and of the dataclasses that are its fields, in order."""
    for one in declared(options).values():
        if isinstance(one, Declared):
            yield one
        else:
            yield from flags_of(one)


def add_flags(
    parser: Flags, options: type | Iterable[Declared], *, but: Collection[str] = (), optional: Collection[str] = ()
) -> None:
    """Adds a flag for each option.

    None has a default for argparse: what is not given is left to the dataclass, whose default help shows.

    Args:
        parser: or a group of one.
        options: a dataclass, or some of its options.
        but: fields that are left out.
        optional: fields without a default that need not be given.
    """
    for one in flags_of(options) if isinstance(options, type) else options:
        if one.name not in but:
            parser.add_argument(
                one.flag, **_settings(one, is_needed=one.default is MISSING and one.name not in optional)
            )


def _settings(one: Declared, *, is_needed: bool) -> dict[str, Any]:
    said = one.option
    settings: dict[str, Any] = {"help": _help(one).replace("%", "%%"), "default": None}
    if one.kind is bool:
        action: Any = argparse.BooleanOptionalAction if one.default is True else "store_true"
        return {**settings, "action": "store_false" if one.flag.startswith("--no-") else action}
    settings["type"] = one.kind
    settings["required"] = is_needed
    if one.choices:
        settings["choices"] = one.choices
    if said.metavar is not None:
        settings["metavar"] = said.metavar
    if said.bare is not None:
        settings |= {"nargs": "?", "const": said.bare}
    elif one.is_many and said.parse is None:
        settings |= {"action": "append"} if said.is_repeated else {"nargs": "+"}
    return settings


def _help(one: Declared) -> str:
    said, default = one.option, one.default
    meanings = said.choices.items() if isinstance(said.choices, Mapping) else ()
    text = "; ".join([said.help] * bool(said.help) + [f"{name}: {meaning}" for name, meaning in meanings])
    if "(default" in text or default in (None, MISSING, "", ()) or isinstance(default, bool | frozenset):
        return text
    if isinstance(default, tuple):
        shown = ",".join(map(str, default))
    else:
        shown = number_text(default, said).removesuffix(said.unit_name) if one.kind is not str else default
    return f"{text} (default: {shown})"


def place(flag: str) -> str:
    """Gives the name under which argparse has the value of a flag."""
    return flag.lstrip("-").replace("-", "_")


def from_flags(given: Mapping[str, Any], options: type[Options], **known: Any) -> Options:
    """Makes a dataclass of options.

    Args:
        given: values of the flags, as argparse has them; None where not given.
        options: the dataclass.
        known: values of fields that come from elsewhere.

    Raises:
        SetupError: as the dataclass does.
    """
    values = dict(known)
    for name, one in declared(options).items():
        if name in known:
            continue
        if not isinstance(one, Declared):
            values[name] = from_flags(given, one)
        elif (value := given.get(place(one.flag))) is not None:
            values[name] = _value(one, value)
    return options(**values)


def _value(one: Declared, typed: Any) -> Any:
    said = one.option
    if said.parse is not None:
        return said.parse(typed)
    if one.is_many:
        return tuple(typed)
    return typed * said.unit if said.unit != 1 else typed


def nearest(name: str, known: Iterable[str]) -> str:
    """Gives what to ask of someone who typed a name that there is not; nothing where none is near.

    >>> nearest("--limit-page", ["--limit-pages", "--output"])
    ' Did you mean --limit-pages?'
    """
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""
