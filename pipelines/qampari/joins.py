"""The joins of QAMPARI: each function runs SQL of ``mapping.qampari.joins`` over the tables of the steps before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kbsource.runtime.chunks import rows_batch
from kbsource.runtime.database import insert, ordered_batches
from kbsource.runtime.regroup import whole_runs
from mapping.qampari import joins
from mapping.qampari.classes import Numbers, type_breadths
from mapping.qampari.names import NAMES, TERMS, name_items
from pipelines.primitives.join_tables import Join, TableJoin
from pipelines.qampari.lookups import read_types
from pipelines.qampari.plan import ITEMS, TRIED, WANTED, QampariPlan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LOOKS_AT_ONCE = 4096
_SENTENCES_AT_ONCE = 1 << 12
"""Sentences that are judged together; all sentences of a fact are."""
_PLACES = pa.schema([pa.field("page_id", pa.int64()), pa.field("position", pa.int64())])


def run_sql(db: DuckDBPyConnection, text: str, plan: QampariPlan) -> None:
    """Runs statements with the options of a job."""
    db.execute(plan.rules.sql(text))


def rows_of_query(
    db: DuckDBPyConnection, query: str, schema: pa.Schema, plan: QampariPlan, *, n_rows: int = 1 << 16
) -> Iterator[pa.RecordBatch]:
    """Reads the rows of a query with a total order."""
    return ordered_batches(db, plan.rules.sql(query), schema, n_rows=n_rows)


def _numbers(db: DuckDBPyConnection, query: str, plan: QampariPlan) -> Numbers:
    """Returns a column of numbers."""
    (column,) = db.sql(plan.rules.sql(query)).fetchnumpy().values()
    numbers: Numbers = np.asarray(column, np.int64)
    return numbers


def _insert_rows(db: DuckDBPyConnection, name: str, rows: Iterable[Sequence[Any]], schema: pa.Schema) -> None:
    insert(db, name, [rows_batch(rows, schema)], schema)


def _write(
    work: TableJoin, name: str, db: DuckDBPyConnection, query: str, schema: pa.Schema, plan: QampariPlan
) -> None:
    work.write(name, rows_of_query(db, query, schema, plan))


def insert_types(db: DuckDBPyConnection, plan: QampariPlan, types_path: str) -> None:
    """Inserts the types of relations."""
    rows = joins.relation_type_rows(plan.relations, plan.numbers, read_types(types_path))
    _insert_rows(db, "relation_types", rows, joins.RELATION_TYPES)


def find_queries(work: TableJoin, types_path: str, *, plan: QampariPlan) -> None:
    """Makes simple queries. Input: ``facts``. Outputs: ``queries``; ``answers``; ``items`` without duplicates."""
    with work.open() as db:
        db.execute(plan.rules.macros())
        _insert_rows(db, "relations", joins.relation_rows(plan.relations), joins.RELATIONS)
        insert_types(db, plan, types_path)
        run_sql(db, joins.FIND_QUERIES, plan)
        _write(work, "queries", db, joins.ALL_QUERIES, joins.QUERIES, plan)
        _write(work, "answers", db, joins.ALL_ANSWERS, joins.QUERY_ANSWERS, plan)
        _write(work, "items", db, joins.ANSWERED_ITEMS, ITEMS, plan)
        ((n_typed, n_no_type, n_too_many),) = db.execute(plan.rules.sql(joins.SKIPPED)).fetchall()
    if n_typed:
        work.counts["no_type"] = n_no_type
    if n_too_many:
        work.counts["too_many_subjects"] = n_too_many


FIND_QUERIES = Join(find_queries, {"queries": joins.QUERIES, "answers": joins.QUERY_ANSWERS, "items": ITEMS})


def state_answers(work: TableJoin, *, plan: QampariPlan) -> None:
    """Makes the facts of simple queries, each once, and the texts to search pages for.

    Inputs: ``answers``; ``named``, the items that Wikidata has. Outputs: ``answers`` with facts; ``facts``;
    ``unlisted``, the names of the other items; ``wanted``.
    """
    with work.open() as db:
        db.execute(plan.rules.macros())
        _name_unlisted(work, db, "named", joins.UNLISTED_ITEMS, plan)
        run_sql(db, joins.NUMBER_FACTS, plan)
        _write(work, "answers", db, joins.NUMBERED_ANSWERS, joins.ANSWERS, plan)
        relations = plan.relations.simple.values()
        _state(
            work,
            db,
            [(relation.property_id, relation.hypothesis("{entity}", "{value}")) for relation in relations],
            plan,
        )


STATE_ANSWERS = Join(
    state_answers, {"answers": joins.ANSWERS, "facts": joins.FACT_ROWS, "unlisted": NAMES, "wanted": WANTED}
)


def state_values(work: TableJoin, *, plan: QampariPlan) -> None:
    """Makes the facts of compositions, each once, and the texts to search pages for.

    Inputs: ``facts``, ``value_names``; ``named`` and ``unlisted``; ``named_values``, the items that Wikidata has.
    Outputs: ``facts``; ``unlisted``, the names of the other items; ``wanted``.
    """
    with work.open() as db:
        db.execute(plan.rules.macros())
        db.execute("insert into named from unlisted")
        _name_unlisted(work, db, "named_values", joins.UNLISTED_VALUES, plan)
        run_sql(db, joins.CLAIM_VALUES, plan)
        relations = plan.relations.composition.values()
        _state(work, db, [(relation.property_id, relation.sentence) for relation in relations], plan)


STATE_VALUES = Join(state_values, {"facts": joins.FACT_ROWS, "unlisted": NAMES, "wanted": WANTED})


def _name_unlisted(work: TableJoin, db: DuckDBPyConnection, table: str, query: str, plan: QampariPlan) -> None:
    """Names items that Wikidata lacks by their pages."""
    batches = list(name_items(_numbers(db, query, plan), TERMS.empty_table(), plan.pages.of_items()))
    insert(db, table, batches, NAMES)
    work.write("unlisted", batches)


def _state(work: TableJoin, db: DuckDBPyConnection, sentences: Sequence[tuple[str, str]], plan: QampariPlan) -> None:
    """Writes the facts of ``claims`` and what to search pages for."""
    _insert_rows(db, "wordings", joins.wording_rows(sentences), joins.WORDINGS)
    _write(work, "facts", db, joins.STATED_FACTS, joins.FACT_ROWS, plan)
    page_ids = _numbers(db, joins.PAGE_IDS, plan)
    positions, is_there = plan.pages.of_items().positions(page_ids)
    places = pa.RecordBatch.from_arrays([pa.array(page_ids[is_there]), pa.array(positions)], schema=_PLACES)
    insert(db, "places", [places], _PLACES)
    ((work.counts["all"],),) = db.execute("select count(*) from facts").fetchall()
    write_looks(work, rows_of_query(db, joins.LOOKS, WANTED, plan, n_rows=_LOOKS_AT_ONCE), plan)


def write_looks(work: TableJoin, looks: Iterable[pa.RecordBatch], plan: QampariPlan) -> None:
    """Writes rows of WANTED, by position, as one chunk for the pages that are read together; counts ``searches``."""
    work.counts["searches"] = 0
    for group, own in by_group(looks, plan.pages.together):
        work.write("wanted", _counted(work, own), number=group)


def _counted(work: TableJoin, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        work.counts["searches"] += batch.num_rows
        yield batch


def count_timed_out(work: TableJoin) -> None:
    """Counts the searches that ended their process, given the table ``found``."""
    work.counts["timed_out"] += sum(report.facts["timed_out"] for report in work.reports("found"))


def by_group(
    batches: Iterable[pa.RecordBatch], group_of: Callable[[pa.RecordBatch], Numbers]
) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Iterates over the groups, each with its batches, given batches whose rows are ordered by group."""
    for group, own in groupby(_parts(batches, group_of), key=itemgetter(0)):
        yield group, (part for _, part in own)


