"""The disk space that a folder takes while files in it come and go."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pipelines import disk_use
from pipelines.disk_use import folder_bytes, measured_disk_use


def test_a_file_that_is_removed_before_the_end_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    was_seen = threading.Event()

    def watched(folder: str) -> int:
        n_bytes = folder_bytes(folder)
        if n_bytes == 300:
            was_seen.set()
        return n_bytes

    monkeypatch.setattr(disk_use, "folder_bytes", watched)
    with measured_disk_use(str(tmp_path / "out")) as use:  # the folder is made later
        (tmp_path / "out" / "part").mkdir(parents=True)
        (tmp_path / "out" / "part" / "a").write_bytes(bytes(100))
        (tmp_path / "out" / "b").write_bytes(bytes(200))
        assert was_seen.wait(60)
        (tmp_path / "out" / "b").unlink()
    assert folder_bytes(str(tmp_path / "out")) == 100
    assert use.peak_bytes == 300


def test_what_is_there_at_the_end_counts_even_if_it_was_never_seen_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_use, "_LEAST_POLL_S", 3600)
    with measured_disk_use(str(tmp_path)) as use:
        (tmp_path / "a").write_bytes(bytes(100))
    assert use.peak_bytes == 100
