"""The jobs on a real Spark cluster: the same bytes as on one machine, the work on both workers, and faults survived.

They run by ``make spark-test``, which fetches Spark and Beam's job server first.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import pytest
from apache_beam.runners.worker.worker_pool_main import BeamFnExternalWorkerPoolServicer

from benchmarks.make_dump import make_dump
from kbsource.errors import SetupError
from pipelines.jobs.amber import make_amber
from pipelines.jobs.build import build
from pipelines.jobs.entity_linking import make_entity_linking
from pipelines.jobs.map_dataset import map_dataset
from pipelines.jobs.pageviews import make_pageviews
from pipelines.jobs.qampari import make_qampari
from pipelines.jobs.wikidata import make_wikidata
from pipelines.options import (
    AmberJobOptions,
    BuildOptions,
    EntityLinkingOptions,
    MapOptions,
    PageviewsOptions,
    QampariOptions,
    WikidataOptions,
)
from tests.support import mini_wiki, mini_wikidata
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import contents, open_release, run_job
from tests.support.real_data import ROOT, real_data_folder, real_path
from tests.support.spark_cluster import LoggedProcess, SparkCluster
from tests.support.spark_kit import kit_in

KIT = os.environ.get("KBSOURCE_SPARK")
pytestmark = pytest.mark.skipif(
    KIT is None, reason="needs Spark: make spark-test fetches it (Java 11 or 17, Maven, 500 MB) and runs these"
)
JOB_SERVER_RUNS = re.compile(r"JobService started on (\S+)")
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
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A master and two workers of one core each."""
    assert KIT is not None
    with SparkCluster(kit_in(Path(KIT)), tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


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


def test_questions_sets_and_links_have_the_same_bytes(cluster: SparkCluster, tmp_path: Path) -> None:
    wikidata, kb, views = tmp_path / "wikidata", tmp_path / "kb", tmp_path / "views"
    options = WikidataOptions(dump=(str(mini_wikidata.DUMP),), output=str(wikidata), max_rejects=0.01)
    run_job(make_wikidata, options)
    run_build(kb, "local", [], **{**MINI, "wikidata": str(wikidata)})
    seen = PageviewsOptions(input=(str(mini_wiki.VIEWS),), output=str(views), site=mini_wikidata.SITE)
    run_job(make_pageviews, seen)
    for runner, beam_args in (("local", []), ("spark", cluster.flags())):
        made = tmp_path / runner
        questions = QampariOptions(kb=str(kb), wikidata=str(wikidata), output=str(made / "qampari"), model=None)
        run_job(make_qampari, questions, runner=runner, beam_args=beam_args)
        sets = AmberJobOptions(
            str(kb), str(wikidata), str(views), output=str(made / "amber"), types=str(mini_wikidata.AMBER_TYPES)
        )
        run_job(make_amber, sets, runner=runner, beam_args=beam_args)
        links = EntityLinkingOptions(kb=str(kb), output=str(made / "links"), train=100, dev=10)
        run_job(make_entity_linking, links, runner=runner, beam_args=beam_args)

    assert contents(tmp_path / "spark") == contents(tmp_path / "local")


def test_a_job_server_under_spark_submit_and_a_pool_of_workers_do_the_same(
    cluster: SparkCluster, tmp_path: Path
) -> None:
    run_build(tmp_path / "local", "local", [], **MINI)
    submit = [
        str(cluster.kit.spark / "bin" / "spark-submit"),
        f"--master={cluster.url}",
        "--class=org.apache.beam.runners.spark.SparkJobServerDriver",
        f"--driver-class-path={os.pathsep.join(map(str, cluster.kit.first_jars))}",
        *(f"--conf={one.removeprefix('-D')}" for one in cluster.jvm_properties()),
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


@pytest.mark.parametrize("victim", ["python worker", "spark worker"])
def test_a_worker_killed_in_the_middle_of_the_pages_changes_nothing(
    cluster: SparkCluster, gated: dict[str, bytes], pipe: Path, tmp_path: Path, victim: str
) -> None:
    driver = start_build(tmp_path / "spark", cluster, pipe)

    with reading_end(pipe, driver) as at_work:
        python_worker = int(at_work.readline())
        pipe.unlink()
        if victim == "python worker":
            os.kill(python_worker, signal.SIGKILL)
        else:
            folder = os.readlink(f"/proc/{python_worker}/cwd")
            (number,) = (n for n in range(len(cluster.workers)) if f"/worker-{n}/" in folder)
            cluster.workers[number].kill()
            cluster.add_worker()
        assert at_work.read() == b""  # the process that parsed the page has ended

    assert driver.wait() == 0
    assert contents(tmp_path / "spark") == gated


def test_a_killed_driver_takes_its_job_along_and_the_next_run_goes_on(
    cluster: SparkCluster, gated: dict[str, bytes], pipe: Path, tmp_path: Path
) -> None:
    driver = start_build(tmp_path / "spark", cluster, pipe)

    with reading_end(pipe, driver) as at_work:
        at_work.readline()
        driver.kill()
        assert at_work.read() == b""  # ends with the job server, its executors and their Python workers
    pipe.unlink()

    assert not (tmp_path / "spark" / "manifest.json").exists()
    run_build(tmp_path / "spark", "spark", cluster.flags(), **GATED)
    assert contents(tmp_path / "spark") == gated


def test_a_worker_with_other_code_is_refused(cluster: SparkCluster, tmp_path: Path) -> None:
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
        SetupError, match=r"The worker on \S+ has sha256 \w+, the driver \w+\. Install the same"
    ) as caught:
        run_build(tmp_path / "spark", "spark", cluster.flags(PYTHONPATH=str(other.parent)), **MINI)

    assert caught.type is SetupError
    assert not (tmp_path / "spark" / "manifest.json").exists()


def reading_end(pipe: Path, driver: subprocess.Popen[bytes]) -> BinaryIO:
    """Gives the pipe to read from when a worker has written into it, which it does on the page that it waits on."""
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    poll = select.poll()
    poll.register(end, select.POLLIN)
    while not poll.poll(1000):
        assert driver.poll() is None, (pipe.parent / "driver.log").read_text("utf-8")
    os.set_blocking(end, True)
    return cast(BinaryIO, os.fdopen(end, "rb", buffering=0))


def start_build(output: Path, cluster: SparkCluster, pipe: Path) -> subprocess.Popen[bytes]:
    """Starts a driver of its own that builds on the cluster with GatedParser."""
    code = (
        "import json, sys; from pathlib import Path; from tests.test_pipelines.test_runners import test_spark; "
        "output, beam_args = json.loads(sys.argv[1]); "
        "test_spark.run_build(Path(output), 'spark', beam_args, **test_spark.GATED)"
    )
    arguments = json.dumps([str(output), cluster.flags(KBSOURCE_TEST_PIPE=str(pipe))])
    return subprocess.Popen(
        [sys.executable, "-c", code, arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=(output.parent / "driver.log").open("wb"),
    )
