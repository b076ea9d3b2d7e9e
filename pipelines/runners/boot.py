"""Starts a Beam worker in this Python environment: ``kbsource-worker``, for ``--environment_type=PROCESS``.

Beam's runners start a worker with a program that gets a few endpoints as arguments. Beam ships such a program only in
its container images. This program asks the runner for the job's requirements and becomes Beam's worker in the same
process, because importing Beam again would take as long as many tasks. Nothing is downloaded: its environment already
contains the code.

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
    """Returns the environment variables that configure Beam's worker, from the ``ProvisionInfo`` of Beam's service.

    ``endpoints`` contains addresses of the services ``control`` and ``logging``; addresses in ``info`` take precedence.
    """
    from apache_beam.portability.api import endpoints_pb2
    from google.protobuf import json_format, text_format

    def descriptor(name: str) -> str:
        given = getattr(info, f"{name}_endpoint")
        endpoint = given if given.url else endpoints_pb2.ApiServiceDescriptor(url=endpoints.get(name, ""))
        return str(text_format.MessageToString(endpoint, as_one_line=True))

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
