"""QAMPARI releases in views: questions by kind and split, and each of them with its proofs in their pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape
from msgspec import structs
from starlette.testclient import TestClient

from mapping.inspector.marking import shown
from mapping.qampari.questions import COMPOSITION, SIMPLE
from mapping.qampari.records import QuestionEntity
from tests.support.derived_releases import HOSTILE, opened, write_pages_release
from tests.support.inspected import client_of, listed
from tests.support.qampari import PAGES, drawn, question, undrawn, write_qampari

NAMES = [f"Answer {number}" for number in range(45)]
VIA = QuestionEntity("The middle", ("The middle", "Midst"), None, "Q77")
FIRST = question("P50__Q1", NAMES[:5])
COMPOSED = question("P57__Q2", NAMES[:6], subset=COMPOSITION)
COMPOSED = structs.replace(COMPOSED, answers=tuple(structs.replace(answer, via=VIA) for answer in COMPOSED.answers))
QUESTIONS = [
    drawn(FIRST, 0, "train"),
    structs.replace(drawn(question("P50__Q3", NAMES), 0, "dev"), paraphrase="What did they write?", n_dropped=2),
    undrawn(question("P50__Q4", [HOSTILE, *NAMES[:5]], entity=HOSTILE)),
    drawn(COMPOSED, 1, "train"),
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("qampari")
    manifest = write_pages_release(folder, PAGES)
    made = write_qampari(folder / "qampari", QUESTIONS, facts={"release": manifest.facts()})
    return client_of(*opened(folder / "release", made))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", "0123"),
        (f"?subset={SIMPLE}", "012"),
        ("?split=train", "03"),
        ("?split=-", "2"),
        ("?q=LAKE+miravel", "013"),
        ("?key=P50__Q4", "2"),
        ("?sort=-n_validated", "1230"),
        ("?sort=n_validated&subset=wikidata_simple", "021"),
    ],
)
def test_questions_are_chosen_and_ordered(client: TestClient, query: str, numbers: str) -> None:
    assert listed(client, f"/r/qampari/tables/questions{query}") == numbers


def test_a_proof_stands_in_its_page_with_its_sentence_marked(client: TestClient) -> None:
    text = client.get("/r/qampari/tables/questions/0").text
    proof = FIRST.answers[0].proofs[0]
    page = next(page for page in PAGES if page.page_id == proof.page_id)
    behind = page.elements[proof.element].text[proof.end_char : proof.end_char + 200]
    assert f"<mark>{escape(proof.text)}</mark>" in text
    assert f'<span class="quiet">{escape(behind)}' in text
    assert (
        f"/r/release/page/{proof.page_id}?hl={proof.element}%3A0-{proof.element}%3A40%2Cproof#e{proof.element}" in text
    )
    assert "Hypothesis 0." in text


def test_what_is_in_front_of_the_sentence_is_not_marked(client: TestClient, tmp_path: Path) -> None:
    proof = structs.replace(FIRST.answers[0].proofs[0], sentence_char=10)
    answers = (structs.replace(FIRST.answers[0], proofs=(proof,)), *FIRST.answers[1:])
    made = write_qampari(tmp_path / "q", [drawn(structs.replace(FIRST, answers=answers), 0, "train")])
    text = client_of(*opened(made)).get("/r/q/tables/questions/0").text
    assert f'<span class="lead">{escape(proof.text[:10])}</span><mark>{escape(proof.text[10:])}</mark>' in text
    assert "are not open" in text


def test_answers_come_by_pages(client: TestClient) -> None:
    text = client.get("/r/qampari/tables/questions/1").text
    assert ("Answer 19<" in text, "Answer 20<" in text) == (True, False)
    assert "Answer 20<" in client.get("/r/qampari/tables/questions/1?from=20").text
    assert "2 judged wrong by people" in text
    assert "What did they write?</h1>" in text
    assert "In fixed form: What is by Lake Miravel" in text


def test_the_middle_of_a_composition_is_named(client: TestClient) -> None:
    text = client.get("/r/qampari/tables/questions/3").text
    assert "<p>through " in text
    assert "<bdi>The middle</bdi>" in text
    assert text.count('<div class="proof">') == 12


def test_queries_are_counted_and_listed_by_outcome(client: TestClient) -> None:
    text = client.get("/r/qampari/").text
    assert 'href="/r/qampari/tables/queries?subset=wikidata_simple&amp;outcome=too_few_answers"' in text
    rows = client.get("/r/qampari/tables/queries?outcome=too_few_answers").text
    assert ("P1__Q1" in rows, "P50__Q1" in rows) == (True, False)
    kept = client.get("/r/qampari/tables/queries?q=q3").text
    assert 'href="/r/qampari/tables/questions?subset=wikidata_simple&amp;key=P50__Q3"' in kept


def test_hostile_texts_stay_texts(client: TestClient) -> None:
    for url in ("/r/qampari/tables/questions", "/r/qampari/tables/questions/2", "/r/qampari/tables/queries"):
        text = client.get(url).text
        assert "<img" not in text
        assert "<script>" not in text
    assert escape(shown(HOSTILE)) in client.get("/r/qampari/tables/questions/2").text


def test_a_text_that_the_page_does_not_have_is_shown_without_what_is_around_it(tmp_path: Path) -> None:
    other = [structs.replace(page, elements=(page.elements[0], *page.elements[2:]), anchors=()) for page in PAGES]
    manifest = write_pages_release(tmp_path, other)
    made = write_qampari(tmp_path / "q", QUESTIONS[:1], facts={"release": manifest.facts()})
    client = client_of(*opened(tmp_path / "release", made))
    text = client.get("/r/q/tables/questions/0").text
    assert '<blockquote dir="auto"><span class="quiet"></span><span class="lead"></span><mark>' in text
