"""Alignments in views: lists by outcome and score, and records with the old text beside the new one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from starlette.testclient import TestClient

from kbsource.release.manifest import FileEntry
from mapping.inspector.alignment import KiltLines, threshold_shares
from mapping.inspector.app import inspector_app
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
from tests.support.dumps import flip
from tests.support.inspected import client_of, listed
from tests.support.pages import synthetic_pages
from tests.support.verified import seal

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
    return client_of(*releases)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", "0123456"),
        ("?outcome=dropped", "26"),
        ("?outcome=dropped&reason=page_missing", "2"),
        ("?score.from=0.5", "05"),
        ("?score.from=0.2&score.to=0.5", "35"),
        ("?sort=score", "6350124"),
        ("?sort=-score", "0536124"),
        ("?example_id=4", "3"),
        ("?outcome=none+of+these", ""),
        ("?outcome=&score.from=&score.to=&example_id=&sort=", "0123456"),
    ],
)
def test_records_are_chosen_and_ordered(client: TestClient, query: str, numbers: str) -> None:
    assert listed(client, f"/r/aligned-fever-dev/tables/records{query}") == numbers


def test_a_folder_lists_the_records_of_all_its_alignments(client: TestClient) -> None:
    assert listed(client, "/r/aligned/tables/records") == "".join(map(str, range(50)))
    assert listed(client, "/r/aligned/tables/records?from=50").startswith("5051")
    assert listed(client, "/r/aligned/tables/records?dataset=fever") == "0123456"
    assert listed(client, "/r/aligned/tables/records?split=train").startswith("7")
    assert "First?" in client.get("/r/aligned/tables/records/66").text


@pytest.mark.parametrize(
    "query", ["sort=up", "score.from=x", "score.to=nan", "from=-1", "score.from=1e999", "columns=up"]
)
def test_what_makes_no_sense_is_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/r/aligned/tables/records?{query}").status_code == 400


def test_a_record_has_the_old_text_beside_the_new_one(client: TestClient) -> None:
    text = client.get("/r/aligned-fever-dev/tables/records/0").text
    assert f"<del>old</del> {escape(NEW)} <del>gone</del>" in text
    assert "<ins>" not in text.partition("<article")[2]
    assert f'<span class="quiet">{escape(TEXT[:5])}</span>' in text
    assert 'href="/r/release/page/1?hl=1%3A5-1%3A40%2Cevidence#e1"' in text
    assert (
        client.get("/r/aligned-fever-dev/tables/records/3").text.count("<ins>") == 2 + 1
    )  # a word each, and the legend


def test_evidence_that_outputs_have_in_common_is_shown_once(tmp_path: Path) -> None:
    pieces = [Piece(), Piece(score=0.6), Piece(), Piece()]
    record = Record(id="1", answers=("a", "b", "c", "d"), score=0.75, pieces=pieces)
    releases = opened(write_alignment(tmp_path / "same", [record]))
    text = " ".join(client_of(*releases).get("/r/same/tables/records/0").text.split())
    assert text.count("<article") == 2
    assert re.findall(r"Output (\d) <span class=\"chip\" dir=\"auto\">(\w)<", text) == [
        *(("1", "a"), ("3", "c"), ("4", "d")),
        ("2", "b"),
    ]


def test_what_a_model_says_stands_beside_bleu(tmp_path: Path) -> None:
    releases = opened(write_alignment(tmp_path / "judged", RECORDS, is_verified=True))
    text = client_of(*releases).get("/r/judged/tables/records/0").text
    for said in (
        "0.125",
        "0.250",
        "0.625",
        "Hypothesis, to be contradicted",
        "It lies by the sea.",
        "a sentence that the model chose",
    ):
        assert said in text


def test_evidence_comes_by_pages(tmp_path: Path) -> None:
    pieces = [Piece(old=f"old text {number}", score=0.6) for number in range(25)]
    releases = opened(write_alignment(tmp_path / "many", [Record(id="1", pieces=pieces)]))
    client = client_of(*releases)
    assert client.get("/r/many/tables/records/0").text.count("<article") == 20
    assert client.get("/r/many/tables/records/0?from=20").text.count("<article") == 5


@pytest.mark.parametrize(
    ("dataset", "split", "share"),
    [("fever", "dev", 0.25), ("fever", "train", None), ("wned", "dev", None), ("mine", "dev", None)],
)
def test_the_threshold_counts_where_it_drops_records(dataset: str, split: str, share: float | None) -> None:
    counts = {"written": 3, "dropped": {"below_threshold": 1, "page_missing": 7}}
    assert threshold_shares(dataset, split, counts, {"dropped_in_the_paper": {"share": 0.1}}) == (share, 0.1)


def test_a_crosswalk_says_the_old_place(client: TestClient) -> None:
    text = " ".join(client.get("/r/aligned-fever-dev/tables/records/3").text.split())
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
    assert said in client.get(f"/r/aligned-fever-dev/tables/records/{number}").text


def test_neighbours_are_those_of_the_choice(client: TestClient) -> None:
    text = client.get("/r/aligned-fever-dev/tables/records/3?sort=score&score.from=0.2").text
    assert 'rel="prev"' not in text
    assert 'rel="next" href="/r/aligned-fever-dev/tables/records/5?score.from=0.2&amp;sort=score"' in text
    assert "1 of 3" in text
    assert "not selected" in client.get("/r/aligned-fever-dev/tables/records/0?outcome=dropped").text


def test_without_the_pages_it_is_said_which_release_to_name(client: TestClient, tmp_path: Path) -> None:
    manifest = write_pages_release(tmp_path, PAGES)
    alone = opened(write_alignment(tmp_path / "alone", RECORDS, made_from=manifest))
    text = client_of(*alone).get("/r/alone/tables/records/0").text
    assert manifest.sha256[:12] in text
    assert "/page/1" not in text
    assert "are not open" in client.get("/r/lonely/tables/records/0").text


def test_hostile_texts_stay_texts(client: TestClient) -> None:
    for url in ("/r/aligned-fever-dev/tables/records", "/r/aligned-fever-dev/tables/records/5"):
        text = client.get(url).text
        assert "<img" not in text
        assert "<script>" not in text
        assert escape(shown(HOSTILE))[:40] in text


def test_outcomes_are_counted(client: TestClient) -> None:
    text = client.get("/r/aligned-fever-dev/").text
    assert 'href="/r/aligned-fever-dev/tables/records?outcome=dropped&amp;reason=page_missing"' in text
    folder = client.get("/r/aligned/").text
    assert 'href="/r/aligned/tables/records?outcome=written&amp;dataset=nq&amp;split=train">60</a>' in folder
    assert "5 of 67" in client.get("/r/aligned/tables/records/4").text


def test_records_of_a_file_in_another_order_are_not_shown_for_others(tmp_path: Path) -> None:
    folder = write_alignment(tmp_path / "a", [Record(id="1", input="First?"), Record(id="2", input="Second?")])
    file = folder / "fever-dev-kilt.jsonl"
    file.write_bytes(b"".join(reversed(file.read_bytes().splitlines(keepends=True))))
    seal(folder)
    text = client_of(*opened(folder)).get("/r/a/tables/records").text
    assert ("First?" in text, "Second?" in text) == (False, False)


def test_damage_is_named(tmp_path: Path) -> None:
    folder = write_alignment(tmp_path / "a", RECORDS)
    client = TestClient(inspector_app(opened(folder)), base_url="http://127.0.0.1", raise_server_exceptions=False)
    lines = folder / "fever-dev-kilt.jsonl"
    content = lines.read_bytes()
    for place in range(content.index(b"First?"), content.index(b"First?") + 6):
        lines.write_bytes(flip(content, place, bits=1))
        answer = client.get("/r/a/tables/records/0")
        assert answer.status_code == 500
        assert "fever-dev-kilt.jsonl is damaged or changed" in answer.text
    lines.write_bytes(content)
    assert "First?" in client.get("/r/a/tables/records/0").text
    lines.write_bytes(content.replace(b'"id": "1"', b'"id": "1\n'))
    seal(folder)
    client = TestClient(inspector_app(opened(folder)), base_url="http://127.0.0.1", raise_server_exceptions=False)
    assert "line 1" in client.get("/r/a/tables/records/0").text
    lines.write_bytes(b"")
    table = folder / "alignments/alignments-00000-of-00002.parquet"
    table.write_bytes(table.read_bytes()[:-20])
    assert "kbsource verify" in client.get("/r/a/tables/records/0").text


def test_lines_are_found_by_their_number(tmp_path: Path) -> None:
    content = b"".join(b'{"id": "%d", "input": "%s"}\n' % (n, b"x" * n) for n in range(300)) + b"[]\n"
    (tmp_path / "x-kilt.jsonl").write_bytes(content)
    entry = FileEntry("x-kilt.jsonl", 301, len(content), hashlib.sha256(content).hexdigest())
    lines = KiltLines(str(tmp_path), entry)
    assert [(lines.record(n) or {})["input"] for n in (0, 7, 299)] == ["", "x" * 7, "x" * 299]
    assert (lines.record(300), lines.record(301)) == (None, None)
