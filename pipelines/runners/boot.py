"""Starts a Beam worker of this Python environment: ``kbsource-worker``, for ``--environment_type=PROCESS``.

Beam's runners start a worker by a program with a few endpoints as its arguments; Beam ships one in its container
images only. This one asks the runner what the job needs and becomes Beam's worker, in the same process: importing Beam
anew would take as long as many a task. Nothing is fetched: its environment has the code already.

Source: the contract of Beam's SDK containers, https://beam.apache.org/documentation/runtime/environments/.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

CONNECT_TIMEOUT_S = 60.0


def worker_environment(worker_id: str, info: Any, endpoints: Mapping[str, str]) -> dict[str, str]:
    """The environment variables that Beam's worker is configured by, from the ``ProvisionInfo`` of Beam's service.

    ``endpoints`` has addresses of the services ``control`` and ``logging``; those in ``info`` come first.
    """
    from apache_beam.portability.api import endpoints_pb2
    from google.protobuf import json_format, text_format

    def descriptor(name: str) -> str:
        given = getattr(info, f"{name}_endpoint")
        one = given if given.url else endpoints_pb2.ApiServiceDescriptor(url=endpoints.get(name, ""))
        return str(text_format.MessageToString(one, as_one_line=True))

    variables = {
        "WORKER_ID": worker_id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options, indent=None),
        "CONTROL_API_SERVICE_DESCRIPTOR": descriptor("control"),
        "LOGGING_API_SERVICE_DESCRIPTOR": descriptor("logging"),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        "SEMI_PERSISTENT_DIRECTORY": tempfile.gettempdir(),
    }
    if info.status_endpoint.url:
        variables["STATUS_API_SERVICE_DESCRIPTOR"] = descriptor("status")
    return variables


def main(argv: Sequence[str] | None = None) -> None:
    """Becomes Beam's worker."""
    from apache_beam.runners.worker import sdk_worker_main

    parser = argparse.ArgumentParser(prog="kbsource-worker", description=__doc__.partition("\n")[0])
    parser.add_argument("--id", required=True)
    for name in ("provision", "control", "logging", "artifact"):
        parser.add_argument(f"--{name}_endpoint", default="")
    args, _ = parser.parse_known_args(argv)
    info = _provision_info(args.provision_endpoint, args.id)
    endpoints = {"control": args.control_endpoint, "logging": args.logging_endpoint}
    os.environ.update(worker_environment(args.id, info, endpoints))
    sdk_worker_main.main([])


def _provision_info(endpoint: str, worker_id: str) -> Any:
    import grpc
    from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc

    with grpc.insecure_channel(endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        metadata = [("worker_id", worker_id)]
        return service.GetProvisionInfo(request, metadata=metadata, timeout=CONNECT_TIMEOUT_S).info


if __name__ == "__main__":
    main()
