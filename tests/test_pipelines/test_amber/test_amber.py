"""The command that makes AmbER sets, end to end."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kbsource.errors import SetupError
from kbsource.release.verify import verify
from mapping.amber.collections import load_collections
from mapping.amber.records import AmberOptions, Entity, Value
from mapping.amber.released import set_of
from mapping.amber.schema import OUTCOMES
from mapping.entail.signal import ModelOptions
from mapping.kinds import KINDS
from pipelines.cli import main
from pipelines.jobs.amber import AmberSummary
from pipelines.options.amber import AmberJobOptions
from tests.support.amber_releases import LABELS, Releases, make_release, random_world, write_world
from tests.support.amber_worlds import amber_sets
from tests.support.builds import contents
from tests.support.tiny_nli import overlap_model
from tests.support.verified import manifest_bytes, verified


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


def test_a_set_is_shown_with_head_and_tail(made: AmberSummary, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(made.output) / "human" / "sf" / "amber_sets.jsonl"
    name = json.loads(file.read_text("utf-8").splitlines()[0])["name"]
    assert main(["show", made.output, name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}, human\n  head  Q")
    assert "  tail  Q" in shown
    assert f"{name} [SEP] " in shown
    assert main(["show", made.output, "nobody"]) == 1


def test_every_shared_name_is_told_of(made: AmberSummary) -> None:
    rows = pq.read_table(Path(made.output) / "names").to_pylist()
    for collection, report in made.report["collections"].items():
        own = [row for row in rows if row["collection"] == collection]
        assert [row["name"] for row in own] == sorted({row["name"] for row in own})
        assert Counter(row["outcome"] for row in own) == Counter(report["names"])
        assert all(1 <= row["n_members"] <= row["n_bearers"] >= 2 for row in own)
    assert set(report["names"]) == set(OUTCOMES)


def test_a_query_that_is_no_longer_what_its_tuple_gives_is_found(made: AmberSummary, tmp_path: Path) -> None:
    shutil.copytree(made.output, tmp_path / "amber")
    file = tmp_path / "amber" / "human" / "qa" / "amber_sets.jsonl"
    changed = file.read_bytes().replace(b"?", b"!", 1)
    file.write_bytes(changed)
    manifest = tmp_path / "amber" / "manifest.json"
    before = sha256((Path(made.output) / "human" / "qa" / "amber_sets.jsonl").read_bytes()).hexdigest()
    values = json.loads(manifest.read_text().replace(before, sha256(changed).hexdigest()))
    del values["manifest_sha256"]
    manifest.write_bytes(manifest_bytes(values, form=values["format"]))
    assert {one.rule for one in verified(tmp_path / "amber").findings} == {"queries_differ"}


def test_other_rules_and_a_model(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs kbsource[nli]")
    entities, texts = random_world(2)
    world = write_world(entities, texts, tmp_path / "world")
    rules = AmberOptions(gap_on="views", head_scope="collection", templates="released", false_objects="wikidata")
    model = ModelOptions(str(overlap_model(tmp_path / "model")), backend="onnx")
    given = {"rules": rules, "collection": ("human",), "verify": model}
    made = make_release(world, tmp_path / "amber", **given)
    (collection,) = load_collections(None, None, ("human",), "released")
    expected = amber_sets(entities, world.documents, replace(collection, labels=LABELS), rules)
    file = tmp_path / "amber" / "human" / "amber_set_tuples.jsonl"
    assert [set_of(json.loads(line)) for line in file.read_text("utf-8").splitlines()] == expected
    rows = pq.read_table(tmp_path / "amber" / "tuples").to_pylist()
    judged = [row["entailment"] for row in rows if row["bleu"] is not None]
    assert judged
    assert all(one is not None for one in judged)
    assert verify(made.output, KINDS).is_sound
    queries = pq.read_table(tmp_path / "amber" / "set_queries").to_pylist()
    asked = [row for row in queries if row["task"] == "fc"]
    assert {*(answer for row in asked for answer in row["answers"])} == {"SUPPORTS", "REFUTES"}
    crossed = made.report["collections"]["human"]["signals"]
    assert any(verdict != "not_judged" for one in crossed.values() for of in one["found"].values() for verdict in of)
    least = sorted(judged)[len(judged) // 2]
    strict = make_release(world, tmp_path / "strict", accept=f"entailment>{least:f}", **given)
    kept = pq.read_table(tmp_path / "strict" / "tuples").to_pylist()
    assert {row["amber_id"] for row in kept} <= {row["amber_id"] for row in rows if (row["entailment"] or 0) > least}
    names = strict.report["collections"]["human"]["names"]
    assert names["few_accepted"] + names["no_head_accepted"] == len(expected) - names["set"] > 0


def test_a_rule_on_what_no_model_tells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="entailment is only known with --verify MODEL"):
        AmberJobOptions("a", "b", "c", str(tmp_path / "d"), accept="entailment>0.5")


def test_a_language_that_wikidata_has_no_names_in_is_refused(world: Releases, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has no names in de; make it with kbsource wikidata --languages de"):
        make_release(world, tmp_path / "amber", rules=AmberOptions(lang="de"))


def test_names_and_templates_of_another_language_and_only_statements_that_hold(tmp_path: Path) -> None:
    players = [
        Entity("Q1", 1000, ("Jan Kern",), ("Q5",), {"P54": (Value("wikibase-item", "Q9"),)}),
        Entity(
            "Q2",
            10,
            ("Jan Kern",),
            ("Q5",),
            {"P54": (Value("wikibase-item", "Q9"),), "P641": (Value("wikibase-item", "Q8"),)},
        ),
        Entity("Q8", 10, ("Rudern",), (), {}),
        Entity("Q9", 10, ("Werder",), (), {}),
    ]
    texts = {"Q1": ["Jan Kern spielt bei Werder."], "Q2": ["Jan Kern liebt Rudern."]}
    world = write_world(players, texts, tmp_path / "world", lang="de", deprecated={("Q2", "P54")})
    types = tmp_path / "types.yaml"
    types.write_text(
        "sport:\n  types: {Q5: [P54, P641]}\n"
        "  qa_templates: {P54: {all: ['Wo spielt $entity?']}, P641: {all: ['Was macht $entity?']}}\n"
        "  fc_templates: {P54: ['$entity spielt bei $object.'], P641: ['$entity mag $object.']}\n"
    )
    given = {"types": str(types), "rules": AmberOptions(lang="de")}
    kept = make_release(world, tmp_path / "kept", **given)
    assert kept.report["collections"]["sport"]["names"]["set"] == 0
    made = make_release(world, tmp_path / "dropped", deprecated="drop", **given)
    rows = pq.read_table(Path(made.output) / "set_queries").to_pylist()
    assert [(row["task"], row["qid"], row["input"], row["answers"]) for row in rows] == [
        ("qa", "Q1", "Wo spielt Jan Kern?", ["Werder"]),
        ("qa", "Q2", "Was macht Jan Kern?", ["Rudern"]),
        ("sf", "Q1", "Jan Kern [SEP] member of sports team", ["Werder"]),
        ("sf", "Q2", "Jan Kern [SEP] P641", ["Rudern"]),
        ("fc", "Q1", "Jan Kern spielt bei Werder.", ["SUPPORTS"]),
        ("fc", "Q2", "Jan Kern mag Rudern.", ["SUPPORTS"]),
    ]
