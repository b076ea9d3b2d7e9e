"""Datasets with choices of their own, as they are typed, aligned to the mini-wiki."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kbsource.errors import SetupError
from kbsource.lookup import KnowledgeSource
from mapping.sources.entity_linking import WnedOptions
from mapping.sources.source import SourceOptions
from mapping.sources.trex import TrexOptions
from mapping.sources.zero_shot import ZeroShotOptions
from mapping.write.kilt import file_name
from mapping.write.validate import check_kilt
from pipelines.cli import main
from tests.support.alignments import BROKEN, map_mini, read_lines, table, write_records
from tests.support.builds import open_release
from tests.support.dataset_sources import DATA
from tests.support.demo_datasets import GOLDEN, chunks_in_this_process
from tests.support.mini_wiki import FOLDER
from tests.support.real_data import ROOT


@pytest.mark.usefixtures("in_this_process")
def test_a_kilt_file_is_moved_with_a_crosswalk(release: Path, tmp_path: Path) -> None:
    folder = DATA / "kilt"
    summary = map_mini(
        tmp_path / "out",
        release,
        "kilt",
        folder / "nq-dev-kilt.jsonl",
        references=(str(folder / "knowledgesource.jsonl"),),
    )

    assert [summary.manifest.facts[name] for name in ("dataset", "policy")] == ["kilt", "nq"]
    crosswalk = table(tmp_path / "out", "crosswalk")
    first = crosswalk[0]
    assert (first["old_wikipedia_id"], first["old_start_character"]) == ("30", 72)
    assert first["new_wikipedia_id"] == "30"
    assert first["new_title"] == "River Ullane"
    assert (first["old_section"], first["new_section"]) == ("Section::::Abstract.",) * 2
    assert first["old_text"] == first["new_text"] != ""
    page = open_release(release).by_id(30)
    assert page is not None
    rows = {(row["example_id"], row["output"], row["evidence"]): row for row in table(tmp_path / "out", "alignments")}
    assert len(rows) == len(crosswalk)
    for row in crosswalk:
        assert rows[row["example_id"], row["output"], row["evidence"]]["start_character"] == row["new_start_character"]
    assert len(read_lines(tmp_path / "out" / "nq-dev-kilt.jsonl")) == 3


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("name", "split"), [("triviaqa-dev_id-kilt.jsonl", "dev"), ("triviaqa-test_id_without_answers-kilt.jsonl", "test")]
)
def test_published_files_without_inputs_are_moved_under_their_names(
    release: Path, tmp_path: Path, name: str, split: str
) -> None:
    span = {"wikipedia_id": "30", "title": "River Ullane"}
    row = {"id": "tc_1", "output": [{"answer": "Miravel", "provenance": [span]}]} if split == "dev" else {"id": "tc_1"}
    source = write_records(tmp_path / name, [row])
    summary = map_mini(tmp_path / "out", release, "kilt", source, split=split)

    assert (summary.manifest.facts["policy"], read_lines(tmp_path / "out" / name)) == ("triviaqa", [row])
    assert check_kilt(str(tmp_path / "out" / name), open_release(release)).is_valid


@pytest.mark.usefixtures("in_this_process")
def test_test_files_give_no_answers_away(release: Path, tmp_path: Path) -> None:
    summary = map_mini(tmp_path / "out", release, "jsonl", DATA / "own/own.jsonl", split="test", stem="mine")

    lines = read_lines(tmp_path / "out" / "mine-test_without_answers-kilt.jsonl")
    assert len(lines) == summary.report["counts"]["written"] > 0
    assert all("output" not in line for line in lines)


DEMO = ROOT / "kbsource" / "demo" / "datasets"


pytestmark = pytest.mark.usefixtures("in_this_process")


def test_eli5_dev_without_a_campaign_is_written_and_the_command_says_what_it_lacks(
    release: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["eli5", "--input", str(DEMO / "eli5/eli5_dev.jsonl"), "--kb", str(release), *BROKEN]
    assert main(["map", *arguments, "--output", str(tmp_path)]) == 0
    records = read_lines(tmp_path / "eli5-dev-kilt.jsonl")
    assert len(records) == 13
    assert not any("provenance" in output for record in records for output in record["output"])
    assert re.search(r"of them without provenance +13 +100.00%", capsys.readouterr().out)


NQ = FOLDER / "datasets" / "nq"
NOWHERE = {"start_paragraph_id": 0, "start_character": 0, "end_paragraph_id": 0, "end_character": 0}


def _golden(name: str) -> dict[str, dict[str, Any]]:
    return {line["id"]: line for line in read_lines(GOLDEN / name)}


def _map(release: Path, output: Path, *arguments: str) -> None:
    """Runs ``map``, and ``validate-kilt`` on every file that it writes."""
    with chunks_in_this_process():
        assert main(["map", *arguments, str(release), "--output", str(output), *BROKEN]) == 0
    for file in output.glob("*-kilt.jsonl"):
        assert main(["validate-kilt", str(release), str(file), "--alignments", str(output)]) == 0


def _forms(record: dict[str, Any]) -> list[str]:
    """Shows each output: answer with provenance, answer, long answer, passage of the campaign."""
    shown = []
    for output in record["output"]:
        spans = output.get("provenance", [])
        if "answer" in output:
            shown.append("found" if spans else "answer")
        else:
            shown.append("passage" if "evidence_span" in spans[0]["meta"] else "long")
    return shown


def test_answers_of_test_stand_in_the_order_of_the_records_however_many_a_chunk_has(
    release: Path, tmp_path: Path
) -> None:
    fever = FOLDER / "datasets" / "fever"
    paths = ("--input", str(fever / "shared_task_test.jsonl"), "--labels", str(fever / "test_labels.jsonl"))
    further = ("--wiki-pages", str(fever / "wiki-pages"), "--split", "test", "--chunk-records", "1")
    _map(release, tmp_path, "fever", *paths, *further)

    for name in ("fever-test-kilt.jsonl", "fever-test_without_answers-kilt.jsonl"):
        assert (tmp_path / name).read_bytes() == (GOLDEN / "fever" / name).read_bytes()


def test_null_long_answers_have_the_published_span_by_name(release: Path, tmp_path: Path) -> None:
    options = ("--nq-null-long-answers", "released")
    with chunks_in_this_process():
        paths = ("--input", str(NQ / "nq-dev-00.jsonl"), "--kb", str(release), "--output", str(tmp_path), *BROKEN)
        assert main(["map", "nq", *paths, *options]) == 0
    plain, named = _without_campaign(), {line["id"]: line for line in read_lines(tmp_path / "nq-dev-kilt.jsonl")}
    spans = [_span_of_nothing(record["output"]) for record in named.values()]
    odd = [span for span in spans if span is not None]

    assert 0 < len(odd) < len(spans)
    for span in odd:
        assert list(span) == [*("wikipedia_id", "title"), *NOWHERE, "bleu_score", "meta", "section"]
        assert {key: span[key] for key in NOWHERE} == NOWHERE
        assert (span["bleu_score"], span["section"]) == (1.0, "Section::::Abstract.")
        assert list(span["meta"]) == ["yes_no_answer", "annotation_id"]
    # Nothing else changes.
    for key, record in plain.items():
        assert [output for output in named[key]["output"] if _span_of_nothing([output]) is None] == record["output"]
    with KnowledgeSource.open(str(release)) as source:
        checked = check_kilt(str(tmp_path / "nq-dev-kilt.jsonl"), source, alignments=str(tmp_path))
    assert dict(checked.broken) == {"empty_span": len(odd)}


def _without_campaign() -> dict[str, dict[str, Any]]:
    """Gives the records of the demo by id, with the outputs that they have without the campaign."""
    records = _golden("nq/nq-dev-kilt.jsonl")
    for record in records.values():
        n_passages = _forms(record).count("passage")
        record["output"] = record["output"][: len(record["output"]) - n_passages]
    return records


def _span_of_nothing(outputs: list[dict[str, Any]]) -> dict[str, Any] | None:
    spans = [span for output in outputs for span in output.get("provenance", [])]
    found = [span for span in spans if (span["start_paragraph_id"], span["end_character"]) == (0, 0)]
    assert len(found) <= 1
    return found[0] if found else None


TREX = FOLDER / "datasets" / "trex"


def _map_trex(release: Path, output: Path, split: str, *options: str) -> int:
    command = ["map", "trex", str(release), "--split", split, "--output", str(output), "--min-facts", "2", *BROKEN]
    return main([*command, "--input", str(TREX), "--wikidata", str(TREX / "wikidata.json"), *options])


@pytest.mark.slow  # a job several times
def test_the_draw_depends_neither_on_chunks_nor_on_how_many_records_it_is_made_from(
    release: Path, tmp_path: Path
) -> None:
    options = ("--sample", "2", "--sample-pool", "6", "--chunk-records", "1")

    assert _map_trex(release, tmp_path / "out", "test", *options) == 0

    written = tmp_path / "out" / file_name("trex", "test")
    assert written.read_bytes() == (GOLDEN / "trex" / file_name("trex", "test")).read_bytes()


@pytest.mark.parametrize("split", ["train", "dev"])
def test_too_few_records_stop_every_split_alike(
    release: Path, tmp_path: Path, split: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _map_trex(release, tmp_path / "out", split, "--sample", "9") == 2

    assert "16 records pass the filter of dev and test, but 18 are needed" in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (TrexOptions, {"min_facts": 0}, "--min-facts is 0"),
        (TrexOptions, {"sample": -1}, "--sample is -1"),
        (TrexOptions, {"sample": 10, "sample_pool": 19}, "--sample-pool is 19.*at least 20"),
        (ZeroShotOptions, {"fold": 10}, "--fold is 10"),
        (WnedOptions, {"max_tokens": 1}, "--max-tokens is 1"),
    ],
)
def test_options_out_of_range_name_themselves(kind: type[SourceOptions], options: dict[str, int], message: str) -> None:
    with pytest.raises(SetupError, match=message):
        kind(**options)
