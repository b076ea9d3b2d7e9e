"""Questions with their answers and proofs, as every kind of query ends."""

from __future__ import annotations

from typing import NamedTuple


class ProofText(NamedTuple):
    """A text that says that an answer is right.

    Attributes:
        text: sentence and the ones before it, exactly ``elements[element].text[start_char:end_char]`` of the page.
        page_id: page of the knowledge source that it stands in.
        title: of that page.
        element: number of the element.
        start_char, end_char: half-open code points of the element's text.
        sentence_char: where in it the sentence begins that names the answer or the entity.
        entailment: probability that the text says the hypothesis; None where no model was asked.
        hypothesis: the fact as a sentence; None for facts out of tables.
    """

    text: str
    page_id: int
    title: str
    element: int
    start_char: int
    end_char: int
    sentence_char: int
    entailment: float | None = None
    hypothesis: str | None = None


class QuestionEntity(NamedTuple):
    """A thing that a question is about.

    Attributes:
        text: what it is called in the question.
        aliases: what else it is called, ``text`` first.
        title: of its page; None without one.
        item_id: of Wikidata; None for what comes from a table.
    """

    text: str
    aliases: tuple[str, ...]
    title: str | None
    item_id: str | None


class QuestionAnswer(NamedTuple):
    """An answer with what proves it.

    Attributes:
        text: what it is called.
        aliases: what else it is called, ``text`` first.
        title: of its page; None without one.
        item_id: of Wikidata; None for years, numbers, texts and what comes from a table.
        proofs: of a simple question one; of a composition first that of the base fact, then that of the value; of an
            intersection that of the first query, then of the second.
        via: for compositions the thing in the middle that the first proof is about; None otherwise.
    """

    text: str
    aliases: tuple[str, ...]
    title: str | None
    item_id: str | None
    proofs: tuple[ProofText, ...]
    via: QuestionEntity | None = None


class Question(NamedTuple):
    """A question that passed the filter.

    Attributes:
        subset: one of ``questions.SUBSETS``.
        key: of its query; unique within the subset.
        text: in English of a fixed form.
        property_ids: relations that it rests on; none for tables.
        type_label: class of the answers of a typed question; of an intersection that of the first query.
        entities: what it is about.
        n_answers: answers that Wikidata, or the table, has; of a composition pairs of subject and value.
        n_validated: how many of these are validated; of a composition pairs, so that it can be more than the answers.
        answers: the validated ones, each once.
    """

    subset: str
    key: str
    text: str
    property_ids: tuple[str, ...]
    type_label: str | None
    entities: tuple[QuestionEntity, ...]
    n_answers: int
    n_validated: int
    answers: tuple[QuestionAnswer, ...]
