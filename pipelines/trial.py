"""Checks a job before it runs: its inputs, its output folder, its pipeline and its requirements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PortableOptions, StandardOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.transforms.environments import DockerEnvironment

from kbsource.errors import SetupError, counted
from kbsource.files import Folder, glob, is_local
from kbsource.release.layout import INDEX, MANIFEST
from kbsource.release.output import trial
from mapping.options import OUTPUT_FOLDERS, each_option, paths_of
from pipelines.progress import clock
from pipelines.runners.clusters import DATAFLOW_RUNNER
from pipelines.runners.presets import LOCAL
from pipelines.runners.running import NotRunError, instead_of_running
from pipelines.terminal import Summary

DATAFLOW_MOST_BYTES = 10_000_000
"""Maximum size of a job's graph. https://cloud.google.com/dataflow/quotas, 2026-11-24."""
_SETTINGS = (
    "sdk_container_image",
    "temp_location",
    "staging_location",
    "num_workers",
    "max_num_workers",
    "machine_type",
    "disk_size_gb",
    "number_of_worker_harness_threads",
    "spark_master_url",
    "flink_master",
    "parallelism",
)
_PAR_DO = common_urns.primitives.PAR_DO.urn
_SHUFFLES = (common_urns.primitives.GROUP_BY_KEY.urn, common_urns.composites.RESHUFFLE.urn)


def dry_run(job: Callable[[], object], arguments: Mapping[str, Any], hints: Mapping[str, Any]) -> Summary:
    """Returns a description of what a job's command would do. The job performs all its checks.

    Args:
        job: runs the command.
        arguments: arguments of the command by name.
        hints: their types.

    Raises:
        SetupError: the job raises it for errors that can be detected before it runs.
    """
    with trial(), instead_of_running(graph_of):
        try:
            job()
        except NotRunError as ended:
            graph, sample = ended.result, ended.sample
        else:
            return Summary(title="The output is complete: there is nothing left to run.", values={"graph": None})
    named = paths_of(arguments, hints)
    reads = {path: _sizes(name, path) for name, path in named if name not in OUTPUT_FOLDERS}
    n_copied = sum(copied for _, copied in reads.values())
    run = arguments["run"]
    estimate = sample(run.workers) if sample is not None and run.runner == LOCAL else None
    allocated = (value for name, _, value in each_option(arguments, hints) if name == "worker_memory_bytes")
    n_allocated = max(allocated, default=None)
    values = {
        "graph": graph._asdict(),
        "reads": {path: n_bytes for path, (n_bytes, _) in reads.items()},
        "bytes_copied_to_each_machine": n_copied,
        "most_bytes_of_a_working_process": n_allocated,
        "estimate": estimate and estimate._asdict(),
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
        ("memory of a worker process", n_allocated and f"at most {_text(n_allocated)}"),
        ("time, estimated", estimate and f"{clock(estimate.seconds)} with {counted(run.workers, 'worker')}"),
        ("peak size of the output folder, estimated", estimate and _text(estimate.peak_bytes)),
        ("size of the release, estimated", estimate and _text(estimate.release_bytes)),
    ]
    title = "A dry run: nothing was run, and no files remain."
    return Summary(title=title, rows=[row for row in rows if row[1]], values=values)


def _sizes(name: str, path: str) -> tuple[int, int]:
    """Returns the size of an input, and the size of its part that is copied to every machine, in bytes. For inputs in a
    bucket, the index of a release and a model are copied, because both are memory-mapped.
    """
    folder = Folder.of(path)
    files = {file: folder.size(file) for file in folder.files()} or {
        file: Folder.of(file).size() for file in glob(path)
    }
    is_release = MANIFEST in files
    mapped = [file for file in files if name == "model" or (is_release and file.startswith(f"{INDEX}/"))]
    return sum(files.values()), 0 if is_local(path) else sum(files[file] for file in mapped)


def _text(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"


class Graph(NamedTuple):
    """The pipeline as a runner receives it."""

    runner: str
    transforms: int  # counts composite transforms too
    stages: int  # counts steps after fusion: all steps between two shuffles are one stage
    shuffles: int
    side_inputs: int
    bytes: int  # size of the submitted graph
    settings: dict[str, Any]  # Beam options that were given and that affect cost and location


def graph_of(pipeline: Any) -> Graph:
    """Returns the pipeline as its runner receives it. A Dataflow job is constructed but not sent.

    Raises:
        SetupError: Dataflow would reject it.
    """
    options, runner = pipeline.options, type(pipeline.runner).__name__
    is_far = runner == DATAFLOW_RUNNER
    environment = DockerEnvironment.from_options(options.view_as(PortableOptions)) if is_far else None
    graph = pipeline.to_runner_api(default_environment=environment)
    n_bytes = graph.ByteSize()
    given = options.get_all_options(drop_default=True)  # Read them before a Dataflow job adds its own folders.
    if is_far:
        _check_job(options, graph)
    transforms = graph.components.transforms.values()
    urns = Counter(transform.spec.urn for transform in transforms)
    payloads = (
        beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload)
        for transform in transforms
        if transform.spec.urn == _PAR_DO
    )
    n_side_inputs = sum(len(payload.side_inputs) for payload in payloads)
    _, stages = fn_runner.FnApiRunner().create_stages(graph)
    return Graph(
        runner=options.view_as(StandardOptions).runner or runner,
        transforms=len(transforms),
        stages=len(stages),
        shuffles=sum(urns[urn] for urn in _SHUFFLES),
        side_inputs=n_side_inputs,
        bytes=n_bytes,
        settings={name: value for name in _SETTINGS if (value := given.get(name))},
    )


def _check_job(options: Any, graph: Any) -> None:
    """Constructs the job for Dataflow's service, without sending anything."""
    from apache_beam.runners.dataflow.internal import apiclient  # needs Google's libraries

    try:
        apiclient.Job(options, graph)
    except ValueError as error:
        raise SetupError(f"Dataflow would reject the job: {error}") from error
    if graph.ByteSize() > DATAFLOW_MOST_BYTES:
        raise SetupError(
            f"The job's graph has {graph.ByteSize():,} bytes, and Dataflow accepts at most {DATAFLOW_MOST_BYTES:,}. "
            f"Read fewer files at once, or larger ranges."
        )
