"""The words of questions, and the order of queries."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.qampari.questions import (
    CompositionQuery,
    IntersectionQuery,
    QueryNumbers,
    RelationList,
    Relations,
    SimpleQuery,
    composition_question,
    intersection_question,
    listed_relations,
    load_relations,
    simple_question,
)
from tests.support.real_data import ROOT


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
    for relation in relations.simple.values():
        if not relation.types:
            said = composition_question(
                relations, CompositionQuery("P577", SimpleQuery(relation.property_id, "Q1")), "X"
            )
            verbs = said.partition(f"{relation.plural} that ")[2].split()
            at_or = verbs.index("or") if "or" in verbs else -1
            for verb in {verbs[0], verbs[at_or + 1]}:
                assert not verb.endswith("s"), said


def test_no_relation_leaves_a_hole_in_a_question(relations: Relations) -> None:
    for relation in relations.simple.values():
        base = SimpleQuery(relation.property_id, "Q1", relation.types[0] if relation.types else None)
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

    numbers = QueryNumbers(["film", "album"])
    assert sorted([other, large, typed, small], key=numbers.number) == [small, typed, large, other]
    assert [numbers.query(numbers.number(query)) for query in (small, typed)] == [small, typed]
    assert [query.key for query in (small, typed)] == ["P57__Q9", "P57__Q9__film"]
    assert IntersectionQuery(typed, other).key == "P57__Q9__film__P136__Q1"
    assert CompositionQuery("P86", typed).key == "P86__P57__Q9__film"


def test_what_an_answer_rests_on() -> None:
    base = SimpleQuery("P57", "Q1", "film")
    other = SimpleQuery("P50", "Q2")

    queries = (base, CompositionQuery("P86", base), IntersectionQuery(base, other))
    assert [query.property_ids for query in queries] == [("P57",), ("P57", "P86"), ("P57", "P50")]


@pytest.mark.parametrize(
    ("property_id", "question", "hypothesis"),
    [
        ("P361", "Which film is a part of X?", "A is a part of X."),
        ("P527", "Which film has X as a part?", "A has X as a part."),
        ("P658", "Which albums include the track X?", "A includes the track X."),
        ("P1071", "Which film was created in X?", "A was created in X."),
    ],
)
def test_relations_whose_direction_or_words_were_wrong(
    relations: Relations, property_id: str, question: str, hypothesis: str
) -> None:
    relation = relations.simple[property_id]
    query = SimpleQuery(property_id, "Q1", "film" if relation.types else None)

    assert simple_question(relations, query, "X") == question
    assert relation.hypothesis("A", "X") == hypothesis


@pytest.mark.parametrize(
    ("property_id", "question"),
    [
        ("P2650", "What are the interesting entities for books that were written by X?"),
        ("P7153", "What are the significant places for books that were written by X?"),
        ("P725", "Who are the voice actors of books that were written by X?"),
        ("P4068", "Who are the scenographers of books that were written by X?"),
        ("P7937", "What are the forms of work of books that were written by X?"),
        ("P1027", "Who are the conferred by by books that were written by X?"),
    ],
)
def test_compositions_whose_wording_was_lost(relations: Relations, property_id: str, question: str) -> None:
    query = CompositionQuery(property_id, SimpleQuery("P50", "Q1"))

    assert composition_question(relations, query, "X") == question


def test_the_words_for_types(relations: Relations) -> None:
    assert {label: relations.word_for(label) for label in ("film", *relations.type_words)} == {
        "film": "film",
        "creative work": "software, art, etc.",
        "territorial entity": "natural area, domicile or venue",
        "visual artwork": "paintings, sculptures, monuments etc.",
        "social phenomenon": "conflict, revolt, attack etc.",
        "social system": "market, economy etc.",
        "audiovisual work": "movie, clip, TV show etc.",
        "intellectual work": "creative work including creative organizations such as newspapers, radio stations, etc",
        "economy": "economic entity",
        "cultural heritage": "cultural heritage entity",
    }


FILE = ROOT / "mapping" / "qampari" / "relations.toml"


def test_the_lists_are_complete(relations: Relations) -> None:
    assert len(relations.simple) == 153
    assert len(relations.composition) == 270
    assert len(relations.simple.keys() | relations.composition.keys()) == 274
    assert sum(bool(relation.types) for relation in relations.simple.values()) == 73
    assert len(relations.wanted_types) == len(set(relations.wanted_types)) == 105
    assert len(relations.type_words) == 9


def test_all_but_one_are_enabled(relations: Relations) -> None:
    assert [relation.property_id for relation in relations.simple.values() if not relation.is_enabled] == ["P275"]
    assert all(relation.is_enabled for relation in relations.composition.values())


def test_nothing_of_a_template_is_left_in_words(relations: Relations) -> None:
    for relation in relations.simple.values():
        shown = relation.hypothesis("ANSWER", "ENTITY")
        assert (shown.count("ANSWER"), shown.count("ENTITY"), shown.count("{")) == (1, 1, 0), relation
        assert bool(relation.types) == (relation.plural is None), relation
    for two in relations.composition.values():
        shown = two.hypothesis("VALUE", "ENTITY")
        assert (shown.count("VALUE"), shown.count("ENTITY"), shown.count("{")) == (1, 1, 0), two


@pytest.mark.parametrize(
    ("property_id", "hypothesis"),
    [
        ("P166", "A received the award X."),
        ("P50", "A was written by X."),
        ("P2079", "A was fabricated using the method X."),
        ("P676", "A has its lyrics written by X."),
        ("P54", "A played for the X."),
    ],
)
def test_the_answer_is_the_subject_of_the_hypothesis(relations: Relations, property_id: str, hypothesis: str) -> None:
    assert relations.simple[property_id].hypothesis("A", "X") == hypothesis


@pytest.mark.parametrize(
    ("property_id", "hypothesis"),
    [
        ("P569", "V is E's date of birth."),
        ("P1433", "E was published in V."),
        ("P86", "E was composed by V."),
        ("P241", "V is E's military branch."),
        ("P138", "E is named after V."),
        ("P1877", "E is after a work by V."),
        ("P306", "E ran on V."),
    ],
)
def test_hypotheses_of_compositions(relations: Relations, property_id: str, hypothesis: str) -> None:
    assert relations.composition[property_id].hypothesis("V", "E") == hypothesis


@pytest.mark.parametrize(
    ("property_id", "noun"),
    [
        ("P1433", "publication venues"),
        ("P112", "founders"),
        ("P2284", "prices"),
        ("P2046", "areas"),
        ("P275", "copyright licenses"),
    ],
)
def test_nouns_that_were_wrong_are_right(relations: Relations, property_id: str, noun: str) -> None:
    assert relations.composition[property_id].noun == noun


@pytest.mark.parametrize(
    ("property_id", "types"),
    [
        ("P725", ("film", "television series", "video game")),
        ("P275", ("software", "creative work")),
        ("P4068", ("film", "play")),
        ("P5202", ("film", "written work")),
        ("P5028", ("film", "written work")),
        ("P1441", ("fictional character",)),
    ],
)
def test_types_that_were_wrong_or_missing(relations: Relations, property_id: str, types: tuple[str, ...]) -> None:
    assert relations.simple[property_id].types == types


@given(name=st.text(max_size=8), entity=st.text(max_size=8))
def test_names_are_taken_as_they_are(relations: Relations, name: str, entity: str) -> None:
    born = relations.composition["P569"]
    assert born.hypothesis(name, entity) == f"{name} is {entity}'s date of birth."
    assert born.hypothesis("{entity}", "{value}") == "{entity} is {value}'s date of birth."
    assert relations.simple["P19"].hypothesis("{entity}", entity) == f"{{entity}} was born in {entity}."


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\n[simple]\n", "\n[simples]\n", "top level: expected the tables"),
        ("\n[simple]\n", "\n[simple\n", "is not valid TOML"),
        ("P50 = {", "P050 = {", "simple.P050: expected a property"),
        ('noun = "books"', 'nuon = "books"', "simple.P50.nuon: expected one of ask, claim"),
        ('noun = "books", ', "", "simple.P50: expected noun, plural or types"),
        ('"were written by {entity}"', '"were written by"', "simple.P50.predicate: expected {entity} once"),
        ('"were written by {entity}"', '"by {entity} {enitty}"', "simple.P50.predicate: expected {entity} once"),
        ('of_many = "work for {entity}"', 'of_many = "work"', "simple.P108.of_many: expected {entity} once"),
        (
            'noun = "books"',
            f"noun = 0x1{'0' * 4000}",
            "simple.P50.noun: expected a text; found a number of thousands of digits",
        ),
        ('claim = "was written by {entity}"', "enabled = 1", "simple.P50.enabled: expected true or false"),
        ("{value} is {entity}'s father", "{value}'s father", "expected {entity} once and {value} once"),
        ('"children of", ask = "Who", ', '"children of", ', "composition.P40.ask: expected a text"),
        (', claim = "{value} is {entity}\'s child"', "", "composition.P40: expected a claim"),
        ('P344 = ["film"', 'P344 = ["movie"', "types.P344: expected a label of wanted_types; found 'movie'"),
        ('P344 = ["film", ', 'P344 = ["audiovisual work", ', "types.P344: expected a list of strings, each once"),
        ("P344 = [", "P50 = [", "simple.P50.noun: expected none"),
        ("\n[types]\n", "\n[types]\nP1 = ['film']\n", "types.P1: expected a relation of [simple]"),
        ('"economy" = ', '"economics" = ', "type_words.economics: expected a label of wanted_types"),
        (
            "[simple]\nP31",
            '[classes]\n"films" = "Q11424"\n[simple]\nP31',
            "classes.films: expected a label of wanted_types",
        ),
        (
            "[simple]\nP31",
            '[classes]\n"film" = "P57"\n[simple]\nP31',
            "classes.film: expected a Wikidata item like Q11424",
        ),
    ],
)
def test_a_slip_in_a_file_of_relations_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = FILE.read_text("utf-8")
    assert old in text
    path = tmp_path / "own.toml"
    path.write_text(text.replace(old, new, 1), "utf-8")

    with pytest.raises(SetupError) as caught:
        load_relations(str(path))
    assert message in str(caught.value)
    assert "own.toml" in str(caught.value)


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(FILE.read_text("utf-8").replace(", enabled = false", ""), "utf-8")

    assert load_relations(str(path)).simple["P275"].is_enabled
    (tmp_path / "windows.toml").write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_relations(str(tmp_path / "windows.toml")) == load_relations(str(path))
    with pytest.raises(SetupError, match=f"{tmp_path} is a folder; name a file"):
        load_relations(str(tmp_path))
    (tmp_path / "empty.toml").touch()
    with pytest.raises(SetupError, match=r"empty\.toml: top level: expected the tables .*; found 'none'"):
        load_relations(str(tmp_path / "empty.toml"))
    with pytest.raises(SetupError, match="nowhere: no such file"):
        load_relations("nowhere")
    for nonsense in ("a = " + "9" * 5000, "a = " + "[" * 100_000):
        (tmp_path / "odd.toml").write_text(nonsense)
        with pytest.raises(SetupError, match=r"odd\.toml is not valid TOML: "):
            load_relations(str(tmp_path / "odd.toml"))


def test_the_lists_of_relations_that_the_paper_and_the_released_code_have(relations: Relations) -> None:
    enabled = {
        name: [sum(relation.is_enabled for relation in many.values()) for many in (listed.simple, listed.composition)]
        for name in get_args(RelationList)
        if (listed := listed_relations(relations, name))
    }
    assert enabled == {"corrected": [152, 270], "paper": [150, 270], "released": [153, 270]}
    assert not listed_relations(relations, "paper").simple["P54"].is_enabled
