"""The mini-wiki and the mini-Wikidata are enough for every kind of question of QAMPARI, with evidence and without."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from kbsource.files import LocalStorage
from kbsource.wikidata.reader import WikidataTables
from mapping.qampari.facts.evidence import Sought, item_names, number_names, year_names
from mapping.qampari.facts.joins import SimpleAnswers
from mapping.qampari.lists.list_tables import list_tables
from mapping.qampari.lists.table_evidence import table_facts
from mapping.qampari.lists.table_questions import make_questions
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE, CompositionQuery, IntersectionQuery, order_key
from mapping.qampari.relations import load_relations
from mapping.qampari.selection import KEPT, AnswerFilter
from tests.support import mini_wikidata
from tests.support.builds import build_mini, open_release, rows
from tests.support.entities import make
from tests.support.qampari_joins import (
    class_types,
    compositions,
    find_classes,
    intersections,
    simple_answers,
    simple_facts,
    values_of,
)
from tests.support.qampari_proofs import fact_candidates, prove_fact

FILTER = AnswerFilter()


class Demo:
    """What the demo says; a fact is validated that any sentence of the two pages may say, for no model is asked."""

    def __init__(self, folder: Path) -> None:
        wikidata, release = folder / "wikidata", folder / "release"
        make(mini_wikidata.DUMP, output=wikidata, max_rejects=mini_wikidata.MAX_REJECTS)
        build_mini(release, wikidata=str(wikidata))
        self.pages = list(open_release(release))
        self.page_of = {page.qid: page for page in self.pages if page.qid is not None}
        self.tables, self.relations = WikidataTables.open(str(wikidata), LocalStorage()), load_relations()
        self.names = {
            row["item_id"]: item_names(row["label"], ((one["language"], one["text"]) for one in row["aliases"]))
            for row in rows(wikidata, "items")
        }
        self.kinds = {
            (
                row["entity_id"],
                row["property_id"],
                str(row["year"]) if row["value_type"] == "time" else row["value"],
            ): row["value_type"]
            for row in rows(wikidata, "statements")
        }

    def is_validated(self, subject: str, value: str, kind: str) -> bool:
        page = self.page_of.get(subject)
        if kind == "entity":
            return bool(fact_candidates(page, self.sought(subject), self.page_of.get(value), self.sought(value)))
        names = year_names(int(value)) if kind == "time" else number_names(value)
        return bool(fact_candidates(page, self.sought(subject), None, Sought(names)))

    def sought(self, item: str) -> Sought:
        page = self.page_of.get(item)
        return Sought(self.names[item], page.page_id if page is not None else None)


class Asked(NamedTuple):
    """A simple query with its answers: how many there are, have a page and are validated, and what becomes of it."""

    found: SimpleAnswers
    validated: tuple[int, ...]
    counts: tuple[int, int, int]
    outcome: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return Demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def asked(demo: Demo) -> list[Asked]:
    types = class_types(demo.tables, find_classes(demo.tables, demo.relations.wanted_types))
    facts = simple_facts(demo.tables, demo.relations.simple, types)
    queries = simple_answers(facts, demo.relations, types)
    found = []
    for one in sorted(queries, key=lambda one: order_key(one.query)):
        subjects: list[int] = one.subjects.tolist()
        of_page = sum(f"Q{subject}" in demo.page_of for subject in subjects)
        validated = tuple(
            subject for subject in subjects if demo.is_validated(f"Q{subject}", one.query.entity_id, "entity")
        )
        outcome = FILTER.outcome(len(validated), len(subjects))
        found.append(Asked(one, validated, (len(subjects), of_page, len(validated)), outcome))
    return found


def test_simple_questions_come_out_typed_and_untyped_and_lose_answers_at_every_stage(asked: list[Asked]) -> None:
    # Answers, those with a page, those with evidence, which can also stand in the page of the entity.
    assert {one.found.query.key: (*one.counts, one.outcome) for one in asked} == {
        "P27__Q9000012": (11, 5, 5, "share_too_low"),
        "P31__Q5__person": (11, 5, 0, "too_few_validated"),
        "P86__Q9000075": (6, 3, 5, KEPT),
        "P131__Q9000012__spatial entity": (11, 11, 10, KEPT),
        "P131__Q9000012__territorial entity": (7, 7, 6, KEPT),
        "P937__Q9000015": (5, 5, 5, KEPT),
        "P2541__Q9000012__organization": (6, 6, 6, KEPT),
        "P7153__Q9000015__geographic entity": (7, 7, 7, KEPT),
    }


def test_an_intersection_comes_out(demo: Demo, asked: list[Asked]) -> None:
    kept = [one for one in asked if one.outcome == KEPT]
    families = [one.found.query[:2] for one in kept]
    numbered = [
        (number, families.index(one.found.query[:2]), np.array(one.validated)) for number, one in enumerate(kept)
    ]
    pairs = intersections(numbered)

    found = {IntersectionQuery(kept[one.first].found.query, kept[one.second].found.query): one for one in pairs}
    assert {query.key: len(one.subjects) for query, one in found.items()} == {
        "P131__Q9000012__spatial entity__P7153__Q9000015__geographic entity": 5
    }


def test_compositions_come_out_with_items_years_and_numbers(demo: Demo, asked: list[Asked]) -> None:
    kept = [one for one in asked if one.outcome == KEPT]
    based = [(number, one.found.query.property_id, np.array(one.validated)) for number, one in enumerate(kept)]
    subjects = np.unique(np.concatenate([found for _, _, found in based]))
    values = values_of(demo.tables, subjects, demo.relations.composition)
    outcomes: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for one in compositions(based, values):
        kinds = {pair: demo.kinds[f"Q{pair[0]}", one.property_id, pair[1]] for pair in one.pairs}
        right = [pair for pair, kind in kinds.items() if demo.is_validated(f"Q{pair[0]}", pair[1], kind)]
        distinct, of_all = (len({value for _, value in pairs}) for pairs in (right, one.pairs))
        query = CompositionQuery(one.property_id, kept[one.query].found.query)
        (kind,) = set(kinds.values())
        outcomes[kind][query.key] = FILTER.outcome(distinct, of_all, n_pairs=(len(right), len(one.pairs)))

    assert outcomes == {
        "entity": {
            "P7153__P131__Q9000012__spatial entity": KEPT,
            "P7153__P131__Q9000012__territorial entity": KEPT,
            "P106__P937__Q9000015": KEPT,
        },
        "time": {"P569__P937__Q9000015": KEPT, "P571__P2541__Q9000012__organization": KEPT},
        "quantity": {
            # Numbers of one or two digits are never looked for.
            "P2124__P2541__Q9000012__organization": KEPT,
            "P1082__P131__Q9000012__spatial entity": "too_few_validated",
            "P1082__P131__Q9000012__territorial entity": "too_few_validated",
        },
    }


@pytest.mark.parametrize("seed", ["qampari", "1", "2"])
def test_questions_about_a_list_come_out_with_texts_numbers_and_years(demo: Demo, seed: str) -> None:
    by_id = {page.page_id: page for page in demo.pages}
    (tables, left_out), *others = [
        (tables, left_out) for tables, left_out in map(list_tables, demo.pages) if tables or left_out
    ]
    facts = list(table_facts(tables))
    proofs = {
        fact.key: proof
        for fact in facts
        if (proof := prove_fact(fact, by_id.get(fact.page_id), by_id.get(fact.value_page_id or -1))) is not None
    }
    questions, unkept = make_questions(tables, proofs, seed=seed)
    by_form = {(one.subset, *one.key.split("__")[2:4]): one for one in questions}

    assert not others
    assert not left_out
    assert set(by_form) == {
        (TABLE_SIMPLE,),
        *((TABLE_COMPOSITION, "2", word) for word in ("before", "after")),
        *((TABLE_COMPOSITION, "3", word) for word in ("lower", "greater")),
        (TABLE_COMPOSITION, "4", "herring oil"),
    }
    assert (tables[0].n_rows, by_form[(TABLE_SIMPLE,)].n_answers, by_form[(TABLE_SIMPLE,)].n_validated) == (16, 14, 13)
    assert by_form[(TABLE_SIMPLE,)].text == "Who or what is lighthouses of the Halvane Isles?"
    assert Counter(one.reason for one in unkept) == {"too_few_validated": 2, "share_too_low": 1, "short_value": 1}
