"""Records out of files: arrays and lines, however they are cut, packed or broken."""

from __future__ import annotations

import bz2
import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.sources import all_sources, raw_records
from mapping.sources.raw_records import iter_array, iter_lines
from mapping.sources.source import LOST_EVIDENCE, REJECTED, Inputs, Split, check_names
from tests.support.dataset_sources import DATA, read_source
from tests.support.dumps import PACKS
from tests.support.examples import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=4)


def _array(path: Path, data: bytes) -> list[bytes]:
    path.write_bytes(data)
    return [raw.data for raw in iter_array(str(path))]


@pytest.mark.slow  # a long property
@given(st.lists(OBJECTS, max_size=6), st.sampled_from([None, 1]), st.integers(1, 64))
def test_an_array_is_what_json_reads_however_it_is_cut(
    tmp_path: Path, objects: list[dict[str, Any]], indent: int | None, chunk: int
) -> None:
    path = tmp_path / "array.json"
    path.write_text(json.dumps(objects, indent=indent), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(raw_records, "_READ_BYTES", chunk)
        raws = list(iter_array(str(path)))
    assert [json.loads(raw.data) for raw in raws] == objects
    assert [raw.line for raw in raws] == list(range(1, len(objects) + 1))
    stored = path.read_bytes()
    assert all(stored[raw.offset : raw.offset + len(raw.data)] == raw.data for raw in raws)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b'[{"a": 1}, {"a": 2]}, {"a": 3}]', [b'{"a": 1}', b'{"a": 2]}', b'{"a": 3}'], id="bracket"),
        pytest.param(b'[{"a": "x}, {"a": 2}, {"a": 3}]', [b'{"a": "x}', b'{"a": 2}', b'{"a": 3}'], id="quote"),
        pytest.param(b'[{"a": 1, {"a": 2}, {"a": 3}]', [b'{"a": 1, {"a": 2}', b'{"a": 3}'], id="brace"),
        pytest.param(b"[1, {}, nul, []]", [b"1", b"{}", b"nul", b"[]"], id="other values"),
        pytest.param(b'\xef\xbb\xbf [ {"a": "]"} ] ', [b'{"a": "]"}'], id="byte order mark"),
        pytest.param(b"[]", [], id="empty"),
    ],
)
def test_a_broken_element_ends_where_the_next_begins(tmp_path: Path, data: bytes, expected: list[bytes]) -> None:
    assert [line.strip() for line in _array(tmp_path / "array.json", data)] == expected


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n', "is not a JSON array"),
        (b'[{"a": 1}, {"a": ', "no closing"),
        (b'[{"a": 1}', "no closing"),
        (b"", "is empty"),
        (b"7z\xbc\xaf\x27\x1c....", "7z is not supported.*7z x -so .* bzip2 > "),
        (b"\0" * 257 + b"ustar" + b"\0" * 250, "is a tar archive"),
        ('[{"a": 1}]'.encode("utf-16"), "UTF-16"),
    ],
)
def test_what_is_no_whole_array_stops_at_once(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(SetupError, match=message):
        _array(tmp_path / "array.json", data)


def test_a_packed_file_of_another_kind_is_told_how_to_convert_it(tmp_path: Path) -> None:
    path = tmp_path / "nq-dev-kilt.jsonl.lz"
    path.write_bytes(b"LZIP....")
    plain = str(path).removesuffix(".lz")
    with pytest.raises(
        SetupError,
        match=re.escape(
            "lzip is not supported; only bzip2, gzip, Zstandard and xz are. "
            f"Convert the file: lzip -dc {path} | bzip2 > {plain}.bz2"
        ),
    ):
        list(iter_lines(str(path)))


@pytest.mark.parametrize("pack", PACKS.values(), ids=PACKS)
def test_lines_know_their_number_and_offset(tmp_path: Path, pack: Any) -> None:
    path = tmp_path / "lines"
    path.write_bytes(pack(b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"b": 2}\nend'))
    lines = list(iter_lines(str(path)))
    assert [(line.line, line.data) for line in lines] == [(1, b'{"a": 1}'), (4, b'{"b": 2}'), (5, b"end")]
    assert [line.offset for line in lines] == ([-1] * 3 if pack is bz2.compress else [3, 17, 26])


def test_a_line_that_is_too_long_is_one_rejection_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_records, "MAX_RECORD_BYTES", 100)
    path = tmp_path / "own.jsonl"
    path.write_text('{"id": "1"}\n' + json.dumps({"id": "x" * 950}) + '\n{"id": "3"}\n')
    reading = read_source("jsonl", path)
    assert [example.example_id for example in reading.examples] == ["1", "3"]
    assert reading.reasons == [("source", "line 2", "record_too_long")]


FIELDS = st.sampled_from(
    (
        "id _id claim label evidence input question answer output provenance meta supporting_facts context title text "
        "wikipedia_id start_paragraph_id start_character end_paragraph_id end_character evidence_span "
        "partial_evidence"
    ).split()
)
VALUES = st.recursive(
    st.sampled_from(["SUPPORTS", "NOT ENOUGH INFO", "Port Sellick", "15", "", None, True, 0, 1, -1, 15, 1.5, 2**70]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=20,
)
RECORDS = st.lists(st.dictionaries(FIELDS, VALUES, max_size=8) | VALUES, min_size=1, max_size=5)


@pytest.mark.slow  # a long property
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("fever", "fever/wiki-pages"),
        ("hotpotqa", "hotpotqa/abstracts"),
        ("kilt", "kilt/knowledgesource.jsonl"),
        ("jsonl", None),
    ],
)
@settings(max_examples=examples(60))
@given(records=RECORDS)
def test_no_record_is_lost_without_a_reason(
    tmp_path: Path, name: str, reference: str | None, records: list[Any]
) -> None:
    path = tmp_path / "records"
    lines = [json.dumps(record) for record in records]
    path.write_text("[" + ",".join(lines) + "]" if name == "hotpotqa" else "\n".join(lines))
    folders = [DATA / reference] if reference else []
    reading = read_source(name, path, *folders, is_checked=False)
    assert reading.tally.records == len(records)
    assert all(bad.reason in (LOST_EVIDENCE if bad.stage == "evidence" else REJECTED) for bad in reading.rejected)


