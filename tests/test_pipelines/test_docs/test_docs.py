"""The documentation says what the code does."""

from __future__ import annotations

import doctest
import importlib
import re
from types import ModuleType

import pytest

from kbsource.errors import FALLBACKS, REASONS
from pipelines.commands.map import takers
from tests.support.real_data import ROOT, script

WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for package in ("kbsource", "mapping", "pipelines")
    for path in sorted((ROOT / package).rglob("*.py"))
    if ">>>" in path.read_text("utf-8")
]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    return script("docs/generate.py")


def test_the_generated_pages_are_current(generate: ModuleType) -> None:
    assert generate.main(["--check"]) == 0


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_the_examples_of_docstrings_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(module))
    assert (found.failed, found.attempted > 0) == (0, True)


def test_every_option_of_a_dataset_is_explained_with_it() -> None:
    """Those of commands are in the generated page."""
    text = "".join((ROOT / "docs" / name).read_text("utf-8") for name in ("datasets.md", "alignment.md"))
    for option in takers():
        assert re.search(rf"(?<![\w-])--(no-)?{option[2:]}(?![\w-])", text), option


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
    schema = (ROOT / "kbsource" / "records.py").read_text("utf-8")

    for status in FALLBACKS:
        assert status in schema
