from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from kbsource.columns import batch_of, schema_of
from kbsource.errors import DataError, RecordError
from kbsource.files import Folder
from kbsource.records import (
    BadRecord,
    Cell,
    CellLink,
    Element,
    Infobox,
    InfoboxField,
    Loss,
    Page,
    RedirectRow,
    Table,
    TemplateUse,
    instant_text,
)
from kbsource.release import writer
from kbsource.release.pages.reading import pages_of
from kbsource.release.pages.writing import GROUP_CHARS, PageFaultError, PageGroups, check_page
from kbsource.release.writer import (
    RejectedRows,
    TableFile,
    write_lines,
    write_rejected,
    write_small_batches,
    write_small_table,
)
from tests.support.examples import examples
from tests.support.pages import pages, synthetic_pages, write_pages

FILE = "pages/pages-00000-of-00001.parquet"
PAGE = next(synthetic_pages(1))


@settings(max_examples=examples(40))
@given(st.lists(pages(), max_size=3))
def test_pages_come_back_as_they_were(some: list[Page]) -> None:
    batch = batch_of(some, Page)
    batch.validate(full=True)
    assert pages_of(batch) == some
    assert pages_of(batch.slice(1)) == some[1:]


@pytest.mark.parametrize("file", ["../loot.jsonl", "/loot.jsonl", "qrels/../../loot.jsonl", "a\nb.jsonl", ""])
def test_no_file_is_written_outside_of_the_output(tmp_path: Path, file: str) -> None:
    with pytest.raises(DataError, match="cannot be the path of a file in a release"):
        write_lines([b"x"], file, output=str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["template_categories", "anchors"])
def test_pages_of_another_version_are_named_for_such(name: str) -> None:
    batch = batch_of([PAGE], Page).drop_columns([name])
    with pytest.raises(DataError, match=rf"columns of this version of kbsource \({name}\)"):
        pages_of(batch)


@settings(max_examples=examples(40))
@given(st.lists(pages(), max_size=3))
def test_columns_are_what_pyarrow_makes_of_dictionaries(some: list[Page]) -> None:
    for got, page in zip(batch_of(some, Page).to_pylist(), some, strict=True):
        for column in ("elements", "anchors"):
            assert [row.pop("index") for row in got[column]] == [*range(len(got[column]))]
        got["timestamp"] = instant_text(got["timestamp"])
        assert got == msgspec.json.decode(msgspec.json.encode(page.to_dict()))


@settings(max_examples=examples(60))
@given(pages())
def test_pages_that_keep_the_laws_pass(page: Page) -> None:
    check_page(page)


def _anchor(page: Page, **changes: int | str) -> Page:
    return replace(page, anchors=(replace(page.anchors[0], **changes), *page.anchors[1:]))


def _text(page: Page, text: str) -> Page:
    return replace(page, elements=(*page.elements, Element("paragraph", 0, None, "", (), text)))


def _cell(page: Page, start: int, end: int) -> Page:
    cell = Cell("text", False, 1, 1, (CellLink(start, end, "T", None, None),))
    return replace(page, tables=(Table(0, None, (), ((cell,),)),))


BROKEN: list[tuple[str, Callable[[Page], Page]]] = [
    ("span_mismatch", lambda page: _anchor(page, text="other")),
    ("span_mismatch", lambda page: _anchor(page, start=page.anchors[0].start + 1)),
    ("span_mismatch", lambda page: _anchor(page, end=page.anchors[0].end - 1)),
    ("span_mismatch", lambda page: _anchor(page, element=99)),
    ("span_mismatch", lambda page: _anchor(page, element=-1)),
    ("span_mismatch", lambda page: _anchor(page, start=0, end=999, text=page.elements[1].text)),
    ("span_mismatch", lambda page: _anchor(page, start=5, end=4, text="")),
    ("span_mismatch", lambda page: _anchor(page, start=-1, end=-1, text="")),
    ("invalid_page", lambda page: replace(page, anchors=page.anchors[::-1])),
    ("invalid_page", lambda page: replace(page, elements=(), anchors=())),
    ("invalid_page", lambda page: replace(page, elements=page.elements[1:], anchors=())),
    ("invalid_page", lambda page: replace(page, elements=(*page.elements, page.elements[0]))),
    ("invalid_page", lambda page: _text(page, "two\nlines")),
    ("invalid_page", lambda page: _text(page, "a \x07 bell")),
    ("invalid_page", lambda page: replace(page, template_categories=("None of its own",))),
    ("invalid_page", lambda page: replace(page, category_sort_keys=("one", "too", "many"))),
    ("bad_text", lambda page: _text(page, "half \ud800 a pair")),
    ("invalid_page", lambda page: replace(page, tables=(replace(page.tables[0], element=99),))),
    ("invalid_page", lambda page: replace(page, infoboxes=(replace(page.infoboxes[0], element=-1),))),
    ("invalid_page", lambda page: replace(page, tables=(Table(0, None, (), ((Cell("", False, 0, 1, ()),),)),))),
    ("invalid_page", lambda page: replace(page, timestamp=page.timestamp.replace(tzinfo=None))),
    ("invalid_page", lambda page: replace(page, timestamp=page.timestamp + timedelta(milliseconds=1))),
    ("span_mismatch", lambda page: _cell(page, 0, 5)),
    ("span_mismatch", lambda page: _cell(page, 3, 2)),
    (
        "span_mismatch",
        lambda page: replace(
            page, infoboxes=(Infobox(0, "I", (InfoboxField("n", "", (CellLink(0, 1, "T", None, None),)),)),)
        ),
    ),
]


