"""Key columns as a file names them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage
from mapping.qampari.lists.key_columns import read_key_columns


def _line(title: object = "List of lakes", table: object = 0, column: object = 1) -> str:
    return json.dumps({"title": title, "table": table, "column": column})


def _read(path: Path, *lines: str) -> tuple[tuple[str, int, int], ...]:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return read_key_columns(str(path), LocalStorage())


def test_columns_come_by_title_and_table_whatever_the_order_of_the_lines(tmp_path: Path) -> None:
    lines = [_line("List of Ålänningar", 2, 0), _line("List of lakes", 10, 3), _line("List of lakes", 9, 4)]
    expected = (("List of lakes", 9, 4), ("List of lakes", 10, 3), ("List of Ålänningar", 2, 0))

    assert _read(tmp_path / "keys.jsonl", *lines) == _read(tmp_path / "keys.jsonl", *reversed(lines)) == expected


def test_a_packed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl.gz"
    path.write_bytes(gzip.compress(_line().encode()))

    assert read_key_columns(str(path), LocalStorage()) == (("List of lakes", 0, 1),)


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("{", "line 2: .*as JSON"),
        ("[]", "line 2: .*as JSON"),
        ('{"title": "List of lakes", "table": 1}', "line 2: 'column'.*as JSON"),
        (_line(7, 1), "line 2: title must be a text"),
        (_line(table="1"), "line 2: .*whole numbers"),
        (_line(table=True), "line 2: .*whole numbers"),
        (_line(table=1, column=1.0), "line 2: .*whole numbers"),
        (_line(table=-1), "line 2: .*from 0 on"),
        (_line(table=1, column=-2), "line 2: .*from 0 on"),
        (_line(column=2), "line 2: table 0 of 'List of lakes' is named a second time"),
    ],
)
def test_a_line_that_is_wrong_is_named(line: str, match: str, tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    with pytest.raises(SetupError, match=f"{path}, {match}"):
        _read(path, _line(), line)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"keys\.jsonl"):
        read_key_columns(str(tmp_path / "keys.jsonl"), LocalStorage())
