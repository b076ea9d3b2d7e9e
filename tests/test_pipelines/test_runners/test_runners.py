"""Presets and what they need, flags that nobody knows, and what a runner reports of a job that failed."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import FlinkRunnerOptions, GoogleCloudOptions, PortableOptions
from apache_beam.transforms.environments import DockerEnvironment
from apache_beam.utils.subprocess_server import JavaJarServer

from kbsource.errors import DataError, SetupError
from kbsource.stores import check_reachable
from pipelines.app import parse_command
from pipelines.flex_template import form_command
from pipelines.runners import job_server
from pipelines.runners.job_server import beam_jar, check_java, given_jar
from pipelines.runners.presets import PRESETS, beam_flags, n_cores, quiet_beam
from pipelines.runners.running import pipeline_options, reported_fault
from tests.support.real_data import ROOT

BEAM_LOCAL = ["--runner=FnApiRunner"]
PROCESSES = "--direct_running_mode=multi_processing"
CLOUD = ["--project=p", "--region=r", "--temp_location=gs://bucket/tmp", "--sdk_container_image=i"]


@pytest.mark.parametrize(
    ("runner", "workers", "beam_args", "expected"),
    [
        ("local", None, (), ["--runner=FnApiRunner"]),
        ("local", None, ("--job_name=x",), ["--runner=FnApiRunner", "--job_name=x"]),
        ("local", 1, (), ["--runner=FnApiRunner"]),
        ("local", 3, (), [*BEAM_LOCAL, "--direct_num_workers=3", PROCESSES]),
        ("local", 3, ("--job_name=x",), [*BEAM_LOCAL, "--direct_num_workers=3", PROCESSES, "--job_name=x"]),
        ("SparkRunner", None, ("--spark_version=3",), ["--runner=SparkRunner", "--spark_version=3"]),
    ],
)
def test_a_name_becomes_flags_of_beam(
    runner: str, workers: int | None, beam_args: tuple[str, ...], expected: list[str]
) -> None:
    flags = beam_flags(runner, workers=workers, beam_args=beam_args)

    assert flags == expected


def test_a_stage_that_needs_beam_has_a_thread_for_each_process() -> None:
    options = pipeline_options(beam_flags("local", workers=3, beam_args=())).get_all_options()

    assert (options["direct_num_workers"], options["direct_running_mode"]) == (3, "multi_processing")


@pytest.mark.parametrize(
    ("runner", "workers", "beam_args", "message"),
    [
        (
            "spark-local",
            None,
            [],
            r"there is no such runner\. Choose one of kbsource's presets \(local, spark, flink, dataflow\) or of",
        ),
        (
            "spark",
            2,
            [],
            "--workers works only with --runner local; with spark, give Beam's own flag for the number of workers",
        ),
        ("spark", None, ["--output_executable_path=x.jar"], "run the job with a job server"),
        ("spark", None, [], r"--spark_master_url=spark://HOST:PORT .*--job_endpoint=HOST:PORT"),
        ("spark", None, ["--spark_master_url=yarn"], r"spark-submit .*docs/running\.md"),
        ("spark", None, ["--spark_master_url=spark://nowhere"], "not an address of Spark master; write HOST:PORT"),
        ("spark", None, ["--environment_type=LOOPBACK"], "runs all the work in the driver"),
        (
            "spark",
            None,
            ["--spark_master_url=local[1]", "--spark_job_server_jar=none.jar"],
            r"none\.jar does not exist; check the path given with --spark_job_server_jar",
        ),
        ("dataflow", None, [], "--project: .*--region: .*--temp_location: .*--sdk_container_image: "),
        (
            "dataflow",
            None,
            [*CLOUD, "--temp_location=/tmp"],
            "--temp_location=/tmp: Dataflow needs a folder in a bucket; give gs://",
        ),
        ("dataflow", None, [*CLOUD, "--staging_location=gs://bucket"], "location=gs://bucket: Dataflow needs a folder"),
    ],
)
def test_a_wrong_choice_is_named(
    runner: str, workers: int | None, beam_args: list[str], message: str, java_17: Path
) -> None:
    with pytest.raises(SetupError, match=message):
        beam_flags(runner, workers=workers, beam_args=beam_args)


@pytest.fixture
def listening() -> Iterator[str]:
    """Address where something listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def silent(listening: str) -> str:
    """Address where nothing listens: a port that was just given up."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}"\' >&2; exit; fi\nexec "$@"\n'
    )
    java.chmod(0o755)
    return java


@pytest.fixture
def java_17(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java 17 by its own account, in JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    return fake_java(tmp_path / "java", "17.0.15")


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "job-server.jar"
    path.write_bytes(b"")
    return path


@pytest.mark.usefixtures("java_17")
def test_spark_gets_workers_as_processes_and_an_open_java(jar: Path, listening: str) -> None:
    given = [f"--spark_master_url=spark://{listening}", f"--spark_job_server_jar={jar}"]
    given.append("--job_server_jvm_properties=-Dspark.executor.memory=4g")

    options = pipeline_options(beam_flags("spark", workers=None, beam_args=given)).get_all_options(drop_default=True)

    assert options["runner"] == "SparkRunner"
    assert options["environment_type"] == "PROCESS"
    worker = Path(json.loads(options["environment_config"])["command"])
    assert worker == Path(sys.executable).parent / "kbsource-worker"
    launcher, *jvm = [options["job_server_java_launcher"], *options["job_server_jvm_properties"]]
    assert [launcher, *jvm[:3]] == [sys.executable, "-P", "-m", "pipelines.runners.job_server"]
    assert jvm[3].startswith("-Dspark.executor.extraJavaOptions=--add-opens=java.base/sun.nio.ch=ALL-UNNAMED ")
    give_up = "-Dspark.scheduler.excludeOnFailure.unschedulableTaskSetTimeout=1s"
    assert jvm[4:] == ["-Dspark.excludeOnFailure.enabled=true", give_up, "-Dspark.executor.memory=4g"]


@pytest.mark.usefixtures("java_17")
def test_flink_runs_inside_the_job_server_unless_a_cluster_is_given(jar: Path, listening: str) -> None:
    local = pipeline_options(beam_flags("flink", workers=None, beam_args=[f"--flink_job_server_jar={jar}"]))
    remote = [f"--flink_job_server_jar={jar}", f"--flink_master={listening}", "--parallelism=9"]
    cluster = pipeline_options(beam_flags("flink", workers=None, beam_args=remote))

    assert (local.get_all_options()["flink_master"], local.get_all_options()["parallelism"]) == ("[local]", n_cores())
    assert (cluster.get_all_options()["flink_master"], cluster.get_all_options()["parallelism"]) == (listening, 9)


@pytest.mark.parametrize(("runner", "cache_ms"), [("spark", 60_000), ("flink", 2_000)])
def test_a_running_job_server_needs_no_java(
    runner: str, cache_ms: int, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    given = [f"--job_endpoint={listening}", "--environment_type=EXTERNAL", "--environment_config=localhost:50000"]

    flags = beam_flags(runner, workers=None, beam_args=given)

    assert flags == ["--runner=PortableRunner", f"--environment_cache_millis={cache_ms}", *given]


@pytest.mark.parametrize(
    ("runner", "flag", "message"),
    [
        ("spark", "--spark_master_url=spark://{}", "No Spark master answers at"),
        ("spark", "--job_endpoint={}", "No job server answers at"),
        ("flink", "--flink_master={}", "No Flink job manager answers at"),
    ],
)
@pytest.mark.usefixtures("java_17")
def test_a_cluster_that_does_not_answer_is_named(runner: str, flag: str, message: str, silent: str) -> None:
    with pytest.raises(SetupError, match=message):
        beam_flags(runner, workers=None, beam_args=[flag.format(silent)])


def test_dataflow_gets_one_thread_per_worker_and_its_image() -> None:
    assert beam_flags("dataflow", workers=None, beam_args=CLOUD) == [
        "--runner=DataflowRunner",
        "--no_save_main_session",
        "--sdk_location=container",
        "--number_of_worker_harness_threads=1",
        *CLOUD,
    ]
    # So all Python processes of a machine are in one container, and share its temporary folder and copies of indexes.
    environment = DockerEnvironment.from_options(pipeline_options(CLOUD).view_as(PortableOptions))
    assert "beam:protocol:sibling_workers:v1" in environment.capabilities()


def test_a_template_starts_its_job_as_the_command_line_does() -> None:
    given = ["--command=build", "--dump=gs://b/d.xml.bz2", "--output=gs://b/r", *CLOUD, "--job_name=j"]
    expected = beam_flags("dataflow", workers=None, beam_args=[*CLOUD, "--job_name=j"])
    for launched in (given, [*given, "--runner=DataflowRunner"]):
        assert form_command(launched).arguments.arguments["run"].flags() == expected


def test_dataflow_without_its_packages_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apache_beam.runners.dataflow.internal.apiclient", None)

    with pytest.raises(SetupError, match=r"pip install 'kbsource\[dataflow\]'"):
        beam_flags("dataflow", workers=None, beam_args=CLOUD)


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("11.0.2", 11), ("1.8.0_392", 8)])
def test_javas_version_is_read(text: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    java = fake_java(tmp_path, text)

    assert check_java([version]) == version
    with pytest.raises(SetupError, match=rf"{java} is Java {version}; this runner needs 21 or 25"):
        check_java([21, 25])


def test_a_missing_java_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")

    with pytest.raises(SetupError, match=r"Java was not found: /nowhere/bin/java .*openjdk"):
        check_java([17])


@pytest.mark.parametrize("address", ["localhost", "localhost:none", ""])
def test_what_is_no_address_is_named(address: str) -> None:
    with pytest.raises(SetupError, match="is not an address of a thing; write HOST:PORT"):
        check_reachable(address, what="a thing", remedy="")


TARGET = ":runners:spark:3:job-server:shadowJar"
SPARK_JAR = "beam-runners-spark-3-job-server-2.77.0.jar"
PROGRAM = b"program"
PROGRAM_SUM = hashlib.sha256(PROGRAM).hexdigest()


@pytest.fixture
def jar_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(JavaJarServer, "JAR_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class JarServer:
    """A web server of one file."""

    def __init__(self) -> None:
        self.content: bytes | None = PROGRAM
        self.n_bytes: int | None = None  #: what it announces, where it hangs up before
        self.asked: list[str] = []
        self.address = ""

    @contextmanager
    def running(self) -> Iterator[JarServer]:
        server = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                if server.content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(server.n_bytes or len(server.content)))
                self.end_headers()
                self.wfile.write(server.content)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as http:
            self.address = f"http://127.0.0.1:{http.server_port}"
            thread = threading.Thread(target=http.serve_forever)
            thread.start()
            yield self
            http.shutdown()
            thread.join()


@pytest.fixture
def jar_server() -> Iterator[JarServer]:
    with JarServer().running() as server:
        yield server


@pytest.fixture
def central(jar_server: JarServer, monkeypatch: pytest.MonkeyPatch) -> JarServer:
    """A Maven Central of this machine, whose job server for Spark is a trusted one."""
    monkeypatch.setattr(JavaJarServer, "MAVEN_CENTRAL_REPOSITORY", jar_server.address)
    monkeypatch.setattr(job_server, "SHA256", {SPARK_JAR: PROGRAM_SUM})
    return jar_server


def test_beams_job_server_is_fetched_once_and_its_sum_compared_at_every_use(
    central: JarServer, jar_cache: Path
) -> None:
    paths = [Path(beam_jar(TARGET, flag="--x")) for _ in range(2)]

    assert [path.read_bytes() for path in paths] == [PROGRAM] * 2
    assert [path.rpartition("/")[2] for path in central.asked] == [SPARK_JAR]
    assert list(jar_cache.iterdir()) == [paths[0]]

    before = paths[0].stat()
    paths[0].write_bytes(b"prOgram")
    os.utime(paths[0], ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(SetupError, match=rf"{SPARK_JAR} has the SHA-256 .*, not {PROGRAM_SUM}\. Remove the file"):
        beam_jar(TARGET, flag="--x")
    assert len(central.asked) == 1


@pytest.mark.parametrize(
    ("content", "n_bytes", "message"),
    [
        (
            None,
            None,
            r"cannot be downloaded \(.*404.*\)\. Download the file on another machine and give its path with --x=PATH",
        ),
        (b"prOgram", None, f"The file from http.* has the SHA-256 .*, not {PROGRAM_SUM}"),
        (b"prog", 7, r"The file from http.* has the SHA-256|cannot be downloaded"),
    ],
)
def test_a_job_server_that_cannot_be_had_is_named_and_leaves_nothing(
    content: bytes | None, n_bytes: int | None, message: str, central: JarServer, jar_cache: Path
) -> None:
    central.content, central.n_bytes = content, n_bytes
    with pytest.raises(SetupError, match=message):
        beam_jar(TARGET, flag="--x")
    assert list(jar_cache.iterdir()) == []


def test_a_job_server_that_nobody_vouches_for_is_not_fetched(
    central: JarServer, jar_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_server, "SHA256", {})
    jar_cache.mkdir()
    (jar_cache / SPARK_JAR).write_bytes(PROGRAM)
    with pytest.raises(
        SetupError, match=rf"No SHA-256 is known for {SPARK_JAR}.* --x=http.*{SPARK_JAR}#sha256=CHECKSUM"
    ):
        beam_jar(TARGET, flag="--x")
    assert central.asked == []


def test_every_pin_is_a_sum_of_a_job_server_that_is_used() -> None:
    names = {
        JavaJarServer.path_to_beam_jar(f":runners:{runner}:job-server:shadowJar").rpartition("/")[2]
        for runner in ("spark:3", *(f"flink:{version}" for version in FlinkRunnerOptions.PUBLISHED_FLINK_VERSIONS))
    }
    assert job_server.SHA256.keys() <= names
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in job_server.SHA256.values())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("{url}", r"give its SHA-256 checksum: --x=http.*/a\.jar#sha256=CHECKSUM"),
        ("{url}#sha256=12", "is not a SHA-256, which has 64 hexadecimal digits"),
        ("{url}#sha256=", "is not a SHA-256"),
        ("{url}#sha1=" + "0" * 40, "give its SHA-256 checksum"),
        ("{url}#sha256=" + "0" * 64, "The file from http.* has the SHA-256"),
        ("{file}#sha256=" + "0" * 64, r"own\.jar has the SHA-256 .*, not 0000.*the checksum given with --x"),
        ("{file}.not", "does not exist; check the path given with --x"),
    ],
)
def test_a_job_server_of_the_users_has_the_sum_that_the_user_gives(
    place: str, message: str, jar_server: JarServer, jar_cache: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.jar"
    own.write_bytes(PROGRAM)
    places = {"url": f"{jar_server.address}/a.jar", "file": str(own)}
    with pytest.raises(SetupError, match=message):
        given_jar(place.format(**places), flag="--x")

    for sound in (f"{own}", f"{own}#sha256={PROGRAM_SUM}", f"{places['url']}#sha256={PROGRAM_SUM.upper()}"):
        assert Path(given_jar(sound, flag="--x")).read_bytes() == PROGRAM


@pytest.mark.usefixtures("java_17", "jar_cache")
@pytest.mark.parametrize("runner", ["spark", "flink"])
def test_beam_itself_fetches_no_job_server(runner: str, jar_server: JarServer, listening: str, tmp_path: Path) -> None:
    flag = f"--{runner}_job_server_jar={jar_server.address}/a.jar"
    given = [f"--spark_master_url=spark://{listening}"] if runner == "spark" else []
    with pytest.raises(SetupError, match="give its SHA-256 checksum"):
        beam_flags(runner, workers=None, beam_args=[*given, flag])

    flags = beam_flags(runner, workers=None, beam_args=[*given, f"{flag}#sha256={PROGRAM_SUM}"])
    options = pipeline_options(flags).get_all_options()
    assert options[f"{runner}_job_server_jar"] == str(tmp_path / "cache" / "a.jar")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_job_server_ends_with_the_driver_that_started_it(java_17: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    server = [
        sys.executable,
        "-m",
        "pipelines.runners.job_server",
        "sh",
        "-c",
        f"exec 3> {pipe}; exec tail -f /dev/null",
    ]
    driver = f"import subprocess; subprocess.Popen({server!r}).wait()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    with (
        subprocess.Popen([sys.executable, "-c", driver], env=environment) as process,
        pipe.open("rb") as open_as_long_as_the_server_lives,
    ):
        process.send_signal(signal.SIGKILL)

        assert open_as_long_as_the_server_lives.read() == b""


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--limit-page=5", "an option --limit-page"),
        ("--nonsense", "an option --nonsense"),
        ("--direct_num_workers=many", "direct_num_workers: invalid int value: 'many'"),
    ],
)
def test_a_flag_that_nobody_knows_is_an_error(flag: str, message: str) -> None:
    quiet_beam()
    with pytest.raises(SetupError, match=message):
        pipeline_options(["--runner=FnApiRunner", flag])


def test_copies_of_options_have_views_of_their_own() -> None:
    options = pipeline_options(["--runner=FnApiRunner", "--job_name=wiki", "--impersonate_service_account=x"])
    view = options.view_as(GoogleCloudOptions)
    assert options.view_as(GoogleCloudOptions) is view
    copied = copy.deepcopy(options)
    copied.view_as(GoogleCloudOptions).job_name = "copied"
    assert copied.get_all_options()["job_name"] == "copied"
    assert copied.view_as(GoogleCloudOptions).impersonate_service_account is None  # as Beam has it
    view.job_name = "changed"
    assert options.get_all_options()["job_name"] == "changed"
    assert options.get_all_options()["impersonate_service_account"] == "x"


def test_the_document_shows_flags_that_kbsource_and_beam_know() -> None:
    text = (ROOT / "docs" / "running.md").read_text("utf-8").replace("\\\n", " ")
    text = re.sub(r"--storage \S+", "", text)
    lines = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("kbsource ") and "…" not in line]

    runs = []
    for line in lines:
        form_command = parse_command(line)
        assert form_command is not None
        runs += (
            [run] if (run := form_command.arguments.arguments.get("run")) is not None else []
        )  # kbsource nli has none
    assert len(runs) > 3
    for run in runs:
        assert run.runner in PRESETS
        pipeline_options(["--runner=FnApiRunner", *run.beam_args])


def test_flags_of_beam_reach_it() -> None:
    options = pipeline_options(["--runner=FnApiRunner", "--job_name=wiki"])

    assert options.get_all_options(drop_default=True) == {"runner": "FnApiRunner", "job_name": "wiki"}


RAISED = """Traceback (most recent call last):
  File "worker.py", line 7, in process
    raise fault from error
kbsource.errors.{kind}: It is so. Mend it. [while running 'scan/work']

\tat org.apache.beam
"""


@pytest.mark.parametrize(
    ("report", "kind", "message"),
    [
        (RAISED.format(kind="SetupError"), SetupError, "It is so. Mend it."),
        (RAISED.format(kind="DataError"), DataError, "It is so. Mend it."),
        (
            "Pipeline p failed in state FAILED: java.io.IOException: no space\n\tat org.apache",
            SetupError,
            "The runner gave up on scan: java.io.IOException: no space",
        ),
    ],
)
def test_what_a_cluster_reports_is_a_fault_of_its_kind(report: str, kind: type[SetupError], message: str) -> None:
    fault = reported_fault(report, "scan")

    assert (type(fault), str(fault)) == (kind, message)


def test_a_report_that_names_no_fault_is_none() -> None:
    assert reported_fault("IndexError: list index out of range", "scan") is None
