"""Every job on every runner there is: the bytes and the counts of one process on one machine.

Clusters by ``make spark-test``, which fetches Spark and Beam's job servers first; Prism where KBSOURCE_PRISM is the
path of one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apache_beam.metrics import MetricsFilter

from pipelines.cli import main
from pipelines.commands.demo import Step, step_arguments
from pipelines.runners import running
from pipelines.runners.counters import NAMESPACE, StepNames, seconds_of_steps
from tests.support import mini_wiki
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import contents, open_release
from tests.support.clusters import Cluster, FlinkCluster
from tests.support.stores import put_folder, s3_server
from tests.support.tiny_nli import overlap_model

for library in ("onnxruntime", "onnx", "transformers"):
    pytest.importorskip(library, reason="needs kbsource[nli]")
pytestmark = pytest.mark.slow

PRISM = os.environ.get("KBSOURCE_PRISM")
JOBS = {
    "wikidata": "wikidata @miniwikidata-20260101-all.json.bz2 --max-rejects 0.01",
    "build": "build @miniwiki-20260101-pages-articles-multistream.xml.bz2 --wikidata %wikidata --range-bytes 10000 "
    f"--page-props @miniwiki-20260101-page_props.sql.gz --max-rejects {mini_wiki.MAX_REJECTS}",
    "pageviews": "pageviews @miniviews-202512-user --site miniwiki",
    "map": "map jsonl %build --input %records.jsonl --chunk-records 50 --model %nli --backend onnx --rescue 20 "
    "--accept 'bleu>=0.5 or entailment>=0.9'",
    "passages": "passages %build --format pyserini",
    "qampari": "qampari %build %wikidata --model %nli --backend onnx",
    "amber": "amber %build %wikidata %pageviews --types @amber_types.json --false-objects wikidata",
    "entity-linking": "entity-linking %build --train 100 --dev 10",
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
        for one in result.metrics().query(MetricsFilter().with_namespace(NAMESPACE))["counters"]:
            counts[names(one.key.step), one.key.metric.name] += one.committed or one.attempted
        return seconds

    arguments = step_arguments(Step("", "", line), str(made))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "seconds_of_steps", look)
        assert main([*arguments, "--output", str(output), *flags]) == 0
    return counts


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """What every job makes on one machine, and counts."""
    made = tmp_path_factory.mktemp("local")
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
            write_records(made / "records.jsonl", found[::2])
    return made, counts


@pytest.fixture(scope="module")
def endpoint(cluster: Cluster) -> Iterator[list[str]]:
    """The flags of a cluster with a job server for all jobs."""
    with cluster.endpoint() as flags:
        yield [f"--runner={cluster.runner}", *flags]


@pytest.mark.parametrize("job", JOBS)
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
