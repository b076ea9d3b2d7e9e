"""Rows with fields that Beam knows: of every table of every kind, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
import yaml
from apache_beam.coders import RowCoder
from apache_beam.testing.test_pipeline import TestPipeline as Pipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.utils.python_callable import PythonCallableWithSource

from kbsource.columns import batch_of, schema_of
from kbsource.errors import SetupError
from kbsource.records import Page
from kbsource.runtime.chunks import ChunkKey
from mapping.kinds import KINDS, OWN_TABLES
from mapping.passages.cut import Passage, PassageSpan
from pipelines.transforms import AsChunks, AsEmbeddable, AsRows, ReadPages, beam_yaml
from pipelines.transforms.rows import as_tuple, batch_of_tuples, row_type, rows_of_chunk
from tests.support.builds import open_release
from tests.support.real_data import ROOT

OWN = [kind for kind in KINDS if kind is not OWN_TABLES]
TABLES = {f"{kind.name}: {table}": schema for kind in OWN for table, schema in kind.tables.items()}
N_ROWS = 7


def _value(field: pa.Field, number: int) -> Any:
    """A value of a column, None where that may be, lists of none to two items."""
    of = field.type
    if field.nullable and number % 3 == 0:
        return None
    if pa.types.is_struct(of):
        return {inner_field.name: _value(inner_field, number + place) for place, inner_field in enumerate(of)}
    if pa.types.is_list(of):
        return [_value(of.value_field.with_nullable(False), number + place) for place in range(number % 3)]
    if pa.types.is_string(of):
        return "é" * (number % 4)
    if pa.types.is_binary(of):
        return b"\xff" * number
    if pa.types.is_boolean(of):
        return number % 2 == 0
    return 1_700_000_000_000 + 1_000 * number if pa.types.is_timestamp(of) else number


@pytest.mark.parametrize("table", TABLES)
def test_rows_of_every_table_come_back_as_they_were(table: str) -> None:
    schema = TABLES[table]
    columns = [pa.array([_value(field, number) for number in range(N_ROWS)], field.type) for field in schema]
    batch = pa.RecordBatch.from_arrays(columns, schema=schema)
    coder = RowCoder.from_type_hint(row_type(schema), None)
    rows = list(rows_of_chunk((ChunkKey(0, 0), batch), schema=schema))
    for given in (rows, [coder.decode(coder.encode(row)) for row in rows]):
        assert batch_of_tuples([as_tuple(row, tuple(schema)) for row in given], schema).equals(batch)


def _bytes(chunk: tuple[ChunkKey, pa.RecordBatch]) -> bytes:
    return bytes(chunk[1].serialize())


def test_pages_are_selected_and_counted(release: Path) -> None:
    expected = {page.title: len(page.anchors) for page in open_release(release) if page.anchors}
    with Pipeline("FnApiRunner") as pipeline:
        pages = pipeline | ReadPages(str(release), columns=["title", "anchors"]).rows()
        links = pages | beam.Select("title", target=_targets) | beam.FlatMap(_links)
        counts = links | beam.GroupBy("title").aggregate_field("one", sum, "n_links") | beam.Map(tuple)
        assert_that(counts, equal_to(list(expected.items())))


def _targets(page: Any) -> list[str]:
    return [anchor.target_title for anchor in page.anchors]


def _links(page: Any) -> list[beam.Row]:
    return [beam.Row(title=page.title, one=1) for _ in page.target]


@pytest.mark.slow  # many rows
def test_rows_in_order_have_the_same_bytes_however_they_come(release: Path) -> None:
    pages = list(open_release(release))
    batch = batch_of(pages, Page)
    for given in (pages, pages[::-1]):
        with Pipeline("FnApiRunner") as pipeline:
            rows = pipeline | beam.Create([(ChunkKey(0, 0), batch_of(given, Page))]) | AsRows(schema_of(Page))
            chunks = rows | AsChunks(schema_of(Page), order=["page_id"])
            assert_that(chunks | beam.Map(_bytes), equal_to([_bytes((ChunkKey(0, 0), batch))]))


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(SetupError, match="Column at has the type uint16"):
        row_type(pa.schema({"at": pa.uint16()}))
    with pytest.raises(SetupError, match="cannot be ordered by pages: the fields are page_id"):
        AsChunks(pa.schema({"page_id": pa.int64()}), order=["pages"])


def test_a_passage_is_an_item_with_its_place() -> None:
    postgres = pytest.importorskip("apache_beam.ml.rag.ingestion.postgres_common")
    passage = Passage("3__1", 3, "Sorn", 1, 4, "It rises in Brack.", (PassageSpan(2, 0, 18),), ("Course",))
    with Pipeline("FnApiRunner") as pipeline:
        items = pipeline | beam.Create([(ChunkKey(0, 0), batch_of([passage], Passage))]) | AsEmbeddable()
        said = items | beam.Map(_said)
        place = {"page_id": 3, "title": "Sorn", "section": ["Course"], "spans": [[2, 0, 18]], "cells": []}
        assert_that(said, equal_to([("3__1", 1, "It rises in Brack.", place)]))
    # A sink of Beam takes its columns out of such items.
    assert postgres.ColumnSpecsBuilder().with_id_spec().with_content_spec().with_metadata_spec().build()


def _said(item: Any) -> tuple[Any, ...]:
    return item.id, item.index, item.content.text, item.metadata


def test_the_provider_names_steps_that_are_there() -> None:
    (provider,) = yaml.safe_load((ROOT / "pipelines" / "kbsource.yaml").read_text("utf-8"))
    for step, place in provider["transforms"].items():
        assert PythonCallableWithSource.load_from_source(place).__doc__, step
        assert f"`{step}`" in (ROOT / "docs" / "pipelines.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("step", "arguments", "message"),
    [
        (
            "read_pages",
            {"release": "{release}", "columns": ["name"]},
            "There is no column 'name'; the columns are page_id",
        ),
        ("read_pages", {"release": "{release}/nowhere"}, "nowhere"),
        ("read_table", {"release": "{release}", "table": "items"}, "has no table 'items'; it has pages, redirects"),
        ("ReadEvidence", {"dataset": "nqq", "input": "x", "folder": "y"}, "no dataset 'nqq'; choose one of aidayago2"),
        ("ReadEvidence", {"dataset": "jsonl", "input": "{release}/nowhere", "folder": "y"}, "nowhere"),
        (
            "ReadEvidence",
            {"dataset": "jsonl", "input": "x", "folder": "y", "split": "all"},
            "ReadEvidence: Invalid enum",
        ),
        ("CutPassages", {"max_word": 5}, "CutPassages has no argument 'max_word'"),
        ("CutPassages", {"max_words": "many"}, "CutPassages: Expected `int`"),
        (
            "write_table",
            {"table": "page", "output": "x", "order": ["page_id"]},
            "WriteTable: there is no table 'page'; choose one of aliases",
        ),
        ("write_table", {"table": "pages", "output": "x", "order": ["id"]}, "cannot be ordered by id"),
    ],
)
def test_arguments_that_cannot_be_are_refused_before_the_pipeline_runs(
    step: str, arguments: dict[str, Any], message: str, release: Path
) -> None:
    given = {
        name: value.format(release=release) if isinstance(value, str) else value for name, value in arguments.items()
    }
    with pytest.raises(SetupError, match=message):
        getattr(beam_yaml, step)(**given)
