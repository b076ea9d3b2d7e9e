"""Queries that somebody types: they see one release, change nothing, and end."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from kbsource.errors import RecordError
from kbsource.runtime.confinement import Confinement, landlock_version
from kbsource.runtime.guard import Guard
from mapping.inspector import sandbox
from mapping.inspector.app import inspector_app
from mapping.inspector.opened import OpenRelease
from mapping.inspector.sandbox import MOST_QUERIES, MOST_ROWS, Answer, Limits, QueriedRelease, Running, Sandbox
from tests.support.browser import served
from tests.support.inspected import N_PAGES

ROOT = Path(__file__).parents[3]

SECRET = "nobody may read this"


@pytest.fixture(scope="module")
def box(opened: OpenRelease) -> Iterator[Sandbox]:
    made = Sandbox([opened.path])
    yield made
    made.close()


def submit(box: Sandbox, opened: OpenRelease, query: str, *, name: str = "") -> Running:
    tables = {name: table.files for name, table in opened.tables.items()}
    return box.submit(query, [QueriedRelease(opened.path, tables)], name=name)


def ask(box: Sandbox, opened: OpenRelease, query: str) -> Answer:
    return submit(box, opened, query).answer.result()


def contents(folder: str) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_a_query_is_answered(box: Sandbox, opened: OpenRelease) -> None:
    found = ask(box, opened, "select title, len(elements) as n, [1, 2] as l from pages order by page_id limit 2;")
    assert (found.columns, found.fault, found.is_cut) == (["title", "n", "l"], None, False)
    assert [len(found.rows), found.rows[0][2]] == [2, [1, 2]]
    assert ask(box, opened, "from pages select count(*)").rows == [[60]]
    assert ask(box, opened, "with p as (from pages) select count(*) from p, redirects").rows == [[60]]


def test_more_rows_than_are_shown_are_cut_and_that_is_said(box: Sandbox, opened: OpenRelease) -> None:
    found = ask(box, opened, "select * from range(100000)")
    assert (len(found.rows), found.is_cut) == (MOST_ROWS, True)
    assert len(ask(box, opened, "select repeat('x', 100000)").rows[0][0]) < 3000


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{secret}')",
        "select * from read_csv('{secret}')",
        "select * from read_blob('{secret}')",
        "select * from '{secret}'",
        "from '{secret}.parquet'",
        "select * from glob('{folder}/*')",
        "select * from read_parquet('https://example.org/x.parquet')",
        "select getenv('HOME')",
        "select * from query('from read_text(''{secret}'')')",
        "select * from parquet_scan('{release}/../*')",
        "attach '{folder}/x.duckdb'",
        "copy pages to '{folder}/x.csv'",
        "copy (select 1) to '{release}/x.csv'",
        "copy (select 1 as page_id) to '{page}' (format parquet)",
        "export database '{folder}/x'",
        "create table t as select 1",
        "create view pages as select 1",
        "drop view pages",
        "insert into pages select * from pages",
        "install httpfs",
        "load httpfs",
        "set memory_limit = '100GB'",
        "set enable_external_access = true",
        "reset lock_configuration",
        "pragma enable_profiling",
        "call force_checkpoint()",
        "select 1; select 2",
        "explain analyze copy (select 1) to '{folder}/x'",
        "select * from pages where",
        "",
        "VALUES ((((",
        "select '\x00'",
        "with t as (copy (select 'gone') to '{release}/manifest.json') select 1",
        "with t as materialized (copy (select 'gone') to '{release}/manifest.json') select * from t",
        "with t as (copy (select 'gone') to '{release}/manifest.json') select 1 union all select 2",
        "with t as (copy (select 1 as page_id) to '{page}' (format parquet)) from pages",
        "with t as (copy (select 1) to '{release}/x' (format csv, per_thread_output true)) select 1",
        "with recursive t as (copy (select 1) to '{release}/x.csv') select 1",
        "with t as (with u as (copy (select 1) to '{release}/x.csv') select 1) from t",
        "select (with t as (copy (select 1) to '{release}/x.csv') select 1)",
        "select 1 where false and exists (with t as (copy (select 1) to '{release}/x.csv') select 1)",
        "from (describe with t as (copy (select 1) to '{release}/x.csv') select 1)",
        "summarize with t as (copy (select 1) to '{release}/x.csv') select 1",
        "from query('with t as (copy (select 1) to ''{release}/x.csv'') select 1')",
        "from query_table('pages')",
        "from histogram('{page}', page_id)",
        "from histogram_values('{secret}', page_id)",
        "with t as (insert into pages select * from pages returning *) from t",
        "with t as (update pages set title = '') select 1",
        "with t as (delete from pages) select 1",
        "with t as (attach '{release}/x.duckdb') select 1",
        "from '{release}/manifest.json'",
        "from '{page}'",
        "from read_parquet('{page}')",
        "from parquet_kv_metadata('{page}')",
        "from glob('{release}/*')",
        "from sniff_csv('{release}/manifest.json')",
        "from enable_logging(storage = 'file', storage_path = '{release}/log')",
        "from enable_profiling(save_location = '{release}/profile.json')",
        "from force_checkpoint()",
        "from checkpoint()",
        "from json_execute_serialized_sql(json_serialize_sql('select 42'))",
        "from arrow_scan(1, 2, 3)",
        "from pandas_scan(1)",
        "from duckdb_secrets()",
        "from duckdb_settings()",
        "from task",
        "from db",
        "select nextval('s')",
        "select write_log('x')",
        "select \"Write_Log\"('x')",
        "select system.main.sleep_ms(20000)",
        "select setseed(0.5)",
        "select pg_sleep(20)",  # a macro that calls sleep_ms
        "select '\ud800'",
        "update extensions",
        "explain select 1",
        "explain analyze select 1",
        "prepare p as select 1",
        "execute p",
        "begin",
        "set variable x = 1",
        "use memory",
        "vacuum",
        "(format json) select 1",
        "select * from (" * 2000 + "select 1" + ")" * 2000,
        "select 1 -- " + "x" * 20_000,
    ],
)
def test_nothing_else_is_read_written_or_changed(box: Sandbox, opened: OpenRelease, tmp_path: Path, query: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    page = f"{opened.path}/{opened.tables['pages'].files[0]}"
    before = contents(opened.path)
    found = ask(box, opened, query.format(secret=secret, folder=tmp_path, release=opened.path, page=page))
    assert found.fault
    assert not found.rows
    assert SECRET not in found.fault
    assert contents(opened.path) == before
    assert list(tmp_path.iterdir()) == [secret]


def test_the_release_is_still_read_after_them(box: Sandbox, opened: OpenRelease) -> None:
    assert ask(box, opened, "select count(*) from pages").rows == [[60]]


@pytest.mark.parametrize(
    "query",
    [
        "select len(range(2000000000))",  # no function asks whether it was interrupted
        "select sum(len(x)) from (select list(range) as x from range(2000000000))",
        "select string_agg(repeat('x', 100000), '') from range(1000000)",
        "select length(repeat('a', 4000000000))",
    ],
)
def test_what_eats_memory_is_stopped(box: Sandbox, opened: OpenRelease, query: str) -> None:
    assert ask(box, opened, query).fault
    assert ask(box, opened, "select 1").rows == [[1]]


@pytest.mark.slow
def test_what_does_not_end_is_ended(opened: OpenRelease) -> None:
    box, begun = Sandbox([opened.path], Limits(longest_s=6.0)), time.monotonic()
    found = ask(
        box, opened, "select count(*) from range(1000000000) a, range(1000000) b where a.range * b.range % 7 = 9"
    )
    assert found.fault == "Stopped: it took more than 6 s."
    assert time.monotonic() - begun < 60
    after = ask(box, opened, "select 1")
    assert (after.fault, after.rows) == (None, [[1]])
    box.close()


FOREVER = "select count(*) from range(1000000000) a, range(1000000) b where a.range * b.range % 7 = 9"


def test_queries_that_read_are_answered_whatever_they_are_made_of(box: Sandbox, opened: OpenRelease) -> None:
    queries = (
        "from pages where title like 'P%' using sample 3",
        "select title, count(*) over (partition by title) from pages order by 1 limit 3",
        "from pages a join redirects b on a.title = b.title",
        "from pages a left join pages b on a.page_id between b.page_id and b.page_id + 1",
        "select title from pages p where exists (from redirects r where r.title <> p.title)",
        "select p.title, l.n from pages p, lateral (select count(*) as n from pages q where q.page_id < p.page_id) l",
        "with recursive t as (select 1 as a union all select a + 1 from t where a < 5) from t",
        "select title from pages intersect from (select title from pages) except select 'x'",
        "select e.kind, count(*) from (select unnest(elements) as e from pages) group by rollup (1)",
        "pivot pages on is_disambiguation in (true, false) using count(*)",
        "from histogram(pages, page_id)",
        "select * from pages, json_each('[1, 2]')",
        "describe pages",
        "summarize pages",
        "show tables",
        "values (1), (2)",
        "from information_schema.columns",
        "select random(), uuid(), 'copy (select 1) to x'",
    )
    faults = {query: found.fault for query in queries if (found := ask(box, opened, query)).fault}
    assert not faults


def test_its_process_writes_nothing_but_its_spill(opened: OpenRelease, tmp_path: Path) -> None:
    """Also where the check of queries had a gap: what the process itself tries is refused by the kernel."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    confinement = Confinement(
        writes=(str(scratch),), reads=(opened.path,), has_network=False, largest_file_bytes=1_000_000
    )
    tried = {"release": opened.path, "scratch": str(scratch), "other": str(tmp_path)}
    with Guard(
        "tests.support.confined_work:attack", beat_path=str(tmp_path / "beat"), confinement=confinement
    ) as guard:
        succeeded = guard.run(tried)
    assert "write a large file to the scratch folder" not in succeeded
    if landlock_version() < 4:
        pytest.skip("the kernel has no Landlock, or an old one")
    assert succeeded == ["write to the scratch folder", "read the release"]


