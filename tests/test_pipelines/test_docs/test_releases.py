"""What holds of every kind of release, seen in those of the demo."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kbsource.release.layout import table_of
from kbsource.release.verify import verify
from kbsource.release.writer import is_id
from mapping.kinds import KINDS, OWN_TABLES
from mapping.publish.folder import publish_release
from pipelines.cli import main
from tests.support.demo_releases import FOLDERS, GOLDEN, make_releases, report
from tests.support.published import check_published
from tests.support.real_data import ROOT, script
from tests.support.tampered.table import GROUPS
from tests.support.verified import verified

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of every kind."""
    folder = tmp_path_factory.mktemp("demo")
    make_releases(folder)
    return folder


def test_engines_can_skip_row_groups_by_every_id_of_every_table(demo: Path) -> None:
    seen = defaultdict[str, set[str]](set)
    for path in sorted(demo.rglob("*.parquet")):
        file, table = pq.ParquetFile(path), table_of(str(path))
        assert table is not None
        ids = [name for name in file.schema_arrow.names if is_id(name)]
        places = {file.metadata.schema.column(number).path: number for number in range(file.metadata.num_columns)}
        for group in (file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)):
            for name in ids:
                statistics = group.column(places[name]).statistics
                assert statistics is not None, f"{path}: {name}"
                assert statistics.has_min_max or statistics.null_count == group.num_rows, f"{path}: {name}"
                seen[table].add(name)
    known = {table: {*filter(is_id, schema.names)} for table, schema in OWN_TABLES.tables.items()}
    assert seen == {table: names for table, names in known.items() if names}
    assert seen["statements"] == {"entity_id", "property_id"}


def test_every_kind_is_made_and_sound(demo: Path) -> None:
    kinds = {found.kind for name in FOLDERS if (found := verified(demo / name)).is_sound}
    tampered = {group.kind.name for group in GROUPS.values()}  # these are made and verified, too
    assert kinds | tampered == {kind.name for kind in KINDS} - {OWN_TABLES.name}


@pytest.mark.parametrize("name", FOLDERS)
def test_the_report_on_every_release_is_the_golden_one(demo: Path, name: str) -> None:
    assert report(demo, name) == (GOLDEN / f"{name}.md").read_text("utf-8")


