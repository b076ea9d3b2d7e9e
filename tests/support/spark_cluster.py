"""A real Spark cluster on the loopback address: a master and workers as processes of their own, on free ports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.real_data import ROOT
from tests.support.spark_kit import SparkKit

START_TIMEOUT_S = 120.0
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_MASTER_RUNS = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_RUNS = re.compile("Successfully registered with master")
_HOST = "127.0.0.1"
_EXECUTOR_MB = 512
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""For programs that run for seconds: compiling well takes longer than they do."""


class LoggedProcess:
    """A process in a session of its own, whose standard error is kept and can be waited on."""

    def __init__(self, command: list[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.log = log
        self._wanted: tuple[re.Pattern[str], threading.Event] | None = None
        self._found: re.Match[str] | None = None
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Gives the match of the first line that has the pattern; to be called once."""
        is_there = threading.Event()
        threading.Thread(target=self._read, args=(pattern, is_there), daemon=True).start()
        if not is_there.wait(START_TIMEOUT_S) or self._found is None:
            self.kill()
            raise RuntimeError(f"{self.process.args} did not come up:\n{self.log.read_text('utf-8')[-3000:]}")
        return self._found

    def _read(self, pattern: re.Pattern[str], is_there: threading.Event) -> None:
        assert self.process.stderr is not None
        with self.log.open("wb") as log:
            for line in self.process.stderr:
                log.write(line)
                log.flush()
                if self._found is None:
                    self._found = pattern.search(line.decode("utf-8", "replace"))
                    if self._found is not None:
                        is_there.set()
        is_there.set()

    def kill(self) -> None:
        """Kills the process and whatever it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class SparkCluster:
    """A master and workers of one core each; a context manager, at whose end nothing runs any more."""

    def __init__(self, kit: SparkKit, folder: Path, *, n_workers: int = 2) -> None:
        self.kit = kit
        self.url = ""
        self._folder = folder
        self._n_workers = n_workers
        self._processes: list[LoggedProcess] = []
        self.workers: list[LoggedProcess] = []

    def __enter__(self) -> SparkCluster:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            master = self._start("master", _MASTER, "--port", "0")
            self.url = master.wait_for(_MASTER_RUNS)[1]
            for _ in range(self._n_workers):
                self.add_worker()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Kills everything, workers first."""
        for process in reversed(self._processes):
            process.kill()

    def add_worker(self) -> LoggedProcess:
        """Starts another worker and waits until the master has it."""
        name = f"worker-{len(self.workers)}"
        own = ("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name), self.url)
        worker = self._start(name, _WORKER, "--port", "0", *own)
        self.workers.append(worker)
        worker.wait_for(_WORKER_RUNS)
        return worker

    def flags(self, **environment: str) -> list[str]:
        """Gives the flags of ``--runner spark`` for this cluster.

        Args:
            environment: variables of the Python workers.
        """
        # The project's folder last, for the tests' own parsers.
        path = os.pathsep.join([*filter(None, [environment.pop("PYTHONPATH", None)]), str(ROOT)])
        config = {"command": self.worker_command(), "env": {"PYTHONPATH": path, **environment}}
        return [
            f"--spark_master_url={self.url}",
            f"--spark_job_server_jar={self.kit.job_server}",
            "--environment_type=PROCESS",
            f"--environment_config={json.dumps(config)}",
            *(f"--job_server_jvm_properties={one}" for one in (*QUICK_JAVA, *self.jvm_properties())),
        ]

    def jvm_properties(self) -> list[str]:
        """Gives settings of Spark for a driver on this machine."""
        first = os.pathsep.join(map(str, self.kit.first_jars))
        return [
            f"-Dspark.driver.host={_HOST}",
            f"-Dspark.driver.bindAddress={_HOST}",
            f"-Dspark.executor.memory={_EXECUTOR_MB}m",
            "-Dspark.ui.enabled=false",
            *([f"-Dspark.executor.extraClassPath={first}"] if first else []),
        ]

    def worker_command(self) -> str:
        """Gives the program that starts a Python worker of this very environment."""
        path = self._folder / "python-worker"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -m pipelines.runners.boot "$@"\n', "utf-8")
        path.chmod(0o755)
        return str(path)

    def _start(self, name: str, main_class: str, *arguments: str) -> LoggedProcess:
        # Through the launcher, so that they end with this process however it ends.
        java = [sys.executable, "-m", "pipelines.runners.job_server", "-Xmx256m", "-cp", f"{self.kit.spark}/jars/*"]
        process = LoggedProcess(
            [*java, main_class, "--host", _HOST, "--webui-port", "0", *arguments],
            log=self._folder / f"{name}.log",
            env={
                "SPARK_HOME": str(self.kit.spark),
                "SPARK_SCALA_VERSION": "2.12",
                "SPARK_LOCAL_IP": _HOST,
                "JDK_JAVA_OPTIONS": " ".join(QUICK_JAVA),  # for the executors, who have what the workers have
                "PYTHONPATH": str(ROOT),
            },
        )
        self._processes.append(process)
        return process
