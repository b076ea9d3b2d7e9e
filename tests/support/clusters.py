"""Real clusters of Spark and Flink on the loopback address: processes of their own, on free ports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.request import urlopen

from tests.support.real_data import ROOT
from tests.support.spark_kit import SparkKit

START_TIMEOUT_S = 120.0
QUICK_JAVA = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
"""For programs that run for seconds: compiling well takes longer than they do."""
JOB_SERVER_RUNS = re.compile(r"JobService started on (\S+)")
_HOST = "127.0.0.1"
_EXECUTOR_MB = 512
_LOGGING = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
_OPENED = ("java.lang", "java.nio", "java.util", "java.util.concurrent", "sun.nio.ch")
# What Flink's scripts would work out of the size of a process.
_TASK_MANAGER = {
    "taskmanager.host": _HOST,
    "taskmanager.numberOfTaskSlots": "1",
    "taskmanager.cpu.cores": "1",
    "taskmanager.memory.framework.heap.size": "64m",
    "taskmanager.memory.framework.off-heap.size": "64m",
    "taskmanager.memory.task.heap.size": "256m",
    "taskmanager.memory.task.off-heap.size": "0m",
    # A job of a hundred steps wants many buffers at once.
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "taskmanager.network.sort-shuffle.min-buffers": "64",
    "taskmanager.memory.managed.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "64m",
    "taskmanager.memory.jvm-overhead.max": "64m",
    # The classes are here, and Python workers stay from one part of a job to the next: else they end with its classes.
    "classloader.resolve-order": "parent-first",
}
_JOB_MANAGER = {
    "jobmanager.rpc.port": "0",
    "jobmanager.memory.process.size": "512m",
    "rest.address": _HOST,
    "rest.port": "0",
    "blob.server.port": "0",
    # A task is tried again, which Flink does not do of itself, until it is noticed that a task manager is gone.
    "heartbeat.interval": "1000",
    "heartbeat.timeout": "10000",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "6",
    "restart-strategy.fixed-delay.delay": "4 s",
}


class LoggedProcess:
    """A process in a session of its own, whose output is kept and can be waited on."""

    def __init__(self, command: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.log = log
        self._found: re.Match[str] | None = None
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Gives the match of the first line that has the pattern; to be called once."""
        is_there = threading.Event()
        threading.Thread(target=self._read, args=(pattern, is_there), daemon=True).start()
        if not is_there.wait(START_TIMEOUT_S) or self._found is None:
            self.kill()
            raise RuntimeError(f"{self.process.args!r} did not come up:\n{self.log.read_text('utf-8')[-3000:]}")
        return self._found

    def _read(self, pattern: re.Pattern[str], is_there: threading.Event) -> None:
        assert self.process.stdout is not None
        with self.log.open("wb") as log:
            for line in self.process.stdout:
                log.write(line)
                log.flush()
                if self._found is None:
                    self._found = pattern.search(line.decode("utf-8", "replace"))
                    if self._found is not None:
                        is_there.set()
        is_there.set()

    def started(self, pid: int) -> bool:
        """Whether another process is one of those that this one started."""
        return os.getsid(pid) == self.process.pid

    def kill(self) -> None:
        """Kills the process and whatever it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Cluster:
    """A master and workers of one core each; a context manager, at whose end nothing runs any more."""

    runner = ""
    """Its preset."""

    parallelism: tuple[str, ...] = ()
    """Flags that spread a job over the workers, where it is not by itself."""

    def __init__(self, kit: SparkKit, folder: Path, *, n_workers: int = 2) -> None:
        self.kit = kit
        self._n_workers = n_workers
        self.workers: list[LoggedProcess] = []
        self._folder = folder
        self._processes: list[LoggedProcess] = []

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            self._start_master()
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

    def add_worker(self) -> None:
        """Starts another worker and waits until the master has it."""
        raise NotImplementedError

    def flags(self, **variables: str) -> list[str]:
        """Gives the flags of the preset for this cluster; ``variables`` are of the Python workers."""
        raise NotImplementedError

    def _start_master(self) -> None:
        raise NotImplementedError

    @contextmanager
    def endpoint(self) -> Iterator[list[str]]:
        """Starts a job server for jobs one after the other; gives the flags that hand them over to it."""
        ports = [f"--{name}-port=0" for name in ("job", "artifact", "expansion")]
        server = self._job_server(*ports, f"--artifacts-dir={self._folder / 'artifacts'}")
        try:
            address = server.wait_for(JOB_SERVER_RUNS)[1]
            yield [f"--job_endpoint={address}", *self.parallelism, *self.environment()]
        finally:
            server.kill()

    def _job_server(self, *arguments: str) -> LoggedProcess:
        raise NotImplementedError

    def environment(self, **variables: str) -> list[str]:
        """Gives the flags for Python workers of this very environment, with variables of theirs."""
        # The project's folder last, for the tests' own parsers.
        path = os.pathsep.join([*filter(None, [variables.pop("PYTHONPATH", None)]), str(ROOT)])
        config = {"command": self.worker_command(), "env": {"PYTHONPATH": path, **variables}}
        return ["--environment_type=PROCESS", f"--environment_config={json.dumps(config)}"]

    def worker_command(self) -> str:
        """Gives the program that starts a Python worker of this very environment, from whatever folder."""
        path = self._folder / "python-worker"
        path.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m pipelines.runners.boot "$@"\n', "utf-8")
        path.chmod(0o755)
        return str(path)

    def _with_log(self, jar: Path) -> list[str]:
        """Gives the flags for programs of a job server's jar, which may be without a logger."""
        logging = [next((self.kit.spark / "jars").glob(f"{name}-[0-9]*.jar")) for name in _LOGGING]
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]
        return ["-Xmx640m", "-Dlog4j2.level=INFO", *opened, "-cp", os.pathsep.join(map(str, [*logging, jar]))]

    def _java(self, name: str, *arguments: str) -> LoggedProcess:
        # Through the launcher, so that they end with this process however it ends.
        process = LoggedProcess(
            [sys.executable, "-m", "pipelines.runners.job_server", *arguments],
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


class SparkCluster(Cluster):
    """Spark's master and workers; every job gets executors of its own."""

    runner = "spark"
    url = ""

    def _start_master(self) -> None:
        self.url = self._start("master", "Master").wait_for(re.compile(r"Starting Spark master at (spark://\S+)"))[1]

    def add_worker(self) -> None:
        name = f"worker-{len(self.workers)}"
        own = ("--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name), self.url)
        self.workers.append(self._start(name, "Worker", *own))
        self.workers[-1].wait_for(re.compile("Successfully registered with master"))

    def _start(self, name: str, kind: str, *arguments: str) -> LoggedProcess:
        main_class = f"org.apache.spark.deploy.{kind.lower()}.{kind}"
        java = ("-Xmx256m", "-cp", f"{self.kit.spark}/jars/*", main_class)
        return self._java(name, *java, "--host", _HOST, "--port", "0", "--webui-port", "0", *arguments)

    def flags(self, **variables: str) -> list[str]:
        return [
            f"--spark_master_url={self.url}",
            f"--spark_job_server_jar={self.kit.job_server}",
            *self.environment(**variables),
            *(
                f"--job_server_jvm_properties={property_flag}"
                for property_flag in (*QUICK_JAVA, *self.jvm_properties())
            ),
        ]

    def _job_server(self, *arguments: str) -> LoggedProcess:
        # With the same executors for all jobs.
        java = [
            "-Dbeam.spark.test.reuseSparkContext=true",
            *self.jvm_properties(),
            *self._with_log(self.kit.job_server),
        ]
        main_class = "org.apache.beam.runners.spark.SparkJobServerDriver"
        return self._java("job-server", *java, main_class, f"--spark-master-url={self.url}", *arguments)

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


class FlinkCluster(Cluster):
    """Flink's job manager and task managers, out of the jars of Beam's job server; a task that fails is tried again."""

    runner = "flink"
    parallelism = ("--parallelism=2",)
    address = ""
    """Of its REST API, and of whoever hands a job over."""

    def _start_master(self) -> None:
        (self._folder / "config.yaml").write_text("", "utf-8")
        main_class = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
        master = self._start("job-manager", main_class, _JOB_MANAGER)
        self.address = master.wait_for(re.compile(r"Rest endpoint listening at (\S+)"))[1]
        (self._port,) = re.findall(r"Actor system started at \S+:(\d+)", master.log.read_text("utf-8"))[:1]

    def add_worker(self) -> None:
        main_class = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
        settings = {**_TASK_MANAGER, "jobmanager.rpc.port": self._port}
        self.workers.append(self._start(f"task-manager-{len(self.workers)}", main_class, settings))
        self.workers[-1].wait_for(re.compile("Successful registration at resource manager"))

    def accumulators(self) -> str:
        """Gives what the page of the newest job shows beside its steps."""
        jobs = json.load(urlopen(f"http://{self.address}/jobs/overview"))["jobs"]
        newest = max(jobs, key=lambda job: job["start-time"])["jid"]
        return str(json.load(urlopen(f"http://{self.address}/jobs/{newest}/accumulators"))["user-task-accumulators"])

    def _start(self, name: str, main_class: str, settings: Mapping[str, str]) -> LoggedProcess:
        given = {"jobmanager.rpc.address": _HOST, "io.tmp.dirs": str(self._folder / "scratch"), **settings}
        dynamic = [part for key, value in given.items() for part in ("-D", f"{key}={value}")]
        return self._java(
            name, *self._with_log(self.kit.flink_job_server), main_class, "--configDir", str(self._folder), *dynamic
        )

    def _job_server(self, *arguments: str) -> LoggedProcess:
        main_class = "org.apache.beam.runners.flink.FlinkJobServerDriver"
        java = self._with_log(self.kit.flink_job_server)
        return self._java("job-server", *java, main_class, f"--flink-master={self.address}", *arguments)

    def flags(self, **variables: str) -> list[str]:
        return [
            f"--flink_master={self.address}",
            *self.parallelism,
            f"--flink_job_server_jar={self.kit.flink_job_server}",
            *self.environment(**variables),
            *(f"--job_server_jvm_properties={property_flag}" for property_flag in QUICK_JAVA),
        ]