def test_both_collections_of_amber_sets_come_of_the_demo(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = {}
    for collection in ("human", "nonhuman"):
        for line in (demo / "amber" / collection / "qa" / "amber_sets.jsonl").read_text("utf-8").splitlines():
            record = json.loads(line)
            asked = [
                (qid["is_head"], query["meta"]["pid"]) for qid in record["qids"].values() for query in qid["queries"]
            ]
            found[collection, record["name"]] = sorted(asked)
    assert found == {
        ("human", "Old Steersman"): [(False, "P19"), (True, "P102")],
        ("nonhuman", "Lantern"): [(False, "P559"), (True, "P123")],
    }
    assert main(["show", str(demo / "amber"), "Lantern"]) == 0
    assert "Lantern" in capsys.readouterr().out


def test_hard_negatives_come_of_the_product_itself(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads((demo / "contexts" / "report.json").read_text())
    assert report["rejected"] == {}
    assert report["questions"]["without_retrieved"] == 0
    assert report["hard_negatives"] == report["proofs"]["placed"] > 100
    sources = {name: str(demo / name) for name in ("qampari", "passages")}
    assert verify(str(demo / "contexts"), KINDS, sources=sources).findings == ()
    dev = str(demo / "contexts" / "qampari_contexts" / "dev_data_with_contexts.jsonl")
    assert main(["evaluate", "qampari", dev, "--retrieved", dev, "--evidence-match", "id", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["erecall"]["200"] == 1.0


def test_every_query_of_the_amber_sets_is_answered(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hits = []
    for number, path in enumerate(sorted((demo / "amber").glob("*/*/amber_sets.jsonl"))):
        found, linked = demo / f"found-{number}.jsonl", demo / f"linked-{number}.jsonl"
        asked = ["search", str(demo / "passages"), "--index", str(demo / "index"), "--queries", str(path), "--output"]
        assert main([*asked, str(found)]) == 0
        assert main([*asked, str(linked), "--system", "aliases", "--linking", str(demo / "linking")]) == 0
        assert f"Next: kbsource evaluate amber {path} {linked}" in capsys.readouterr().out
        for answers in (found, linked):
            assert main(["evaluate", "amber", str(path), str(answers), "--k", "1,20", "--json"]) == 0
            said = json.loads(capsys.readouterr().out)
            assert (said["without_predictions"], said["rejected"]) == (0, {})
            hits.append(said["metrics@20"]["accuracy"])
    assert max(hits[::2]) == 100.0
    assert max(hits[1::2]) > 0


def test_the_entity_way_first_finds_four_fifths_of_the_pages(demo: Path) -> None:
    scores = pq.read_table(demo / "benchmark" / "scores").to_pylist()
    found = {
        (score["dataset"], score["system"]): (score["value"], score["n"])
        for score in scores
        if score["metric"] == "Rprec"
    }
    value, n = found["all questions", "aliases+bm25"]
    assert (n, value >= 0.80) == (86, True)
    assert found["all mentions", "aliases+bm25"] == (0.75, 20)
    assert found["blink-dev", "aliases"] == (1.0, 10)
    accuracy = {
        (score["dataset"], score["system"]): score["value"] for score in scores if score["metric"] == "accuracy"
    }
    assert accuracy["all mentions", "aliases+bm25"] == 0.75  # as of KILT's linkers, the same


def test_what_a_release_holds_is_shown(demo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in (
        ("wikidata", "statements/"),
        ("aligned", "fever/dev/ (release "),
        ("contexts", "kind folder of questions with passages"),
    ):
        assert main(["info", str(demo / name)]) == 0
        assert said in " ".join(capsys.readouterr().out.split())
    assert main(["info", str(demo / "passages"), "--json"]) == 0
    assert capsys.readouterr().out == (demo / "passages" / "manifest.json").read_text()


def read_rows(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder).to_pylist()
    return rows


def test_the_picture_of_the_readme_is_drawn_from_the_demo(demo: Path) -> None:
    picture = script("docs/picture.py")

    assert picture.PICTURE.read_text("utf-8") == picture.picture(demo / "aligned" / "fever" / "dev")


@pytest.mark.slow
def test_the_session_of_the_readme_is_what_the_demo_prints(demo: Path) -> None:
    session = script("docs/session.py")

    assert session.PICTURE.read_text("utf-8") == session.session_picture(demo)


def test_the_figures_of_the_readme_are_those_of_the_demo(demo: Path) -> None:
    manifest = json.loads((demo / "release" / "manifest.json").read_text())
    uses = Counter[str]()
    for row in read_rows(demo / "release" / "templates"):
        uses[row["outcome"]] += row["uses"]
    found = Counter[str]()
    for path in demo.glob("aligned/*/*/manifest.json"):
        found.update(json.loads(path.read_text())["counts"]["evidences"])
    without = found.total() - sum(found[name] for name in ("exact", "near", "weak", "page_only"))
    totals, links = manifest["totals"], manifest["findings"]
    read = totals["pages_read"]
    questions, queries = (len(read_rows(demo / "qampari" / name)) for name in ("questions", "queries"))
    shown = [
        f"{links['anchors']:,} links, {links['anchors_resolved']:,} of them to a page of the release",
        f"{uses['rendered'] + uses['expanded']} uses of templates shown; {uses['unknown']} uses of unknown "
        "templates listed, with the characters lost",
        f"{read} read = {totals['articles']} articles + {totals['redirects']} redirects + {totals['other_namespaces']} "
        f"pages of other namespaces + {sum(totals['rejected'].values())} rejected",
        f"{found.total()} pieces of evidence: {found['exact']} exact, {found['near']} near, {found['weak']} weak, "
        f"{found['page_only']} page only, {without} without a result, each with a reason",
        f"{questions} questions of {queries} candidates",
    ]
    text = (ROOT / "README.md").read_text("utf-8")
    assert [line for line in shown if f" | {line} |" not in text] == []


def test_every_kind_is_published_and_every_tool_reads_it(demo: Path, tmp_path: Path) -> None:
    for name in FOLDERS:
        folder = tmp_path / name
        publish_release(str(demo / name), str(folder), KINDS, licence="CC-BY-SA-4.0")
        assert verified(folder).is_sound
        check_published(folder, tmp_path / "cache")
