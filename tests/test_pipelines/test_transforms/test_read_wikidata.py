"""ReadWikidata: every output, the bad ones too, and that a file is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.test_pipeline import TestPipeline
from apache_beam.testing.util import assert_that, equal_to

from kbsource.errors import SetupError
from kbsource.records import BadRecord
from kbsource.runtime.chunks import ChunkKey
from pipelines.runners.running import run_pipeline
from pipelines.transforms.wikidata import ReadWikidata
from tests.support.entities import array, item, item_snak, terms

BROKEN = b'{"id":"Q7"'
ENTITIES: list[Any] = [
    item("Q1", item_snak("P31", "Q5"), labels=terms(de="Eins", en="one"), sitelinks={"dewiki": {"title": "Eins"}}),
    BROKEN,
    {"type": "property", "id": "P31", "datatype": "wikibase-item", "labels": terms(de="ist")},
    {"type": "lexeme", "id": "L1"},
    item("Q2", sitelinks={"enwiki": {"title": "Two"}}),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.json"
    path.write_bytes(array(ENTITIES))
    return path


def rows(element: tuple[ChunkKey, pa.RecordBatch], *columns: str) -> tuple[Any, ...]:
    key, batch = element
    return (tuple(key), *zip(*(batch[name].to_pylist() for name in columns), strict=True))


def test_every_entity_is_a_row_or_counted_as_something_else(dump: Path) -> None:
    pipeline = TestPipeline(runner="FnApiRunner")

    read = pipeline | ReadWikidata(str(dump), languages=["de"], sites=["dewiki"])

    found = {
        "items": (("item_id", "label", "n_sitelinks"), [((0, 0), ("Q1", "Eins", 1), ("Q2", None, 1))]),
        "properties": (("property_id", "label"), [((0, 0), ("P31", "ist"))]),
        "sitelinks": (("item_id", "site", "title"), [((0, 0), ("Q1", "dewiki", "Eins"))]),
        "statements": (("entity_id", "property_id", "value"), [((0, 0), ("Q1", "P31", "Q5"))]),
    }
    for name, (columns, expected) in found.items():
        assert_that(read[name] | f"rows of {name}" >> beam.Map(rows, *columns), equal_to(expected), label=name)
    offset = dump.read_bytes().index(BROKEN)
    detail = "unexpected end of data: line 1 column 11 (char 10)"
    bad = BadRecord("parse", "Q7", "malformed_json", detail, "dump.json", offset)
    assert_that(read.rejected, equal_to([bad]), label="rejected")
    counts = {"lines": 5, "items": 2, "properties": 1, "others": 1, "rejected": 1}
    assert_that(read.counts, equal_to([(ChunkKey(0, 0), counts)]), label="counts")
    run_pipeline(pipeline, "test")


def test_ranges_give_the_rows_in_the_order_of_their_keys(dump: Path) -> None:
    pipeline = TestPipeline(runner="FnApiRunner")

    read = pipeline | ReadWikidata([str(dump)], range_bytes=100)

    expected = [((0, 0), ("Q1",)), ((3, 0), ("Q2",))]
    n_ranges = -(-dump.stat().st_size // 100)
    ordered = read["items"] | beam.Map(rows, "item_id")
    assert_that(
        ordered | beam.Map(lambda ordered_item: ordered_item[1:]),
        equal_to([expected_item[1:] for expected_item in expected]),
        label="items",
    )
    assert_that(read.counts | beam.combiners.Count.Globally(), equal_to([n_ranges]), label="counts")
    run_pipeline(pipeline, "test")


def test_a_dump_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="No file matches"):
        ReadWikidata(str(tmp_path / "*.bz2"))
    (tmp_path / "dump.json").write_text("<mediawiki>")
    with pytest.raises(SetupError, match="is not a JSON dump of Wikidata"):
        ReadWikidata(str(tmp_path / "dump.json"))
