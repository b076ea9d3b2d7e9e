"""A small release of Wikidata."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.entities import make, write_odd_dump


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_odd_dump(tmp_path_factory.mktemp("dump"))


@pytest.fixture(scope="module")
def release(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("wikidata") / "release"
    make(dump, output=output, max_rejects=0.1, range_bytes=500)
    return output


@pytest.fixture(scope="module")
def whole(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same release from one range, one file a table."""
    output = tmp_path_factory.mktemp("whole") / "release"
    make(dump, output=output, max_rejects=0.1)
    return output
