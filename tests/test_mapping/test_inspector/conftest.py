"""One release and its views for all tests of the inspector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from mapping.inspector.opened import OpenRelease
from tests.support.inspected import client_of, inspected_pages, opened_release, write_inspected


@pytest.fixture(scope="session", autouse=True)
def _cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def pages_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder: Path = tmp_path_factory.mktemp("pages")
    return write_inspected(folder, inspected_pages())


@pytest.fixture(scope="session")
def opened(pages_path: str) -> Iterator[OpenRelease]:
    with opened_release(pages_path) as release:
        yield release


@pytest.fixture(scope="session")
def client(opened: OpenRelease) -> TestClient:
    return client_of(opened)
