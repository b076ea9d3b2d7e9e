"""ELI5 and Wizard of Wikipedia from the command to files that are valid."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import main
from tests.support.alignments import BROKEN, read_lines
from tests.support.real_data import ROOT

DEMO = ROOT / "kbsource" / "demo" / "datasets"
CAMPAIGN = ["--campaign", str(DEMO / "eli5/campaign_judgements.csv"), str(DEMO / "eli5/campaign_passages.jsonl")]


pytestmark = pytest.mark.usefixtures("in_this_process")


def _mapped(release: Path, output: Path, *arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs ``map`` and ``validate-kilt``; gives the records and the report."""
    with redirect_stdout(io.StringIO()) as shown:
        assert main(["map", *arguments, "--kb", str(release), "--output", str(output), "--json", *BROKEN]) == 0
        (file,) = output.glob("*-kilt.jsonl")
        report = json.loads(shown.getvalue())
        assert main(["validate-kilt", str(file), "--kb", str(release), "--alignments", str(output)]) == 0
    assert "Valid: " in shown.getvalue()
    return read_lines(file), report


def test_eli5_dev_has_answers_then_passages_with_characters_or_by_paragraph(release: Path, tmp_path: Path) -> None:
    records, report = _mapped(release, tmp_path, "eli5", "--input", str(DEMO / "eli5/eli5_dev.jsonl"), *CAMPAIGN)
    by_id = {one["id"]: one for one in records}

    assert report["records"]["read"] == 14
    assert report["counts"]["dropped"] == {"below_threshold": 1, "page_missing": 1}
    first = by_id["h2bb01"]
    assert list(first) == ["id", "input", "output", "meta"]
    assert [list(output) for output in first["output"]] == [["answer", "meta"], ["answer", "meta"], ["provenance"]]
    (span,) = first["output"][2]["provenance"]
    assert (span["title"], span["start_character"], span["end_character"], span["bleu_score"]) == (
        "River Ullane",
        60,
        121,
        1.0,
    )
    assert [list(span) for span in first["meta"]["partial_evidence"]] == [
        ["wikipedia_id", "title", "section", "start_paragraph_id", "end_paragraph_id", "meta"]
    ] * 2
    assert first["meta"]["partial_evidence"][1]["section"] == "Section::::Landmarks.:The Water Clock.\n"
    (weak,) = by_id["h2bb04"]["output"][1]["provenance"]
    assert (weak["title"], weak["start_paragraph_id"], "bleu_score" in weak) == ("Kelp weaving", 1, False)
    assert len(weak["meta"]["evidence_span"]) == 2


def test_eli5_dev_without_a_campaign_is_written_and_the_command_says_what_it_lacks(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["eli5", "--input", str(DEMO / "eli5/eli5_dev.jsonl"), "--kb", str(release), *BROKEN]
    assert main(["map", *arguments, "--output", str(tmp_path)]) == 0
    records = read_lines(tmp_path / "eli5-dev-kilt.jsonl")
    assert len(records) == 13
    assert not any("provenance" in output for one in records for output in one["output"])
    assert re.search(r"of them without provenance +13 +100.00%", capsys.readouterr().out)


def test_wow_dev_has_one_sentence_a_turn(release: Path, tmp_path: Path) -> None:
    records, report = _mapped(release, tmp_path, "wow", "--input", str(DEMO / "wow/valid_topic_split.json"))
    assert report["counts"]["dropped"] == {"below_threshold": 1, "page_missing": 1}
    assert [list(one) for one in records] == [["id", "input", "output"]] * 7
    spans = [span for one in records for output in one["output"] for span in output["provenance"]]
    assert len(spans) == 7
    assert {tuple(span) for span in spans} == {
        (
            "wikipedia_id",
            "title",
            "start_paragraph_id",
            "start_character",
            "end_paragraph_id",
            "end_character",
            "bleu_score",
            "section",
        )
    }
    assert len({one["input"] for one in records}) == len(records)


def test_wow_turns_as_released_by_name(release: Path, tmp_path: Path) -> None:
    arguments = ("wow", "--turns", "released", "--input", str(DEMO / "wow/valid_topic_split.json"))
    records, _ = _mapped(release, tmp_path, *arguments)
    assert records[0]["input"] == "I like music.\nTin/Salt made an album in eleven days."
    assert records[0]["output"][0]["answer"].startswith("Their first album, Low Water (2009)")
