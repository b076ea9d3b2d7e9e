"""The tables of list pages: which are usable, their facts, and their questions, part by part of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from mapping.qampari.evidence import Sought
from mapping.qampari.list_tables import LinkedText, ListRow, ListTable
from mapping.qampari.names import ItemPages
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, QueryRow, Question
from mapping.qampari.selection import KEPT
from mapping.qampari.table_questions import TableFact, Unkept, make_questions, table_facts, value_names
from pipelines.primitives.group_map import GroupWork
from pipelines.qampari.facts import FactWriter, count_found, proofs_of, tried_facts
from pipelines.qampari.lookups import proof_texts
from pipelines.qampari.plan import FACT_BITS, FOUND, PROOFS, Plan
from pipelines.qampari.simple import write_query, write_question

KIND = 5
"""Of considered queries, in the order of the table."""
_PAGE_BITS = 32


def make_facts(work: GroupWork, *, plan: Plan) -> None:
    """Makes the facts of the tables of a part. Input: ``lists``. Outputs: those of ``OF_FACTS``."""
    facts = FactWriter(work, plan)
    for tables in _tables(work):
        for table_fact in table_facts(tables):
            _add(table_fact, facts)
    facts.close()


def _add(fact: TableFact, facts: FactWriter) -> None:
    if fact.column is None:
        facts.add_words(fact.page_id, fact.names)
        return
    # Without links: the name of a value in a sentence, as the rule has it.
    first, second = Sought(value_names(fact.text)), Sought(fact.names)
    facts.add_named(fact.page_id, first, fact.value_page_id, second)


def settle_tables(work: GroupWork, *, plan: Plan) -> None:
    """Makes the questions about the tables of a part that the pages of their rows prove: the first sentence does.

    Inputs: ``lists``, ``facts``, ``found``. Outputs: ``OF_QUESTIONS``.
    """
    found = work.table("found", FOUND)
    is_found = np.zeros(sum(batch.num_rows for batch in work.rows("facts")), np.bool_)
    is_found[count_found(work, found)] = True
    tried = tried_facts(work, is_found, found)
    proofs = pa.Table.from_batches(proofs_of(tried.to_batches(), None, 0, work.counts), PROOFS)
    proved = dict(zip(proofs["fact"].to_pylist(), proof_texts(proofs), strict=True))
    # Once for each subset: what a page has of the second comes behind all of the first, and is not held till then.
    for subset in (TABLE_SIMPLE, TABLE_COMPOSITION):
        for place, kept, unkept in _made(work, proved, plan):
            for at, question in enumerate(kept):
                if question.subset == subset:
                    write_question(work, question, place, at)
            if subset == TABLE_SIMPLE:
                rows = [_considered(query, KEPT) for query in kept]
                rows += [_considered(query, query.reason) for query in unkept]
                for at, row in enumerate(rows):
                    write_query(work, row, KIND, place, at)


def _made(
    work: GroupWork, proved: Mapping[int, ProofText], plan: Plan
) -> Iterator[tuple[int, list[Question], list[Unkept]]]:
    """The questions of each page, behind its place, and those that are not made."""
    options = plan.options
    number = work.group << FACT_BITS
    for page, tables in enumerate(_tables(work)):
        found = {}
        for fact in table_facts(tables):
            if number in proved:
                found[fact.key] = proved[number]
            number += 1
        redirects = _redirects(tables, plan.pages.of_items()) if options.redirect_aliases else None
        made = make_questions(tables, found, seed=options.seed, keep=options.answer_filter, redirects=redirects)
        yield work.group << _PAGE_BITS | page, *made


def _tables(work: GroupWork) -> Iterator[list[ListTable]]:
    """The tables of each page."""
    for batch in work.rows("lists"):
        for line in batch["tables"].to_pylist():
            yield [_table_of(values) for values in orjson.loads(line)]


def _table_of(values: list[Any]) -> ListTable:
    page_id, title, name, numbers, columns, key_column, value_columns, rows = values
    read = tuple(ListRow(LinkedText(*key), tuple(LinkedText(*cell) for cell in cells)) for key, cells in rows)
    return ListTable(page_id, title, name, tuple(numbers), tuple(columns), key_column, tuple(value_columns), read)


def _redirects(tables: list[ListTable], pages: ItemPages) -> Mapping[int, tuple[str, ...]]:
    ids = {row.key.page_id for table in tables for row in table.rows if row.key.page_id is not None}
    return {page_id: pages.redirects_to(page_id) for page_id in sorted(ids)}


def _considered(query: Question | Unkept, outcome: str) -> QueryRow:
    n_answers, n_validated = query.n_answers, query.n_validated
    return QueryRow(query.subset, query.key, (), (), None, n_answers, n_answers, n_validated, n_validated, outcome)
