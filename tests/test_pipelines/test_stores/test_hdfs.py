"""A build and an alignment whose files lie in HDFS, as a name node of our own shows it on this machine."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import BUILDING
from pipelines.jobs.map_dataset import map_dataset
from pipelines.options.map import MapOptions
from pipelines.progress import Progress
from pipelines.runners.presets import beam_flags, pipeline_options
from pipelines.stores.releases import open_release
from pipelines.stores.storage import BeamStorage
from tests.support import mini_wiki
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import build_mini, contents
from tests.support.fake_hdfs import FakeHdfs
from tests.support.stores import get, put

pytest.importorskip("hdfs", reason="needs hdfs: pip install 'kbsource[hadoop]'")


@pytest.fixture
def hdfs() -> Iterator[FakeHdfs]:
    """An empty HDFS."""
    with FakeHdfs() as hdfs:
        yield hdfs


@pytest.fixture
def flags(hdfs: FakeHdfs, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Flags of Beam for it; nothing in the environment says where it is."""
    monkeypatch.setenv("KBSOURCE_BEAM_OPTIONS", "{}")  # to be restored afterwards
    return ["--hdfs_host=127.0.0.1", f"--hdfs_port={hdfs.port}", "--hdfs_user=wiki", "--hdfs_full_urls"]


@pytest.fixture
def store(flags: list[str]) -> BeamStorage:
    """HDFS as the jobs see it."""
    pipeline_options(flags)
    return BeamStorage()


def test_the_storage_keeps_its_promises(store: BeamStorage, hdfs: FakeHdfs) -> None:
    put(store, "hdfs://node/a/x", b"old")
    put(store, "hdfs://node/a/new", b"01")
    put(store, "hdfs://node/a/new", b"0123456789")
    put(store, "hdfs://node/a/b/c/y", b"y")
    put(store, "hdfs://node/a/empty", b"")
    hdfs.make_folders("/a/hollow")

    assert store.size("hdfs://node/a/new") == 10
    with store.open_read("hdfs://node/a/new") as file:
        file.seek(4)
        assert (file.read(2), file.tell()) == (b"45", 6)
    assert [store.exists(f"hdfs://node/a{rest}") for rest in ("", "/", "/x", "/b", "/z")] == [True] * 4 + [False]
    assert store.glob("hdfs://node/a/*") == [f"hdfs://node/a/{name}" for name in ("empty", "new", "x")]
    assert store.glob("hdfs://node/a/**") == [f"hdfs://node/a/{name}" for name in ("b/c/y", "empty", "new", "x")]
    assert store.glob("hdfs://node/a/*/c/[xy]") == ["hdfs://node/a/b/c/y"]
    assert store.glob("hdfs://node/z/**") == []
    assert store.glob("hdfs://node/a/x/*") == []
    store.rename("hdfs://node/a/new", "hdfs://node/a/x")
    store.rename("hdfs://node/a/x", "hdfs://node/d/e/x")
    assert get(store, "hdfs://node/d/e/x") == b"0123456789"
    for _ in range(2):
        store.delete_tree("hdfs://node/a")
    assert store.glob("hdfs://node/**") == ["hdfs://node/d/e/x"]
    assert not store.exists("hdfs://node/a")
    with pytest.raises(FileNotFoundError):
        store.size("hdfs://node/a/x")


def test_what_hdfs_refuses_is_not_taken_for_an_empty_folder(store: BeamStorage, hdfs: FakeHdfs) -> None:
    put(store, "hdfs://node/a/x", b"x")
    hdfs.forbid("/a")

    with pytest.raises(OSError, match="Permission denied"):
        store.glob("hdfs://node/a/*")


def test_a_build_from_and_to_hdfs_has_the_bytes_of_a_local_one(
    store: BeamStorage, hdfs: FakeHdfs, flags: list[str], release: Path
) -> None:
    folder = "hdfs://node/dumps"
    for path in (mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS):
        put(store, f"{folder}/{path.name}", path.read_bytes())
    options: dict[str, Any] = {
        "dump": f"{folder}/miniwiki-*-multistream.xml.bz2",
        "page_props": f"{folder}/{mini_wiki.PAGE_PROPS.name}",
        "beam_args": flags,
    }
    put(store, "hdfs://node/releases/mini/_staging/left/over.json", b"{}")
    put(store, f"hdfs://node/releases/mini/{BUILDING}", b"{}")  # so it was left by a build that was killed

    build_mini("hdfs://node/releases/mini", **options)

    below = "/releases/mini/"
    written = {path.removeprefix(below): content for path, content in hdfs.files.items() if path.startswith(below)}
    assert written == contents(release)
    with open_release("hdfs://node/releases/mini") as remote, KnowledgeSource.open(release) as local:
        assert list(remote) == list(local)
        assert remote.by_id(33) == local.by_id(33)
    with pytest.raises(SetupError, match="never overwritten"):
        build_mini("hdfs://node/releases/mini", **options)


def test_an_alignment_from_and_to_hdfs_has_the_bytes_of_a_local_one(
    store: BeamStorage, hdfs: FakeHdfs, flags: list[str], release: Path, tmp_path: Path
) -> None:
    text = "The Halvane Isles are an archipelago"
    titles = ("Halvane Isles", "Heron", "No such page")
    records = write_records(
        tmp_path / "records.jsonl",
        [record(str(number), [evidence(text, title=title)]) for number, title in enumerate(titles)],
    )
    put(store, "hdfs://node/records.jsonl", records.read_bytes())

    for output, path, beam_args in (
        (str(tmp_path / "local"), str(records), []),
        ("hdfs://node/aligned", "hdfs://node/records.jsonl", flags),
    ):
        options = MapOptions("jsonl", str(release), (path,), output, "dev", chunk_records=1)
        map_dataset(
            options,
            flags=beam_flags("local", workers=None, beam_args=beam_args),
            progress=Progress(io.StringIO()),
        )

    written = {path.removeprefix("/aligned/"): one for path, one in hdfs.files.items() if path.startswith("/aligned/")}
    assert written == contents(tmp_path / "local")
    assert len(written) > 2
