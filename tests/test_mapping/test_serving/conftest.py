"""One release for all tests of what is served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("tantivy")

from mapping.serving.operations import ServedRelease
from tests.support.served import opened_served, write_served


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_served(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def served(folders: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRelease]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        with opened_served(*folders) as opened:
            yield opened
