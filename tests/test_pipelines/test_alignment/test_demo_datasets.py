"""The demo's datasets, in their original forms, aligned to the mini-wiki: every rule, end to end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kbsource.lookup import KnowledgeSource
from mapping.sources import all_sources
from mapping.write.kilt import file_name, without_answers
from mapping.write.validate import validate_kilt
from pipelines.alignment.writing import file_stem, policy_name
from pipelines.jobs.build import BuildSummary
from pipelines.jobs.map_dataset import AllSummary
from pipelines.options import Planned
from tests.support.alignments import read_lines, table
from tests.support.demo_datasets import CONFIG, GOLDEN, kilt_file, map_demo, planned_demo, record_files
from tests.support.mini_wiki import FOLDER

PLANNED = planned_demo(Path("kb"), Path("aligned"))
ANSWERED = [one for one in PLANNED if one.options.split != "test"]
EACH = pytest.mark.parametrize("planned", PLANNED, ids=[one.folder for one in PLANNED])


@pytest.fixture(scope="module")
def demo(mini_build: BuildSummary, tmp_path_factory: pytest.TempPathFactory) -> AllSummary:
    """All of the demo aligned; not to be changed."""
    return map_demo(Path(mini_build.output), tmp_path_factory.mktemp("demo") / "aligned")


def _report(demo: AllSummary, folder: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((Path(demo.output) / folder / "report.json").read_text("utf-8"))
    return report


def test_every_split_that_kilt_publishes_is_in_the_demo() -> None:
    assert {one.options.dataset for one in PLANNED} == set(all_sources()) - {"kilt", "jsonl"}
    assert {(one.name, one.options.split) for one in PLANNED} == {
        (name, split) for name, source in all_sources().items() for split in source.published.records
    }


def test_every_file_of_the_demo_is_used() -> None:
    given = [path for one in PLANNED for path in _paths(one)]

    for path in sorted(path for path in (FOLDER / "datasets").rglob("*") if path.is_file()):
        assert any(path == one or one in path.parents for one in given), path


def _paths(one: Planned) -> list[Path]:
    options = one.options
    return [Path(path) for path in (*options.inputs, *options.references, *options.labels)]


@EACH
def test_records_are_those_of_the_golden_files(planned: Planned, demo: AllSummary) -> None:
    files = record_files(Path(demo.output), [planned])

    assert kilt_file(Path(demo.output), planned) in files.values()
    for name, path in files.items():
        assert path.read_text("utf-8") == (GOLDEN / name).read_text("utf-8"), name


def test_there_is_no_golden_file_too_many(demo: AllSummary) -> None:
    found = {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.jsonl")}

    assert found == set(record_files(Path(demo.output), PLANNED))


@EACH
def test_the_validator_passes_and_scores_again_what_has_a_score(
    planned: Planned, demo: AllSummary, release: Path
) -> None:
    folder = Path(demo.output) / planned.folder
    paths = [str(path) for path in record_files(Path(demo.output), [planned]).values()]
    with KnowledgeSource.open(str(release)) as source:
        every = [validate_kilt(path, source, alignments=str(folder)) for path in paths]

    for checked in every:
        assert checked.is_valid, checked.findings
        assert checked.records == _report(demo, planned.folder)["counts"]["written"]
        assert checked.rescored == checked.located


@EACH
def test_only_labels_bring_a_test_file_with_answers_and_it_is_the_other_with_them(
    planned: Planned, demo: AllSummary
) -> None:
    output, options = Path(demo.output), planned.options
    files = record_files(output, [planned])
    whole = output / planned.folder / file_name(file_stem(options), options.split, with_answers=True)

    assert (str(whole) in map(str, files.values())) == (options.split != "test" or bool(options.labels))
    if options.labels:
        records = read_lines(whole)
        assert all(record["output"] for record in records)
        policy = all_sources()[policy_name(options)].policies["test"]
        assert [without_answers(record, policy) for record in records] == read_lines(kilt_file(output, planned))
    listed = next(one for one in demo.report["datasets"] if one["folder"] == planned.folder)["files"]
    assert sorted(f"{planned.name}/{name}" for name in listed) == sorted(files)


@pytest.mark.parametrize("planned", ANSWERED, ids=[one.folder for one in ANSWERED])
def test_evidence_is_marked_as_written_where_the_file_has_a_span_of_it(planned: Planned, demo: AllSummary) -> None:
    output = Path(demo.output)
    marked = Counter(row["example_id"] for row in table(output / planned.folder, "alignments") if row["is_written"])

    for record in read_lines(kilt_file(output, planned)):
        spans = [span for one in record["output"] for span in one.get("provenance", [])]
        partial = (record.get("meta") or {}).get("partial_evidence", [])
        assert marked.pop(record["id"], 0) == len(spans) + len(partial), record["id"]
    assert not marked


@EACH
def test_no_record_is_lost_without_a_reason(planned: Planned, demo: AllSummary) -> None:
    report = _report(demo, planned.folder)
    records, counts = report["records"], report["counts"]

    assert records["read"] > 0
    assert counts["written"] > 0
    left_out = [*records["excluded"].values(), *records["rejected"].values(), *counts["dropped"].values()]
    assert records["read"] - records.get("merged", 0) == counts["written"] + sum(left_out)


@pytest.mark.parametrize(
    ("folder", "part", "counted"),
    [
        ("fever/train", "excluded", {"not_enough_info": 1}),
        ("fever/train", "rejected", {"malformed_json": 1}),
        ("fever/train", "dropped", {}),
        ("fever/dev", "excluded", {"not_enough_info": 1}),
        ("fever/dev", "lost_evidences", {"null_page": 1, "unknown_sentence": 1}),
        ("fever/dev", "dropped", {"below_threshold": 1, "page_missing": 1}),
        ("fever/test", "excluded", {"not_enough_info": 1}),
        ("fever/test", "lost_evidences", {}),
        ("aidayago2/train", "excluded", {"not_in_kb": 2}),
        ("aidayago2/train", "dropped", {"page_missing": 1}),
        ("aidayago2/dev", "dropped", {"page_ambiguous": 1}),
        ("wned/dev", "dropped", {"page_ambiguous": 1, "page_missing": 1}),
        ("cweb/dev", "excluded", {"not_in_kb": 1}),
        ("cweb/test", "rejected", {"offset_mismatch": 1}),
        ("hotpotqa/train", "dropped", {}),
        ("hotpotqa/train", "lost_evidences", {"unknown_sentence": 1}),
        ("hotpotqa/dev", "rejected", {"missing_field": 1}),
        ("hotpotqa/dev", "dropped", {"below_threshold": 1, "page_missing": 1}),
        ("hotpotqa/dev", "lost_evidences", {"unknown_sentence": 1}),
    ],
)
def test_what_is_left_out_of_the_demo_has_these_reasons(
    demo: AllSummary, folder: str, part: str, counted: dict[str, int]
) -> None:
    report = _report(demo, folder)
    flat = {**report["records"], **report["counts"], "lost_evidences": report["lost_evidences"]}

    assert flat[part] == counted


def _golden(name: str) -> dict[str, Any]:
    text = (GOLDEN / name.partition("-")[0] / f"{name}-kilt.jsonl").read_text("utf-8")
    records = [json.loads(line) for line in text.splitlines()]
    return {record["id"]: record for record in records}


def _sets(record: dict[str, Any]) -> list[list[str]]:
    return [[span["title"] for span in output["provenance"]] for output in record["output"]]


def test_the_demo_of_fever_has_sets_pages_escapes_accents_slashes_and_redirects() -> None:
    records = _golden("fever-dev")

    assert _sets(records["2001"]) == [["River Ullane"], ["Lake Miravel"], ["River Ullane", "Lake Miravel"]]
    assert _sets(records["2003"]) == [["Lantern (ferry)"]]
    assert _sets(records["2004"]) == [["Élodie Vauquelin-Marr"]]
    assert _sets(records["2005"]) == [["Tin/Salt"]]
    assert _sets(records["2007"]) == [["Ostermoor Rovers F.C."]]
    assert _sets(records["fever2-2001"]) == [["River Ullane"]]
    assert _sets(records["500003"]) == [["Kestrane: A Mountain Diary"]]
    assert list(_golden("fever-test_without_answers")["3001"]) == ["id", "input"]


def test_the_demo_of_hotpotqa_has_one_set_of_two_pages_and_yes() -> None:
    records = _golden("hotpotqa-dev")

    assert _sets(records["5a8b57f25542995d1e6f1371"]) == [["Port Sellick", "River Ullane"]]
    assert records["5a8b57f25542995d1e6f1372"]["output"][0]["answer"] == "yes"
    assert _sets(records["5a8b57f25542995d1e6f1377"]) == [["مرسى الريح", "Port Sellick"]]


def test_the_demo_of_entity_linking_has_long_contexts_accents_slashes_and_redirects() -> None:
    records = {key.partition("_")[2]: record for key, record in _golden("aidayago2-dev").items()}

    assert len(records["947testa TIDES:0"]["input"].split()) == 256
    assert len(records["947testa TIDES:0"]["meta"]["left_context"].split()) == 300
    assert records["948testa MUSIC:0"]["output"][0]["answer"] == "Élodie Vauquelin-Marr"
    assert records["948testa MUSIC:2"]["output"][0]["answer"] == "Tin/Salt"
    assert _sets(next(iter(_golden("aidayago2-train").values()))) == [["Harbour Treaty of 1821"]]
    assert all(set(record) == {"id", "input", "meta"} for record in _golden("cweb-test_without_answers").values())


def test_the_report_has_every_alignment_and_stands_beside_it_for_reading(demo: AllSummary) -> None:
    assert [one["folder"] for one in demo.report["datasets"]] == [one.folder for one in PLANNED]
    text = (Path(demo.output) / "report.txt").read_text("utf-8")
    for one in PLANNED:
        assert f"{one.name} " in text
    pages = demo.report["pages"]
    assert sum(pages["by_number_of_datasets"].values()) == pages["with_evidence"]


def test_the_configuration_of_the_demo_is_one_that_the_command_reads() -> None:
    assert CONFIG.is_file()
    assert len({one.folder for one in PLANNED}) == len(PLANNED)
