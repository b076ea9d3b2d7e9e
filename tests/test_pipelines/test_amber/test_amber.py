"""The command that makes AmbER sets, end to end."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kbsource.errors import SetupError
from kbsource.release.verify import verify
from kbsource.runtime.warehouse import warehouse
from mapping.amber.records import AMBER_CHOICES, ITEM, OUTCOMES, AmberEntity, AmberOptions, AmberValue, load_collections
from mapping.entail.signal import ModelOptions
from mapping.kinds import KINDS
from pipelines.cli import main
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.amber import AmberJobOptions
from tests.support import amber_oracle
from tests.support.amber_releases import LABELS, Releases, make_release, random_world, write_world
from tests.support.tiny_nli import overlap_model
from tests.support.verified import manifest_bytes, seal, verified

pytestmark = pytest.mark.usefixtures("module_in_this_process")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    return write_world(*random_world(1), tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def made(world: Releases, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease:
    return make_release(world, tmp_path_factory.mktemp("made") / "amber")


def _value(value: AmberValue) -> dict[str, Any]:
    if value.kind == ITEM:
        return {"type": value.kind, "qid": value.value}
    return {"type": value.kind, "amount": value.value, "unit": value.unit}


def _entity(entity: AmberEntity) -> dict[str, Any]:
    pids = {pid: list(map(_value, values)) for pid, values in entity.properties.items()}
    return {"views": entity.views, "aliases": list(entity.aliases), "types": list(entity.types), "pids": pids}


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _check(
    output: str, seed: int, world: Releases, rules: AmberOptions, *names: str, n_people: int = 150
) -> dict[str, int]:
    """Compares a release with a second implementation that reads nothing of the product's; the number of sets."""
    entities = {entity.qid: _entity(entity) for entity in random_world(seed, n_people=n_people)[0] if entity.aliases}
    n_sets = {}
    for plain in load_collections(None, names, rules.templates):
        labels = {pid: LABELS.get(pid, pid) for pid in plain.property_ids}
        collection, folder = asdict(replace(plain, labels=labels)), Path(output) / plain.name
        sets = amber_oracle.make_tuples(entities, world.pages, collection, asdict(rules))
        n_sets[plain.name] = len(sets)
        assert _lines(folder / "amber_set_tuples.jsonl") == sets
        for task, expected in amber_oracle.make_queries(sets, collection, entities, asdict(rules)).items():
            made = _lines(folder / task / "amber_sets.jsonl")
            assert expected == [
                (made_set["name"], qid, query["meta"]["pid"], query["id"], query["input"], query["output"]["answer"])
                for made_set in made
                for qid, entity in made_set["qids"].items()
                for query in entity["queries"]
            ]
            for known, made_set in (
                (tuples["qids"], made_set["qids"]) for tuples, made_set in zip(sets, made, strict=True)
            ):
                for qid, entity in made_set.items():
                    for name in ("is_head", "popularity", "wikipedia"):
                        assert entity[name] == known[qid][name]
                    for query in entity["queries"]:
                        info = known[qid]["pids"][query["meta"]["pid"]]
                        assert query["output"]["provenance"] == info["provenance"]
                        aliases = [alias for value in info["values"] for alias in value["aliases"]]
                        assert query["output"]["meta"]["values"] == aliases
    return n_sets


def test_the_files_hold_what_the_second_implementation_gives(world: Releases, made: MadeRelease) -> None:
    n_sets = _check(made.output, 1, world, AmberOptions())
    for name, n in n_sets.items():
        assert made.report["collections"][name]["statistics"]["sets"]["made"] == n
    assert n_sets["human"] > 2 <= n_sets["nonhuman"]


