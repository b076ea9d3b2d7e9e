"""Where the real dumps and datasets are, for the tests that use them."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def script(path: str) -> ModuleType:
    """A module that is in no package, by its path from the root."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def real_data_folder() -> Path:
    """Gives the folder named by KBSOURCE_REAL_DATA, by default ``../shared/data`` beside the checkout."""
    return Path(os.environ.get("KBSOURCE_REAL_DATA", ROOT.parent / "shared" / "data"))


def real_path(relative: str) -> Path:
    """Gives the path of one real file; the calling test is skipped where it is absent."""
    path = real_data_folder() / relative
    if not path.exists():
        pytest.skip(f"real data absent: {relative} (set KBSOURCE_REAL_DATA)")
    return path
