"""Everything of a collection in one place: for plans, sums and what is written last."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam


class Together(beam.PTransform):  # type: ignore[misc]  # Beam is not typed
    """(Key, value) -> one list of all of them, in the order of the keys; an empty one where there are none.

    One worker holds the list: values are references, counts, or else small.
    """

    def expand(self, keyed: Any) -> Any:
        begin = keyed.pipeline | "always" >> beam.Create([(0, None)], reshuffle=False)
        return (
            (keyed | "together" >> beam.Map(_with_one_key), begin)
            | beam.Flatten()
            | "all" >> beam.GroupByKey()
            | "in order" >> beam.Map(_in_order)
        )


def _with_one_key(keyed: tuple[Any, Any]) -> tuple[int, tuple[Any, Any]]:
    return 0, keyed


def _in_order(together: tuple[int, Iterable[tuple[Any, Any] | None]]) -> list[tuple[Any, Any]]:
    return sorted((entry for entry in together[1] if entry is not None), key=_key_of)


def _key_of(keyed: tuple[Any, Any]) -> Any:
    return keyed[0]
