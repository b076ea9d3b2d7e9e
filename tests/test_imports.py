"""No module imports itself through others, neither inside a function nor for types only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import grimp
import pytest


def circle(imports: Mapping[str, Iterable[str]]) -> list[str]:
    """Returns the modules of a circle, each before one that it imports; none if there is no circle."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        modules: list[str] = error.args[1]
        return modules[::-1]
    return []


@pytest.mark.parametrize(
    ("imports", "found"),
    [
        ({"a": ["b", "c"], "b": ["c"], "c": []}, []),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, ["b", "c", "b"]),
        ({"a": ["b"], "b": ["c"], "c": ["a"]}, ["a", "b", "c", "a"]),
    ],
)
def test_a_circle_is_named_in_the_order_of_its_imports(imports: dict[str, list[str]], found: list[str]) -> None:
    modules = circle(imports)

    assert {*modules} == {*found}
    assert all(imported in imports[module] for module, imported in pairwise(modules))


def test_no_modules_import_each_other() -> None:
    graph = grimp.build_graph("kbsource", "mapping", "pipelines", cache_dir=None)

    assert circle({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}) == []
