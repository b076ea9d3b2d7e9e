"""Shortens the start of a process: keeps libraries from importing optional packages that are not needed."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any


class _Absent(MetaPathFinder):
    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, *_: object) -> None:
        if name in self._names:
            raise ModuleNotFoundError(f"{name} is not available here", name=name)


@contextmanager
def leaving_out(*names: str) -> Iterator[None]:
    """A context in which packages appear not to be installed. Packages that are already imported stay imported."""
    absent = _Absent(names)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


@contextmanager
def standing_in(modules: Mapping[str, Mapping[str, Any]]) -> Iterator[None]:
    """A context in which modules are replaced by stand-ins, so that they are not imported.

    Args:
        modules: the attributes of each stand-in, by the name of its module. Modules that are already imported are not
            replaced.
    """
    absent = [name for name in modules if name not in sys.modules]
    for name in absent:
        stand_in = ModuleType(name)
        vars(stand_in).update(modules[name])
        sys.modules[name] = stand_in
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


def hold_collector() -> None:
    """Stops the garbage collector, until ``release_collector`` starts it again.

    While a command imports its modules, the collector runs hundreds of times and finds little, which takes a seventh of
    the time of the imports.
    """
    gc.disable()


def release_collector() -> None:
    """Starts the garbage collector. It will ignore all present objects, because modules live as long as the process."""
    gc.freeze()
    gc.enable()


def leave_out_pandas() -> None:
    """Keeps pyarrow from importing pandas with its first array, which takes as long as parsing a megabyte of wikitext.

    From then on, pyarrow recognises no pandas objects in this process.
    """
    import pyarrow as pa

    with leaving_out("pandas"):
        # an empty array, because the first allocation reserves a GB, which counts against the process's limit
        pa.array([])
