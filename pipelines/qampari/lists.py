"""The tables of list pages: selects usable ones, and makes their facts and questions, part by part of the release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
import pyarrow as pa

from mapping.qampari.evidence import Sought
from mapping.qampari.list_tables import ListTable
from mapping.qampari.names import ItemPages
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, QueryRow, Question
from mapping.qampari.selection import KEPT
from mapping.qampari.table_questions import TableFact, Unkept, make_questions, table_facts, value_names
from pipelines.primitives.group_map import GroupWork
from pipelines.qampari.facts import FactWriter, count_found, proofs_of, tried_facts
from pipelines.qampari.lookups import proof_texts
from pipelines.qampari.plan import ANSWER_PAGE, ENTITY_PAGE, FACT_BITS, FOUND, PROOFS, WORDS, QampariPlan
from pipelines.qampari.simple import write_query, write_question

KIND = 5
"""Kinds of considered queries, in table order."""
_PAGE_BITS = 32


def make_list_facts(work: GroupWork, *, plan: QampariPlan) -> None:
    """Makes the facts of the tables of a part. Input: ``lists``. Outputs: ``OF_FACTS``."""
    facts = FactWriter(work, plan)
    for tables in _tables(work):
        for table_fact in table_facts(tables):
            _add(table_fact, facts)
    facts.close()


def _add(fact: TableFact, facts: FactWriter) -> None:
    own = Sought(fact.names)
    if fact.column is None:
        facts.add(None, (WORDS, fact.page_id, own))
        return
    # Without links: the rule requires the name of a value in a sentence.
    of_key = Sought(value_names(fact.text))
    facts.add(None, (ANSWER_PAGE, fact.page_id, own), (ENTITY_PAGE, fact.value_page_id, of_key))


def settle_tables(work: GroupWork, *, plan: QampariPlan) -> None:
    """Makes the questions about the tables of a part that the pages of their rows prove; the first sentence is the
    proof.

    Inputs: ``lists``, ``facts``, ``found``. Outputs: ``OF_QUESTIONS``.
    """
    found = work.table("found", FOUND)
    is_found = np.zeros(sum(batch.num_rows for batch in work.rows("facts")), np.bool_)
    is_found[count_found(work, found)] = True
    tried = tried_facts(work, is_found, found)
    proofs = pa.Table.from_batches(proofs_of(tried.to_batches(), None, 0, work.counts), PROOFS)
    proved = dict(zip(proofs["fact"].to_pylist(), proof_texts(proofs), strict=True))
    # One pass per subset: questions of the second subset come after all of the first, and are not held in memory.
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
    work: GroupWork, proved: Mapping[int, ProofText], plan: QampariPlan
) -> Iterator[tuple[int, list[Question], list[Unkept]]]:
    """Yields the position of each page, its questions, and those that are not made."""
    options = plan.options
    number = work.group << FACT_BITS
    for page, tables in enumerate(_tables(work)):
        found = {}
        for fact in table_facts(tables):
            if number in proved:
                found[fact.key] = proved[number]
            number += 1
        redirects = _redirects(tables, plan.pages.of_items()) if options.redirect_aliases else None
        made = make_questions(
            tables,
            found,
            seed=options.seed,
            keep=options.answer_filter,
            redirects=redirects,
            share_of=options.table_rows,
        )
        yield work.group << _PAGE_BITS | page, *made


def _tables(work: GroupWork) -> Iterator[list[ListTable]]:
    """Yields the tables of each page."""
    decode = msgspec.json.Decoder(list[ListTable]).decode
    for batch in work.rows("lists"):
        for line in batch["tables"].to_pylist():
            yield decode(line)


def _redirects(tables: list[ListTable], pages: ItemPages) -> Mapping[int, tuple[str, ...]]:
    ids = {row.key.page_id for table in tables for row in table.rows if row.key.page_id is not None}
    return {page_id: pages.redirects_to(page_id) for page_id in sorted(ids)}


def _considered(query: Question | Unkept, outcome: str) -> QueryRow:
    n_answers, n_validated = query.n_answers, query.n_validated
    return QueryRow(query.subset, query.key, (), (), None, n_answers, n_answers, n_validated, n_validated, outcome)
