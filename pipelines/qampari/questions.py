"""Queries that passed, with names and proofs: questions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby, islice

import numpy as np

from mapping.qampari.classes import Numbers
from mapping.qampari.joins import intersections
from mapping.qampari.names import ItemName
from mapping.qampari.questions import (
    COMPOSITION,
    INTERSECTION,
    SIMPLE,
    IntersectionQuery,
    composition_question,
    intersection_question,
    simple_question,
)
from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.relations import Relations
from mapping.qampari.rows import QueryRow
from mapping.qampari.selection import KEPT, AnswerFilter
from pipelines.qampari.compositions import Compositions
from pipelines.qampari.considered import Considerations
from pipelines.qampari.kept import (
    CompositionKept,
    KeptIntersections,
    KeptSimple,
    SimpleKept,
    intersection_key,
    intersection_rows,
)
from pipelines.qampari.simple import SimpleQueries


def find_intersections(
    simple: KeptSimple, *, answer_filter: AnswerFilter, considerations: Considerations, folder: str, scratch: str
) -> KeptIntersections:
    """Gives the intersections of simple queries. All of their answers are validated.

    Args:
        simple: the queries.
        answer_filter: what is kept.
        considerations: takes what became of each query.
        folder: takes the file of those that are kept.
        scratch: local folder for scratch files.
    """
    path = os.path.join(folder, "kept.arrow")
    os.makedirs(folder, exist_ok=True)
    with intersection_rows(scratch, len(simple)) as kept:
        for pair in intersections(_with_families(simple), scratch=scratch, least=answer_filter.least):
            query = IntersectionQuery(simple.query(pair.first), simple.query(pair.second))
            n_answers = len(pair.subjects)
            outcome = answer_filter.outcome(n_answers, n_answers)
            entities = (query.first.entity_id, query.second.entity_id)
            considerations.add(
                QueryRow(
                    INTERSECTION,
                    query.key,
                    query.property_ids,
                    entities,
                    query.first.type_label,
                    n_answers,
                    None,
                    n_answers,
                    n_answers,
                    outcome,
                )
            )
            if outcome == KEPT:
                # A copy: what is kept of a bucket must not keep the bucket.
                kept.add(intersection_key(pair.first, pair.second), pair._replace(subjects=pair.subjects.copy()))
        kept.write(path)
    return KeptIntersections(path, simple)


def _with_families(simple: KeptSimple) -> Iterator[tuple[int, int, Numbers]]:
    """Gives number, family and validated answers of queries; those of one property and value stand together."""
    numbered = enumerate(simple)
    for family, (_, members) in enumerate(groupby(numbered, key=lambda one: one[1].query[:2])):
        for number, one in members:
            yield number, family, one.validated()


def simple_questions(simple: SimpleQueries, relations: Relations) -> Iterator[Question]:
    """Gives the questions of simple queries, in their order."""
    for one in simple.kept:
        subjects, item = one.validated(), int(one.query.entity_id[1:])
        named = simple.names.rows(np.append(subjects, item))
        entity, proofs = _entity(named[item], item), simple.proofs.take(one.facts[one.is_validated])
        answers = tuple(
            _answer(named[subject], subject, (proof,)) for subject, proof in zip(subjects.tolist(), proofs, strict=True)
        )
        yield Question(
            SIMPLE,
            one.query.key,
            simple_question(relations, one.query, entity.text),
            one.query.property_ids,
            one.query.type_label,
            (entity,),
            len(one.subjects),
            len(answers),
            answers,
        )


def intersection_questions(kept: KeptIntersections, simple: SimpleQueries, relations: Relations) -> Iterator[Question]:
    """Gives the questions of intersections, in their order."""
    for query, pair in kept:
        both = simple.kept[pair.first], simple.kept[pair.second]
        items = [int(one.query.entity_id[1:]) for one in both]
        named = simple.names.rows(np.append(pair.subjects, items))
        entities = tuple(_entity(named[item], item) for item in items)
        proofs = zip(*(simple.proofs.take(one.facts_of(pair.subjects)) for one in both), strict=True)
        answers = tuple(
            _answer(named[subject], subject, of_both)
            for subject, of_both in zip(pair.subjects.tolist(), proofs, strict=True)
        )
        yield Question(
            INTERSECTION,
            query.key,
            intersection_question(relations, query, entities[0].text, entities[1].text),
            query.property_ids,
            query.first.type_label,
            entities,
            len(answers),
            len(answers),
            answers,
        )


def composition_questions(
    found: Compositions, simple: SimpleQueries, relations: Relations, *, all_proofs: bool, as_released: bool
) -> Iterator[Question]:
    """Gives the questions of compositions, in their order.

    Args:
        found: the compositions.
        simple: their bases.
        relations: hold the words.
        all_proofs: where several subjects have a value, the proofs of all of them and not only those of the first.
        as_released: see ``questions.composition_question``.
    """
    for one in found.kept:
        base, item = simple.kept[one.base], int(one.query.base.entity_id[1:])
        entity = _entity(simple.names.row(item), item)
        yield Question(
            COMPOSITION,
            one.query.key,
            composition_question(relations, one.query, entity.text, as_released=as_released),
            one.query.property_ids,
            one.query.base.type_label,
            (entity,),
            one.n_pairs,
            len(one.facts),
            tuple(_composed(one, base, found, simple, all_proofs=all_proofs)),
        )


def _composed(
    one: CompositionKept, base: SimpleKept, found: Compositions, simple: SimpleQueries, *, all_proofs: bool
) -> Iterator[QuestionAnswer]:
    by_key: dict[str, tuple[str, list[tuple[int, int]]]] = {}
    keys = found.values.keys(one.query.property_id, one.values)
    for key, subject, value, fact in zip(keys, one.subjects.tolist(), one.values, one.facts.tolist(), strict=True):
        by_key.setdefault(key, (value, []))[1].append((subject, fact))
    chosen = {value: ways if all_proofs else ways[:1] for value, ways in by_key.values()}
    subjects = np.array([subject for ways in chosen.values() for subject, _ in ways], np.int64)
    of_values = found.proofs.take(fact for ways in chosen.values() for _, fact in ways)
    pairs = zip(simple.proofs.take(base.facts_of(subjects)), of_values, strict=True)
    named = simple.names.rows(subjects)
    of_answers = found.values.take([(one.query.property_id, value) for value in chosen])
    for ways, name in zip(chosen.values(), of_answers, strict=True):
        proofs = tuple(proof for pair in islice(pairs, len(ways)) for proof in pair)
        via = _entity(named[ways[0][0]], ways[0][0])
        yield QuestionAnswer(name.names[0], name.names, name.title, name.item_id, proofs, via)


def _entity(name: ItemName, item: int) -> QuestionEntity:
    return QuestionEntity(name.names[0], name.names, name.title, f"Q{item}")


def _answer(name: ItemName, item: int, proofs: tuple[ProofText, ...]) -> QuestionAnswer:
    return QuestionAnswer(name.names[0], name.names, name.title, f"Q{item}", proofs)
