"""The steps from names to queries, each by itself."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from duckdb import DuckDBPyConnection
from msgspec import structs

from kbsource.errors import SetupError
from kbsource.runtime.chunks import rows_batch
from kbsource.runtime.database import connected, insert
from mapping.amber.names import (
    FACTS,
    ITEM_KIND,
    QUANTITY_KIND,
    TERMS,
    VIEWED,
    NamedSet,
    find_names,
    named_sets,
    used_values,
)
from mapping.amber.records import (
    ITEM,
    QUANTITY,
    TASKS,
    AmberEntity,
    AmberOptions,
    AmberSet,
    AmberTuple,
    AmberValue,
    Collection,
    FullValue,
    PageRef,
    SetEntity,
    load_collections,
)
from mapping.amber.release import (
    CollectionStatistics,
    ValueCounts,
    amber_line,
    answers,
    false_object,
    make_queries,
    set_of,
    set_queries,
    set_record,
    tuples_record,
)
from mapping.amber.sets import (
    N_TOKENS,
    PageBeginning,
    align_entity,
    distinguishing,
    full_values,
    lacking,
    make_set,
)
from tests.support import amber_oracle
from tests.support.amber_random import World
from tests.support.amber_releases import random_world

PAGE = PageRef("1", "Page")
(HUMAN,) = load_collections(None, ["human"], "corrected")


NO_ENTITY = AmberValue(ITEM, "Q99999999")
"""The value of a property without values that have names."""


def names_of(
    entities: Iterable[AmberEntity],
    collections: Sequence[Collection],
    options: AmberOptions,
    *,
    threads: int = 1,
    database: DuckDBPyConnection | None = None,
) -> tuple[list[tuple[Any, ...]], list[NamedSet], dict[str, list[str]]]:
    """The names with their outcomes, the sets of those without, and the most used values."""
    world = list(entities)
    items = [(int(entity.qid[1:]), entity) for entity in world]
    described = [
        (item, property_id, value)
        for item, entity in items
        for property_id, values in {
            **entity.properties,
            "P31": [AmberValue(ITEM, kind) for kind in entity.types],
        }.items()
        for value in values or ([] if property_id == "P31" else [NO_ENTITY])
    ]
    facts = [
        (item, place, int(property_id[1:]), *_plain(value))
        for place, (item, property_id, value) in enumerate(described)
    ]
    rows = {
        "viewed": (VIEWED, [(item, item, entity.views) for item, entity in items]),
        "terms": (TERMS, [(item, *term) for item, entity in items for term in enumerate(entity.aliases)]),
        "facts": (FACTS, facts),
    }
    with connected(threads=threads) if database is None else nullcontext(database) as db:
        for name in (*rows, "types", "members", "bearers", "names", "sets", "set_members"):
            db.execute(f"drop table if exists {name}")
        for name, (schema, of_table) in rows.items():
            insert(db, name, [rows_batch(of_table[n::2], schema) for n in range(2)], schema)
        find_names(db, collections, options)
        columns = "collection, name, outcome, n_entities, n_members"
        outcomes = db.execute(f"select {columns} from names where n_entities > 1 order by collection, name").fetchall()
        return outcomes, list(named_sets(db)), used_values(db, collections)


def _plain(value: AmberValue) -> tuple[int, str, str | None]:
    if value.kind == ITEM:
        return ITEM_KIND, value.value, None
    unit = None if value.unit in (None, "1") else value.unit.rpartition("/")[2]
    return QUANTITY_KIND, value.value.removeprefix("+"), unit


def chosen(rows: list[tuple[int, bool]], **options: str) -> object:
    """The members with their head flags, or the outcome, for (views, is of the collection)."""
    entities = [
        AmberEntity(f"Q{number}", views, ("A", "A"), ("Q5",) if is_member else ("Q6",), {})
        for number, (views, is_member) in enumerate(rows, 1)
    ]
    names, sets, _ = names_of(entities, [HUMAN], AmberOptions(**options))  # type: ignore[arg-type]  # literals
    if not sets:
        return names[0][2] if names else None
    assert names == [(0, "A", None, len(rows), sum(is_member for _, is_member in rows))]
    return [(entity.views, is_head) for entity, is_head in sets[0].members]


@pytest.mark.parametrize(
    ("rows", "options", "expected"),
    [
        ([(1000, True), (10, True), (10, True)], {}, [(1000, True), (10, False), (10, False)]),
        ([(10, True), (1000, True), (1000, False)], {}, [(10, False), (1000, True)]),
        ([(9000, False), (1000, True), (10, True)], {}, [(1000, False), (10, False)]),
        ([(9000, False), (1000, True), (10, True)], {"head_scope": "collection"}, [(1000, True), (10, False)]),
        ([(9000, False), (10, True)], {}, "too_few_members"),
        ([(9000, False), (10, False)], {}, None),
        ([(9000, True)], {}, None),
        ([(1000, True), (900, True)], {}, "small_gap"),
        ([(1000, True), (1000, True), (10, True)], {}, "small_gap"),
        ([(100_000, True), (31_623, True)], {}, [(100_000, True), (31_623, False)]),
        ([(1000, True), (900, True)], {"gap_on": "views"}, [(1000, True), (900, False)]),
        ([(3, True), (1, True)], {"gap_on": "views"}, [(3, True), (1, False)]),
        ([(1, True), (1, True)], {}, "small_gap"),
    ],
)
def test_heads_and_gaps(rows: list[tuple[int, bool]], options: dict[str, str], expected: object) -> None:
    assert chosen(rows, **options) == expected


def test_any_number_of_threads_makes_the_same_names_and_sets() -> None:
    entities, _ = random_world(7, n_people=400)
    collections = _collections(AmberOptions())
    outcomes, sets, used = names_of(entities, collections, AmberOptions())
    assert len(sets) > 30 < len(outcomes) - len(sets)
    assert len(used) > 5
    assert [(named.collection, named.name) for named in sets] == [row[:2] for row in outcomes if row[2] is None]
    for threads in (2, 7):
        assert names_of(entities[::-1], collections, AmberOptions(), threads=threads) == (outcomes, sets, used)


def test_the_most_used_values_come_first_then_those_with_lower_numbers() -> None:
    twice, once = AmberValue(ITEM, "Q30"), AmberValue(ITEM, "Q9")
    entities = [
        AmberEntity("Q1", 9, ("A",), ("Q5",), {"P54": (AmberValue(ITEM, "Q100"), twice, once)}),
        AmberEntity("Q2", 9, ("B",), ("Q5",), {"P54": (twice, AmberValue(ITEM, "Q404")), "P1": (twice,)}),
        AmberEntity("Q9", 9, ("nine", "9"), (), {}),
        AmberEntity("Q30", 9, ("thirty",), (), {}),
        AmberEntity("Q100", 9, ("nine",), (), {}),
    ]
    assert names_of(entities, [HUMAN], AmberOptions())[2] == {"P54": ["thirty", "nine"]}


def person(qid: str, **properties: tuple[AmberValue, ...]) -> AmberEntity:
    return AmberEntity(qid, 10, ("A",), ("Q5",), properties)


def test_a_property_without_a_usable_value_makes_that_of_others_ambiguous() -> None:
    team = (AmberValue(ITEM, "Q9"),)
    members = [person("Q1", P54=team, P641=team), person("Q2", P54=()), person("Q3", P19=team)]
    assert distinguishing(members, HUMAN, AmberOptions()) == [("P641",), (), ()]


def test_with_complex_types_a_property_of_two_types_does_not_count() -> None:
    collection = Collection("x", {"Q1": ("P1", "P2"), "Q2": ("P2",)}, {}, {}, {})
    entity = AmberEntity("Q7", 10, (), ("Q1", "Q2"), {"P1": (), "P2": ()})
    assert distinguishing([entity], collection, AmberOptions()) == [("P1", "P2")]
    assert distinguishing([entity], collection, AmberOptions(complex_types=True)) == [("P1",)]


def test_values_are_called_by_names_of_those_who_use_them_and_by_words() -> None:
    known = {
        "Q1": AmberEntity(
            "Q1", 9, ("guitar",), ("Q9",), {"P3095": (AmberValue(ITEM, "Q2"), AmberValue(ITEM, "Q8")), "P1535": ()}
        ),
        "Q2": AmberEntity("Q2", 9, ("guitarist", "axeman"), (), {}),
        "Q3": AmberEntity("Q3", 9, (), (), {}),
    }
    values = [AmberValue(ITEM, "Q1"), AmberValue(ITEM, "Q3"), AmberValue(ITEM, "Q8"), AmberValue(QUANTITY, "+12", "1")]
    assert full_values(values, known, lang="en") == (
        FullValue(ITEM, "Q1", None, None, ("guitar",), ("axeman", "guitarist"), ("Q9",)),
        FullValue(QUANTITY, None, "+12", "1", ("12",), ("twelve",), None),
    )
    assert full_values(values, known, lang="de")[1].additional_aliases == ()


def value(qid: str, *aliases: str, is_found: bool = False) -> FullValue:
    return FullValue(ITEM, qid, None, None, aliases, (), ("Q476028",), is_found)


def of_tuple(*values: FullValue, property_id: str = "P54") -> AmberTuple:
    return AmberTuple(property_id, "team", "id", (), values)


@pytest.mark.parametrize(
    ("alias", "text", "is_found"),
    [
        ("The Spider-Man", "a spider man's", False),
        ("The Spider-Man", "Behold: SPIDER man!", True),
        ("1,234", "has 1234 souls", True),
        ("123", "has 1234 souls", False),
        ("The The", "the the band", False),
        ("late", "x " * N_TOKENS + "late", False),
        ("late", "x " * (N_TOKENS - 1) + "late", True),
    ],
)
def test_the_beginning_of_a_page_names_a_value(alias: str, text: str, is_found: bool) -> None:
    entity = SetEntity("Q1", 1.0, True, (), (), (), (of_tuple(value("Q2", "nowhere", alias)),))
    aligned = align_entity(entity, [PageBeginning(PAGE, text)])
    assert aligned.wikipedia == (PAGE,)
    assert [amber_tuple.provenance for amber_tuple in aligned.tuples] == ([(PAGE,)] if is_found else [])
    assert all(amber_tuple.values[0].found_in_passage for amber_tuple in aligned.tuples)


def test_a_set_needs_a_head_that_is_told_apart() -> None:
    bare = SetEntity("Q1", 1.0, True, (), (), (), ())
    told = structs.replace(bare, tuples=(of_tuple(value("Q2", "x")),))
    tail = structs.replace(told, is_head=False)
    assert lacking(AmberSet("n", (bare, tail)), "found") == "few_found"
    assert lacking(AmberSet("n", (bare, tail, tail)), "found") == "no_head_found"
    assert lacking(AmberSet("n", (told, tail)), "found") is None


def test_false_objects_are_called_like_no_true_value() -> None:
    amber_tuple = of_tuple(
        value("Q1", "Mets", "New York Mets"), FullValue(QUANTITY, None, "+2", "1", ("2",), ("two",), None)
    )
    assert false_object(amber_tuple, ["Mets", "New York Mets", "2.0", "Cubs"]) == "Cubs"
    assert false_object(amber_tuple, ["Mets", "2"]) is None
    assert answers(amber_tuple) == ("Mets", "New York Mets", "2", "two")


def test_objects_are_ranked_by_frequency_then_by_who_came_first() -> None:
    counts = ValueCounts()
    counts.add(
        AmberSet("n", (SetEntity("Q1", 1.0, True, (), (), (), (of_tuple(value("Q2", "b"), value("Q3", "a", "b")),)),))
    )
    assert counts.ranked() == {"P54": ["b", "a"]}
    counts.add(AmberSet("n", (SetEntity("Q1", 1.0, True, (), (), (), (of_tuple(value("Q3", "a")),)),)))
    assert counts.ranked() == {"P54": ["a", "b"]}


def test_claims_and_typed_questions() -> None:
    amber_tuple = of_tuple(value("Q1", "Mets"), value("Q2", "Cubs", is_found=True))
    entity = SetEntity("Q91", 1.0, True, (), (), (), (amber_tuple,))
    claims = list(make_queries("N", entity, "fc", HUMAN, AmberOptions(), {"P54": ["Cubs", "Jets"]}))
    assert [(query.input, query.answer) for query in claims] == [
        ("N is a player on the Cubs.", "SUPPORTS"),
        ("N is a player on the Jets.", "REFUTES"),
    ]
    (slot,) = make_queries("N", entity, "sf", HUMAN, AmberOptions(), {})
    assert slot.input == "N [SEP] team"
    (typed,) = make_queries("N", entity, "qa", HUMAN, AmberOptions(typed_templates=True), {})
    assert "football team" in typed.input


def test_released_templates_keep_their_slips() -> None:
    corrected, released = (load_collections(None, ["nonhuman"], form)[0] for form in ("corrected", "released"))
    assert corrected.fc_templates["P50"][0] == "$object wrote $entity."
    assert released.fc_templates["P50"][0] == "$entity wrote $object."
    assert released.qa_templates["P264"]["all"][0] == "What is the record label of $entity.?"
    assert corrected.types == released.types


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"types": {"Q5": ["instrument"]}}, "expected the id of a Wikidata property; found 'instrument'"),
        ({"types": {"five": ["P54"]}}, "expected the id of a Wikidata item; found 'five'"),
        ({"types": {"Q5": ["P54", "P99"]}}, "templates of P99"),
        ({"fc_templates": {"P54": ["$entity plays."]}}, "expected $object in it"),
        ({"qa_templates": {"P54": {"Q1": ["$entity?"]}}}, "by type, including all"),
        ({"more": {}}, "expected fc_templates, qa_templates, types"),
        ({"types": {"Q5": ["P" + "9" * 5000]}}, "expected the id of a Wikidata property; found 'P999"),
        ({"qa_templates": 7}, "own.qa_templates: expected entries by property; found '7'"),
        ({"fc_templates": ["P54"]}, "own.fc_templates: expected entries by property"),
        ({"released": 7}, "own.released: expected entries by name; found '7'"),
        ({"released": {"qa_templates": {"P54": 7}}}, "own.released.qa_templates.P54: expected entries by name"),
        ({"qa_templates": {"P54": 7}, "released": {"qa_templates": {"P54": {"all": []}}}}, "own.qa_templates.P54: exp"),
    ],
)
def test_a_slip_in_a_file_of_types_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    good = {
        "types": {"Q5": ["P54"]},
        "qa_templates": {"P54": {"all": ["$entity?"]}},
        "fc_templates": {"P54": ["$entity: $object."]},
    }
    file = tmp_path / "types.yaml"
    file.write_text(json.dumps({"own": {**good, **change}}))
    with pytest.raises(SetupError, match=r"types.yaml.*own") as caught:
        load_collections(str(file), (), "released")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("types.json", '{"own": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        ("types.yaml", "own: " + "[" * 100_000 + "]" * 100_000),
        ("types.json", '{"own": ' + "9" * 5000 + "}"),
        ("types.yaml", "own: " + "9" * 5000),
        ("types.yaml", "own: 0x" + "f" * 5000),
    ],
    ids=["deep JSON", "deep YAML", "a long number in JSON", "in YAML", "in hexadecimals"],
)
def test_a_file_of_types_that_nobody_writes_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SetupError, match=r"types\.(json|yaml)"):
        load_collections(str(tmp_path / name), (), "corrected")


def test_an_unknown_collection_is_named() -> None:
    with pytest.raises(SetupError, match=r"--collection cats: .* has human, nonhuman"):
        load_collections(None, ["cats"], "corrected")


def test_records_give_their_sets_back_and_are_counted() -> None:
    amber_tuple = of_tuple(
        value("Q2", "x", is_found=True), FullValue(QUANTITY, None, "+2", "1", ("2",), ("two",), None)
    )
    head = SetEntity("Q1", 1.5, True, ("N",), ("Q5",), (PAGE,), (structs.replace(amber_tuple, provenance=(PAGE,)),))
    made = AmberSet("N", (head, replace_qid(head, "Q3")))
    assert set_of(json.loads(json.dumps(tuples_record(made)))) == made
    statistics = CollectionStatistics(HUMAN)
    statistics.add(made, {"qa": 2, "sf": 2, "fc": 3})
    values = statistics.values()
    assert values["queries"] == {"made": 7, "published": 23768}
    assert values["entities_per_set"] == {"made": 2.0, "published": 2.98}
    assert values["shares"]["Q5 P54"] == {"made": 100.0, "published": 17.25}
    assert values["shares"]["Q5 P641"] == {"made": 0.0, "published": 25.68}


def replace_qid(entity: SetEntity, qid: str) -> SetEntity:
    return structs.replace(entity, qid=qid, is_head=False)


def amber_sets(
    entities: Iterable[AmberEntity],
    documents: Mapping[str, list[PageBeginning]],
    collections: Sequence[Collection],
    options: AmberOptions,
    database: DuckDBPyConnection | None = None,
) -> list[list[AmberSet]]:
    """The sets of each collection, by name: the steps that the pipeline takes for each name, in a loop in memory."""
    found: list[list[AmberSet]] = [[] for _ in collections]
    for named in names_of(entities, collections, options, database=database)[1]:
        made = make_set(named.name, named.members, named.known, collections[named.collection], options)
        aligned = made._replace(
            entities=tuple(
                align_entity(entity, documents[entity.qid]) for entity in made.entities if documents.get(entity.qid)
            )
        )
        if lacking(aligned, "found") is None:
            found[named.collection].append(aligned)
    return found


BATTLES = [
    "Black Hawk War",
    "American Civil War",
    "American Civil War",
    "Civil War",
    "The Civil War",
    "U.S. Civil War",
    "US Civil War",
    "United States Civil War",
    "War Between the States",
    "War of the Rebellion",
]
INSTRUMENTS = ["trombone", "slide trombone", "tenor trombone", "valve trombone"]
LINCOLN = [
    {"wikipedia_id": "307", "title": "Abraham Lincoln"},
    {"wikipedia_id": "42390831", "title": "Abraham Lincoln's Life"},
]
MUSICIAN = [{"wikipedia_id": "17039796", "title": "Abe Lincoln (musician)"}]
PUBLISHED = {
    "name": "Abe Lincoln",
    "qids": {
        "Q91": {
            "is_head": True,
            "popularity": 5.1942478558575464,
            "wikipedia": LINCOLN,
            "queries": [
                {
                    "id": "6981ec17f0438a7cc94fff740cc9bb23=f12393b7ba0631871ea7126dd5127772",
                    "input": "Which battle did Abe Lincoln fight in?",
                    "output": {
                        "answer": BATTLES,
                        "provenance": LINCOLN[:1],
                        "meta": {"values": BATTLES, "additional_values": []},
                    },
                    "meta": {"pid": "P607"},
                }
            ],
        },
        "Q4666410": {
            "is_head": False,
            "popularity": 1.7781512503836436,
            "wikipedia": MUSICIAN,
            "queries": [
                {
                    "id": "edf1ff070a3cbd5fdee738262db8e740=44a67ee4dd88179d1147102e9753a5fa",
                    "input": "What musical instrument does Abe Lincoln play?",
                    "output": {
                        "answer": INSTRUMENTS,
                        "provenance": MUSICIAN,
                        "meta": {"values": INSTRUMENTS, "additional_values": []},
                    },
                    "meta": {"pid": "P1303"},
                }
            ],
        },
    },
}
"""Source: data/README.md of https://github.com/anthonywchen/AmbER-Sets, CC0."""


