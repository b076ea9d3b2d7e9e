"""The command that makes AmbER sets, end to end."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kbsource.release.verify import verify
from mapping.amber.collections import load_collections
from mapping.amber.records import AmberOptions
from mapping.amber.released import set_of
from mapping.kinds import KINDS
from pipelines.jobs.amber import AmberSummary
from tests.support.amber_releases import LABELS, Releases, make_release, random_world, write_world
from tests.support.amber_worlds import amber_sets
from tests.support.builds import contents


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return write_world(*random_world(1), tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def made(world: Releases, tmp_path_factory: pytest.TempPathFactory) -> AmberSummary:
    return make_release(world, tmp_path_factory.mktemp("made") / "amber")


def test_the_sets_are_those_of_the_loop_in_memory(world: Releases, made: AmberSummary) -> None:
    entities, _ = random_world(1)
    for collection in load_collections(None, None, (), "corrected"):
        labelled = replace(collection, labels=LABELS)
        expected = amber_sets(entities, world.documents, labelled, AmberOptions())
        lines = (Path(made.output) / collection.name / "amber_set_tuples.jsonl").read_text("utf-8").splitlines()
        assert [set_of(json.loads(line)) for line in lines] == expected
        assert made.report["collections"][collection.name]["statistics"]["sets"]["made"] == len(expected)
    assert made.report["collections"]["human"]["statistics"]["sets"]["made"] > 2 <= len(expected)


def test_the_release_keeps_its_laws(world: Releases, made: AmberSummary) -> None:
    report = verify(made.output, KINDS, sources={"kb": str(world.kb)})
    assert report.findings == ()
    assert report.counts["set_queries"] > 0


def test_the_same_bytes_with_two_workers(world: Releases, made: AmberSummary, tmp_path: Path) -> None:
    make_release(world, tmp_path / "amber", runner="local-multi", workers=2)
    assert contents(tmp_path / "amber") == contents(Path(made.output))
