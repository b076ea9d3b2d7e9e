"""Rules of QAMPARI that no other test holds; tests/rules/qampari_rules.md has all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from kbsource.files import LocalStorage
from kbsource.records import Anchor, Element, Page
from kbsource.wikidata.reader import WikidataTables
from mapping.entail.signal import DEFAULT_MODEL, MAX_TOKENS
from mapping.metrics.evaluation_options import DEFAULT_KS
from mapping.metrics.retrieval import shares_most
from mapping.qampari.facts.evidence import Sought, item_names, number_names
from mapping.qampari.lists.table_evidence import value_names
from mapping.qampari.questions import (
    COMPOSITION,
    INTERSECTION,
    SIMPLE,
    TABLE_COMPOSITION,
    TABLE_SIMPLE,
    CompositionQuery,
    SimpleQuery,
    composition_question,
    simple_question,
)
from mapping.qampari.relations import Relations, load_relations
from mapping.qampari.selection import AnswerFilter, SampleSizes
from tests.support.entities import array, item, item_snak, make, snak, statement, terms
from tests.support.qampari_joins import class_types, find_classes, names_of, simple_facts, values_of
from tests.support.qampari_proofs import find_candidates


@pytest.fixture(scope="module")
def relations() -> Relations:
    return load_relations()


# --- words ------------------------------------------------------------------------------------------------------------


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
    query = SimpleQuery(property_id, "Q1", "film" if relation.is_typed else None)

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


# --- Wikidata in several languages, and what counts of a statement ----------------------------------------------------


def _time(year: str) -> dict[str, Any]:
    value = {"time": f"{year}-00-00T00:00:00Z", "timezone": 0, "before": 0, "after": 0, "precision": 9}
    return snak("P577", "time", "time", {**value, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"})


def _amount(amount: str) -> dict[str, Any]:
    return snak("P1082", "quantity", "quantity", {"amount": amount, "unit": "1"})


def _motto(language: str, text: str) -> dict[str, Any]:
    return snak("P1451", "monolingualtext", "monolingualtext", {"language": language, "text": text})


def _aliases(**texts: str) -> dict[str, Any]:
    return {language: [{"language": language, "value": text}] for language, text in texts.items()}


ENDED = {"qualifiers": {"P582": [{"snaktype": "somevalue", "property": "P582", "datatype": "time"}]}}
LINES = [
    item("Q100", labels=terms(de="film", en="movie")),
    item("Q101", labels=terms(de="Film", en="film")),
    item("Q1", item_snak("P31", "Q100"), item_snak("P31", "Q101"), _motto("de", "Hier"), _motto("fr", "Ici"),
        _motto("en", "Here"), labels=terms(de="Fluss", fr="fleuve", en="river"),
        aliases=_aliases(de="Strom", en="stream", fr="rivière")),
    item("Q2", item_snak("P31", "Q100"), labels=terms(de="See", fr="lac"), aliases=_aliases(de="Teich")),
    item("Q3", claims={
        "P1082": [
            statement(_amount("+100"), rank="deprecated"),
            statement(_amount("+200"), **ENDED),
            statement(_amount("+300")),
            statement(_amount("+400"), rank="preferred"),
        ],
        "P577": [
            statement({"snaktype": "somevalue", "property": "P577", "datatype": "time"}),
            statement(_time("-0300")),
            statement(_time("+1900")),
        ],
        "P31": [
            statement(item_snak("P31", "Q100")),
            statement(item_snak("P31", "Q101"), rank="deprecated"),
        ],
    }),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> WikidataTables:
    folder = tmp_path_factory.mktemp("wikidata")
    (folder / "dump.json").write_bytes(array(LINES))
    make(folder / "dump.json", output=folder / "release", languages=("de", "fr", "en"))
    return WikidataTables.open(str(folder / "release"), LocalStorage())


class _NoPages:
    def page(self, item: int) -> None:
        return None


def test_names_are_in_english_whatever_languages_wikidata_is_in(tables: WikidataTables) -> None:
    items = np.array([1, 2], np.int64)
    named = names_of(tables, items, _NoPages()).rows(items)  # type: ignore[arg-type]

    assert [named[item].names for item in items.tolist()] == [("river", "stream"), ()]


def test_classes_are_found_by_english_labels_whatever_languages_wikidata_is_in(tables: WikidataTables) -> None:
    # Q100 has more instances, and is called film in German.
    assert find_classes(tables, ["film", "movie"]) == {"film": "Q101", "movie": "Q100"}


def _values(tables: WikidataTables, property_id: str) -> Iterator[tuple[int, str]]:
    for batch in values_of(tables, np.array([1, 2, 3]), [property_id]):
        yield from zip(batch["subject"].to_pylist(), batch["value"].to_pylist(), strict=True)


def test_texts_are_values_in_english_alone(tables: WikidataTables) -> None:
    assert list(_values(tables, "P1451")) == [(1, "Here")]


def test_of_numbers_and_years_the_first_that_holds_counts(tables: WikidataTables) -> None:
    # Neither a deprecated nor an ended one, nor one without a value; a preferred one does not come before it.
    assert list(_values(tables, "P1082")) == [(3, "300")]
    assert list(_values(tables, "P577")) == [(3, "-300")]


def test_a_subject_has_the_types_of_all_of_its_classes_that_hold(tables: WikidataTables) -> None:
    types = class_types(tables, {"film": "Q101", "movie": "Q100"})
    facts = [row for batch in simple_facts(tables, ["P31"], types) for row in batch.to_pylist()]

    assert {(row["subject"], row["types_0"]) for row in facts} == {(1, 0b11), (2, 0b10), (3, 0b10)}


# --- evidence ---------------------------------------------------------------------------------------------------------


def _page(*paragraphs: str, links: tuple[tuple[int, str, int], ...] = ()) -> Page:
    elements = [
        Element("title", 1, None, "", (), "Title"),
        *(Element("paragraph", 0, None, "", (), p) for p in paragraphs),
    ]
    anchors = []
    for number, text, target in links:
        start = elements[number].text.index(text)
        anchors.append(Anchor(number, start, start + len(text), text, "T", None, target, "T"))
    values: dict[str, Any] = dict.fromkeys((one.name for one in fields(Page)), ())
    return Page(**values | {"page_id": 1, "elements": tuple(elements), "anchors": tuple(anchors)})


def _found(name: str, *paragraphs: str) -> list[str]:
    return [one.text for one in find_candidates(_page(*paragraphs), Sought((name,)))]


def test_the_sentences_before_are_of_the_same_paragraph() -> None:
    assert _found("Ullane", "One. Two.", "It is the Ullane. It is long.", "Three. The Ullane ends.") == [
        "It is the Ullane.",
        "Three. The Ullane ends.",
    ]


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        ("(500) Days", "They saw (500) Days.", True),
        ("Yahoo!", "He left Yahoo! then.", True),
        ("Yahoo!", "He left (Yahoo!).", True),
        ("Yahoo!", "It is Yahoo!s own.", False),
        (".hack", "The series .hack began.", True),
        (".hack", "The file a.hack is gone.", False),
        ("Guns N' Roses", "He heard GUNS N' ROSES.", True),
        ("AC/DC", "An AC/DC song.", True),
        ("C++", "It is in C++.", True),
        ("北京", "It is called 北京 there.", True),
        # Scripts without blanks: where letters stand on both sides nothing tells words apart.
        ("北京", "它位于北京市。", False),
    ],
)
def test_names_with_marks_at_their_edges_and_in_other_scripts(name: str, text: str, is_found: bool) -> None:
    assert bool(_found(name, text)) == is_found


@pytest.mark.parametrize(
    ("number", "text", "is_found"),
    [
        ("250", "It has 250 steps.", True),
        ("250", "It has 1,250 steps.", False),
        ("250", "1,250 steps.", False),
        ("250", "It has 250,000 steps.", False),
        ("250", "It is 250.5 long.", False),
        ("250", "It has 250, 300 or more.", True),
        ("250", "It has 250. 3 are new.", True),
        ("1954", "On 12.5.1954 it rained.", True),
        ("250", "1,250, or 250?", True),
    ],
)
def test_a_number_is_not_found_in_a_longer_one(number: str, text: str, is_found: bool) -> None:
    assert bool(_found(number, text)) == is_found


@pytest.mark.parametrize(
    ("amount", "names"), [("10.0", ("10.0",)), ("0.10", ("0.10",)), ("0.1", ()), ("1.50", ("1.50",))]
)
def test_no_form_of_a_number_has_less_than_three_digits(amount: str, names: tuple[str, ...]) -> None:
    assert number_names(amount) == value_names(amount) == names


def test_links_are_candidates_after_all_names() -> None:
    page = _page("There is the stream. Here is it.", "The Ullane ends.", links=((1, "stream", 7),))

    found = find_candidates(page, Sought(("Ullane",), 7))
    assert [(one.found, one.is_link) for one in found] == [("Ullane", False), ("stream", True)]


def test_a_page_names_things_by_letters_and_not_by_their_case() -> None:
    assert item_names("IBM", [("en", "Big"), ("en", "Blue")]) == ("IBM", "Blue")
    assert _found("IBM", "The ibm works.") == ["The ibm works."]


# --- what is the default ----------------------------------------------------------------------------------------------


def test_the_model_and_the_sizes_are_the_published_ones() -> None:
    assert (DEFAULT_MODEL, MAX_TOKENS) == ("ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli", 256)
    assert SampleSizes().pool == {
        SIMPLE: 830,
        COMPOSITION: 400,
        INTERSECTION: 400,
        TABLE_SIMPLE: 170,
        TABLE_COMPOSITION: 200,
    }
    assert DEFAULT_KS == (10, 25, 50, 100, 200)


@pytest.mark.parametrize(
    ("n_values", "n_right", "n_pairs", "outcome"),
    [
        (5, 300, 300, "kept"),
        (5, 8, 10, "kept"),
        (5, 7, 10, "share_too_low"),
        (4, 90, 90, "too_few_validated"),
        (200, 900, 900, "kept"),
        (201, 201, 201, "too_many_validated"),
    ],
)
def test_bounds_of_a_composition_are_of_values_and_the_share_is_of_pairs(
    n_values: int, n_right: int, n_pairs: int, outcome: str
) -> None:
    assert AnswerFilter().outcome(n_values, n_values, n_pairs=(n_right, n_pairs)) == outcome


def test_texts_of_any_length_are_compared() -> None:
    text = "".join(f"{number} " for number in range(20_000))

    assert shares_most(text, f"x{text}")
    assert not shares_most(text, text[: len(text) // 2] + "x" * (len(text) // 2))
