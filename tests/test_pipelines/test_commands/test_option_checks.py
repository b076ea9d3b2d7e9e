"""Options out of range name themselves, their value and what they may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbsource.errors import SetupError
from pipelines.options.build import BuildOptions
from pipelines.options.map import MapOptions
from pipelines.options.wikidata import WikidataOptions


def build(**options: Any) -> BuildOptions:
    return BuildOptions(dump=("x.xml",), output="out", **options)


def wikidata(**options: Any) -> WikidataOptions:
    return WikidataOptions(dump=("x.json",), output="out", **options)


def align(**options: Any) -> MapOptions:
    return MapOptions("jsonl", "kb", ("x.jsonl",), "out", "dev", **options)


@pytest.mark.parametrize(
    ("options", "records"),
    [(build, "pages"), (wikidata, "lines"), (align, "records")],
    ids=["build", "wikidata", "map"],
)
def test_what_all_jobs_are_told_has_the_same_range_everywhere(options: Callable[..., Any], records: str) -> None:
    for share in (-0.1, 1.1):
        with pytest.raises(SetupError, match=rf"^--max-rejects is {share}; give a share of the {records} between 0"):
            options(max_rejects=share)
    with pytest.raises(SetupError, match=r"^--worker-memory is 255 MB; a worker needs at least 256 MB\.$"):
        options(worker_memory_bytes=255 << 20)
    for share in (0.0, 1.0):
        assert options(max_rejects=share, worker_memory_bytes=256 << 20).max_rejects == share


@pytest.mark.parametrize("options", [build, wikidata])
def test_a_dump_is_read_in_pieces_of_a_byte_or_more(options: Callable[..., Any]) -> None:
    with pytest.raises(SetupError, match=r"^--range-bytes is 0; give at least 1\.$"):
        options(range_bytes=0)
    assert options(range_bytes=1).range_bytes == 1


def test_a_page_may_take_some_time() -> None:
    with pytest.raises(SetupError, match=r"^--page-timeout is 0; give a number of seconds above 0\.$"):
        build(page_timeout_s=0.0)
