"""Flags out of the fields that dataclasses of options declare, and such dataclasses out of what was typed."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING
from typing import Any, TypeVar

from mapping.options import Option, between, declared, option

Options = TypeVar("Options")
Flags = argparse.ArgumentParser | argparse._ArgumentGroup


def output_option(what: str) -> Any:
    """Declares the folder that a job writes."""
    return option(help=f"folder of {what}; new, or left by a run that was killed", metavar="DIR")


def rejects_option(default: float, *, of: str) -> Any:
    """Declares the highest share of the records that may be rejected."""
    meaning = f"highest share of the {of} that may be rejected"
    return between(0, 1, default, meaning, of=f"a share of the {of}", metavar="SHARE")


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


def flags_of(options: type) -> Iterator[Option]:
    """Gives the options of a dataclass and of the dataclasses that are its fields, in order."""
    for declared_option in declared(options).values():
        if isinstance(declared_option, Option):
            yield declared_option
        else:
            yield from flags_of(declared_option)


def add_flags(
    parser: Flags, options: type | Iterable[Option], *, but: Collection[str] = (), optional: Collection[str] = ()
) -> None:
    """Adds a flag for each option.

    None has a default for argparse: what is not given is left to the dataclass, whose default help shows.

    Args:
        parser: or a group of one.
        options: a dataclass, or some of its options.
        but: fields that are left out.
        optional: fields without a default that need not be given.
    """
    for said in flags_of(options) if isinstance(options, type) else options:
        if said.name in but:
            continue
        settings: dict[str, Any] = {"help": _help(said).replace("%", "%%"), "default": None}
        if said.kind is bool:
            action: Any = argparse.BooleanOptionalAction if said.default is True else "store_true"
            settings["action"] = "store_false" if said.flag.startswith("--no-") else action
        else:
            settings |= {"type": str if said.parse else said.kind, "choices": tuple(said.choices) or None}
            settings["metavar"] = said.metavar or ("N" if said.kind is int else None)
            if said.flag.startswith("-"):
                settings["required"] = said.default is MISSING and said.name not in optional
            if said.bare is not None:
                settings |= {"nargs": "?", "const": said.bare}
            elif said.is_many and said.parse is None:
                settings |= {"action": "append"} if said.is_repeated else {"nargs": "+"}
        parser.add_argument(said.flag, **settings)


def _help(said: Option) -> str:
    meanings = said.choices.items() if isinstance(said.choices, Mapping) else ()
    text = "; ".join([said.help] * bool(said.help) + [f"{name}: {meaning}" for name, meaning in meanings])
    has_default = said.default not in (None, MISSING, "", ()) and not isinstance(said.default, bool | frozenset)
    return f"{text} (default: {said.typed(said.default)})" if has_default and "(default" not in text else text


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
        if not isinstance(one, Option):
            values[name] = from_flags(given, one)
        elif (typed := given.get(place(one.flag))) is not None:
            parse = one.parse or (tuple if one.is_many else None)
            values[name] = parse(typed) if parse else typed * one.unit if one.unit > 1 else typed
    return options(**values)


def nearest(name: str, known: Iterable[str]) -> str:
    """Gives what to ask of someone who typed a name that there is not; nothing where none is near.

    >>> nearest("--limit-page", ["--limit-pages", "--output"])
    ' Did you mean --limit-pages?'
    """
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f" Did you mean {near[0]}?" if near else ""
