"""Indexes that are made in the background: once, whole, or not at all."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from kbsource.errors import DataError
from mapping.inspector.side_index import OnProgress, SideIndex, cache_folder


def _read(folder: str) -> str:
    return (Path(folder) / "made").read_text()


def _write(folder: str, on_progress: OnProgress) -> None:
    on_progress(1, 2)
    (Path(folder) / "made").write_text("done")


def test_an_index_is_made_in_the_background_and_kept(tmp_path: Path) -> None:
    started, may_end = Event(), Event()

    def make(folder: str, on_progress: OnProgress) -> None:
        _write(folder, on_progress)
        started.set()
        may_end.wait()

    index = SideIndex(tmp_path / "a" / "index", make, _read)
    assert index.get() is None
    started.wait()
    assert (index.get(), index.percent) == (None, 50)
    may_end.set()
    assert index.wait() == "done"

    def never(folder: str, on_progress: OnProgress) -> None:
        raise AssertionError("it was made before")

    assert SideIndex(tmp_path / "a" / "index", never, _read).get() == "done"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["index"]


def test_what_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    started = Event()

    def make(folder: str, on_progress: OnProgress) -> None:
        started.set()
        while True:
            on_progress(0, 1)

    index = SideIndex(tmp_path / "index", make, _read)
    index.get()
    started.wait()
    index.close()
    assert list(tmp_path.iterdir()) == []


def test_a_fault_is_kept_and_the_work_not_begun_again(tmp_path: Path) -> None:
    calls = []

    def make(folder: str, on_progress: OnProgress) -> None:
        calls.append(folder)
        raise DataError("damaged")

    index = SideIndex(tmp_path / "index", make, _read)
    assert (index.wait(), index.wait(), index.fault, len(calls)) == (None, None, "damaged", 1)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_lies_where_the_desktop_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder("ab") == tmp_path / "kbsource" / "inspector" / "ab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder("ab") == tmp_path / "home" / ".cache" / "kbsource" / "inspector" / "ab"
