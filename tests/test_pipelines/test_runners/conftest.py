"""Real clusters, each started once for all the tests that need it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clusters import Cluster, FlinkCluster, SparkCluster
from tests.support.spark_kit import kit_in

CLUSTERS = {"spark": SparkCluster, "flink": FlinkCluster}


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core each, of each kind."""
    kit = os.environ.get("KBSOURCE_SPARK")
    if kit is None:
        pytest.skip("needs Spark and Flink: make spark-test fetches them (Java 11 or 17, Maven, 500 MB) and runs these")
    with CLUSTERS[request.param](kit_in(Path(kit)), tmp_path_factory.mktemp(request.param)) as cluster:
        yield cluster