@pytest.mark.parametrize(("reason", "spoil"), BROKEN)
def test_a_page_that_breaks_a_law_is_refused(reason: str, spoil: Callable[[Page], Page]) -> None:
    with pytest.raises(RecordError) as caught:
        check_page(spoil(PAGE))
    assert caught.value.reason == reason


def _with_controls(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """A value with a control character in one of its texts, for each text column; by the name of the column."""
    if isinstance(value, str):
        yield name, value + "\x06"
    elif isinstance(value, tuple):
        for place, inside in enumerate(value):
            for column, spoiled in _with_controls(inside, name):
                yield column, (*value[:place], spoiled, *value[place + 1 :])
    elif isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            for column, spoiled in _with_controls(getattr(value, field), f"{name}.{field}".lstrip(".")):
                yield column, replace(value, **{field: spoiled})


FULL = replace(
    PAGE,
    qid="Q1",
    anchors=(replace(PAGE.anchors[0], target_fragment="f"), *PAGE.anchors[1:]),
    categories=("c",),
    template_categories=("c",),
    category_sort_keys=("k",),
    redirects=("r",),
    tables=(Table(0, "caption", ("h",), ((Cell("text", False, 1, 1, (CellLink(0, 1, "T", "f", None),)),),)),),
    infoboxes=(Infobox(0, "I", (InfoboxField("n", "text", (CellLink(0, 1, "T", "f", None),)),)),),
    templates=(TemplateUse("a", "unknown", 1),),
    losses=(Loss("ref", 1),),
)
CONTROLLED = dict(_with_controls(FULL, ""))


@pytest.mark.parametrize("column", CONTROLLED)
def test_no_text_holds_a_control_character(column: str) -> None:
    with pytest.raises(RecordError) as caught:
        check_page(CONTROLLED[column])
    assert caught.value.reason == "invalid_page"


@pytest.mark.parametrize("code", sorted({*range(32)} - {9, 10}))
@pytest.mark.parametrize("before", ["", "\\", "\\\\", r"\beta \rho \u0041"])
def test_every_control_character_is_found_after_any_backslashes(code: int, before: str) -> None:
    check_page(_with_caption(f"{before}x \t"))
    with pytest.raises(RecordError, match="a control character"):
        check_page(_with_caption(f"{before}{chr(code)}"))


def _with_caption(text: str) -> Page:
    return replace(FULL, tables=(replace(FULL.tables[0], caption=text),))


def test_a_page_that_cannot_be_encoded_is_named_by_its_number() -> None:
    groups = PageGroups()
    for number, page in enumerate([PAGE, _deep(PAGE), PAGE], 5):
        groups.add(page, number)
    with pytest.raises(PageFaultError) as caught:
        groups.rest()
    assert caught.value.number == 6


def _deep(page: Page) -> Page:
    return replace(page, elements=(*page.elements, Element("list_item", 300, None, "*", (), "deep")))


def test_a_shard_says_what_was_written(tmp_path: Path) -> None:
    entry = write_pages(synthetic_pages(1100, n_paragraphs=1), str(tmp_path), FILE)
    path = tmp_path / FILE
    assert (entry.file, entry.rows, entry.bytes) == (FILE, 1100, path.stat().st_size)
    assert entry.sha256 == Folder.of(str(path)).sha256()
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(number).num_rows for number in range(3)] == [512, 512, 76]
    assert [page for batch in file.iter_batches() for page in pages_of(batch)] == list(
        synthetic_pages(1100, n_paragraphs=1)
    )
    columns = {column.path_in_schema: column for column in map(file.metadata.row_group(0).column, range(52))}
    assert columns["elements.list.element.text"].compression == "ZSTD"
    assert "DELTA_BINARY_PACKED" in columns["anchors.list.element.start"].encodings
    column = columns["page_id"]
    assert column.has_column_index
    assert (column.statistics.min, column.statistics.max) == (1, 1534)


