"""Tests of dumps put their files into a working folder of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty working folder."""
    before = os.getcwd()
    os.chdir(tmp_path_factory.mktemp("dump"))
    yield
    os.chdir(before)
