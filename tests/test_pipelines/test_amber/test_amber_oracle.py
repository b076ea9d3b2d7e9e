"""A random world through the whole job, compared with a second implementation that reads nothing of the product's."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from mapping.amber.collections import load_collections
from mapping.amber.records import ITEM, AmberOptions, Entity, Value
from tests.support import amber_oracle
from tests.support.amber_releases import LABELS, Releases, make_release, random_world, write_world

SEED = 7
EVERY_OPTION = AmberOptions(
    gap_on="views",
    head_scope="collection",
    complex_types=True,
    templates="released",
    typed_templates=True,
    false_objects="wikidata",
)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return write_world(*random_world(SEED), tmp_path_factory.mktemp("world"))


def _value(value: Value) -> dict[str, Any]:
    if value.kind == ITEM:
        return {"type": value.kind, "qid": value.value}
    return {"type": value.kind, "amount": value.value, "unit": value.unit}


def _entity(one: Entity) -> dict[str, Any]:
    pids = {pid: list(map(_value, values)) for pid, values in one.properties.items()}
    return {"views": one.views, "aliases": list(one.aliases), "types": list(one.types), "pids": pids}


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _queries(path: Path) -> list[Any]:
    return [
        (one["name"], qid, query["meta"]["pid"], query["id"], query["input"], query["output"]["answer"])
        for one in _lines(path)
        for qid, entity in one["qids"].items()
        for query in entity["queries"]
    ]


@pytest.mark.parametrize("rules", [AmberOptions(), EVERY_OPTION], ids=["default", "every option"])
def test_the_files_hold_what_the_second_implementation_gives(
    rules: AmberOptions, releases: Releases, tmp_path: Path
) -> None:
    made = Path(make_release(releases, tmp_path / "amber", rules=rules).output)
    entities = {one.qid: _entity(one) for one in random_world(SEED)[0] if one.aliases}
    pages = [
        {"wikipedia_id": one.page.wikipedia_id, "wikipedia_title": one.page.title, "text": [one.text], "qid": qid}
        for qid, documents in releases.documents.items()
        for one in documents
    ]
    n_sets = 0
    for plain in load_collections(None, None, (), rules.templates):
        labels = {pid: LABELS.get(pid, pid) for pid in plain.property_ids}
        collection = asdict(replace(plain, labels=labels))
        sets = amber_oracle.make_tuples(entities, pages, collection, asdict(rules))
        folder = made / plain.name
        assert _lines(folder / "amber_set_tuples.jsonl") == sets
        queries = amber_oracle.make_queries(sets, collection, entities, asdict(rules))
        for task, expected in queries.items():
            assert _queries(folder / task / "amber_sets.jsonl") == expected
        for task in queries:
            for tuples, one in zip(sets, _lines(folder / task / "amber_sets.jsonl"), strict=True):
                for qid, entity in one["qids"].items():
                    known = tuples["qids"][qid]
                    assert {name: entity[name] for name in ("is_head", "popularity", "wikipedia")} == {
                        name: known[name] for name in ("is_head", "popularity", "wikipedia")
                    }
                    for query in entity["queries"]:
                        info = known["pids"][query["meta"]["pid"]]
                        assert query["output"]["provenance"] == info["provenance"]
                        assert query["output"]["meta"]["values"] == [
                            alias for value in info["values"] for alias in value["aliases"]
                        ]
        n_sets += len(sets)
    assert n_sets > 5
