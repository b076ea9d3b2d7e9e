"""Writes the site of the documentation, from the Markdown files as they are: ``python docs/build_site.py FOLDER``.

With ``--demo DIR``, what ``kbsource demo`` made, it gets pictures of the inspector, where there is a Chromium, and what
the notebook prints.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PARTS: dict[str, tuple[str, ...]] = {
    "Tutorials": (
        "index",
        "tutorial_demo",
        "first_steps",
        "tutorial_wiki",
        "tutorial_dataset",
        "tutorial_kilt",
    ),
    "How-to guides": (
        "guides",
        "installing",
        "text",
        "dpr",
        "passages",
        "links",
        "infoboxes",
        "recipes",
        "diff",
        "age",
        "incremental",
        "running",
        "publishing",
        "serving",
        "references",
        "inspector",
        "qampari",
        "amber",
        "facts",
        "training_data",
        "entity_linking",
        "evaluation",
        "benchmark",
        "campaign",
        "pipelines",
        "extending",
        "pictures",
    ),
    "Reference": (
        "manual",
        "commands",
        "release",
        "tables",
        "operations",
        "python",
        "datasets",
        "glossary",
        "changelog",
    ),
    "Explanation": (
        "building",
        "alignment",
        "limitations",
        "performance",
        "architecture",
    ),
}
"""Pages by part of the site, in order; see ``navigation``."""
PICTURES = {
    "A dataset aligned to the release": "aligned-fever-dev/",
    "A release as a whole": "release/",
    "A page, with its links and what was lost": "release/page/12",
}
_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_OWN = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}


def navigation(names: Sequence[str]) -> dict[str, list[str]]:
    """Returns the pages of each part of the site; pages that no part names are how-to guides."""
    placed = {name for part in PARTS.values() for name in part}
    parts = {part: [name for name in own if name in names] for part, own in PARTS.items()}
    parts["How-to guides"] += [name for name in names if name not in placed]
    return parts


def stage(folder: Path, demo: Path | None) -> list[str]:
    """Copies the pages into a folder, with links that hold there, and gives their names."""
    sources = [*(ROOT / name for name in _OWN), *sorted((ROOT / "docs").glob("*.md"))]
    for source in sources:
        target = folder / _OWN.get(source.name, source.name)
        target.write_text(_linked(source.read_text("utf-8"), source.parent), "utf-8")
    for source in (ROOT / "docs").glob("*.svg"):
        shutil.copyfile(source, folder / source.name)
    for source in sorted((ROOT / "docs").glob("*.ipynb")):
        (folder / f"{source.stem}.md").write_text(_notebook_page(source, demo), "utf-8")
    return [path.stem for path in sorted(folder.glob("*.md"))]


def _linked(text: str, folder: Path) -> str:
    """Gives a text whose links lead within the site; what is no page of it is named only."""

    def link(found: re.Match[str]) -> str:
        label, target = found.groups()
        path, hash_, section = target.partition("#")
        if "://" in target or not path:
            return found[0]
        file = (folder / path).resolve()
        if file.parent == ROOT and file.name in _OWN:
            return f"[{label}]({_OWN[file.name]}{hash_}{section})"
        if file.parent == ROOT / "docs" and file.suffix == ".svg":
            return f"[{label}]({file.name})"
        if file.parent == ROOT / "docs" and file.suffix in (".md", ".ipynb"):
            return f"[{label}]({file.stem}.md{hash_}{section})"
        return label

    return _LINK.sub(link, text)


def _notebook_page(path: Path, demo: Path | None) -> str:
    cells = json.loads(path.read_text("utf-8"))["cells"] if demo is None else _run(path, demo)
    texts: list[str] = []
    for cell in cells:
        text = "".join(cell["source"])
        texts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        if printed := "".join(map(_printed, cell.get("outputs", ()))).rstrip():
            texts.append(f"```text\n{printed}\n```")
    return "\n\n".join(texts)


def _printed(output: dict[str, Any]) -> str:
    """What a cell printed, or the value that it gave."""
    if output["output_type"] == "stream":
        return str(output["text"]) if output["name"] == "stdout" else ""
    return f"{output.get('data', {}).get('text/plain', '')}\n"


def _run(path: Path, demo: Path) -> list[Any]:
    """The cells of a notebook with what they print of the demo."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(demo)}})
    client.execute(env={**os.environ, "KBSOURCE_DEMO": str(demo.resolve()), "PYTHONPATH": str(ROOT)})
    cells: list[Any] = notebook.cells
    return cells


def take_pictures(demo: Path, folder: Path) -> None:
    """Takes pictures of the inspector on what the demo made, and writes a page of them; none without a Chromium."""
    browser = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if browser is None:
        return
    from playwright.sync_api import sync_playwright

    names = [str(demo / name) for name in ("release", "aligned")]
    command = [sys.executable, "-m", "pipelines.cli", "inspect", *names, "--port", "0"]
    (folder / "pictures").mkdir()
    page_text = ["# Pictures of the inspector", "", "What `kbsource inspect` shows of the demo."]
    with (
        tempfile.TemporaryDirectory() as cache,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "XDG_CACHE_HOME": cache}
        ) as server,
    ):
        try:
            assert server.stdout is not None
            url = server.stdout.readline().partition(" ")[0]
            if not url:
                raise SystemExit("kbsource inspect did not start; it says why above.")
            with sync_playwright() as playwright:
                chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
                page = chromium.new_page(viewport={"width": 1200, "height": 800})
                for number, (says, path) in enumerate(PICTURES.items(), start=1):
                    answer = page.goto(f"{url}r/{path}")
                    if answer is None or not answer.ok:
                        raise SystemExit(f"{url}r/{path}: no such view of the inspector; correct PICTURES.")
                    page.screenshot(path=folder / "pictures" / f"{number}.png")
                    page_text += ["", f"## {says}", "", f"![{says}](pictures/{number}.png)"]
                chromium.close()
        finally:
            server.terminate()
    (folder / "pictures.md").write_text("\n".join(page_text) + "\n", "utf-8")


def build_site(output: Path, *, demo: Path | None = None) -> None:
    """Writes the site; a link or section that is not there fails it."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from pymdownx.slugs import slugify

    logging.getLogger("mkdocs").setLevel(logging.WARNING)  # which are what fails it, whatever the root's level
    with tempfile.TemporaryDirectory() as scratch:
        staged = Path(scratch)
        if demo is not None and not (demo / "release").is_dir():
            demo = None
        if demo is not None:
            take_pictures(demo, staged)
        names = stage(staged, demo)
        nav: list[Any] = [{part: [f"{name}.md" for name in own]} for part, own in navigation(names).items() if own]
        extensions = ["admonition", "tables", "pymdownx.superfences", "pymdownx.highlight", "toc"]
        config = load_config(
            str(ROOT / "docs" / "mkdocs.yml"),
            docs_dir=scratch,
            site_dir=str(output.resolve()),
            nav=nav,
            strict=True,
            use_directory_urls=False,
            markdown_extensions=extensions,
        )
        # Sections are called as on GitHub, for which the links are written.
        config.mdx_configs["toc"] = {"slugify": slugify(case="lower"), "permalink": True}
        build(config)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path, metavar="FOLDER")
    parser.add_argument("--demo", type=Path, metavar="DIR")
    args = parser.parse_args()
    build_site(args.output, demo=args.demo)


if __name__ == "__main__":
    main()
