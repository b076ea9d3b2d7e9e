"""The local runner with one process per worker, which detects when a worker is gone.

Beam's own runner waits for an answer from a worker that was killed, possibly forever.
"""

from __future__ import annotations

import contextlib
import copy
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import grpc
from apache_beam.metrics.monitoring_infos import consolidate
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.portability.fn_api_runner.fn_runner import BundleManager, FnApiRunner, ParallelBundleManager
from apache_beam.runners.portability.fn_api_runner.worker_handlers import (
    BeamFnControlServicer,
    GrpcWorkerHandler,
    WorkerHandler,
)
from apache_beam.transforms.environments import Environment
from apache_beam.utils.thread_pool_executor import shared_unbounded_instance
from google.protobuf import text_format

from kbsource.errors import SetupError
from pipelines.runners.local_worker import run_worker

_URN = "kbsource:env:local_process:v1"
# Beam's threads; they end with a traceback when a worker is gone, but the pipeline already reports this.
_THREADS = ("beam_control_read", "read_grpc_client_inputs")
_BUNDLES_A_WORKER = 16  # while the last bundles run, some workers are idle: at most a thirtieth of a stage
_ended: list[int] = []  # exit codes of workers of the current pipeline that ended too early


class LocalProcessRunner(FnApiRunner):  # type: ignore[misc]  # Beam is untyped
    """Runs a pipeline in the number of processes given by Beam's flag ``--direct_num_workers``."""

    def __init__(self) -> None:
        super().__init__(default_environment=_LocalProcess())

    def run_pipeline(self, pipeline: Any, options: Any) -> Any:
        """Runs a pipeline to its end.

        Raises:
            SetupError: a worker is gone.
        """
        _ended.clear()
        hook, threading.excepthook = threading.excepthook, _say_unless_gone
        try:
            with _servers_for_this_machine():
                return super().run_pipeline(pipeline, options)
        except (RuntimeError, grpc.RpcError) as error:
            # Beam has waited for the end of its workers, whichever error came first.
            if not _ended:
                raise
            raise SetupError(
                f"A worker process {_how_it_ended(_ended[0])}. If the system killed it for lack of memory, give fewer "
                f"--workers. Run the same command again to resume."
            ) from error
        finally:
            threading.excepthook = hook

    def _get_bundle_manager(self, bundle_context_manager: Any) -> BundleManager:
        manager = super()._get_bundle_manager(bundle_context_manager)
        if isinstance(manager, ParallelBundleManager):
            return _SharedWork(bundle_context_manager, cache_token_generator=manager._cache_token_generator)
        return manager


_THIS_MACHINE = "127.0.0.1"


class _Grpc:
    """Replaces ``grpc`` in Beam's module of workers, so that servers listen only to this machine.

    Beam's servers listen to every network without authentication, and one of them serves any file.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(grpc, name)

    @staticmethod
    def server(*args: Any, **options: Any) -> Any:
        server = grpc.server(*args, **options)
        listen = server.add_insecure_port
        server.add_insecure_port = lambda address: listen(address.replace("[::]", _THIS_MACHINE))
        return server


@contextlib.contextmanager
def _servers_for_this_machine() -> Iterator[None]:
    """Makes the servers that Beam starts for its workers listen only to this machine."""
    worker_handlers.grpc = _Grpc()
    try:
        yield
    finally:
        worker_handlers.grpc = grpc


class _SharedWork(BundleManager):  # type: ignore[misc]  # Beam is untyped
    """Divides a stage into small bundles; each worker takes the next one when it is done.

    Beam's own manager gives each worker its share of the elements at once, regardless of how long they take.
    """

    def process_bundle(
        self, inputs: Mapping[str, Any], expected_outputs: Any, _: Any, expected_output_timers: Any, *dry_run: bool
    ) -> tuple[Any, list[Any]]:
        workers = self.bundle_context_manager.worker_handlers
        parts = {name: given.partition(_BUNDLES_A_WORKER * len(workers)) for name, given in inputs.items()}
        bundles = [dict(zip(parts, bundle, strict=True)) for bundle in zip(*parts.values(), strict=True)]
        left = deque([bundle for bundle in bundles if any(map(any, bundle.values()))] or bundles[:1])

        def work(worker: WorkerHandler) -> list[Any]:
            context = copy.copy(self.bundle_context_manager)
            context._worker_handlers = [worker]
            manager = BundleManager(context, cache_token_generator=self._cache_token_generator)
            done = []
            with contextlib.suppress(IndexError):  # no bundle is left
                while bundle := left.popleft():
                    done.append(
                        manager.process_bundle(bundle, expected_outputs, {}, expected_output_timers, *dry_run)[0]
                    )
            return done

        done = []
        try:
            for of_worker in shared_unbounded_instance().map(work, workers):
                done += of_worker
        finally:
            left.clear()  # after an error, no worker starts another bundle
        infos = chain.from_iterable(bundle.process_bundle.monitoring_infos for bundle in done)
        response = beam_fn_api_pb2.ProcessBundleResponse(monitoring_infos=consolidate(infos))
        return beam_fn_api_pb2.InstructionResponse(process_bundle=response), []


@Environment.register_urn(_URN, bytes)
class _LocalProcess(Environment):  # type: ignore[misc]  # Beam is untyped
    """The environment of Beam's workers: processes that ``_ProcessHandler`` starts."""

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
class _ProcessHandler(GrpcWorkerHandler):  # type: ignore[misc]  # Beam is untyped
    """Starts a worker. After the worker is gone, all pending and later requests to it are answered with an error."""

    def __init__(self, payload: bytes, state: Any, provision_info: Any, grpc_server: Any) -> None:
        super().__init__(state, provision_info, grpc_server)
        self._lock = threading.Lock()
        self._waiting: list[Any] = []
        self._is_gone = False
        self._push = self.control_conn.push
        self.control_conn.push = self._ask

    def start_worker(self) -> None:
        self.worker_thread = threading.Thread(target=self._run_worker, name="run_worker")
        self.worker_thread.start()

    def close(self) -> None:
        # Beam informs only connected workers: a worker that connects later would wait for work, and this process for
        # it.
        self._push(BeamFnControlServicer._DONE_MARKER)
        try:
            super().close()
        except grpc.RpcError:  # the worker's channel is closed
            self.stop_worker()

    def stop_worker(self) -> None:
        self.worker_thread.join()

    def _run_worker(self) -> None:
        control = text_format.MessageToString(self.control_api_service_descriptor())
        code = run_worker({"CONTROL_API_SERVICE_DESCRIPTOR": control, "WORKER_ID": self.worker_id})
        if code != 0:
            with self._lock:
                _ended.append(code)
                self._is_gone = True
                for future in self._waiting:
                    self._answer(future)

    def _ask(self, request: Any) -> Any:
        with self._lock:
            future = self._push(request)
            if future is not None:  # otherwise this is the end marker
                self._waiting = [other for other in self._waiting if not other.is_done()]
                self._waiting.append(future)
                if self._is_gone:
                    self._answer(future)
            return future

    def _answer(self, future: Any) -> None:
        if not future.is_done():
            future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=future.instruction_id, error="worker gone"))


def _how_it_ended(code: int) -> str:
    """Returns how a process ended.

    >>> _how_it_ended(-9), _how_it_ended(3)
    ('was killed by SIGKILL', 'ended with exit code 3')
    """
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _say_unless_gone(args: threading.ExceptHookArgs) -> None:
    if args.thread is None or args.thread.name not in _THREADS:
        threading.__excepthook__(args)
