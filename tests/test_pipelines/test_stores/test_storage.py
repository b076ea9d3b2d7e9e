"""Both storages keep the same promises, on local paths."""

from __future__ import annotations

import bz2
import socket
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import LocalStorage, Storage, atomic_write
from pipelines.stores import storage as storage_module
from pipelines.stores.storage import BeamStorage, storage_for, use_options


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


def test_ranges_are_read_as_they_are_stored(storage: Storage, tmp_path: Path) -> None:
    write(storage, tmp_path / "x", b"0123456789")

    with storage.open_ranges(str(tmp_path / "x")) as file:
        file.seek(-3, 2)
        assert (file.read(2), file.tell()) == (b"78", 9)


def test_atomic_write_leaves_nothing_when_it_fails(storage: Storage, tmp_path: Path) -> None:
    def fail() -> None:
        with atomic_write(storage, str(tmp_path / "x")) as file:
            file.write(b"half")
            raise ValueError

    with pytest.raises(ValueError):
        fail()

    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of the packages that look installed; none at first."""
    names: set[str] = set()
    monkeypatch.setattr(storage_module.importlib.util, "find_spec", lambda name: name if name in names else None)
    return names


def test_beam_is_for_remote_paths_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_module, "_check_file_system", lambda path: None)

    assert isinstance(storage_for("/data/x", "y"), LocalStorage)
    assert isinstance(storage_for("/data/x", "gs://bucket/y"), BeamStorage)


@pytest.mark.parametrize(("scheme", "extra"), [("gs", "gcp"), ("s3", "aws"), ("azfs", "azure"), ("hdfs", "hadoop")])
@pytest.mark.usefixtures("installed")
def test_a_file_system_that_is_not_installed_is_named_with_its_extra(scheme: str, extra: str) -> None:
    with pytest.raises(SetupError, match=rf"{scheme}://a/b: .*pip install 'kbsource\[{extra}\]'"):
        storage_for("/data/x", f"{scheme}://a/b")


def test_a_package_inside_one_that_is_missing_counts_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(storage_module._PACKAGES, "gs", ("no.such.package", "gcp"))

    with pytest.raises(SetupError, match=r"pip install 'kbsource\[gcp\]'"):
        storage_for("gs://bucket/y")


def test_a_scheme_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(SetupError, match=r"ftp:// is none of gs://, s3://, azfs://, hdfs://"):
        storage_for("ftp://a/b")


def test_hdfs_must_be_told_where_it_is_and_answer(installed: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    installed.add("hdfs")
    monkeypatch.setenv("KBSOURCE_BEAM_OPTIONS", "{}")
    with pytest.raises(SetupError, match=r"needs --hdfs_host, --hdfs_port, --hdfs_user, and --hdfs_full_urls"):
        storage_for("hdfs://node/x")

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    use_options({"hdfs_host": "127.0.0.1", "hdfs_port": str(port), "hdfs_user": "wiki"})
    with pytest.raises(SetupError, match=rf"No name node of HDFS answers at 127\.0\.0\.1:{port} .*--hdfs_port"):
        storage_for("hdfs://node/x")
