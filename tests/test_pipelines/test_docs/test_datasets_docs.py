"""docs/datasets.md says what the code does."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from mapping.sources import all_sources
from pipelines.app import option_names, parse_command
from pipelines.commands.map import app, read_alignments, takers
from tests.support.real_data import ROOT

PAGE = (ROOT / "docs" / "datasets.md").read_text("utf-8")
DATASETS = sorted(set(all_sources()) - {"kilt", "jsonl"})
SECTIONS = dict(re.findall(r"^\| \[([^\]]+)\]\(#[\w-]+\) \| ([^|]+) \|", PAGE, re.MULTILINE))
ROWS = dict(re.findall(r"^\| \[([^\]]+)\]\(#[\w-]+\) \| (.+) \|$", PAGE, re.MULTILINE))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def _section(name: str) -> str:
    return re.split(r"^## ", PAGE.split(f"\n## {name}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_every_dataset_has_a_section() -> None:
    assert sorted(re.findall(r"`(\w+)`", " ".join(SECTIONS.values()))) == DATASETS


@pytest.mark.parametrize("name", SECTIONS)
def test_a_dataset_has_its_licence_its_files_what_is_written_and_its_command(name: str) -> None:
    assert ROWS[name].count(" | ") == 3  # name, task, answers of test, licence
    for part in ("Files", "What is written"):
        assert f"- **{part}.** " in _section(name), part
    for dataset in re.findall(r"`(\w+)`", SECTIONS[name]):
        assert f"\nkbsource map {dataset} RELEASE" in PAGE


def test_every_command_line_is_one_that_the_command_takes() -> None:
    blocks = [text for language, text in _BLOCK.findall(PAGE) if not language]
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]

    assert len(lines) > len(DATASETS)
    for line in lines:
        assert line.startswith("kbsource ")
        parse_command(shlex.split(line, comments=True)[1:])


def test_the_configuration_is_one_that_is_read(tmp_path: Path) -> None:
    (text,) = (text for language, text in _BLOCK.findall(PAGE) if language == "yaml")
    path = tmp_path / "datasets.yaml"
    path.write_text(text, "utf-8")

    assert [
        (planned.options.dataset, planned.options.split) for planned in read_alignments(str(path), "kb", "out")
    ] == [
        ("fever", "train"),
        ("fever", "dev"),
        ("fever", "test"),
        ("aidayago2", "dev"),
    ]


def test_every_choice_of_a_reader_is_explained_and_every_flag_that_is_named_there_is() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE))

    for flag in set(takers()) - {"--from-kb", "--from-numbering", "--max-misfits"}:
        assert named & {flag, flag.replace("--", "--no-", 1)}, flag
    assert named - {"--help", "--config"} <= {flag for name in all_sources() for flag in option_names(app[name])}


@pytest.mark.parametrize("name", ["dataset_rules.md", "qampari_rules.md"])
def test_every_rule_names_tests_that_there_are(name: str) -> None:
    rules = [line for line in (ROOT / "tests" / "rules" / name).read_text("utf-8").splitlines() if "`test_" in line]
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"^def (test_\w+)", sources, re.MULTILINE))

    assert len(rules) > 100
    for rule in rules:
        assert set(re.findall(r"`(test_\w+)`", rule)) <= defined, rule
