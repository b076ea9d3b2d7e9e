"""Queries that passed, on disk in their order, each looked up by its number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from mapping.qampari.classes import Numbers
from mapping.qampari.joins import PairAnswers
from mapping.qampari.ordered import KeySample, OrderedFile, OrderedRows, even_edges
from mapping.qampari.questions import CompositionQuery, IntersectionQuery, SimpleQuery
from pipelines.qampari.facts import Flags

_BITS, _PAIR_BITS = 40, 31
"""Of a key: the second of its two numbers has no more, behind a property and behind a query."""


def _lists(type_: pa.DataType, *names: str) -> list[pa.Field]:
    return [pa.field(name, pa.list_(type_), nullable=False) for name in names]


_SIMPLE = pa.schema(
    [
        pa.field("property_id", pa.string(), nullable=False),
        pa.field("entity_id", pa.string(), nullable=False),
        pa.field("type_label", pa.string()),
        *_lists(pa.int64(), "subjects", "facts"),
        *_lists(pa.bool_(), "is_validated"),
    ]
)
_COMPOSITION = pa.schema(
    [
        pa.field("property_id", pa.string(), nullable=False),
        pa.field("base", pa.int64(), nullable=False),
        *_lists(pa.int64(), "subjects"),
        *_lists(pa.string(), "values"),
        *_lists(pa.int64(), "facts"),
        pa.field("n_pairs", pa.int64(), nullable=False),
    ]
)
_INTERSECTION = pa.schema(
    [
        *(pa.field(name, pa.int64(), nullable=False) for name in ("first", "second")),
        *_lists(pa.int64(), "subjects"),
    ]
)


class SimpleKept(NamedTuple):
    """A simple query that passed the filter.

    Attributes:
        query: what is asked.
        subjects: all of its answers by number, ascending.
        facts: the fact of each.
        is_validated: which of them are.
    """

    query: SimpleQuery
    subjects: Numbers
    facts: Numbers
    is_validated: Flags

    def validated(self) -> Numbers:
        """Gives the validated answers."""
        return self.subjects[self.is_validated]

    def facts_of(self, subjects: Numbers) -> Numbers:
        """Gives the fact of each of some answers."""
        return self.facts[np.searchsorted(self.subjects, subjects)]


class CompositionKept(NamedTuple):
    """A composition that passed the filter.

    Attributes:
        query: what is asked.
        base: number of its base among the simple queries that were kept.
        subjects, values, facts: of the validated pairs, by subject, then value.
        n_pairs: all pairs.
    """

    query: CompositionQuery
    base: int
    subjects: Numbers
    values: list[str]
    facts: Numbers
    n_pairs: int


class IntersectionKept(NamedTuple):
    """An intersection.

    Attributes:
        query: what is asked.
        pair: the two queries, by number among the simple ones, with the answers.
    """

    query: IntersectionQuery
    pair: PairAnswers


class KeptSimple:
    """Simple queries that passed, in the order of ``questions.order_key``; by number.

    Args:
        path: of the file that ``simple_rows`` wrote; it is memory-mapped.
    """

    def __init__(self, path: str) -> None:
        self._file = OrderedFile(path)

    def __len__(self) -> int:
        """Gives their number."""
        return len(self._file)

    def __getitem__(self, number: int) -> SimpleKept:
        """Gives one of them."""
        return SimpleKept(self.query(number), *_arrays(self._file, number, "subjects", "facts", "is_validated"))

    def __iter__(self) -> Iterator[SimpleKept]:
        """Gives all."""
        return map(self.__getitem__, range(len(self)))

    def query(self, number: int) -> SimpleQuery:
        """Gives what one of them asks."""
        return SimpleQuery(*_values(self._file, number, *SimpleQuery._fields))

    def queries(self) -> Iterator[SimpleQuery]:
        """Gives what all of them ask."""
        return map(self.query, range(len(self)))


class KeptCompositions:
    """Compositions that passed, in the order of ``questions.order_key``.

    Args:
        path: of the file that ``composition_rows`` wrote; it is memory-mapped.
        bases: the simple queries that they are made of.
    """

    def __init__(self, path: str, bases: KeptSimple) -> None:
        self._file = OrderedFile(path)
        self._bases = bases

    def __len__(self) -> int:
        """Gives their number."""
        return len(self._file)

    def __iter__(self) -> Iterator[CompositionKept]:
        """Gives all."""
        for number, query in enumerate(self.queries()):
            base, values, n_pairs = _values(self._file, number, "base", "values", "n_pairs")
            subjects, facts = _arrays(self._file, number, "subjects", "facts")
            yield CompositionKept(query, base, subjects, values, facts, n_pairs)

    def queries(self) -> Iterator[CompositionQuery]:
        """Gives what all of them ask."""
        for number in range(len(self)):
            property_id, base = _values(self._file, number, "property_id", "base")
            yield CompositionQuery(property_id, self._bases.query(base))


class KeptIntersections:
    """Intersections that passed, in the order of ``questions.order_key``.

    Args:
        path: of the file that ``intersection_rows`` wrote; it is memory-mapped.
        simple: the queries that they are made of.
    """

    def __init__(self, path: str, simple: KeptSimple) -> None:
        self._file = OrderedFile(path)
        self._simple = simple

    def __len__(self) -> int:
        """Gives their number."""
        return len(self._file)

    def __iter__(self) -> Iterator[IntersectionKept]:
        """Gives all."""
        for number, query in enumerate(self.queries()):
            pair = _values(self._file, number, "first", "second")
            yield IntersectionKept(query, PairAnswers(*pair, *_arrays(self._file, number, "subjects")))

    def queries(self) -> Iterator[IntersectionQuery]:
        """Gives what all of them ask."""
        for number in range(len(self)):
            yield IntersectionQuery(*map(self._simple.query, _values(self._file, number, "first", "second")))


Kept = KeptSimple | KeptCompositions | KeptIntersections


def _values(file: OrderedFile, number: int, *names: str) -> list[Any]:
    batch, row = file.at(number)
    return [batch[name][row].as_py() for name in names]


def _arrays(file: OrderedFile, number: int, *names: str) -> list[Any]:
    """Gives lists of numbers, which are parts of the mapped file, or of flags."""
    batch, row = file.at(number)
    return [batch[name][row].values.to_numpy(zero_copy_only=False) for name in names]


def simple_rows(scratch: str, sample: KeySample) -> OrderedRows:
    """Takes the values of SimpleKept, those of the query one by one, under their ``simple_key``."""
    return OrderedRows(os.path.join(scratch, "kept"), _SIMPLE, sample.edges(), ties=("type_label",))


def simple_key(property_id: str, entity_id: str) -> int:
    """Gives what simple queries are ordered by, before their types."""
    return int(property_id[1:]) << _BITS | int(entity_id[1:])


def composition_rows(scratch: str, sample: KeySample) -> OrderedRows:
    """Takes the values of CompositionKept, of the query the property alone, under their ``composition_key``."""
    return OrderedRows(os.path.join(scratch, "kept"), _COMPOSITION, sample.edges())


def composition_key(property_id: str, base: int) -> int:
    """Gives what compositions are ordered by: the property, then the base by its number."""
    return int(property_id[1:]) << _BITS | base


def intersection_rows(scratch: str, n_simple: int) -> OrderedRows:
    """Takes the values of PairAnswers under their ``intersection_key``."""
    return OrderedRows(os.path.join(scratch, "kept"), _INTERSECTION, even_edges(intersection_key(n_simple, 0)))


def intersection_key(first: int, second: int) -> int:
    """Gives what intersections are ordered by: the two queries by their numbers."""
    return first << _PAIR_BITS | second