def _parts(
    batches: Iterable[pa.RecordBatch], group_of: Callable[[pa.RecordBatch], Numbers]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    for batch in batches:
        groups = group_of(batch)
        for start, end in pairwise(np.flatnonzero(np.diff(groups, prepend=-1, append=-1)).tolist()):
            yield int(groups[start]), batch.slice(start, end - start)


def choose_answers(work: TableJoin, *, plan: QampariPlan) -> None:
    """Chooses the sentences that a model should judge: for facts that a question may need.

    Inputs: ``answers``, ``facts``, ``found``. Outputs: ``counted``, ``tried``.
    """
    _choose(work, plan, joins.COUNT_FOUND, "counted", joins.COUNTED_QUERIES)


CHOOSE_ANSWERS = Join(choose_answers, {"counted": joins.COUNTED, "tried": TRIED})


def choose_values(work: TableJoin, *, plan: QampariPlan) -> None:
    """Chooses the sentences that a model should judge.

    Inputs: ``pairs``, ``bases``, ``facts``, ``keys``, ``found``. Outputs: ``composed``, ``tried``.
    """
    _choose(work, plan, joins.COUNT_VALUES_FOUND, "composed", joins.COMPOSED_QUERIES)


CHOOSE_VALUES = Join(choose_values, {"composed": joins.COMPOSED, "tried": TRIED})


def _choose(work: TableJoin, plan: QampariPlan, sql: str, name: str, queries: str) -> None:
    """Writes queries with the numbers of answers found, and the sentences of ``needed`` facts: a chunk for some of them
    with all of their sentences.

    Args:
        sql: makes the table ``needed``.
        name: the output for the queries.
        queries: selects them.
    """
    count_timed_out(work)
    with work.open() as db:
        db.execute(plan.rules.macros())
        run_sql(db, sql, plan)
        work.write(name, rows_of_query(db, queries, work.schema(name), plan))
        ((n_found, n_candidates, n_needed),) = db.execute(joins.SENTENCE_COUNTS).fetchall()
        work.counts.update(found=n_found, candidates=n_candidates)
        if n_needed:
            work.counts.update(facts=n_needed, judged=0, unjudged=0, proved=0)
        rows = rows_of_query(db, joins.TRIED_SENTENCES, TRIED, plan, n_rows=_SENTENCES_AT_ONCE)
        for number, batch in enumerate(whole_runs(rows, ("fact",))):
            work.write("tried", [batch], number=number)


def decide_queries(work: TableJoin, types_path: str, *, plan: QampariPlan) -> None:
    """Decides the simple queries, and finds intersections of the accepted ones.

    Inputs: ``answers``, ``counted``, ``proved``. Outputs: ``decided``; ``bases``, the answers for compositions;
    ``items``, the subjects of these; ``crossed``.
    """
    for report in work.reports("proved"):
        work.counts.update(report.counts)
    with work.open() as db:
        db.execute(plan.rules.macros())
        run_sql(db, joins.DECIDE_QUERIES, plan)
        if plan.options.most_specific_types:
            breadths = type_breadths(read_types(types_path)).items()
            rows = ((plan.numbers.type_place(label), breadth) for label, breadth in breadths)
            _insert_rows(db, "breadths", rows, joins.BREADTHS)
            run_sql(db, joins.WIDER_QUERIES, plan)
        run_sql(db, joins.CROSS_QUERIES, plan)
        _write(work, "decided", db, joins.DECIDED_QUERIES, joins.DECIDED, plan)
        _write(work, "bases", db, joins.BASE_ANSWERS, joins.BASES, plan)
        _write(work, "items", db, joins.BASE_SUBJECTS, ITEMS, plan)
        _write(work, "crossed", db, joins.INTERSECTION_ANSWERS, joins.CROSSED, plan)


DECIDE_QUERIES = Join(
    decide_queries, {"decided": joins.DECIDED, "bases": joins.BASES, "items": ITEMS, "crossed": joins.CROSSED}
)


def compose(work: TableJoin, *, plan: QampariPlan) -> None:
    """Makes compositions.

    Inputs: ``bases``, ``said``. Outputs: ``pairs``, ``facts``, ``keys``, ``value_names``; ``items``, the values.
    """
    with work.open() as db:
        db.execute(plan.rules.macros())
        run_sql(db, joins.COMPOSE, plan)
        _write(work, "pairs", db, joins.COMPOSED_PAIRS, joins.PAIRS, plan)
        _write(work, "facts", db, joins.VALUE_FACTS_IN_ORDER, joins.VALUE_FACTS, plan)
        _write(work, "keys", db, joins.KEYS_OF_FACTS, joins.KEYS, plan)
        _write(work, "value_names", db, joins.VALUE_NAMES_IN_ORDER, joins.VALUE_NAMES, plan)
        _write(work, "items", db, joins.VALUE_ITEMS, ITEMS, plan)


COMPOSE = Join(
    compose,
    {
        "pairs": joins.PAIRS,
        "facts": joins.VALUE_FACTS,
        "keys": joins.KEYS,
        "value_names": joins.VALUE_NAMES,
        "items": ITEMS,
    },
)


def decide_compositions(db: DuckDBPyConnection, plan: QampariPlan, types_path: str) -> None:
    """Decides compositions and intersections, and adds the values by which the considered queries are ordered.

    Tables: the outputs of all joins; see ``steps.QampariSteps``.
    """
    db.execute(plan.rules.macros())
    db.execute("insert into named from unlisted")
    db.execute("insert into named_values from unlisted_values")
    insert_types(db, plan, types_path)
    run_sql(db, joins.DECIDE_COMPOSITIONS, plan)
