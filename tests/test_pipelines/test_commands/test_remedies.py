"""What newcomers type first, and the one line that says what to type instead."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from kbsource.lookup import KnowledgeSource
from kbsource.records import BadRecord
from mapping.records import Example
from mapping.sources.own import OwnOptions
from mapping.sources.source import Tally
from pipelines.alignment.reading import read_part, reader_of
from pipelines.cli import main
from pipelines.options.map_dataset import DatasetOptions
from tests.support.diff_worlds import World, WorldPage, write_world


def test_a_text_alone_is_told_how_to_name_its_page(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["locate", str(kb), "It rises in the hills."]) == 2
    said = capsys.readouterr().err
    assert f"kbsource locate {kb} 'It rises in the hills.' --title TITLE" in said
    assert main(["locate", str(kb), "a", "--title", "b", "--evidence", "c"]) == 2
    assert "TEXT is 'a'; --evidence or --input already gives the text" in capsys.readouterr().err


def test_a_text_behind_the_release_is_the_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "The mill was built in 1901."
    pages = {number: WorldPage(number, f"Mill {number}", (text,)) for number in (1, 2)}
    release = write_world(tmp_path, World(pages))
    assert main(["locate", str(release), text, "--title", "Mill 1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "exact"


def test_pages_in_place_of_passages_are_told_what_makes_these(kb: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(kb), "Who?"]) == 2
    said = capsys.readouterr().err
    assert f"it is a release of pages, so first run kbsource passages {kb} --output DIR" in said
    assert "indexing" not in said


def test_polars_that_is_missing_is_told(kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with KnowledgeSource.open(kb) as source, pytest.raises(SetupError, match="pip install polars, or use to_arrow"):
        source.to_polars()


@pytest.mark.parametrize(("key", "options"), [("text", None), ("quote", None), ("evidence", None), ("words", "words")])
def test_the_text_of_evidence_has_several_names(key: str, options: str | None, tmp_path: Path) -> None:
    record = {"id": "a", "output": [{"evidence": [{"title": "A", key: "It is so."}]}]}
    (path := tmp_path / "own.jsonl").write_text(json.dumps(record))
    files = DatasetOptions(dataset="jsonl", inputs=(str(path),), source=OwnOptions(evidence_key=options))
    (example,) = reader_of(files, Tally()).read()
    assert isinstance(example, Example)
    assert example.outputs[0].evidence[0].text == "It is so."


@pytest.mark.parametrize(
    ("given", "options", "reason"),
    [
        ({"text": "a", "quote": "b"}, None, "ambiguous_text"),
        ({"words": "a"}, None, "unknown_field"),
        ({"text": "a"}, "words", "unknown_field"),
    ],
)
def test_other_names_of_the_text_are_rejected(
    given: dict[str, str], options: str | None, reason: str, tmp_path: Path
) -> None:
    record = {"id": "a", "output": [{"evidence": [{"title": "A", **given}]}]}
    (path := tmp_path / "own.jsonl").write_text(json.dumps(record))
    files = DatasetOptions(dataset="jsonl", inputs=(str(path),), source=OwnOptions(evidence_key=options))
    (bad,) = reader_of(files, Tally()).read()
    assert isinstance(bad, BadRecord)
    assert bad.reason == reason


def test_a_ceiling_shows_the_first_records(tmp_path: Path) -> None:
    (path := tmp_path / "own.jsonl").write_text('{"id": "a"}\n' + '{"id": "b", "x": 1}\n' * 5)
    files = DatasetOptions(dataset="jsonl", inputs=(str(path),), max_rejects=0.1)
    with pytest.raises(SetupError) as told:
        read_part(files, 0, str(tmp_path / "staging"))
    shown = str(told.value).partition("The first of them:")[2].splitlines()[1:]
    assert len(shown) == 3
    assert all(line.startswith("  unknown_field: own.jsonl") for line in shown)
    assert [f"line {number}" in line for number, line in enumerate(shown, start=2)] == [True] * 3
