"""A Beam worker gets from the runner what it needs to start."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc, endpoints_pb2
from apache_beam.runners.worker import sdk_worker_main
from google.protobuf import json_format, struct_pb2, text_format

from pipelines.runners import boot

INFO = beam_provision_api_pb2.ProvisionInfo(
    pipeline_options=json_format.ParseDict({"beam:option:job_name:v1": "wiki"}, struct_pb2.Struct()),
    logging_endpoint=endpoints_pb2.ApiServiceDescriptor(url="host:1"),
    status_endpoint=endpoints_pb2.ApiServiceDescriptor(url="host:2"),
    runner_capabilities=["beam:a", "beam:b"],
)


class _Provision(beam_provision_api_pb2_grpc.ProvisionServiceServicer):  # type: ignore[misc]
    """Answers worker 7-1 only."""

    def GetProvisionInfo(self, request: Any, context: Any) -> Any:
        if ("worker_id", "7-1") not in [(value.key, value.value) for value in context.invocation_metadata()]:
            context.abort(grpc.StatusCode.NOT_FOUND, "who are you?")
        return beam_provision_api_pb2.GetProvisionInfoResponse(info=INFO)


@pytest.fixture
def provision() -> Iterator[str]:
    """Address of a runner's provision service."""
    server = grpc.server(ThreadPoolExecutor(1))
    beam_provision_api_pb2_grpc.add_ProvisionServiceServicer_to_server(_Provision(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(None).wait()


def test_the_worker_is_configured_by_what_the_runner_says(provision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(boot.os, "environ", {})
    monkeypatch.setattr(sdk_worker_main, "main", lambda argv: seen.append(dict(os.environ)))

    boot.main(
        ["--id=7-1", f"--provision_endpoint={provision}", "--control_endpoint=host:3", "--logging_endpoint=host:4"]
    )

    (environment,) = seen
    assert environment["WORKER_ID"] == "7-1"
    assert json.loads(environment["PIPELINE_OPTIONS"]) == {"beam:option:job_name:v1": "wiki"}
    assert environment["RUNNER_CAPABILITIES"] == "beam:a beam:b"
    urls = {}
    for name in ("CONTROL", "LOGGING", "STATUS"):
        text = environment[f"{name}_API_SERVICE_DESCRIPTOR"]
        urls[name] = text_format.Parse(text, endpoints_pb2.ApiServiceDescriptor()).url
    # What the runner says comes before what the command line says.
    assert urls == {"CONTROL": "host:3", "LOGGING": "host:1", "STATUS": "host:2"}
