"""Intersections: what answers two simple queries."""

from __future__ import annotations

from collections.abc import Sequence

from kbsource.runtime.chunks import Key, Stored
from kbsource.runtime.regroup import whole_runs
from mapping.qampari.facts.joins import intersections, pairs_of_queries
from mapping.qampari.question_rows import QueryRow
from mapping.qampari.questions import FAMILY_BITS, INTERSECTION, IntersectionQuery
from mapping.qampari.selection import KEPT
from pipelines.primitives.group_map import GroupWork
from pipelines.primitives.lookup import Lookup
from pipelines.qampari.facts import groups_of_facts
from pipelines.qampari.lookups import proof_texts, read_ranks
from pipelines.qampari.names import item_names
from pipelines.qampari.plan import Plan
from pipelines.qampari.questions import write_intersection, write_query

ANSWER_ORDER = ("subject", "query")
PAIR_ORDER = ("first", "second", "subject")
KIND = 4
"""Of considered queries, in the order of the table."""


def pair_queries(work: GroupWork) -> None:
    """Pairs the queries that each subject of a group answers.

    Input: ``answers``, in ``ANSWER_ORDER``. Output: ``pairs``.
    """
    for batch in pairs_of_queries(whole_runs(work.rows("answers"), ANSWER_ORDER[:1]), FAMILY_BITS):
        work.extend("pairs", [column.to_numpy() for column in batch.columns])


def settle_intersections(
    work: GroupWork,
    named: Sequence[tuple[Key, Stored]],
    proved: Sequence[tuple[Key, Stored]],
    ranks_path: str,
    *,
    plan: Plan,
) -> None:
    """Settles the intersections whose first queries are of a group, and makes their questions.

    All of their answers are validated. Input: ``pairs``, in ``PAIR_ORDER``. Outputs: ``OF_QUESTIONS``.
    """
    keep, numbers = plan.options.answer_filter, plan.numbers
    names, proofs = item_names(named, plan), Lookup(proved, "fact", groups_of_facts)
    ranks = read_ranks(ranks_path)
    for pair in intersections(whole_runs(work.rows("pairs"), PAIR_ORDER[:2]), least=keep.least):
        query = IntersectionQuery(numbers.query(pair.first), numbers.query(pair.second))
        n_answers = len(pair.subjects)
        outcome = keep.outcome(n_answers, n_answers)
        row = QueryRow(
            INTERSECTION,
            query.key,
            query.property_ids,
            (query.first.entity_id, query.second.entity_id),
            query.first.type_label,
            n_answers,
            None,
            n_answers,
            n_answers,
            outcome,
        )
        write_query(work, row, KIND, ranks.order(pair.first), pair.second)
        if outcome == KEPT:
            first, second = (proof_texts(proofs.take(facts)) for facts in (pair.first_facts, pair.second_facts))
            write_intersection(work, plan, query, pair, (first, second), names)
