"""Databases with other limits than the code sets, for output that must not depend on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from kbsource.runtime.database import connected

LIMITS: tuple[dict[str, int], ...] = ({"threads": 2}, {"threads": 7}, {"memory_mb": 150})
"""Arguments of ``connected``."""


@contextmanager
def limited(module: str, **limits: int) -> Iterator[None]:
    """Opens the databases of a module with other limits."""

    def opened(**own: Any) -> Any:
        return connected(**{**own, **limits})

    with mock.patch(f"{module}.connected", opened):
        yield