LINES = st.lists(
    st.sampled_from(
        [
            "-DOCSTART- (1 EU)",
            "-DOCSTART- (2 EU)",
            "-DOCSTART-",
            "",
            "word",
            "Port\tB\tPort Sellick\tX\thttp://en.wikipedia.org/wiki/Port_Sellick\t15\t/m/1",
            "Sellick\tI\tPort Sellick\tX\thttp://en.wikipedia.org/wiki/Port_Sellick\t15\t/m/1",
            "Jane\tB\tJane\t--NME--",
            "cut\tB\tcut\tX\thttp://en.wikipedia.org/wiki/Cut",
            "cut\tB",
            "odd\tO\todd\tX\tY\tZ",
            "\t\t\t\t\t\t",
        ]
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=examples(100))
@given(lines=LINES)
def test_no_mention_is_lost_without_a_reason(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "aida.tsv"
    path.write_text("\n".join(lines))
    if not any(lines):
        return
    reading = read_source("aidayago2", path, split="train", is_checked=False)
    # Second columns that are set, but for I after a line with four columns or more, are mentions or faults.
    n_odd = sum(line.startswith(("Port", "Jane", "cut", "odd")) or "\t\t" in line for line in lines)
    n_odd += lines.count("-DOCSTART-")
    assert reading.tally.records == n_odd
    assert all(bad.reason in REJECTED for bad in reading.rejected)


def test_the_index_on_disk_is_removed_even_when_reading_stops(tmp_path: Path) -> None:
    inputs = Inputs((str(DATA / "own/own.jsonl"),), scratch=str(tmp_path))
    source = all_sources()["jsonl"]
    rows = source(inputs, "dev", source.options_type()).read()
    next(rows)
    assert list(tmp_path.iterdir())
    rows.close()  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "split", "is_right"),
    [
        ("v1.0-simplified_simplified-nq-train.jsonl.gz", "train", True),
        ("nq-dev-00.jsonl.gz", "train", False),
        ("triviaqa-test_id_without_answers-kilt.jsonl", "test", True),
        ("triviaqa-test_id_without_answers-kilt.jsonl", "dev", False),
        ("validation_eli5.parquet", "dev", True),
        ("train_and_dev.jsonl", "dev", True),
        ("trained.jsonl", "dev", True),
    ],
)
def test_words_of_a_name_tell_its_split(name: str, split: Split, is_right: bool) -> None:
    with nullcontext() if is_right else pytest.raises(SetupError, match=name):
        check_names([f"folder/test/{name}"], split)
