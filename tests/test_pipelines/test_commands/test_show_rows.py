"""``kbsource show`` finds the rows of every kind of release by their ids."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.release.kind import Kind
from kbsource.release.writer import write_rows
from mapping.annotation.tasks import CAMPAIGN, CAMPAIGN_TASKS, CROWD_TASKS
from mapping.contexts.kind import CONTEXTS
from mapping.kinds import KINDS
from pipelines.cli import main
from pipelines.commands.show import _matching_rows

_FOUND = [(kind, pair) for kind in KINDS for pair in kind.shown_by]


def _tables(kind: Kind[Any]) -> dict[str, pa.Schema]:
    return {**kind.tables, **(kind.parts.tables if kind.parts is not None else {})}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.format)
def test_every_table_with_an_id_is_looked_in(kind: Kind[Any]) -> None:
    if kind.format.startswith("kbsource-release-"):
        return  # pages are looked up by their index
    # What a page of a diff and a record of an alignment are shown with, and what is a value in a series.
    others = {"section_changes", "span_changes", "misses", "crosswalk", "values"}
    if kind.format.startswith("kbsource-tables-"):
        others |= {
            name for own_kind in KINDS if own_kind.format.startswith("kbsource-release-") for name in own_kind.tables
        }
    assert set(_tables(kind)) - {table for table, _ in kind.shown_by} <= others


@pytest.mark.parametrize(
    ("kind", "pair"), _FOUND, ids=lambda row: row.format if isinstance(row, Kind) else ".".join(row)
)
def test_a_row_is_found_by_each_of_its_names(kind: Kind[Any], pair: tuple[str, str], tmp_path: Path) -> None:
    table, column = pair
    schema = _tables(kind)[table]
    first, _, second = column.partition("__")
    is_text = schema.field(first).type == pa.string()
    rows = []
    for number in (7, 8):
        named = {first: f"Q{number}" if is_text else number, **({second: 0} if second else {})}
        rows.append([named.get(field.name, _value(field.type)) for field in schema])
    entry = write_rows(rows, table, schema, output=str(tmp_path))
    asked = ("Q8" if is_text else "8") + ("__0" if second else "")
    manifest: Any = SimpleNamespace(parts=(), files=(), tables={table: (entry,)})
    if table not in kind.tables and kind.parts is not None:
        kind = kind.parts
    found = dict(_matching_rows(str(tmp_path), kind, manifest, asked))
    assert [row[first] for row in found[table]] == ["Q8" if is_text else 8]
    assert not dict(_matching_rows(str(tmp_path), kind, manifest, "9__9" if second else "nothing"))


@pytest.mark.parametrize("kind", [CONTEXTS, CAMPAIGN, CAMPAIGN_TASKS, CROWD_TASKS], ids=lambda kind: kind.format)
def test_a_line_of_a_file_is_found_by_its_ids(kind: Kind[Any], tmp_path: Path) -> None:
    lines = [{"qid": "7__dev", "answers": ["a"], "valid": True}, {"qid": "8__dev", "passage_id": "3__1", "id": 9}]
    (tmp_path / "lines.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    manifest: Any = SimpleNamespace(parts=(), files=[SimpleNamespace(file="lines.jsonl")], tables={})
    for asked in ("8__dev", "3__1", "9"):
        assert dict(_matching_rows(str(tmp_path), kind, manifest, asked)) == {"lines.jsonl": [lines[1]]}
    assert not dict(_matching_rows(str(tmp_path), kind, manifest, "a"))


def _value(type_: pa.DataType) -> Any:
    if pa.types.is_list(type_):
        return []
    if pa.types.is_struct(type_):
        return {field.name: _value(field.type) for field in type_}
    if pa.types.is_string(type_):
        return ""
    if pa.types.is_boolean(type_):
        return False
    return b"" if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_) else 0


def test_a_passage_is_shown(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = pq.read_table(corpus / "passages").to_pylist()[0]
    assert main(["show", str(corpus), first["passage_id"]]) == 0
    shown = capsys.readouterr().out
    assert first["title"] in shown
    assert first["text"][:20] in shown
    assert main(["show", str(corpus), "999__9"]) == 1
    assert "has no row for '999__9', which was searched for as passage_id in passages" in capsys.readouterr().err


def test_a_row_must_be_named(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(corpus)]) == 2
    assert "name the id or name of a row; kbsource info" in capsys.readouterr().err