def test_any_number_of_threads_joins_the_same_sets(
    world: Releases, made: MadeRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("entities", "sets"):
        monkeypatch.setattr(f"pipelines.amber.{module}.warehouse", partial(warehouse, threads=7))
    again = make_release(world, tmp_path / "amber")
    one, other = (Path(release.output, "manifest.json").read_bytes() for release in (made, again))
    assert one == other


@pytest.mark.slow
def test_with_every_option_too(world: Releases, tmp_path: Path) -> None:
    rules = AmberOptions(
        gap_on="views",
        head_scope="collection",
        complex_types=True,
        templates="released",
        typed_templates=True,
        false_objects="wikidata",
    )
    made = make_release(world, tmp_path / "amber", rules=rules)
    assert sum(_check(made.output, 1, world, rules).values()) > 5


def test_as_the_paper_takes_its_choices_and_every_page_that_claims_an_item_is_gold(tmp_path: Path) -> None:
    entities, texts = random_world(4, n_people=60)
    further = {qid: [f"{qid} is here too.", *texts[other]] for qid, other in zip(list(texts)[::2], texts, strict=False)}
    world = write_world(entities, texts, tmp_path / "world", further=further)
    inputs = [str(world.kb), str(world.wikidata), str(world.pageviews)]
    assert main(["amber", *inputs, "--output", str(tmp_path / "amber"), "--as", "paper"]) == 0

    options = json.loads((tmp_path / "amber" / "manifest.json").read_bytes())["options"]
    assert options["as"] == "paper"
    assert {name: ({**options, **options["rules"]})[name] for name in AMBER_CHOICES["paper"]} == AMBER_CHOICES["paper"]
    rules = AmberOptions(**options["rules"])
    n_sets = _check(str(tmp_path / "amber"), 4, world, rules, n_people=60)
    tuples = pq.read_table(tmp_path / "amber" / "tuples").to_pylist()
    assert all(n_sets.values())
    assert any(len(row["provenance"]) > 1 for row in tuples)
    entities_of_sets = [
        entity for row in pq.read_table(tmp_path / "amber" / "sets").to_pylist() for entity in row["entities"]
    ]
    assert {len(of_set["wikipedia"]) for of_set in entities_of_sets} == {1, 2}
    assert verify(str(tmp_path / "amber"), KINDS, sources={"kb": str(world.kb)}).findings == ()


def test_what_as_sets_cannot_be_set_otherwise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["amber", "kb", "wikidata", "views", "--output", str(tmp_path / "x"), "--as", "paper"]
    assert main([*given, "--gap-on", "log10"]) == 2
    assert "--as paper sets --gap-on to views, not to log10: leave out --gap-on or --as." in capsys.readouterr().err
    with pytest.raises(SetupError, match="--as released sets --templates to released, not to corrected"):
        AmberJobOptions("a", "b", "c", output="d", as_="released")


def test_the_release_keeps_its_laws(world: Releases, made: MadeRelease) -> None:
    report = verify(made.output, KINDS, sources={"kb": str(world.kb)})
    assert report.findings == ()
    assert report.counts["set_queries"] > 0


def test_a_set_is_shown_with_head_and_tail(made: MadeRelease, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(made.output) / "human" / "sf" / "amber_sets.jsonl"
    name = json.loads(file.read_text("utf-8").splitlines()[0])["name"]
    assert main(["show", made.output, name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{name}, human\n  head  Q")
    assert "  tail  Q" in shown
    assert f"{name} [SEP] " in shown
    assert main(["show", made.output, "nobody"]) == 1


def test_every_shared_name_is_told_of(made: MadeRelease) -> None:
    rows = pq.read_table(Path(made.output) / "names").to_pylist()
    for collection, report in made.report["collections"].items():
        own = [row for row in rows if row["collection"] == collection]
        assert [row["name"] for row in own] == sorted({row["name"] for row in own})
        assert Counter(row["outcome"] for row in own) == Counter(report["names"])
        assert all(1 <= row["n_members"] <= row["n_entities"] >= 2 for row in own)
    assert set(report["names"]) == set(OUTCOMES)


def test_the_report_has_how_many_entities_have_as_many_views(made: MadeRelease) -> None:
    views = [entity.views for entity in random_world(1)[0]]
    popularity = made.report["popularity"]
    assert sorted(map(int, popularity)) == sorted({1 << (n_views.bit_length() - 1) for n_views in views})
    assert popularity == {least: sum(n_views >= int(least) for n_views in views) for least in popularity}


def test_a_query_that_is_no_longer_what_its_tuple_gives_is_found(made: MadeRelease, tmp_path: Path) -> None:
    shutil.copytree(made.output, tmp_path / "amber")
    file = tmp_path / "amber" / "human" / "qa" / "amber_sets.jsonl"
    changed = file.read_bytes().replace(b"?", b"!", 1)
    file.write_bytes(changed)
    manifest = tmp_path / "amber" / "manifest.json"
    before = sha256((Path(made.output) / "human" / "qa" / "amber_sets.jsonl").read_bytes()).hexdigest()
    values = json.loads(manifest.read_text().replace(before, sha256(changed).hexdigest()))
    del values["manifest_sha256"]
    manifest.write_bytes(manifest_bytes(values, form=values["format"]))
    assert {finding.rule for finding in verified(tmp_path / "amber").findings} == {"queries_differ"}


@pytest.mark.slow
def test_other_rules_and_a_model(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="needs kbsource[nli]")
    world = write_world(*random_world(2), tmp_path / "world")
    rules = AmberOptions(gap_on="views", head_scope="collection", templates="released", false_objects="wikidata")
    model = ModelOptions(str(overlap_model(tmp_path / "model")), backend="onnx")
    given = {"rules": rules, "collection": ("human",), "verify": model}
    made = make_release(world, tmp_path / "amber", **given)
    n_sets = _check(made.output, 2, world, rules, "human")["human"]
    rows = pq.read_table(tmp_path / "amber" / "tuples").to_pylist()
    judged = [row["entailment"] for row in rows if row["bleu"] is not None]
    assert judged
    assert all(verdict is not None for verdict in judged)
    assert verify(made.output, KINDS).is_sound
    queries = pq.read_table(tmp_path / "amber" / "set_queries").to_pylist()
    asked = [row for row in queries if row["task"] == "fc"]
    assert {*(answer for row in asked for answer in row["answers"])} == {"SUPPORTS", "REFUTES"}
    crossed = made.report["collections"]["human"]["signals"]
    assert any(
        verdict != "not_judged" for signals in crossed.values() for of in signals["found"].values() for verdict in of
    )
    least = sorted(judged)[len(judged) // 2]
    strict = make_release(world, tmp_path / "strict", accept=f"entailment>{least:f}", **given)
    kept = pq.read_table(tmp_path / "strict" / "tuples").to_pylist()
    assert {row["amber_id"] for row in kept} <= {row["amber_id"] for row in rows if (row["entailment"] or 0) > least}
    names = strict.report["collections"]["human"]["names"]
    assert names["few_accepted"] + names["no_head_accepted"] == n_sets - names["set"] > 0


def test_a_rule_on_what_no_model_tells_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="only a model computes entailment; name one with --model MODEL"):
        AmberJobOptions("a", "b", "c", output=str(tmp_path / "d"), accept="entailment>0.5")


def test_a_language_that_wikidata_has_no_names_in_is_refused(world: Releases, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="has no names in de; make it with kbsource wikidata --languages de"):
        make_release(world, tmp_path / "amber", rules=AmberOptions(lang="de"))


@pytest.mark.slow
def test_names_and_templates_of_another_language_and_only_statements_that_hold(tmp_path: Path) -> None:
    players = [
        AmberEntity("Q1", 1000, ("Jan Kern",), ("Q5",), {"P54": (AmberValue("wikibase-item", "Q9"),)}),
        AmberEntity(
            "Q2",
            10,
            ("Jan Kern",),
            ("Q5",),
            {"P54": (AmberValue("wikibase-item", "Q9"),), "P641": (AmberValue("wikibase-item", "Q8"),)},
        ),
        AmberEntity("Q8", 10, ("Rudern",), (), {}),
        AmberEntity("Q9", 10, ("Werder",), (), {}),
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


def _wrong(value: Any) -> Iterator[Any]:
    """JSON values with one of another type, or missing, for every value in them."""
    yield from (7, "x", None, [], {}, [None])
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield {name: member for name, member in value.items() if name != key} if isinstance(value, dict) else []
        for other in _wrong(value[key]):
            yield {**value, key: other} if isinstance(value, dict) else [*value[:key], other, *value[key + 1 :]]


@pytest.mark.parametrize(
    "name", ["amber_set_tuples.jsonl", "qa/amber_sets.jsonl", "qa_templates.json", "fc_templates.json"]
)
def test_values_of_another_type_are_findings(made: MadeRelease, tmp_path: Path, name: str) -> None:
    shutil.copytree(made.output, tmp_path / "amber")
    file = tmp_path / "amber" / "human" / name
    content = file.read_bytes()
    is_lines = name.endswith(".jsonl")
    first, rest = content.splitlines(keepends=True)[:1] if is_lines else [content], content.splitlines(True)[1:]
    changes = [json.dumps(changed, ensure_ascii=False).encode() for changed in _wrong(json.loads(first[0]))]
    n_found = 0
    for changed in [b"", b"[" * 100_000, b"\xff", *random.Random(1).sample(changes, min(len(changes), 10))]:
        file.write_bytes(b"".join([changed + b"\n", *rest]) if is_lines else changed)
        seal(tmp_path / "amber")
        n_found += bool(verified(tmp_path / "amber").findings)
    assert n_found > 3
