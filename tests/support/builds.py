"""Jobs run for end-to-end tests, and builds of the mini-wiki."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import pyarrow.parquet as pq
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import statecache
from apache_beam.transforms import core, userstate

from kbsource.lookup import KnowledgeSource
from pipelines.jobs.build import BuildSummary, build
from pipelines.options.build import BuildOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support import mini_wiki

R = TypeVar("R")


# Beam works these out again for every transform, and for every view of every pipeline's options.
def _arguments(
    function: Any, find: Callable[[Any], Any] = core.get_function_args_defaults
) -> tuple[list[str], list[Any]]:
    own = getattr(function, "__func__", function)  # of a method, which is without its first argument
    if not isinstance(own, FunctionType):
        names, defaults = find(function)
    else:
        names, defaults = _signatures.setdefault(own, {}).get(own is function) or find(function)
        _signatures[own][own is function] = names, defaults
    return [*names], [*defaults]


def _specs(dofn: Any, find: Callable[[Any], Any] = userstate.get_dofn_specs) -> Any:
    key = type(dofn), vars(dofn).get("process")
    if key not in _found:
        _found[key] = find(dofn)
    return _found[key]


def _view_as(options: Any, view: Any, make: Callable[[Any, Any], Any] = PipelineOptions.view_as) -> Any:
    key = view, *(options._flags or [None])
    if options._flags is None or key not in _found:
        _found[key] = vars(make(options, view))["_visible_options"]
    made, own = object.__new__(view), copy.deepcopy(_found[key])
    for name, value in vars(own).items():
        options._all_options.setdefault(name, value)
    vars(made).update(_flags=options._flags, _visible_options=own, _all_options=options._all_options)
    return made


def _all_options(
    options: Any, find: Callable[..., dict[str, Any]] = PipelineOptions.get_all_options, **given: Any
) -> dict[str, Any]:
    known = len(PipelineOptions.__subclasses__())  # more when further runners are imported
    key = type(options), known, *options._flags, repr(options._all_options), *given.items()
    if key not in _found:
        _found[key] = find(options, **given)
    return copy.deepcopy(_found[key])  # type: ignore[no-any-return]


def _yields_and_returns(function: Any, find: Callable[[Any], bool] = core._check_fn_use_yield_and_return) -> bool:
    key = find, getattr(function, "__func__", function)
    if key not in _found:
        _found[key] = find(function)
    return bool(_found[key])


_found: dict[Any, Any] = {}
_signatures: WeakKeyDictionary[FunctionType, dict[bool, tuple[list[str], list[Any]]]] = WeakKeyDictionary()
core.get_function_args_defaults, userstate.get_dofn_specs = _arguments, _specs
core._check_fn_use_yield_and_return = _yields_and_returns
PipelineOptions.view_as, PipelineOptions.get_all_options = _view_as, _all_options
statecache.get_deep_size = lambda *_: 1  # walks through all that a side input refers to; none fills the cache


def run_job(
    job: Callable[..., R],
    options: Any,
    *,
    runner: str = "local",
    workers: int | None = None,
    beam_args: Sequence[str] = (),
) -> R:
    """Runs a job, whose progress nobody sees."""
    flags = beam_flags(runner, workers=workers, beam_args=beam_args)
    return job(options, flags=flags, progress=Progress(io.StringIO()))


def build_mini(
    output: Path | str,
    *,
    dump: Path | str = mini_wiki.MULTISTREAM,
    runner: str = "local",
    workers: int | None = None,
    beam_args: Sequence[str] = (),
    **options: Any,
) -> BuildSummary:
    """Builds the mini-wiki, with a ceiling that lets its broken pages pass unless told otherwise."""
    given = {"page_props": str(mini_wiki.PAGE_PROPS), "max_rejects": mini_wiki.MAX_REJECTS, **options}
    built = BuildOptions(dump=(str(dump),), output=str(output), **given)
    return run_job(build, built, runner=runner, workers=workers, beam_args=beam_args)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rows(release: Path, table: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    return [row for path in sorted((release / table).iterdir()) for row in pq.read_table(path).to_pylist()]


def open_release(release: Path) -> KnowledgeSource:
    """Opens a release."""
    return KnowledgeSource.open(str(release))
