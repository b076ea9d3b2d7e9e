"""Questions and queries of QAMPARI: the rows of a release, as they are from the first step on."""

from __future__ import annotations

from typing import Annotated

from kbsource.rows import Int32, Row

SPLITS: tuple[str, ...] = ("train", "dev", "test")
"""In the order in which their files are listed."""


class ProofText(Row):
    """A text that says that an answer is right: exactly ``elements[element].text[start_char:end_char]`` of its page."""

    text: Annotated[str, "the sentence that proves it, behind the sentences before it"]
    page_id: Annotated[int, "page of the knowledge source that it stands in"]
    title: Annotated[str, "title of that page"]
    element: Annotated[Int32, "number of the element"]
    start_char: Annotated[Int32, "first code point in that element's text"]
    end_char: Annotated[Int32, "one past the last code point in that element's text"]
    sentence_char: Annotated[Int32, "where in the element the sentence begins that names answer or entity"]
    entailment: Annotated[float | None, "probability that it says the hypothesis; null: not judged"] = None
    hypothesis: Annotated[str | None, "the fact as a sentence; null for facts out of tables"] = None


class QuestionEntity(Row):
    """A thing that a question is about."""

    text: Annotated[str, "what it is called"]
    aliases: Annotated[tuple[str, ...], "what else it is called, text first"]
    title: Annotated[str | None, "title of its page; null without one"]
    item_id: Annotated[str | None, "its Wikidata item; null for years, numbers and cells of tables"]


class QuestionAnswer(QuestionEntity):
    """An answer with what proves it."""

    proofs: Annotated[
        tuple[ProofText, ...], "one; of a composition those of base fact and value, of an intersection two"
    ]
    via: Annotated[QuestionEntity | None, "of a composition the thing that the first proof is about"] = None


class Question(Row):
    """Every question that passed the filter, one row each: simple ones, compositions, intersections, then questions
    about tables."""

    subset: Annotated[str, "kind of question, as in its qid"]
    key: Annotated[str, "its query; unique within the subset"]
    question_text: Annotated[str, "the question in English of a fixed form"]
    paraphrase: Annotated[str | None, "what a person wrote for it, released in its place"]
    property_ids: Annotated[tuple[str, ...], "relations that it rests on; none for tables"]
    type_label: Annotated[str | None, "class of the answers of a typed question"]
    entities: Annotated[tuple[QuestionEntity, ...], "what it is about"]
    answers: Annotated[tuple[QuestionAnswer, ...], "the validated answers, without those that people judged wrong"]
    n_answers: Annotated[Int32, "answers that Wikidata, or the table, has; of a composition pairs"]
    n_validated: Annotated[Int32, "how many of these a text proves; of a composition pairs"]
    n_dropped: Annotated[Int32, "answers that people judged wrong"] = 0
    side: Annotated[str | None, "train | test; null for one that is left out of both"] = None
    split: Annotated[str | None, "train | dev | test; null for one that was not drawn"] = None
    qid: Annotated[str | None, "its id in the file of its split; null for one that was not drawn"] = None

    @property
    def released_text(self) -> str:
        """What a person wrote for it, else the fixed form."""
        return self.question_text if self.paraphrase is None else self.paraphrase


class QueryRow(Row):
    """Every query that was considered, one row each, by kind."""

    subset: Annotated[str, "kind of question"]
    key: Annotated[str, "the query; unique within the subset"]
    property_ids: Annotated[tuple[str, ...], "relations that it rests on; none for tables"]
    entity_ids: Annotated[tuple[str, ...], "Wikidata items that it is about"]
    type_label: Annotated[str | None, "class of the answers of a typed query"]
    n_answers: Annotated[Int32, "answers that Wikidata, or the table, has; of a composition pairs"]
    n_with_page: Annotated[
        Int32 | None, "those with a page, of a composition where subject or value has one; null: not reached"
    ]
    n_aligned: Annotated[Int32 | None, "those with a sentence that may prove it; null: not reached"]
    n_validated: Annotated[Int32 | None, "those that a text proves; null: not reached"]
    outcome: Annotated[str, "what became of it"]
