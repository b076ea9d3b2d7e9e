"""Every job on every runner there is, and killed in the middle: the bytes and the counts of one process on one machine.

Clusters by ``make spark-test``, which fetches Spark and Beam's job servers first; Prism where KBSOURCE_PRISM is the
path of one.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.metrics import MetricsFilter

from kbsource.release.layout import BUILDING, MANIFEST, STAGING
from pipelines.cli import main
from pipelines.commands.demo import DemoStep, step_arguments
from pipelines.runners import running
from pipelines.runners.counters import NAMESPACE, StepNames, seconds_of_steps
from tests.support import mini_wiki
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import contents, open_release
from tests.support.clusters import Cluster, FlinkCluster
from tests.support.installed import skip_without
from tests.support.killing import count_files, run_and_kill
from tests.support.moved_builds import build_moved
from tests.support.stores import put_folder, s3_server
from tests.support.tiny_encoder import tiny_encoder
from tests.support.tiny_nli import overlap_model

skip_without("onnxruntime", "onnx", "transformers", reason="needs kbsource[nli]")
pytestmark = pytest.mark.slow

PRISM = os.environ.get("KBSOURCE_PRISM")
JOBS = {
    "wikidata": "wikidata @miniwikidata-20260101-all.json.bz2 --max-rejects 0.01",
    "base": "build @miniwiki-20260101-pages-articles.xml --record-dependencies --references --limit-pages 60 "
    f"--page-props @miniwiki-20260101-page_props.sql.gz --max-rejects {mini_wiki.MAX_REJECTS}",
    "build": "build @miniwiki-20260101-pages-articles-multistream.xml.bz2 --wikidata %wikidata --range-bytes 10000 "
    "--record-dependencies --references --base %base "
    f"--page-props @miniwiki-20260101-page_props.sql.gz --max-rejects {mini_wiki.MAX_REJECTS}",
    "pageviews": "pageviews @miniviews-202512-user --site miniwiki",
    "map": "map jsonl %build --input %records.jsonl --max-rejects 0.1 --chunk-records 50 --model %nli --backend onnx "
    "--candidate-sentences 20 --accept 'bleu>=0.5 or entailment>=0.9'",
    "age": "age %build %later --input %map/jsonl-dev-kilt.jsonl --from-kb %build",
    "cut": "passages %base --format pyserini",
    "passages": "passages %build --format pyserini --base %cut --base-kb %base",
    "qampari": "qampari %build %wikidata --model %nli --backend onnx",
    "amber": "amber %build %wikidata %pageviews --types @amber_types.json --false-objects wikidata",
    "facts": "facts %build %later --wikidata %wikidata %later-wikidata --model %nli --backend onnx",
    "entity-linking": "entity-linking %build --train 100 --dev 10",
    "vectors": "vectors %cut --model %encoder",
    "more-vectors": "vectors %passages --model %encoder --base %vectors --base-passages %cut",
}
"""Each after those whose releases it takes: ``%NAME``, of one machine; ``@NAME`` is a file of the mini-wiki."""

Counts = Counter[tuple[str, str]]
"""By outermost step and name."""
Made = tuple[Path, dict[str, Counts]]
"""The folder of the releases by job, and what each job counts."""


def run(line: str, made: Path, output: Path, flags: list[str]) -> Counts:
    """Runs a job that takes the releases in a folder; gives what it counts on the way."""
    counts: Counts = Counter()

    def look(result: Any, names: StepNames) -> dict[str, float]:
        seconds = seconds_of_steps(result, names)
        for counter in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
            counts[names(counter.key.step), counter.key.metric.name] += counter.committed or counter.attempted
        return seconds

    arguments = step_arguments(DemoStep("", "", line), str(made))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "seconds_of_steps", look)
        assert main([*arguments, "--output", str(output), *flags]) == 0
    return counts


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What every job makes on one machine, and counts."""
    made = tmp_path_factory.mktemp("local")
    build_moved(made)
    counts = {}
    for job in JOBS:
        counts[job] = run(JOBS[job], made, made / job, [])
        if job == "build":
            texts = [(page, element.text) for page in open_release(made / job) for element in page.elements]
            overlap_model(made / "nli", texts=[text for _, text in texts])
            found = [
                record(str(number), [evidence(" ".join(text.split()[:12]), title=page.title)])
                for number, (page, text) in enumerate(texts)
                if text.strip()
            ]
            # Among the records one that is none, and one of a page that there is not.
            write_records(
                made / "records.jsonl", ["{ not json", record("lost", [evidence("x", title="No")]), *found[::2]]
            )
            tiny_encoder(made / "encoder", texts=[text for _, text in texts])
    return made, counts


