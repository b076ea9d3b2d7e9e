"""Arrow schemas of the tables of a QAMPARI release, with the meaning of each column."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import field

_THING = [
    field("text", pa.string(), "what it is called"),
    field("aliases", pa.list_(pa.string()), "what else it is called, text first"),
    field("title", pa.string(), "title of its page; null without one", nullable=True),
    field("item_id", pa.string(), "its Wikidata item; null for years, numbers and cells of tables", nullable=True),
]

_PROOF = pa.struct(
    [
        field("text", pa.string(), "the sentence that proves it, behind the sentences before it"),
        field("page_id", pa.int64(), "page of the knowledge source that it stands in"),
        field("title", pa.string(), "title of that page"),
        field("element", pa.int32(), "number of the element"),
        field("start_char", pa.int32(), "first code point in that element's text"),
        field("end_char", pa.int32(), "one past the last code point in that element's text"),
        field("sentence_char", pa.int32(), "where in the element the sentence begins that names answer or entity"),
        field("entailment", pa.float64(), "probability that it says the hypothesis; null: not judged", nullable=True),
        field("hypothesis", pa.string(), "the fact as a sentence; null for facts out of tables", nullable=True),
    ]
)

_ANSWER = pa.struct(
    [
        *_THING,
        field("proofs", pa.list_(_PROOF), "one; of a composition those of base fact and value, of an intersection two"),
        field("via", pa.struct(_THING), "of a composition the thing that the first proof is about", nullable=True),
    ]
)

QUESTIONS = pa.schema(
    [
        field("subset", pa.string(), "kind of question, as in its qid"),
        field("key", pa.string(), "its query; unique within the subset"),
        field("question_text", pa.string(), "the question in English of a fixed form"),
        field("paraphrase", pa.string(), "what a person wrote for it, released in its place", nullable=True),
        field("property_ids", pa.list_(pa.string()), "relations that it rests on; none for tables"),
        field("type_label", pa.string(), "class of the answers of a typed question", nullable=True),
        field("entities", pa.list_(pa.struct(_THING)), "what it is about"),
        field("answers", pa.list_(_ANSWER), "the validated answers, without those that people judged wrong"),
        field("n_answers", pa.int32(), "answers that Wikidata, or the table, has; of a composition pairs"),
        field("n_validated", pa.int32(), "how many of these a text proves; of a composition pairs"),
        field("n_dropped", pa.int32(), "answers that people judged wrong"),
        field("side", pa.string(), "train | test; null for one that is left out of both", nullable=True),
        field("split", pa.string(), "train | dev | test; null for one that was not drawn", nullable=True),
        field("qid", pa.string(), "its id in the file of its split; null for one that was not drawn", nullable=True),
    ]
)

QUERIES = pa.schema(
    [
        field("subset", pa.string(), "kind of question"),
        field("key", pa.string(), "the query; unique within the subset"),
        field("property_ids", pa.list_(pa.string()), "relations that it rests on; none for tables"),
        field("entity_ids", pa.list_(pa.string()), "Wikidata items that it is about"),
        field("type_label", pa.string(), "class of the answers of a typed query", nullable=True),
        field("n_answers", pa.int32(), "answers that Wikidata, or the table, has; of a composition pairs"),
        field(
            "n_with_page",
            pa.int32(),
            "those with a page, of a composition where subject or value has one; null: not reached",
            nullable=True,
        ),
        field("n_aligned", pa.int32(), "those with a sentence that may prove it; null: not reached", nullable=True),
        field("n_validated", pa.int32(), "those that a text proves; null: not reached", nullable=True),
        field("outcome", pa.string(), "what became of it"),
    ]
)

TABLES: dict[str, pa.Schema] = {"questions": QUESTIONS, "queries": QUERIES}
"""Every table that a QAMPARI release alone has, by folder name."""
