"""An alignment that is broken off goes on where it was, and comes to the same bytes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from kbsource.errors import SetupError
from pipelines.primitives import guarded_map
from tests.support.alignments import evidence, map_mini, record, write_records
from tests.support.builds import contents
from tests.support.real_data import ROOT

pytestmark = pytest.mark.slow

RECORDS = [
    record("found", [evidence("rises in Lake Miravel", title="River Ullane")]),
    record("weak", [evidence("zebra quagga okapi gnu", title="Lake Miravel")]),
    "{ not json",
    record("missing", [evidence("anything", title="Lake Miravl")]),
    record("other", [evidence("Port Sellick", title="Port Sellick")]),
]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return write_records(tmp_path / "own.jsonl", RECORDS)


def _searched(records: Path, release: Path, output: Path, **options: Any) -> list[tuple[int, int]]:
    """Aligns, as far as it comes, and gives the chunks that were searched."""
    done: list[tuple[int, int]] = []
    do_guarded = guarded_map.do_guarded

    def count(guard: Any, task: dict[str, Any]) -> None:
        do_guarded(guard, task)
        done.append(tuple(task["key"]))

    with mock.patch.object(guarded_map, "do_guarded", count):
        map_mini(output, release, "jsonl", records, chunk_records=2, **options)
    return done


def _fail(*_: Any, **__: Any) -> Mapping[str, Any]:
    raise SetupError("pulled the plug")


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("changed", "is_searched"),
    [({}, False), ({"threshold": 0.0}, False), ({"accept": "bleu>=0"}, False), ({"max_elements": 2}, True)],
)
def test_what_was_searched_is_not_searched_again_but_for_another_search(
    records: Path, release: Path, tmp_path: Path, changed: dict[str, Any], is_searched: bool
) -> None:
    with (
        mock.patch("pipelines.transforms.align.commit_part", _fail),
        pytest.raises(SetupError, match="pulled the plug"),
    ):
        map_mini(tmp_path / "out", release, "jsonl", records, chunk_records=2)

    assert bool(_searched(records, release, tmp_path / "out", **changed)) == is_searched

    map_mini(tmp_path / "whole", release, "jsonl", records, chunk_records=2, **changed)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_only_the_process_that_searches_loads_the_library_of_the_tokeniser(
    records: Path, release: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.support.alignments import map_mini\n"
        "map_mini(*map(Path, sys.argv[1:3]), 'jsonl', Path(sys.argv[3]))\n"
        "sys.exit('spacy' in sys.modules)"
    )
    arguments = map(str, (tmp_path / "out", release, records))
    ended = subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, check=False)

    assert ended.returncode == 0
