"""Releases as a stranger may make them: any manifest at all, with a hash of itself that is right."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kbsource.files import Folder
from kbsource.release.manifest import canonical_json

LOOT = "loot.txt"
Way = tuple[str | int, ...]
"""Keys and numbers that lead from JSON values to one in them."""


def ways(value: Any, way: Way = ()) -> Iterator[Way]:
    """The ways to everything in JSON values, the whole too."""
    yield way
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from ways(inner, (*way, key))


def changed(values: Any, way: Way, other: Any) -> Any:
    """Returns JSON values with another one in a place; with ``...`` without it."""
    if not way:
        return other
    copied = copy.deepcopy(values)
    inside = copied
    for key in way[:-1]:
        inside = inside[key]
    if other is ...:
        del inside[way[-1]]
    else:
        inside[way[-1]] = other
    return copied


def sealed(values: dict[str, Any]) -> bytes:
    """Returns a manifest of these values, with the hash of itself."""
    own = {name: value for name, value in values.items() if name != "manifest_sha256"}
    return canonical_json({**own, "manifest_sha256": hashlib.sha256(canonical_json(own)).hexdigest()})


def copied(release: Path, folder: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """Copies a release, with a changed manifest; ``change`` is called with its values."""
    shutil.copytree(release, folder)
    values = json.loads((folder / "manifest.json").read_text())
    change(values)
    (folder / "manifest.json").write_bytes(sealed(values))
    return folder


def entry_of(folder: Path, file: str) -> dict[str, Any]:
    """Returns what a manifest lists of a file of a table, as it is now."""
    path = folder / file
    n_rows = pq.read_metadata(path).num_rows
    return {"file": file, "rows": n_rows, "bytes": path.stat().st_size, "sha256": Folder.of(str(path)).sha256()}


def entry_of_file(folder: Path, file: str) -> dict[str, Any]:
    """Returns what a manifest lists of a file that is no table, as it is now, but for its lines."""
    path = folder / file
    return {"bytes": path.stat().st_size, "sha256": Folder.of(str(path)).sha256()}


def writes(target: Path) -> str:
    """Returns a statement that writes a file."""
    return f"copy (select 'gone') to '{target}' (format csv, header false)"


def hostile_name(target: Path) -> str:
    """Returns a name that ends the quotes and the statement that it is put into, and writes a file."""
    return f'x" as select 1; {writes(target)}; create or replace view "y'
