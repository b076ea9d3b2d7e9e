"""Both storages keep the same promises, on local paths."""

from __future__ import annotations

import bz2
from pathlib import Path

import pytest

from kbsource.files import LocalStorage, Storage, atomic_write
from pipelines.storage import BeamStorage, storage_for


@pytest.fixture(params=[LocalStorage, BeamStorage], ids=["local", "beam"])
def storage(request: pytest.FixtureRequest) -> Storage:
    made: Storage = request.param()
    return made


def write(storage: Storage, path: Path, content: bytes) -> None:
    with storage.open_write(str(path)) as file:
        file.write(content)


def test_bytes_come_back_as_they_are_and_files_are_seekable(storage: Storage, tmp_path: Path) -> None:
    content = bz2.compress(b"text" * 1000)
    write(storage, tmp_path / "a" / "b" / "x.xml.bz2", content)

    with storage.open_read(str(tmp_path / "a" / "b" / "x.xml.bz2")) as file:
        assert file.read() == content
        file.seek(4)
        assert (file.read(2), file.tell()) == (content[4:6], 6)
    assert storage.size(str(tmp_path / "a" / "b" / "x.xml.bz2")) == len(content)


def test_exists_knows_files_and_folders(storage: Storage, tmp_path: Path) -> None:
    write(storage, tmp_path / "folder" / "x", b"x")

    assert storage.exists(str(tmp_path / "folder" / "x"))
    assert storage.exists(str(tmp_path / "folder"))
    assert not storage.exists(str(tmp_path / "other"))


def test_glob_gives_files_in_order_at_any_depth(storage: Storage, tmp_path: Path) -> None:
    for name in ("b", "a", "c/d"):
        write(storage, tmp_path / name, b"x")

    assert storage.glob(f"{tmp_path}/*") == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert storage.glob(f"{tmp_path}/**") == [f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/c/d"]
    assert storage.glob(f"{tmp_path}/z*") == []


def test_rename_replaces_the_target(storage: Storage, tmp_path: Path) -> None:
    write(storage, tmp_path / "new", b"new")
    write(storage, tmp_path / "old", b"old")

    storage.rename(str(tmp_path / "new"), str(tmp_path / "old"))

    assert (tmp_path / "old").read_bytes() == b"new"
    assert not (tmp_path / "new").exists()


def test_delete_tree_takes_files_and_folders_and_minds_nothing_missing(storage: Storage, tmp_path: Path) -> None:
    write(storage, tmp_path / "folder" / "deep" / "x", b"x")
    write(storage, tmp_path / "file", b"x")

    for name in ("folder", "file", "missing"):
        storage.delete_tree(str(tmp_path / name))

    assert list(tmp_path.rglob("*")) == []


def test_atomic_write_leaves_nothing_when_it_fails(storage: Storage, tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_write(storage, str(tmp_path / "x")) as file:
            file.write(b"half")
            raise ValueError

    with pytest.raises(ValueError):
        fail()

    assert list(tmp_path.iterdir()) == []


def test_beam_is_for_remote_paths_only() -> None:
    assert isinstance(storage_for("/data/x", "y"), LocalStorage)
    assert isinstance(storage_for("/data/x", "gs://bucket/y"), BeamStorage)
