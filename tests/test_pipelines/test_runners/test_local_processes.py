"""Workers of the local runner: what a stage has to do is shared by them as they go; one that is gone answers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.portability.fn_api_runner.worker_handlers import BeamFnControlServicer, ControlConnection

from kbsource.runtime import fork_server
from pipelines.runners import local_processes, local_worker
from pipelines.runners.local_worker import run_worker, worker_server
from pipelines.runners.presets import beam_flags
from pipelines.runners.running import new_pipeline, run_pipeline
from pipelines.runners.workers import do
from tests.support.shared_work import wait_for_others

_end = threading.Event()


def _killed_worker(_: Any) -> int:
    """Stands for a worker that waits until it is told to end, and then was killed."""
    assert _end.wait(10)
    return -9


def _connection(worker_id: str) -> ControlConnection:
    return ControlConnection()


def test_what_is_asked_of_a_worker_that_is_gone_is_answered_by_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_processes, "run_worker", _killed_worker)
    monkeypatch.setattr(local_processes, "_ended", ended := [])
    channel = SimpleNamespace(get_conn_by_worker_id=_connection)
    server = SimpleNamespace(control_handler=channel, data_plane_handler=channel, control_port=0)
    handler = local_processes._ProcessHandler(b"", None, None, server)
    handler.start_worker()

    before = handler.control_conn.push(beam_fn_api_pb2.InstructionRequest())
    assert not before.is_done()
    _end.set()
    handler.worker_thread.join(10)
    after = handler.control_conn.push(beam_fn_api_pb2.InstructionRequest())

    assert [future.get(timeout=1).error for future in (before, after)] == ["worker gone"] * 2
    assert handler.control_conn.push(BeamFnControlServicer._DONE_MARKER) is None
    assert ended == [-9]


def test_a_worker_that_connects_when_all_is_over_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    over, told = threading.Event(), []

    def late_worker(_: Any) -> int:
        assert over.wait(10)
        handler.control_conn.set_input(iter(()))
        told.append(handler.control_conn._push_queue.get(timeout=10))
        return 0

    monkeypatch.setattr(local_processes, "run_worker", late_worker)
    data = SimpleNamespace(get_conn_by_worker_id=lambda _: SimpleNamespace(close=over.set))
    control = SimpleNamespace(get_conn_by_worker_id=_connection)
    server = SimpleNamespace(control_handler=control, data_plane_handler=data, control_port=0)
    handler = local_processes._ProcessHandler(b"", None, None, server)
    handler.start_worker()

    handler.close()

    assert told == [BeamFnControlServicer._DONE_MARKER]


@pytest.mark.slow  # worker processes
def test_a_worker_takes_what_is_left_while_the_other_one_is_long_at_its_first(tmp_path: Path) -> None:
    n_elements = 9
    pipeline = new_pipeline(beam_flags("local", workers=2, beam_args=()))
    pairs = [(number, number) for number in range(n_elements)]
    elements = pipeline | beam.Create(pairs, reshuffle=False) | beam.GroupByKey()  # the first one comes first
    _ = elements | do(wait_for_others, folder=str(tmp_path), n_elements=n_elements)

    run_pipeline(pipeline, "test")

    processes = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert len(processes) == n_elements
    assert list(processes.values()).count(processes["0"]) == 1


@pytest.mark.slow  # worker processes
def test_the_end_of_a_worker_is_reported_and_a_server_that_is_gone_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fork_server, "_server", None)
    monkeypatch.setattr(local_worker, "PREPARE", f"{local_worker.__name__}:prepare")  # not that of the tests
    server = worker_server()

    assert run_worker({}) == 1  # it is not told where its driver is
    assert worker_server() is server

    os.kill(server.pid, signal.SIGKILL)
    assert run_worker({}) == -signal.SIGKILL
    assert worker_server() is not server
    worker_server().end()


def test_servers_for_workers_listen_to_this_machine_only() -> None:
    with local_processes._servers_for_this_machine():
        server = worker_handlers.GrpcServer(worker_handlers.StateServicer(), None, SimpleNamespace())
    try:
        for port in (server.control_port, server.data_port, server.state_port, server.logging_port):
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
            with pytest.raises(ConnectionRefusedError):  # any other address of this machine
                socket.create_connection(("127.0.0.2", port), timeout=10)
    finally:
        server.close()
