"""FEVER: claims, evidence sets, sentences of wiki-pages and what goes wrong with them."""

from __future__ import annotations

import bz2
import gzip
from collections import Counter
from pathlib import Path

import pytest

from kbsource.errors import SetupError
from mapping.sources.fever import sentences, undo_escapes
from tests.support.alignments import write_records
from tests.support.dataset_sources import DATA, read_source, texts_of
from tests.support.real_data import real_path

FOLDER = DATA / "fever"
WIKI = FOLDER / "wiki-pages"


def _claim(**fields: object) -> dict[str, object]:
    return {"id": 1, "label": "SUPPORTS", "claim": "c", "evidence": [[[1, 2, "River_Ullane", 0]]]} | fields


def test_the_same_claims_twice_are_duplicates_and_not_a_second_version(tmp_path: Path) -> None:
    path = write_records(tmp_path / "dev.jsonl", [_claim()])
    reading = read_source("fever", [path, path], WIKI)
    assert reading.reasons == [("source", "1", "duplicate_id")]


def test_a_set_that_names_no_page_is_dropped_and_reported(tmp_path: Path) -> None:
    sets = [[[1, 2, None, None], [1, 2, "River_Ullane", 0]], [[1, 2, "River_Ullane", 1]]]
    reading = read_source("fever", write_records(tmp_path / "dev.jsonl", [_claim(evidence=sets)]), WIKI)
    assert [len(output.evidence) for output in reading.examples[0].outputs] == [1]
    assert reading.reasons == [("evidence", "1", "null_page")]


def test_a_claim_with_no_set_at_all_is_left_out_and_counted(tmp_path: Path) -> None:
    reading = read_source("fever", write_records(tmp_path / "dev.jsonl", [_claim(evidence=[])]), WIKI)
    assert reading.tally.excluded == Counter(no_evidence=1)


def test_a_malformed_page_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    lines = (WIKI / "wiki-001.jsonl").read_text().splitlines()
    write_records(tmp_path / "wiki-001.jsonl", [lines[0], '{"id": "X", "li', '{"id": "Y"}', *lines[1:]])
    reading = read_source("fever", write_records(tmp_path / "dev.jsonl", [_claim()]), tmp_path)
    assert texts_of(reading.examples[0]) == [["The River Ullane is the longest river of the Halvane Isles ."]]
    assert reading.reasons == [("reference", "line 2", "malformed_json"), ("reference", "line 3", "missing_field")]


def test_a_gap_between_the_files_of_pages_stops_at_once(tmp_path: Path) -> None:
    for name in ("wiki-001.jsonl", "wiki-004.jsonl"):
        (tmp_path / name).write_bytes((WIKI / "wiki-001.jsonl").read_bytes())
    with pytest.raises(SetupError, match=r"2 files missing in the sequence, such as wiki-002\.jsonl"):
        read_source("fever", FOLDER / "dev.jsonl", tmp_path)


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:60] + b"\0\0\0\0" + data[64:]])
@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_file_that_breaks_off_stops_the_job(tmp_path: Path, compress: object, damage: object) -> None:
    path = tmp_path / "dev.jsonl"
    path.write_bytes(damage(compress((FOLDER / "dev.jsonl").read_bytes())))  # type: ignore[operator]
    with pytest.raises(SetupError, match="Download it again"):
        read_source("fever", path, WIKI, is_checked=False)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("0\tIt is tall .\ttall\tHeight", {0: "It is tall ."}),
        ("0\t\n1\tB", {0: "", 1: "B"}),
        ("0\tIt has a\nlamp .\tlamp\tLamp\n1\tB", {0: "It has a lamp .", 1: "B"}),
        ("0\tA\tlink\ncut\tLink\n1\tB", {0: "A", 1: "B"}),
        ("3\tC\n1\tnot a number here", {3: "C 1"}),
        ("", {}),
        ("continuation of nothing\n0\tA", {0: "A"}),
    ],
)
def test_sentences_are_numbered_lines_and_their_continuations(lines: str, expected: dict[int, str]) -> None:
    assert sentences(lines) == expected


def test_every_escape_is_undone() -> None:
    assert undo_escapes("-LRB--RRB--LSB--RSB--LCB--RCB--COLON-") == "()[]{}:"


def test_real_paper_dev() -> None:
    claims, pages = real_path("datasets/fever/paper_dev.jsonl"), real_path("datasets/fever/wiki-pages")
    reading = read_source("fever", claims, pages)
    tally = reading.tally
    assert (tally.records, tally.examples, tally.references) == (9999, 6666, 545)
    assert tally.excluded == Counter(not_enough_info=3333)
    assert not tally.rejected
    assert not tally.rejected_references
    # None of the pages in the excerpt of wiki-pages is an evidence of these claims.
    assert tally.lost_evidences == Counter(unknown_page=tally.evidences)
    titles = {
        piece.page.value for example in reading.examples for output in example.outputs for piece in output.evidence
    }
    assert "Soul Food (film)" in titles
    assert not any("-LRB-" in title or "_" in title for title in titles)


def test_real_fever2_sample() -> None:
    sample = real_path("datasets/fever/v2_sample/fever2-fixers-dev.jsonl")
    reading = read_source("fever", sample, real_path("datasets/fever/wiki-pages"))
    assert [example.example_id for example in reading.examples] == ["500001", "500002", "500003", "500004"]
    assert [len(example.outputs) for example in reading.examples] == [1, 1, 1, 1]
