"""Joins give what loops over all facts give."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.release.pages.kind import PAGES_RELEASE
from kbsource.wikidata.kind import WikidataTables
from mapping.qampari import names as module
from mapping.qampari.classes import N_WORDS, ClassTypes, ItemSet, type_breadths
from mapping.qampari.joins import relation_type_rows
from mapping.qampari.names import ItemPages
from mapping.qampari.questions import QueryNumbers, Relations, SimpleQuery, SimpleRelation
from mapping.qampari.selection import MOST_SUBJECTS
from mapping.qampari.statements import FACTS, cut_facts
from tests.support.builds import open_release
from tests.support.entities import array, item, make, terms
from tests.support.examples import examples
from tests.support.pages import synthetic_pages
from tests.support.qampari_joins import compositions, intersections, names_of, one_database, simple_answers, widest
from tests.support.releases import TitleRow, redirect_to, write_release

pytestmark = pytest.mark.usefixtures("module_in_this_process")


@pytest.fixture(scope="module", autouse=True)
def _one_database() -> Iterator[None]:
    with one_database():
        yield


TYPES = ClassTypes(("film", "album", "song"), np.empty(0, np.int64), np.empty((0, 2), np.uint64))
UNTYPED = SimpleRelation("P50", "author", "Which", "books", "books", "{entity}", "{entity}")
TYPED = SimpleRelation("P57", "director", "Which", None, None, "{entity}", "{entity}", ("song", "film", "series"))
OFF = SimpleRelation("P275", "license", "Which", "things", "things", "{entity}", "{entity}", is_enabled=False)
RELATIONS = Relations(
    {relation.property_id: relation for relation in (UNTYPED, TYPED, OFF)}, {}, ("film", "series", "song")
)

# property, value, subject
TRIPLES = st.lists(st.tuples(st.sampled_from([50, 57, 275]), st.integers(1, 4), st.integers(1, 9)), max_size=60)
MASKS = st.lists(st.integers(0, 7), min_size=10, max_size=10)
SETS = st.lists(st.sets(st.integers(1, 12), min_size=1), max_size=7)


def _facts(triples: list[tuple[int, int, int]], masks: list[int], size: int = 7) -> list[pa.RecordBatch]:
    rows = [(*triple, masks[triple[2]], 0) for triple in triples]
    return [_batch(rows[start : start + size], FACTS) for start in range(0, len(rows), size)]


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _simple(triples: Any, masks: Any, **options: Any) -> list[tuple[SimpleQuery, list[int]]]:
    given_ = {"least": 5, "most": MOST_SUBJECTS, **options}
    size = max(7, len(triples) // 4)
    return simple_answers(_facts(triples, masks, size), RELATIONS, TYPES, **given_)


@settings(max_examples=examples(20))
@given(TRIPLES, MASKS)
def test_simple_queries(triples: list[tuple[int, int, int]], masks: list[int]) -> None:
    expected = []
    for property_, value in {(triple[0], triple[1]) for triple in triples if triple[0] != 275}:
        subjects = sorted({triple[2] for triple in triples if triple[:2] == (property_, value)})
        if not 2 <= len(subjects) <= 6:
            continue
        query = SimpleQuery(f"P{property_}", f"Q{value}")
        if property_ == 50:
            expected.append((query, subjects))
            continue
        for label in ("song", "film"):
            typed = [subject for subject in subjects if masks[subject] >> TYPES.labels.index(label) & 1]
            if len(typed) >= 2:
                expected.append((query._replace(type_label=label), typed))

    found = _simple(triples, masks, least=2, most=6)
    assert sorted(found) == sorted(expected)
    assert _simple(triples[::-1], masks, least=2, most=6) == found


def test_five_answers_are_needed_and_more_than_3000_subjects_are_too_many() -> None:
    masks = [1] * 3002

    def subjects(n: int, property_: int = 50) -> list[tuple[int, int, int]]:
        return [(property_, 1, subject) for subject in range(1, n + 1)]

    assert _simple(subjects(4), masks) == []
    assert [len(answers) for _, answers in _simple(subjects(5), masks)] == [5]
    assert [len(answers) for _, answers in _simple(subjects(3000), masks)] == [3000]
    assert _simple(subjects(3001), masks) == []
    assert _simple(subjects(3001, 57), [1] * 5 + [0] * 2997) == []


def test_types_of_a_relation_are_those_with_a_class_at_their_place_in_it() -> None:
    rows = relation_type_rows(RELATIONS, QueryNumbers(RELATIONS.wanted_types), TYPES)

    assert list(rows) == [(57, 0, 3, 0, 2), (57, 1, 1, 0, 0)]


@settings(max_examples=examples(20))
@given(SETS)
def test_intersections_are_of_two_families(sets: list[set[int]]) -> None:
    expected = [
        (first, second, sorted(answer_set & other))
        for (first, answer_set), (second, other) in combinations(enumerate(sets), 2)
        if len(answer_set & other) >= 2
        and not answer_set <= other
        and not other <= answer_set
        and first // 2 != second // 2
    ]
    queries = [(number, number // 2, answer_set) for number, answer_set in enumerate(sets)]

    assert intersections(queries, least=2) == expected


def _random_queries(seed: int) -> list[tuple[int, int, set[int]]]:
    """Queries by the dozen, some of which have all answers of another one, or the same, or are of its family."""
    rng = random.Random(seed)
    queries: list[tuple[int, int, set[int]]] = []
    for number in range(60):
        answers = set(rng.sample(range(1, 200), rng.choice((2, 5, 9, 40, 120))))
        if queries and rng.random() < 0.4:
            _, _, other = rng.choice(queries)
            part = set(rng.sample(sorted(other), rng.randint(1, len(other))))
            answers = rng.choice((part, other | answers, part | answers, set(other)))
        queries.append((number, number // rng.choice((1, 3)), answers))
    return queries


@pytest.mark.parametrize("seed", range(10))
def test_intersections_of_many_queries_with_any_number_of_threads(seed: int) -> None:
    queries = _random_queries(seed)
    least = seed % 5 + 1
    expected = []
    for (number, family, answers), (other_number, other_family, others) in combinations(sorted(queries, key=_place), 2):
        both = answers & others
        if family != other_family and len(both) >= least and both not in (answers, others):
            expected.append((number, other_number, sorted(both)))

    assert len(expected) > 100
    for threads in (1, 2, 7):
        assert intersections(queries, least=least, threads=threads) == expected


def _place(query: tuple[int, int, set[int]]) -> tuple[int, int]:
    number, family, _ = query
    return family, number


@pytest.mark.slow  # many rows
def test_joins_give_the_same_rows_with_any_number_of_threads() -> None:
    rng = random.Random(2)
    triples = [(rng.choice((50, 57)), rng.randint(1, 900), rng.randint(1, 40_000)) for _ in range(260_000)]
    masks = [rng.randrange(8) for _ in range(40_001)]
    facts = _facts(triples, masks, 130_000)  # threads share a table by 122,880 rows
    bounds: Any = {"least": 5, "most": 290}
    found = simple_answers(facts, RELATIONS, TYPES, **bounds)
    queries = [(number, ("P50", "P57")[number % 2], subjects) for number, (_, subjects) in enumerate(found[:60])]
    values = [(rng.randint(1, 40_000), rng.choice((86, 407)), f"v{rng.randrange(90)}") for _ in range(130_000)]
    composed = compositions(queries, values, least=5)

    assert found
    assert composed
    for threads in (2, 7):
        assert simple_answers(facts, RELATIONS, TYPES, **bounds, threads=threads) == found
        assert compositions(queries, values, least=5, threads=threads) == composed


@settings(max_examples=examples(20))
@given(
    SETS, st.lists(st.tuples(st.integers(1, 12), st.sampled_from([50, 57, 86]), st.sampled_from("abc")), max_size=50)
)
def test_compositions(sets: list[set[int]], values: list[tuple[int, int, str]]) -> None:
    grouped: defaultdict[tuple[int, str], set[tuple[int, str]]] = defaultdict(set)
    for number, subjects in enumerate(sets):
        for subject, property_, value in values:
            if subject in subjects and property_ != (50, 57)[number % 2]:
                grouped[number, f"P{property_}"].add((subject, value))
    expected = [
        (*key, tuple(sorted(pairs))) for key, pairs in grouped.items() if len({value for _, value in pairs}) >= 2
    ]
    queries = [(number, ("P50", "P57")[number % 2], answer_set) for number, answer_set in enumerate(sets)]

    assert sorted(compositions(queries, values, least=2)) == sorted(expected)


@pytest.mark.slow  # a long property
@settings(max_examples=examples(20))
@given(TRIPLES, MASKS, st.integers(1, 20))
def test_facts_that_are_cut_short_in_chunks_give_the_same_queries(
    triples: list[tuple[int, int, int]], masks: list[int], size: int
) -> None:
    cut = [cut_facts(batch, 6) for batch in _facts(triples, masks, size)]
    for batch, given_ in zip(cut, _facts(triples, masks, size), strict=True):
        keys, before = (
            {*zip(*(facts[name].to_pylist() for name in ("property", "value", "subject")), strict=True)}
            for facts in (batch, given_)
        )
        assert keys <= before
        n_before, n_left = (Counter(key[:2] for key in found) for found in (before, keys))
        assert n_left == {pair: min(n, 7) for pair, n in n_before.items()}

    found = simple_answers(cut, RELATIONS, TYPES, least=2, most=6)
    assert found == _simple(triples, masks, least=2, most=6)


@settings(max_examples=examples(20))
@given(TRIPLES, MASKS, st.integers(1, 20), st.integers(0, 6))
def test_facts_that_are_cut_short_keep_the_first_of_each_frequent_pair(
    triples: list[tuple[int, int, int]], masks: list[int], size: int, most: int
) -> None:
    for batch in _facts(triples, masks, size):
        rows = list(zip(*(column.to_pylist() for column in batch), strict=True))
        counts = Counter(row[:2] for row in rows)
        frequent = [pair for pair, n in counts.items() if n > most + 1]
        expected = [row for row in rows if row[:2] not in frequent]
        for pair in frequent:
            first = {row[2]: row for row in reversed(rows) if row[:2] == pair}
            expected += [first[subject] for subject in sorted(first)][: most + 1]
        cut = cut_facts(batch, most)
        assert list(zip(*(column.to_pylist() for column in cut), strict=True)) == expected


# Class -> the classes directly above it; the first six are types.
ABOVE = {
    "creative work": [],
    "audiovisual work": ["creative work"],
    "film": ["audiovisual work"],
    "company": [],
    "business": [],
    "food": [],
    "short film": ["film"],
    "firm": ["company", "business"],
    "bank": ["business"],
}
SPECIFIC_TYPES = tuple(ABOVE)[:6]


def _types(above: dict[str, list[str]], labels: tuple[str, ...]) -> ClassTypes:
    """The types of classes as the class closure has them, itself among them."""
    reached = {type_name: {type_name} for type_name in above}
    for _ in above:
        for type_name, others in reached.items():
            others |= {higher for other in tuple(others) for higher in above[other]}
            reached[type_name] = others
    masks = np.zeros((len(above), N_WORDS), np.uint64)
    for row, others in enumerate(reached.values()):
        masks[row, 0] = sum(1 << labels.index(other) for other in others if other in labels)
    return ClassTypes(labels, np.arange(1, len(above) + 1), masks)


def _left(queries: Iterable[tuple[str, list[int]]], types: ClassTypes) -> list[str]:
    asked = list(queries)
    wider = widest(asked, type_breadths(types))
    return [label for label, _ in asked if label not in wider]


def test_a_type_has_the_classes_below_it_and_itself() -> None:
    assert type_breadths(_types(ABOVE, SPECIFIC_TYPES)) == {
        "creative work": 4,
        "audiovisual work": 3,
        "film": 2,
        "company": 2,
        "business": 3,
        "food": 1,
    }


SAME = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("case", "queries", "left"),
    [
        ("the lowest of a line", [("creative work", SAME), ("film", SAME), ("audiovisual work", SAME)], ["film"]),
        ("other answers", [("creative work", [*SAME, 6]), ("film", SAME)], ["creative work", "film"]),
        (
            "those with the same answers alone",
            [("creative work", [*SAME, 6]), ("audiovisual work", SAME), ("film", SAME)],
            ["creative work", "film"],
        ),
        ("as many answers, others", [("creative work", [1, 2]), ("film", [1, 3])], ["creative work", "film"]),
        ("none above the other: fewest classes", [("business", SAME), ("company", SAME)], ["company"]),
        ("as many classes: by label", [("film", SAME), ("company", SAME)], ["company"]),
        ("one alone", [("film", SAME)], ["film"]),
        ("none", [], []),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_of_types_with_the_same_answers_the_most_specific_is_left(
    case: str, queries: list[tuple[str, list[int]]], left: list[str]
) -> None:
    types = _types(ABOVE, SPECIFIC_TYPES)

    assert _left(queries, types) == left
    assert sorted(_left(queries[::-1], types)) == sorted(left)


LABELS = "abcdefg"
GRAPHS = st.fixed_dictionaries({label: st.lists(st.sampled_from(LABELS), max_size=2) for label in LABELS})
ANSWERS = st.sampled_from([[1, 2], [1, 3], [1, 2, 3]])


@settings(max_examples=examples(20))
@given(GRAPHS, st.dictionaries(st.sampled_from(LABELS), ANSWERS))
def test_none_that_is_left_has_a_twin_and_none_is_left_out_for_a_wider_one(
    above: dict[str, list[str]], queries: dict[str, list[int]]
) -> None:
    types = _types(above, tuple(LABELS))
    left = _left(queries.items(), types)

    assert {tuple(queries[label]) for label in left} == set(map(tuple, queries.values()))
    assert len({tuple(queries[label]) for label in left}) == len(left)
    masks = {label: int(types.masks[row, 0]) for row, label in enumerate(above)}

    def is_below(text: str, other: str) -> bool:
        return bool(masks[text] >> LABELS.index(other) & 1) and not masks[other] >> LABELS.index(text) & 1

    for label in left:
        assert not [other for other, found in queries.items() if found == queries[label] and is_below(other, label)]


PAGES = tuple(synthetic_pages(9, n_paragraphs=2))  # page ids 1, 4, …; items Q1000 (none for the first), Q1001, …


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kb")
    titles = [TitleRow(page.page_id, page.title) for page in PAGES]
    titles += [redirect_to(500, "Zeta", PAGES[1].title), redirect_to(501, "Alpha", PAGES[1].title)]
    titles.append(TitleRow(600, "A page that was rejected"))
    write_release(folder, PAGES, titles=titles, rows_per_shard=4, n_shards=3)
    return folder / "release"


@pytest.fixture(scope="module")
def pages(kb: Path) -> ItemPages:
    return ItemPages(str(kb), PAGES_RELEASE.read(str(kb)))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> WikidataTables:
    folder = tmp_path_factory.mktemp("wikidata")

    def aliases(**texts: str) -> dict[str, list[dict[str, str]]]:
        return {language: [{"language": language, "value": text}] for language, text in texts.items()}

    lines = [
        item("Q1", labels=terms(en="IBM"), aliases=aliases(en="Big Blue")),
        item("Q2", labels=terms(mul="Ada", **{"en-gb": "Ada of Britain"}), aliases=aliases(en="Ad", mul="Adele")),
        item("Q3", labels=terms(**{"en-us": "Color", "en-gb": "Colour"}), aliases=[]),
        item("Q4", labels=[], aliases=aliases(en="Nameless One")),
        item("Q5", labels=[], aliases=[]),
        item(
            "Q6",
            labels=terms(en="  ", mul=" Eva\u00a0 Perón "),
            aliases=aliases(en=" Evita\u00a0", **{"en-gb": "   Ev "}),
        ),
        item("Q7", labels=terms(de="Fluss", fr="fleuve", en="river"), aliases=aliases(de="Strom", en="stream")),
        item("Q8", labels=terms(de="See", fr="lac"), aliases=aliases(de="Teich")),
        item("Q1001", labels=terms(en="One"), aliases=aliases(en="Number One", **{"en-gb": "No. One"})),
        item("Q1002", labels=[], aliases=aliases(en="Number Two")),
    ]
    (folder / "dump.json").write_bytes(array(lines))
    make(folder / "dump.json", output=folder / "wikidata", languages=("de", "fr", "en"))
    return WikidataTables.open(str(folder / "wikidata"))


def test_every_page_is_found_at_its_place_and_by_its_item(kb: Path, pages: ItemPages) -> None:
    order = list(open_release(kb))

    positions, is_there = pages.positions(np.array([page.page_id for page in order], np.int64))
    assert is_there.all()
    assert positions.tolist() == list(range(len(PAGES)))
    for page in order:
        if page.qid is not None:
            assert pages.page(int(page.qid[1:])) == (page.page_id, page.title)
    assert pages.n_items == sum(page.qid is not None for page in PAGES) < len(PAGES)


@pytest.mark.parametrize("page_id", [0, 2, 600, 10**9])
def test_a_page_that_the_release_has_not_has_no_place(page_id: int, pages: ItemPages) -> None:
    first = PAGES[0].page_id
    positions, is_there = pages.positions(np.array([page_id, first], np.int64))

    assert is_there.tolist() == [False, True]
    assert positions.tolist() == pages.positions(np.array([first], np.int64))[0].tolist()


@pytest.mark.parametrize("number", [1, 1000, 10**9])
def test_an_item_without_a_page(number: int, pages: ItemPages) -> None:
    assert pages.page(number) is None


def test_titles_that_lead_to_a_page(pages: ItemPages) -> None:
    assert pages.redirects_to(PAGES[1].page_id) == ("Alpha", "Zeta")
    assert pages.redirects_to(PAGES[2].page_id) == ()


EXPECTED: dict[int, list[str]] = {
    1: ["IBM", "Big Blue"],
    2: ["Ada"],
    3: ["Colour"],
    4: ["Nameless One"],
    5: [],
    6: ["Eva Perón", "Evita"],
    7: ["river", "stream"],
    8: [],
    77: [],  # Wikidata has no such item
    1001: ["One", "Number One", "No. One"],
    1002: [PAGES[2].title, "Number Two"],
    1003: [PAGES[3].title],
}
"""A label in English comes first, then one for all languages, then one of a variant, then the title of the page;
aliases are in English and have four characters. White space is single blanks between words, as in pages."""


@pytest.mark.parametrize("batch_rows", [1, 4, 1 << 14])
def test_what_items_are_called_however_many_are_named_at_once(
    batch_rows: int, tables: WikidataTables, pages: ItemPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH_ROWS", batch_rows)
    items = np.array(sorted(EXPECTED), np.int64)

    rows = names_of(tables, items, pages)

    assert {item: list(row.names) for item, row in rows.items()} == EXPECTED
    for number in EXPECTED:
        assert (rows[number].page_id, rows[number].title) == (pages.page(number) or (None, None))


def test_no_items_at_all(tables: WikidataTables, pages: ItemPages) -> None:
    none = np.empty(0, np.int64)

    assert names_of(tables, none, pages) == {}


@settings(max_examples=examples(20))
@given(st.lists(st.integers(0, 300), max_size=40), st.lists(st.integers(0, 400), max_size=40))
def test_a_set_of_items_has_what_was_added(added: list[int], asked: list[int]) -> None:
    items = ItemSet()
    for start in range(0, len(added), 7):
        items.add(np.array(added[start : start + 7], np.int64))

    assert items.has(np.array(asked, np.int64)).tolist() == [number in added for number in asked]
