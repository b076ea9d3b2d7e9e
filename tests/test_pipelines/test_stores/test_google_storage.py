"""A build whose dump and release lie in Google Cloud Storage, as an emulator shows it on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.lookup import KnowledgeSource
from pipelines.runners.presets import pipeline_options
from pipelines.stores.releases import open_release
from pipelines.stores.storage import BeamStorage
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.stores import get, put

pytest.importorskip("google.cloud.storage", reason="needs google-cloud-storage: pip install 'kbsource[gcp]'")
emulator = pytest.importorskip("gcp_storage_emulator.server", reason="needs pip install gcp-storage-emulator")

FLAGS = ["--no_auth", "--project=wiki"]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[BeamStorage]:
    """Google's storage with a bucket ``wiki``, as the jobs see it."""
    monkeypatch.setenv("KBSOURCE_BEAM_OPTIONS", "{}")  # to be restored afterwards
    server = emulator.create_server("127.0.0.1", 0, in_memory=True, default_bucket="wiki")
    server.start()
    try:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server._api._httpd.server_port}")
        pipeline_options(FLAGS)
        yield BeamStorage()
    finally:
        server.stop()


def test_the_storage_keeps_its_promises(store: BeamStorage) -> None:
    put(store, "gs://wiki/a/x", b"old")
    put(store, "gs://wiki/a/new", b"01")
    put(store, "gs://wiki/a/new", b"0123456789")
    put(store, "gs://wiki/a/b/y", b"y")
    put(store, "gs://wiki/empty", b"")

    assert store.size("gs://wiki/a/new") == 10
    with store.open_read("gs://wiki/a/new") as file:
        file.seek(4)
        assert (file.read(2), file.tell()) == (b"45", 6)
    with store.open_ranges("gs://wiki/a/new") as file:
        file.seek(7)
        assert (file.read(2), file.tell()) == (b"78", 9)
    assert (store.size("gs://wiki/empty"), get(store, "gs://wiki/empty")) == (0, b"")
    store.delete_tree("gs://wiki/empty")
    assert [store.exists(f"gs://wiki/{name}") for name in ("a", "a/x", "b")] == [True, True, False]
    assert store.glob("gs://wiki/a/*") == ["gs://wiki/a/new", "gs://wiki/a/x"]
    assert store.glob("gs://wiki/a/**") == ["gs://wiki/a/b/y", "gs://wiki/a/new", "gs://wiki/a/x"]
    store.rename("gs://wiki/a/new", "gs://wiki/a/x")
    assert get(store, "gs://wiki/a/x") == b"0123456789"
    for _ in range(2):
        store.delete_tree("gs://wiki/a")
    assert store.glob("gs://wiki/**") == []
    with pytest.raises(FileNotFoundError):
        store.size("gs://wiki/a/x")


def test_a_build_from_and_to_the_store_has_the_bytes_of_a_local_one(store: BeamStorage, release: Path) -> None:
    for path in (mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS):
        put(store, f"gs://wiki/dumps/{path.name}", path.read_bytes())
    options: dict[str, Any] = {
        "dump": "gs://wiki/dumps/miniwiki-*-multistream.xml.bz2",
        "page_props": f"gs://wiki/dumps/{mini_wiki.PAGE_PROPS.name}",
        "beam_args": FLAGS,
    }

    build_mini("gs://wiki/release", **options)

    written = {path.removeprefix("gs://wiki/release/"): get(store, path) for path in store.glob("gs://wiki/release/**")}
    assert written == contents(release)
    with open_release("gs://wiki/release") as remote, KnowledgeSource.open(release) as local:
        assert list(remote) == list(local)
        assert remote.by_id(33) == local.by_id(33)
    with pytest.raises(SetupError, match="never overwritten"):
        build_mini("gs://wiki/release", **options)
