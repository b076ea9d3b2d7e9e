"""Published tables as a real Spark reads them; runs by ``make spark-test``."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mapping.kinds import KINDS
from mapping.publish.folder import publish_release
from pipelines.jobs.pageviews import make_pageviews
from pipelines.options.pageviews import PageviewsOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags
from tests.support import mini_wiki, mini_wikidata
from tests.support.clusters import QUICK_JAVA
from tests.support.entities import make
from tests.support.published import own_rows, tables
from tests.support.spark_kit import kit_in

KIT = os.environ.get("KBSOURCE_SPARK")
pytestmark = pytest.mark.skipif(
    KIT is None, reason="needs Spark: make spark-test fetches it (Java 11 or 17, Maven, 500 MB) and runs these"
)
_ROW = "to_json(struct(*), map('ignoreNullFields', 'false'))"


def spark_rows(folders: list[Path], work: Path) -> list[list[dict[str, Any]]]:
    """Gives the rows of tables, read by the SQL shell of one Spark on this machine."""
    assert KIT is not None
    spark = kit_in(Path(KIT)).spark
    query = work / "query.sql"
    selects = (f"select '{number}', {_ROW} from parquet.`{folder}`;" for number, folder in enumerate(folders))
    query.write_text("\n".join(selects), "utf-8")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.driver.extraJavaOptions": " ".join([*QUICK_JAVA, f"-Dderby.system.home={work}"]),
    }
    command = [str(spark / "bin" / "spark-sql"), "--master", "local[1]", "-S", "-f", str(query)]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    environment = {**os.environ, "SPARK_HOME": str(spark), "SPARK_LOCAL_IP": "127.0.0.1"}
    shell = subprocess.run(command, cwd=work, env=environment, capture_output=True, check=True)
    rows: list[list[dict[str, Any]]] = [[] for _ in folders]
    for line in shell.stdout.decode().splitlines():
        number, _, row = line.partition("\t")
        rows[int(number)].append(json.loads(row))
    return rows


def as_json(value: Any) -> Any:
    """Gives times as Spark writes them into JSON."""
    if isinstance(value, dict):
        return {name: as_json(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in value]
    if isinstance(value, str) and value.endswith("+00:00"):
        return f"{datetime.fromisoformat(value):%Y-%m-%dT%H:%M:%S.000Z}".zfill(24)
    return value


def test_spark_reads_every_table_as_it_is(release: Path, tmp_path: Path) -> None:
    make(mini_wikidata.DUMP, output=tmp_path / "wikidata", max_rejects=mini_wikidata.MAX_REJECTS)
    views = PageviewsOptions(input=(str(mini_wiki.VIEWS),), site=mini_wikidata.SITE, output=str(tmp_path / "views"))
    make_pageviews(views, flags=beam_flags("local", workers=None, beam_args=()), progress=Progress())
    folders: list[Path] = []
    for made in (release, tmp_path / "wikidata", tmp_path / "views"):
        published = tmp_path / "published" / made.name
        publish_release(str(made), str(published), KINDS, licence="CC-BY-SA-4.0")
        folders += tables(published)

    found = spark_rows(folders, tmp_path)

    for folder, rows in zip(folders, found, strict=True):
        assert rows == as_json(own_rows(folder.iterdir())), folder
    assert [] in found  # a table without rows
