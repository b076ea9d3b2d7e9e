"""Arrow schemas of the tables of a release of AmbER sets, with the meaning of each column."""

from __future__ import annotations

import pyarrow as pa

from kbsource.schema import field

_COLLECTION = field("collection", pa.string(), "collection of types, as human")
_NAME = field("name", pa.string(), "name that the entities share")
_PAGES = pa.list_(pa.struct([field("wikipedia_id", pa.string(), "page id"), field("title", pa.string(), "its title")]))
_TEXTS = pa.list_(pa.string())

_ENTITY = pa.struct(
    [
        field("qid", pa.string(), "Wikidata item"),
        field("popularity", pa.float64(), "decimal logarithm of its page views"),
        field("is_head", pa.bool_(), "whether it is the most popular"),
        field("aliases", _TEXTS, "label, then aliases"),
        field("entity_types", _TEXTS, "values of P31"),
        field("wikipedia", _PAGES, "its pages in the knowledge source"),
    ]
)
_VALUE = pa.struct(
    [
        field("type", pa.string(), "wikibase-item | quantity"),
        field("qid", pa.string(), "item; null for a quantity", nullable=True),
        field("amount", pa.string(), "amount of a quantity, with its sign", nullable=True),
        field("unit", pa.string(), "its unit: 1, or the address of an item", nullable=True),
        field("aliases", _TEXTS, "label, then aliases; the amount without its sign"),
        field("additional_aliases", _TEXTS, "names of those who practise or use it; the number in words"),
        field("entity_types", _TEXTS, "values of P31 of an item", nullable=True),
        field("found_in_passage", pa.bool_(), "whether the first 350 tokens of a page have an alias"),
    ]
)
_SPAN = [
    field(name, pa.int64(), meaning, nullable=True)
    for name, meaning in (
        ("start_element", "number of the element where the span begins that says the tuple best"),
        ("start_char", "its first code point there"),
        ("end_element", "number of the element where it ends"),
        ("end_char", "one past its last code point there"),
    )
]

SETS = pa.schema([_COLLECTION, _NAME, field("entities", pa.list_(_ENTITY), "those that share the name")])
TUPLES = pa.schema(
    [
        _COLLECTION,
        _NAME,
        field("qid", pa.string(), "entity"),
        field("property_id", pa.string(), "property that it alone has in the set"),
        field("property", pa.string(), "its label"),
        field("amber_id", pa.string(), "id of name, entity and property; unique in the collection"),
        field("provenance", _PAGES, "pages that name a value"),
        field("values", pa.list_(_VALUE), "values of the property"),
        field("bleu", pa.float64(), "score of name, property and value on the span; null without one", nullable=True),
        *_SPAN,
        field("text", pa.string(), "text of the span", nullable=True),
        field("hypothesis", pa.string(), "the tuple as a sentence, for a value that was found"),
        *(
            field(name, pa.float64(), f"probability of {name}; null: not judged", nullable=True)
            for name in ("entailment", "neutral", "contradiction")
        ),
    ]
)
QUERIES = pa.schema(
    [
        _COLLECTION,
        field("task", pa.string(), "qa | sf | fc"),
        _NAME,
        field("qid", pa.string(), "entity that the query is about"),
        field("property_id", pa.string(), "property that it asks for"),
        field("query_id", pa.string(), "id, unique in the task"),
        field("input", pa.string(), "question, slot or claim"),
        field("answers", _TEXTS, "names of the values; of a claim SUPPORTS or REFUTES"),
        field("provenance", _PAGES, "pages that answer it"),
    ]
)
NAMES = pa.schema(
    [
        _COLLECTION,
        field("name", pa.string(), "name of several entities, one of the collection among them"),
        field("outcome", pa.string(), "set, or why it is none"),
        field("n_bearers", pa.int64(), "entities that have it"),
        field("n_members", pa.int64(), "those of the collection"),
    ]
)

TABLES: dict[str, pa.Schema] = {"sets": SETS, "tuples": TUPLES, "set_queries": QUERIES, "names": NAMES}
"""Every table of a release of AmbER sets, by folder name."""
OUTCOMES: dict[str, str] = {
    "set": "a set of the release",
    "too_few_members": "fewer than two of its entities are of the collection",
    "small_gap": "the two most popular are too close",
    "few_told_apart": "fewer than two entities have a property of their own with a value that has a name",
    "no_head_told_apart": "the head is of another type, or has no such property",
    "few_with_page": "fewer than two such entities have pages",
    "no_head_with_page": "the head has none",
    "few_found": "the pages of fewer than two name a value",
    "no_head_found": "that of the head does not",
    "few_accepted": "--accept leaves fewer than two",
    "no_head_accepted": "--accept leaves none of the head",
}
"""What becomes of names, in the order of the steps."""
