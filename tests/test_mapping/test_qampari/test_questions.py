"""The words of questions, and the order of queries."""

from __future__ import annotations

import pytest

from mapping.qampari.questions import (
    CompositionQuery,
    IntersectionQuery,
    SimpleQuery,
    composition_question,
    intersection_question,
    order_key,
    simple_question,
)
from mapping.qampari.relations import Relations, load_relations


@pytest.fixture(scope="module")
def relations() -> Relations:
    return load_relations()


@pytest.mark.parametrize(
    ("query", "entity", "question"),
    [
        (SimpleQuery("P50", "Q1"), "Ada", "Which books were written by Ada?"),
        (SimpleQuery("P166", "Q1"), "the Prize", "Who received the award the Prize?"),
        (SimpleQuery("P57", "Q1", "film"), "Ada", "Which film was directed by Ada?"),
        (SimpleQuery("P31", "Q1", "award"), "medal", "What award is a medal?"),
        (SimpleQuery("P144", "Q1", "creative work"), "Emma", "Which software, art, etc. is based on Emma?"),
        (SimpleQuery("P140", "Q1"), "Tey", "Who or what entity is affiliated to the Tey religion?"),
        (SimpleQuery("P126", "Q1"), "Ada", "What entities were maintained by Ada?"),
        (SimpleQuery("P50", "Q1"), "{entity}", "Which books were written by {entity}?"),
    ],
)
def test_simple_questions(relations: Relations, query: SimpleQuery, entity: str, question: str) -> None:
    assert simple_question(relations, query, entity) == question


@pytest.mark.parametrize(
    ("first", "second", "question"),
    [
        (
            SimpleQuery("P58", "Q1", "television program"),
            SimpleQuery("P58", "Q2", "television program"),
            "Which television program had One as screenwriter and had Two as screenwriter?",
        ),
        (SimpleQuery("P19", "Q1"), SimpleQuery("P106", "Q2"), "Who was born in One and works or worked as a Two?"),
        (SimpleQuery("P57", "Q1", "film"), SimpleQuery("P50", "Q2"),
         "Which film was directed by One and were written by Two?"),
    ],
)  # fmt: skip
def test_an_intersection_has_the_second_predicate(
    relations: Relations, first: SimpleQuery, second: SimpleQuery, question: str
) -> None:
    assert intersection_question(relations, IntersectionQuery(first, second), "One", "Two") == question


@pytest.mark.parametrize("name", ["Who", "The Doctor Who film", "A is B was C has D"])
def test_names_that_hold_words_of_questions_stay_as_they_are(relations: Relations, name: str) -> None:
    born, directed = SimpleQuery("P19", "Q1"), SimpleQuery("P57", "Q1", "film")

    said = intersection_question(relations, IntersectionQuery(directed, SimpleQuery("P57", "Q2", "film")), name, name)
    assert said == f"Which film was directed by {name} and was directed by {name}?"
    said = composition_question(relations, CompositionQuery("P569", born), name)
    assert said == f"What are the dates of birth of persons that were born in {name}?"


@pytest.mark.parametrize(
    ("query", "question"),
    [
        (
            CompositionQuery("P86", SimpleQuery("P58", "Q1", "film")),
            "Who are the composers of film that had X as screenwriter?",
        ),
        (
            CompositionQuery("P577", SimpleQuery("P50", "Q1")),
            "What are the publication dates of books that were written by X?",
        ),
        (
            CompositionQuery("P26", SimpleQuery("P1412", "Q1")),
            "Who are the spouses of persons that spoke or wrote in X?",
        ),
        (
            CompositionQuery("P22", SimpleQuery("P21", "Q1")),
            "Who are the fathers of persons that have or had X for gender?",
        ),
        (
            CompositionQuery("P36", SimpleQuery("P131", "Q1", "economy")),
            "What are the capitals of economic entity that are located in X?",
        ),
        (
            CompositionQuery("P571", SimpleQuery("P140", "Q1")),
            "What are the inception years of persons or entities that are affiliated to the X religion?",
        ),
        (
            CompositionQuery("P2650", SimpleQuery("P1951", "Q1")),
            "What are the interesting entities for companies that had X as investor?",
        ),
    ],
)
def test_a_composition_asks_for_something_of_the_answers(
    relations: Relations, query: CompositionQuery, question: str
) -> None:
    assert composition_question(relations, query, "X") == question


