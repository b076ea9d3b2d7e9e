"""A question and its answer as one declarative sentence, and a triple as one, for a model that judges sentences.

Rules without a parser: what they cannot turn for certain is quoted. *Who wrote Hamlet?* and *Shakespeare* give
*Shakespeare wrote Hamlet.*; *When did the war end?* and *1945* give *The answer to the question "When did the war
end?" is 1945.*
"""

from __future__ import annotations

import re

# After these the subject follows, and the verb would have to be moved: who did she marry.
_INVERTS = frozenset("am can could did do does may might must shall should will would".split())
# What and which ask for a thing of a kind just as often; before these they stand for the whole subject.
_COPULAS = frozenset("are has had have is was were".split())
_SUBJECT = re.compile(r"(?P<wh>who|what|which)(?:'s| (?P<verb>[^ ]+))(?P<rest> .+)?", re.IGNORECASE)
# Who was Lincoln shot by: the gap is at the end.
_STRANDED = re.compile(r"\s(?:about|at|by|for|from|in|of|on|to|with)$", re.IGNORECASE)

SEPARATOR = " [SEP] "
"""Parts subject and relation of a slot-filling query. Source: section 3 of the KILT paper."""

RELATIONS: dict[str, str] = {
    "author": "{s} was written by {o}.",
    "award received": "{s} received the award {o}.",
    "capital": "The capital of {s} is {o}.",
    "cast member": "{o} is a member of the cast of {s}.",
    "child": "{o} is a child of {s}.",
    "composer": "{s} was composed by {o}.",
    "conflict": "{s} took part in {o}.",
    "continent": "{s} is located in {o}.",
    "country": "{s} is located in {o}.",
    "country of citizenship": "{s} is a citizen of {o}.",
    "country of origin": "{s} is from {o}.",
    "creator": "{s} was created by {o}.",
    "date of birth": "{s} was born on {o}.",
    "date of death": "{s} died on {o}.",
    "developer": "{s} was developed by {o}.",
    "director": "{s} was directed by {o}.",
    "discoverer or inventor": "{s} was discovered or invented by {o}.",
    "educated at": "{s} is an alumnus of {o}.",
    "employer": "{s} works for {o}.",
    "father": "{o} is the father of {s}.",
    "founded by": "{s} was founded by {o}.",
    "genre": "{s} is of the genre {o}.",
    "has part": "{s} has {o} as a part.",
    "headquarters location": "{s} has its headquarters in {o}.",
    "inception": "{s} was founded in {o}.",
    "instance of": "{s} is a {o}.",
    "instrument": "{s} played {o}.",
    "located in the administrative territorial entity": "{s} is located in {o}.",
    "manufacturer": "{s} is made by {o}.",
    "member of": "{s} is a member of {o}.",
    "member of political party": "{s} is a member of the political party {o}.",
    "member of sports team": "{s} played for {o}.",
    "mother": "{o} is the mother of {s}.",
    "named after": "{s} is named after {o}.",
    "occupation": "{s} works or worked as a {o}.",
    "owned by": "{s} is owned by {o}.",
    "parent taxon": "{s} belongs to {o}.",
    "part of": "{s} is a part of {o}.",
    "performer": "{s} was performed by {o}.",
    "place of birth": "{s} was born in {o}.",
    "place of burial": "{s} is buried in {o}.",
    "place of death": "{s} died in {o}.",
    "position held": "{s} held the position of {o}.",
    "position played on team / speciality": "{s} plays as {o}.",
    "producer": "{s} was produced by {o}.",
    "production company": "{s} was produced by {o}.",
    "publication date": "{s} was published in {o}.",
    "publisher": "{s} was published by {o}.",
    "record label": "{s} is signed to or released by {o}.",
    "religion": "{s} belongs to the religion {o}.",
    "residence": "{s} lived in {o}.",
    "screenwriter": "{s} was written by {o}.",
    "sibling": "{o} is a sibling of {s}.",
    "sport": "{s} plays the sport {o}.",
    "spouse": "{s} is married to {o}.",
    "subclass of": "{s} is a kind of {o}.",
}
"""English label of a Wikidata property -> sentence about subject and object."""


def state_answer(question: str, answer: str) -> str:
    """Gives a sentence that says that the answer answers the question.

    >>> state_answer("who got the first nobel prize in physics", "Wilhelm Röntgen")
    'Wilhelm Röntgen got the first nobel prize in physics.'
    >>> state_answer("Where was Lincoln born?", "Hodgenville")
    'The answer to the question "Where was Lincoln born?" is Hodgenville.'
    """
    question = " ".join(question.split())
    answer = " ".join(answer.split()).rstrip(".")
    body = question.rstrip("?. ")
    found = _SUBJECT.fullmatch(body)
    if found is None or not _asks_for_subject(found, body):
        asked = question if question.endswith("?") else f"{body}?"
        return f'The answer to the question "{asked}" is {answer}.'
    return f"{answer} {found['verb'] or 'is'}{found['rest'] or ''}."


def _asks_for_subject(found: re.Match[str], body: str) -> bool:
    verb = (found["verb"] or "is").lower()
    if verb in _INVERTS or _STRANDED.search(body):
        return False
    if found["rest"] is None:
        return found["wh"].lower() == "who" and verb not in _COPULAS
    return found["wh"].lower() == "who" or verb in _COPULAS


def state_triple(query: str, obj: str) -> str | None:
    """Gives a sentence for a slot-filling query, ``subject [SEP] relation``, and its object; None for another query.

    >>> state_triple("Abraham Lincoln [SEP] place of birth", "Hodgenville")
    'Abraham Lincoln was born in Hodgenville.'
    >>> state_triple("Halvane Isles [SEP] anthem", "Song of the Tide")
    'The anthem of Halvane Isles is Song of the Tide.'
    """
    subject, separator, relation = (part.strip() for part in query.rpartition(SEPARATOR))
    if not separator or not subject or not relation:
        return None
    template = RELATIONS.get(relation.lower(), "The {r} of {s} is {o}.")
    return template.format(s=subject, r=relation, o=obj.strip().rstrip("."))
