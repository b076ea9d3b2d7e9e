"""The tables of releases as views of DuckDB, local ones and those of a store."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.sql import add_release, add_tables, asked, connected, quoted
from tests.support.pages import synthetic_pages, title_of
from tests.support.releases import TitleRow, write_release
from tests.support.stores import put_folder

TITLES = [TitleRow(1 + 3 * number, title_of(number)) for number in range(20)]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("it's ours")
    write_release(folder, synthetic_pages(20), titles=TITLES, rows_per_shard=12)
    return folder / "release"


@pytest.fixture(params=["local", "memory"])
def path(request: pytest.FixtureRequest, release: Path) -> str:
    """The release on the disk, and in a store."""
    return str(release) if request.param == "local" else put_folder("memory://it's ours/release", release)


def test_every_table_is_a_view_and_a_row_knows_its_place(path: str) -> None:
    with connected(reads=[path], memory_mb=200, threads=1) as db:
        add_release(db, PAGES_RELEASE, path)
        add_release(db, PAGES_RELEASE, path, schema="new", places=True)
        add_tables(db, PAGES_RELEASE.declared, {"page_items": []}, path, schema="new")
        assert [name for name, *_ in db.execute("describe pages").fetchall()] == PAGES_RELEASE.tables["pages"].names
        places = "select count(*), count(distinct _file), max(_row), max(_part) from new.pages"
        assert db.execute(places).fetchall() == [(20, 2, 11, "")]
        shared = "select count(*) from pages join new.pages as other using (page_id) anti join new.page_items on true"
        assert db.execute(shared).fetchall() == [(20,)]


def test_what_a_stranger_asks_reads_this_release_alone(release: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with connected(reads=[path]) as db:
        add_release(db, PAGES_RELEASE, path)
        assert asked(db, "from pages select min(page_id)").fetchall() == [(1,)]
        for query in (f"select * from '{tmp_path}/secret.csv'", "select * from read_text('/etc/passwd')"):
            with pytest.raises(duckdb.PermissionException):
                asked(db, query)
        copied = f"copy pages to {quoted(f'{release}/x.csv')}"
        for query in ("select 1; select 2", copied, "set memory_limit = '9GB'", "drop view pages"):
            with pytest.raises(ValueError, match="one query"):
                asked(db, query)
