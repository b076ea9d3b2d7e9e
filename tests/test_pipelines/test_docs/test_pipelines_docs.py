"""Every pipeline of docs/pipelines.md, run as it stands there, and what comes of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pipelines.transforms
from pipelines.cli import main
from tests.support.alignments import evidence, record, write_records
from tests.support.builds import open_release
from tests.support.real_data import ROOT

PAGE = (ROOT / "docs" / "pipelines.md").read_text("utf-8")
EXAMPLES = dict(
    re.findall(r"^## ([^\n]*)\n(?:(?!## |```)[^\n]*\n)*```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
)


def run_example(title: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs an example in a folder, as a module of its own."""
    monkeypatch.chdir(folder)
    module = folder / "example.py"
    module.write_text(EXAMPLES[title], "utf-8")
    exec(compile(EXAMPLES[title], str(module), "exec"), {"__name__": "__main__"})


@pytest.fixture
def folder(release: Path, tmp_path: Path) -> Path:
    (tmp_path / "releases").mkdir()
    (tmp_path / "releases" / "miniwiki-20260101").symlink_to(release)
    return tmp_path


def written(folder: Path, name: str) -> list[list[str]]:
    return [line.split("\t") for path in folder.glob(f"{name}-*") for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("title", EXAMPLES)
def test_no_example_is_longer_than_a_screen(title: str) -> None:
    assert len(EXAMPLES[title].splitlines()) < 25


def test_the_page_names_every_transform_that_is_exported() -> None:
    assert [name for name in pipelines.transforms.__all__ if f"`{name}(" not in PAGE] == []
    assert all(getattr(pipelines.transforms, name).__doc__ for name in pipelines.transforms.__all__)


def test_links_by_section(release: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example("Count links by section", folder, monkeypatch)

    expected: Counter[str] = Counter()
    for page in open_release(release):
        for anchor in page.anchors:
            expected[(*page.elements[anchor.element].section, "introduction")[0]] += 1
    assert {section: int(count) for section, count in written(folder, "links-by-section")} == expected


def test_a_filtered_release(release: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example("A filtered release of one category", folder, monkeypatch)

    expected = [page.title for page in open_release(release) if "Islands of the Halvane Isles" in page.categories]
    assert len(expected) > 1
    assert pq.read_table(folder / "releases" / "islands" / "pages")["title"].to_pylist() == expected
    assert main(["verify", str(folder / "releases" / "islands")]) == 0
    (table,) = (folder / "releases" / "islands" / "pages").iterdir()
    table.write_bytes(table.read_bytes()[:-1])
    assert main(["verify", str(folder / "releases" / "islands")]) == 1


def test_rows_with_fields(release: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example("Rows with fields by name", folder, monkeypatch)

    expected: Counter[str] = Counter()
    for page in open_release(release):
        expected[str(page.is_disambiguation)] += len(page.anchors)
    assert {kind: int(count) for kind, count in written(folder, "links-by-kind")} == expected


@pytest.mark.usefixtures("in_this_process")
def test_items_for_a_vector_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example("Passages for a vector database", folder, monkeypatch)

    items = written(folder, "items")
    assert len({name for name, _ in items}) == len(items) > 100


@pytest.fixture(scope="module")
def beams_extras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what Beam's DataFrames and YAML bring, an older pandas among it."""
    folder = tmp_path_factory.mktemp("extras")
    wanted = ("docstring-parser<1", "pandas<2.4", "quickjs-ng<1", "virtualenv-clone<1")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *wanted]
    subprocess.run(pip, check=True)
    return folder


def _run(beams_extras: Path, folder: Path, *arguments: str) -> None:
    path = {"PYTHONPATH": f"{beams_extras}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=os.environ | path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow  # installs from the package index
def test_dataframes(release: Path, folder: Path, beams_extras: Path) -> None:
    (folder / "example.py").write_text(EXAMPLES["DataFrames"], "utf-8")
    _run(beams_extras, folder, "example.py")

    expected = Counter(str(page.is_disambiguation) for page in open_release(release))
    assert {kind: int(count) for kind, count in written(folder, "pages-by-kind")} == expected


@pytest.mark.slow  # likewise
def test_a_pipeline_in_yaml(release: Path, folder: Path, beams_extras: Path) -> None:
    pipeline = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[0]
    (folder / "example.yaml").write_text(pipeline.replace("PIPELINES", str(ROOT / "pipelines")), "utf-8")
    own = record("a", [evidence("rises in Lake Miravel", title="River Ullane")])
    write_records(folder / "evidence.jsonl", [own])
    _run(
        *(beams_extras, folder, "-m", "apache_beam.yaml.main"),
        *("--yaml_pipeline_file=example.yaml", "--runner=FnApiRunner"),
    )

    (aligned,) = (json.loads(line) for path in folder.glob("aligned.json-*") for line in path.open())
    assert (aligned["score"], aligned["text"]) == (1.0, "rises in Lake Miravel")
    assert main(["passages", str(release), "--output", str(folder / "cut"), "--max-words", "60"]) == 0
    tables = [pq.read_table(folder / name / "passages") for name in ("releases/passages", "cut")]
    assert tables[0].equals(tables[1])
    assert main(["verify", str(folder / "releases" / "passages")]) == 0


@pytest.mark.usefixtures("in_this_process")
def test_pairs_aligned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example("Align pairs of title and text", folder, monkeypatch)

    found = {title: (float(score), text) for title, score, text in written(folder, "aligned")}
    assert found["River Ullane"] == (1.0, "rises in Lake Miravel")
    assert set(found) == {"River Ullane", "Halvane Isles"}


def test_pairs_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("onnxruntime", "onnx", "transformers"):
        pytest.importorskip(library, reason="needs kbsource[nli]")
    from tests.support.tiny_nli import overlap_model

    overlap_model(tmp_path / "models" / "nli")
    run_example("Judge pairs with a model", tmp_path, monkeypatch)

    assert sorted(written(tmp_path, "verdicts")) == [["ada", "contradiction"], ["ada", "entailment"]]


def test_a_kind_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run_example("A kind of release of your own, with its invariants", tmp_path, monkeypatch)
    said = "visits/visits-00000-of-00001.parquet: visits below 0 (1): 12\n"
    assert capsys.readouterr().out == said


def test_a_measure_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_example("Adding a kind of release", tmp_path, monkeypatch)
