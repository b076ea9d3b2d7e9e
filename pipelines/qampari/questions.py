"""Makes the questions of decided queries, and the rows of all considered queries, from the joined tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, TypeVar

from kbsource.columns import rows_of, schema_of
from kbsource.rows import Row
from kbsource.runtime.chunks import BatchRef, read_rows, read_stored
from mapping.qampari import joins
from mapping.qampari.joins import CONSIDERED, AnswerRow
from mapping.qampari.names import Name
from mapping.qampari.questions import (
    COMPOSITION,
    INTERSECTION,
    SIMPLE,
    CompositionQuery,
    IntersectionQuery,
    Query,
    composition_question,
    intersection_question,
    query_row,
    question_of,
    simple_question,
)
from mapping.qampari.records import ProofText, QueryRow, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.selection import PoolQuestion
from pipelines.qampari.joins import rows_of_query
from pipelines.qampari.plan import QampariPlan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

R = TypeVar("R", bound=Row)
_ANSWERS_AT_ONCE = 1024
_SUBSETS = (SIMPLE, COMPOSITION, INTERSECTION)


def query_of(kind: int, first: int, second: int, plan: QampariPlan) -> Query:
    """Returns the query of a row of ``joins.CONSIDERED``."""
    base = plan.numbers.query(first)
    if kind == 0:
        return base
    return CompositionQuery(f"P{second}", base) if kind == 1 else IntersectionQuery(base, plan.numbers.query(second))


def considered_queries(db: DuckDBPyConnection, plan: QampariPlan) -> Iterator[QueryRow]:
    """Iterates over the considered queries, in the order of the release."""
    for batch in rows_of_query(db, joins.CONSIDERED_QUERIES, CONSIDERED, plan):
        for kind, first, second, *counts, outcome in zip(*(column.to_pylist() for column in batch), strict=True):
            yield query_row(query_of(kind, first, second, plan), (*counts,), outcome)


def candidates(db: DuckDBPyConnection, plan: QampariPlan) -> Iterator[PoolQuestion]:
    """Iterates over the questions that the sample is drawn from, in the order of the release."""
    for batch in rows_of_query(db, joins.KEPT_QUERIES, joins.QUESTION_QUERIES, plan):
        for kind, first, second in zip(*(column.to_pylist() for column in batch), strict=True):
            query = query_of(kind, first, second, plan)
            yield PoolQuestion(query.key, _SUBSETS[kind], query.property_ids)


def joined_questions(db: DuckDBPyConnection, plan: QampariPlan) -> Iterator[Question]:
    """Iterates over the questions in the order of the release."""
    sources = (joins.SIMPLE_ANSWERS, joins.COMPOSED_ANSWERS, joins.INTERSECTION_ANSWERS_WITH_PROOFS)
    for kind, query in enumerate(sources):
        batches = rows_of_query(db, query, schema_of(AnswerRow), plan, n_rows=_ANSWERS_AT_ONCE)
        rows = chain.from_iterable(rows_of(batch, AnswerRow) for batch in batches)
        for (first, second), own in groupby(rows, key=lambda row: (row.first, row.second)):
            yield _question(query_of(kind, first, second, plan), list(own), plan)


def _question(query: Query, rows: Sequence[AnswerRow], plan: QampariPlan) -> Question:
    relations, options = plan.relations, plan.options
    entities: tuple[QuestionEntity, ...] = (_entity(rows[0].entity),)
    if isinstance(query, IntersectionQuery):
        assert rows[0].other is not None
        entities = *entities, _entity(rows[0].other)
        text = intersection_question(relations, query, *(entity.text for entity in entities))
        answers = [_answer(row.subject, (row.proof, row.further)) for row in rows]
    elif isinstance(query, CompositionQuery):
        text = composition_question(relations, query, entities[0].text, as_released=options.is_released_wording)
        answers = list(_values(rows, all_proofs=options.all_proofs))
    else:
        text = simple_question(relations, query, entities[0].text)
        answers = [_answer(row.subject, (row.proof,)) for row in rows]
    return question_of(query, text, entities, tuple(answers), n_answers=rows[0].n_answers, n_validated=len(rows))


def _values(rows: Iterable[AnswerRow], *, all_proofs: bool) -> Iterator[QuestionAnswer]:
    """Iterates over the values, each once, with the proofs of the first subject that has it. With ``all_proofs``, each
    has the proofs of all its subjects.
    """
    by_key: dict[str | None, list[AnswerRow]] = {}
    for row in rows:
        by_key.setdefault(row.key, []).append(row)
    for own in by_key.values():
        proofs = [proof for row in islice(own, None if all_proofs else 1) for proof in (row.proof, row.further)]
        assert own[0].value is not None
        yield _answer(own[0].value, proofs, via=_entity(own[0].subject))


def _entity(name: Name) -> QuestionEntity:
    return QuestionEntity(name.names[0], name.names, name.title, name.item_id)


def _answer(name: Name, proofs: Sequence[ProofText | None], *, via: QuestionEntity | None = None) -> QuestionAnswer:
    entity = _entity(name)
    own = tuple(proof for proof in proofs if proof is not None)
    return QuestionAnswer(entity.text, entity.aliases, entity.title, entity.item_id, own, via)


def table_candidates(chunks: Iterable[BatchRef]) -> Iterator[PoolQuestion]:
    """Iterates over the questions about tables that the sample is drawn from."""
    for chunk in chunks:
        for batch in read_stored(chunk, ["key", "subset"]):
            yield from map(PoolQuestion, *(column.to_pylist() for column in batch.columns))


def rows_of_chunks(chunks: Iterable[BatchRef], row: type[R]) -> Iterator[R]:
    """Reads rows chunk by chunk."""
    return chain.from_iterable(read_rows(chunk, row) for chunk in chunks)
