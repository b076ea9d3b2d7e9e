"""AmbER sets of random worlds, as the product makes them and as a second implementation does."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

import pytest

from mapping.amber.collections import load_collections
from mapping.amber.queries import ValueCounts, make_queries
from mapping.amber.records import ITEM, TASKS, AmberOptions, AmberSet, Collection, FullValue
from tests.support import amber_oracle
from tests.support.amber_random import World
from tests.support.amber_worlds import amber_sets

N_WORLDS = 200
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
    return list(load_collections(None, None, [], options.templates))


def _value(value: FullValue) -> dict[str, Any]:
    is_item = value.kind == ITEM
    kind = {"qid": value.value} if is_item else {"amount": value.value, "unit": value.unit}
    types = {"entity_types": list(value.entity_types or ())} if is_item else {}
    names = {"aliases": list(value.aliases), "additional_aliases": list(value.additional_aliases)}
    return {"type": value.kind, **kind, **names, **types, "found_in_passage": value.is_found}


def _record(one: AmberSet) -> dict[str, Any]:
    """Gives a set as the file of tuples has it."""
    return {
        "name": one.name,
        "qids": {
            entity.qid: {
                "popularity": entity.popularity,
                "is_head": entity.is_head,
                "aliases": list(entity.aliases),
                "entity_types": list(entity.entity_types),
                "wikipedia": [page._asdict() for page in entity.pages],
                "pids": {
                    info.property_id: {
                        "property": info.property,
                        "amber_id": info.amber_id,
                        "provenance": [page._asdict() for page in info.provenance],
                        "values": [_value(value) for value in info.values],
                    }
                    for info in entity.tuples
                },
            }
            for entity in one.entities
        },
    }


def _made(world: World, collection: Collection, options: AmberOptions) -> tuple[list[AmberSet], Any]:
    sets = amber_sets(world.product_entities(), world.product_documents(), collection, options)
    counts = ValueCounts()
    for one in sets:
        counts.add(one)
    ranked = counts.ranked()
    queries: dict[str, list[Any]] = {task: [] for task in TASKS}
    for one, task in itertools.product(sets, TASKS):
        for entity in one.entities:
            for query in make_queries(one.name, entity, task, collection, options, ranked):
                answer = query.answer if isinstance(query.answer, str) else list(query.answer)
                key = (one.name, entity.qid, query.tuple.property_id)
                queries[task].append((*key, query.query_id, query.input, answer))
    return sets, queries


@pytest.mark.parametrize("chosen", CHOICES, ids=lambda one: "-".join(one) or "default")
def test_random_worlds_give_the_same_sets_and_queries(chosen: dict[str, Any]) -> None:
    options, default = AmberOptions(**chosen), asdict(AmberOptions())
    collections = _collections(options)
    seen: Counter[str] = Counter()
    for seed in range(N_WORLDS if not chosen else N_WORLDS // 2):
        world = World(seed, collections)
        for plain in collections:
            collection = replace(plain, labels=world.labels)
            data = {
                "types": collection.types,
                "labels": collection.labels,
                "qa_templates": collection.qa_templates,
                "fc_templates": collection.fc_templates,
            }
            expected = amber_oracle.make_tuples(world.entities, world.pages, data, asdict(options))
            sets, queries = _made(world, collection, options)
            assert [_record(one) for one in sets] == expected, f"seed {seed}"
            wanted = amber_oracle.make_queries(expected, data, world.entities, asdict(options))
            assert queries == wanted, f"seed {seed}"
            usual = amber_oracle.make_tuples(world.entities, world.pages, data, default)
            seen["other"] += wanted != amber_oracle.make_queries(usual, data, world.entities, default)
            seen["sets"] += len(sets)
            seen["claims"] += len(queries["fc"])
            seen["not refuted"] += 2 * len(queries["qa"]) - len(queries["fc"])
    # The worlds are no good where nothing comes of them.
    assert seen["sets"] >= 20
    assert seen["not refuted"] > 0
    assert (seen["other"] > 0) == (chosen.keys() - {"templates"} != set())
