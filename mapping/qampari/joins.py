"""Facts -> queries with their answers, over scratch files, so that memory holds a bucket and never all facts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kbsource.spill import BucketSpill
from mapping.qampari.classes import ClassTypes, Numbers
from mapping.qampari.facts import FACTS, VALUES
from mapping.qampari.ordered import N_BUCKETS, open_spill
from mapping.qampari.questions import SimpleQuery
from mapping.qampari.relations import Relations

LEAST_ANSWERS = 5
MOST_SUBJECTS = 3000
"""Queries with more subjects are skipped. Source: the released code of QAMPARI."""

_GATHERED_ROWS = 1 << 16


def _numbers(*names: str) -> pa.Schema:
    return pa.schema([pa.field(name, pa.int64(), nullable=False) for name in names])


_SIZED = _numbers("query", "family", "size", "subject")
_BASES = _numbers("query", "own", "subject")
_PAIRS = _numbers("first", "second", "fewest", "subject")
_PAIRED = pa.schema([*_BASES, *list(VALUES)[1:]])


class SimpleAnswers(NamedTuple):
    """A simple query with the numbers of its answers, ascending."""

    query: SimpleQuery
    subjects: Numbers


class PairAnswers(NamedTuple):
    """Two queries, by their numbers, with the numbers of what answers both, ascending."""

    first: int
    second: int
    subjects: Numbers


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
    scratch: str,
    least: int = LEAST_ANSWERS,
    most: int = MOST_SUBJECTS,
    n_buckets: int = N_BUCKETS,
    tally: Counter[str] | None = None,
) -> Iterator[SimpleAnswers]:
    """Gives the queries of enabled simple relations that have enough answers.

    Of a typed relation each of its types makes a query of the subjects that are of this type; a subject can be in
    several, and one with none of the types is in none. Counts are those of the typed query, except that too many
    subjects of any type skip the property and value as a whole. Of typed queries of one property and value that have
    the same answers all are given.

    Args:
        facts: rows of FACTS, in any order; a fact may come again.
        relations: those that are enabled are asked for.
        types: what the words of types in the facts mean.
        scratch: local folder for scratch files, 40 bytes a fact.
        least: answers that a query needs.
        most: subjects that property and value may have.
        n_buckets: memory holds the facts of one; a value has all of its facts in one.
        tally: counts pairs of property and value as ``too_many_subjects``, and those of typed relations none of whose
            types has enough of them as ``no_type``.

    Returns:
        By bucket of the value, then value, property, and types in the order of the relation.
    """
    with open_spill(os.path.join(scratch, "facts"), FACTS, n_buckets) as spill:
        for batch in facts:
            spill.add(batch, batch["value"].to_numpy() % n_buckets)
        spill.flush()
        for bucket in range(n_buckets):
            yield from _simple_in_bucket(
                spill.read(bucket), relations, types, least, most, Counter() if tally is None else tally
            )


def _simple_in_bucket(
    table: pa.Table, relations: Relations, types: ClassTypes, least: int, most: int, tally: Counter[str]
) -> Iterator[SimpleAnswers]:
    property_, value, subject, *words = (table[name].to_numpy() for name in FACTS.names)
    order = np.lexsort((subject, property_, value))
    keys = np.stack([value, property_, subject])[:, order]
    is_new = np.ones(keys.shape[1], np.bool_)
    is_new[1:] = np.any(keys[:, 1:] != keys[:, :-1], axis=0)
    (value, property_, subject), order = keys[:, is_new], order[is_new]
    masks = np.stack([one[order] for one in words], axis=1)
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


def intersections(
    queries: Iterable[tuple[int, int, Numbers]],
    *,
    scratch: str,
    least: int = LEAST_ANSWERS,
    n_buckets: int = N_BUCKETS,
) -> Iterator[PairAnswers]:
    """Gives the pairs of queries that share enough answers while neither has all of the other's.

    Args:
        queries: number, family and distinct answers of each. Numbers are in the order in which queries are paired; two
            of one family, such as the types of one property and value, are not.
        scratch: local folder for scratch files, 32 bytes an answer and 32 for each answer that two queries share.
        least: answers that a pair needs.
        n_buckets: memory holds one.

    Returns:
        By bucket of the first query, then first, second; each unordered pair once, ``first`` < ``second``.
    """
    with open_spill(os.path.join(scratch, "pairs"), _PAIRS, n_buckets) as pairs:
        with open_spill(os.path.join(scratch, "answers"), _SIZED, n_buckets) as answers:
            sized = (((number, family, len(subjects)), subjects) for number, family, subjects in queries)
            _spill_answers(sized, answers, _SIZED, n_buckets)
            for bucket in range(n_buckets):
                for batch in _gathered(_pairs_in_bucket(answers.read(bucket)), _PAIRS):
                    pairs.add(batch, batch["first"].to_numpy() % n_buckets)
        pairs.flush()
        for bucket in range(n_buckets):
            yield from _intersections_in_bucket(pairs.read(bucket), least)


def _spill_answers(
    queries: Iterable[tuple[tuple[int, ...], Numbers]], spill: BucketSpill, schema: pa.Schema, n_buckets: int
) -> None:
    """Puts answers, each behind what is said of its query, into the bucket of the subject."""
    rows = ((*(np.full(len(subjects), one) for one in said), subjects) for said, subjects in queries)
    for batch in _gathered(rows, schema):
        spill.add(batch, batch["subject"].to_numpy() % n_buckets)
    spill.flush()


def _pairs_in_bucket(table: pa.Table) -> Iterator[tuple[Numbers, ...]]:
    query, family, size, subject = (table[name].to_numpy() for name in _SIZED.names)
    order = np.lexsort((query, subject))
    query, family, size, subject = query[order], family[order], size[order], subject[order]
    place, gap = np.arange(len(subject)), 0
    while len(place):
        gap += 1
        # A subject's rows stand together: a row that has no other of its subject so far behind has none further on.
        place = place[place + gap < len(subject)]
        place = place[subject[place] == subject[place + gap]]
        first = place[family[place] != family[place + gap]]
        second = first + gap
        yield query[first], query[second], np.minimum(size[first], size[second]), subject[first]


def _intersections_in_bucket(table: pa.Table, least: int) -> Iterator[PairAnswers]:
    first, second, fewest, subject = (table[name].to_numpy() for name in _PAIRS.names)
    order = np.lexsort((subject, second, first))
    first, second, fewest, subject = first[order], second[order], fewest[order], subject[order]
    for start, end in _runs(first, second, least=least):
        if end - start < fewest[start]:
            yield PairAnswers(int(first[start]), int(second[start]), subject[start:end])


def compositions(
    queries: Iterable[tuple[int, str, Numbers]],
    values: Iterable[pa.RecordBatch],
    *,
    scratch: str,
    least: int = LEAST_ANSWERS,
    n_buckets: int = N_BUCKETS,
) -> Iterator[ValueAnswers]:
    """Gives the queries and properties under which the answers have enough distinct values.

    Args:
        queries: number, property and distinct answers of each; the property makes no composition with its own query.
        values: rows of VALUES, in any order; a row may come again.
        scratch: local folder for scratch files.
        least: distinct values that a composition needs.
        n_buckets: memory holds one of the answers beside one of the values.

    Returns:
        By bucket of the query, then query, property.
    """
    with open_spill(os.path.join(scratch, "joined"), _PAIRED, n_buckets) as joined:
        with (
            open_spill(os.path.join(scratch, "bases"), _BASES, n_buckets) as answers,
            open_spill(os.path.join(scratch, "values"), VALUES, n_buckets) as of_subjects,
        ):
            based = (((number, int(name[1:])), subjects) for number, name, subjects in queries)
            _spill_answers(based, answers, _BASES, n_buckets)
            for batch in values:
                of_subjects.add(batch, batch["subject"].to_numpy() % n_buckets)
            of_subjects.flush()
            for bucket in range(n_buckets):
                rows = answers.read(bucket).join(of_subjects.read(bucket), "subject", join_type="inner")
                rows = rows.filter(pc.not_equal(rows["own"], rows["property"]))
                for batch in rows.select(_PAIRED.names).cast(_PAIRED).to_batches():
                    joined.add(batch, batch["query"].to_numpy() % n_buckets)
        joined.flush()
        for bucket in range(n_buckets):
            yield from _compositions_in_bucket(joined.read(bucket), least)


def _compositions_in_bucket(table: pa.Table, least: int) -> Iterator[ValueAnswers]:
    table = table.sort_by([(name, "ascending") for name in ("query", "property", "subject", "value")])
    query, property_, subject = (table[name].to_numpy() for name in ("query", "property", "subject"))
    for start, end in _runs(query, property_, least=least):
        said = table["value"].slice(start, end - start).to_pylist()
        if len(set(said)) >= least:
            pairs = dict.fromkeys(zip(subject[start:end].tolist(), said, strict=True))
            yield ValueAnswers(int(query[start]), f"P{property_[start]}", tuple(pairs))


def _gathered(parts: Iterable[tuple[Numbers, ...]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Gives rows in batches of some size, whose parts can be few rows each."""
    pending: list[tuple[Numbers, ...]] = []
    n_rows = 0
    for part in parts:
        pending.append(part)
        n_rows += len(part[0])
        if n_rows >= _GATHERED_ROWS:
            yield _batch(pending, schema)
            pending, n_rows = [], 0
    if pending:
        yield _batch(pending, schema)


def _batch(parts: Sequence[tuple[Numbers, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(np.concatenate(column)) for column in zip(*parts, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _runs(*keys: Numbers, least: int) -> Iterator[tuple[int, int]]:
    """Gives the half-open runs of at least so many rows that are equal in all sorted columns."""
    n_rows = len(keys[0])
    if n_rows:
        is_edge = np.any([one[1:] != one[:-1] for one in keys], axis=0)
        edges = np.concatenate([[0], np.flatnonzero(is_edge) + 1, [n_rows]])
        is_long = np.diff(edges) >= least
        yield from zip(edges[:-1][is_long].tolist(), edges[1:][is_long].tolist(), strict=True)
