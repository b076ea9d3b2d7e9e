from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from msgspec.structs import replace

from kbsource.errors import DataError, SetupError
from kbsource.lookup import KnowledgeSource
from kbsource.records import Page
from kbsource.release.pages import reading as reader
from tests.support.pages import synthetic_pages, title_of
from tests.support.releases import TitleRow, redirect_to, write_release

N_PAGES = 300
PAGES = list(synthetic_pages(N_PAGES, n_paragraphs=2))
TITLES = [
    *(TitleRow(page.page_id, page.title) for page in PAGES),
    TitleRow(5000, "1984"),
    redirect_to(5001, "First", title_of(0), fragment="Life"),
    redirect_to(5002, "Début", "First"),
    redirect_to(5003, "Gone", "Not there"),
    redirect_to(5004, "To a rejected one", "Rejected"),
    TitleRow(5005, "Rejected"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lookup")
    elements = (replace(PAGES[0].elements[0], text="1984"),)
    number_page = replace(PAGES[0], page_id=5000, title="1984", qid="Q5000", elements=elements, anchors=(), tables=())
    pages = [*PAGES, replace(number_page, infoboxes=())]
    write_release(folder, pages, titles=TITLES, rows_per_shard=140)
    return folder / "release"


@pytest.fixture
def source(folder: Path) -> Iterator[KnowledgeSource]:
    with KnowledgeSource.open(str(folder)) as source:
        yield source


def test_every_page_is_found_by_its_id(source: KnowledgeSource) -> None:
    for page in PAGES[1:]:
        assert source.by_id(page.page_id) == page
    assert source.by_id(2) is None


def test_iteration_gives_every_page_in_order(source: KnowledgeSource) -> None:
    found = list(source)
    assert [page.page_id for page in found] == [*(page.page_id for page in PAGES), 5000]
    assert found[1:-1] == PAGES[1:]
    assert len(source) == N_PAGES + 1


def test_a_page_by_its_name_or_why_there_is_none(source: KnowledgeSource) -> None:
    assert source["First"] == source[1] == source.by_id(1)
    for wanted, status in (("Gone", "missing_target"), ("Rejected", "not_released"), (2, "unknown")):
        with pytest.raises(KeyError, match=status):
            source[wanted]
    assert repr(source) == "<KnowledgeSource enwiki 20190801: 301 pages>"
    assert source[1].timestamp == datetime(2019, 7, 1, 20, 0, 53, tzinfo=UTC)


def test_pages_may_have_some_columns_and_be_of_some_files(source: KnowledgeSource) -> None:
    found = list(source.pages(columns=["page_id", "title"], files=[1]))
    assert [(page.page_id, page.title) for page in found] == [(p.page_id, p.title) for p in source][140:]
    assert not hasattr(found[0], "elements")
    own = source.pages(columns=["page_id", "qid"], where=pc.field("qid") == "Q1007")
    assert [page.page_id for page in own] == [22]
    with pytest.raises(SetupError, match="columns is empty"):
        source.pages(columns=[])


def test_tables_come_as_batches_as_arrow_and_as_polars(source: KnowledgeSource) -> None:
    titles = [page.title for page in source]
    assert source.to_arrow(columns=["title"])["title"].to_pylist() == titles
    assert source.to_polars(columns=["title"])["title"].to_list() == titles
    assert sum(batch.num_rows for batch in source.batches("redirects")) == 4
    nothing = source.to_arrow(columns=["page_id"], where=pc.field("page_id") < 0)
    assert (nothing.num_rows, nothing.column_names) == (0, ["page_id"])


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ("pages", {"columns": ["text"]}, "pages has no column 'text'; it has page_id"),
        ("pages", {"files": [2]}, "pages has no file 2; its files are numbered 0 to 1"),
        (
            "pages",
            {"columns": ["title"], "where": pc.field("qid") == "Q1"},
            "not a condition on these columns of pages",
        ),
        ("items", {}, "no table 'items'; it has pages"),
    ],
)
def test_what_is_not_there_is_said_at_once(
    source: KnowledgeSource, table: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError, match=message):
        source.batches(table, **arguments)


@pytest.mark.parametrize(
    ("wanted", "page_id"),
    [
        (title_of(7), 22),
        ("article_7__of " + title_of(7).rsplit(" ", 1)[1], 22),
        ("first", 1),
        ("Début", 1),
        ("De\u0301but", 1),
        ("Gone", None),
        ("Unknown", None),
        ("Rejected", None),
    ],
)
def test_a_title_is_normalised_and_followed(source: KnowledgeSource, wanted: str, page_id: int | None) -> None:
    page = source.by_title(wanted)
    assert (page.page_id if page else None) == page_id


@pytest.mark.parametrize(
    ("url", "page_id"),
    [
        ("https://en.wikipedia.org/wiki/First#Work", 1),
        ("https://en.wikipedia.org/wiki/D%C3%A9but", 1),
        ("https://en.wikipedia.org/w/index.php?title=First&oldid=3", 1),
        ("https://en.wikipedia.org/?curid=22", 22),
        ("https://de.wikipedia.org/wiki/First", None),
        ("https://en.wikipedia.org/wiki/Unknown", None),
    ],
)
def test_an_address_leads_to_its_page(source: KnowledgeSource, url: str, page_id: int | None) -> None:
    page = source.by_url(url)
    assert (page.page_id if page else None) == page_id


