"""The examples in docstrings."""

from __future__ import annotations

import doctest
from types import ModuleType

import pytest

from mapping.publish import card, configs, lines_parquet


@pytest.mark.parametrize("module", [card, configs, lines_parquet])
def test_examples_hold(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed
