"""Work that only ends when it is shared."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

_LONGEST_S = 60


def wait_for_others(element: tuple[int, Iterable[int]], *, folder: str, n_elements: int) -> Iterator[int]:
    """Notes the process that does an element; the first element waits until all others are done.

    Raises:
        TimeoutError: they are not.
    """
    number, _ = element
    end = time.monotonic() + _LONGEST_S
    while number == 0 and len(os.listdir(folder)) < n_elements - 1:
        if time.monotonic() > end:
            raise TimeoutError("nobody does the others")
        time.sleep(0.01)
    Path(folder, str(number)).write_text(str(os.getpid()), encoding="ascii")
    yield number
