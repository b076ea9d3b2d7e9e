"""What every worker has in common with the driver: the options of file systems, and the same installation."""

from __future__ import annotations

import gc
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import apache_beam as beam
from apache_beam.typehints.decorators import IOTypeHints

from kbsource.errors import SetupError
from kbsource.release.manifest import code_facts
from pipelines.stores.storage import options_in_use, use_options

_GC_THRESHOLDS = (200_000, 20, 100)


@cache
def installed() -> dict[str, str]:
    """Gives what of this environment decides the bytes of a release: versions, and the hash of the source files."""
    return asdict(code_facts())


def check_installed(drivers: Mapping[str, str]) -> None:
    """Finds a worker that would write other bytes than the others.

    Raises:
        SetupError: the worker has another version of something than the driver.
    """
    for name, wanted in drivers.items():
        found = installed()[name]
        if found != wanted:
            raise SetupError(
                f"The worker on {socket.gethostname()} has {name} {found}, the driver {wanted}. Install the same "
                "kbsource on all machines; the image of docker/Dockerfile holds one for both."
            )


@dataclass(frozen=True, slots=True)
class Driver:
    """What a worker must know of the driver; made where a pipeline is put together, and sent along with its steps.

    Attributes:
        options: of Beam's file systems.
        installed: see ``installed``.
    """

    options: dict[str, Any] = field(default_factory=options_in_use)
    installed: dict[str, str] = field(default_factory=installed)

    def set_up(self) -> None:
        """Makes this process a worker of the driver; call it in ``DoFn.setup``."""
        use_options(self.options)
        # Records are trees of tuples and have no cycles that a collector need look for.
        gc.set_threshold(*_GC_THRESHOLDS)


class WorkerDoFn(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """A step whose processes are workers of the driver that made it; its ``__init__`` must be called."""

    def __init__(self) -> None:
        self._driver = Driver()

    def setup(self) -> None:
        self._driver.set_up()

    def start_bundle(self) -> None:
        # Not in ``setup``: what fails there is not told by every runner.
        check_installed(self._driver.installed)

    def default_type_hints(self) -> IOTypeHints:
        """Gives none: elements are what the docstrings say, and Beam would take side inputs for one tuple."""
        return IOTypeHints.empty()
