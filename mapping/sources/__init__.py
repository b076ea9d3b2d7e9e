"""Readers of datasets in their original forms, with everything specific to each; ``all_sources`` lists them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from mapping.sources.source import Source

_MODULES = (
    *("fever", "entity_linking", "trex", "zero_shot", "nq", "hotpotqa", "triviaqa", "eli5", "wow"),
    *("kilt", "own"),
)
"""Modules with ``SOURCES``; KILT's datasets are in the order of its leaderboard."""


@cache
def all_sources() -> Mapping[str, type[Source[Any]]]:
    """Returns every dataset by its name on the command line."""
    found = (import_module(f"{__name__}.{module}").SOURCES for module in _MODULES)
    return {source.name: source for sources in found for source in sources}


def source_of_file(name: str) -> type[Source[Any]]:
    """Returns the dataset whose name begins the name of a KILT file; if it is unknown, the dataset of KILT files.

    >>> source_of_file("structured_zeroshot-dev-kilt.jsonl").name, source_of_file("quiz.jsonl").name
    ('structured_zeroshot', 'kilt')
    """
    return all_sources().get(name.partition("-")[0], all_sources()["kilt"])
