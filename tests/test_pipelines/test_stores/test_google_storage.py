"""A build whose dump and release lie in Google Cloud Storage, as an emulator shows it on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.lookup import KnowledgeSource
from tests.support import mini_wiki
from tests.support.builds import build_mini, contents
from tests.support.fake_google import FakeGoogle
from tests.support.stores import contents_of, options_of_stores, put

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def google() -> Iterator[FakeGoogle]:
    """Google's storage with a bucket ``wiki``, whose options say where it is."""
    with FakeGoogle() as google, options_of_stores({"google_base_url": google.url, "google_bearer_token": "any"}):
        yield google


def test_a_build_from_and_to_the_store_has_the_bytes_of_a_local_one(release: Path) -> None:
    for path in (mini_wiki.MULTISTREAM, mini_wiki.PAGE_PROPS):
        put(f"gs://wiki/dumps/{path.name}", path.read_bytes())
    options: dict[str, Any] = {
        "dump": "gs://wiki/dumps/miniwiki-*-multistream.xml.bz2",
        "page_props": f"gs://wiki/dumps/{mini_wiki.PAGE_PROPS.name}",
    }

    build_mini("gs://wiki/release", **options)

    written = contents_of("gs://wiki/release")
    assert written == contents(release)
    with KnowledgeSource.open("gs://wiki/release") as remote, KnowledgeSource.open(release) as local:
        assert list(remote) == list(local)
        assert remote.by_id(33) == local.by_id(33)
    with pytest.raises(SetupError, match="never overwritten"):
        build_mini("gs://wiki/release", **options)
