"""The documentation says what the code does."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from kbsource.reasons import FALLBACKS, REASONS
from pipelines.commands.flags.map_flags import takers
from tests.support.real_data import ROOT

OF_DATASETS = takers()


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_generated_pages_are_current(generate: ModuleType) -> None:
    assert generate.main(["--check"]) == 0


def test_every_option_is_documented(generate: ModuleType) -> None:
    """Those of one dataset are explained with it."""
    docs = ROOT / "docs"
    of_datasets = "".join((docs / name).read_text("utf-8") for name in ("datasets.md", "alignment.md"))
    text = (docs / "commands.md").read_text("utf-8")
    for name, command in generate.commands_by_name().items():
        section = text.split(f"| **kbsource {name}** |", 1)[1].split("\n| **kbsource", 1)[0]
        for option in command.flags():
            if name == "map" and not OF_DATASETS.keys().isdisjoint((option, option.replace("--no-", "--"))):
                assert re.search(rf"(?<![\w-])--(no-)?{option[2:].removeprefix('no-')}(?![\w-])", of_datasets), option
            else:
                assert f"`{option}`" in section, f"{name} {option}"


def test_every_reason_in_the_code_is_documented_and_every_documented_one_is_in_the_code() -> None:
    sources = [path.read_text("utf-8") for path in sorted((ROOT / "kbsource").rglob("*.py"))]
    sources = [source for source in sources if "REASONS: dict" not in source]
    raised = {reason for source in sources for reason in re.findall(r'RecordError\(\s*"(\w+)"', source)}
    not_of_a_dump = {"damaged_index", "malformed_index"}
    never_released = {"no_revision_as_of"}

    assert raised - not_of_a_dump - never_released <= set(REASONS)
    whole = "\n".join(sources)
    # page_ or entity_ and the way in which the process ended
    made_of_two = {"page_timeout", "page_crash", "page_error", "entity_crash", "entity_error"}
    for reason in set(REASONS) - made_of_two:
        assert f'"{reason}"' in whole, reason


def test_every_parse_status_is_named_in_the_schema() -> None:
    schema = (ROOT / "kbsource" / "schema.py").read_text("utf-8")

    for status in FALLBACKS:
        assert status in schema
