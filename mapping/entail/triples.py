"""A triple of subject, relation and object as one declarative sentence.

Relations go by their English labels. Of one that has no sentence of its own it is said that it *is* something, where
its label is a noun for all that can be seen; else the label is quoted.
"""

from __future__ import annotations

import re

from mapping.entail.declarative import ended, without_stop

SEPARATOR = " [SEP] "
"""Parts subject and relation of a slot-filling query. Source: section 3 of the KILT paper."""

RELATIONS: dict[str, str] = {
    "adjacent station": "{s} is next to {o}.",
    "author": "{s} was written by {o}.",
    "award received": "{s} received the award {o}.",
    "based on": "{s} is based on {o}.",
    "capital": "The capital of {s} is {o}.",
    "cast member": "{o} is a member of the cast of {s}.",
    "characters": "{o} is a character of {s}.",
    "child": "{o} is a child of {s}.",
    "collection": "{s} is in the collection of {o}.",
    "commissioned by": "{s} was commissioned by {o}.",
    "composer": "{s} was composed by {o}.",
    "conflict": "{s} took part in {o}.",
    "connecting line": "{s} is on the line {o}.",
    "connects with": "{s} connects with {o}.",
    "constellation": "{s} is in the constellation {o}.",
    "contains administrative territorial entity": "{s} contains {o}.",
    "continent": "{s} is located in {o}.",
    "convicted of": "{s} was convicted of {o}.",
    "country": "{s} is located in {o}.",
    "country of citizenship": "{s} is a citizen of {o}.",
    "country of origin": "{s} is from {o}.",
    "creator": "{s} was created by {o}.",
    "crosses": "{s} crosses {o}.",
    "date of birth": "{s} was born {o:on}.",
    "date of death": "{s} died {o:on}.",
    "dedicated to": "{s} is dedicated to {o}.",
    "depicts": "{s} depicts {o}.",
    "designed by": "{s} was designed by {o}.",
    "developer": "{s} was developed by {o}.",
    "director": "{s} was directed by {o}.",
    "discoverer or inventor": "{s} was discovered or invented by {o}.",
    "dissolved, abolished or demolished date": "{s} ended {o:on}.",
    "distributed by": "{s} was distributed by {o}.",
    "distributor": "{s} was distributed by {o}.",
    "drafted by": "{s} was drafted by {o}.",
    "edition or translation of": "{s} is an edition or a translation of {o}.",
    "educated at": "{s} is an alumnus of {o}.",
    "employer": "{s} works for {o}.",
    "end time": "{s} ended {o:on}.",
    "father": "{o} is the father of {s}.",
    "followed by": "{s} is followed by {o}.",
    "follows": "{s} follows {o}.",
    "found in taxon": "{s} is found in {o}.",
    "founded by": "{s} was founded by {o}.",
    "genre": "{s} is of the genre {o}.",
    "has part": "{s} has {o} as a part.",
    "has parts of the class": "{s} has parts that are {o}.",
    "has subsidiary": "{o} is a subsidiary of {s}.",
    "headquarters location": "{s} has its headquarters in {o}.",
    "inception": "{s} was founded {o:on}.",
    "influenced by": "{s} was influenced by {o}.",
    "instance of": "{s} is {o:a}.",
    "instrument": "{s} played {o}.",
    "killed by": "{s} was killed by {o}.",
    "languages spoken, written or signed": "{s} speaks or writes {o}.",
    "located in or next to body of water": "{s} is located in or next to {o}.",
    "located in the administrative territorial entity": "{s} is located in {o}.",
    "located in time zone": "{s} is located in the time zone {o}.",
    "located on astronomical body": "{s} is located on {o}.",
    "located on terrain feature": "{s} is located on {o}.",
    "lyrics by": "The lyrics of {s} were written by {o}.",
    "made from material": "{s} is made from {o}.",
    "maintained by": "{s} is maintained by {o}.",
    "manufacturer": "{s} is made by {o}.",
    "material used": "{s} is made from {o}.",
    "member of": "{s} is a member of {o}.",
    "member of political party": "{s} is a member of the political party {o}.",
    "member of sports team": "{s} played for {o}.",
    "military branch": "{s} served in {o}.",
    "moons": "{o} is a moon of {s}.",
    "mother": "{o} is the mother of {s}.",
    "mouth of the watercourse": "{s} flows into {o}.",
    "named after": "{s} is named after {o}.",
    "narrative location": "{s} is set in {o}.",
    "nominated for": "{s} was nominated for {o}.",
    "notable work": "{o} is a notable work of {s}.",
    "occupant": "{o} is an occupant of {s}.",
    "occupation": "{s} works or worked as {o:a}.",
    "operator": "{s} is operated by {o}.",
    "organizer": "{s} is organised by {o}.",
    "original broadcaster": "{s} was broadcast by {o}.",
    "original network": "{s} was broadcast by {o}.",
    "owned by": "{s} is owned by {o}.",
    "parent astronomical body": "{s} goes around {o}.",
    "parent taxon": "{s} belongs to {o}.",
    "part of": "{s} is a part of {o}.",
    "participant": "{o} took part in {s}.",
    "participant in": "{s} took part in {o}.",
    "participant of": "{s} took part in {o}.",
    "participating team": "{o} took part in {s}.",
    "performer": "{s} was performed by {o}.",
    "place of birth": "{s} was born in {o}.",
    "place of burial": "{s} is buried in {o}.",
    "place of death": "{s} died in {o}.",
    "point in time": "{s} took place {o:on}.",
    "position held": "{s} held the position of {o}.",
    "position played on team / speciality": "{s} plays as {o}.",
    "present in work": "{s} is present in {o}.",
    "producer": "{s} was produced by {o}.",
    "production company": "{s} was produced by {o}.",
    "publication date": "{s} was published {o:on}.",
    "publisher": "{s} was published by {o}.",
    "record label": "{s} is signed to or released by {o}.",
    "religion": "{s} belongs to the religion {o}.",
    "replaced by": "{s} is replaced by {o}.",
    "replaces": "{s} replaces {o}.",
    "residence": "{s} lived in {o}.",
    "screenwriter": "{s} was written by {o}.",
    "service entry": "{s} entered service {o:on}.",
    "shares border with": "{s} shares a border with {o}.",
    "sibling": "{o} is a sibling of {s}.",
    "sport": "{s} plays the sport {o}.",
    "spouse": "{s} is married to {o}.",
    "start time": "{s} began {o:on}.",
    "student": "{o} was a student of {s}.",
    "student of": "{s} was a student of {o}.",
    "studies": "{s} studies {o}.",
    "subclass of": "{s} is a kind of {o}.",
    "taxon rank": "{s} is a taxon of the rank {o}.",
    "time of discovery or invention": "{s} was discovered or invented {o:on}.",
    "use": "{s} is used for {o}.",
    "used by": "{s} is used by {o}.",
    "vessel class": "{s} is a ship of the class {o}.",
    "voice actor": "{o} is a voice actor of {s}.",
    "winner": "{o} won {s}.",
}
"""English label of a Wikidata property -> sentence about subject and object, which may come with its article (``:a``)
or, for a point in time, with *in* or *on* (``:on``)."""

