"""The files that a build keeps while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.runtime.chunks import ChunkFunction, read_chunk_report, read_stored
from pipelines.jobs import build
from pipelines.primitives.guarded_map import GuardedMap
from tests.support.builds import build_mini, contents

pytestmark = pytest.mark.usefixtures("in_this_process")


def test_what_is_done_leaves_the_disk_and_a_build_goes_on_without_it(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise SetupError("Stopped before the end.")

    output = tmp_path / "made"
    with monkeypatch.context() as patched:
        patched.setattr(build, "assemble", stopped)
        with pytest.raises(SetupError, match="Stopped before the end"):
            build_mini(output)
    staging = output / "_staging"
    assert list((staging / "scan").glob("*.json"))
    assert list((staging / "articles").glob("*")) == []
    chunks = list((staging / "pages").glob("*.arrow"))
    assert chunks
    for path in chunks:
        stored, report = read_chunk_report(str(path))
        assert (list(read_stored(stored)), stored.n_bytes > 0) == ([], True)
        assert report.counts["articles"] > 0
    build_mini(output)
    assert contents(output) == contents(release)


def test_input_stays_where_the_output_is_not_stored() -> None:
    def make() -> ChunkFunction:
        raise NotImplementedError

    with pytest.raises(SetupError, match="give a folder"):
        GuardedMap(make, removes_input=True)
