"""Datasets of each kind aligned to the mini-wiki: FEVER, KILT files, test files, and all that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbsource.files import LocalStorage
from mapping.write.validate import validate_kilt
from tests.support.alignments import map_mini, read_lines, table, write_records
from tests.support.builds import open_release
from tests.support.dataset_sources import DATA


@pytest.mark.usefixtures("in_this_process")
def test_fever_is_aligned_and_weak_claims_of_dev_are_dropped(release: Path, tmp_path: Path) -> None:
    folder = DATA / "fever"
    summary = map_mini(
        tmp_path / "out",
        release,
        "fever",
        folder / "dev.jsonl",
        folder / "fever2.jsonl",
        references=(str(folder / "wiki-pages"),),
    )

    counts = summary.report["counts"]
    assert summary.report["records"]["excluded"] == {"not_enough_info": 1}
    assert counts["written"] + sum(counts["dropped"].values()) == summary.report["records"]["examples"]
    assert counts["evidences"]["near"] >= 1
    for one in read_lines(tmp_path / "out" / "fever-dev-kilt.jsonl"):
        for output in one["output"]:
            assert all(span["bleu_score"] >= 0.5 for span in output["provenance"])
    assert validate_kilt(
        str(tmp_path / "out" / "fever-dev-kilt.jsonl"),
        open_release(release),
        LocalStorage(),
        alignments=str(tmp_path / "out"),
    ).is_valid


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
    ("name", "split"),
    [("triviaqa-dev_id-kilt.jsonl", "dev"), ("triviaqa-test_id_without_answers-kilt.jsonl", "test")],
)
def test_published_files_without_inputs_are_moved_under_their_names(
    release: Path, tmp_path: Path, name: str, split: str
) -> None:
    span = {"wikipedia_id": "30", "title": "River Ullane"}
    row = {"id": "tc_1", "output": [{"answer": "Miravel", "provenance": [span]}]} if split == "dev" else {"id": "tc_1"}
    source = write_records(tmp_path / name, [row])
    summary = map_mini(tmp_path / "out", release, "kilt", source, split=split)

    assert (summary.manifest.facts["policy"], read_lines(tmp_path / "out" / name)) == ("triviaqa", [row])
    assert validate_kilt(str(tmp_path / "out" / name), open_release(release), LocalStorage()).is_valid


@pytest.mark.usefixtures("in_this_process")
def test_test_files_give_no_answers_away(release: Path, tmp_path: Path) -> None:
    summary = map_mini(tmp_path / "out", release, "jsonl", DATA / "own/own.jsonl", split="test", stem="mine")

    lines = read_lines(tmp_path / "out" / "mine-test_without_answers-kilt.jsonl")
    assert len(lines) == summary.report["counts"]["written"] > 0
    assert all("output" not in one for one in lines)


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    ("dataset", "files", "references", "split"),
    [
        ("hotpotqa", ["hotpotqa/dev.json"], ["hotpotqa/abstracts"], "dev"),
        ("aidayago2", ["aida/aidayago2.tsv"], [], "train"),
        ("wned", ["wned/wned.xml"], [], "dev"),
        ("wned", ["wned/wned.conll"], [], "dev"),
    ],
)
def test_every_dataset_goes_through_and_its_counts_add_up(
    release: Path, tmp_path: Path, dataset: str, files: list[str], references: list[str], split: str
) -> None:
    summary = map_mini(
        tmp_path / "out",
        release,
        dataset,
        *(DATA / file for file in files),
        references=tuple(str(DATA / one) for one in references),
        split=split,
    )

    records, counts = summary.report["records"], summary.report["counts"]
    n_lost = sum(records["rejected"].values()) + sum(records["excluded"].values()) + sum(counts["dropped"].values())
    assert records["read"] == counts["written"] + n_lost
    n_rows = len(table(tmp_path / "out", "alignments")) + len(table(tmp_path / "out", "misses"))
    assert n_rows == sum(counts["evidences"].values())
    (file,) = (tmp_path / "out").glob("*-kilt.jsonl")
    assert len(read_lines(file)) == counts["written"]
    assert counts["written"]
    assert validate_kilt(str(file), open_release(release), LocalStorage()).is_valid
