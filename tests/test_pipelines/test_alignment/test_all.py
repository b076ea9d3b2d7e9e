"""``kbsource map all``: many datasets, one release, one report."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import DataError, SetupError
from pipelines.cli import main
from pipelines.jobs.build import BuildSummary
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import contents
from tests.support.demo_datasets import map_demo

CONFIG = """
datasets:
  first: {dataset: jsonl, splits: {train: {input: a.jsonl}, dev: {input: a.jsonl}}}
  second: {dataset: jsonl, max-rejects: 0.4, evidence-timeout: 30, splits: {dev: {input: b.jsonl}}}
"""


def _write_datasets(folder: Path) -> Path:
    """Writes two small datasets, the second about two pages, one of which is the first's; gives the configuration."""
    write_records(folder / "a.jsonl", [record("a", [evidence("Lake Miravel", title="Miravel")])])
    both = [evidence("Lake Miravel", title="Miravel"), evidence("Port Sellick", title="Port Sellick")]
    write_records(folder / "b.jsonl", [record("b", both), record("c", [evidence("x", title="Nowhere")])])
    path = folder / "datasets.yaml"
    path.write_text(CONFIG, "utf-8")
    return path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration of two datasets beside it."""
    return _write_datasets(tmp_path)


@pytest.fixture(scope="module")
def once(mini_build: BuildSummary, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all alignments, finished; not to be changed."""
    folder = tmp_path_factory.mktemp("all")
    map_demo(Path(mini_build.output), folder / "out", config=_write_datasets(folder))
    return folder / "out"


def _values(output: Path, name: str = "report.json") -> dict[str, Any]:
    values: dict[str, Any] = json.loads((output / name).read_text("utf-8"))
    return values


def test_each_has_its_folder_and_all_have_one_report(once: Path) -> None:
    folders = ["first/train", "first/dev", "second/dev"]
    for folder in folders:
        assert (once / folder / "manifest.json").is_file()
    first, _, second = _values(once)["datasets"]
    assert [dataset["folder"] for dataset in _values(once)["datasets"]] == folders
    assert first["averages"] == {"spans": 1.0, "sets": 1.0, "pages": 1.0, "answers": 1.0}
    assert second["averages"] == {"spans": 2.0, "sets": 1.0, "pages": 2.0, "answers": 1.0}
    assert (second["read"], second["records"], second["dropped"]) == (2, 1, 1)
    pages = _values(once)["pages"]
    assert pages["by_number_of_datasets"] == {"1": 1, "2": 1}
    assert pages["by_dataset"] == {"first": 1, "second": 2}


def test_the_manifest_names_release_alignments_and_files(once: Path) -> None:
    manifest = _values(once, "manifest.json")
    hashes = {alignment["folder"]: alignment["manifest_sha256"] for alignment in manifest["alignments"]}
    assert hashes == {folder: _values(once / folder, "manifest.json")["manifest_sha256"] for folder in hashes}
    assert len(hashes) == 3
    assert manifest["release"] == _values(once / "first/dev", "manifest.json")["release"]
    assert [file["file"] for file in manifest["files"]] == ["report.json", "report.txt"]


@pytest.mark.slow  # a job several times
def test_the_same_bytes_come_of_it_every_time_and_what_is_done_is_kept(
    release: Path, config: Path, once: Path, tmp_path: Path
) -> None:
    first = map_demo(release, tmp_path / "out", config=config)
    written = contents(tmp_path / "out")
    again = map_demo(release, tmp_path / "out", config=config)

    assert (first.kept, again.kept) == ((), ("first/train", "first/dev", "second/dev"))
    assert contents(tmp_path / "out") == written == contents(once)


def test_a_dataset_that_fails_stops_no_other_and_the_next_run_goes_on(
    release: Path, config: Path, tmp_path: Path
) -> None:
    output, log = tmp_path / "out", io.StringIO()
    good = (tmp_path / "a.jsonl").read_text("utf-8")
    config.write_text(CONFIG.replace("first: {dataset: jsonl,", "first: {dataset: jsonl, max-rejects: 0.1,"), "utf-8")
    (tmp_path / "a.jsonl").write_text(f"{good}not JSON\n", "utf-8")
    with pytest.raises(DataError, match=r"(?s)2 of 3.*first/train: 1 of 2 records rejected.*first/dev"):
        map_demo(release, output, config=config)
    assert not (output / "manifest.json").exists()
    assert (output / "second" / "dev" / "manifest.json").is_file()

    (tmp_path / "a.jsonl").write_text(good, "utf-8")
    summary = map_demo(release, output, config=config, log=log)

    assert summary.kept == ("second/dev",)
    assert "second/dev (3 of 3): already complete" in log.getvalue()
    assert (output / "manifest.json").is_file()


def test_what_is_wrong_anywhere_is_found_before_anything_runs(release: Path, config: Path, tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").unlink()
    config.write_text(
        CONFIG + "  third: {dataset: fever, splits: {dev: {input: a.jsonl, wiki-pages: gone}}}\n", "utf-8"
    )

    with pytest.raises(SetupError) as caught:
        map_demo(release, tmp_path / "out", config=config)

    assert "nothing was aligned" in str(caught.value)
    assert "datasets.yaml, line 4: " in str(caught.value)
    assert "b.jsonl: no such file" in str(caught.value)
    assert "datasets.yaml, line 5: " in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("options", "differs in options"),
        ("input", "differs in inputs"),
        ("damage", "is damaged or changed"),
        ("stray file", "not one of these datasets"),
        ("fewer datasets", "not one of these datasets"),
        ("more datasets", "is a finished release with fewer datasets"),
    ],
)
def test_what_is_finished_is_never_changed(
    release: Path, config: Path, once: Path, tmp_path: Path, change: str, said: str
) -> None:
    output = tmp_path / "out"
    shutil.copytree(once, output)
    if change == "options":
        config.write_text(CONFIG.replace("{dataset: jsonl, splits", "{dataset: jsonl, threshold: 0.9, splits"), "utf-8")
    elif change == "input":
        write_records(tmp_path / "b.jsonl", [record("z", [evidence("Lake Miravel", title="Miravel")])])
    elif change == "damage":
        (output / "second" / "dev" / "jsonl-dev-kilt.jsonl").write_bytes(b"")
    elif change == "stray file":
        (output / "notes.txt").write_text("mine", "utf-8")
    elif change == "fewer datasets":
        config.write_text(CONFIG.rsplit("  second", 1)[0], "utf-8")
    else:
        write_records(tmp_path / "d.jsonl", [record("d", [evidence("Lake Miravel", title="Miravel")])])
        config.write_text(CONFIG + "  third: {dataset: jsonl, splits: {dev: {input: d.jsonl}}}\n", "utf-8")
    before = contents(output)

    with pytest.raises(SetupError, match=said):
        map_demo(release, output, config=config)

    assert contents(output) == before


def test_the_command_shows_the_table_and_then_that_all_was_kept(
    release: Path, config: Path, once: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(once, tmp_path / "out")
    command = ["map", "all", str(release), "--config", str(config), "--output", f"{tmp_path}/out/"]

    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "below threshold" in shown
    assert "2 of 66 pages hold evidence (3.0%); in KILT 1,642,311 (28%)" in shown
    assert "3 of them in an earlier run" in shown
    assert main([*command, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values["kept"] == ["first/train", "first/dev", "second/dev"]
    assert values["pages"] == _values(tmp_path / "out")["pages"]
