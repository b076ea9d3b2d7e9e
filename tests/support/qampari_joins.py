"""The kernels of QAMPARI's joins over whole releases and in memory, for tests of what comes out of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kbsource.wikidata.kind import WikidataTables
from mapping.qampari import classes, statements
from mapping.qampari import statements as facts
from mapping.qampari.classes import ClassTypes, ItemSet, Numbers
from mapping.qampari.names import NAMES, TERM_COLUMNS, TERMS, ItemNames, ItemPages, item_terms, name_items
from mapping.qampari.questions import FAMILY_BITS, Relations, SimpleQuery
from mapping.qampari.statements import ANSWERS, BASES, PAIRS, PairAnswers, ValueAnswers


def whole(tables: WikidataTables, table: str, columns: Sequence[str]) -> pa.RecordBatch:
    """A table of a release as one batch."""
    return pa.concat_batches(list(tables.batches(table, columns)))


def find_classes(
    tables: WikidataTables, labels: Sequence[str], *, given: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The class that each label means."""
    named: defaultdict[str, set[str]] = defaultdict(set)
    for item, label in classes.labelled_items(whole(tables, "items", ("item_id", "labels")), labels):
        named[label].add(item)
    statements = whole(tables, "statements", ("property_id", "rank", "value_type", "value"))
    uses = classes.class_uses(statements, {item for items in named.values() for item in items})
    return classes.choose_classes(labels, named, uses, given=given)


def class_types(tables: WikidataTables, chosen: Mapping[str, str]) -> ClassTypes:
    """The types of all classes."""
    closure = tables.batches("classes", ("class_id", "superclass_id"))
    return classes.class_types([classes.pairs_of_classes(batch, chosen) for batch in closure], chosen)


def simple_facts(tables: WikidataTables, property_ids: Collection[str], types: ClassTypes) -> list[pa.RecordBatch]:
    """The facts of some properties."""
    return [facts.simple_facts(whole(tables, "statements", facts.STATEMENT_COLUMNS), property_ids, types)]


def values_of(
    tables: WikidataTables, subjects: Numbers, property_ids: Collection[str], **options: Any
) -> list[pa.RecordBatch]:
    """The values that some subjects have."""
    items = ItemSet()
    items.add(subjects)
    return [facts.values_of(whole(tables, "statements", facts.STATEMENT_COLUMNS), items, property_ids, **options)]


def simple_answers(
    given: Iterable[pa.RecordBatch], relations: Relations, types: ClassTypes, **options: Any
) -> list[tuple[SimpleQuery, Numbers]]:
    """The simple queries that have enough answers, of facts in any order."""
    rows = _sorted(pa.Table.from_batches(given, facts.FACTS), "value", "property", "subject")
    return list(statements.simple_answers([rows], relations, types, **options))


def intersections(queries: Iterable[tuple[int, int, Numbers]], **options: Any) -> Iterator[PairAnswers]:
    """The pairs of queries that share enough answers.

    Args:
        queries: number, family and answers of each; the family is no more than the number, and grows with it.
        options: of the kernel.
    """
    rows = [
        (family << FAMILY_BITS | number - family, len(subjects), subject, 0)
        for number, family, subjects in queries
        for subject in subjects.tolist()
    ]
    answers = _sorted(_table(rows, ANSWERS), "subject", "query")
    pairs = pa.Table.from_batches(statements.pairs_of_queries([answers], FAMILY_BITS), PAIRS)
    for intersection in statements.intersections([_sorted(pairs, "first", "second", "subject")], **options):
        yield intersection._replace(first=_number(intersection.first), second=_number(intersection.second))


def _number(query: int) -> int:
    return (query >> FAMILY_BITS) + query % (1 << FAMILY_BITS)


def compositions(
    queries: Iterable[tuple[int, str, Numbers]], values: Iterable[pa.RecordBatch], **options: Any
) -> list[ValueAnswers]:
    """The queries and properties under which the answers have enough distinct values.

    Args:
        queries: number, property and answers of each.
        values: rows of VALUES.
        options: of the kernel.
    """
    rows = [(number, int(name[1:]), subject) for number, name, subjects in queries for subject in subjects.tolist()]
    paired = statements.values_of_queries(_table(rows, BASES), pa.Table.from_batches(values, facts.VALUES))
    return list(statements.compositions([_sorted(paired, "query", "property", "subject")], **options))


def names_of(tables: WikidataTables, items: Numbers, pages: ItemPages) -> ItemNames:
    """What items are called."""
    needed = ItemSet()
    needed.add(items)
    terms = [item_terms(batch, needed) for batch in tables.batches("items", TERM_COLUMNS)]
    named = pa.Table.from_batches(name_items(items, pa.Table.from_batches(terms, TERMS), pages), NAMES)

    def take(wanted: Numbers) -> pa.RecordBatch:
        return named.take(pa.array(np.searchsorted(items, wanted))).combine_chunks().to_batches()[0]

    return ItemNames(take)


def _table(rows: list[tuple[int, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.Table.from_arrays([pa.array(column, pa.int64()) for column in columns], schema=schema)


def _sorted(table: pa.Table, *names: str) -> pa.RecordBatch:
    ordered = table.sort_by([(name, "ascending") for name in names]).combine_chunks()
    batches = ordered.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