def test_example_of_the_published_readme() -> None:
    options = AmberOptions(templates="released")
    (collection,) = load_collections(None, ["human"], "released")
    battles = (AmberValue("wikibase-item", "Q10"), AmberValue("wikibase-item", "Q11"))
    entities = [
        AmberEntity("Q91", 156_404, ("Abraham Lincoln", "Abe Lincoln"), ("Q5",), {"P607": battles}),
        AmberEntity("Q4666410", 60, ("Abe Lincoln",), ("Q5",), {"P1303": (AmberValue("wikibase-item", "Q12"),)}),
        AmberEntity("Q10", 9, tuple(BATTLES[:1]), (), {}),
        AmberEntity("Q11", 9, tuple(BATTLES[1:]), (), {}),
        AmberEntity("Q12", 9, tuple(INSTRUMENTS), (), {}),
    ]
    pages = {
        "Q91": [
            PageBeginning(PageRef(**LINCOLN[0]), "Abraham Lincoln led the Union through the American Civil War."),
            PageBeginning(PageRef(**LINCOLN[1]), "A relief."),
        ],
        "Q4666410": [PageBeginning(PageRef(**MUSICIAN[0]), "He played the trombone.")],
    }
    ((found,),) = amber_sets(entities, pages, [collection], options)
    record = set_record(found.name, set_queries(found, "qa", collection, options, {}))
    assert amber_line(record) == json.dumps(PUBLISHED).encode() + b"\n"


