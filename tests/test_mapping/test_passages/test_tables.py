"""Rows of tables as passages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kbsource.elements import Cell, Table
from kbsource.errors import RecordError
from mapping.passages.cut import CutOptions, PageText, Passage, check_passages
from mapping.passages.tables import located_text, table_sentences


def _cell(text: str, *, is_header: bool = False, columns: int = 1, rows: int = 1) -> Cell:
    return Cell(text, is_header, columns, rows, ())


def _table(*rows: tuple[Cell | str, ...], header: tuple[str, ...] = (), caption: str | None = None) -> Table:
    return Table(
        0, caption, header, tuple(tuple(_cell(cell) if isinstance(cell, str) else cell for cell in row) for row in rows)
    )


def _texts(table: Table) -> list[str]:
    return [sentence.text for sentence in table_sentences(0, table)]


LAKE = ("Lake", "Depth")


@pytest.mark.parametrize(
    ("table", "sentences"),
    [
        pytest.param(_table(("Sorn", "12 m"), header=LAKE), ["Lake: Sorn; Depth: 12 m."], id="headers before values"),
        pytest.param(
            _table(("Sorn", "12 m"), header=LAKE, caption="Lakes of the isles"),
            ["Lakes of the isles.", "Lake: Sorn; Depth: 12 m."],
            id="the caption is a sentence of its own",
        ),
        pytest.param(_table(("Sorn", " "), header=LAKE), ["Lake: Sorn."], id="empty cells are left out"),
        pytest.param(_table(("", ""), header=LAKE), [], id="empty rows too"),
        pytest.param(_table(("Sorn", "12 m"), header=("", "Depth")), ["Sorn; Depth: 12 m."], id="an empty header"),
        pytest.param(_table(LAKE, header=LAKE), ["Lake; Depth."], id="a header that is repeated"),
        pytest.param(
            _table((_cell("Sorn", rows=2), "12 m"), ("14 m",), header=LAKE),
            ["Lake: Sorn; Depth: 12 m.", "Lake: Sorn; Depth: 14 m."],
            id="a cell over two rows is in both",
        ),
        pytest.param(
            _table(("Sorn", _cell("unknown", columns=2)), header=(*LAKE, "Area")),
            ["Lake: Sorn; Depth, Area: unknown."],
            id="a cell over two columns has both headers",
        ),
        pytest.param(
            _table((_cell("North", columns=6),), header=tuple("abcdef")), ["North."], id="a row that divides a table"
        ),
        pytest.param(
            _table(("Sorn", "12 m", "deep"), header=LAKE), ["Lake; Depth.", "Sorn; 12 m; deep."], id="wider than header"
        ),
        pytest.param(_table(header=LAKE), ["Lake; Depth."], id="a header without rows"),
        pytest.param(
            _table((_cell("Capital", is_header=True), "Port Sellick"), (_cell("Area", is_header=True), "41 km²")),
            ["Capital: Port Sellick.", "Area: 41 km²."],
            id="header cells before their rows",
        ),
        pytest.param(_table(("It is deep.", "12 m")), ["It is deep. 12 m."], id="no semicolon behind a full stop"),
        pytest.param(_table((" a\nb ",)), ["a b."], id="line breaks are spaces"),
    ],
)
def test_a_row_is_a_sentence(table: Table, sentences: list[str]) -> None:
    assert _texts(table) == sentences


def test_every_cell_has_its_place() -> None:
    table = _table((_cell(" Sorn", rows=2), "12 m"), ("14 m",), header=LAKE, caption="Lakes")
    sentences = table_sentences(3, table)
    places = [(cell.row, cell.cell, cell.start_char, cell.passage_start_char) for cell in sentences[2].cells]
    assert places == [(None, 0, 0, 0), (0, 0, 1, 6), (None, 1, 0, 12), (1, 0, 0, 19)]
    assert {cell.table for sentence in sentences for cell in sentence.cells} == {3}
    for text, cells in sentences:
        for cell in cells:
            assert (
                located_text(table, cell.row, cell.cell)[cell.start_char : cell.end_char]
                == text[cell.passage_start_char : cell.passage_end_char]
            )  # type: ignore[index]


def test_what_is_no_cell_has_no_text() -> None:
    table = _table(("Sorn",), header=("Lake",))
    for row, cell in ((None, None), (None, 1), (None, -1), (0, 1), (0, -1), (1, 0), (-1, 0), (0, None)):
        assert located_text(table, row, cell) is None


@pytest.mark.parametrize(
    "table",
    [
        _table(*((_cell("x" * 500, rows=9999), "1") for _ in range(2000))),
        _table(*(("1",) for _ in range(5000)), header=("y" * 100_000,)),
        _table(*((_cell("1", columns=9999),) * 50 for _ in range(100)), header=("z",)),
    ],
    ids=["cells that reach down", "a long header", "wide cells"],
)
def test_repeats_do_not_multiply_a_table(table: Table) -> None:
    sentences = table_sentences(0, table)
    n_chars = sum(map(len, table.header)) + sum(len(cell.text) for row in table.rows for cell in row)
    assert sum(len(sentence.text) for sentence in sentences) <= 70 * n_chars + 20_000
    assert len(sentences) >= len(table.rows)


def _page(*tables: Table, text: str = "It is a page.") -> PageText:
    return PageText(7, "Sorn", ((1, text),), ((),), tables, (("Lakes",),) * len(tables))


def _cut(page: PageText, options: CutOptions) -> list[Passage]:
    passages = options.cutter("en")(page)
    check_passages(page, passages, options.join)
    return passages


ROWS = _table(("Sorn", "12 m"), ("Tey", "3 m"), ("Brack, the upper", "150 m at most"), header=LAKE)


@pytest.mark.parametrize(
    ("options", "texts", "n_words"),
    [
        (
            CutOptions(10, tables=True),
            ["Lake: Sorn; Depth: 12 m. Lake: Tey; Depth: 3 m.", "Lake: Brack, the upper; Depth: 150 m at most."],
            [10, 9],
        ),
        (
            CutOptions(4, tables=True),
            ["Lake: Sorn; Depth: 12 m.", "Lake: Tey; Depth: 3 m.", "Lake: Brack, the upper; Depth: 150 m at most."],
            [5, 5, 9],
        ),
        (
            CutOptions(unit="words-5", tables=True),
            ["Lake: Sorn; Depth: 12 m.", "Lake: Tey; Depth: 3 m.", "Lake: Brack, the upper; Depth:", "150 m at most."],
            [5, 5, 5, 4],
        ),
        (
            CutOptions(5, split_long=True, tables=True),
            ["Lake: Sorn; Depth: 12 m.", "Lake: Tey; Depth: 3 m.", "Lake: Brack, the upper; Depth:", "150 m at most."],
            [5, 5, 5, 4],
        ),
        (
            CutOptions(unit="tokens-18", tables=True),
            ["Lake: Sorn; Depth: 12 m. Lake: Tey; Depth: 3 m.", "Lake: Brack, the upper; Depth: 150 m at most."],
            [16, 14],
        ),
    ],
    ids=lambda value: "",
)
def test_rows_fill_passages(options: CutOptions, texts: list[str], n_words: list[int]) -> None:
    if options.unit.startswith("tokens"):
        pytest.importorskip("spacy")
    passages = _cut(_page(ROWS), options)
    assert passages[0].text == "It is a page."
    tables = passages[1:]
    assert [passage.text for passage in tables] == texts
    assert [passage.n_words for passage in tables] == n_words
    assert [passage.passage_id for passage in tables] == [f"7__{number}" for number in range(1, len(texts) + 1)]
    assert {(passage.section, passage.spans) for passage in tables} == {(("Lakes",), ())}


def test_a_mark_behind_the_last_cell_is_no_passage() -> None:
    texts = [passage.text for passage in _cut(_page(_table(("北北",))), CutOptions(unit="words-2", tables=True))]
    assert texts == ["It is", "a page.", "北北"]


def test_tables_share_no_passage_and_do_not_change_the_text() -> None:
    page = _page(_table(("Sorn",)), _table(("Tey",)), text="It is a page. It is long.")
    options = CutOptions(4)
    assert _cut(page, CutOptions(4, tables=True))[:-2] == options.cutter("en")(page)
    assert [passage.text for passage in _cut(page, CutOptions(4, tables=True))[-2:]] == ["Sorn.", "Tey."]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "Lake: Sorm; Depth: 12 m. Lake: Tey; Depth: 3 m."}, "span_mismatch"),
        ({"text": "Lake: Sorn; Depth: 12 m. Lake: Tey; Depth: 3 m. More"}, "span_mismatch"),
        ({"cells": ()}, "span_mismatch"),
        ({"number": 9}, "invalid_passage"),
    ],
)
def test_passages_of_tables_hold_exactly_their_cells(change: dict[str, object], reason: str) -> None:
    page = _page(ROWS)
    passages = _cut(page, CutOptions(10, tables=True))
    passages[1] = replace(passages[1], **change)
    with pytest.raises(RecordError) as caught:
        check_passages(page, passages, CutOptions().join)
    assert caught.value.reason == reason


def test_a_lost_cell_and_a_moved_one_are_found() -> None:
    page = _page(ROWS)
    passages = _cut(page, CutOptions(10, tables=True))
    with pytest.raises(RecordError, match="text of cell 0, row 2, table 0"):
        check_passages(page, passages[:-1], CutOptions().join)
    cells = passages[1].cells
    for moved in (
        replace(cells[1], row=1),
        replace(cells[1], table=1),
        replace(cells[1], end_char=9),
        replace(cells[1], passage_start_char=5),
    ):
        changed = replace(passages[1], cells=(cells[0], moved, *cells[2:]))
        with pytest.raises(RecordError) as caught:
            check_passages(page, [passages[0], changed, *passages[2:]], CutOptions().join)
        assert caught.value.reason == "span_mismatch"


_WORDS = st.text(st.sampled_from("ab .:\n\t北 "), max_size=6)
_CELLS = st.builds(Cell, _WORDS, st.booleans(), st.integers(0, 3), st.integers(0, 3), st.just(()))


@given(
    st.lists(
        st.builds(
            Table,
            st.just(0),
            st.none() | _WORDS,
            st.lists(_WORDS, max_size=4).map(tuple),
            st.lists(st.lists(_CELLS, max_size=4).map(tuple), max_size=5).map(tuple),
        ),
        max_size=2,
    ),
    st.sampled_from(
        [
            CutOptions(3, tables=True),
            CutOptions(3, split_long=True, tables=True),
            CutOptions(unit="words-2", tables=True),
            CutOptions(tables=True),
        ]
    ),
)
def test_any_table_is_cut_exactly(tables: list[Table], options: CutOptions) -> None:
    page = _page(*tables)
    for passage in _cut(page, options)[1:]:
        if passage.cells:
            assert passage.n_words <= options.limit or not (options.split_long or not options.is_by_sentence)
            assert "\n" not in passage.text
