"""The questions and queries of QAMPARI: the rows of a release, used from the first step on."""

from __future__ import annotations

from typing import Annotated

from kbsource.rows import Int32, Row

SPLITS: tuple[str, ...] = ("train", "dev", "test")
"""Splits, in the order of their files in the manifest."""


class ProofText(Row):
    """A text stating that an answer is correct: exactly ``elements[element].text[start_char:end_char]`` of its page."""

    text: Annotated[str, "the sentence that proves it, with the sentences before it"]
    page_id: Annotated[int, "page of the knowledge source that contains it"]
    title: Annotated[str, "title of the page"]
    element: Annotated[Int32, "number of the element"]
    start_char: Annotated[Int32, "first code point of the span in the element's text"]
    end_char: Annotated[Int32, "end of the span in the element's text, one past its last code point"]
    sentence_char: Annotated[
        Int32,
        "first code point, in the element's text, of the sentence that names answer or entity",
    ]
    entailment: Annotated[float | None, "probability that the text entails the hypothesis; null if not judged"] = None
    hypothesis: Annotated[str | None, "the fact as a sentence; null for facts from tables"] = None


class QuestionEntity(Row):
    """A thing that a question is about."""

    text: Annotated[str, "name of the thing"]
    aliases: Annotated[tuple[str, ...], "all its names, starting with `text`"]
    title: Annotated[str | None, "title of its page; null without a page"]
    item_id: Annotated[str | None, "Wikidata item; null for years, numbers and cells of tables"]


class QuestionAnswer(QuestionEntity):
    """An answer with its proofs."""

    proofs: Annotated[
        tuple[ProofText, ...],
        "one proof; for a composition, the proofs of base fact and value; for an intersection, two proofs",
    ]
    via: Annotated[QuestionEntity | None, "for a composition, the thing that the first proof is about"] = None


class Question(Row):
    """One row per question that passed the filter: simple questions first, then compositions, intersections, and
    questions about tables."""

    subset: Annotated[str, "kind of question, as in its qid"]
    key: Annotated[str, "query of the question; unique within the subset"]
    question_text: Annotated[str, "the question, as an English sentence of a fixed form"]
    paraphrase: Annotated[str | None, "paraphrase written by a person; it is released instead of the question"]
    property_ids: Annotated[tuple[str, ...], "relations that the question depends on; empty for tables"]
    type_label: Annotated[str | None, "class of the answers, if the question names one (a typed question)"]
    entities: Annotated[tuple[QuestionEntity, ...], "the things that the question is about"]
    answers: Annotated[tuple[QuestionAnswer, ...], "the validated answers, without answers that people judged wrong"]
    n_answers: Annotated[Int32, "answers in Wikidata or in the table; pairs for a composition"]
    n_validated: Annotated[Int32, "answers that a text proves; pairs for a composition"]
    n_dropped: Annotated[Int32, "answers that people judged wrong"] = 0
    eligible_split: Annotated[
        str | None, "split for which the question may be sampled: train | test (dev or test); null if for none"
    ] = None
    split: Annotated[str | None, "train | dev | test; null if the question was not sampled"] = None
    qid: Annotated[str | None, "id in the file of the split; null if the question was not sampled"] = None

    @property
    def released_text(self) -> str:
        """The paraphrase by a person, or else the generated question."""
        return self.question_text if self.paraphrase is None else self.paraphrase


class QueryRow(Row):
    """One row per query that was considered, by kind."""

    subset: Annotated[str, "kind of question"]
    key: Annotated[str, "the query; unique within the subset"]
    property_ids: Annotated[tuple[str, ...], "relations that the question depends on; empty for tables"]
    entity_ids: Annotated[tuple[str, ...], "Wikidata items that the query is about"]
    type_label: Annotated[str | None, "class of the answers of a typed query"]
    n_answers: Annotated[Int32, "answers in Wikidata or in the table; pairs for a composition"]
    n_with_page: Annotated[
        Int32 | None,
        "answers with a page (for a composition, pairs whose subject or value has a page); null if not reached",
    ]
    n_aligned: Annotated[
        Int32 | None,
        "answers with a sentence that may prove them; null if the query did not reach this step",
    ]
    n_validated: Annotated[Int32 | None, "answers that a text proves; null if the query did not reach this step"]
    outcome: Annotated[str, "outcome of the query"]
