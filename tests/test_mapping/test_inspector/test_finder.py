"""Indexes made beside a release: in the background once, titles in their order."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kbsource.errors import DataError
from kbsource.index.title_index import TitleIndex
from kbsource.index.title_index_build import build_title_index
from kbsource.release.side_index import OnProgress, OrderedRows, SideIndex, cache_folder
from mapping.inspector.finder import folded_title, titles_beginning_with, write_title_order
from tests.support.dumps import flip
from tests.support.releases import TitleRow, redirect_to, title_batches


def _write(folder: str, on_progress: OnProgress) -> None:
    on_progress(1, 2)
    pq.write_table(pa.table({"key": ["done"]}), f"{folder}/rows.parquet")


def _said(index: SideIndex) -> list[str]:
    made = index.wait()
    assert made is not None
    return made.column("select key from rows")


def test_an_index_is_made_in_the_background_and_kept(tmp_path: Path) -> None:
    started, may_end = Event(), Event()

    def make(folder: str, on_progress: OnProgress) -> None:
        _write(folder, on_progress)
        started.set()
        may_end.wait()

    index = SideIndex(tmp_path / "a" / "index", make)
    assert index.get() is None
    started.wait()
    assert (index.get(), index.percent) == (None, 50)
    may_end.set()
    assert _said(index) == ["done"]

    def never(folder: str, on_progress: OnProgress) -> None:
        raise AssertionError("it was made before")

    made = SideIndex(tmp_path / "a" / "index", never)
    assert (_said(made), made.percent) == (["done"], 100)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["index"]


def test_what_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    started = Event()

    def make(folder: str, on_progress: OnProgress) -> None:
        started.set()
        while True:
            on_progress(0, 1)

    index = SideIndex(tmp_path / "index", make)
    index.get()
    started.wait()
    index.close()
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path

from mapping.inspector.finder import SideIndex


def make(folder, on_progress):
    Path(folder, "rows.parquet").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)


SideIndex(Path(sys.argv[1], "index"), make).wait()
"""


def test_what_a_killed_process_left_in_the_cache_is_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert list(tmp_path.rglob("rows.parquet"))
    assert _said(SideIndex(tmp_path / "index", _write)) == ["done"]
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_fault_is_kept_and_the_work_not_begun_again(tmp_path: Path) -> None:
    calls = []

    def make(folder: str, on_progress: OnProgress) -> None:
        calls.append(folder)
        raise DataError("damaged")

    index = SideIndex(tmp_path / "index", make)
    assert (index.wait(), index.wait(), index.fault, len(calls)) == (None, None, "damaged", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_is_damaged_is_a_fault_too(tmp_path: Path) -> None:
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1, and no more")

    def make(folder: str, on_progress: OnProgress) -> None:
        pq.read_table(tmp_path / "damaged.parquet")

    index = SideIndex(tmp_path / "index", make)
    assert index.wait() is None
    assert "A table has changed since it was written" in (index.fault or "")


def test_what_was_changed_since_it_was_made_is_made_again(tmp_path: Path) -> None:
    calls = []

    def make(folder: str, on_progress: OnProgress) -> None:
        calls.append(folder)
        pq.write_table(pa.table({"number": range(9)}), Path(folder) / "rows.parquet")

    for n_made in (1, 1):
        made = SideIndex(tmp_path / "index", make).wait()
        assert made is not None
        assert len(calls) == n_made
    file = tmp_path / "index" / "rows.parquet"
    file.write_bytes(flip(file.read_bytes(), 40))
    made = SideIndex(tmp_path / "index", make).wait()
    assert made is not None
    assert made.column("select number from rows order by 1") == list(range(9))
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_the_cache_lies_where_the_desktop_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("ab") == tmp_path / "kbsource" / "inspector" / "ab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder("ab") == tmp_path / "home" / ".cache" / "kbsource" / "inspector" / "ab"


TITLES = [
    "Zürich",
    "Zurich (district)",
    "zürn",
    "List of rivers",
    "List of rivers of Łódź",
    "List of roads",
    "北京",
    "北",
    "A",
    "Ärger",
    "ﬁsh",
    "Q" * 300,
]


@pytest.fixture(scope="module")
def find(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], list[str]]:
    folder: Path = tmp_path_factory.mktemp("titles")
    rows = [TitleRow(number, title) for number, title in enumerate(TITLES, start=1)]
    rows += [redirect_to(50, "ZÜRICHSEE", "Zürich"), redirect_to(51, "Zur gone", "nowhere")]
    build_title_index(title_batches(rows), str(folder), scratch=str(folder / "scratch"))
    index = TitleIndex.open(str(folder))
    seen: list[tuple[int, int]] = []
    write_title_order(index, str(folder), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (14, 14)
    order = OrderedRows(str(folder))
    return lambda typed, n: [index.title_at(number) for number in titles_beginning_with(order, typed, n)]


@pytest.mark.parametrize(
    "typed",
    [
        "z",
        "ZUR",
        "zürich",
        "zurichs",
        "list of r",
        "list of rivers o",
        "北",
        "a",
        "ar",
        "fi",
        "q" * 299,
        "q" * 301,
        "nothing",
        "\U0010ffff",
    ],
)
def test_what_begins_so_is_found_in_order(find: Callable[[str, int], list[str]], typed: str) -> None:
    expected = sorted(
        (title for title in [*TITLES, "ZÜRICHSEE"] if folded_title(title).startswith(folded_title(typed))),
        key=folded_title,
    )
    assert find(typed, 99) == expected
    assert find(typed, 1) == expected[:1]
