"""Flags come out of the fields of dataclasses, and dataclasses out of flags."""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import pytest

from kbsource.errors import SetupError
from mapping.options import check_options, listed, option
from mapping.sources import DATASETS, SOURCES
from pipelines.cli import main
from pipelines.commands.flags.map_flags import dataset_flags, takers
from pipelines.options.fields import add_flags, from_flags, nearest
from pipelines.options.map import MapOptions
from tests.support.real_data import ROOT


@dataclass(frozen=True, slots=True)
class Inner:
    share: float = option(0.5, "a share", lowest=0, highest=1, remedy="give 0 to 1")


@dataclass(frozen=True, slots=True)
class Job:
    dump: tuple[str, ...] = option(help="files", metavar="FILE", is_repeated=True)
    kind: Literal["a", "b"] = option("a", "which")
    names: tuple[str, ...] | None = option(None, "names", parse=listed, form="[a-z]+", like="x,y")
    memory_bytes: int = option(4 << 20, "memory", flag="--memory", unit=1 << 20, unit_name=" MB", lowest=2)
    rows: int | None = option(None, "rows, 5 % of them", lowest=1, bare=7)
    limit: float = option(1.0, "limit", above=0, below=2, remedy="give more than 0, less than 2")
    is_new: bool = option(False, "new")
    has_lines: bool = option(True, "lines (default: they are there)", flag="--lines")
    has_tables: bool = option(True, "no tables", flag="--no-tables")
    inner: Inner = field(default_factory=Inner)
    secret: int = 3

    def __post_init__(self) -> None:
        check_options(self)


def parsed(*argv: str) -> Job:
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_flags(parser, Job)
    return from_flags(vars(parser.parse_args(argv)), Job)


def test_what_is_not_given_is_left_to_the_dataclass() -> None:
    assert parsed("--dump", "x") == Job(("x",))


def test_every_kind_of_field_has_its_flag() -> None:
    flags = "--dump x --dump y --kind b --names p,q --memory 8 --rows --limit 1.5 --is-new --no-lines --no-tables"

    assert parsed(*flags.split(), "--share", "0.25") == Job(
        ("x", "y"), "b", ("p", "q"), 8 << 20, 7, 1.5, True, False, False, Inner(0.25)
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kind": "c"}, "--kind c: choose one of a, b."),
        ({"names": ("p", "Q")}, "--names has 'Q'; write it like x,y."),
        ({"memory_bytes": 1 << 20}, "--memory is 1 MB; give at least 2."),
        ({"rows": 0}, "--rows is 0; give at least 1."),
        ({"limit": 0.0}, "--limit is 0; give more than 0, less than 2."),
        ({"limit": 2.0}, "--limit is 2; give more than 0, less than 2."),
        ({"limit": float("nan")}, "--limit is nan; give more than 0, less than 2."),
    ],
)
def test_what_a_value_may_be_is_checked_wherever_it_comes_from(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError) as caught:
        Job(("x",), **given)
    assert str(caught.value) == said


def test_help_has_meaning_and_default() -> None:
    parser = argparse.ArgumentParser()
    add_flags(parser, Job, but=("limit",), optional=("dump",))
    shown = " ".join(parser.format_help().split())

    assert "--kind {a,b} which (default: a)" in shown
    assert "--memory N memory (default: 4)" in shown
    assert "rows, 5 % of them" in shown
    assert "lines (default: they are there)" in shown
    assert "--limit" not in shown
    assert "[--dump FILE]" in shown
    assert "secret" not in shown


def test_a_mistyped_option_is_named_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["verify", "x", "--jsn"])
    assert "verify has no option or argument --jsn. Did you mean --json?" in capsys.readouterr().err

    with pytest.raises(SystemExit):
        main(["map", "hotpot", "--kb", "x", "--output", "y"])
    assert "no dataset 'hotpot'. Did you mean hotpotqa?" in capsys.readouterr().err
    assert nearest("--xyz", ["--kb"]) == ""


def test_help_of_map_is_short_until_a_dataset_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    def shown(*argv: str) -> str:
        with pytest.raises(SystemExit):
            main(["map", *argv, "--help"])
        return capsys.readouterr().out

    short = shown()
    assert len(short.splitlines()) < 60
    assert all(f"\n  {name} " in short and one.summary in short for name, one in DATASETS.items())
    assert "--nq-tokens" not in short
    assert "--chunk-records" not in short
    for dataset in DATASETS:
        long = shown(dataset)
        own = {one.flag for one in dataset_flags(dataset)}
        assert all(f"  {flag}" in long for flag in (*own, "--input", "--threshold", "--verify", "--runner"))
        assert not [flag for flag in takers() if flag not in own and f"\n  {flag}" in long]
        assert f"kbsource map {dataset} " in long


def test_manifests_have_the_choices_of_their_dataset_alone() -> None:
    trex = SOURCES["trex"].options(seed="other", sample=7)
    options = MapOptions("trex", "kb", ("in",), "out", "dev", references=("wikidata",), source=trex)

    assert options.data_options()["source"] == asdict(trex)


@pytest.mark.parametrize("argv", [["--help"], ["map", "--help"], ["map", "fever", "--help"], ["build", "--help"]])
def test_help_loads_no_heavy_library(argv: list[str]) -> None:
    code = (
        "import sys\nfrom pipelines.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n"
        "    sys.exit(', '.join({'pyarrow', 'apache_beam', 'spacy', 'lxml', 'yaml'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