def test_its_process_reads_the_package_wherever_it_is_installed(tmp_path: Path) -> None:
    """An editable installation has the package in a folder that is not in the path of modules."""
    program = (
        "import sys, os\n"
        "from importlib import resources\n"
        "from kbsource.runtime.confinement import Confinement, forbid_reading\n"
        "import kbsource\n"
        "root = os.path.dirname(os.path.dirname(kbsource.__file__))\n"
        "sys.path[:] = [path for path in sys.path if os.path.realpath(path) != os.path.realpath(root)]\n"
        "forbid_reading(Confinement(writes=(), reads=(), has_network=False, largest_file_bytes=None))\n"
        "print(len(resources.files('kbsource').joinpath('macros.sql').read_text()))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert int(ran.stdout) > 0


@pytest.mark.slow
def test_spills_are_bounded_and_removed(opened: OpenRelease) -> None:
    box = Sandbox([opened.path], Limits(longest_s=6.0))
    large = "select count(*) from (select hash(range) h, repeat('x', 200) t from range(100000000) order by h)"
    running = submit(box, opened, large)
    folder, most = Path(box.scratch), 0
    while not running.answer.done():
        most = max(most, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
        time.sleep(0.02)
    assert running.answer.result().fault
    assert 0 < most < 1.2 * sandbox.SPILL_MB * 10**6
    assert [file for file in folder.rglob("*") if file.is_file() and file.name != "beat"] == [folder / "lock"]
    box.close()
    assert not folder.exists()


def test_a_query_is_stopped_and_no_more_wait_than_may(opened: OpenRelease) -> None:
    box = Sandbox([opened.path])
    running = [submit(box, opened, FOREVER, name=str(number)) for number in range(MOST_QUERIES)]
    with pytest.raises(RecordError, match="busy"):
        submit(box, opened, "select 1")
    begun = time.monotonic()
    for number, running_query in enumerate(running):
        box.stop(str(number))
        assert running_query.answer.cancelled() or running_query.answer.result(5).fault == "Stopped."
    assert time.monotonic() - begun < 5
    box.stop("0")
    after = ask(box, opened, "select 1")
    assert (after.fault, after.rows) == (None, [[1]])
    box.close()


def run(client: TestClient, query: str, **fields: str) -> httpx.Response:
    """Presses the button of the page."""
    text = client.get("/r/release/sql").text
    own = dict(re.findall(r'name="(token|run)" value="([^"]+)"', text))
    return client.post("/r/release/sql", data={**own, "query": query, **fields})


def test_the_view_shows_the_answer_with_links_and_faults_as_text(client: TestClient) -> None:
    text = run(client, "select page_id, title from pages limit 1").text
    assert "1 row" in text
    assert '<a href="/r/release/page/1">1</a>' in text
    hostile = run(client, "select '<img src=x>' as \"<b>\"").text
    assert "&lt;img src=x&gt;" in hostile
    assert "<img" not in hostile
    assert 'role="alert"' in run(client, "select <script>").text
    assert "<script>" not in run(client, "select <script>").text
    assert "syntax error" in run(client, "VALUES ((((").text
    assert 'role="alert"' not in client.get("/r/release/sql").text
    assert 'role="alert"' not in run(client, " ").text


def test_the_view_has_macros_meanings_and_queries_to_start_from(client: TestClient) -> None:
    text = client.get("/r/release/sql").text
    assert "<code>kb_category(category)</code></dt><dd>Pages of a category" in text
    assert "<dd>page id of the redirect; null if a snapshot of HTML states only its title</dd>" in text
    (first, *_) = re.findall(r'<a href="(/r/release/sql\?query=[^"]+)">text of a page</a>', text)
    assert "from kb_text() where title = (select min(title) from pages)</textarea>" in client.get(first).text
    assert "1 row" in run(client, "select count(*) from kb_text()").text


def test_all_rows_are_downloaded_in_every_form(client: TestClient) -> None:
    query = "select page_id, title from pages order by page_id"
    for form, first in (("csv", b"page_id,title\n1,"), ("json", b'[\n{"page_id":1,'), ("jsonl", b'{"page_id":1,')):
        answer = run(client, query, format=form)
        assert answer.headers["content-disposition"] == f'attachment; filename="release-query.{form}"'
        assert answer.content.startswith(first)
    answer = run(client, query, format="parquet")
    assert pq.read_table(io.BytesIO(answer.content)).num_rows == N_PAGES
    assert 'role="alert"' in run(client, "from nowhere", format="csv").text
    assert "1 row" in run(client, "select 1", format="unknown").text


def test_an_address_fills_a_query_in_and_does_not_run_it(client: TestClient) -> None:
    text = client.get("/r/release/sql", params={"query": "select 6 * 7 as answer"}).text
    assert "select 6 * 7 as answer</textarea>" in text
    assert 'role="status"' not in text
    assert 'aria-label="Answer"' not in text


@pytest.mark.parametrize("address", ["/r/release/sql", "/r/release/sql/stop"])
def test_a_query_is_run_for_the_inspectors_own_page_only(client: TestClient, address: str) -> None:
    assert client.post(address, data={"query": "select 1"}).status_code == 403
    assert client.post(address, data={"query": "select 1", "token": "x"}).status_code == 403
    assert client.post(address, data={"query": "x" * 1_100_000}).status_code == 413
    assert client.post(address, content=b"query=%ff\xff").status_code == 400


def test_the_stop_button_stops_nothing_of_another_page(client: TestClient) -> None:
    text = client.get("/r/release/sql").text
    own = dict(re.findall(r'name="(token|run)" value="([^"]+)"', text))
    stopped = client.post("/r/release/sql/stop", data={**own, "query": "select 1"})
    assert stopped.status_code == 200
    assert "no query of this page runs" in stopped.text


@pytest.mark.slow
def test_other_views_answer_while_queries_run(opened: OpenRelease) -> None:
    """Eight at once: as many run or wait as may, the others are told so, and one that is left is stopped."""
    with served(inspector_app([opened])) as url, ThreadPoolExecutor(8) as threads:
        text = httpx.get(f"{url}/r/release/sql").text
        own = dict(re.findall(r'name="(token)" value="([^"]+)"', text))

        def ask_forever(number: int) -> int:
            form = {**own, "query": FOREVER, "run": str(number)}
            try:
                return httpx.post(f"{url}/r/release/sql", data=form, timeout=6).status_code
            except httpx.ReadTimeout:
                return 0

        assert httpx.get(f"{url}/r/release/").status_code == 200
        asked = [threads.submit(ask_forever, number) for number in range(8)]
        slowest = 0.0
        while not all(query.done() for query in asked):
            begun = time.monotonic()
            assert httpx.get(f"{url}/r/release/").status_code == 200
            slowest = max(slowest, time.monotonic() - begun)
        assert sorted(query.result() for query in asked) == [0] * MOST_QUERIES + [503] * (8 - MOST_QUERIES)
        assert slowest < 4
        begun = time.monotonic()
        form = {**own, "query": "select 6 * 7 as answer", "run": "9"}
        while (answer := httpx.post(f"{url}/r/release/sql", data=form, timeout=20)).status_code == 503:
            assert time.monotonic() - begun < 20
        assert "42" in answer.text
        assert time.monotonic() - begun < 20
