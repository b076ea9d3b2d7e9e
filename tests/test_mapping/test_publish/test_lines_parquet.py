"""Files of lines as Parquet: one type a field over all splits, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.release.manifest import FileEntry
from mapping.kinds import KINDS
from mapping.publish import configs
from mapping.publish.configs import configs_of, records, write_as_parquet
from mapping.publish.subject import Subject, read_parts
from tests.support.derived_releases import Record, write_alignment, write_alignments


def _written(folder: Path, **splits: list[Any]) -> tuple[pa.Schema, dict[str, list[dict[str, Any]]]]:
    files = {}
    for split, rows in splits.items():
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        files[split] = [FileEntry(f"{split}.jsonl", len(rows), 1, "")]
    out = folder / "out"
    schema, written = write_as_parquet(files, "own", folder=str(folder), output=str(out))
    return schema, {split: pq.read_table(out / entries[0].file).to_pylist() for split, entries in written.items()}


def test_a_field_has_one_type_in_every_split(tmp_path: Path) -> None:
    schema, rows = _written(tmp_path, train=[{"n": 1, "l": []}], dev=[{"n": 0.5, "l": [{"a": "x"}], "more": True}])
    assert schema.types == [pa.float64(), pa.list_(pa.struct([("a", pa.string())])), pa.bool_()]
    assert rows == {"train": [{"n": 1.0, "l": [], "more": None}], "dev": [{"n": 0.5, "l": [{"a": "x"}], "more": True}]}


@pytest.mark.parametrize(
    "values",
    [[1, "one"], [{"Q1": 1}, {"Q22": 2}], [{}, {}], [2**63, 1], [[1], {"a": 1}], [{f"k{n}": n for n in range(60)}]],
)
def test_what_has_no_type_in_common_is_kept_as_json_text(tmp_path: Path, values: list[Any]) -> None:
    schema, rows = _written(tmp_path, train=[{"v": value} for value in values])
    assert schema.field("v").metadata == {b"description": b"JSON text"}
    assert [json.loads(row["v"]) for row in rows["train"]] == values


def test_what_is_always_null_or_empty_can_be_loaded(tmp_path: Path) -> None:
    schema, rows = _written(tmp_path, train=[{"a": None, "b": [], "c": [{"d": None, "e": []}]}])
    assert not any(pa.types.is_null(type_) for type_ in schema.types)
    assert rows["train"] == [{"a": None, "b": [], "c": [{"d": None, "e": []}]}]


def test_many_records_are_written_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configs, "_BATCH_ROWS", 2)
    _, rows = _written(tmp_path, train=[{"n": n} for n in range(5)])
    assert rows["train"] == [{"n": n} for n in range(5)]
    assert pq.ParquetFile(tmp_path / "out" / "hub" / "own" / "train.parquet").metadata.num_row_groups == 3


def test_tables_of_text_have_their_head_as_names(tmp_path: Path) -> None:
    (tmp_path / "q.tsv").write_text('query-id\tscore\na\t1\n"b\n"\t2\n', "utf-8")
    (tmp_path / "q.csv").write_text("x,y\n1,\n", "utf-8")
    found = [*records([str(tmp_path / "q.tsv"), str(tmp_path / "q.csv")])]
    assert found == [{"query-id": "a", "score": "1"}, {"query-id": "b\n", "score": "2"}, {"x": "1", "y": ""}]


def test_splits_of_other_columns_are_loaded_by_themselves(tmp_path: Path) -> None:
    parts = [
        (
            f"own/{split}",
            write_alignment(tmp_path / "own" / split, [Record(id="1")], split=split, is_verified=is_verified),
        )
        for split, is_verified in (("dev", True), ("train", False))
    ]
    path = str(write_alignments(tmp_path, parts))
    found = {config.name: list(config.splits) for config in configs_of(Subject(parts=read_parts(path, KINDS)), path)}
    assert found["own-alignments"] == ["validation"]
    assert found["own-alignments-train"] == ["train"]
    assert found["own-records"] == ["validation", "train"]
