"""A build and an alignment whose files lie in HDFS, as a name node of our own shows it on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.lookup import KnowledgeSource
from kbsource.release.layout import BUILDING
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.fake_hdfs import FakeHdfs
from tests.support.stores import options_of_stores, put

pytestmark = pytest.mark.slow

pytest.importorskip("hdfs", reason="needs hdfs: pip install 'kbsource[hadoop]'")


@pytest.fixture
def hdfs() -> Iterator[FakeHdfs]:
    """An empty HDFS, whose options say where it is."""
    options = {"hdfs_host": "127.0.0.1", "hdfs_user": "wiki"}
    with FakeHdfs() as hdfs, options_of_stores({**options, "hdfs_port": str(hdfs.port)}):
        yield hdfs


def test_a_build_from_and_to_hdfs_has_the_bytes_of_a_local_one(hdfs: FakeHdfs, release: Path) -> None:
    folder = "hdfs://node/dumps"
    for path in (mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS):
        put(f"{folder}/{path.name}", path.read_bytes())
    options: dict[str, Any] = {
        "dump": f"{folder}/miniwiki-*-multistream.xml.bz2",
        "page_props": f"{folder}/{mini_wiki.PAGE_PROPS.name}",
    }
    put("hdfs://node/releases/mini/_staging/left/over.json", b"{}")
    put(f"hdfs://node/releases/mini/{BUILDING}", b"{}")  # so it was left by a build that was killed

    build_mini("hdfs://node/releases/mini", **options)

    below = "/releases/mini/"
    written = {path.removeprefix(below): content for path, content in hdfs.files.items() if path.startswith(below)}
    assert written == contents(release)
    with KnowledgeSource.open("hdfs://node/releases/mini") as remote, KnowledgeSource.open(release) as local:
        assert list(remote) == list(local)
        assert remote.by_id(33) == local.by_id(33)
    with pytest.raises(SetupError, match="never overwritten"):
        build_mini("hdfs://node/releases/mini", **options)
