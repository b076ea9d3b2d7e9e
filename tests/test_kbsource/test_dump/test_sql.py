"""Rows of SQL dumps of page_props: columns by name, every literal, broken rows told."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.dump.sql import read_page_props
from kbsource.errors import SetupError
from kbsource.records import BadRecord
from tests.support.dumps import in_pieces, stored
from tests.support.examples import examples
from tests.support.real_data import real_path

CREATE = b"""-- MySQL dump
DROP TABLE IF EXISTS `page_props`;
CREATE TABLE `page_props` (
  `pp_page` int(10) unsigned NOT NULL,
  `pp_propname` varbinary(60) NOT NULL DEFAULT '',
  `pp_value` blob NOT NULL,
  `pp_sortkey` float DEFAULT NULL,
  PRIMARY KEY (`pp_page`,`pp_propname`)
) ENGINE=InnoDB DEFAULT CHARSET=binary;
/*!40000 ALTER TABLE `page_props` DISABLE KEYS */;
"""


def rows(data: bytes, *, read_bytes: int | None = None) -> list[tuple[int, str] | BadRecord]:
    """Id and value of the rows."""
    stored({"t.sql": data})
    found = read_page_props("t.sql", files=in_pieces(read_bytes))
    return [row if isinstance(row, BadRecord) else (row[0], row[2]) for row in found]


def reasons(found: list[tuple[int, str] | BadRecord]) -> list[str]:
    return [row.reason for row in found if isinstance(row, BadRecord)]


def inserted(*written: bytes) -> bytes:
    return CREATE + b"INSERT INTO `page_props` VALUES " + b",".join(written) + b";\n-- Dump completed\n"


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        (b"12", None),
        (b"-3", None),
        (b"1.5", None),
        (b"-1e-05", None),
        (b"NULL", None),
        (b"''", ""),
        (b"'a'", "a"),
        (rb"'it\'s'", "it's"),
        (b"'it''s'", "it's"),
        (rb"'\\'", "\\"),
        (rb"'\\\''", "\\'"),
        (rb"'\0\n\r\t\Z\b\"\x\%'", '\0\n\r\t\x1a\b"x%'),
        (b"'),(1,'", "),(1,"),
        (b"'(1),(2);\n'", "(1),(2);\n"),
        (b"'\xc3\xbc\xff'", "ü\udcff"),
        (b"0x4142", "AB"),
        (b"_binary 'ab\\0'", "ab\0"),
    ],
)
def test_literals(literal: bytes, value: str | None) -> None:
    found = rows(inserted(b"(7,'x'," + literal + b",NULL)", b"(8,'y','last'," + literal + b")"))
    assert found[1:] == [(8, "last")]
    assert found[0] == (7, value) or (value is None and reasons(found) == ["invalid_field"])


def test_an_insert_may_name_its_columns() -> None:
    data = CREATE + b"INSERT INTO `page_props` (`pp_value`, `pp_page`, `pp_propname`) VALUES ('v', 3, 'n');\n"
    assert rows(data) == [(3, "v")]


def test_a_missing_column_is_named_with_those_there_are() -> None:
    with pytest.raises(SetupError, match="page_props has no column pp_value; it has pp_page, pp_propname, pl_title"):
        rows(CREATE.replace(b"pp_value", b"pl_title"))


@pytest.mark.parametrize("data", [b"", b"nothing\n", CREATE[:200]], ids=["empty", "text", "cut"])
def test_what_is_no_table_is_refused(data: bytes) -> None:
    with pytest.raises(SetupError, match=r"t\.sql"):
        rows(data)


def test_two_tables_in_a_file_are_refused() -> None:
    with pytest.raises(SetupError, match="more than one table"):
        rows(CREATE + CREATE.replace(b"page_props", b"other"))


@pytest.mark.parametrize(
    "broken",
    [b"(2,'x')", b"(2,'x','y',z)", b"(2 'x','y',1)", b"2,'x','y',1)", b"(2,'x','y',1,5)"],
    ids=["too_few", "no_literal", "no_comma", "no_bracket", "too_many"],
)
def test_a_broken_row_is_told_and_the_next_ones_read(broken: bytes) -> None:
    data = inserted(b"(1,'x','a',1)", broken, b"(3,'x','c',1)", b"(4,'x','d',1)")
    found = rows(data)
    assert [row for row in found if not isinstance(row, BadRecord)] == [(1, "a"), (3, "c"), (4, "d")]
    (bad,) = [row for row in found if isinstance(row, BadRecord)]
    assert (bad.reason, bad.file) == ("malformed_row", "t.sql")
    assert data.startswith(broken, bad.offset)


def test_many_broken_rows_are_told_one_by_one() -> None:
    data = inserted(*(b"(%d,'x','a',%s)" % (number, b"?" if number % 2 else b"1") for number in range(3000)))
    found = rows(data)
    assert sum(isinstance(row, BadRecord) for row in found) == 1500
    assert [row[0] for row in found if not isinstance(row, BadRecord)] == list(range(0, 3000, 2))


@pytest.mark.parametrize("kept", [0, 1, 5, 12], ids=lambda count: f"{count}_bytes_of_the_row")
def test_a_file_that_ends_inside_an_insert_is_told(kept: int) -> None:
    data = inserted(b"(1,'x','a',1)", b"(3,'x','c',1)", b"(4,'x','d',1)")
    found = rows(data[: data.index(b"(4,") + kept])
    assert found[:2] == [(1, "a"), (3, "c")]
    assert reasons(found) == ["truncated_sql"]


@pytest.mark.parametrize("row", [b"(1,'x','", b"(1,'x','a',NU", b"(1,'x',0x"], ids=["text", "null", "digits"])
def test_a_row_that_never_ends_is_told_as_the_end_of_the_file_too(row: bytes) -> None:
    whole = inserted(b"(1,'x','a',1)")
    found = rows(whole[: whole.index(b"(1,")] + row + b"0" * (3 << 20))
    assert reasons(found) == ["malformed_row", "truncated_sql"]


def test_a_damaged_gzip_is_told() -> None:
    packed = gzip.compress(inserted(*(b"(%d,'x','%d',1)" % (n, n * 7919 % 1013) for n in range(5000))))
    found = rows(packed[:8000] + b"\xff" * 100 + packed[8100:])
    assert found[0] == (0, "0")
    assert "damaged_gzip" in reasons(found)
    assert reasons(rows(packed[:-1000])) == ["truncated_sql"]


_BYTES = st.binary(max_size=12)
_SORT_KEYS = st.one_of(st.none(), st.integers(-(10**12), 10**12), _BYTES)


def written(value: float | bytes | None) -> bytes:
    if value is None:
        return b"NULL"
    if isinstance(value, bytes):
        escaped = value
        for plain, escape in ((b"\\", rb"\\"), (b"'", rb"\'"), (b"\0", rb"\0"), (b"\n", rb"\n")):
            escaped = escaped.replace(plain, escape)
        return b"'" + escaped + b"'"
    return str(value).encode()


@given(
    table=st.lists(st.tuples(st.integers(0, 10**12), _BYTES, _BYTES, _SORT_KEYS), max_size=12),
    statements=st.integers(1, 4),
    read_bytes=st.sampled_from([None, 40, 200]),
)
@settings(max_examples=examples(80))
def test_whatever_is_written_is_read(
    table: list[tuple[int, bytes, bytes, float | bytes | None]], statements: int, read_bytes: int | None
) -> None:
    data = CREATE
    for first in range(0, len(table), statements):
        values = [b"(" + b",".join(map(written, row)) + b")" for row in table[first : first + statements]]
        data += b"INSERT INTO `page_props` VALUES " + b",\n".join(values) + b";\n"
    found = rows(data, read_bytes=read_bytes)
    assert found == [(row[0], row[2].decode("utf-8", "surrogateescape")) for row in table]


def test_page_props_come_as_text_and_by_name() -> None:
    data = inserted(b"(1,'wikibase_item','Q5',NULL)", b"(2,'disambiguation','',NULL)", rb"(3,'x','\'\xff',0)")
    stored({"p.sql": data})
    assert list(read_page_props("p.sql", names=frozenset({"wikibase_item"}))) == [(1, "wikibase_item", "Q5")]
    assert list(read_page_props("p.sql"))[1] == (2, "disambiguation", "")


def test_a_page_prop_that_is_none_is_told() -> None:
    stored({"p.sql": inserted(b"(NULL,'a','b',NULL)")})
    (bad,) = read_page_props("p.sql")
    assert isinstance(bad, BadRecord)
    assert bad.reason == "invalid_field"


@pytest.mark.parametrize(
    ("name", "n_rows", "first"),
    [
        ("rmwiki/20240301/rmwiki-20240301", 6, [(1, "wikibase_item", "Q5296")]),
        ("loginwiki/20240501/loginwiki-20240501", 0, []),
    ],
)
def test_real_tables(name: str, n_rows: int, first: list[tuple[int, str, str]]) -> None:
    found = list(read_page_props(str(real_path(f"sql/qrank_dumps/{name}-page_props.sql.gz"))))
    assert (len(found), found[:1]) == (n_rows, first)