@pytest.mark.parametrize(
    ("query", "subjects", "released"),
    [
        (SimpleQuery("P108", "Q1"), "persons that work for X", "persons that works for X"),
        (SimpleQuery("P106", "Q1"), "persons that work or worked as a X", "persons that works or worked as a X"),
        (SimpleQuery("P119", "Q1"), "persons that are or were buried in X", "persons that are or was buried in X"),
        (
            SimpleQuery("P1875", "Q1"),
            "persons that were or are represented by X",
            "persons that were or is represented by X",
        ),
        (SimpleQuery("P57", "Q1", "film"), "film that were directed by X", "film that were directed by X"),
    ],
)  # fmt: skip
def test_verbs_behind_that_are_in_the_plural_or_as_in_the_released_questions(
    relations: Relations, query: SimpleQuery, subjects: str, released: str
) -> None:
    asked = CompositionQuery("P569", query)

    assert composition_question(relations, asked, "X") == f"What are the dates of birth of {subjects}?"
    as_released = composition_question(relations, asked, "X", as_released=True)
    assert as_released == f"What are the dates of birth of {released}?"


def test_no_verb_behind_a_noun_in_the_plural_is_in_the_singular(relations: Relations) -> None:
    for one in relations.simple.values():
        if not one.is_typed:
            said = composition_question(relations, CompositionQuery("P577", SimpleQuery(one.property_id, "Q1")), "X")
            verbs = said.partition(f"{one.plural} that ")[2].split()
            at_or = verbs.index("or") if "or" in verbs else -1
            for verb in {verbs[0], verbs[at_or + 1]}:
                assert not verb.endswith("s"), said


def test_no_relation_leaves_a_hole_in_a_question(relations: Relations) -> None:
    for one in relations.simple.values():
        base = SimpleQuery(one.property_id, "Q1", one.types[0] if one.is_typed else None)
        said = [simple_question(relations, base, "NAME"), *(
            composition_question(relations, CompositionQuery(other, base), "NAME") for other in relations.composition
        )]  # fmt: skip
        for question in said:
            assert question.count("NAME") == 1, question
            assert question[0].isupper(), question
            assert question.endswith("?"), question
            assert "  " not in question, question
            assert "None" not in question, question
            assert "{" not in question, question


def test_keys_and_order() -> None:
    small, typed, large = SimpleQuery("P57", "Q9"), SimpleQuery("P57", "Q9", "film"), SimpleQuery("P57", "Q10")
    other = SimpleQuery("P136", "Q1")

    assert sorted([other, large, typed, small], key=order_key) == [small, typed, large, other]
    assert [one.key for one in (small, typed)] == ["P57__Q9", "P57__Q9__film"]
    assert IntersectionQuery(typed, other).key == "P57__Q9__film__P136__Q1"
    assert CompositionQuery("P86", typed).key == "P86__P57__Q9__film"
    compositions = [CompositionQuery("P106", small), CompositionQuery("P86", large), CompositionQuery("P86", small)]
    assert sorted(compositions, key=order_key) == compositions[::-1]


def test_what_an_answer_rests_on() -> None:
    base = SimpleQuery("P57", "Q1", "film")
    other = SimpleQuery("P50", "Q2")

    queries = (base, CompositionQuery("P86", base), IntersectionQuery(base, other))
    assert [one.property_ids for one in queries] == [("P57",), ("P57", "P86"), ("P57", "P50")]