SEEDS = range(50, 100)
CHOICES: list[dict[str, Any]] = [
    {},
    {"templates": "released"},
    {"gap_on": "views"},
    {"head_scope": "collection"},
    {"complex_types": True},
    {"typed_templates": True},
    {"gap_on": "views", "head_scope": "collection", "complex_types": True, "typed_templates": True},
]


def _collections(options: AmberOptions) -> list[Collection]:
    return list(load_collections(None, [], options.templates))


def _record(amber_set: AmberSet) -> Any:
    """A set as the file of tuples has it."""
    return json.loads(json.dumps(tuples_record(amber_set)))


def _queries(sets: list[AmberSet], collection: Collection, options: AmberOptions) -> dict[str, list[Any]]:
    counts = ValueCounts()
    for made_set in sets:
        counts.add(made_set)
    ranked = counts.ranked()
    queries: dict[str, list[Any]] = {task: [] for task in TASKS}
    for made_set, task in itertools.product(sets, TASKS):
        for entity in made_set.entities:
            for query in make_queries(made_set.name, entity, task, collection, options, ranked):
                answer = query.answer if isinstance(query.answer, str) else list(query.answer)
                key = (made_set.name, entity.qid, query.tuple.property_id)
                queries[task].append((*key, query.query_id, query.input, answer))
    return queries


