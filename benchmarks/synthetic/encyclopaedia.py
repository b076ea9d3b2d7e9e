"""Generates an encyclopaedia and its Wikidata: pages of a few paragraphs that state most facts of the items.

Of a hundred pages, forty are about persons, twenty-five about films, fifteen about books, ten about organisations and
five about places. One is a list with a table. The other pages state no facts. Most values have few subjects, and some
have hundreds, whatever the number of pages. Only countries have more subjects than a question may have. The texts and
the relations between items depend only on the number of pages.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from benchmarks.make_dump import HEAD, TAIL, made_up_page
from benchmarks.synthetic.form import Words

SITE = "enwiki"
FIRST_ITEM = 10_000_000
"""The item of a page has this number more than the page."""
_FIRST_CLASS, _FIRST_OTHER = 5_000_000, 6_000_000
SAID = 0.94
"""Share of the facts that the subject's page says."""
_BY_LINK, _BY_ALIAS = 0.5, 0.1
_LISTED_AT_ONCE = 30
_FILLERS, _FILLER_WORDS, _PARAGRAPHS = 12, 14, 4
_GROUP_SIZES = (3, 6, 8, 12, 20, 45, 120, 230)
_GROUP_WEIGHTS = (30, 25, 18, 12, 8, 4, 2, 1)
_SYLLABLES = 70
_CONSONANTS, _VOWELS = "bdfghklmnprstv", "aeiou"
_STEP = 500_000_003  # without a common divisor with 70^5, so that names of neighbours are unlike
_IDENTIFIERS = ("P213", "P214", "P227", "P244")

CLASSES = {
    "human": ("person",),
    "person": ("entity",),
    "film": ("audiovisual work",),
    "audiovisual work": ("creative work",),
    "creative work": ("entity",),
    "book": ("written work",),
    "written work": ("creative work",),
    "organization": ("entity",),
    "human settlement": ("geographic entity",),
    "geographic entity": ("entity",),
    "occupation": ("entity",),
    "country": ("geographic entity",),
    "entity": (),
}
DATATYPES = {
    "P569": "time",
    "P571": "time",
    "P577": "time",
    "P1082": "quantity",
    **dict.fromkeys(_IDENTIFIERS, "external-id"),
}
SENTENCES = {
    "P19": "{subject} was born in {value}.",
    "P27": "{subject} is a citizen of {value}.",
    "P57": "{subject} was directed by {value}.",
    "P161": "{value} plays in {subject}.",
    "P840": "The story of {subject} goes on in {value}.",
    "P50": "{subject} was written by {value}.",
    "P123": "{subject} was published by {value}.",
    "P69": "{subject} went to {value} to learn.",
    "P106": "{subject} worked as a {value}.",
    "P159": "{subject} has its seat in {value}.",
    "P569": "{subject} came into the world in {value}.",
    "P571": "{subject} was set up in {value}.",
    "P577": "{subject} came out in {value}.",
    "P1082": "{subject} has {value} inhabitants.",
}


class MadeFiles(NamedTuple):
    """Paths of a dump of Wikipedia and a dump of Wikidata."""

    dump: Path
    wikidata: Path


