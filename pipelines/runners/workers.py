"""Ensures that every worker has the driver's options for stores and the same installation."""

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
def installation_facts() -> dict[str, str]:
    """Returns the facts about this environment that affect the bytes of a release: versions, and the hash of the source
    files."""
    return {**code_facts(), "kbsource": __version__, "sha256": source_hash()}


def source_hash() -> str:
    """Returns the SHA-256 over the paths and contents of all source files of the three packages, ordered by path."""
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
    """Checks that this worker would write the same bytes as the driver.

    Raises:
        SetupError: the worker and the driver have different versions of a package.
    """
    for name, wanted in drivers.items():
        found = installation_facts()[name]
        if found != wanted:
            raise SetupError(
                f"The worker on {socket.gethostname()} has {name} {found}, but the driver has {wanted}. Install the "
                f"same version of kbsource on all machines; the image of docker/Dockerfile contains one for both."
            )


class WorkerDoFn(beam.DoFn):  # type: ignore[misc]  # Beam is not typed
    """A step that runs in workers of the driver that constructed it. Subclasses must call its ``__init__``."""

    def __init__(self) -> None:
        self._store_options, self._installed = options_in_use(), installation_facts()

    def setup(self) -> None:
        use_options(self._store_options)
        # Records are trees of tuples, without cycles for the garbage collector.
        gc.set_threshold(*_GC_THRESHOLDS)

    def start_bundle(self) -> None:
        # Not in ``setup``, because not every runner reports errors there.
        check_installed(self._installed)

    def default_type_hints(self) -> IOTypeHints:
        """Returns None: docstrings define the elements, and Beam would treat side inputs as one tuple."""
        return IOTypeHints.empty()


class Wired(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """A transform constructed by a function; see ``wired``."""

    def __init__(self, function: Callable[..., Any], *args: Any, **named: Any) -> None:
        super().__init__(function.__name__)
        self._wire = partial(function, *args, **named)

    def expand(self, given: Any) -> Any:
        return self._wire.func(given, *self._wire.args, **self._wire.keywords)


def wired(function: Callable[Concatenate[Any, P], Any]) -> Callable[P, Wired]:
    """Turns a function into a transform. The function gets the transform's input and further arguments.

    Unlike Beam's ``ptransform_fn``, this does not write the arguments into the graph of the job.
    """
    return wraps(function)(partial(Wired, function))


def do(function: Callable[..., Iterable[Any]], /, *given: Any, **bound: Any) -> Any:
    """Returns a step that calls a function with each element and any side inputs, and outputs the results.

    Machine faults are reported under their names. Arguments bound to the function are sent with it.
    """
    return beam.ParDo(Do(partial(function, **bound)), *given)


class Do(WorkerDoFn):
    def __init__(self, function: Callable[..., Iterable[Any]]) -> None:
        super().__init__()
        self._function = function

    def process(self, element: Any, *given: Any) -> Iterator[Any]:
        with named_faults():
            yield from timed(iter(self._function(element, *given)))
