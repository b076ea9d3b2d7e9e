"""What the published files have, bit for bit."""

from __future__ import annotations

import math

from mapping.amber.collections import load_collections
from mapping.amber.queries import make_queries
from mapping.amber.records import AmberOptions, Document, Entity, PageRef, Value
from tests.support.amber_worlds import amber_sets

LABELS = {"P607": "conflict", "P1303": "instrument"}


def test_example_of_the_published_readme() -> None:
    options = AmberOptions(templates="released")
    (collection,) = load_collections(None, None, ["human"], "released")
    war = ("American Civil War", "American Civil War", "Civil War")
    entities = [
        Entity(
            "Q91", 156404, ("Abraham Lincoln", "Abe Lincoln"), ("Q5",), {"P607": (Value("wikibase-item", "Q8676"),)}
        ),
        Entity("Q4666410", 60, ("Abe Lincoln",), ("Q5",), {"P1303": (Value("wikibase-item", "Q8350"),)}),
        Entity("Q8676", 1000, war, (), {}),
        Entity("Q8350", 1000, ("trombone", "slide trombone"), (), {}),
    ]
    pages = {
        "Q91": [Document(PageRef("307", "Abraham Lincoln"), "Abraham Lincoln led through the American Civil War.")],
        "Q4666410": [Document(PageRef("17039796", "Abe Lincoln (musician)"), "He played the trombone.")],
    }
    (found,) = amber_sets(entities, pages, collection, options)
    assert found.name == "Abe Lincoln"
    assert [(one.qid, one.is_head) for one in found.entities] == [("Q91", True), ("Q4666410", False)]
    assert math.isclose(found.entities[1].popularity, 1.7781512503836436)
    first, second = (next(make_queries("Abe Lincoln", one, "qa", collection, options, {})) for one in found.entities)
    assert first[:3] == (
        "6981ec17f0438a7cc94fff740cc9bb23=f12393b7ba0631871ea7126dd5127772",
        "Which battle did Abe Lincoln fight in?",
        war,
    )
    assert second[:2] == (
        "edf1ff070a3cbd5fdee738262db8e740=44a67ee4dd88179d1147102e9753a5fa",
        "What musical instrument does Abe Lincoln play?",
    )
