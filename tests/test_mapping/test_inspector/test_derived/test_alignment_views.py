"""Alignments in views: lists by outcome and score, and records with the old text beside the new one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from kbsource.files import LocalStorage
from mapping.inspector.app import make_app
from mapping.inspector.derived.alignment_counts import dataset_row
from mapping.inspector.derived.alignment_records import Choice, records_of
from mapping.inspector.derived.kilt_lines import KiltLines
from mapping.inspector.marking import shown
from tests.support.derived_releases import (
    HOSTILE,
    Piece,
    Record,
    opened,
    write_alignment,
    write_alignments,
    write_pages_release,
)
from tests.support.pages import synthetic_pages

PAGES = list(synthetic_pages(3, n_paragraphs=3))
TEXT = PAGES[0].elements[1].text
NEW = TEXT[5:40]
RECORDS = [
    Record(id="1", input="First?", score=0.9, pieces=[Piece(old=f"old {NEW} gone", new=NEW, place=(1, 5, 1, 40))]),
    Record(id="2", outcome="excluded", reason="not_enough_info"),
    Record(
        id="3",
        outcome="dropped",
        reason="page_missing",
        pieces=[Piece(outcome="page_missing", page_id=None, title=None, old="Old words.")],
    ),
    Record(
        id="4", input="Fourth?", answers=("yes", "no"), score=0.2, pieces=[Piece(score=0.2, crossing=True), Piece()]
    ),
    Record(id=None, outcome="rejected", reason="malformed_json"),
    Record(
        id="6",
        input=HOSTILE,
        answers=(HOSTILE,),
        score=0.5,
        pieces=[Piece(old=HOSTILE, new=f"x {HOSTILE}", title=HOSTILE)],
    ),
    Record(id="7", outcome="dropped", reason="below_threshold", score=0.1, pieces=[Piece(score=0.1, outcome="weak")]),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("alignments")
    manifest = write_pages_release(folder, PAGES)
    parts = []
    for name, split, records in (("fever", "dev", RECORDS), ("nq", "train", RECORDS[:1] * 60)):
        path = write_alignment(
            folder / "aligned" / name / split, records, dataset=name, split=split, made_from=manifest
        )
        parts.append((f"{name}/{split}", path))
    write_alignments(folder / "aligned", parts)
    lonely = write_alignment(folder / "lonely", RECORDS, made_from=None)
    releases = opened(folder / "release", folder / "aligned", lonely)
    return TestClient(make_app(releases), base_url="http://127.0.0.1", raise_server_exceptions=True)


def listed(client: TestClient, url: str) -> list[str]:
    answer = client.get(url)
    assert answer.status_code == 200, answer.text
    return re.findall(r'<a class="row" href="[^"]*/records/(\d+)', answer.text)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", "0123456"),
        ("?outcome=dropped", "26"),
        ("?outcome=dropped&reason=page_missing", "2"),
        ("?least=0.5", "05"),
        ("?least=0.2&most=0.5", "35"),
        ("?sort=worst", "6350124"),
        ("?sort=best", "0536124"),
        ("?id=4", "3"),
        ("?outcome=none+of+these", ""),
        ("?outcome=&least=&most=&id=&sort=", "0123456"),
    ],
)
def test_records_are_chosen_and_ordered(client: TestClient, query: str, numbers: str) -> None:
    assert listed(client, f"/r/aligned-fever-dev/records{query}") == list(numbers)


def test_a_folder_lists_the_records_of_all_its_alignments(client: TestClient) -> None:
    assert len(listed(client, "/r/aligned/records")) == 50
    assert listed(client, "/r/aligned/records?from=50")[:2] == ["50", "51"]
    assert listed(client, "/r/aligned/records?dataset=fever") == list("0123456")
    assert listed(client, "/r/aligned/records?split=train")[0] == "7"
    assert "First?" in client.get("/r/aligned/records/66").text


@pytest.mark.parametrize("query", ["sort=up", "least=x", "most=nan", "from=-1", "least=1e999"])
def test_what_makes_no_sense_is_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/r/aligned/records?{query}").status_code == 400


def test_what_is_not_there_is_not_found(client: TestClient) -> None:
    assert client.get("/r/aligned-fever-dev/records/7").status_code == 404
    assert client.get("/r/aligned/records?from=5000").status_code == 404


def test_a_record_has_the_old_text_beside_the_new_one(client: TestClient) -> None:
    text = client.get("/r/aligned-fever-dev/records/0").text
    assert f"<del>old</del> {escape(NEW)} <del>gone</del>" in text
    assert "<ins>" not in text.partition("<article")[2]
    assert f'<span class="quiet">{escape(TEXT[:5])}</span>' in text
    assert 'href="/r/release/page/1?hl=1%3A5-1%3A40%2Cevidence#e1"' in text
    assert client.get("/r/aligned-fever-dev/records/3").text.count("<ins>") == 2 + 1  # a word each, and the legend


def test_evidence_that_outputs_have_in_common_is_shown_once(tmp_path: Path) -> None:
    pieces = [Piece(), Piece(score=0.6), Piece(), Piece()]
    record = Record(id="1", answers=("a", "b", "c", "d"), score=0.75, pieces=pieces)
    releases = opened(write_alignment(tmp_path / "same", [record]))
    text = " ".join(TestClient(make_app(releases), base_url="http://127.0.0.1").get("/r/same/records/0").text.split())
    assert text.count("<article") == 2
    assert re.findall(r"Output (\d) <span class=\"chip\" dir=\"auto\">(\w)<", text) == [
        *(("1", "a"), ("3", "c"), ("4", "d")),
        ("2", "b"),
    ]


def test_what_a_model_says_stands_beside_bleu(tmp_path: Path) -> None:
    releases = opened(write_alignment(tmp_path / "judged", RECORDS, is_verified=True))
    text = TestClient(make_app(releases), base_url="http://127.0.0.1").get("/r/judged/records/0").text
    for said in ("0.125", "0.250", "0.625", "Hypothesis, to be contradicted", "It lies by the sea.", "Rescued"):
        assert said in text


def test_evidence_comes_by_pages(tmp_path: Path) -> None:
    pieces = [Piece(old=f"old text {number}", score=0.6) for number in range(25)]
    releases = opened(write_alignment(tmp_path / "many", [Record(id="1", pieces=pieces)]))
    client = TestClient(make_app(releases), base_url="http://127.0.0.1")
    assert client.get("/r/many/records/0").text.count("<article") == 20
    assert client.get("/r/many/records/0?from=20").text.count("<article") == 5


@pytest.mark.parametrize(
    ("dataset", "split", "share"),
    [("fever", "dev", 0.25), ("fever", "train", None), ("wned", "dev", None), ("mine", "dev", None)],
)
def test_the_threshold_counts_where_it_drops_records(dataset: str, split: str, share: float | None) -> None:
    counts = {"written": 3, "dropped": {"below_threshold": 1, "page_missing": 7}}
    records = {"read": 11, "excluded": {}, "rejected": {}, "merged": 0}
    row = dataset_row({"dataset": dataset, "split": split, "counts": counts, "records": records})
    assert row.below_threshold == share


def test_a_crosswalk_says_the_old_place(client: TestClient) -> None:
    text = " ".join(client.get("/r/aligned-fever-dev/records/3").text.split())
    assert "page 99 · <bdi>Section::::History.</bdi> · paragraph 4, characters 10 to 30" in text


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (1, "a claim of FEVER that is neither supported nor refuted"),
        (2, "a page is not in the snapshot"),
        (4, "not JSON"),
        (6, "score is below the threshold"),
    ],
)
def test_it_is_said_why_a_record_is_not_written(client: TestClient, number: int, said: str) -> None:
    assert said in client.get(f"/r/aligned-fever-dev/records/{number}").text


def test_neighbours_are_those_of_the_choice(client: TestClient) -> None:
    text = client.get("/r/aligned-fever-dev/records/3?sort=worst&least=0.2").text
    assert 'rel="prev"' not in text
    assert 'rel="next" href="/r/aligned-fever-dev/records/5?least=0.2&amp;sort=worst"' in text
    assert "1 of 3" in text
    assert "not among those chosen" in client.get("/r/aligned-fever-dev/records/0?outcome=dropped").text


def test_without_the_pages_it_is_said_which_release_to_name(client: TestClient, tmp_path: Path) -> None:
    manifest = write_pages_release(tmp_path, PAGES)
    alone = opened(write_alignment(tmp_path / "alone", RECORDS, made_from=manifest))
    text = TestClient(make_app(alone), base_url="http://127.0.0.1").get("/r/alone/records/0").text
    assert manifest.sha256[:12] in text
    assert "/page/1" not in text
    assert "are not open" in client.get("/r/lonely/records/0").text


def test_hostile_texts_stay_texts(client: TestClient) -> None:
    for url in ("/r/aligned-fever-dev/records", "/r/aligned-fever-dev/records/5"):
        text = client.get(url).text
        assert "<img" not in text
        assert "<script>" not in text
        assert escape(shown(HOSTILE))[:40] in text


def test_outcomes_are_counted(client: TestClient) -> None:
    text = client.get("/r/aligned-fever-dev/outcomes").text
    assert 'href="/r/aligned-fever-dev/records?outcome=dropped&amp;reason=page_missing"' in text
    assert "7 records read, 3 written" in text
    folder = client.get("/r/aligned/outcomes").text
    assert 'href="/r/aligned/records?outcome=written&amp;dataset=nq&amp;split=train">60</a>' in folder
    assert "2 alignments with 67 records" in folder


def test_records_of_a_file_in_another_order_are_not_shown_for_others(tmp_path: Path) -> None:
    folder = write_alignment(tmp_path / "a", [Record(id="1", input="First?"), Record(id="2", input="Second?")])
    file = folder / "fever-dev-kilt.jsonl"
    file.write_bytes(b"".join(reversed(file.read_bytes().splitlines(keepends=True))))
    records = records_of(opened(folder)[0])
    assert [row["input"] for row in records.listed(records.chosen(Choice()).tolist())] == [None, None]


def test_damage_is_named(tmp_path: Path) -> None:
    folder = write_alignment(tmp_path / "a", RECORDS)
    client = TestClient(make_app(opened(folder)), base_url="http://127.0.0.1", raise_server_exceptions=False)
    lines = folder / "fever-dev-kilt.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b'"id": "1"', b'"id": "1\n'))
    assert "line 1" in client.get("/r/a/records/0").text
    lines.write_bytes(b"")
    table = folder / "alignments/alignments-00000-of-00002.parquet"
    table.write_bytes(table.read_bytes()[:-20])
    assert "kbsource verify" in client.get("/r/a/records/0").text


def test_lines_are_found_by_their_number(tmp_path: Path) -> None:
    path = tmp_path / "x-kilt.jsonl"
    path.write_bytes(b"".join(b'{"id": "%d", "input": "%s"}\n' % (n, b"x" * n) for n in range(300)) + b"[]\n")
    lines = KiltLines(str(path), LocalStorage())
    assert [(lines.record(n) or {})["input"] for n in (0, 7, 299)] == ["", "x" * 7, "x" * 299]
    assert (lines.record(300), lines.record(301)) == (None, None)