class Encyclopaedia:
    """All facts that the pages state. Takes some kilobytes of memory for each page."""

    def __init__(self, n_pages: int) -> None:
        self.n_pages = n_pages
        self._words = Words(f"encyclopaedia {n_pages}")
        self._rng = self._words.rng
        kinds = [_kind(number) for number in range(n_pages)]
        self._rng.shuffle(kinds)
        self._kinds = dict(enumerate(kinds, start=1))
        self._claims: dict[int, list[tuple[str, int]]] = {number: [] for number in self._kinds}
        self._naming: dict[int, list[int]] = {}
        of_kind = {
            kind: [number for number, kind_of_item in self._kinds.items() if kind_of_item == kind]
            for kind in set(kinds)
        }
        persons, films, books, places, organisations = (
            of_kind[kind] for kind in ("human", "film", "book", "human settlement", "organization")
        )
        n_others = max(1, n_pages // 200)
        self.occupations = [_FIRST_OTHER + number for number in range(n_others)]
        self.countries = [_FIRST_OTHER + n_others + number for number in range(max(1, n_pages // 2000))]
        self._deal("P19", persons, places)
        self._deal("P69", persons, organisations)
        self._spread("P106", persons, self.occupations)
        self._spread("P27", persons, self.countries)
        films = self._deal("P57", films, persons)
        self._deal("P161", films, persons, is_shuffled=False)
        self._deal("P840", films, places)
        books = self._deal("P50", books, persons)
        self._deal("P123", books, organisations)
        self._deal("P159", organisations, places)
        for numbers, name, first, last in (
            (persons, "P569", 1880, 1990),
            (organisations, "P571", 1800, 2010),
            (films + books, "P577", 1930, 2020),
            (places, "P1082", 1_000, 900_000),
        ):
            for number in numbers:
                self._claims[number].append((name, self._rng.randint(first, last)))
        directed = [group for group in self._groups if group[0] in ("P57", "P50") and 5 <= len(group[2]) <= 45]
        self._lists = dict(zip(of_kind.get("list", ()), directed, strict=False))

    @property
    def _groups(self) -> list[tuple[str, int, list[int]]]:
        by_value: dict[tuple[str, int], list[int]] = {}
        for number, claims in self._claims.items():
            for name, value in claims:
                by_value.setdefault((name, value), []).append(number)
        return [(name, value, numbers) for (name, value), numbers in by_value.items()]

    def _deal(
        self, name: str, subjects: Sequence[int], values: Sequence[int], *, is_shuffled: bool = True
    ) -> list[int]:
        """Assigns a value to each subject, in groups of very different sizes; returns the subjects in the order of the
        groups.
        """
        left, turns = list(subjects), list(values)
        self._rng.shuffle(turns)
        if is_shuffled:
            self._rng.shuffle(left)
        start = turn = 0
        while start < len(left):
            size = self._rng.choices(_GROUP_SIZES, _GROUP_WEIGHTS)[0]
            value = turns[turn % len(turns)]
            for subject in left[start : start + size]:
                self._claims[subject].append((name, value))
                self._naming.setdefault(value, []).append(subject)
            start, turn = start + size, turn + 1
        return left

    def _spread(self, name: str, subjects: Iterable[int], values: Sequence[int]) -> None:
        for subject in subjects:
            self._claims[subject].append((name, self._rng.choice(values)))

    def title(self, number: int) -> str:
        """Returns the title of a page, or the name of an item without a page."""
        if number in self._lists:
            name, value, _ = self._lists[number]
            return f"List of {'films directed' if name == 'P57' else 'books written'} by {_name(value)}"
        return _name(number)

    def pages(self) -> Iterator[tuple[int, str, str]]:
        """Yields page id, title and wikitext of every page."""
        rng = random.Random(self.n_pages)
        for number in self._kinds:
            yield number, self.title(number), self._text(number, rng)

    def _text(self, number: int, rng: random.Random) -> str:
        title = self.title(number)
        if number in self._lists:
            return self._list_text(number)
        said = [f"'''{title}''' is a {self._kinds[number]}."]
        for name, value in self._claims[number]:
            if rng.random() < SAID:
                said.append(SENTENCES[name].format(subject=title, value=self._reference(name, value, rng)))
        said += [f"{' '.join(self._words.list(_FILLER_WORDS)).capitalize()}." for _ in range(_FILLERS)]
        first, rest = said[:4], said[4:]
        rng.shuffle(rest)
        share = -(-len(rest) // _PARAGRAPHS)
        paragraphs = [first, *(rest[at : at + share] for at in range(0, len(rest), share))]
        if number in self._naming:
            listed = ", ".join(f"[[{_name(named_page)}]]" for named_page in self._naming[number][:_LISTED_AT_ONCE])
            paragraphs.append([f"Of note are {listed}."])
        return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs)

    def _reference(self, name: str, value: int, rng: random.Random) -> str:
        if name in DATATYPES:
            return str(value)
        chance = rng.random()
        if value < FIRST_ITEM and value in self._kinds and chance < _BY_LINK:
            return f"[[{_name(value)}]]"
        return _alias(value) if chance > 1 - _BY_ALIAS and _has_alias(value) else _name(value)

    def _list_text(self, number: int) -> str:
        _, value, subjects = self._lists[number]
        rows = ['{| class="wikitable"\n! Work !! Year !! Place']
        for subject in subjects:
            claims = dict(self._claims[subject])
            place = claims.get("P840", claims.get("P123"))
            rows.append(f"|-\n| [[{_name(subject)}]] || {claims['P577']} || {_name(place) if place else ''}")
        return f"These are works of [[{_name(value)}]].\n\n" + "\n".join(rows) + "\n|}"

    def entities(self) -> Iterator[dict[str, Any]]:
        """Yields properties and items in the format of Wikidata's JSON dump."""
        for name in sorted({*SENTENCES, *_IDENTIFIERS, "P31", "P279"}):
            yield {**_entity(name, "property", f"property {name}"), "datatype": DATATYPES.get(name, "wikibase-item")}
        for label, above in CLASSES.items():
            claims = [("P279", _class_id(parent)) for parent in above]
            yield _item(_class_id(label), label, (), claims, None)
        for things, kind in ((self.occupations, "occupation"), (self.countries, "country")):
            for number in things:
                yield _item(f"Q{number}", _name(number), (), [("P31", _class_id(kind))], None)
        for number, kind in self._kinds.items():
            if kind in CLASSES:
                claims = [
                    ("P31", _class_id(kind)),
                    *((name, _value(name, target)) for name, target in self._claims[number]),
                ]
                claims += [(name, f"{number * 7919 + place:09d}") for place, name in enumerate(_IDENTIFIERS)]
                aliases = (_alias(number),) if _has_alias(number) else ()
                yield _item(f"Q{FIRST_ITEM + number}", _name(number), aliases, claims, self.title(number))


def write_encyclopaedia(folder: Path, n_pages: int) -> MadeFiles:
    """Writes the uncompressed dumps of an encyclopaedia with this number of pages."""
    folder.mkdir(parents=True, exist_ok=True)
    made = Encyclopaedia(n_pages)
    files = MadeFiles(folder / f"{SITE}-20000101-pages-articles.xml", folder / "wikidata-20000101-all.json")
    with files.dump.open("wb") as sink:
        sink.write(HEAD.encode())
        for page in made.pages():
            sink.write(made_up_page(page).xml)
        sink.write(TAIL.encode())
    with files.wikidata.open("wb") as sink:
        sink.write(b"[\n")
        for place, entity in enumerate(made.entities()):
            sink.write((b",\n" if place else b"") + orjson.dumps(entity))
        sink.write(b"\n]\n")
    return files


def _kind(number: int) -> str:
    place = number % 100
    if place < 5:
        return "human settlement"
    if place < 45:
        return "human"
    if place < 70:
        return "film"
    if place < 85:
        return "book"
    if place < 95:
        return "organization"
    return "list" if place == 95 else "page"


def _name(number: int) -> str:
    """Returns a name of two words that no other number has."""
    left = number * _STEP % _SYLLABLES**5
    syllables = []
    for _ in range(5):
        left, digit = divmod(left, _SYLLABLES)
        syllables.append(_CONSONANTS[digit // 5] + _VOWELS[digit % 5])
    return f"{''.join(syllables[:3]).capitalize()} {''.join(syllables[3:]).capitalize()}"


def _has_alias(number: int) -> bool:
    return number % 3 == 0


def _alias(number: int) -> str:
    return f"{_name(number)} the Elder"


def _class_id(label: str) -> str:
    return f"Q{_FIRST_CLASS + list(CLASSES).index(label)}"


def _value(name: str, value: int) -> str:
    if name in DATATYPES:
        return str(value)
    return f"Q{value if value >= _FIRST_OTHER else FIRST_ITEM + value}"


def _entity(entity_id: str, kind: str, label: str, aliases: Iterable[str] = ()) -> dict[str, Any]:
    return {
        "type": kind,
        "id": entity_id,
        "labels": {"en": {"language": "en", "value": label}},
        "descriptions": {"en": {"language": "en", "value": f"made-up {kind}"}},
        "aliases": {"en": [{"language": "en", "value": alias} for alias in aliases]},
        "claims": {},
        "lastrevid": int(entity_id[1:]),
    }


def _item(
    item_id: str, label: str, aliases: Iterable[str], claims: Iterable[tuple[str, str]], title: str | None
) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for place, (name, value) in enumerate(claims):
        datatype = DATATYPES.get(name, "wikibase-item")
        snak = {"snaktype": "value", "property": name, "datatype": datatype, "datavalue": _datavalue(datatype, value)}
        statement = {"mainsnak": snak, "type": "statement", "id": f"{item_id}${place}", "rank": "normal"}
        found.setdefault(name, []).append(statement)
    sitelinks = {} if title is None else {SITE: {"site": SITE, "title": title, "badges": []}}
    return {**_entity(item_id, "item", label, aliases), "claims": found, "sitelinks": sitelinks}


def _datavalue(datatype: str, value: str) -> dict[str, Any]:
    if datatype == "wikibase-item":
        item = {"entity-type": "item", "numeric-id": int(value[1:]), "id": value}
        return {"type": "wikibase-entityid", "value": item}
    if datatype == "time":
        time = {"time": f"+{value}-00-00T00:00:00Z", "timezone": 0, "before": 0, "after": 0, "precision": 9}
        return {"type": "time", "value": {**time, "calendarmodel": "http://www.wikidata.org/entity/Q1985727"}}
    if datatype == "quantity":
        return {"type": "quantity", "value": {"amount": f"+{value}", "unit": "1"}}
    return {"type": "string", "value": value}
