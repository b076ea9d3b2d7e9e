"""The tables of releases as views of DuckDB, local ones and those of a store."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.errors import DataError
from kbsource.release import queries
from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.release.queries import RefusedQueryError, run_query
from kbsource.release.sql import add_release, add_tables, connected, quoted
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


def test_every_file_is_looked_at_before_a_view_is_made_and_the_first_odd_one_named(
    release: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "release"
    names = [f"pages/pages-{number:05d}-of-00020.parquet" for number in range(20)]
    (folder / "pages").mkdir(parents=True)
    for name in names:
        shutil.copy(release / "pages" / "pages-00000-of-00002.parquet", folder / name)
    with connected(reads=[str(folder)]) as db:
        add_tables(db, PAGES_RELEASE.declared, {"pages": names}, str(folder))
        assert db.execute("select count(*) from pages").fetchall() == [(240,)]
        for odd in (17, 11):
            pq.write_table(pa.table({"page_id": [1]}), folder / names[odd])
        with pytest.raises(DataError, match=r"pages-00011-of-00020\.parquet has no column"):
            add_tables(db, PAGES_RELEASE.declared, {"pages": names}, str(folder), schema="other")
        assert db.execute("select count(*) from duckdb_views() where schema_name = 'other'").fetchall() == [(0,)]


def test_what_a_stranger_asks_reads_this_release_alone(release: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with connected(reads=[path]) as db:
        add_release(db, PAGES_RELEASE, path)
        assert run_query(db, "from pages select min(page_id)").fetchall() == [(1,)]
        for end in ("", ";", " ; -- all; of them", "; /* all; */ ", " -- all; of them"):
            found = run_query(db, f"select page_id, '; -- no end' as said from pages{end}")
            assert (len(found.limit(2).fetchall()), found.aggregate("count(*)").fetchall()) == (2, [(20,)])
        with pytest.raises(duckdb.PermissionException):
            run_query(db, f"select * from '{tmp_path}/secret.csv'")
        copied = f"copy pages to {quoted(f'{release}/x.csv')}"
        for query in ("select 1; select 2", copied, "set memory_limit = '9GB'", "drop view pages"):
            with pytest.raises(RefusedQueryError, match="one query"):
                run_query(db, query)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("with t as (copy (select 1) to '{release}/manifest.json') select 1", "contains COPY_QUERY_NODE"),
        ("from read_text('/etc/passwd')", "calls read_text()"),
        ("select nextval('s')", "calls nextval()"),
        ("from '{release}/manifest.json'", "would run the operator READ_JSON_AUTO"),
        ("select " + "+" * 30_000, "shorten it"),
        ("select * from (" * 1000 + "select 1" + ")" * 1000, "nested too deeply"),
    ],
)
def test_a_query_that_does_more_than_read_is_refused_by_name(release: Path, query: str, said: str) -> None:
    manifest = (release / "manifest.json").read_bytes()
    with connected(reads=[str(release)]) as db:
        add_release(db, PAGES_RELEASE, str(release))
        with pytest.raises(RefusedQueryError, match=re.escape(said)):
            run_query(db, query.format(release=str(release).replace("'", "''")))
    assert (release / "manifest.json").read_bytes() == manifest


def test_every_version_of_a_plan_is_checked(release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree alone does not decide: with its check away the plan shows the same."""
    monkeypatch.setattr(queries, "_check_tree", lambda *_: None)
    manifest = (release / "manifest.json").read_bytes()
    inner = str(release).replace("'", "''")
    with connected(reads=[str(release)]) as db:
        add_release(db, PAGES_RELEASE, str(release))
        for query, operator in (
            (f"with t as (copy (select 'gone') to '{inner}/manifest.json') select 1", "COPY_TO_FILE"),
            (f"from read_json('{inner}/manifest.json')", "READ_JSON"),
            ("from force_checkpoint()", "FORCE_CHECKPOINT"),
            ("from json_execute_serialized_sql(json_serialize_sql('select 42'))", "JSON_EXECUTE_SERIALIZED_SQL"),
        ):
            with pytest.raises(RefusedQueryError, match=f"would run the operator {operator}"):
                run_query(db, query)
    assert (release / "manifest.json").read_bytes() == manifest
