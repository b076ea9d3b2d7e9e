"""Measures as data: those of every kind run on any release, and a kind needs nothing of the inspector to be shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kbsource.release.invariants import Invariant
from kbsource.release.kind import Kind, ListingKind
from kbsource.release.manifest import ListingManifest
from kbsource.release.measures import Measure, ToRow, ToRows
from kbsource.release.output import ReleaseFolder, commit
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.sql import connected, identifier
from kbsource.release.verify import verify
from kbsource.release.writer import write_rows
from mapping.document import Chart, Share, TableSection
from mapping.facts import FACTS
from mapping.inspector import measures, opened
from mapping.inspector.app import about_view, report_on
from mapping.inspector.app import measures as measures_of
from mapping.inspector.opened import OpenRelease, close_releases, open_releases
from mapping.kinds import KINDS
from tests.support.every_kind import write_every_kind
from tests.support.inspected import client_of

HOSTILE = "<script>alert('x')</script>"
_GOODS = pa.schema(
    [
        pa.field("shop", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("price", pa.int64(), nullable=False),
        pa.field("was", pa.string()),
    ]
)
_LISTED = Measure(
    "Goods by shop",
    """select shop, count(*) as goods, avg(price) as "mean price", count(*) / sum(count(*)) over () as share
    from goods group by shop order by shop""",
    section="Shops",
    about="Of every shop.",
    links={"shop": ToRows("goods", {"shop": "shop"}), "goods": ToRows("goods", {"shop": "shop"})},
    needs=("goods",),
)
TOY = ListingKind(
    name="list of goods",
    format="kbsource-toy-1",
    made_by="a test",
    tables={"goods": _GOODS},
    required=("goods",),
    invariants=(
        Invariant("negative_price", "a price is below 0", "case when price < 0 then [name] end", table="goods"),
    ),
    measures=(
        Measure("Sums", 'select count(*) as goods, sum(price) as "their prices" from goods', form="facts"),
        _LISTED,
        Measure(
            "Prices by shop",
            "select shop, sum(price) as price from goods group by shop order by shop",
            section="Shops",
            chart="bars",
            about="In all.",
            needs=("goods",),
        ),
        Measure(
            "Dear and cheap",
            """select shop, if(price > 4, 'dear', 'cheap') as is_dear, count(*) as n, is_dear as _is_dear from goods
            group by all order by shop, is_dear""",
            spread="is_dear",
            page="measures",
            needs=("goods",),
        ),
        Measure(
            "Names",
            "select name, was, _file_number, _row from goods where was is not null order by name",
            page="measures",
            compared=("was", "name"),
            if_empty="No name changed.",
            needs=("goods",),
        ),
        Measure(
            "Dearest",
            "select name, price, _file_number, _row from goods order by price desc, name limit 2",
            page="measures",
            links={"name": ToRow("goods")},
            needs=("goods",),
        ),
        Measure("Of another", 'select 1 from "old.goods"', needs=("old.goods",), if_missing="Open the older list too."),
        Measure(
            "Made from", "select json($manifest)->>'origin' as origin, json($manifest)->'files' as files", form="facts"
        ),
        Measure("Each shop", "select shop, count(*) as goods from goods group by shop order by shop", by="shop"),
    ),
)
ROWS: list[list[Any]] = [
    ["corner", "red apple", 3, "green apple"],
    ["corner", "pear", 5, None],
    [HOSTILE, HOSTILE, 9, None],
]


def write_toy(folder: Path, rows: list[list[Any]]) -> str:
    output = str(folder)
    with ReleaseFolder(output, kind=TOY):
        pass
    entry = write_rows(rows, "goods", _GOODS, output=output)
    commit(TOY, ListingManifest.of(TOY.format, [entry], {"origin": HOSTILE}), output)
    return output


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "KINDS", (*KINDS, TOY))


@pytest.fixture
def toy(tmp_path: Path, known: None) -> Iterator[OpenRelease]:
    releases = open_releases([write_toy(tmp_path / "toy", ROWS)])
    yield releases[0]
    close_releases(releases)


def test_a_kind_is_shown_by_what_it_declares(toy: OpenRelease) -> None:
    client = client_of(toy)
    text = client.get("/r/toy/").text
    assert '<a href="/r/toy/tables/goods?shop=corner">corner</a>' in text
    assert '<a href="/r/toy/tables/goods?shop=corner">2</a>' in text
    assert "66.7 %" in text
    assert "Of every shop." in text
    assert "Open the older list too." in text
    assert text.index("Goods by shop") < text.index("What it holds</h2>") < text.index("manifest sha256")
    assert '<details class="section"' in text
    listed = client.get("/r/toy/tables/goods?shop=corner").text
    assert ("red apple" in listed, "alert" in listed) == (True, False)
    dearest = client.get("/r/toy/measures").text
    assert '<a href="/r/toy/tables/goods/2">' in dearest
    assert "<mark>red</mark> apple" in dearest


def test_nothing_of_a_release_is_markup(toy: OpenRelease) -> None:
    client = client_of(toy)
    for path in ("/r/toy/", "/r/toy/measures"):
        text = client.get(path).text
        assert "<script>" not in text
        assert "&lt;script&gt;" in text


def test_pages_are_also_json(toy: OpenRelease) -> None:
    client = client_of(toy)
    sections = {section["title"]: section["blocks"] for section in client.get("/r/toy/index.json").json()["sections"]}
    assert sections["Sums"] == [
        {"kind": "facts", "values": [{"name": "goods", "value": 3}, {"name": "their prices", "value": 17}]}
    ]
    about_it, table, charts = sections["Shops"]
    assert about_it["text"] == "Of every shop."
    assert table["columns"] == ["shop", "goods", "mean price", "share"]
    link = {"url": "/r/toy/tables/goods?shop=corner"}
    assert table["rows"][1] == [{"value": "corner", **link}, {"value": 2, **link}, 4.0, 2 / 3]
    assert charts["charts"][0]["rows"] == [[HOSTILE, 9], ["corner", 8]]
    assert sections["Made from"][0]["values"] == [
        {"name": "origin", "value": HOSTILE},
        {"name": "files", "value": None},
    ]
    assert sections["Each shop corner"][0]["rows"] == [[2]]
    shown = {section["title"]: section["blocks"] for section in client.get("/r/toy/measures.json").json()["sections"]}
    assert shown["Dear and cheap"][0]["columns"] == ["shop", "dear", "cheap"]
    assert shown["Dear and cheap"][0]["rows"] == [[HOSTILE, 1, None], ["corner", 1, 1]]
    assert shown["Names"][0]["rows"] == [
        [{"text": "red apple", "marked": [[0, 3]]}, {"text": "green apple", "marked": [[0, 5]]}]
    ]


@pytest.mark.usefixtures("known")
def test_its_laws_are_checked_and_a_release_without_rows_is_shown(tmp_path: Path) -> None:
    path = write_toy(tmp_path / "empty", [])
    assert verify(path, [TOY]).is_sound
    releases = open_releases([path])
    client = client_of(*releases)
    assert "No name changed." in client.get("/r/empty/measures").text
    assert client.get("/r/empty/").status_code == 200
    close_releases(releases)
    [found] = verify(write_toy(tmp_path / "odd", [["corner", "pear", -1, None]]), [TOY]).findings
    assert (found.rule, found.example) == ("negative_price", "pear")


def test_answers_are_bounded(toy: OpenRelease, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "MOST_ROWS", 1)
    monkeypatch.setattr(measures, "_LONGEST", 6)
    [section] = [shown_section for shown_section in about_view(toy) if shown_section.title == "Shops"]
    tables = [block for block in section.blocks if hasattr(block, "rows")]
    assert [row[0].value for row in tables[0].rows] == ["<scri…"]
    assert "There are more: these are the first 1 row" in str(section.blocks)


def test_the_measures_of_every_kind_run_on_a_release_without_rows(tmp_path: Path) -> None:
    for path in write_every_kind(tmp_path).values():
        releases = open_releases([str(path)])
        assert [*about_view(releases[0]), *measures_of(releases[0])]
        close_releases(releases)


def made_up(type_: pa.DataType, number: int) -> Any:
    """A value of a type: texts and numbers that differ by row, lists of one value."""
    if pa.types.is_struct(type_):
        return {field.name: made_up(field.type, number) for field in type_}
    if pa.types.is_list(type_):
        return [made_up(type_.value_type, number)]
    if pa.types.is_string(type_):
        return f"text {number}"
    if pa.types.is_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return b"x" * (type_.byte_width if pa.types.is_fixed_size_binary(type_) else 1)
    if pa.types.is_boolean(type_):
        return bool(number % 2)
    return number / 4 if pa.types.is_floating(type_) else number


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.measures], ids=lambda kind: kind.format)
def test_the_measures_of_every_kind_run_on_some_rows(kind: Kind[Any]) -> None:
    with connected() as db:
        for table, schemas in kind.declared.items():
            for name in (table, f"old.{table}"):
                rows = [{field.name: made_up(field.type, n) for field in schemas[-1]} for n in range(3)]
                db.register("rows", pa.Table.from_pylist(rows, schemas[-1]))
                places = "'f' as _file, '' as _part, 0 as _file_number, row_number() over () - 1 as _row"
                db.execute(f"create table {identifier(name)} as select *, {places} from rows")
        pages = pa.schema([field for field in PAGES_RELEASE.tables["pages"] if field.name in ("page_id", "infoboxes")])
        rows = [{field.name: made_up(field.type, n) for field in pages} for n in range(3)]
        db.register("of_pages", pa.Table.from_pylist(rows, pages))
        db.execute('create or replace table "old.pages" as from of_pages')
        for measure in kind.measures:
            for name, query in measure.derived.items():
                db.execute(f"create table if not exists {identifier(name)} as {query}")
            given = {"manifest": "{}"} if "$manifest" in measure.query else None
            names = [column[0] for column in db.execute(measure.query, given).description or ()]
            assert {*measure.links, *measure.shares, *measure.optional, *(measure.compared or ())} <= {*names}
            assert {measure.spread, measure.by} <= {*names, ""}
            for target in measure.links.values():
                needed = target.where.values() if isinstance(target, ToRows) else ()
                assert {*needed, *(("_file_number", "_row") if isinstance(target, ToRow) else ())} <= {*names}


def test_measures_are_left_out_where_a_table_is_missing(tmp_path: Path) -> None:
    made = write_every_kind(tmp_path)
    for form, path in made.items():
        releases = open_releases([str(path)])
        [release] = releases
        release.tables.clear()
        shown = str([*measures.measure_sections(release, "overview"), *measures.measure_sections(release, "measures")])
        for measure in release.kind.measures:
            if measure.needs and not measure.if_missing:
                assert measure.caption not in shown, form
        close_releases(releases)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.format for kind in KINDS])
def test_measures_are_in_order_and_need_what_they_read(kind: Kind[Any]) -> None:
    captions = [(measure.page, measure.heading, measure.caption) for measure in kind.measures]
    assert len({*captions}) == len(captions)
    for measure in kind.measures:
        assert measure.form != "table" or "order by" in measure.query, measure.caption
        for table in measure.needs:
            assert table in kind.declared or "." in table, measure.caption
        for target in measure.links.values():
            if isinstance(target, ToRows | ToRow):
                assert target.table in kind.declared, measure.caption
            if isinstance(target, ToRows):
                assert {*target.where} <= {*kind.declared[target.table][0].names}, measure.caption
    headings = [measure.heading for measure in kind.measures]
    assert len({*headings}) == len([at for at, heading in enumerate(headings) if headings[at - 1 : at] != [heading]])


def test_a_report_has_what_the_views_have(toy: OpenRelease) -> None:
    titles = [section.title for section in report_on([toy]).sections]
    assert titles[:2] == ["Sums", "Shops"]
    assert titles[-5:] == ["Names", "Dearest", "What it holds", "What it is and was made from", "Counts and options"]
    table = next(block for section in report_on([toy]).sections for block in section.blocks if hasattr(block, "rows"))
    assert not any(isinstance(cell, Share) for _, cell in table.rows)


def test_facts_without_a_problem_are_questions() -> None:
    [measure] = [spread_measure for spread_measure in FACTS.measures if spread_measure.spread]
    with connected() as db:
        db.execute(
            "create table facts as from (values ('stayed', null), ('stayed', null), ('disappeared', 'old_no_page'))"
        )
        db.execute("alter table facts rename col0 to outcome")
        db.execute("alter table facts rename col1 to problem")
        rows = db.execute(measure.query).fetchall()
    assert [row for row in rows if row[3]] == [
        ("stayed", 2, "question", 2, "-"),
        ("disappeared", 1, "old no page", 1, "old_no_page"),
    ]
    assert len(rows) == 4 * 2


def test_of_a_chart_with_shares_only_these_are_drawn() -> None:
    table = TableSection("Spans", ("bin", "share", "spans"), (("low", Share(0.25), 1), ("high", None, 3)))
    drawn = Chart(table=table, about="").to_json()
    assert (drawn["series"], drawn["rows"], drawn["isShare"]) == (["share"], [["low", 0.25], ["high", None]], True)
    plain = Chart(table=TableSection("Spans", ("bin", "spans"), (("low", 1),)), about="").to_json()
    assert (plain["series"], plain["rows"], plain["isShare"]) == (["spans"], [["low", 1]], False)


@pytest.mark.parametrize(
    ("columns", "row", "is_narrow"),
    [
        (("kind", "n"), ("text", 1), True),
        (("kind", "meaning"), ("text", "a meaning of so many words that half a page is too narrow"), False),
        (("kind", "a column whose name alone needs more than half a page"), ("text", 1), False),
        (("a", "b", "c", "d", "e", "f"), (1, 2, 3, 4, 5, 6), False),
    ],
)
def test_tables_of_few_short_columns_share_a_line(
    columns: tuple[str, ...], row: tuple[object, ...], is_narrow: bool
) -> None:
    assert TableSection("Some", columns, (row,)).is_narrow is is_narrow
