"""``kbsource info``: what a release is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pipelines.cli import main


def test_a_release_of_pages_says_what_it_is(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(release)]) == 0
    text = capsys.readouterr().out

    said = " ".join(text.split())
    assert re.search(r" 66 [0-9.]+ kB 1 pages/ 20 [0-9.]+ kB 1 redirects/", said)
    for part in (
        "kind release of pages",
        "wiki miniwiki",
        "snapshot 2026-01-01",
        "languages en",
        "made by kbsource build version kbsource ",
        "counts pages read 103 articles 66 redirects 20 other namespaces 15",
        "miniwiki-20260101-pages-articles-multistream.xml.bz2",
        f"kbsource show {release} TITLE",
        f"kbsource export {release} --format jsonl --text plain",
        f"kbsource sql {release} ",
        f"Next: kbsource inspect {release}",
    ):
        assert part in said
    assert len(text.splitlines()) < 50


def test_what_is_to_be_typed_in_python_opens_the_release(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["info", str(release)])
    lines = capsys.readouterr().out.split("in Python\n")[1].split("\n\n")[0].replace("…", "Halvane Isles")

    names: dict[str, object] = {}
    exec("\n".join(line.strip() for line in lines.splitlines()), names)
    assert names["page"].title == "Halvane Isles"  # type: ignore[attr-defined]


def test_the_manifest_as_it_is(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(release), "--json"]) == 0

    assert json.loads(capsys.readouterr().out) == json.loads((release / "manifest.json").read_text())


def test_show_without_a_page_says_where_to_look(release: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(release)]) == 2

    assert (
        capsys.readouterr().err
        == f"kbsource show: name a page; kbsource info {release} shows what the release contains.\n"
    )
