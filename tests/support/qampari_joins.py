"""QAMPARI's joins in memory, and what the job does batch by batch over whole releases, for tests of what comes out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from kbsource.columns import rows_of
from kbsource.runtime.chunks import rows_batch
from kbsource.runtime.database import connected, insert
from kbsource.wikidata.kind import WikidataTables
from mapping.qampari import classes, joins, statements
from mapping.qampari.classes import ClassTypes, ItemSet, Numbers
from mapping.qampari.joins import JoinRules
from mapping.qampari.names import TERM_COLUMNS, TERMS, ItemPages, Name, ValueKind, item_terms, name_items
from mapping.qampari.questions import FAMILY_BITS, QueryNumbers, Relations, SimpleQuery
from mapping.qampari.selection import AnswerFilter

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


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
    rows = whole(tables, "statements", ("property_id", "rank", "value_type", "value"))
    uses = classes.class_uses(rows, {item for items in named.values() for item in items})
    return classes.choose_classes(labels, named, uses, given=given)


def class_types(tables: WikidataTables, chosen: Mapping[str, str]) -> ClassTypes:
    """The types of all classes."""
    closure = tables.batches("classes", ("class_id", "superclass_id"))
    return classes.class_types([classes.pairs_of_classes(batch, chosen) for batch in closure], chosen)


def simple_facts(tables: WikidataTables, property_ids: Collection[str], types: ClassTypes) -> list[pa.RecordBatch]:
    """The facts of some properties."""
    return [statements.simple_facts(whole(tables, "statements", statements.STATEMENT_COLUMNS), property_ids, types)]


def values_of(
    tables: WikidataTables, subjects: Numbers, property_ids: Collection[str], **options: Any
) -> list[pa.RecordBatch]:
    """The values that some subjects have."""
    items = ItemSet()
    items.add(subjects)
    return [
        statements.values_of(whole(tables, "statements", statements.STATEMENT_COLUMNS), items, property_ids, **options)
    ]


@contextmanager
def joined(rules: JoinRules, *texts: str, threads: int = 1, **tables: pa.Table) -> Iterator[DuckDBPyConnection]:
    """A database with tables, after the SQL of joins was run in it."""
    with connected(threads=threads) as db:
        for name, table in tables.items():
            insert(db, name, table.to_batches(), table.schema)
        db.execute(rules.macros())
        for text in texts:
            db.execute(rules.sql(text))
        yield db


@contextmanager
def one_database() -> Iterator[None]:
    """Lets the joins of one thread use the same database, from which their tables are removed: opening one takes longer
    than such a small join."""
    open_database = connected

    @contextmanager
    def again(*, threads: int) -> Iterator[DuckDBPyConnection]:
        if threads > 1:
            with open_database(threads=threads) as db:
                yield db
            return
        shared.begin()
        try:
            yield shared
        finally:
            shared.rollback()

    with connected(threads=1) as shared, mock.patch(f"{__name__}.connected", again):
        yield


def _rules(least: int, most_subjects: int = 3000) -> JoinRules:
    return JoinRules(AnswerFilter(least, 1 << 40, 0), most_subjects, True)


def simple_answers(
    given: Iterable[pa.RecordBatch], relations: Relations, types: ClassTypes, *, least: int, most: int, threads: int = 1
) -> list[tuple[SimpleQuery, list[int]]]:
    """The simple queries that have enough answers, of facts in any order."""
    numbers = QueryNumbers(relations.wanted_types)
    tables = {
        "facts": pa.Table.from_batches(given, statements.FACTS),
        "relations": _table(joins.relation_rows(relations), joins.RELATIONS),
        "relation_types": _table(joins.relation_type_rows(relations, numbers, types), joins.RELATION_TYPES),
    }
    with joined(_rules(least, most), joins.FIND_QUERIES, threads=threads, **tables) as db:
        rows = db.execute(joins.ALL_ANSWERS).fetchall()
    return [(numbers.query(query), [subject for _, subject in own]) for query, own in groupby(rows, key=itemgetter(0))]


def intersections(
    queries: Iterable[tuple[int, int, Iterable[int]]], *, least: int, threads: int = 1
) -> list[tuple[int, int, list[int]]]:
    """The pairs of queries that share enough answers.

    Args:
        queries: number, family and answers of each.
        least: answers of an intersection.
        threads: of the database.
    """
    own = {family << FAMILY_BITS | number % (1 << FAMILY_BITS): (number, found) for number, family, found in queries}
    answers = _table(
        ((query, subject, query + subject, True) for query, (_, found) in own.items() for subject in found), joins.BASES
    )
    decided = _table(((query, 0, 0, 0, len({*found}), "kept") for query, (_, found) in own.items()), joins.DECIDED)
    with joined(_rules(least), joins.CROSS_QUERIES, threads=threads, validated=answers, decided=decided) as db:
        rows = db.execute(joins.INTERSECTION_ANSWERS).fetchall()
    assert all((row[3], row[4]) == (row[0] + row[2], row[1] + row[2]) for row in rows)
    return [
        (own[first][0], own[second][0], [row[2] for row in pair])
        for (first, second), pair in groupby(rows, key=itemgetter(0, 1))
    ]


def compositions(
    queries: Iterable[tuple[int, str, Iterable[int]]],
    values: Iterable[tuple[int, int, str]],
    *,
    kinds: Mapping[str, ValueKind] | None = None,
    least: int,
    threads: int = 1,
) -> list[tuple[int, str, tuple[tuple[int, str], ...]]]:
    """The queries and properties under which the answers have enough distinct values.

    Args:
        queries: number, property and answers of each.
        values: subject, property and value.
        kinds: kinds of values by property; otherwise texts.
        least: distinct values of a composition.
        threads: of the database.
    """
    own = {SimpleQuery(name, f"Q{number + 1}"): (number, found) for number, name, found in queries}
    numbers = QueryNumbers(())
    bases = _table(
        ((numbers.number(query), subject, 0, True) for query, (_, found) in own.items() for subject in found),
        joins.BASES,
    )
    said = pa.Table.from_batches([joins.said_values(rows_batch(values, statements.VALUES), kinds or {})])
    with joined(_rules(least), joins.COMPOSE, threads=threads, bases=bases, said=said) as db:
        facts = {
            fact: (subject, value) for fact, subject, _, value in db.execute(joins.VALUE_FACTS_IN_ORDER).fetchall()
        }
        rows = db.execute(joins.COMPOSED_PAIRS).fetchall()
    return [
        (own[numbers.query(query)][0], f"P{property_}", tuple(facts[row[3]] for row in pairs))
        for (query, property_), pairs in groupby(rows, key=itemgetter(0, 1))
    ]


def widest(queries: Iterable[tuple[str, Iterable[int]]], breadths: Mapping[str, int], *, threads: int = 1) -> set[str]:
    """The types of queries about one thing that have the same answers as one with a more specific type."""
    numbers, answers = QueryNumbers(breadths), dict(queries)
    number_of = {label: numbers.number(SimpleQuery("P1", "Q1", label)) for label in answers}
    validated = ((number_of[label], subject, 0, True) for label, found in answers.items() for subject in found)
    decided = ((number, 0, 0, 0, 0, "kept") for number in number_of.values())
    tables = {
        "validated": _table(validated, joins.BASES),
        "decided": _table(decided, joins.DECIDED),
        "breadths": _table(
            ((numbers.type_place(label), breadth) for label, breadth in breadths.items()), joins.BREADTHS
        ),
    }
    with joined(_rules(1), joins.WIDER_QUERIES, threads=threads, **tables) as db:
        rows = db.execute("select query from decided where outcome = 'wider_type'").fetchall()
    labels = {number: label for label, number in number_of.items()}
    return {labels[number] for (number,) in rows}


def names_of(tables: WikidataTables, items: Numbers, pages: ItemPages) -> dict[int, Name]:
    """What items are called, by number."""
    needed = ItemSet()
    needed.add(items)
    terms = pa.Table.from_batches([item_terms(batch, needed) for batch in tables.batches("items", TERM_COLUMNS)], TERMS)
    return {
        row.item: row
        for batch in name_items(items, terms, pages)
        for row in rows_of(batch, Name)
        if row.item is not None
    }


def _table(rows: Iterable[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([rows_batch(rows, schema)])
