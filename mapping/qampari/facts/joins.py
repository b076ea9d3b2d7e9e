"""Facts -> queries with their answers: kernels over sorted rows, of which memory holds a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mapping.qampari.facts.classes import ClassTypes, Numbers
from mapping.qampari.facts.statements import FACTS, VALUES
from mapping.qampari.questions import SimpleQuery
from mapping.qampari.relations import Relations
from mapping.qampari.selection import MOST_SUBJECTS

LEAST_ANSWERS = 5


def _numbers(*names: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.int64(), nullable=False) for name in names])


ANSWERS = _numbers("query", "size", "subject", "fact")
"""Answers of queries, which are numbered as ``questions.QueryNumbers`` does, with how many each has."""
PAIRS = _numbers("first", "second", "fewest", "subject", "first_fact", "second_fact")
"""What answers two queries, with how many answers that of them has that has fewer."""
BASES = _numbers("query", "own", "subject")
"""Answers of queries beside the query's property."""
PAIRED = pa.schema([*BASES.remove(1), *list(VALUES)[1:]])


class SimpleAnswers(NamedTuple):
    """A simple query with the numbers of its answers, ascending."""

    query: SimpleQuery
    subjects: Numbers


class PairAnswers(NamedTuple):
    """Two queries, by their numbers, with the numbers of what answers both, ascending, and the facts of each."""

    first: int
    second: int
    subjects: Numbers
    first_facts: Numbers
    second_facts: Numbers


class ValueAnswers(NamedTuple):
    """Values of the answers of a query, by its number.

    Attributes:
        query: gives the subjects.
        property_id: that the values stand under.
        pairs: (subject, value), each once, by subject, then value.
    """

    query: int
    property_id: str
    pairs: tuple[tuple[int, str], ...]


def simple_answers(
    facts: Iterable[pa.RecordBatch],
    relations: Relations,
    types: ClassTypes,
    *,
    least: int = LEAST_ANSWERS,
    most: int = MOST_SUBJECTS,
    tally: Counter[str] | None = None,
) -> Iterator[SimpleAnswers]:
    """Gives the queries of enabled simple relations that have enough answers.

    Of a typed relation each of its types makes a query of the subjects that are of this type; a subject can be in
    several, and one with none of the types is in none. Counts are those of the typed query, except that too many
    subjects of any type skip the property and value as a whole. Of typed queries of one property and value that have
    the same answers all are given.

    Args:
        facts: rows of FACTS by value, property and subject, those of value and property in one batch; a fact may come
            again.
        relations: those that are enabled are asked for.
        types: what the words of types in the facts mean.
        least: answers that a query needs.
        most: subjects that property and value may have.
        tally: counts pairs of property and value as ``too_many_subjects``, and those of typed relations none of whose
            types has enough of them as ``no_type``.

    Returns:
        By value, then property, and types in the order of the relation.
    """
    tally = Counter() if tally is None else tally
    for batch in facts:
        property_, value, subject, *words = (batch[name].to_numpy() for name in FACTS.names)
        is_new = np.ones(len(subject), np.bool_)
        is_new[1:] = (subject[1:] != subject[:-1]) | (property_[1:] != property_[:-1]) | (value[1:] != value[:-1])
        property_, value, subject = property_[is_new], value[is_new], subject[is_new]
        masks = np.stack([word[is_new] for word in words], axis=1)
        for start, end in _runs(value, property_, least=least):
            relation = relations.simple.get(f"P{property_[start]}")
            if relation is None or not relation.is_enabled:
                continue
            if end - start > most:
                tally["too_many_subjects"] += 1
                continue
            query = SimpleQuery(relation.property_id, f"Q{value[start]}")
            if not relation.is_typed:
                yield SimpleAnswers(query, subject[start:end])
                continue
            of_types = [
                (label, subject[start:end][types.has_type(masks[start:end], label)])
                for label in relation.types
                if label in types.labels
            ]
            enough = [(label, found) for label, found in of_types if len(found) >= least]
            tally["no_type"] += not enough
            for label, found in enough:
                yield SimpleAnswers(query._replace(type_label=label), found)