# Beam's own runner is the local one by another name, so one job is enough to show that the name is understood.
@pytest.mark.parametrize(("job", "flag"), [*((job, "--workers=2") for job in JOBS), ("map", "--runner=FnApiRunner")])
def test_a_job_on_two_processes_or_beams_own_runner_makes_and_counts_what_it_does_in_one(
    local: Made, tmp_path: Path, job: str, flag: str
) -> None:
    made, counts = local

    counted = run(JOBS[job], made, tmp_path / "made", [flag])

    assert contents(tmp_path / "made") == contents(made / job)
    assert counted == counts[job]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_is_killed_goes_on_and_makes_the_same_bytes(local: Made, tmp_path: Path, job: str) -> None:
    made, _ = local
    output, temporary = tmp_path / "made", tmp_path / "tmp"
    command = [*step_arguments(DemoStep("", "", JOBS[job]), str(made)), "--output", str(output)]
    draw = random.Random(f"kills of {job}")
    # The driver, further on each time; a worker, which ends the command; what it works in, which it begins again.
    for who in ("driver", "driver", "worker", "child"):
        runner = ["--workers=2"] if who == "worker" else []
        more = count_files(output) + draw.randrange(1, 12)
        code, errors = run_and_kill([*command, *runner], temporary=temporary, who=who, output=output, n_files=more)
        if code == 0:
            break
        assert (who, code) in (("driver", -signal.SIGKILL), ("worker", 2)), errors
        if (output / MANIFEST).exists():  # killed when all was done but the tidying up
            break
    made_here = contents(output)
    if code == 0:
        assert list(temporary.glob("kbsource-*")) == []
    else:
        made_here = {
            name: content for name, content in made_here.items() if name.partition("/")[0] not in (BUILDING, STAGING)
        }
    assert made_here == contents(made / job)


def test_a_build_that_was_killed_goes_on_where_it_was(local: Made, tmp_path: Path) -> None:
    made, _ = local
    output = tmp_path / "made"
    command = [*step_arguments(DemoStep("", "", JOBS["build"]), str(made)), "--output", str(output)]
    done: dict[Path, int] = {}
    for n_files in (40, 60):
        run_and_kill(command, temporary=tmp_path / "tmp", who="driver", output=output, n_files=n_files)
        staging = output / "_staging"
        finished = {path.stem for path in (staging / "scan").glob("*.json")}  # other ranges are read again
        staged = (path for path in staging.rglob("*.arrow") if path.stem in finished)
        before, done = done, {path: path.stat().st_mtime_ns for path in staged}
        assert len(done) > 10
        assert before.items() <= done.items()


@pytest.fixture(scope="module")
def endpoint(cluster: Cluster) -> Iterator[list[str]]:
    """The flags of a cluster with a job server for all jobs."""
    with cluster.endpoint() as flags:
        yield [f"--runner={cluster.runner}", *flags]


# The steps of facts are of the kinds of qampari's; those of cut and vectors are done where these are the base, too.
@pytest.mark.parametrize("job", [name for name in JOBS if name not in ("facts", "cut", "vectors")])
def test_a_job_on_a_cluster_makes_and_counts_what_it_does_on_one_machine(
    cluster: Cluster, endpoint: list[str], local: Made, tmp_path: Path, job: str
) -> None:
    made, counts = local

    counted = run(JOBS[job], made, tmp_path / "made", endpoint)

    assert contents(tmp_path / "made") == contents(made / job)
    if isinstance(cluster, FlinkCluster):
        assert counted == counts[job]
        assert NAMESPACE in cluster.accumulators()
    else:  # Spark does a step again whose outcome it did not keep
        assert counted.keys() == counts[job].keys()
        assert counted >= counts[job]


@pytest.mark.parametrize("cluster", ["spark"], indirect=True)
def test_a_model_in_a_bucket_reaches_the_workers(
    cluster: Cluster, endpoint: list[str], local: Made, tmp_path: Path
) -> None:
    pytest.importorskip("moto.server", reason="needs pip install moto[s3] flask flask-cors")
    made, _ = local

    with s3_server() as storage:
        model = put_folder("s3://wiki/nli", made / "nli")
        run(JOBS["map"].replace("%nli", model), made, tmp_path / "made", [*endpoint, *storage])

    assert contents(tmp_path / "made") == contents(made / "map")


@pytest.mark.skipif(PRISM is None, reason="needs KBSOURCE_PRISM, the path of Beam's Prism")
@pytest.mark.parametrize("job", JOBS)
def test_a_job_on_prism_makes_and_counts_what_it_does_on_beams_own_runner(
    local: Made, tmp_path: Path, job: str
) -> None:
    made, counts = local

    counted = run(JOBS[job], made, tmp_path / "made", ["--runner=PrismRunner", f"--prism_location={PRISM}"])

    assert contents(tmp_path / "made") == contents(made / job)
    assert counted == counts[job]
