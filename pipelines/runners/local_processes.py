"""The local runner with a process for each worker, which notices that one of them is gone.

Beam's own waits for an answer of a worker that was killed: for ever, where it was about to ask it something.
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.portability.fn_api_runner.worker_handlers import SubprocessSdkWorkerHandler, WorkerHandler
from apache_beam.runners.portability.local_job_service import SubprocessSdkWorker
from apache_beam.transforms.environments import Environment

from kbsource.errors import SetupError

_URN = "kbsource:env:local_process:v1"
_COMMAND = f"exec {shlex.quote(sys.executable)} -m pipelines.runners.local_worker"
# Of Beam's; they end with a traceback when a worker is gone, which is told by the pipeline.
_THREADS = ("beam_control_read", "read_grpc_client_inputs")
_ended: list[int] = []  # exit codes of workers that went before they were told to, of the pipeline that runs


class LocalProcessRunner(FnApiRunner):  # type: ignore[misc]  # Beam is untyped
    """Runs a pipeline in as many processes as Beam's flag ``--direct_num_workers`` says."""

    def __init__(self) -> None:
        super().__init__(default_environment=_LocalProcess())

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        """Runs it to its end.

        Raises:
            SetupError: a worker is gone.
        """
        _ended.clear()
        hook, threading.excepthook = threading.excepthook, _say_unless_gone
        try:
            return super().run_pipeline(pipeline, options)
        except (RuntimeError, grpc.RpcError) as error:
            # Beam has waited for the end of its workers, whatever it fell over first.
            if not _ended:
                raise
            raise SetupError(
                f"A worker process {_how_it_ended(_ended[0])}. If it was the system for want of memory, give fewer "
                "--workers. The same command goes on where this one stopped."
            ) from error
        finally:
            threading.excepthook = hook


@Environment.register_urn(_URN, bytes)
class _LocalProcess(Environment):  # type: ignore[misc]  # Beam is untyped
    """Where Beam runs its workers: in processes that ``_ProcessHandler`` starts."""

    def to_runner_api_parameter(self, context: Any) -> tuple[str, bytes]:
        return _URN, b""

    @staticmethod
    def from_runner_api_parameter(
        payload: bytes,
        capabilities: Iterable[str],
        artifacts: Iterable[Any],
        resource_hints: Mapping[str, bytes],
        context: Any,
    ) -> _LocalProcess:
        return _LocalProcess(capabilities, artifacts, resource_hints)


@WorkerHandler.register_environment(_URN, bytes)
class _ProcessHandler(SubprocessSdkWorkerHandler):  # type: ignore[misc]  # Beam is untyped
    """Starts a worker; once it is gone, all that is and will be asked of it is answered by an error."""

    def __init__(self, payload: bytes, state: Any, provision_info: Any, grpc_server: Any) -> None:
        super().__init__(_COMMAND.encode(), state, provision_info, grpc_server)
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._is_gone = False
        self._push = self.control_conn.push
        self.control_conn.push = self._ask

    def start_worker(self) -> None:
        self.worker_thread = threading.Thread(target=self._run_worker, name="run_worker")
        self.worker_thread.start()

    def close(self) -> None:
        try:
            super().close()
        except grpc.RpcError:  # the channel of a worker that is gone
            self.stop_worker()

    def _run_worker(self) -> None:
        command = self._worker_command_line
        try:
            SubprocessSdkWorker(command, self.control_address, self.provision_info, self.worker_id).run()
        except RuntimeError as error:
            with self._lock:
                _ended.append(int(str(error).rpartition(" ")[2]))
                self._is_gone = True
                for future in self._waiting:
                    self._answer(future)

    def _ask(self, request: Any) -> Any:
        with self._lock:
            future = self._push(request)
            if future is not None:  # else it is the mark that nothing more comes
                self._waiting = [other for other in self._waiting if not other.is_done()]
                self._waiting.append(future)
                if self._is_gone:
                    self._answer(future)
            return future

    def _answer(self, future: Any) -> None:
        if not future.is_done():
            future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=future.instruction_id, error="worker gone"))


def _how_it_ended(code: int) -> str:
    """Says how a process ended.

    >>> _how_it_ended(-9), _how_it_ended(3)
    ('was killed by SIGKILL', 'ended with exit code 3')
    """
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _say_unless_gone(args: threading.ExceptHookArgs) -> None:
    if args.thread is None or args.thread.name not in _THREADS:
        threading.__excepthook__(args)
