"""Triples as sentences."""

from __future__ import annotations

import pytest

from mapping.entail.triples import RELATIONS, state_triple, with_article


@pytest.mark.parametrize(
    ("query", "obj", "sentence"),
    [
        ("Ada Lovelace [SEP] place of birth", "London", "Ada Lovelace was born in London."),
        ("Ada [SEP] Occupation", "mathematician", "Ada works or worked as a mathematician."),
        ("Ada [SEP] occupation", "actor", "Ada works or worked as an actor."),
        ("A [SEP] B [SEP] father", "C", "C is the father of A [SEP] B."),
        ("Ada [SEP] shoe size", "37", "The shoe size of Ada is 37."),
        ("{s} [SEP] {o}", "{r}", "The {o} of {s} is {r}."),
        ("Ada\nLovelace [SEP]  father ", " Lord\tByron.", "Lord Byron is the father of Ada Lovelace."),
        # a day or a longer time
        ("Ada [SEP] date of birth", "1815", "Ada was born in 1815."),
        ("Ada [SEP] date of birth", "December 1815", "Ada was born in December 1815."),
        ("Ada [SEP] date of birth", "10 December 1815", "Ada was born on 10 December 1815."),
        ("Ada [SEP] date of death", "November 27, 1852", "Ada died on November 27, 1852."),
        ("Hamlet [SEP] publication date", "1603-05-12", "Hamlet was published on 1603-05-12."),
        ("Ada [SEP] date of birth", "1815-12-10T00:00:00Z", "Ada was born on 10 December 1815."),
        ("Ada [SEP] date of birth", "+1815-01-01T00:00:00Z", "Ada was born in 1815."),
        ("Ada [SEP] date of birth", "1815-00-00T00:00:00Z", "Ada was born in 1815."),
        ("Rome [SEP] inception", "-0753-04-00T00:00:00Z", "Rome was founded in April 753 BC."),
        ("Acme [SEP] inception", "4 July 1976", "Acme was founded on 4 July 1976."),
        # one end
        ("Acme [SEP] headquarters location", "Washington, D.C.", "Acme has its headquarters in Washington, D.C."),
        ("Song [SEP] performer", "Wham!", "Song was performed by Wham!"),
        # relations that are no nouns, or many
        ("Arlin [SEP] shares border with", "Corvo", "Arlin shares a border with Corvo."),
        ("Arlin [SEP] located on street", "Quay", 'The value of "located on street" for Arlin is Quay.'),
        ("Ada [SEP] member of the crew of", "Dawn", 'The value of "member of the crew of" for Ada is Dawn.'),
        ("Lake Miravel [SEP] lake inflows", "Ullane", "Of Lake Miravel the lake inflows include Ullane."),
        ("Hamlet [SEP] series", "Plays", "The series of Hamlet is Plays."),
        ("Ada was born in London", "x", None),
        (" [SEP] father", "x", None),
        ("Ada [SEP] ", "x", None),
        ("Ada [SEP] father", " . ", None),
    ],
)
def test_a_triple_becomes_a_sentence(query: str, obj: str, sentence: str | None) -> None:
    assert state_triple(query, obj) == sentence


@pytest.mark.parametrize(
    ("noun", "expected"),
    [
        ("island", "an island"),
        ("uninhabited island", "an uninhabited island"),
        ("university", "a university"),
        ("European country", "a European country"),
        ("US state", "a US state"),
        ("U.S. state", "a U.S. state"),
        ("Ukrainian village", "a Ukrainian village"),
        ("urban area", "an urban area"),
        ("usher", "an usher"),
        ("one-act play", "a one-act play"),
        ("Onega ship", "an Onega ship"),
        ("hour", "an hour"),
        ("house", "a house"),
        ("the moon", "the moon"),
    ],
)
def test_the_article_is_as_it_is_spoken(noun: str, expected: str) -> None:
    assert with_article(noun) == expected


def test_every_relation_says_something_of_both() -> None:
    for relation, template in RELATIONS.items():
        sentence = template.format(s="Ada", r="-", o="London") if ":" not in template else None

        assert relation == relation.lower()
        assert sentence is None or ("Ada" in sentence and "London" in sentence), relation
        assert (template.count("{s}"), template.count("{o")) == (1, 1), relation
