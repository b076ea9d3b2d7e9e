"""Real clusters of Spark and Flink: the work on both workers, other ways to reach them, and faults survived.

They run by ``make spark-test``, which fetches Spark and Beam's job servers first; test_every_job.py has the jobs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer

from benchmarks.make_dump import make_dump
from kbsource.errors import SetupError
from pipelines.jobs.build import build
from pipelines.jobs.map_dataset import map_dataset
from pipelines.options.build import BuildOptions
from pipelines.options.map_dataset import MapOptions
from tests.support import mini_wiki
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import contents, open_release, run_job
from tests.support.clusters import JOB_SERVER_RUNS, Cluster, LoggedProcess, SparkCluster
from tests.support.real_data import ROOT, real_data_folder, real_path

pytestmark = pytest.mark.slow

ON_SPARK = pytest.mark.parametrize("cluster", ["spark"], indirect=True)
MINI: dict[str, Any] = {
    "dump": (str(mini_wiki.MULTISTREAM),),
    "page_props": str(mini_wiki.PAGE_PROPS),
    "max_rejects": mini_wiki.MAX_REJECTS,
    "range_bytes": 10_000,
}
N_EVIDENCES = 2  # of every page: some 2,500 in all
CHUNK_RECORDS = 200
GATED = {**MINI, "parser": "tests.support.moody_parser:GatedParser"}


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What GatedParser makes of the mini-wiki on one machine, without a gate."""
    output = tmp_path_factory.mktemp("gated") / "local"
    run_build(output, "local", [], **GATED)
    return contents(output)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """The pipe that GatedParser waits for."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def run_build(output: Path, runner: str, beam_args: list[str], **options: Any) -> None:
    """Builds."""
    run_job(build, BuildOptions(output=str(output), **options), runner=runner, beam_args=beam_args)


def evidence_from(release: Path, output: Path) -> Path:
    """Writes records whose evidence is the beginning of a paragraph of a release, some of every page."""
    records = [
        record(f"{page.page_id}-{number}", [evidence(" ".join(element.text.split()[:12]), title=page.title)])
        for page in open_release(release)
        for number, element in enumerate(page.elements[:N_EVIDENCES])
        if element.text.strip()
    ]
    return write_records(output, records)


def run_map(output: Path, kb: Path, records: Path, runner: str, beam_args: list[str]) -> None:
    """Aligns records to a release."""
    options = MapOptions(
        str(kb), dataset="jsonl", inputs=(str(records),), output=str(output), split="dev", chunk_records=CHUNK_RECORDS
    )
    run_job(map_dataset, options, runner=runner, beam_args=beam_args)


@ON_SPARK
def test_real_pages_give_the_same_bytes_and_both_workers_a_share(cluster: SparkCluster, tmp_path: Path) -> None:
    real_path("dumps/gensim_enwiki-p10p30302-shortened.xml.bz2")
    # Three shards of pages.
    dump = make_dump(tmp_path / "wiki.xml.bz2", root=real_data_folder(), n_mb=24, multistream=True).path
    n_ranges = 12
    options = {
        "dump": (str(dump),),
        "max_rejects": 0.05,
        "range_bytes": -(-dump.stat().st_size // n_ranges),
        "parser": "tests.support.moody_parser:SigningParser",
    }
    signs = tmp_path / "signs"
    signs.mkdir()
    run_build(tmp_path / "local", "local", [], **options)
    records = evidence_from(tmp_path / "local", tmp_path / "records.jsonl")
    run_map(tmp_path / "local-map", tmp_path / "local", records, "local", [])

    run_build(tmp_path / "spark", "spark", cluster.flags(KBSOURCE_TEST_SIGNS=str(signs)), **options)

    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert {path.name.split("|")[-3] for path in signs.iterdir()} == {"worker-0", "worker-1"}

    run_map(tmp_path / "spark-map", tmp_path / "spark", records, "spark", cluster.flags())

    assert contents(tmp_path / "spark-map") == contents(tmp_path / "local-map")


@ON_SPARK
def test_a_job_server_under_spark_submit_and_a_pool_of_workers_do_the_same(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    run_build(tmp_path / "local", "local", [], **MINI)
    submit = [
        str(cluster.kit.spark / "bin" / "spark-submit"),
        f"--master={cluster.url}",
        "--class=org.apache.beam.runners.spark.SparkJobServerDriver",
        f"--driver-class-path={os.pathsep.join(map(str, cluster.kit.first_jars))}",
        *(f"--conf={jvm_property.removeprefix('-D')}" for jvm_property in cluster.jvm_properties()),
        str(cluster.kit.job_server),
        "--job-port=0",
        "--artifact-port=0",
        "--expansion-port=0",
        f"--spark-master-url={cluster.url}",
        f"--artifacts-dir={tmp_path / 'artifacts'}",
    ]
    server = LoggedProcess(submit, log=tmp_path / "job-server.log", env={"SPARK_HOME": str(cluster.kit.spark)})
    address, pool = BeamFnExternalWorkerPoolServicer.start(
        use_process=True, container_executable=cluster.worker_command()
    )
    try:
        endpoint = server.wait_for(JOB_SERVER_RUNS)[1]
        external = [f"--job_endpoint={endpoint}", "--environment_type=EXTERNAL", f"--environment_config={address}"]
        run_build(tmp_path / "spark", "spark", external, **MINI)
    finally:
        server.kill()
        pool.stop(0).wait()

    assert contents(tmp_path / "spark") == contents(tmp_path / "local")


@pytest.mark.parametrize("victim", ["python worker", "worker"])
def test_a_worker_killed_in_the_middle_of_the_pages_changes_nothing(
    cluster: Cluster, gated: dict[str, bytes], pipe: Path, tmp_path: Path, victim: str
) -> None:
    driver = start_build(tmp_path / "made", cluster, pipe)

    with reading_end(pipe, driver) as at_work:
        python_worker = int(at_work.readline())
        pipe.unlink()
        if victim == "python worker":
            os.kill(python_worker, signal.SIGKILL)
        else:
            next(worker for worker in cluster.workers if worker.started(python_worker)).kill()
            cluster.add_worker()
        assert at_work.read() == b""  # the process that parsed the page has ended

    assert driver.wait() == 0
    assert contents(tmp_path / "made") == gated


@ON_SPARK
def test_a_killed_driver_takes_its_job_along_and_the_next_run_goes_on(
    cluster: Cluster, gated: dict[str, bytes], pipe: Path, tmp_path: Path
) -> None:
    driver = start_build(tmp_path / "made", cluster, pipe)

    with reading_end(pipe, driver) as at_work:
        at_work.readline()
        driver.kill()
        assert at_work.read() == b""  # ends with the job server, its executors and their Python workers
    pipe.unlink()

    assert not (tmp_path / "made" / "manifest.json").exists()
    run_build(tmp_path / "made", cluster.runner, cluster.flags(), **GATED)
    assert contents(tmp_path / "made") == gated


def test_a_worker_with_other_code_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other" / "kbsource"
    other.parent.mkdir()
    for package in ("kbsource", "mapping", "pipelines"):
        os.symlink(ROOT / package, other.parent / package)
    os.unlink(other)
    other.mkdir()
    for entry in (ROOT / "kbsource").iterdir():
        os.symlink(entry, other / entry.name)
    (other / "added.py").write_text("", "utf-8")

    with pytest.raises(
        SetupError, match=r"The worker on \S+ has sha256 \w+, but the driver has \w+\. Install the same"
    ) as caught:
        run_build(tmp_path / "made", cluster.runner, cluster.flags(PYTHONPATH=str(other.parent)), **MINI)

    assert caught.type is SetupError
    assert not (tmp_path / "made" / "manifest.json").exists()


def reading_end(pipe: Path, driver: subprocess.Popen[bytes]) -> BinaryIO:
    """Gives the pipe to read from when a worker has written into it, which it does on the page that it waits on."""
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(end, select.POLLIN)
    while not poll.poll(1000):
        assert driver.poll() is None, (pipe.parent / "driver.log").read_text("utf-8")
    os.set_blocking(end, True)
    return cast(BinaryIO, os.fdopen(end, "rb", buffering=0))


def start_build(output: Path, cluster: Cluster, pipe: Path) -> subprocess.Popen[bytes]:
    """Starts a driver of its own that builds on the cluster with GatedParser."""
    code = (
        "import json, sys; from pathlib import Path; from tests.test_pipelines.test_runners import test_clusters; "
        "output, runner, beam_args = json.loads(sys.argv[1]); "
        "test_clusters.run_build(Path(output), runner, beam_args, **test_clusters.GATED)"
    )
    arguments = json.dumps([str(output), cluster.runner, cluster.flags(KBSOURCE_TEST_PIPE=str(pipe))])
    return subprocess.Popen(
        [sys.executable, "-c", code, arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=(output.parent / "driver.log").open("wb"),
    )
