"""A pipeline looked at instead of run: what its runner would get, and how large that is."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import PortableOptions, StandardOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.transforms.environments import DockerEnvironment

from kbsource.errors import SetupError
from pipelines.runners.clusters import DATAFLOW_RUNNER

DATAFLOW_MOST_BYTES = 10_000_000
"""Of the graph of a job. https://cloud.google.com/dataflow/quotas, 2026-11-24."""
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


class Graph(NamedTuple):
    """What a runner gets of a pipeline."""

    runner: str
    transforms: int  # with those that consist of others
    stages: int  # after fusion: what lies between shuffles is one
    shuffles: int
    side_inputs: int
    bytes: int  # as it is handed over
    settings: dict[str, Any]  # of Beam: what was given of what decides cost and place


def graph_of(pipeline: Any) -> Graph:
    """What the runner of a pipeline gets; for Dataflow its job is made as it would be sent.

    Raises:
        SetupError: Dataflow would refuse it.
    """
    options, runner = pipeline.options, type(pipeline.runner).__name__
    is_far = runner == DATAFLOW_RUNNER
    environment = DockerEnvironment.from_options(options.view_as(PortableOptions)) if is_far else None
    graph = pipeline.to_runner_api(default_environment=environment)
    n_bytes = graph.ByteSize()
    given = options.get_all_options(drop_default=True)  # before a job of Dataflow adds its own folders
    if is_far:
        _check_job(options, graph)
    transforms = graph.components.transforms.values()
    urns = Counter(one.spec.urn for one in transforms)
    payloads = (
        beam_runner_api_pb2.ParDoPayload.FromString(one.spec.payload) for one in transforms if one.spec.urn == _PAR_DO
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
    """Makes the job that Dataflow's service would get, which nothing is sent to."""
    from apache_beam.runners.dataflow.internal import apiclient  # needs Google's libraries

    try:
        apiclient.Job(options, graph)
    except ValueError as error:
        raise SetupError(f"Dataflow would not take the job: {error}") from error
    if graph.ByteSize() > DATAFLOW_MOST_BYTES:
        raise SetupError(
            f"The job's graph has {graph.ByteSize():,} bytes, and Dataflow takes {DATAFLOW_MOST_BYTES:,}; read fewer "
            "files or larger ranges at once."
        )