@pytest.mark.parametrize(
    ("wanted", "by", "page_id", "fragment", "hops", "status"),
    [
        (22, "id", 22, None, 0, "article"),
        ("22", "id", 22, None, 0, "article"),
        ("1984", "title", 5000, None, 0, "article"),
        (2, "id", None, None, 0, "unknown"),
        (5005, "id", None, None, 0, "not_released"),
        ("Rejected", "title", None, None, 0, "not_released"),
        ("To a rejected one", "title", None, None, 1, "not_released"),
        ("début", "title", 1, "Life", 2, "double"),
        ("Gone", "title", None, None, 1, "missing_target"),
        ("https://en.wikipedia.org/wiki/First#Work", "url", 1, "Work", 1, "ok"),
        ("https://en.wikipedia.org/wiki/First", "url", 1, "Life", 1, "ok"),
    ],
)
def test_resolve_says_how(
    source: KnowledgeSource,
    wanted: int | str,
    by: str,
    page_id: int | None,
    fragment: str | None,
    hops: int,
    status: str,
) -> None:
    found = source.resolve(wanted)
    assert (found.by, found.page_id, found.fragment, found.hops, found.status) == (by, page_id, fragment, hops, status)
    page = source.get(wanted)
    assert (page.page_id if page else None) == page_id


def test_few_files_stay_open(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "OPEN_FILES", 1)
    monkeypatch.setattr(reader, "ROW_GROUPS", 1)
    with KnowledgeSource.open(str(folder)) as source:
        for page in [*PAGES[1::50], *PAGES[:0:-50]]:
            assert source.by_id(page.page_id) == page


@pytest.mark.parametrize("path", ["ftp://bucket/release", "/no/such/folder"])
def test_what_is_no_release_is_refused(path: str) -> None:
    with pytest.raises(SetupError, match=path):
        KnowledgeSource.open(path)


def test_a_file_that_is_another_ones_is_said_and_no_other_page_given(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "release")
    first, second = sorted((tmp_path / "release" / "pages").iterdir())[:2]
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)
    with KnowledgeSource.open(tmp_path / "release") as source, pytest.raises(DataError, match=r"pages-00000.*verify"):
        source.by_id(PAGES[1].page_id)


def test_a_damaged_file_is_said_in_words(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "release")
    first = min((tmp_path / "release" / "pages").iterdir())
    first.write_bytes(first.read_bytes()[:-9])
    with KnowledgeSource.open(tmp_path / "release") as source:
        with pytest.raises(DataError, match="kbsource verify"):
            source.by_id(PAGES[1].page_id)
        with pytest.raises(DataError, match="kbsource verify"):
            list(source)


@pytest.mark.parametrize("name", ["index/articles", "index/pages", "index/qids", "index/titles", "pages/pages"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(folder: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(folder, tmp_path / "release")
    file = min((tmp_path / "release").glob(f"{name}*"))
    file.unlink()
    os.mkfifo(file)

    def look() -> None:
        with KnowledgeSource.open(tmp_path / "release") as source:
            source.by_qid("Q5000")
            source.by_title("First")
            source.by_id(PAGES[0].page_id)

    with pytest.raises(SetupError, match=f"{file.name} is a pipe"):
        look()


def test_in_says_whether_a_page_is_there(source: KnowledgeSource) -> None:
    assert PAGES[1].page_id in source
    assert PAGES[1].title in source
    assert "First" in source
    assert "Rejected" not in source
    assert None not in source


def test_threads_may_share_a_source(source: KnowledgeSource, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "ROW_GROUPS", 1)
    wanted = [page.page_id for page in PAGES[1:]] * 3
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(source.by_id, wanted))
    assert [page.page_id if page else None for page in found] == wanted


def test_a_page_says_what_it_is_in_a_line_and_as_json_values(source: KnowledgeSource) -> None:
    page = source.by_id(PAGES[1].page_id)
    assert page is not None
    sizes = f"{len(page.elements)} elements, {len(page.anchors)} anchors"
    assert repr(page) == f"<Page {page.page_id} {page.title!r}: {sizes}>"
    assert page.text.split("\n")[0] == page.title
    value = json.loads(json.dumps(page.to_dict()))
    assert value["elements"][0]["kind"] == "title"
    assert value["anchors"][0]["target_title"] == page.anchors[0].target_title
    assert list(value) == list(Page.__struct_fields__)


def test_lookups_do_not_import_beam() -> None:
    code = "import sys, kbsource.lookup, kbsource.release.verify; sys.exit('apache_beam' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pages_that_link_to_a_page(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with KnowledgeSource.open(str(folder)) as source:
        wanted: dict[int, list[int]] = {page.page_id: [] for page in source}
        for page in source:
            for target in dict.fromkeys(anchor.target_page_id for anchor in page.anchors):
                if target in wanted:
                    wanted[target].append(page.page_id)
        assert any(wanted.values())
        assert {page_id: source.linking(page_id) for page_id in wanted} == {
            page_id: sorted(pages) for page_id, pages in wanted.items()
        }
        assert source.linking(2) == []
        (made,) = (tmp_path / "cache" / "kbsource" / "inspector").rglob("rows.parquet")
        assert made.parents[1].name == source.manifest.sha256
    written = made.stat().st_mtime_ns
    source.linking(1)  # opens what was made
    source.close()
    assert made.stat().st_mtime_ns == written
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_links_that_cannot_be_indexed_are_said(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with (
        KnowledgeSource.open(str(folder)) as source,
        pytest.raises(SetupError, match=r"the links of .* cannot be indexed: "),
    ):
        source.linking(1)
