"""Public classes and functions of different modules have different names, so that a name says which one is meant."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from tests.support.real_data import ROOT

NAMED_BY_OTHERS = (
    "pipelines/commands/",  # as users type them
    "mapping/serving/operations.py",  # as clients call them
    "pipelines/transforms/beam_yaml.py",  # as the transforms that they wrap
    "kbsource/wikitext/functions/",  # as the rules of templates call them
)
"""Modules whose functions or classes have names for those who use them; CONTRIBUTING.md lists them."""
ENTRY_POINTS = {"main"}


def defined(path: Path) -> list[str]:
    """Returns the public classes and functions of a module."""
    nodes = ast.parse(path.read_bytes()).body
    return [
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]


def test_no_public_name_is_defined_in_two_modules() -> None:
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for package in ("kbsource", "mapping", "pipelines"):
        for path in sorted((ROOT / package).rglob("*.py")):
            module = path.relative_to(ROOT).as_posix()
            if not module.startswith(NAMED_BY_OTHERS):
                for name in defined(path):
                    modules[name].append(module)

    twice = {name: found for name, found in modules.items() if len(found) > 1 and name not in ENTRY_POINTS}

    assert len(modules) > 2000
    assert twice == {}
