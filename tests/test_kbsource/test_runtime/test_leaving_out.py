"""Packages that nothing here uses are not imported, and can be imported later."""

from __future__ import annotations

import gc
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kbsource.runtime.guard import Guard
from kbsource.runtime.imports import hold_collector, leaving_out, release_collector, standing_in


def printed(program: str) -> Any:
    """Returns what a program prints in a process of its own, which imports as little as it says."""
    done = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def test_a_package_is_not_there_until_the_end_of_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unused_package.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))

    with (
        leaving_out("unused_package"),
        pytest.raises(ModuleNotFoundError, match="unused_package is not available here"),
    ):
        importlib.import_module("unused_package")

    assert importlib.import_module("unused_package")
    with leaving_out("unused_package"):
        assert importlib.import_module("unused_package")
    monkeypatch.delitem(sys.modules, "unused_package")


def test_a_module_is_replaced_until_the_end_of_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_package.py").write_text("number = 1")
    monkeypatch.syspath_prepend(str(tmp_path))

    with standing_in({"slow_package": {"number": 2}}):
        assert importlib.import_module("slow_package").number == 2

    assert importlib.import_module("slow_package").number == 1
    with standing_in({"slow_package": {"number": 2}}):
        assert importlib.import_module("slow_package").number == 1
    monkeypatch.delitem(sys.modules, "slow_package")


def test_the_collector_is_held_until_it_is_released() -> None:
    try:
        hold_collector()
        assert not gc.isenabled()
        release_collector()
        assert gc.isenabled()
        assert gc.get_freeze_count() > 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_arrays_are_made_without_pandas_and_it_still_works_afterwards() -> None:
    assert printed(
        """
import json, sys
import pyarrow as pa
from kbsource.runtime.imports import leave_out_pandas

leave_out_pandas()
seen = [pa.array(["a"]).to_pylist(), "pandas" in sys.modules]
import pandas

print(json.dumps([*seen, pa.table({"n": [1, 2]}).to_pandas()["n"].tolist(), pa.array(pandas.Series([3])).to_pylist()]))
"""
    ) == [["a"], False, [1, 2], [3]]


def test_a_guarded_process_makes_arrays_without_pandas(tmp_path: Path) -> None:
    with Guard("tests.support.guarded_work:make_array", beat_path=str(tmp_path / "0.beat")) as guard:
        assert guard.run({}) == {"array": [1, 2], "has_pandas": False}
