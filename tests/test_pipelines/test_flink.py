"""The build on Flink: the cluster inside Beam's job server, with the preset's own Python workers.

It runs by ``make spark-test``, which fetches the job server first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.builds import build_mini, contents
from tests.support.spark_cluster import QUICK_JAVA
from tests.support.spark_kit import kit_in

KIT = os.environ.get("KBSOURCE_SPARK")
pytestmark = pytest.mark.skipif(
    KIT is None, reason="needs Beam's job server for Flink: make spark-test fetches it and runs this"
)


def test_a_build_inside_the_job_server_has_the_bytes_of_a_local_one(tmp_path: Path) -> None:
    assert KIT is not None
    build_mini(tmp_path / "local", range_bytes=10_000)

    flags = [f"--flink_job_server_jar={kit_in(Path(KIT)).flink_job_server}"]
    flags += [f"--job_server_jvm_properties={one}" for one in QUICK_JAVA]
    build_mini(tmp_path / "flink", runner="flink", beam_args=flags, range_bytes=10_000)

    assert contents(tmp_path / "flink") == contents(tmp_path / "local")
