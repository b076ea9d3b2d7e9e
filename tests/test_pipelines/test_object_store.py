"""A build whose dump and release lie in an object store: Amazon's protocol, served by moto on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from pipelines.runners import pipeline_options
from pipelines.storage import BeamStorage
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.stores import get, put, s3_server

pytest.importorskip("boto3", reason="needs boto3: pip install 'kbsource[aws]'")
pytest.importorskip("moto.server", reason="needs pip install moto[s3] flask flask-cors")


@pytest.fixture
def flags() -> Iterator[list[str]]:
    """Flags of Beam for an object store with an empty bucket; nothing in the environment says where it is."""
    with s3_server() as flags:
        yield flags


@pytest.fixture
def store(flags: list[str]) -> BeamStorage:
    """The object store as the jobs see it."""
    pipeline_options(flags)
    return BeamStorage()


def test_the_storage_keeps_its_promises(store: BeamStorage) -> None:
    put(store, "s3://wiki/a/x", b"old")
    put(store, "s3://wiki/a/new", b"0123456789")

    assert store.size("s3://wiki/a/new") == 10
    with store.open_read("s3://wiki/a/new") as file:
        file.seek(4)
        assert (file.read(2), file.tell()) == (b"45", 6)
    with store.open_ranges("s3://wiki/a/new") as file:
        file.seek(7)
        assert (file.read(2), file.tell()) == (b"78", 9)
    put(store, "s3://wiki/a/empty", b"")
    assert (store.size("s3://wiki/a/empty"), get(store, "s3://wiki/a/empty")) == (0, b"")
    store.delete_tree("s3://wiki/a/empty")
    assert store.exists("s3://wiki/a")
    assert store.exists("s3://wiki/a/x")
    assert not store.exists("s3://wiki/b")
    assert store.glob("s3://wiki/a/*") == ["s3://wiki/a/new", "s3://wiki/a/x"]
    store.rename("s3://wiki/a/new", "s3://wiki/a/x")
    assert get(store, "s3://wiki/a/x") == b"0123456789"
    assert store.glob("s3://wiki/**") == ["s3://wiki/a/x"]
    store.delete_tree("s3://wiki/a")
    store.delete_tree("s3://wiki/a")
    assert store.glob("s3://wiki/**") == []
    with pytest.raises(FileNotFoundError):
        store.size("s3://wiki/a/x")


def test_a_build_from_and_to_the_store_has_the_bytes_of_a_local_one(
    store: BeamStorage, flags: list[str], release: Path
) -> None:
    dump, page_props = f"s3://wiki/dumps/{mini_wiki.MULTISTREAM.name}", f"s3://wiki/dumps/{mini_wiki.PAGE_PROPS.name}"
    put(store, dump, mini_wiki.MULTISTREAM.read_bytes())
    put(store, page_props, mini_wiki.PAGE_PROPS.read_bytes())
    options: dict[str, Any] = {"dump": dump, "page_props": page_props, "beam_args": flags}

    build_mini("s3://wiki/release", **options)

    written = {path.removeprefix("s3://wiki/release/"): get(store, path) for path in store.glob("s3://wiki/release/**")}
    assert written == contents(release)
    assert json.loads(written["manifest.json"])["inputs"][0]["name"] == mini_wiki.MULTISTREAM.name
    with pytest.raises(SetupError, match="never overwritten"):
        build_mini("s3://wiki/release", **options)
