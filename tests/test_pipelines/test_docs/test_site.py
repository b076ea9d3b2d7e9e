"""The site of the documentation: whole, and with nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.real_data import ROOT, script

pytest.importorskip("mkdocs", reason="needs mkdocs-material: pip install 'kbsource[docs]'")

_FETCHED = re.compile(r"""<(?:script|img|iframe|source)[^>]*\ssrc="([^"]*)"|<link[^>]*\shref="([^"]*)\"""")


@pytest.fixture(scope="module")
def build_site() -> ModuleType:
    return script("docs/build_site.py")


@pytest.mark.slow  # the whole site
def test_the_site_has_every_page_and_fetches_nothing(build_site: ModuleType, tmp_path: Path) -> None:
    build_site.build_site(tmp_path / "site", demo=tmp_path)  # where no demo is, there are no pictures

    pages = {path.stem for path in (tmp_path / "site").glob("*.html")}
    assert pages >= {path.stem for path in (ROOT / "docs").glob("*.md")} | {"index", "changelog", "first_steps"}
    for path in (tmp_path / "site").glob("*.html"):
        found = ["".join(places) for places in _FETCHED.findall(path.read_text("utf-8"))]
        assert found
        assert not [place for place in found if "//" in place]
    assert (tmp_path / "site" / "search" / "search_index.json").exists()


@pytest.mark.parametrize("target", ["nowhere.md", "#no-such-section"])
def test_a_link_that_leads_nowhere_fails_it(
    build_site: ModuleType, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mkdocs.exceptions import Abort

    def stage(folder: Path, demo: Path | None) -> list[str]:
        (folder / "index.md").write_text(f"# Home\n\n[a link]({target})\n")
        return ["index"]

    monkeypatch.setattr(build_site, "stage", stage)
    with pytest.raises(Abort):
        build_site.build_site(tmp_path / "site")


def test_every_page_has_a_place_in_the_navigation(build_site: ModuleType) -> None:
    names = [path.stem for path in (ROOT / "docs").glob("*.md")]
    parts = build_site.navigation([*names, "a_new_page"])

    assert list(parts) == ["Tutorials", "How-to guides", "Reference", "Explanation"]
    assert sorted(name for part in parts.values() for name in part) == sorted([*names, "a_new_page"])
    assert parts["How-to guides"][-1] == "a_new_page"


def test_links_of_the_files_hold_on_the_site(build_site: ModuleType) -> None:
    text = "[a](docs/manual.md#commands) [b](CHANGELOG.md) [c](kbsource) [d](https://e.org) ![e](docs/alignment.svg)"

    expected = "[a](manual.md#commands) [b](changelog.md) c [d](https://e.org) ![e](alignment.svg)"
    assert build_site._linked(text, ROOT) == expected


def test_the_notebook_shows_what_it_prints(build_site: ModuleType, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient: pip install nbclient ipykernel")
    cells = [
        nbformat.v4.new_markdown_cell("# Steps"),
        nbformat.v4.new_code_cell("import os, sys\nprint('one', file=sys.stderr)\nprint('two')\n1 + 2"),
        nbformat.v4.new_code_cell("demo = os.environ['KBSOURCE_DEMO']"),
    ]
    notebook = tmp_path / "steps.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), notebook)

    bare, shown = (build_site._notebook_page(notebook, demo) for demo in (None, tmp_path))
    assert "```text" not in bare
    assert shown == bare.replace("1 + 2\n```", "1 + 2\n```\n\n```text\ntwo\n3\n```")
