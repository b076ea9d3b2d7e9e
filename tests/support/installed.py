"""Skips modules of tests whose libraries are not installed, without importing the libraries."""

from __future__ import annotations

from importlib.util import find_spec

import pytest


def skip_without(*libraries: str, reason: str = "") -> None:
    """Skips the rest of the module unless these libraries are installed.

    Unlike ``pytest.importorskip`` it imports none of them: each process that runs tests collects all modules, and these
    libraries take seconds.
    """
    for library in libraries:
        if find_spec(library) is None:
            pytest.skip(reason or f"{library} is not installed", allow_module_level=True)
