"""Build and alignment on Flink: the cluster inside Beam's job server, with the preset's own Python workers.

It runs by ``make spark-test``, which fetches the job server first.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.builds import build_mini, contents, open_release
from tests.support.spark_cluster import QUICK_JAVA
from tests.support.spark_kit import kit_in

KIT = os.environ.get("KBSOURCE_SPARK")
pytestmark = pytest.mark.skipif(
    KIT is None, reason="needs Beam's job server for Flink: make spark-test fetches it and runs this"
)


def test_inside_the_job_server_the_bytes_are_those_of_local_runs(tmp_path: Path) -> None:
    assert KIT is not None
    flags = [f"--flink_job_server_jar={kit_in(Path(KIT)).flink_job_server}"]
    flags += [f"--job_server_jvm_properties={one}" for one in QUICK_JAVA]
    build_mini(tmp_path / "local", range_bytes=10_000)

    build_mini(tmp_path / "flink", runner="flink", beam_args=flags, range_bytes=10_000)

    assert contents(tmp_path / "flink") == contents(tmp_path / "local")
    found = [
        record(f"{page.page_id}-{number}", [evidence(element.text, title=page.title)])
        for page in open_release(tmp_path / "local")
        for number, element in enumerate(page.elements)
        if element.text.strip()
    ]
    records = write_records(tmp_path / "records.jsonl", found)
    map_mini(tmp_path / "local-map", tmp_path / "local", "jsonl", records, chunk_records=200)

    map_mini(
        tmp_path / "flink-map", tmp_path / "local", "jsonl", records, runner="flink", beam_args=flags, chunk_records=200
    )

    assert contents(tmp_path / "flink-map") == contents(tmp_path / "local-map")
