"""A release and its tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from mapping.qampari.crowd.tasks import (
    export_tasks,
)
from tests.support.crowd import (
    OPTIONS,
    STORAGE,
    crowd_questions,
)
from tests.support.qampari import write_qampari


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return write_qampari(tmp_path / "release", crowd_questions(), facts={"release": {"manifest_sha256": "1"}})


@pytest.fixture
def tasks(tmp_path: Path, release: Path) -> Path:
    export_tasks(str(release), str(tmp_path / "tasks"), STORAGE, OPTIONS)
    return tmp_path / "tasks"
