"""What every worker has in common with the driver: the options of stores, and the same installation."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial, wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import apache_beam as beam
from apache_beam.typehints.decorators import IOTypeHints

from kbsource import __version__
from kbsource.errors import SetupError, named_faults
from kbsource.files import options_in_use, use_options
from kbsource.release.manifest import PACKAGES, code_facts
from pipelines.runners.counters import timed

P = ParamSpec("P")
_SOURCE_SUFFIXES = frozenset({".py", ".toml", ".json", ".lua"})
_GC_THRESHOLDS = (200_000, 20, 100)


@cache
def installed() -> dict[str, str]:
    """What of this environment decides the bytes of a release: versions, and the hash of the source files."""
    return {**code_facts(), "kbsource": __version__, "sha256": source_hash()}


def source_hash() -> str:
    """The sha256 over path and content of every source file of the three packages, in order of path."""
    digest = hashlib.sha256()
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for root in sorted(spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(root).rglob("*")):
                if path.suffix in _SOURCE_SUFFIXES and path.is_file():
                    content = path.read_bytes()
                    name = f"{package}/{path.relative_to(root).as_posix()}"
                    digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()


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


class WorkerDoFn(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """A step whose processes are workers of the driver that made it; its ``__init__`` must be called."""

    def __init__(self) -> None:
        self._store_options, self._installed = options_in_use(), installed()

    def setup(self) -> None:
        use_options(self._store_options)
        # Records are trees of tuples and have no cycles that a collector need look for.
        gc.set_threshold(*_GC_THRESHOLDS)

    def start_bundle(self) -> None:
        # Not in ``setup``: what fails there is not told by every runner.
        check_installed(self._installed)

    def default_type_hints(self) -> IOTypeHints:
        """None: elements are what the docstrings say, and Beam would take side inputs for one tuple."""
        return IOTypeHints.empty()


class Wired(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """A transform that a function puts together; see ``wired``."""

    def __init__(self, function: Callable[..., Any], *args: Any, **named: Any) -> None:
        super().__init__(function.__name__)
        self._wire = partial(function, *args, **named)

    def expand(self, given: Any) -> Any:
        return self._wire.func(given, *self._wire.args, **self._wire.keywords)


def wired(function: Callable[Concatenate[Any, P], Any]) -> Callable[P, Wired]:
    """Makes a transform of a function of what it is applied to, and of further arguments, which it is called with.

    Unlike Beam's ``ptransform_fn`` it writes none of the arguments into the graph of the job.
    """
    return wraps(function)(partial(Wired, function))


def do(function: Callable[..., Iterable[Any]], /, *given: Any, **bound: Any) -> Any:
    """A step that calls a function with each element, and side inputs if any are given, and goes on with what comes.

    Faults of the machine that it meets have their names. What is bound to the function travels with it.
    """
    return beam.ParDo(Do(partial(function, **bound)), *given)


class Do(WorkerDoFn):
    def __init__(self, function: Callable[..., Iterable[Any]]) -> None:
        super().__init__()
        self._function = function

    def process(self, element: Any, *given: Any) -> Iterator[Any]:
        with named_faults():
            yield from timed(iter(self._function(element, *given)))
