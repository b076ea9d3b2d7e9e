"""A folder keeps the same promises wherever it lies."""

from __future__ import annotations

import bz2
import io
import pickle
import socket
import threading
import uuid
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.files import Folder, glob, use_options
from kbsource.ranges import RangesFile
from kbsource.stores import store_of
from tests.support.fake_google import FakeGoogle
from tests.support.fake_hdfs import FakeHdfs
from tests.support.stores import contents_of, options_of_stores, s3_server


@pytest.fixture(scope="module")
def hdfs() -> Iterator[FakeHdfs]:
    """An empty HDFS."""
    with FakeHdfs() as hdfs:
        yield hdfs


@pytest.fixture(scope="module")
def stores(hdfs: FakeHdfs) -> Iterator[dict[str, str]]:
    """Folders in stores, by their schemes."""
    with (
        s3_server(),
        FakeGoogle() as google,
        options_of_stores({"google_base_url": google.url, "google_bearer_token": "any", "hdfs_user": "wiki"}),
    ):
        yield {"s3": "s3://wiki", "gs": "gs://wiki", "hdfs": f"hdfs://127.0.0.1:{hdfs.port}", "memory": "memory://x"}


@pytest.fixture(params=["local", "memory", "s3", "gs", "hdfs"])
def folder(request: pytest.FixtureRequest, stores: dict[str, str], tmp_path: Path) -> Folder:
    """An empty folder."""
    if request.param == "local":
        return Folder.of(tmp_path / "folder")
    return Folder.of(stores[request.param]) / uuid.uuid4().hex


def test_bytes_come_back_as_they_are_and_files_are_seekable(folder: Folder) -> None:
    content = bz2.compress(b"text" * 1000) * 1000
    folder.write(b"old", "a/b/x.xml.bz2")
    folder.write(content, "a/b/x.xml.bz2")

    assert folder.read("a/b/x.xml.bz2") == (folder / "a" / "b" / "x.xml.bz2").read() == content
    assert folder.size("a/b/x.xml.bz2") == len(content)
    for opened in (folder.open("a/b/x.xml.bz2"), folder.open_ranges("a/b/x.xml.bz2")):
        with opened as file:
            file.seek(4)
            assert (file.read(2), file.tell()) == (content[4:6], 6)
            file.seek(-3, io.SEEK_END)
            assert (file.read(9), file.read(9), file.tell()) == (content[-3:], b"", len(content))
    folder.write(b"", "empty")
    assert (folder.size("empty"), folder.read("empty"), folder.open("empty").read()) == (0, b"", b"")
    assert folder.sha256("empty").startswith("e3b0c442")


def test_files_and_folders_are_there_or_not(folder: Folder) -> None:
    folder.write(b"x", "a/x")

    assert [folder.exists(name) for name in ("a", "a/x", "a/", "b", "a/xx")] == [True, True, True, False, False]
    for read in (folder.size, folder.read, folder.open):
        with pytest.raises(FileNotFoundError):
            read("a/y")


def test_files_are_listed_in_order_at_any_depth(folder: Folder) -> None:
    for name in ("b", "a [1]", "c/d", "c/e/f-1.x", "c/e/f-2.x"):
        folder.write(b"x", name)

    assert folder.files() == ["a [1]", "b", "c/d", "c/e/f-1.x", "c/e/f-2.x"]
    assert folder.files("*") == ["a [1]", "b"]
    assert folder.files("c/e/f-[13].x") == ["c/e/f-1.x"]
    assert folder.files("**/*.x") == ["c/e/f-1.x", "c/e/f-2.x"]
    assert (folder / "c").files("**") == ["d", "e/f-1.x", "e/f-2.x"]
    assert folder.files("z*") == (folder / "nowhere").files() == (folder / "b").files("*") == []
    assert glob(f"{folder}/c/*") == [f"{folder}/c/d"]
    assert glob(f"{folder}/*/e/f-?.x") == [f"{folder}/c/e/f-1.x", f"{folder}/c/e/f-2.x"]
    assert (glob(f"{folder}/b"), glob(f"{folder}/z")) == ([f"{folder}/b"], [])


def test_moving_replaces_the_target(folder: Folder) -> None:
    folder.write(b"new", "new")
    folder.write(b"old", "old")

    folder.move("new", folder / "old")
    folder.move("old", folder / "deep" / "er")

    assert contents_of(str(folder)) == {"deep/er": b"new"}


def test_deleting_takes_files_and_folders_and_minds_nothing_missing(folder: Folder) -> None:
    for name in ("folder/deep/x", "file", "filed"):
        folder.write(b"x", name)

    for name in ("folder", "file", "missing", "folder"):
        folder.delete(name)

    assert folder.files() == ["filed"]


def test_what_fails_while_it_is_written_is_not_there(folder: Folder) -> None:
    folder.write(b"old", "x")

    def fail() -> None:
        with folder.create("x") as file:
            file.write(b"half")
            raise ValueError

    with pytest.raises(ValueError):
        fail()

    assert contents_of(str(folder)) == {"x": b"old"}


