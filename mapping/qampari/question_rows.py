"""Questions and queries as rows of the tables of a release, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mapping.qampari.records import ProofText, Question, QuestionAnswer, QuestionEntity
from mapping.qampari.schema import QUESTIONS
from mapping.qampari.selection import Side
from mapping.sources.reading.base import Split

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
"""In the order in which their files are listed."""


class DrawnQuestion(NamedTuple):
    """A question that passed the filter, and what became of it.

    Attributes:
        question: in English of a fixed form.
        side: that its relations are on; None for one that is left out of both.
        split: that it was drawn for; None for one that was not drawn.
        qid: in the file of its split; None for one that was not drawn.
        paraphrase: what a person wrote for it, released in place of the question's text.
        n_dropped: answers that people judged wrong; the question has them no longer.
    """

    question: Question
    side: Side | None
    split: Split | None
    qid: str | None
    paraphrase: str | None = None
    n_dropped: int = 0


class QueryRow(NamedTuple):
    """A query that was considered, in the order of the table's columns.

    Attributes:
        subset: kind of question.
        key: unique within the subset.
        property_ids: relations that it rests on.
        entity_ids: Wikidata items that it is about.
        type_label: class of the answers of a typed query.
        n_answers: answers that Wikidata, or the table, has.
        n_with_page, n_aligned, n_validated: how many of them are left at each stage; None where it was not reached.
        outcome: slug.
    """

    subset: str
    key: str
    property_ids: tuple[str, ...]
    entity_ids: tuple[str, ...]
    type_label: str | None
    n_answers: int
    n_with_page: int | None
    n_aligned: int | None
    n_validated: int | None
    outcome: str


def question_row(drawn: DrawnQuestion) -> tuple[Any, ...]:
    """Gives the values of a question's row in the order of the columns of ``QUESTIONS``."""
    question = drawn.question
    values = {
        "subset": question.subset,
        "key": question.key,
        "question_text": question.text,
        "paraphrase": drawn.paraphrase,
        "property_ids": question.property_ids,
        "type_label": question.type_label,
        "entities": [entity._asdict() for entity in question.entities],
        "answers": [_answer_values(answer) for answer in question.answers],
        "n_answers": question.n_answers,
        "n_validated": question.n_validated,
        "n_dropped": drawn.n_dropped,
        "side": drawn.side,
        "split": drawn.split,
        "qid": drawn.qid,
    }
    return tuple(values[name] for name in QUESTIONS.names)


def question_of_row(row: Mapping[str, Any]) -> DrawnQuestion:
    """Gives the question of a row, by column; the reverse of ``question_row``."""
    question = Question(
        subset=row["subset"],
        key=row["key"],
        text=row["question_text"],
        property_ids=tuple(row["property_ids"]),
        type_label=row["type_label"],
        entities=tuple(_entity_of(entity) for entity in row["entities"]),
        n_answers=row["n_answers"],
        n_validated=row["n_validated"],
        answers=tuple(_answer_of(answer) for answer in row["answers"]),
    )
    return DrawnQuestion(question, row["side"], row["split"], row["qid"], row["paraphrase"], row["n_dropped"])


def query_of_row(row: Mapping[str, Any]) -> QueryRow:
    """Gives a query's row as it was written."""
    return QueryRow(**{**row, "property_ids": tuple(row["property_ids"]), "entity_ids": tuple(row["entity_ids"])})


def _answer_values(answer: QuestionAnswer) -> dict[str, Any]:
    proofs = [proof._asdict() for proof in answer.proofs]
    return {**answer._asdict(), "proofs": proofs, "via": None if answer.via is None else answer.via._asdict()}


def _entity_of(values: Mapping[str, Any]) -> QuestionEntity:
    return QuestionEntity(**{**values, "aliases": tuple(values["aliases"])})


def _answer_of(values: Mapping[str, Any]) -> QuestionAnswer:
    return QuestionAnswer(
        text=values["text"],
        aliases=tuple(values["aliases"]),
        title=values["title"],
        item_id=values["item_id"],
        proofs=tuple(ProofText(**value) for value in values["proofs"]),
        via=None if values["via"] is None else _entity_of(values["via"]),
    )