@pytest.mark.slow
@pytest.mark.parametrize("chosen", CHOICES, ids=lambda record: "-".join(record) or "default")
def test_random_worlds_give_the_same_sets_and_queries(chosen: dict[str, Any]) -> None:
    options, default = AmberOptions(**chosen), asdict(AmberOptions())
    collections = _collections(options)
    seen: Counter[str] = Counter()
    with connected(threads=1) as db:
        for seed in SEEDS:
            world = World(seed, collections)
            labelled = [replace(collection, labels=world.labels) for collection in collections]
            made = amber_sets(world.product_entities(), world.product_passages(), labelled, options, db)
            for collection, sets in zip(labelled, made, strict=True):
                data = {
                    "types": collection.types,
                    "labels": collection.labels,
                    "qa_templates": collection.qa_templates,
                    "fc_templates": collection.fc_templates,
                }
                expected = amber_oracle.make_tuples(world.entities, world.pages, data, asdict(options))
                queries = _queries(sets, collection, options)
                assert [_record(made_set) for made_set in sets] == expected, f"seed {seed}"
                wanted = amber_oracle.make_queries(expected, data, world.entities, asdict(options))
                assert queries == wanted, f"seed {seed}"
                usual = amber_oracle.make_tuples(world.entities, world.pages, data, default)
                seen["other"] += wanted != amber_oracle.make_queries(usual, data, world.entities, default)
                seen["sets"] += len(sets)
                seen["claims"] += len(queries["fc"])
                seen["not refuted"] += 2 * len(queries["qa"]) - len(queries["fc"])
    # The worlds are no good where nothing comes of them.
    assert seen["sets"] >= 10
    assert seen["not refuted"] > 0
    assert (seen["other"] > 0) == (chosen.keys() - {"templates"} != set())
