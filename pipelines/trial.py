"""A job looked at before it runs: its inputs, its folder, its pipeline and what it will take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from typing import Any

from kbsource.files import Folder, glob, is_local
from kbsource.release.layout import INDEX, MANIFEST
from kbsource.release.output import trial
from mapping.options import paths_of
from pipelines.runners.dry_run import graph_of
from pipelines.runners.running import NotRunError, instead_of_running
from pipelines.terminal import Summary

_WRITTEN = ("output", "scratch")


def dry_run(job: Callable[[], object], arguments: Mapping[str, Any]) -> Summary:
    """What a command of a job would do with its arguments; the job itself checks all that it checks before it runs.

    Raises:
        SetupError: as the job does, for what can be seen to be wrong.
    """
    with trial(), instead_of_running(graph_of):
        try:
            job()
        except NotRunError as ended:
            graph = ended.result
        else:
            return Summary(title="All of it is done: there is nothing left to run.", values={"graph": None})
    options = [value for value in arguments.values() if is_dataclass(value)]
    named = [(name, value) for name, value in arguments.items() if isinstance(value, str)]
    named += [found for one in options for found in paths_of(one)]
    reads = {path: _sizes(name, path) for name, path in named if name not in _WRITTEN}
    n_copied = sum(copied for _, copied in reads.values())
    n_allocated = max(getattr(one, "worker_memory_bytes", 0) for one in (*options, None))
    values = {
        "graph": graph._asdict(),
        "reads": {path: n_bytes for path, (n_bytes, _) in reads.items()},
        "bytes_copied_to_each_machine": n_copied,
        "most_bytes_of_a_working_process": n_allocated or None,
    }
    rows = [
        ("runner", graph.runner),
        *graph.settings.items(),
        ("stages", graph.stages),
        ("  transforms", graph.transforms),
        ("  shuffles", graph.shuffles),
        ("  side inputs", graph.side_inputs),
        ("bytes of the graph", graph.bytes),
        *((f"reads {path}", _text(n_bytes)) for path, (n_bytes, _) in reads.items()),
        ("copied to each machine", _text(n_copied)),
        ("memory of a working process", n_allocated and f"at most {_text(n_allocated)}"),
    ]
    title = "A dry run: nothing was run, and nothing is left behind."
    return Summary(title=title, rows=[row for row in rows if row[1]], values=values)


def _sizes(name: str, path: str) -> tuple[int, int]:
    """The bytes of an input, and those that every machine gets a copy of: of what lies in a store, the index of a
    release and a model, since both are mapped into memory."""
    folder = Folder.of(path)
    files = {file: folder.size(file) for file in folder.files()} or {
        file: Folder.of(file).size() for file in glob(path)
    }
    is_release = MANIFEST in files
    mapped = [file for file in files if name == "model" or (is_release and file.startswith(f"{INDEX}/"))]
    return sum(files.values()), 0 if is_local(path) else sum(files[file] for file in mapped)


def _text(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