def test_json_comes_back(folder: Folder) -> None:
    folder.write_json({"b": [1], "a": None}, "x.json")

    assert folder.read("x.json") == b'{"a":null,"b":[1]}'
    assert folder.read_json("x.json") == {"a": None, "b": [1]}


def test_one_of_all_who_write_what_is_new_succeeds(folder: Folder) -> None:
    if folder.is_local:
        pytest.skip("local folders are locked by the system")
    tags: list[str | None] = []
    writers = [
        threading.Thread(target=lambda n=n: tags.append(folder.write_new(b"%d" % n, "x")))  # type: ignore[misc]
        for n in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    (tag,) = filter(None, tags)
    content, read = folder.read_tagged("x")
    assert read == tag
    assert content in [b"%d" % n for n in range(8)]
    newer = folder.replace(b"newer", tag, "x")
    assert newer is not None
    assert folder.replace(b"too late", tag, "x") is None
    assert folder.read_tagged("x") == (b"newer", newer)
    folder.delete("x")
    assert folder.replace(b"gone", newer, "x") is None


def test_a_folder_travels_without_its_connection(folder: Folder) -> None:
    folder.write(b"x", "x")

    assert pickle.loads(pickle.dumps(folder)) == folder  # noqa: S301
    assert pickle.loads(pickle.dumps(folder)).read("x") == b"x"  # noqa: S301
    assert "any" not in repr(folder)


def test_what_hdfs_refuses_is_not_taken_for_an_empty_folder(hdfs: FakeHdfs, stores: dict[str, str]) -> None:
    folder = Folder.of(stores["hdfs"])
    folder.write(b"x", "secret/x")
    hdfs.forbid("/secret")

    with pytest.raises(OSError, match="Permission denied"):
        (folder / "secret").files("*")


def test_files_of_a_web_server_are_read(tmp_path: Path) -> None:
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / "x.xml").write_bytes(b"0123456789")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            start, _, end = self.headers.get("Range", "bytes=0-9").removeprefix("bytes=").partition("-")
            content = b"0123456789"[int(start) : int(end) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{int(start) + len(content) - 1}/10")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        folder = Folder.of(f"http://127.0.0.1:{server.server_address[1]}/dumps")

        assert (folder.size("x.xml"), folder.exists("x.xml"), folder.exists("y")) == (10, True, False)
        with folder.open("x.xml") as file:
            file.seek(4)
            assert file.read() == b"456789"
        with pytest.raises(SetupError, match="cannot be listed; name files"):
            folder.files()
        server.shutdown()


def test_options_are_those_of_the_scheme_and_go_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBSOURCE_STORAGE", "{}")
    use_options({"aws_region": "r", "google_base_url": "g", "timeout": "9s"})

    assert Folder.of("s3://a/b/").options == (("aws_region", "r"), ("timeout", "9s"))
    assert (Folder.of("s3://a/b") / "c").options == Folder.of("s3://a/b").options
    assert Folder.of("s3://a", {}).options == Folder.of("a").options == ()
    with pytest.raises(SetupError, match=r"--storage region: .* begins with aws_, azure_, google_, hdfs_"):
        use_options({"region": "r"})
    with pytest.raises(SetupError, match=r"s3://wiki: .*aws_regoin.*Check --storage"):
        Folder.of("s3://wiki/x", {"aws_regoin": "r"}).read()
    with pytest.raises(SetupError, match=r"ftp://a/b: ftp:// is not one of s3://"):
        Folder.of("ftp://a/b")


def test_a_store_is_asked_once(stores: dict[str, str]) -> None:
    store_of.cache_clear()
    for name in ("a", "b"):
        (Folder.of(stores["s3"]) / name).exists()

    assert store_of.cache_info().misses == 1


def test_a_bucket_that_is_none_is_named(stores: dict[str, str]) -> None:
    for url, said in (("s3://none/x", "NoSuchBucket"), ("gs://none/x", "404")):
        with pytest.raises(SetupError, match=rf"{url[:9]} cannot be read or written .*{said}.*Check the bucket"):
            Folder.of(url).read()


def test_short_ranges_that_were_read_are_not_fetched_again() -> None:
    content = bytes(range(256))
    fetched = []

    def read_range(start: int, end: int) -> bytes:
        fetched.append((start, end))
        return content[start:end]

    file = io.BufferedReader(RangesFile(len(content), read_range, n_kept=2), 1)
    for start, n_bytes in ((10, 20), (12, 5), (20, 40), (100, 8), (25, 3), (200, 9), (10, 4)):
        file.seek(start)
        assert file.read(n_bytes) == content[start : start + n_bytes]
    assert fetched == [(10, 30), (30, 60), (100, 108), (25, 28), (200, 209), (10, 14)]


def test_a_socket_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the address of a socket is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("pages.parquet")
        with pytest.raises(SetupError, match=r"pages\.parquet is a socket; name a file"):
            Folder.of("pages.parquet").read()
