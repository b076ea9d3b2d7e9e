"""Presets for clusters: the Beam flags for Spark, Flink and Dataflow, and checks of their requirements.

Processes next to Beam's Python workers do the heavy work, and all their output is in files. Workers must therefore be
able to access the dump and the output folder under the same paths as the driver, and need the same installation of
kbsource.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping

from kbsource.errors import SetupError
from kbsource.stores import check_reachable
from pipelines.runners.job_server import beam_jar, check_java, given_jar, jvm_flags, launcher_flags

WORKER_COMMAND = "kbsource-worker"
DATAFLOW_RUNNER = "DataflowRunner"
ENVIRONMENT_CACHE_MS = 60_000
"""Time that an idle Python worker waits for the next stage, in milliseconds. Starting a worker takes seconds."""
# Flink retries a task with the waiting worker, even if it is dead, so a killed worker must be dropped before.
_FLINK_ENVIRONMENT_CACHE_MS = 2_000

# Spark 3.5 runs on Java 8, 11 and 17, Beam 2.77 on 11 and newer. https://spark.apache.org/docs/3.5.0/, 2026-11-21.
SPARK_JAVA = (11, 17)
# Flink 1.20 and 2.x: https://nightlies.apache.org/flink/flink-docs-release-2.0/docs/deployment/java_compatibility/.
FLINK_JAVA = (11, 17, 21)
# Packages that Spark and Beam access and that Java 17 closes; Beam opens them only for its job server.
_OPENED = ("sun.nio.ch", "java.nio", "java.util", "java.lang.invoke", "java.lang")
# After its Python worker has died, an executor gives it more tasks for a while, and Spark gives up after four failures.
# So a failed task is moved to another executor.
_TRY_ELSEWHERE = "-Dspark.excludeOnFailure.enabled=true"
# If a task has failed on all executors, the job ends instead of waiting two minutes for another one.
_GIVE_UP = "-Dspark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout=1s"

_GOOGLES_FOLDER = re.compile(r"gs://[a-z0-9][-_a-z0-9.]+[a-z0-9]/.+")
_DATAFLOW_NEEDS = {
    "project": "the Google Cloud project",
    "region": "the region where the workers run, such as us-central1",
    "temp_location": "a folder gs://BUCKET/FOLDER for temporary files",
    "sdk_container_image": "the image of docker/Dockerfile, in a registry that the workers can reach",
}


def spark_flags(given: Mapping[str, str]) -> list[str]:
    """Returns the flags for a Spark 3.5 cluster, in addition to the ``given`` ones.

    Beam's job server is started next to the driver, or ``job_endpoint`` names a running one. Executors start Python
    workers as processes, unless another environment is given.

    Raises:
        SetupError: a requirement is missing; the message explains how to get it.
    """
    environment = _environment(given)
    if "job_endpoint" in given:
        return _portable(given, environment)
    master = given.get("spark_master_url")
    if master is None:
        raise SetupError(
            "--runner spark needs the address of the cluster: give --spark_master_url=spark://HOST:PORT (local[*] "
            "runs Spark on this machine), or --job_endpoint=HOST:PORT of a running job server."
        )
    check_java(SPARK_JAVA)
    if master.startswith("spark://"):
        for address in master.removeprefix("spark://").split(","):
            check_reachable(address, what="Spark master", remedy="Start it, or check the host and the port.")
    elif not master.startswith("local"):
        raise SetupError(
            f"--spark_master_url={master}: give spark://HOST:PORT or local[*]. On YARN and Kubernetes, start the job "
            "server with spark-submit and give --job_endpoint=HOST:PORT (docs/running.md)."
        )
    opened = " ".join(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED)
    return [
        "--runner=SparkRunner",
        "--spark_version=3",
        *launcher_flags(),
        *jvm_flags([f"-Dspark.executor.extraJavaOptions={opened}", _TRY_ELSEWHERE, _GIVE_UP]),
        *environment,
    ]


def flink_flags(given: Mapping[str, str], *, n_cores: int) -> list[str]:
    """Returns the flags for a Flink cluster. Without ``flink_master``, this is a cluster inside the job server with all
    cores.

    Raises:
        SetupError: a requirement is missing; the message explains how to get it.
    """
    environment = _environment(given, cache_ms=_FLINK_ENVIRONMENT_CACHE_MS)
    if "job_endpoint" in given:
        return _portable(given, environment)
    check_java(FLINK_JAVA)
    master = given.get("flink_master", "[local]")
    local = master == "[local]"
    if not local:
        check_reachable(
            master,
            what="Flink job manager",
            remedy="Start it, check the host and the port, or leave --flink_master out.",
        )
    return [
        "--runner=FlinkRunner",
        f"--flink_master={master}",
        *([f"--parallelism={n_cores}"] if local and "parallelism" not in given else []),
        *launcher_flags(),
        *jvm_flags([f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED]),
        *environment,
    ]


def dataflow_flags(given: Mapping[str, str]) -> list[str]:
    """Returns the flags for Dataflow.

    Raises:
        SetupError: a requirement is missing; the message explains how to get it.
    """
    try:
        importlib.import_module("apache_beam.runners.dataflow.internal.apiclient")
    except ModuleNotFoundError as error:
        raise SetupError(
            "Beam's packages for Google Cloud are not installed: pip install 'kbsource[dataflow]'."
        ) from error
    missing = [f"--{name}: {meaning}" for name, meaning in _DATAFLOW_NEEDS.items() if name not in given]
    if missing:
        raise SetupError("--runner dataflow needs " + "; ".join(missing) + ".")
    for name in ("temp_location", "staging_location"):
        # Beam would create another bucket if it did not understand this one.
        if name in given and _GOOGLES_FOLDER.fullmatch(given[name]) is None:
            raise SetupError(f"--{name}={given[name]}: Dataflow needs a folder in a bucket; give gs://BUCKET/FOLDER.")
    flags = [f"--runner={DATAFLOW_RUNNER}", "--no_save_main_session"]
    if "sdk_location" not in given:
        flags.append("--sdk_location=container")
    # One Python worker with one thread per core: each worker starts a separate process for the heavy work.
    if "number_of_worker_harness_threads" not in given:
        flags.append("--number_of_worker_harness_threads=1")
    return flags


def _portable(given: Mapping[str, str], environment: list[str]) -> list[str]:
    check_reachable(
        given["job_endpoint"],
        what="job server",
        remedy="Start it (see docs/running.md), or check the host and the port.",
    )
    return ["--runner=PortableRunner", *environment]


def _environment(given: Mapping[str, str], *, cache_ms: int = ENVIRONMENT_CACHE_MS) -> list[str]:
    """Returns the environment of Python workers: by default, processes that the cluster starts."""
    flags = [] if "environment_cache_millis" in given else [f"--environment_cache_millis={cache_ms}"]
    kind = given.get("environment_type", "PROCESS")
    if kind == "LOOPBACK":
        raise SetupError("--environment_type=LOOPBACK runs all the work in the driver; use --runner local instead.")
    if kind != "PROCESS" or "environment_config" in given or "environment_options" in given:
        return flags
    command = os.path.join(os.path.dirname(sys.executable), WORKER_COMMAND)
    if shutil.which(command) is None:
        raise SetupError(
            f"{command} is not a program on this machine, and the cluster's workers have to start it: install "
            f"kbsource with pip, or name "
            'the program with --environment_config={"command": "PATH"}.'
        )
    return [*flags, "--environment_type=PROCESS", f"--environment_config={json.dumps({'command': command})}"]


def job_server_flags(runner: str, given: Mapping[str, str]) -> list[str]:
    """Returns the flag for the job server that the driver starts, after checking its checksum.

    Put this flag after all others: Beam uses the last one, and would download any URL without a check.

    Raises:
        SetupError: its checksum is unknown or wrong, or it cannot be downloaded.
    """
    if "job_endpoint" in given:
        return []
    name = f"{runner}_job_server_jar"
    place = given.get(name)
    if place is not None:
        return [f"--{name}={given_jar(place, flag=f'--{name}')}"]
    version = "3" if runner == "spark" else given.get("flink_version") or newest_flink()
    return [f"--{name}={beam_jar(f':runners:{runner}:{version}:job-server:shadowJar', flag=f'--{name}')}"]


def newest_flink() -> str:
    """Returns the newest version of Flink that Beam has a job server for."""
    from apache_beam.options.pipeline_options import FlinkRunnerOptions

    return str(FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS[-1])
