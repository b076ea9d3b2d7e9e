"""Everything at one place: what is small, or references, for what must see all of it."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Any

import apache_beam as beam

from kbsource.runtime.chunks import Key


class Gather(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, value) -> one list of (Key, value) by key, each once; of nothing an empty one.

    The values are JSON values or ``Stored``; all of them are in the memory of one worker.
    """

    def expand(self, values: Any) -> Any:
        begin = values.pipeline | "always" >> beam.Create([(0, None)], reshuffle=False)
        return (
            (values | "together" >> beam.Map(_together), begin)
            | beam.Flatten()
            | "all" >> beam.GroupByKey()
            | "in order" >> beam.MapTuple(_in_order)
        )


def _together(element: tuple[Key, Any]) -> tuple[int, tuple[Key, Any]]:
    return 0, element


def _in_order(_: int, elements: Iterable[tuple[Key, Any] | None]) -> list[tuple[Key, Any]]:
    return sorted(((Key(*element[0]), element[1]) for element in elements if element is not None), key=itemgetter(0))


class Made:
    """What comes of the steps, for the end: chunks and counts, by name, in the order of the release."""

    def __init__(self) -> None:
        self._found: list[Any] = []

    def add(self, name: str, values: Any) -> None:
        """Takes (Key, chunk or counts), whose keys differ, under a name."""
        place = len(self._found)
        self._found.append(values | f"{name} {place}" >> beam.Map(_named, place, name))

    def gathered(self) -> Any:
        """Gives one list of (Key, (name, value)), in order."""
        return tuple(self._found) | "made" >> beam.Flatten() | "gather" >> Gather()


def _named(element: tuple[Key, Any], place: int, name: str) -> tuple[Key, tuple[str, Any]]:
    key, value = element
    return Key(place, max(key)), (name, value)
