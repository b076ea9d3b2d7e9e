"""Hashes that are worked out while the files are read."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import MagicMock

import pytest

import pipelines.jobs.wikidata as job
from kbsource.errors import DataError
from kbsource.files import LocalStorage
from kbsource.release.manifest import InputFile
from pipelines.input_hashes import InputHashes
from pipelines.progress import Done
from pipelines.stages import Stages
from tests.support.entities import array, item, make


class _Slow(LocalStorage):
    """Files of which nothing can be read before ``opened`` is set."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def open_read(self, path: str) -> BinaryIO:
        self.opened.wait()
        return super().open_read(path)


def test_hashes_are_those_of_the_files_in_their_order(tmp_path: Path) -> None:
    contents = {"b": os.urandom(300_001), "a": b""}
    paths = []
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        paths.append(str(tmp_path / name))
    storage = _Slow()
    with InputHashes(paths, storage) as hashes:
        assert hashes.done() == Done(0, 300_001)
        storage.opened.set()
        assert hashes.results() == tuple(
            InputFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()
        )
        assert hashes.done() == Done(300_001, 300_001)


class _Endless(LocalStorage):
    """Files that give a million bytes one by one, whatever their size."""

    def __init__(self) -> None:
        self.is_read = threading.Event()
        self._left = 1_000_000

    def open_read(self, path: str) -> BinaryIO:
        file = MagicMock()
        file.__enter__.return_value.read.side_effect = self._read
        return file

    def _read(self, count: int) -> bytes:
        self.is_read.set()
        self._left -= 1
        return bytes(self._left > 0)


def test_whoever_leaves_early_does_not_wait_for_the_hashes(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    storage = _Endless()
    hashes = InputHashes([str(tmp_path / "a")], storage)

    def leave() -> None:
        with hashes:
            storage.is_read.wait()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        leave()
    assert 0 < hashes.done().n_bytes < 999_999


def _grow(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def _touch(path: Path) -> None:
    content, times = path.read_bytes(), path.stat()
    path.write_bytes(content.replace(b"Q1", b"Q3"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns + 1))


def _replace(path: Path) -> None:
    times = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"Q1", b"Q3"))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.rename(path)


@pytest.mark.parametrize("change", [_grow, _touch, _replace])
def test_a_file_that_changes_while_it_is_read_makes_no_release(
    change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = tmp_path / "dump.json"
    dump.write_bytes(array([item("Q1"), item("Q2")]))

    class Meddled(Stages):
        def run(self, *args: Any) -> Any:
            found = super().run(*args)
            change(dump)
            return found

    with monkeypatch.context() as patch:
        patch.setattr(job, "Stages", Meddled)
        with pytest.raises(DataError, match=r"dump\.json changed while it was read"):
            make(dump, output=tmp_path / "release")
    assert not (tmp_path / "release" / "manifest.json").exists()
    (found,) = make(dump, output=tmp_path / "release").manifest.inputs
    assert found == InputFile(dump.name, dump.stat().st_size, hashlib.sha256(dump.read_bytes()).hexdigest())
