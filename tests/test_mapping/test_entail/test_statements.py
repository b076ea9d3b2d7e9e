"""Questions and their answers as sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.entail.statements import relation_sentences, state_answer, state_triple, with_article

TURNED = [
    (
        "who wrote the song photograph by ringo starr",
        "Ringo Starr",
        "Ringo Starr wrote the song photograph by ringo starr.",
    ),
    ("who is playing the lantern", "Bruno Mahr", "Bruno Mahr is playing the lantern."),
    ("Who's the mayor of Port Sellick?", "Ada", "Ada is the mayor of Port Sellick."),
    ("who 's the mayor of port sellick", "Ada", "Ada is the mayor of port sellick."),
    ("Who’s the mayor of Port Sellick?", "Ada", "Ada is the mayor of Port Sellick."),
    ("What is the capital of the Halvane Isles?", "Port Sellick", "Port Sellick is the capital of the Halvane Isles."),
    ("what's the capital of france", "Paris", "Paris is the capital of france."),
    ("what has four legs", "a chair", "A chair has four legs."),
    ("what is the main mineral of it", "lithium", "Lithium is the main mineral of it."),
    ("who is the maker of it", "bTV", "bTV is the maker of it."),
    ("who got the first prize", "A. B. Cee.", "A. B. Cee got the first prize."),
    (
        "Who was known by his stage name Aladin and helped organizations improve?",
        "Eenasul Fateh",
        "Eenasul Fateh was known by his stage name Aladin and helped organizations improve.",
    ),
    ("Who was the man behind The Chipmunks?", "David Seville", "David Seville was the man behind The Chipmunks."),
    ("who has won the most oscars", "Walt Disney", "Walt Disney has won the most oscars."),
    ("who has the power to declare war", "Congress", "Congress has the power to declare war."),
    ("who is barack obama's wife", "Michelle Obama", "Michelle Obama is barack obama's wife."),
    ("What is AC/DC's first album?", "High Voltage", "High Voltage is AC/DC's first album."),
    ("who are the members of the band", "Ada, Bo, and Cy", "Ada, Bo, and Cy are the members of the band."),
    ("who plays jon snow in game of thrones", "Kit Harington", "Kit Harington plays jon snow in game of thrones."),
    ("who sang love me do", "The Beatles", "The Beatles sang love me do."),
    ("who first walked on the moon", "Neil Armstrong", "Neil Armstrong first walked on the moon."),
    ("Which is the largest planet?", "Jupiter", "Jupiter is the largest planet."),
    ("What is the most common language in Brazil?", "Portuguese", "Portuguese is the most common language in Brazil."),
    ("who is not the longest river", "The River", "The River is not the longest river."),
    ("who was president of the us in 1990", "George Bush", "George Bush was president of the us in 1990."),
    ("who is responsible for gravity", "Newton", "Newton is responsible for gravity."),
    ("who is in the band", "Ada", "Ada is in the band."),
    ("who was elected in 1960", "John F. Kennedy", "John F. Kennedy was elected in 1960."),
    ("what is used to measure rain", "the gauge", "The gauge is used to measure rain."),
    ("what was the name of the man who was called Bob", "Robert", "Robert was the name of the man who was called Bob."),
    ("Who founded Yahoo!?", "Jerry Yang", "Jerry Yang founded Yahoo!"),
    ('"Who wrote Hamlet?"', "Ada", "Ada wrote Hamlet."),
    ("who wrote hamlet .", "Shakespeare", "Shakespeare wrote hamlet."),
    ("who wrote it", "Samuel Jackson Jr.", "Samuel Jackson Jr. wrote it."),
    ("who won the 2017 world series", "the Houston Astros", "The Houston Astros won the 2017 world series."),
    ("who killed the king", "100,000 men", "100,000 men killed the king."),
    ('who said "I am the king"', "Leo", 'Leo said "I am the king".'),
]

QUOTED = [
    # a verb that stands behind its subject
    ("What was the father of Kasper Schmeichel voted to be by the IFFHS?", "Goalkeeper"),
    ("What is the ship named?", "Titanic"),
    ("what is the man who shot Ada called", "Bo"),
    ("who is tom cruise dating", "Ada"),
    ("who is the king meeting in paris", "Ada"),
    ("who has taylor swift dated", "Joe"),
    ("who had the king married", "Ada"),
    ("what is the population of Paris expected to reach", "3 million"),
    ("who did she marry", "Bruno"),
    # a preposition that is left behind
    ("who was he shot by", "Bruno"),
    ("who was lincoln named after", "Abraham"),
    ("Who was the US at war with in 1812?", "Britain"),
    ("who is the song hello about", "Ada"),
    ("who is the girl in the red dress married to", "Bo"),
    # several questions
    ("Who is older, Annie Morton or Terry Richardson?", "Terry Richardson"),
    ("Who was the writer of the song and who died in 2007?", "Barton Lee Hazlewood"),
    ("who discovered america and when", "Columbus"),
    ("who plays who in harry potter", "Ada"),
    ("Who wrote the play? Name him", "Ada"),
    # an explanation, not another name
    ("what is a cat", "a mammal"),
    ("What was the Titanic?", "a ship"),
    ("What is the whole of the thing?", "a sum"),
    ("what is considered the capital", "Paris"),
    ("what is photosynthesis", "a process"),
    ("who was abraham lincoln", "the 16th president"),
    ("who is it", "Ada"),
    # another number
    ("who are the members of the band", "Ada"),
    ("who is playing the lantern", "Coldplay and Beyonce"),
    ("who sings love me do", "The Beatles"),
    ("what has four legs", "chairs"),
    ("who has the most super bowls", "Pittsburgh Steelers"),
    ("who play in the super bowl", "Eagles"),
    # no verb
    ("who the hell is Ada", "Bo"),
    ("who s the mayor", "Ada"),
    ("Who Framed Roger Rabbit was directed by whom?", "Zemeckis"),
    ("WHO is the agency of health?", "Geneva"),
    ("Who's won the most Oscars?", "Walt Disney"),
    ("who", "x"),
    ("who is the", "Ada"),
    ("who always it's me", "Ada"),
    # no subject
    ("who won the election", "No"),
    ("who invented the light bulb", "In 1890"),
    ("what is the first step of it", "because"),
    ("who invented the light bulb", "Edison; Swan"),
    ("who is the founder of apple", "Steve Jobs, Steve Wozniak"),
    ("who invented the light bulb", "Thomas Edison invented it. He did."),
    ("who sang it", "Guess Who?"),
    # other questions
    ("When did the war end?", "1945"),
    ("What year is it?", "1945"),
    ("Whose book is it?", "Ada's"),
    ("Is it so?", "yes"),
    ("who does the voice of lola bunny", "Ada"),
    ("who can vote", "adults"),
    ("In which country is it?", "Japan"),
    ("it was written by who?", "Ada"),
]


@pytest.mark.parametrize(("question", "answer", "sentence"), TURNED)
def test_the_answer_takes_the_place_of_a_question_word_that_is_the_subject(
    question: str, answer: str, sentence: str
) -> None:
    assert state_answer(question, answer) == sentence


@pytest.mark.parametrize(("question", "answer"), QUOTED)
def test_where_no_rule_is_certain_the_question_is_quoted(question: str, answer: str) -> None:
    asked = question if question.endswith("?") else f"{question}?"
    assert state_answer(question, answer).startswith(f'The answer to the question "{asked}" is {answer}')


@pytest.mark.parametrize(
    ("question", "answer", "sentence"),
    [
        ("when did it end", "1945.", 'The answer to the question "when did it end?" is 1945.'),
        ("Where is it?", "Washington, D.C.", 'The answer to the question "Where is it?" is Washington, D.C.'),
        ("Where is it ?", "Yahoo!", 'The answer to the question "Where is it ?" is Yahoo!'),
        ("where is it", "He said “No.”", 'The answer to the question "where is it?" is He said “No.”'),
        ("where is it?!", "Rome", 'The answer to the question "where is it?!" is Rome.'),
        ("  where \n is\tit. ", " New\nYork ", 'The answer to the question "where is it?" is New York.'),
        ("これは誰ですか？", "エイダ", 'The answer to the question "これは誰ですか？" is エイダ.'),
        # no question
        ("Name the author.", "Ada", 'The answer to the question "Name the author." is Ada.'),
        ("the capital of France", "Paris", 'The answer to the question "the capital of France" is Paris.'),
        ("?", "x", 'The answer to the question "?" is x.'),
    ],
)
def test_a_sentence_has_one_end_and_a_question_its_mark(question: str, answer: str, sentence: str) -> None:
    assert state_answer(question, answer) == sentence


@given(st.text(max_size=60), st.text(min_size=1, max_size=30))
def test_any_text_becomes_one_line(question: str, answer: str) -> None:
    sentence = state_answer(question, answer)
    assert sentence == " ".join(sentence.split())
    assert " ".join(answer.split()).removesuffix(".").rstrip() in sentence


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
    for relation, template in relation_sentences().items():
        sentence = template.format(s="Ada", r="-", o="London") if ":" not in template else None
        assert relation == relation.lower()
        assert sentence is None or ("Ada" in sentence and "London" in sentence), relation
        assert (template.count("{s}"), template.count("{o")) == (1, 1), relation
