"""What ``kbsource verify`` finds wrong with a release of Wikidata."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.release.verify import verify
from kbsource.wikidata.kind import WIKIDATA_RELEASE
from tests.support.entities import array, item, make, snak
from tests.support.verified import seal

pytestmark = pytest.mark.usefixtures("module_in_this_process")


def _rewrite(release: Path, table: str, change: Any) -> None:
    """Changes a table and makes the manifest fit, so that only the laws can tell."""
    path = sorted((release / table).iterdir())[0]
    pq.write_table(change(pq.read_table(path)), path)
    seal(release)


def _set(table: pa.Table, column: str, value: Any) -> pa.Table:
    """Gives the table with another value in the first row of a column."""
    at = table.schema.get_field_index(column)
    values = [value, *table[column].to_pylist()[1:]]
    return table.set_column(at, table.schema.field(at), pa.array(values, table.schema.field(at).type))


@pytest.mark.parametrize(
    ("table", "column", "value", "rule"),
    [
        ("items", "item_id", "Q4", "duplicate_entity"),
        ("items", "item_id", "X4", "entity_law"),
        ("items", "item_id", "Q4294967296", "entity_law"),
        ("items", "label", None, "entity_law"),
        ("items", "n_statements", 7, "counts"),
        ("sitelinks", "item_id", "Q6", "counts"),
        ("sitelinks", "title", "", "entity_law"),
        ("statements", "entity_id", "Q100", "counts"),
        ("statements", "rank", "best", "entity_law"),
        ("statements", "snak", "novalue", "entity_law"),
        ("statements", "value_type", "number", "entity_law"),
        ("statements", "value", "5", "entity_law"),
        ("statements", "value", "Q1-F1", "entity_law"),
        ("statements", "value", "Q99999999999", "entity_law"),
        ("statements", "value", "Q77", "classes_disagree"),
        ("statements", "entity_id", "Q4294967296", "entity_law"),
        ("statements", "year", 1900, "entity_law"),
        ("classes", "distance", 3, "classes_disagree"),
        ("rejected", "reason", "bad_luck", "counts"),
    ],
)
def test_verify_finds_rows_that_were_changed(
    whole: Path, tmp_path: Path, table: str, column: str, value: Any, rule: str
) -> None:
    copy = shutil.copytree(whole, tmp_path / "release")
    _rewrite(copy, table, lambda read: _set(read, column, value))
    assert rule in {finding.rule for finding in verify(str(copy), [WIKIDATA_RELEASE]).findings}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value"),
    [("month", 13), ("day", 0), ("precision", 15), ("latitude", float("nan")), ("longitude", -361.0)],
)
def test_verify_finds_parts_of_values_that_cannot_be(column: str, value: float, tmp_path: Path) -> None:
    year = {
        "time": "+1952-03-11T00:00:00Z",
        "precision": 11,
        "calendarmodel": "http://www.wikidata.org/entity/Q1985727",
    }
    place = {"latitude": 1.5, "longitude": 2.5, "globe": "http://www.wikidata.org/entity/Q2"}
    given = ("time", year) if column in ("month", "day", "precision") else ("globecoordinate", place)
    dump = tmp_path / "dump.json"
    dump.write_bytes(array([item("Q1", snak("P1", "any", *given))]))
    make(dump, output=tmp_path / "release")
    _rewrite(tmp_path / "release", "statements", lambda read: _set(read, column, value))
    found = verify(str(tmp_path / "release"), [WIKIDATA_RELEASE]).findings
    assert [finding.rule for finding in found] == ["entity_law"]
    assert f"{column} not from" in found[0].example
