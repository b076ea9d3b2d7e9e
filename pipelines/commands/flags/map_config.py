"""The configuration of ``kbsource map --all``: which datasets, their files, and how each is aligned.

::

    options: {threshold: 0.5}               # of every dataset
    datasets:
      fever:                                # a folder of the output; the dataset's name, unless ``dataset`` says it
        wiki-pages: fever/wiki-pages        # of every split
        splits:
          dev: {input: [fever/shared_task_dev.jsonl, fever/fever2-fixers-dev.jsonl]}
          test: {input: fever/shared_task_test.jsonl}

Options are the flags of ``kbsource map`` without their dashes; what is nearer to the split counts. Paths are relative
to the folder of the configuration.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, NoReturn, cast

import yaml

from kbsource.errors import SetupError
from kbsource.files import LocalStorage, join
from mapping.sources import DATASETS
from mapping.sources.reading.base import SPLITS, Split
from pipelines.commands.flags.map_flags import (
    MODEL,
    OF_THE_COMMAND,
    PATHS,
    add_dataset_flags,
    add_verify_flags,
)
from pipelines.options.fields import add_flags, nearest
from pipelines.options.map import MapOptions

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_TOP = ("options", "datasets")


class Entry(NamedTuple):
    """One split of one dataset.

    Attributes:
        name: of the dataset in the configuration.
        dataset: one of ``DATASETS``.
        split: of it.
        flags: value of each flag of ``kbsource map``; None where not given.
        where: file and line, for messages.
    """

    name: str
    dataset: str
    split: Split
    flags: dict[str, Any]
    where: str


def read_config(path: str) -> list[Entry]:
    """Gives the splits that a configuration names, in its order.

    Raises:
        SetupError: the file is missing, is no YAML, or says something that means nothing; names the line and what is
            allowed there.
    """
    try:
        with LocalStorage().open_read(path) as file:
            root = yaml.compose(file, Loader=yaml.SafeLoader)
    except FileNotFoundError as error:
        raise SetupError(f"{path}: no such file.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SetupError(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise SetupError(f"{path} is nested too deeply; it needs five levels at most.") from error
    if root is None:
        raise SetupError(f"{path} is empty; it must name datasets.")
    return list(_Reader(path).entries(root))


class _FlagParser(argparse.ArgumentParser):
    """Raises ValueError where argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


class _Item(NamedTuple):
    key: yaml.Node
    value: yaml.Node


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._parser = _FlagParser(add_help=False, allow_abbrev=False)
        add_flags(self._parser, MapOptions, but=OF_THE_COMMAND, optional=("inputs",))
        add_dataset_flags(self._parser)
        add_verify_flags(self._parser)
        self._flags = {action.option_strings[0].removeprefix("--"): action for action in self._parser._actions}

    def entries(self, root: yaml.Node) -> Iterator[Entry]:
        top = self._items(root, "the configuration", allowed=_TOP)
        if "datasets" not in top:
            self._fail(root, "there is no 'datasets'")
        common = self._parser.parse_args([])
        if "options" in top:
            self._set_flags(common, self._items(top["options"].value, "options", allowed=tuple(self._flags)))
        datasets = self._items(top["datasets"].value, "datasets")
        if not datasets:
            self._fail(top["datasets"].key, "'datasets' names none")
        for name, item in datasets.items():
            if not _NAME.fullmatch(name):
                self._fail(item.key, f"{name!r} cannot name a folder; letters, digits, '.', '-' and '_' can")
            yield from self._splits(name, item, common)

    def _splits(self, name: str, item: _Item, common: argparse.Namespace) -> Iterator[Entry]:
        fields = self._items(item.value, f"dataset {name!r}", allowed=("dataset", "splits", *self._flags))
        dataset = self._text(fields.pop("dataset").value, "dataset") if "dataset" in fields else name
        if dataset not in DATASETS:
            self._fail(
                item.key, f"no dataset {dataset!r}.{nearest(dataset, DATASETS)} Choose one of: {', '.join(DATASETS)}"
            )
        if "splits" not in fields:
            self._fail(item.key, f"dataset {name!r} has no 'splits'")
        splits = self._items(fields.pop("splits").value, f"the splits of {name!r}", allowed=SPLITS)
        of_dataset = argparse.Namespace(**vars(common))
        self._set_flags(of_dataset, fields)
        for split, inner in splits.items():
            of_split = argparse.Namespace(**vars(of_dataset))
            self._set_flags(of_split, self._items(inner.value, f"split {split!r}", allowed=tuple(self._flags)))
            yield Entry(name, dataset, cast(Split, split), vars(of_split), self._where(inner.key))

    def _set_flags(self, namespace: argparse.Namespace, items: dict[str, _Item]) -> None:
        for name, (_, node) in items.items():
            action = self._flags[name]
            if action.nargs == 0:
                value = self._text(node, name)
                if value not in ("true", "false"):
                    self._fail(node, f"{name!r} is true or false, not {value!r}")
                setattr(namespace, action.dest, value == "true")
                continue
            try:
                self._parser.parse_args([f"--{name}", *self._values(name, node, action)], namespace)
            except ValueError as error:
                self._fail(node, str(error))

    def _values(self, name: str, node: yaml.Node, action: argparse.Action) -> list[str]:
        takes_many = action.nargs == "+" and isinstance(node, yaml.SequenceNode)
        values = [self._text(part, name) for part in (node.value if takes_many else [node])]
        if action.metavar in PATHS:
            return [value if "://" in value else join(self._folder, value) for value in values]
        if action.metavar == MODEL:
            # A name on the hub, unless there is such a folder.
            return [path if os.path.isdir(path := join(self._folder, value)) else value for value in values]
        return values

    def _text(self, node: yaml.Node, name: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            self._fail(node, f"{name!r} must have a value, or a list of them where the option takes several")
        return str(node.value)

    def _items(self, node: yaml.Node, what: str, *, allowed: tuple[str, ...] | None = None) -> dict[str, _Item]:
        if not isinstance(node, yaml.MappingNode):
            self._fail(node, f"{what}: expected 'name: value' pairs")
        items: dict[str, _Item] = {}
        for key, value in node.value:
            name = self._text(key, what)
            if allowed is not None and name not in allowed:
                self._fail(key, f"{what}: no {name!r}.{nearest(name, allowed)} Allowed are {', '.join(allowed)}")
            if name in items:
                self._fail(key, f"{what}: {name!r} stands here twice")
            items[name] = _Item(key, value)
        return items

    def _where(self, node: yaml.Node) -> str:
        return f"{self._path}, line {node.start_mark.line + 1}"

    def _fail(self, node: yaml.Node, message: str) -> NoReturn:
        raise SetupError(f"{self._where(node)}: {message}.")
