"""A worker that is gone: whatever is asked of it, before or after, is answered."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner.worker_handlers import BeamFnControlServicer, ControlConnection

from pipelines.runners import local_processes


class _Gone:
    """A worker's command that waits until it is told to end, and then was killed."""

    end = threading.Event()

    def __init__(self, *_: Any) -> None:
        pass

    def run(self) -> None:
        assert self.end.wait(10)
        raise RuntimeError("Worker subprocess exited with return code -9")


def _connection(worker_id: str) -> ControlConnection:
    return ControlConnection()


def test_what_is_asked_of_a_worker_that_is_gone_is_answered_by_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "SubprocessSdkWorker", _Gone)
    monkeypatch.setattr(local_processes, "_ended", ended := [])
    channel = SimpleNamespace(get_conn_by_worker_id=_connection)
    server = SimpleNamespace(control_handler=channel, data_plane_handler=channel, control_port=0)
    handler = local_processes._ProcessHandler(b"", None, None, server)
    handler.start_worker()

    before = handler.control_conn.push(beam_fn_api_pb2.InstructionRequest())
    assert not before.is_done()
    _Gone.end.set()
    handler.worker_thread.join(10)
    after = handler.control_conn.push(beam_fn_api_pb2.InstructionRequest())

    assert [future.get(timeout=1).error for future in (before, after)] == ["worker gone"] * 2
    assert handler.control_conn.push(BeamFnControlServicer._DONE_MARKER) is None
    assert ended == [-9]
