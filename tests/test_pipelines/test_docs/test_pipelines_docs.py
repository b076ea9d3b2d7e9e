"""Every pipeline of docs/pipelines.md, run as it stands there, and what comes of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pipelines.transforms
from pipelines.cli import main
from tests.support.builds import open_release
from tests.support.real_data import ROOT

PAGE = (ROOT / "docs" / "pipelines.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"^## ([^\n]*)\n\n```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


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
    run_example("Ask a model about pairs", tmp_path, monkeypatch)

    assert sorted(written(tmp_path, "verdicts")) == [["ada", "contradiction"], ["ada", "entailment"]]


def test_a_kind_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run_example("A kind of release of your own, with its laws", tmp_path, monkeypatch)
    said = "visits/visits-00000-of-00001.parquet: a page has visits below 0 (1): 12\n"
    assert capsys.readouterr().out == said