def test_row_groups_stay_small_when_pages_are_large(tmp_path: Path) -> None:
    large = _text(PAGE, "x" * (GROUP_CHARS // 2))
    write_pages((replace(large, page_id=page_id) for page_id in range(1, 5)), str(tmp_path), FILE)
    metadata = pq.ParquetFile(tmp_path / FILE).metadata
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [1, 1, 1, 1]


def test_an_empty_shard_is_a_file_with_columns(tmp_path: Path) -> None:
    assert write_pages([], str(tmp_path), FILE).rows == 0
    assert pq.read_table(tmp_path / FILE).column_names == schema_of(Page).names


def _fail_half_way(folder: Path) -> None:
    with TableFile(str(folder), FILE, "pages", schema=schema_of(Page)) as target:
        target.write(batch_of([PAGE], Page))
        raise ZeroDivisionError


def test_a_failing_shard_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        _fail_half_way(tmp_path)
    assert list((tmp_path / "pages").iterdir()) == []


BAD = [BadRecord("read", str(number), "broken", "d", "dump.xml", number) for number in range(7)]


@pytest.mark.parametrize(("rows_per_file", "sizes"), [(3, [3, 3, 1]), (7, [7]), (100, [7]), (1, [1] * 7)])
def test_a_small_table_is_cut_into_files_of_equal_size(tmp_path: Path, rows_per_file: int, sizes: list[int]) -> None:
    entries = write_small_table(iter(BAD), BadRecord, str(tmp_path), "rejected", rows_per_file=rows_per_file)
    assert [entry.rows for entry in entries] == sizes
    names = [f"rejected/rejected-{number:05d}-of-{len(sizes):05d}.parquet" for number in range(len(sizes))]
    assert [entry.file for entry in entries] == names
    assert sorted(path.name for path in (tmp_path / "rejected").iterdir()) == [name[9:] for name in names]
    rows = [row for name in names for row in pq.read_table(tmp_path / name).to_pylist()]
    assert rows == [asdict(bad_record) for bad_record in BAD]


@pytest.mark.parametrize("rows_per_file", [1, 3, 4, 5, 7, 100])
@pytest.mark.parametrize("batch_rows", [1, 2, 5, 7])
def test_batches_of_any_size_are_written_as_their_rows_would_be(
    tmp_path: Path, batch_rows: int, rows_per_file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "SMALL_GROUP_ROWS", 2)
    by_row = write_small_table(BAD, BadRecord, str(tmp_path / "rows"), "rejected", rows_per_file=rows_per_file)
    whole = batch_of(BAD, BadRecord)
    batches = (whole.slice(start, batch_rows) for start in range(0, len(BAD), batch_rows))
    schema, output = schema_of(BadRecord), str(tmp_path / "batches")
    assert write_small_batches(batches, "rejected", schema, output=output, rows_per_file=rows_per_file) == by_row
    assert len(by_row) == -(-len(BAD) // rows_per_file)


def test_a_table_without_rows_has_one_file(tmp_path: Path) -> None:
    (entry,) = write_small_table([], RedirectRow, str(tmp_path), "redirects")
    output = str(tmp_path / "batches")
    assert write_small_batches([], "redirects", schema_of(RedirectRow), output=output) == (entry,)
    assert (entry.file, entry.rows) == ("redirects/redirects-00000-of-00001.parquet", 0)


def test_any_number_of_rejected_rows_takes_little_memory(tmp_path: Path) -> None:
    rows = (
        BadRecord("read", str(n), "no_evidence" if n % 3 else "no_answers", "é\n" * 50, "", -1) for n in range(30_000)
    )
    with RejectedRows() as rejected:
        tracemalloc.start()
        for row in rows:
            rejected.append(row)
        n_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(rejected) == 30_000
        assert rejected.reasons == {"no_evidence": 20_000, "no_answers": 10_000}
        entry = write_rejected(rejected, output=str(tmp_path))
        assert [row.key for row in rejected] == [str(n) for n in range(30_000)]
    assert n_bytes < 3 << 20
    table = pq.read_table(tmp_path / entry.file)
    assert table["key"].to_pylist() == [str(n) for n in range(30_000)]
    assert set(table["detail"].to_pylist()) == {"é\n" * 50}
