"""The kit of the cluster tests takes Beam's own job servers where they are to be had, and says which it has."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from tests.support import spark_kit
from tests.support.spark_kit import ASSEMBLED_BEAM, job_servers, kit_in, make_job_server

SPARK, _ = job_servers()


@pytest.fixture
def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job server that Maven Central has as soon as this file exists; parts are always to be had."""
    jar = tmp_path / "central.jar"

    def fetch(target: str, *, flag: str) -> str:
        if not jar.exists():
            raise SetupError(f"{target} cannot be fetched (404). Give {flag}.")
        return str(jar)

    def copy(artifact: str, version: str, target: Path) -> None:
        assert (artifact, version) == (SPARK.parts, ASSEMBLED_BEAM)
        target.mkdir()
        for name in ("guava-33.jar", "guava-testlib-33.jar", "failureaccess-1.jar", "beam.jar"):
            (target / name).write_bytes(b"")

    monkeypatch.setattr(spark_kit, "fetch_jar", fetch)
    monkeypatch.setattr(spark_kit, "copy_dependencies", copy)
    return jar


def test_beams_own_comes_first(central: Path, tmp_path: Path) -> None:
    central.write_bytes(b"whole")

    line = make_job_server(SPARK, tmp_path)

    kit = kit_in(tmp_path)
    assert line == "Spark: beam-runners-spark-3-job-server-2.77.0.jar, Beam's own from Maven Central."
    assert (kit.job_server.name, kit.job_server.read_bytes()) == (line.split()[1].rstrip(","), b"whole")
    assert kit.first_jars == ()


def test_one_is_put_together_where_it_cannot_be_had_until_it_can(central: Path, tmp_path: Path) -> None:
    line = make_job_server(SPARK, tmp_path, libraries=[tmp_path / "spark.jar"])

    kit = kit_in(tmp_path)
    assert line == (
        f"Spark: {kit.job_server.name}, put together from the parts of Beam {ASSEMBLED_BEAM}; {SPARK.target} cannot be "
        "fetched (404)."
    )
    with zipfile.ZipFile(kit.job_server) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode().replace("\r\n ", "")
    assert f"Main-Class: {SPARK.main_class}\r\n" in manifest
    assert "/beam.jar " in manifest
    assert "/spark.jar\r\n" in manifest
    assert sorted(path.name for path in kit.first_jars) == ["failureaccess-1.jar", "guava-33.jar"]
    assert make_job_server(SPARK, tmp_path) == line

    central.write_bytes(b"whole")
    make_job_server(SPARK, tmp_path)

    assert kit_in(tmp_path).job_server.read_bytes() == b"whole"
    assert kit_in(tmp_path).first_jars == ()
