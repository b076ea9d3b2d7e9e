"""Shortens the start of a process: keeps libraries from importing optional packages that are not needed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import ModuleType


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
def without_type_checks() -> Iterator[None]:
    """Lets packages be imported without the checks of typeguard's ``typechecked``, which parses the whole source of a
    module for each function that it checks. Has no effect once typeguard is imported.
    """
    if "typeguard" in sys.modules:
        yield
        return
    stub = ModuleType("typeguard")
    stub.typechecked = lambda function: function  # type: ignore[attr-defined]
    sys.modules["typeguard"] = stub
    try:
        yield
    finally:
        del sys.modules["typeguard"]


def leave_out_pandas() -> None:
    """Keeps pyarrow from importing pandas with its first array, which takes as long as parsing a megabyte of wikitext.

    From then on, pyarrow recognises no pandas objects in this process.
    """
    import pyarrow as pa

    with leaving_out("pandas"):
        # an empty array, because the first allocation reserves a GB, which counts against the process's limit
        pa.array([])
