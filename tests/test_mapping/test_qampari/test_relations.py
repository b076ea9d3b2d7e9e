"""The relations of QAMPARI are all there, and a file of them is checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.errors import SetupError
from mapping.qampari.relations import Relations, load_relations
from tests.support.real_data import ROOT

FILE = ROOT / "mapping" / "qampari" / "relations.toml"


@pytest.fixture(scope="module")
def relations() -> Relations:
    return load_relations()


def test_the_lists_are_complete(relations: Relations) -> None:
    assert len(relations.simple) == 153
    assert len(relations.composition) == 270
    assert len(relations.simple.keys() | relations.composition.keys()) == 274
    assert sum(one.is_typed for one in relations.simple.values()) == 73
    assert len(relations.wanted_types) == len(set(relations.wanted_types)) == 105
    assert len(relations.type_words) == 9


def test_all_but_one_are_enabled(relations: Relations) -> None:
    assert [one.property_id for one in relations.simple.values() if not one.is_enabled] == ["P275"]
    assert all(one.is_enabled for one in relations.composition.values())
    assert relations.property_ids() == relations.simple.keys() | relations.composition.keys()


def test_nothing_of_a_template_is_left_in_words(relations: Relations) -> None:
    for one in relations.simple.values():
        shown = one.hypothesis("ANSWER", "ENTITY")
        assert (shown.count("ANSWER"), shown.count("ENTITY"), shown.count("{")) == (1, 1, 0), one
        assert one.is_typed == (one.plural is None), one
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
        ("\n[simple]\n", "\n[simple\n", "is no TOML"),
        ("P50 = {", "P050 = {", "simple.P050: expected a property"),
        ('noun = "books"', 'nuon = "books"', "simple.P50.nuon: expected one of ask, claim"),
        ('noun = "books", ', "", "simple.P50: expected noun, plural or types"),
        ('"were written by {entity}"', '"were written by"', "simple.P50.predicate: expected {entity} once"),
        ('"were written by {entity}"', '"by {entity} {enitty}"', "simple.P50.predicate: expected {entity} once"),
        ('of_many = "work for {entity}"', 'of_many = "work"', "simple.P108.of_many: expected {entity} once"),
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
