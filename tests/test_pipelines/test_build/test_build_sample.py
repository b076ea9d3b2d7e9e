"""What a dry run of a build says about its time and disk."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbsource.dump.ranges import DumpRange
from pipelines.cli import main
from pipelines.jobs import build_sample
from tests.support import mini_wiki
from tests.support.builds import build_mini

pytestmark = pytest.mark.usefixtures("in_this_process")


def estimate(dump: Path, *options: str, output: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any] | None:
    command = ["build", str(dump), "--output", str(output), "--dry-run", "--json", *options]
    assert main(command) == 0
    assert not output.exists()
    found: dict[str, Any] | None = json.loads(capsys.readouterr().out)["estimate"]
    return found


def test_a_dump_that_is_sampled_whole_has_the_size_of_its_release(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = estimate(mini_wiki.MULTISTREAM, output=tmp_path / "out", capsys=capsys)
    assert found is not None
    build_mini(tmp_path / "release", page_props=None)
    n_bytes = sum(path.stat().st_size for path in (tmp_path / "release").rglob("*") if path.is_file())
    assert found["release_bytes"] == pytest.approx(n_bytes, rel=0.02)
    assert found["peak_bytes"] > 0
    assert found["seconds"] > 0


@pytest.mark.slow  # a large dump
def test_samples_are_spread_over_a_dump_and_stand_for_all_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = estimate(mini_wiki.MULTISTREAM, output=tmp_path / "out", capsys=capsys)
    n_bytes = mini_wiki.MULTISTREAM.stat().st_size
    monkeypatch.setattr(build_sample, "N_SAMPLES", 2)
    monkeypatch.setattr(build_sample, "SAMPLE_BYTES", n_bytes // 8)
    ranges = ("--range-bytes", str(n_bytes // 4 + 1))
    part = estimate(mini_wiki.MULTISTREAM, *ranges, output=tmp_path / "out", capsys=capsys)
    assert whole is not None
    assert part is not None
    assert 0.3 < part["release_bytes"] / whole["release_bytes"] < 4


@pytest.mark.parametrize(("n_ranges", "expected"), [(1, [0]), (3, [0, 1, 2]), (15, [0, 2, 4, 6, 8, 10, 12, 14])])
def test_samples_are_few_and_spread_over_all_ranges(n_ranges: int, expected: list[int]) -> None:
    part = DumpRange(0, "x", 0, 1 << 20, "bz2", 1 << 30)
    ranges = [replace(part, index=index, path=str(index)) for index in range(n_ranges)]
    samples = build_sample._samples(ranges)
    assert [int(sample.path) for sample in samples] == expected
    assert {sample.end - sample.start for sample in samples} == {build_sample.SAMPLE_BYTES}


@pytest.mark.parametrize("options", [("--limit-pages", "3"), ("--only-titles", "titles.txt"), ()], ids=str)
def test_nothing_is_estimated_where_samples_say_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("titles.txt").write_text("Sorn\n")
    dump = mini_wiki.MULTISTREAM
    if not options:  # a compression that is only read from its beginning
        dump = tmp_path / "wiki.xml.gz"
        dump.write_bytes(gzip.compress(mini_wiki.XML.read_bytes()))
    assert estimate(dump, *options, output=tmp_path / "out", capsys=capsys) is None
