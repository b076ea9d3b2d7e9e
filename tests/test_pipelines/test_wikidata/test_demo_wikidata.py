"""The mini-Wikidata: its file is what its source gives, and every kind of question can be asked of it."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from kbsource.release.verify import verify
from kbsource.wikidata.kind import WIKIDATA_RELEASE, EntityCounts
from tests.support import make_demo as make
from tests.support import mini_wiki, mini_wikidata
from tests.support.builds import rows
from tests.support.entities import make as make_release
from tests.support.make_demo_wikidata import WIKIDATA, wikidata_dump
from tests.support.mini_wikidata import COMPOSER, GEOGRAPHIC_ENTITY, ISLES, ORGANIZATION, PORT_SELLICK

LEAST = 5


class Facts:
    """What the release says, as questions need it."""

    def __init__(self, release: Path) -> None:
        self.release = release
        self.statements = rows(release, "statements")
        pages = {page.title: page.text for page in map(make.parse_page, make.split_xml(mini_wiki.XML.read_bytes())[1])}
        self.texts = {row["item_id"]: pages.get(row["title"], "") for row in rows(release, "sitelinks")}
        self.labels = {
            row["item_id"]: [row["label"], *(one["text"] for one in row["aliases"])] for row in rows(release, "items")
        }
        self.above: defaultdict[str, set[str]] = defaultdict(set)
        for row in rows(release, "classes"):
            self.above[row["class_id"]].add(row["superclass_id"])

    def values(self, subject: str, property_id: str) -> list[str]:
        return [
            row["value"] for row in self.statements if (row["entity_id"], row["property_id"]) == (subject, property_id)
        ]

    def subjects(self, property_id: str, value: str, *, type_: str | None = None) -> set[str]:
        """Gives the answers of a simple question, of a type."""
        found = {
            row["entity_id"] for row in self.statements if (row["property_id"], row["value"]) == (property_id, value)
        }
        return {one for one in found if type_ is None or self.is_a(one, type_)}

    def is_a(self, subject: str, type_: str) -> bool:
        return any(type_ in self.above[class_id] for class_id in self.values(subject, "P31"))

    def says(self, subject: str, labels: list[str]) -> bool:
        text = self.texts.get(subject, "")
        return any(re.search(rf"\b{re.escape(label)}(?!\w)", text, re.IGNORECASE) for label in labels)

    def has_evidence(self, one: str, other: str) -> bool:
        """Says whether the page of one names the other."""
        return self.says(one, self.labels[other]) or self.says(other, self.labels[one])


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    release = tmp_path_factory.mktemp("demo") / "wikidata"
    summary = make_release(mini_wikidata.DUMP, output=release, max_rejects=mini_wikidata.MAX_REJECTS)
    n_lines = mini_wikidata.N_ITEMS + mini_wikidata.N_PROPERTIES + mini_wikidata.N_OTHERS + 2
    assert summary.manifest.totals == EntityCounts(
        n_lines, mini_wikidata.N_ITEMS, mini_wikidata.N_PROPERTIES, mini_wikidata.N_OTHERS, mini_wikidata.REJECTED
    )
    assert verify(str(release), [WIKIDATA_RELEASE]).findings == ()
    return Facts(release)


def test_the_dump_is_what_its_source_gives() -> None:
    assert (mini_wiki.FOLDER / WIKIDATA).read_bytes() == wikidata_dump()


def test_sitelinks_lead_to_pages_of_the_mini_wiki(facts: Facts) -> None:
    links = rows(facts.release, "sitelinks")
    assert (len(links), {row["site"] for row in links}) == (mini_wikidata.N_SITELINKS, {mini_wikidata.SITE})
    titles = {page.title for page in map(make.parse_page, make.split_xml(mini_wiki.XML.read_bytes())[1])}
    assert {row["title"] for row in links} - titles == {"Salt lantern"}


def test_values_of_every_type_and_years_bc_are_there(facts: Facts) -> None:
    found = {row["value_type"] for row in facts.statements}
    assert found >= {"entity", "string", "time", "quantity", "monolingualtext", "globecoordinate", "other", None}
    assert {row["snak"] for row in facts.statements} == {"value", "somevalue", "novalue"}
    assert {row["rank"] for row in facts.statements} == {"preferred", "normal", "deprecated"}
    assert -9400 in {one["year"] for row in facts.statements for one in row["qualifiers"]}


@pytest.mark.parametrize(
    ("property_id", "value", "type_"),
    [
        ("P86", COMPOSER, None),
        ("P131", ISLES, GEOGRAPHIC_ENTITY),
        ("P7153", PORT_SELLICK, GEOGRAPHIC_ENTITY),
        ("P2541", ISLES, ORGANIZATION),
        ("P159", PORT_SELLICK, ORGANIZATION),
    ],
)
def test_simple_and_typed_questions_have_answers_with_evidence(
    facts: Facts, property_id: str, value: str, type_: str | None
) -> None:
    answers = facts.subjects(property_id, value, type_=type_)
    proven = [one for one in answers if facts.has_evidence(one, value)]
    assert len(proven) >= max(LEAST, 0.8 * len(answers))


def test_an_intersection_has_answers_and_neither_side_is_the_other(facts: Facts) -> None:
    places = {one for one in facts.subjects("P131", ISLES) if facts.has_evidence(one, ISLES)}
    near = {one for one in facts.subjects("P7153", PORT_SELLICK) if facts.has_evidence(one, PORT_SELLICK)}
    assert len(places & near) >= LEAST
    assert not places <= near
    assert not near <= places


def test_a_composition_of_years_has_answers_with_evidence(facts: Facts) -> None:
    pairs = [
        (middle, str(row["year"]))
        for middle in facts.subjects("P2541", ISLES)
        for row in facts.statements
        if (row["entity_id"], row["property_id"]) == (middle, "P571")
    ]
    proven = {year for middle, year in pairs if facts.says(middle, [year])}
    assert len(proven) >= LEAST


def test_a_composition_of_items_has_answers_with_evidence(facts: Facts) -> None:
    middles = [one for one in facts.subjects("P131", ISLES) if facts.has_evidence(one, ISLES)]
    pairs = [(middle, value) for middle in middles for value in facts.values(middle, "P7153")]
    proven = [value for middle, value in pairs if facts.has_evidence(middle, value)]
    assert len(set(proven)) >= LEAST
    assert len(proven) >= 0.8 * len(pairs)
