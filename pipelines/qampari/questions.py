"""Queries that passed, with names and proofs: questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from mapping.qampari.facts.classes import Numbers
from mapping.qampari.facts.joins import PairAnswers
from mapping.qampari.facts.names import ItemName, ItemNames
from mapping.qampari.facts.value_names import Values
from mapping.qampari.question_rows import DrawnQuestion, QueryRow, question_row
from mapping.qampari.questions import (
    COMPOSITION,
    INTERSECTION,
    SIMPLE,
    CompositionQuery,
    IntersectionQuery,
    SimpleQuery,
    composition_question,
    intersection_question,
    simple_question,
)
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from pipelines.primitives.group_map import GroupWork
from pipelines.qampari.plan import Plan

_KINDS = {SIMPLE: 0, COMPOSITION: 1, INTERSECTION: 2}
"""In the order of the release; behind them tables."""


def write_question(work: GroupWork, question: Question, kind: int, first: int, second: int) -> None:
    """Gives a question to the outputs ``questions`` and ``candidates``, with what all are ordered by."""
    work.add("questions", (kind, first, second, *question_row(DrawnQuestion(question, None, None, None))))
    work.add("candidates", (kind, first, second, question.key, question.subset, question.property_ids))


def write_query(work: GroupWork, row: QueryRow, kind: int, first: int, second: int) -> None:
    """Gives a query that was considered to the output ``queries``, with what all are ordered by."""
    work.add("queries", (kind, first, second, *row))


def write_simple(
    work: GroupWork,
    plan: Plan,
    number: int,
    subjects: Numbers,
    proofs: Sequence[ProofText],
    names: ItemNames,
    *,
    n_answers: int,
) -> None:
    """Gives the question of a simple query.

    Args:
        work: the group.
        plan: of the job.
        number: of the query.
        subjects: the validated answers.
        proofs: that of each.
        names: of answers and entity.
        n_answers: how many answers Wikidata has.
    """
    query = plan.numbers.query(number)
    item = int(query.entity_id[1:])
    named = names.rows(np.append(subjects, item))
    entity = _entity(named[item], item)
    answers = tuple(
        _answer(named[subject], subject, (proof,)) for subject, proof in zip(subjects.tolist(), proofs, strict=True)
    )
    text = simple_question(plan.relations, query, entity.text)
    question = Question(
        SIMPLE,
        query.key,
        text,
        query.property_ids,
        query.type_label,
        (entity,),
        n_answers,
        len(answers),
        answers,
    )
    write_question(work, question, _KINDS[SIMPLE], number, 0)


def write_intersection(
    work: GroupWork,
    plan: Plan,
    query: IntersectionQuery,
    pair: PairAnswers,
    proofs: tuple[Sequence[ProofText], Sequence[ProofText]],
    names: ItemNames,
) -> None:
    """Gives the question of an intersection, with the proofs of both of its queries."""
    items = [int(fact.entity_id[1:]) for fact in query]
    named = names.rows(np.append(pair.subjects, items))
    entities = tuple(_entity(named[item], item) for item in items)
    answers = tuple(
        _answer(named[subject], subject, of_both)
        for subject, *of_both in zip(pair.subjects.tolist(), *proofs, strict=True)
    )
    text = intersection_question(plan.relations, query, entities[0].text, entities[1].text)
    question = Question(
        INTERSECTION,
        query.key,
        text,
        query.property_ids,
        query.first.type_label,
        entities,
        len(answers),
        len(answers),
        answers,
    )
    write_question(work, question, _KINDS[INTERSECTION], pair.first, pair.second)


def write_composition(
    work: GroupWork,
    plan: Plan,
    query: CompositionQuery,
    base: int,
    pairs: Sequence[tuple[int, str, ProofText, ProofText]],
    names: ItemNames,
    values: Values,
    *,
    n_pairs: int,
) -> None:
    """Gives the question of a composition.

    Args:
        work: the group.
        plan: of the job.
        query: what is asked.
        base: the number of its base.
        pairs: validated ones, by subject, then value: subject, value, proof of the base fact, proof of the value.
        names: of subjects and entity.
        values: what the values are called.
        n_pairs: all pairs.
    """
    item = int(query.base.entity_id[1:])
    named = names.rows(np.array([item, *(subject for subject, *_ in pairs)], np.int64))
    entity = _entity(named[item], item)
    options = plan.options
    text = composition_question(plan.relations, query, entity.text, as_released=options.is_released_wording)
    answers = tuple(_composed(query, pairs, named, values, all_proofs=options.all_proofs))
    question = Question(
        COMPOSITION,
        query.key,
        text,
        query.property_ids,
        query.base.type_label,
        (entity,),
        n_pairs,
        len(pairs),
        answers,
    )
    write_question(work, question, _KINDS[COMPOSITION], int(query.property_id[1:]), base)


def _composed(
    query: CompositionQuery,
    pairs: Sequence[tuple[int, str, ProofText, ProofText]],
    named: dict[int, ItemName],
    values: Values,
    *,
    all_proofs: bool,
) -> Iterator[QuestionAnswer]:
    by_key: dict[str, tuple[str, list[tuple[int, ProofText, ProofText]]]] = {}
    keys = values.keys(query.property_id, [value for _, value, *_ in pairs])
    for key, (subject, value, of_base, of_value) in zip(keys, pairs, strict=True):
        by_key.setdefault(key, (value, []))[1].append((subject, of_base, of_value))
    of_answers = values.take([(query.property_id, value) for value, _ in by_key.values()])
    for (_, ways), name in zip(by_key.values(), of_answers, strict=True):
        proofs = tuple(proof for _, *both in islice(ways, None if all_proofs else 1) for proof in both)
        via = _entity(named[ways[0][0]], ways[0][0])
        yield QuestionAnswer(name.names[0], name.names, name.title, name.item_id, proofs, via)


def _entity(name: ItemName, item: int) -> QuestionEntity:
    return QuestionEntity(name.names[0], name.names, name.title, f"Q{item}")


def _answer(name: ItemName, item: int, proofs: Sequence[ProofText]) -> QuestionAnswer:
    return QuestionAnswer(name.names[0], name.names, name.title, f"Q{item}", tuple(proofs))


def simple_row(
    query: SimpleQuery,
    n_answers: int,
    outcome: str,
    n_with_page: int | None = None,
    n_found: int | None = None,
    n_validated: int | None = None,
) -> QueryRow:
    """Gives what became of a simple query."""
    entities = (query.entity_id,)
    counts = n_answers, n_with_page, n_found, n_validated
    return QueryRow(SIMPLE, query.key, query.property_ids, entities, query.type_label, *counts, outcome)