# The watch is made by, the tree is native to, the bridge crosses: such labels are no nouns.
_NO_NOUN = re.compile(
    r"(?:\w+ed|has|is|was|does|made|named|found|born|known|taken|given|held|shares|contains|connects|follows|said|kept)\b"
    r"|.*\s(?:about|after|as|at|before|by|for|from|in|into|of|on|to|under|with)$",
    re.IGNORECASE,
)
_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_TIME_STAMP = re.compile(r"(?P<sign>[+-]?)(?P<year>\d{1,9})-(?P<month>\d\d)-(?P<day>\d\d)T00:00:00Z")
_DAY = re.compile(
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?)(?:,? .*)?|\d+-\d\d-\d\d"
)
# Spoken, not written: a university, a European, but an uninhabited island; an hour.
_VOWEL = re.compile(
    r"(?!eu|ewe|(?:one|once)\b|uni(?![dmn])|us(?:e|ual|u?r)|utili|uto|uk|ur[au]|uga|u\.?[ksn]\.?(?![a-z]))[aeiou]"
    r"|h(?:our|eir|onest|onou?r)",
    re.IGNORECASE,
)
_WITH_ARTICLE = re.compile(r"(?:a|an|the|one of|some) ", re.IGNORECASE)


class _Object(str):
    """The object of a triple, which sentences may want with an article or a preposition."""

    __slots__ = ()

    def __format__(self, wanted: str) -> str:
        if wanted == "a":
            return with_article(self)
        if wanted == "on":
            return f"{'on' if _DAY.fullmatch(self) else 'in'} {self}"
        return str(self)


def state_triple(query: str, obj: str) -> str | None:
    """Gives a sentence for a slot-filling query, ``subject [SEP] relation``, and its object; None for another query.

    >>> state_triple("Abraham Lincoln [SEP] place of birth", "Hodgenville")
    'Abraham Lincoln was born in Hodgenville.'
    >>> state_triple("Halvane Isles [SEP] anthem", "Song of the Tide")
    'The anthem of Halvane Isles is Song of the Tide.'
    """
    subject, separator, relation = (" ".join(part.split()) for part in query.rpartition(SEPARATOR))
    found = _Object(_readable_time(without_stop(" ".join(obj.split()))))
    if not separator or not subject or not relation or not found:
        return None
    template = RELATIONS.get(relation.lower()) or _template_of(relation)
    return ended(template.format(s=subject, r=relation, o=found).removesuffix("."))


def _readable_time(text: str) -> str:
    """Gives a time stamp of Wikidata as one says it, and any other text as it is.

    The first of January stands for all that is known to the year, so of it the year alone is given.
    """
    found = _TIME_STAMP.fullmatch(text)
    if found is None:
        return text
    year = f"{int(found['year'])}{' BC' if found['sign'] == '-' else ''}"
    month, day = int(found["month"]), int(found["day"])
    if not 1 <= month <= 12 or not 0 <= day <= 31 or (month, day) == (1, 1):
        return year
    return f"{day} {_MONTHS[month - 1]} {year}" if day else f"{_MONTHS[month - 1]} {year}"


def _template_of(relation: str) -> str:
    """Gives the sentence of a relation that has none of its own."""
    if _NO_NOUN.match(relation):
        return 'The value of "{r}" for {s} is {o}.'
    is_plural = relation.endswith("s") and not relation.endswith(("ss", "us", "is", "series"))
    return "Of {s} the {r} include {o}." if is_plural else "The {r} of {s} is {o}."


def with_article(noun: str) -> str:
    """Gives a noun with the indefinite article.

    >>> with_article("island"), with_article("university"), with_article("the moon")
    ('an island', 'a university', 'the moon')
    """
    if _WITH_ARTICLE.match(noun):
        return noun
    return f"{'an' if _VOWEL.match(noun) else 'a'} {noun}"
