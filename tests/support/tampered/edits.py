"""Ways to change the files of a release. The manifest fits the changed files, so that only the invariants can tell."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from kbsource.release.invariants import Invariant
from kbsource.release.kind import Kind
from kbsource.release.layout import table_of
from kbsource.release.writer import write_rows
from tests.support.alignments import read_lines, write_records
from tests.support.verified import seal

MANIFEST = "manifest.json"


Place = tuple[str, str]
"""A file and an invariant."""
COUNTED: tuple[Place, ...] = ((MANIFEST, "counts"),)
"""The finding that a manifest counts something else than there is."""


class Edit(NamedTuple):
    """A change of a file of a release."""

    file: str
    apply: Callable[[Path], object]


class Tampered(NamedTuple):
    """A release that was tampered with, and the findings that it must have, and no others."""

    what: str
    edit: Edit | tuple[Edit, ...]  #: several for one change that is in several files
    invariant: str  #: as ``numbered`` calls it
    text: str  #: part of its example
    file: str = ""  #: that the finding is about; empty for the first changed file
    also: tuple[Place, ...] = ()  #: files and invariants of the other findings
    is_compared: bool = False  #: with what the release was made from, and without it less is found


class Released(NamedTuple):
    """A release to tamper with, and what it was made from."""

    folder: Path
    sources: dict[str, Path]


class Group(NamedTuple):
    """A release and the ways to tamper with it."""

    kind: Kind[Any]
    make: Callable[[Path, Path], Released]  #: takes an empty folder and a release of the mini-wiki
    rows: tuple[Tampered, ...]


def numbered(kind: Kind[Any]) -> list[Invariant]:
    """Returns the invariants of a kind under names of their own: the second with the slug ``invalid_page`` is
    ``invalid_page 2``.
    """
    names: list[str] = []
    slugs = [invariant.slug for invariant in kind.invariants]
    for at, slug in enumerate(slugs):
        number = slugs[: at + 1].count(slug)
        names.append(slug if number == 1 else f"{slug} {number}")
    return [
        Invariant(name, invariant.meaning or name, invariant.violations, invariant.table, invariant.needs)
        for name, invariant in zip(names, kind.invariants, strict=True)
    ]


def rows(file: str, *changes: Callable[[list[Any]], object]) -> Edit:
    """Changes the rows of a file of a table."""

    def apply(folder: Path) -> None:
        table, read = table_of(file), pq.read_table(folder / file)
        assert table is not None
        changed = read.to_pylist()
        for change in changes:
            change(changed)
        values = [[row[name] for name in read.schema.names] for row in changed]
        write_rows(values, table, read.schema, output=str(folder), file=file)
        seal(folder)

    return Edit(file, apply)


def lines(file: str, *changes: Callable[[list[Any]], object]) -> Edit:
    """Changes the values of a JSON Lines file; a string is written as it is."""

    def apply(folder: Path) -> None:
        changed: list[Any] = read_lines(folder / file)
        for change in changes:
            change(changed)
        write_records(folder / file, changed)
        seal(folder)

    return Edit(file, apply)


def content(file: str, change: Callable[[bytes], bytes]) -> Edit:
    """Changes the bytes of a file."""

    def apply(folder: Path) -> None:
        before = (folder / file).read_bytes()
        after = change(before)
        assert before != after
        (folder / file).write_bytes(after)
        seal(folder)

    return Edit(file, apply)


def manifest(change: Callable[[dict[str, Any]], object]) -> Edit:
    """Changes the values of the manifest."""

    def apply(folder: Path) -> None:
        values = json.loads((folder / MANIFEST).read_text())
        change(values)
        seal(folder, **values)

    return Edit(MANIFEST, apply)


def unlisted(file: str) -> Edit:
    """Removes a file and its entry in the manifest."""

    def apply(folder: Path) -> None:
        (folder / file).unlink()
        files = json.loads((folder / MANIFEST).read_text())["files"]
        seal(folder, files=[entry for entry in files if entry["file"] != file])

    return Edit(file, apply)


def listed(file: str, copied: str) -> Edit:
    """Adds a copy of a file, and its entry in the manifest."""

    def apply(folder: Path) -> None:
        shutil.copy(folder / copied, folder / file)
        files = json.loads((folder / MANIFEST).read_text())["files"]
        (entry,) = (entry for entry in files if entry["file"] == copied)
        seal(folder, files=[*files, {**entry, "file": file}])

    return Edit(MANIFEST, apply)


def at(number: int, **values: Any) -> Callable[[list[Any]], None]:
    """Sets columns of a row."""
    return lambda changed: changed[number].update(values)


def put(value: Any, *path: Any) -> Callable[[Any], None]:
    """Sets what is at a path of keys and numbers."""

    def change(changed: Any) -> None:
        for key in path[:-1]:
            changed = changed[key]
        changed[path[-1]] = value

    return change


def drop(number: int, *path: Any) -> Callable[[Any], object]:
    """Removes a row, or what has that number in a list at a path."""

    def change(changed: Any) -> None:
        for key in path:
            changed = changed[key]
        del changed[number]

    return change


def again(number: int) -> Callable[[list[Any]], None]:
    """Repeats a row at the end."""
    return lambda changed: changed.append(changed[number])


def add(value: Any) -> Callable[[list[Any]], None]:
    """Adds a row at the end."""
    return lambda changed: changed.append(value)


def reverse(changed: list[Any]) -> None:
    """Turns the order around."""
    changed.reverse()


def counted(name: str, value: Callable[[int], int]) -> Edit:
    """Changes a count of the manifest."""
    return manifest(lambda values: values["counts"].update({name: value(values["counts"][name])}))
