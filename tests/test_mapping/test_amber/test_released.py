"""The example of the published files, bit for bit."""

from __future__ import annotations

import json

from mapping.amber.collections import load_collections
from mapping.amber.records import AmberOptions, Document, Entity, PageRef, Value
from mapping.amber.release_files import record_line, set_queries
from mapping.amber.released import set_record
from tests.support.amber_worlds import amber_sets

BATTLES = [
    "Black Hawk War",
    "American Civil War",
    "American Civil War",
    "Civil War",
    "The Civil War",
    "U.S. Civil War",
    "US Civil War",
    "United States Civil War",
    "War Between the States",
    "War of the Rebellion",
]
INSTRUMENTS = ["trombone", "slide trombone", "tenor trombone", "valve trombone"]
LINCOLN = [
    {"wikipedia_id": "307", "title": "Abraham Lincoln"},
    {"wikipedia_id": "42390831", "title": "Abraham Lincoln's Life"},
]
MUSICIAN = [{"wikipedia_id": "17039796", "title": "Abe Lincoln (musician)"}]
PUBLISHED = {
    "name": "Abe Lincoln",
    "qids": {
        "Q91": {
            "is_head": True,
            "popularity": 5.1942478558575464,
            "wikipedia": LINCOLN,
            "queries": [
                {
                    "id": "6981ec17f0438a7cc94fff740cc9bb23=f12393b7ba0631871ea7126dd5127772",
                    "input": "Which battle did Abe Lincoln fight in?",
                    "output": {
                        "answer": BATTLES,
                        "provenance": LINCOLN[:1],
                        "meta": {"values": BATTLES, "additional_values": []},
                    },
                    "meta": {"pid": "P607"},
                }
            ],
        },
        "Q4666410": {
            "is_head": False,
            "popularity": 1.7781512503836436,
            "wikipedia": MUSICIAN,
            "queries": [
                {
                    "id": "edf1ff070a3cbd5fdee738262db8e740=44a67ee4dd88179d1147102e9753a5fa",
                    "input": "What musical instrument does Abe Lincoln play?",
                    "output": {
                        "answer": INSTRUMENTS,
                        "provenance": MUSICIAN,
                        "meta": {"values": INSTRUMENTS, "additional_values": []},
                    },
                    "meta": {"pid": "P1303"},
                }
            ],
        },
    },
}
"""Source: data/README.md of https://github.com/anthonywchen/AmbER-Sets, CC0."""


def test_example_of_the_published_readme() -> None:
    options = AmberOptions(templates="released")
    (collection,) = load_collections(None, None, ["human"], "released")
    battles = (Value("wikibase-item", "Q10"), Value("wikibase-item", "Q11"))
    entities = [
        Entity("Q91", 156_404, ("Abraham Lincoln", "Abe Lincoln"), ("Q5",), {"P607": battles}),
        Entity("Q4666410", 60, ("Abe Lincoln",), ("Q5",), {"P1303": (Value("wikibase-item", "Q12"),)}),
        Entity("Q10", 9, tuple(BATTLES[:1]), (), {}),
        Entity("Q11", 9, tuple(BATTLES[1:]), (), {}),
        Entity("Q12", 9, tuple(INSTRUMENTS), (), {}),
    ]
    pages = {
        "Q91": [
            Document(PageRef(**LINCOLN[0]), "Abraham Lincoln led the Union through the American Civil War."),
            Document(PageRef(**LINCOLN[1]), "A relief."),
        ],
        "Q4666410": [Document(PageRef(**MUSICIAN[0]), "He played the trombone.")],
    }
    (found,) = amber_sets(entities, pages, collection, options)
    record = set_record(found.name, set_queries(found, "qa", collection, options, {}))
    assert record_line(record) == json.dumps(PUBLISHED).encode() + b"\n"