def pairs_of_queries(answers: Iterable[pa.RecordBatch], family_bits: int) -> Iterator[pa.RecordBatch]:
    """Gives what answers two queries, as rows of PAIRS, each unordered pair once with ``first`` < ``second``.

    Args:
        answers: rows of ANSWERS by subject and query, those of a subject in one batch.
        family_bits: of a query's number; two queries that differ in these alone, such as the types of one property and
            value, make no pair.
    """
    for batch in answers:
        query, size, subject, fact = (batch[name].to_numpy() for name in ANSWERS.names)
        family = query >> family_bits
        place, gap = np.arange(len(subject)), 0
        while len(place):
            gap += 1
            # A subject's rows stand together: a row that has no other of its subject so far behind has none further on.
            place = place[place + gap < len(subject)]
            place = place[subject[place] == subject[place + gap]]
            first = place[family[place] != family[place + gap]]
            second = first + gap
            columns = [query[first], query[second], np.minimum(size[first], size[second])]
            columns += [subject[first], fact[first], fact[second]]
            if len(first):
                yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], schema=PAIRS)


def intersections(pairs: Iterable[pa.RecordBatch], *, least: int = LEAST_ANSWERS) -> Iterator[PairAnswers]:
    """Gives the pairs of queries that share enough answers while neither has all of the other's, by first and second.

    Args:
        pairs: rows of PAIRS by first, second and subject, those of a pair in one batch.
        least: answers that a pair needs.
    """
    for batch in pairs:
        first, second, fewest, subject, first_fact, second_fact = (batch[name].to_numpy() for name in PAIRS.names)
        for start, end in _runs(first, second, least=least):
            if end - start < fewest[start]:
                facts = first_fact[start:end], second_fact[start:end]
                yield PairAnswers(int(first[start]), int(second[start]), subject[start:end], *facts)


def values_of_queries(bases: pa.Table, values: pa.Table) -> pa.Table:
    """Gives the values that answers of queries have, as rows of PAIRED in no order.

    A query's own property makes no composition with it.

    Args:
        bases: rows of BASES.
        values: rows of VALUES; a row may come again.
    """
    rows = bases.join(values, "subject", join_type="inner")
    return rows.filter(pc.not_equal(rows["own"], rows["property"])).select(PAIRED.names).cast(PAIRED)


def compositions(paired: Iterable[pa.RecordBatch], *, least: int = LEAST_ANSWERS) -> Iterator[ValueAnswers]:
    """Gives the queries and properties under which the answers have enough distinct values, by property and query.

    Args:
        paired: rows of PAIRED by property and query, those of both in one batch.
        least: distinct values that a composition needs.
    """
    for batch in paired:
        order = [(name, "ascending") for name in ("property", "query", "subject", "value")]
        table = pa.Table.from_batches([batch]).sort_by(order)
        query, property_, subject = (table[name].to_numpy() for name in ("query", "property", "subject"))
        for start, end in _runs(property_, query, least=least):
            said = table["value"].slice(start, end - start).to_pylist()
            if len(set(said)) >= least:
                pairs = dict.fromkeys(zip(subject[start:end].tolist(), said, strict=True))
                yield ValueAnswers(int(query[start]), f"P{property_[start]}", tuple(pairs))


def _runs(*keys: Numbers, least: int) -> Iterator[tuple[int, int]]:
    """Gives the half-open runs of at least so many rows that are equal in all sorted columns."""
    n_rows = len(keys[0])
    if n_rows:
        is_edge = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        edges = np.concatenate([[0], np.flatnonzero(is_edge) + 1, [n_rows]])
        is_long = np.diff(edges) >= least
        yield from zip(edges[:-1][is_long].tolist(), edges[1:][is_long].tolist(), strict=True)
