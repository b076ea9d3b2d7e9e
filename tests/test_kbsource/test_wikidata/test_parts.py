"""Ranges of a dump as batches and as files, what becomes of entities that end the process, and of those that repeat."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.columns import schema_of
from kbsource.files import Folder
from kbsource.runtime.beat import Beat
from kbsource.runtime.chunks import ChunkKey, Work, numbered_batches
from kbsource.wikidata import parts
from kbsource.wikidata.assemble import find_superseded, name_tables
from kbsource.wikidata.entity import FORMS, OWN_COLUMNS, RANKS, Entity, EntityReader, ReadStatement, Snak
from kbsource.wikidata.lines import plan_entities, read_entities
from kbsource.wikidata.parts import (
    IDS,
    ORDINALS,
    EntityRange,
    PartFiles,
    PartReport,
    statement_columns,
    statements_batch,
)
from kbsource.wikidata.records import Statement, Value
from tests.support.entities import array, item, item_snak, reader

TEXT = st.text(max_size=3)
OWN_VALUES = {
    "monolingualtext": st.tuples(TEXT),
    "quantity": st.tuples(*[st.none() | TEXT] * 3),
    "time": st.tuples(
        st.integers(-(1 << 60), 1 << 60),
        st.none() | st.integers(1, 12),
        st.none() | st.integers(1, 31),
        st.integers(0, 14),
        TEXT,
    ),
    "globecoordinate": st.tuples(*[st.floats(-360, 360)] * 2, TEXT),
}


def snaks_of(form: int) -> st.SearchStrategy[Snak]:
    value_type = FORMS[form][1]
    value = st.none() if value_type is None else TEXT
    return st.tuples(st.just(form), st.none() | TEXT, value, OWN_VALUES.get(value_type or "", st.none()))


SNAK = st.integers(0, len(FORMS) - 1).flatmap(snaks_of)
STATEMENT = st.tuples(
    TEXT, st.integers(0, len(RANKS) - 1), SNAK, st.lists(st.tuples(TEXT, SNAK), max_size=3).map(tuple)
)


def value_row(snak: Snak) -> dict[str, Any]:
    form, datatype, value, own = snak
    kind, value_type = FORMS[form]
    row: dict[str, Any] = {field.name: None for field in schema_of(Value)}
    row |= {"snak": kind, "datatype": datatype, "value_type": value_type, "value": value}
    return row | dict(zip(OWN_COLUMNS.get(value_type or "", ()), own or (), strict=True))


@given(st.dictionaries(TEXT, st.lists(STATEMENT, min_size=1, max_size=4), min_size=1, max_size=3))
def test_every_row_is_what_the_statement_says(entities: dict[str, list[ReadStatement]]) -> None:
    blocks = [statement_columns(entity_id, statements) for entity_id, statements in entities.items()]
    batch = statements_batch([[value for part in column for value in part] for column in zip(*blocks, strict=True)])
    assert batch.schema.equals(schema_of(Statement), check_metadata=True)
    batch.validate(full=True)
    assert batch.to_pylist() == [
        {
            "entity_id": entity_id,
            "property_id": property_id,
            "rank": RANKS[rank],
            **value_row(snak),
            "qualifiers": [{"property_id": name, **value_row(value)} for name, value in qualifiers],
        }
        for entity_id, statements in entities.items()
        for property_id, rank, snak, qualifiers in statements
    ]


def files_of(folder: Path, entities: list[Any], entity_reader: EntityReader | None = None) -> PartFiles:
    dump = folder / "dump.json"
    dump.write_bytes(array(entities))
    ranges = plan_entities([str(dump)], range_bytes=1 << 40)
    staging = str(folder / "staging")
    return PartFiles(ranges, entity_reader or reader(), files=Folder.of, staging=staging)


def write(
    folder: Path, entities: list[Any], *, skipped: Iterable[int] = (), **given: Any
) -> tuple[PartReport, list[pa.RecordBatch]]:
    """Writes a range and gives its report and its ids."""
    work = Work(ChunkKey(0, 0), given.pop("beat", Beat.unshared()), **given)
    rows = numbered_batches([pa.record_batch({"ordinal": list(skipped)}, schema=ORDINALS)])
    ids = list(files_of(folder, entities)(rows, work))
    return msgspec.convert(work.report.facts, PartReport), ids


def test_a_part_gives_batches_of_every_table_ids_and_classes(tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    property_ = {"type": "property", "id": "P31", "datatype": "time"}
    entities = [
        item("Q1", item_snak("P31", "Q5"), lastrevid=7),
        b"{",
        item("Q2", item_snak("P279", "Q5"), sitelinks={"enwiki": {"title": "Two"}}),
        property_,
    ]
    dump.write_bytes(array(entities))
    (whole,) = plan_entities([str(dump)], range_bytes=1 << 40)
    part = EntityRange(read_entities(whole), part=3, file="dump.json", reader=reader())

    found = {name: batch.to_pylist() for name, batch in part}

    assert [row["item_id"] for row in found["items"]] == ["Q1", "Q2"]
    assert [row["property_id"] for row in found["properties"]] == ["P31"]
    assert found["sitelinks"] == [{"item_id": "Q2", "site": "enwiki", "title": "Two"}]
    assert [row["value"] for row in found["statements"]] == ["Q5", "Q5"]
    assert [tuple(row.values()) for row in found["ids"]] == [(0, 1, 7, 3, 1), (0, 2, -1, 3, 3), (1, 31, -1, 3, 4)]
    assert [tuple(row.values()) for row in found["classes"]] == [(2, 5), (5, 5)]
    assert [(bad.reason, bad.file) for bad in part.rejected] == [("malformed_json", "dump.json")]
    assert part.counts() == {"lines": 4, "items": 2, "properties": 1, "others": 0, "rejected": 1}


def test_an_entity_that_ended_the_process_is_not_read_again(tmp_path: Path) -> None:
    report, _ = write(tmp_path, [item("Q1"), item("Q2")], verdicts={1: (1, "crash")})
    assert (report.counts.items, report.counts.rejected) == (1, {"entity_crash": 1})


def test_lines_that_another_supersedes_are_left_out(tmp_path: Path) -> None:
    report, ids = write(tmp_path, [item("Q1"), item("Q2"), item("Q3")], skipped=[1, 3])
    assert (report.counts.items, report.counts.rejected) == (1, {"duplicate_entity": 2})
    assert [number for batch in ids for number in batch["number"].to_pylist()] == [2]


def test_the_beat_shows_the_entity_in_work(tmp_path: Path) -> None:
    beat = Beat.unshared()
    write(tmp_path, [item("Q1"), b"{", item("Q2")], beat=beat)
    assert (beat.read().serial, beat.read().page) == (3, 0)


class _Noting(EntityReader):
    """Notes what it reads."""

    def __init__(self) -> None:
        super().__init__(languages=("en",), sites=None, qualifiers=None)
        self.seen: list[bytes] = []

    def read(self, line: bytes) -> Entity:
        self.seen.append(line)
        return super().read(line)


@pytest.mark.parametrize("alone", [1, 2, 3])
def test_an_entity_that_is_tried_alone_is_the_only_one_read_and_leaves_nothing(tmp_path: Path, alone: int) -> None:
    recording, beat = _Noting(), Beat.unshared()
    files = files_of(tmp_path, [item("Q1"), b"{", item("Q3")], recording)
    assert list(files(iter(()), Work(ChunkKey(0, 0), beat, alone=alone))) == []
    assert (len(recording.seen), beat.read().serial, beat.read().page) == (1, 1, 0)
    assert [b"Q1" in recording.seen[0], recording.seen[0] == b"{", b"Q3" in recording.seen[0]].index(True) == alone - 1
    assert not (tmp_path / "staging").exists()


def test_long_tables_are_cut_into_files_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(parts.GROUP_ROWS, "statements", 2)
    monkeypatch.setitem(parts.ROWS_PER_FILE, "statements", 4)
    report, _ = write(tmp_path, [item(f"Q{number}", *[item_snak("P1", "Q9")] * 3) for number in (1, 2, 3)])
    assert [entry.rows for entry in report.tables["statements"]] == [4, 4, 1]
    folders = {"output": str(tmp_path / "release"), "staging": str(tmp_path / "staging")}
    named = name_tables([report], **folders)
    assert name_tables([report], **folders) == named
    assert [entry.file for entry in named["statements"]] == [
        f"statements/statements-{number:05d}-of-00003.parquet" for number in range(3)
    ]
    assert [entry.rows for entry in named["properties"]] == [0]
    files = [pq.ParquetFile(tmp_path / "release" / entry.file) for entry in named["statements"]]
    assert [file.metadata.num_row_groups for file in files] == [2, 2, 1]
    owners = [row for file in files for row in file.read()["entity_id"].to_pylist()]
    assert owners == ["Q1"] * 3 + ["Q2"] * 3 + ["Q3"] * 3


@pytest.mark.parametrize(
    ("revisions", "superseded"),
    [
        ([[1, 2]], {0: (1,)}),
        ([[2, 2]], {0: (2,)}),
        ([[2], [3]], {0: (1,)}),
        ([[3], [2], [3]], {1: (1,), 2: (1,)}),
        ([[None], [1]], {0: (1,)}),
        ([[1], []], {}),
    ],
)
def test_of_equal_entities_the_newest_then_the_first_stays(
    revisions: list[list[int | None]], superseded: dict[int, tuple[int, ...]]
) -> None:
    rows = [
        (0, 7, -1 if revision is None else revision, part, ordinal)
        for part, own in enumerate(revisions)
        for ordinal, revision in enumerate(own, start=1)
    ]
    others = [(0, 100 + part, -1, part, 9) for part in range(len(revisions))]
    assert find_superseded(_ids(rows + others)) == superseded
    assert find_superseded(_ids(others + rows[::-1])) == superseded


def _ids(rows: list[tuple[int, ...]]) -> pa.Table:
    return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=IDS.names).cast(IDS)
