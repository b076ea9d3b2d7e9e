"""The demo's datasets, in their original forms, aligned to the mini-wiki: every rule, end to end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from kbsource.lookup import KnowledgeSource
from mapping.sources import all_sources
from mapping.write.kilt import file_name, without_answers
from mapping.write.validate import check_kilt
from pipelines.alignment.writing import file_stem
from pipelines.jobs.build import BuildSummary
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.options.map_dataset import PlannedAlignment
from tests.support.alignments import read_lines, table
from tests.support.demo_datasets import CONFIG, GOLDEN, kilt_file, map_demo, planned_demo, record_files

pytestmark = pytest.mark.usefixtures("module_in_this_process")
DATASETS = yaml.safe_load(CONFIG.read_text("utf-8"))["datasets"]
FOLDERS = [f"{name}/{split}" for name, dataset in DATASETS.items() for split in dataset["splits"]]


@pytest.fixture(scope="module")
def plans() -> list[PlannedAlignment]:
    return planned_demo(Path("kb"), Path("aligned"))


@pytest.fixture(params=FOLDERS)
def planned(request: pytest.FixtureRequest, plans: list[PlannedAlignment]) -> PlannedAlignment:
    return plans[FOLDERS.index(request.param)]


@pytest.fixture(scope="module")
def demo(mini_build: BuildSummary, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease[Any]:
    """All of the demo aligned; not to be changed."""
    return map_demo(Path(mini_build.output), tmp_path_factory.mktemp("demo") / "aligned")


def _report(demo: MadeRelease[Any], folder: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((Path(demo.output) / folder / "report.json").read_text("utf-8"))
    return report


def test_every_split_that_kilt_publishes_is_in_the_demo(plans: list[PlannedAlignment]) -> None:
    assert [plan.folder for plan in plans] == FOLDERS
    assert {plan.options.dataset for plan in plans} == set(all_sources()) - {"kilt", "jsonl"}
    assert {(plan.name, plan.options.split) for plan in plans} == {
        (name, split) for name, source in all_sources().items() for split in source.published.records
    }


def test_records_are_those_of_the_golden_files(planned: PlannedAlignment, demo: MadeRelease[Any]) -> None:
    files = record_files(Path(demo.output), [planned])

    assert kilt_file(Path(demo.output), planned) in files.values()
    for name, path in files.items():
        assert path.read_text("utf-8") == (GOLDEN / name).read_text("utf-8"), name


def test_there_is_no_golden_file_too_many(plans: list[PlannedAlignment], demo: MadeRelease[Any]) -> None:
    found = {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.jsonl")}

    assert found == set(record_files(Path(demo.output), plans))


def test_the_validator_passes_and_scores_again_what_has_a_score(
    planned: PlannedAlignment, demo: MadeRelease[Any], release: Path
) -> None:
    folder = Path(demo.output) / planned.folder
    paths = [str(path) for path in record_files(Path(demo.output), [planned]).values()]
    with KnowledgeSource.open(str(release)) as source:
        every = [check_kilt(path, source, alignments=str(folder)) for path in paths]

    for checked in every:
        assert checked.is_valid, checked.findings
        assert checked.records == _report(demo, planned.folder)["counts"]["written"]
        assert checked.rescored == checked.located


def test_only_labels_bring_a_test_file_with_answers_and_it_is_the_other_with_them(
    planned: PlannedAlignment, demo: MadeRelease[Any]
) -> None:
    output, options = Path(demo.output), planned.options
    files = record_files(output, [planned])
    whole = output / planned.folder / file_name(file_stem(options), options.split, with_answers=True)

    assert (str(whole) in map(str, files.values())) == (options.split != "test" or bool(options.labels))
    if options.labels:
        records = read_lines(whole)
        assert all(record["output"] for record in records)
        policy = all_sources()[options.policy_name].policies["test"]
        assert [without_answers(record, policy) for record in records] == read_lines(kilt_file(output, planned))
    listed = next(dataset for dataset in demo.report["datasets"] if dataset["folder"] == planned.folder)["files"]
    assert sorted(f"{planned.name}/{name}" for name in listed) == sorted(files)


@pytest.mark.parametrize("planned", [name for name in FOLDERS if not name.endswith("/test")], indirect=True)
def test_evidence_is_marked_as_written_where_the_file_has_a_span_of_it(
    planned: PlannedAlignment, demo: MadeRelease[Any]
) -> None:
    output = Path(demo.output)
    marked = Counter(row["example_id"] for row in table(output / planned.folder, "alignments") if row["is_written"])

    for record in read_lines(kilt_file(output, planned)):
        spans = [span for written_output in record["output"] for span in written_output.get("provenance", [])]
        partial = (record.get("meta") or {}).get("partial_evidence", [])
        assert marked.pop(record["id"], 0) == len(spans) + len(partial), record["id"]
    assert not marked


def test_no_record_is_lost_without_a_reason(planned: PlannedAlignment, demo: MadeRelease[Any]) -> None:
    report = _report(demo, planned.folder)
    records, counts = report["records"], report["counts"]

    assert records["read"] > 0
    assert counts["written"] > 0
    left_out = [*records["excluded"].values(), *records["rejected"].values(), *counts["dropped"].values()]
    assert records["read"] - records.get("merged", 0) == counts["written"] + sum(left_out)
