"""A configuration in YAML. Its values are parsed like values on the command line, and errors name the line."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn, get_origin

from cyclopts import Argument

from kbsource.documents import compose_yaml
from kbsource.errors import SetupError
from kbsource.files import join
from mapping.options import LONGEST_PATH
from pipelines.terminal import nearest

if TYPE_CHECKING:
    import yaml


_PATHS = ("FILE", "PATH", "DIR", "RELEASE")


class ConfigItem(NamedTuple):
    """A key and its value, with their positions."""

    key: yaml.Node
    value: yaml.Node


Items = dict[str, ConfigItem]


class ConfigFile:
    """A configuration file; its paths are relative to its folder.

    Args:
        expected: describes what the file must contain, for messages.

    Raises:
        SetupError: the file is missing, empty or not YAML. All methods raise it for invalid content.
    """

    def __init__(self, path: str, *, expected: str) -> None:
        self.path = path
        root = compose_yaml(path, remedy=f"write {expected} into it; docs/manual.md has an example")
        if root is None:
            raise SetupError(f"{path} is empty; it must contain {expected}.")
        self.root = root

    def items(self, node: yaml.Node, what: str, *, allowed: Collection[str] | None = None) -> Items:
        """Returns the pairs of a mapping by name."""
        if node.id != "mapping":
            self.fail(node, f"{what} must be a mapping of 'name: value' pairs")
        items: Items = {}
        for key, value in node.value:
            name = self.text(key, what)
            if allowed is not None and name not in allowed:
                self.fail(
                    key, f"{what}: there is no key {name!r}.{nearest(name, allowed)} Allowed keys: {', '.join(allowed)}"
                )
            if name in items:
                self.fail(key, f"{what}: {name!r} is given twice; remove one of the two")
            items[name] = ConfigItem(key, value)
        return items

    def text(self, node: yaml.Node, name: str) -> str:
        """Returns a value that is not a list and not empty."""
        if not isinstance(node.value, str) or not node.value:
            self.fail(node, f"{name!r} must have a value, or a list of values if the option accepts several")
        if len(node.value) > LONGEST_PATH:
            self.fail(node, f"{name!r} has a value of {len(node.value):,} characters; the maximum is {LONGEST_PATH:,}")
        return str(node.value)

    def typed(self, argument: Argument, key: str, item: ConfigItem) -> Iterator[str]:
        """Writes an option as command-line arguments."""
        flag, metavar = f"--{key}", argument.parameter.metavar
        if argument.hint is bool:
            value = self.text(item.value, key)
            if value not in ("true", "false"):
                self.fail(item.value, f"{key!r} must be true or false, not {value!r}")
            yield from [flag] * (value == "true")
            yield from [f"--no-{key}"] * (value == "false" and len(argument.names) > 1)
            return
        takes_many = get_origin(argument.hint) is tuple and item.value.id == "sequence"
        for node in item.value.value if takes_many else [item.value]:
            text = self.text(node, key)
            near = self.near(text)
            # MODEL is a name on the hub, unless a folder of that name exists.
            yield f"{flag}={near if metavar in _PATHS or (metavar == 'MODEL' and os.path.exists(near)) else text}"

    def near(self, path: str) -> str:
        """Resolves a path relative to the folder of the configuration."""
        return path if "://" in path else join(os.path.dirname(self.path), path)

    def where(self, node: yaml.Node) -> str:
        """Returns file and line, for messages."""
        return f"{self.path}, line {node.start_mark.line + 1}"

    def fail(self, node: yaml.Node, message: str) -> NoReturn:
        """Raises a SetupError that names file and line."""
        raise SetupError(f"{self.where(node)}: {' '.join(message.split())}.")  # values may contain newlines
