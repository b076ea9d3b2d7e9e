"""QAMPARI of a small world, case by case, and of a random one, against slow and obvious code."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mapping.qampari.questions import COMPOSITION, INTERSECTION, SIMPLE, load_relations
from mapping.qampari.records import Question
from mapping.qampari.selection import OUTCOMES, AnswerFilter
from pipelines.jobs.shared_inputs import MadeRelease
from pipelines.primitives import join_tables, page_texts
from pipelines.qampari import joins, lists
from pipelines.qampari import questions as of_queries
from pipelines.transforms import tables
from tests.support.builds import contents, rows
from tests.support.entities import snak
from tests.support.qampari_oracle import Oracle, check, undrawn_questions
from tests.support.qampari_worlds import Maker, World, options_for, random_maker, run_job

pytestmark = pytest.mark.slow

CASES: dict[str, Any] = {"answer_filter": AnswerFilter(3, 5, 0.8), "most_subjects": 7}
RANDOM: dict[str, Any] = {"answer_filter": AnswerFilter(3, 14, 0.5), "most_subjects": 26}


def _books(maker: Maker, numbers: range, author: str, *claims: str, n_said: int | None = None) -> None:
    """Adds books by an author with pages, of which so many say so."""
    for place, number in enumerate(numbers):
        says = n_said is None or place < n_said
        page = [f"Book {number} was written by {author}." if says else "It is a book."]
        maker.add(f"Q{number}", f"Book {number}", *claims, page=page)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    maker = Maker()
    maker.add("Q1", "film")
    maker.add("Q2", "painting")
    # Q3 has neither label nor page; Q4 and on are authors and directors.
    _books(maker, range(100, 104), "Q3", "P50 Q3")
    maker.add("Q4", "Ada Many")
    _books(maker, range(110, 118), "Ada Many", "P50 Q4")
    maker.add("Q5", "Bea Much")
    _books(maker, range(120, 127), "Bea Much", "P50 Q5")
    maker.add("Q6", "Cleo More")
    _books(maker, range(130, 136), "Cleo More", "P50 Q6")
    maker.add("Q7", "Dora Few")
    _books(maker, range(140, 145), "Dora Few", "P50 Q7", n_said=3)
    maker.add("Q8", "Edda Untyped")
    maker.add("Q155", "Another film", "P31 Q1")
    _books(maker, range(150, 154), "Edda Untyped", "P57 Q8", "P31 Q9")
    maker.add("Q10", "Fay Past", page=["Book 160, Book 161, Book 162, Book 163, Book 164 and Book 165 are by her."])
    for number, claim in enumerate(("P50 Q10", "+P50 Q10", "P50 Q10", "-P50 Q10", "P50 Q10 ended", "P50 Q11"), 160):
        maker.add(f"Q{number}", f"Book {number}", claim)
    # Two books of one name, and a language that two books share; values of every kind.
    maker.add("Q12", "Gil Same")
    maker.add("Q31", "Elvish", page=["The language of Morning."])
    maker.add("Q32", "Dwarvish")
    maker.add("Q33", "Entish")
    for number, title, claims, said in (
        (
            170,
            "Morning (novel)",
            ("P407 Q31", "P577 1954", "P1082 1250", "P1476 Dawn"),
            "in 1954, in 1,250 parts: Dawn",
        ),
        (
            171,
            "Morning (poem)",
            ("P407 Q31", "P407 Q32", "P577 1937", "P1082 12", "P1476 Dusk"),
            "1937, Dwarvish, Dusk",
        ),
        (172, "Noon", ("P407 Q33", "P407 Q31 ended", "P577 1066", "P577 1067", "P1476 Day"), "in Entish, of 1066: Day"),
    ):
        label = title.split(" (")[0]
        page = [f"{label} was written by Gil Same {said}."]
        maker.add(f"Q{number}", label, "P50 Q12", *claims, title=title, page=page)
    # Twelve pairs of book and language with three languages: more pairs than a question may have answers.
    maker.add("Q13", "Hal Polyglot")
    for number in range(180, 184):
        page = [f"Book {number} was written by Hal Polyglot in Elvish, Dwarvish and Entish."]
        maker.add(f"Q{number}", f"Book {number}", "P50 Q13", "P407 Q31", "P407 Q32", "P407 Q33", page=page)
    return maker.write(tmp_path_factory.mktemp("cases"))


@pytest.fixture(scope="module")
def made(world: World, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease:
    return run_job(options_for(world, tmp_path_factory.mktemp("made") / "release", **CASES))


@pytest.fixture(scope="module")
def questions(made: MadeRelease) -> dict[str, Question]:
    return _questions(Path(made.output))


def _questions(output: Path) -> dict[str, Question]:
    return {undrawn_question.key: undrawn_question for undrawn_question in undrawn_questions(output)}


def test_a_world_of_which_nothing_can_be_asked_makes_an_empty_release(tmp_path: Path) -> None:
    maker = Maker()
    maker.add("Q7", "Alone", "P50 Q8", page=["Nobody wrote it."])
    world = maker.write(tmp_path / "world")

    summary = run_job(options_for(world, tmp_path / "release"))

    assert rows(tmp_path / "release", "questions") == rows(tmp_path / "release", "queries") == []
    assert {
        (tmp_path / "release" / "qampari_data" / f"{split}_data.jsonl").stat().st_size
        for split in ("train", "dev", "test")
    } == {0}
    assert summary.report["funnel"] == {}


def test_amounts_that_are_equal_are_one_answer_however_they_are_written(tmp_path: Path) -> None:
    maker = Maker()
    maker.add("Q4", "Ann Author")
    for number, (amount, said) in enumerate(
        (("1250", "1,250"), ("1250.0", "1,250"), ("1250.00", "1250"), ("300", "300"), ("300.5", "300.5")), 101
    ):
        page = [f"Book {number} was written by Ann Author. It has {said} parts."]
        maker.add(f"Q{number}", f"Book {number}", "P50 Q4", f"P1082 {amount}", page=page)
    world = maker.write(tmp_path)

    run_job(options_for(world, tmp_path / "three", answer_filter=AnswerFilter(3)))
    run_job(options_for(world, tmp_path / "four", answer_filter=AnswerFilter(4)))
    run_job(options_for(world, tmp_path / "all", answer_filter=AnswerFilter(3), all_proofs=True))

    asked = _questions(tmp_path / "three")["P1082__P50__Q4"]
    assert [answer.text for answer in asked.answers] == ["1250", "300", "300.5"]
    assert asked.n_validated == 5
    assert [len(answer.proofs) for answer in _questions(tmp_path / "all")["P1082__P50__Q4"].answers] == [6, 2, 2]
    # Not even considered: with three distinct values four can never be validated.
    assert [row["key"] for row in rows(tmp_path / "four", "queries")] == ["P50__Q4"]


def test_values_that_are_not_of_the_type_of_their_property_do_no_harm(tmp_path: Path) -> None:
    maker = Maker()
    maker.add("Q4", "Ann Author")
    for number in range(101, 106):
        page = [f"Book {number} was written by Ann Author in {1800 + number}."]
        maker.add(f"Q{number}", f"Book {number}", "P50 Q4", f"P577 {1800 + number}", page=page)
    for property_id in ("P407", "P577", "P1082"):
        maker.claim("Q101", snak(property_id, "string", "string", "long ago"))
    world = maker.write(tmp_path)

    run_job(options_for(world, tmp_path / "made"))

    assert [answer.text for answer in _questions(tmp_path / "made")["P577__P50__Q4"].answers] == [
        str(year) for year in range(1901, 1906)
    ]


def test_a_property_that_the_dump_lacks_has_the_kind_of_its_values(tmp_path: Path) -> None:
    maker = Maker(without=("P407", "P577"))
    maker.add("Q4", "Ann Author")
    for number in range(101, 106):
        page = [f"Book {number} was written by Ann Author in {1800 + number}. It is in Tongue {number - 60}."]
        claims = "P50 Q4", f"P577 {1800 + number}", f"P407 Q{number - 60}"
        maker.add(f"Q{number}", f"Book {number}", *claims, page=page)
        maker.add(f"Q{number - 60}", f"Tongue {number - 60}")
    maker.claim("Q105", snak("P577", "string", "string", "long ago"))

    run_job(options_for(maker.write(tmp_path), tmp_path / "made"))

    found = _questions(tmp_path / "made")
    assert [answer.item_id for answer in found["P407__P50__Q4"].answers] == ["Q41", "Q42", "Q43", "Q44", "Q45"]
    assert [answer.text for answer in found["P577__P50__Q4"].answers] == ["1901", "1902", "1903", "1904", "1905"]


# --- a random world ---


@pytest.fixture(scope="module")
def random_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return random_maker(1).write(tmp_path_factory.mktemp("random"))


@pytest.fixture(scope="module")
def random_release(random_world: World, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease:
    return run_job(options_for(random_world, tmp_path_factory.mktemp("made") / "release", **RANDOM))


@pytest.mark.parametrize(("all_proofs", "n_before"), [(False, 2), (True, 0)])
def test_a_random_world_as_slow_and_obvious_code_has_it(
    random_world: World, tmp_path: Path, all_proofs: bool, n_before: int
) -> None:
    given = {**RANDOM, "all_proofs": all_proofs, "sentences_before": n_before}
    expected = Oracle(random_world.wikidata, random_world.kb, load_relations(str(random_world.relations)), **given)

    summary = run_job(options_for(random_world, tmp_path / "release", **given))

    check(summary, expected)
    assert {question.subset for question in expected.questions} == {SIMPLE, COMPOSITION, INTERSECTION}
    assert Counter(query.outcome for query in expected.queries.values()).keys() <= OUTCOMES.keys()


def test_compositions_of_all_simple_queries_as_slow_and_obvious_code_has_them(
    random_world: World, tmp_path: Path
) -> None:
    given = {**RANDOM, "answer_filter": AnswerFilter(3, 8, 0.5), "composition_base": "all"}
    relations = load_relations(str(random_world.relations))
    expected, of_kept = (
        Oracle(random_world.wikidata, random_world.kb, relations, **{**given, "composition_base": base})
        for base in ("all", "kept")
    )

    check(run_job(options_for(random_world, tmp_path / "release", **given)), expected)

    outcomes = {key: query.outcome for key, query in expected.queries.items()}
    assert {*outcomes.values()} >= {"kept", "too_many_answers", "too_few_found"}
    assert {key: query.outcome for key, query in of_kept.queries.items()}.items() <= outcomes.items()
    further = [query for key, query in expected.queries.items() if key not in of_kept.queries]
    assert any(query.outcome == "kept" for query in further)
    assert {query.subset for query in further} == {COMPOSITION}


def test_the_small_world_as_slow_and_obvious_code_has_it(world: World, made: MadeRelease) -> None:
    check(made, Oracle(world.wikidata, world.kb, load_relations(str(world.relations)), **CASES))


def test_the_same_bytes_however_facts_and_pages_are_cut(
    random_world: World, random_release: MadeRelease, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_texts, "_PAGES_TOGETHER", 20)
    monkeypatch.setattr(tables, "CHUNK_ROWS", 60)
    monkeypatch.setattr(join_tables, "THREADS", 7)
    for module in (joins, lists):
        monkeypatch.setattr(module, "_LOOKS_AT_ONCE", 4)
    monkeypatch.setattr(joins, "_SENTENCES_AT_ONCE", 6)
    monkeypatch.setattr(of_queries, "_ANSWERS_AT_ONCE", 3)

    run_job(options_for(random_world, tmp_path / "release", **RANDOM))

    assert contents(tmp_path / "release") == contents(Path(random_release.output))


@pytest.mark.parametrize(("seed", "n_awkward"), [(2, 0), (3, 4), (4, 8)])
def test_other_random_worlds(seed: int, n_awkward: int, tmp_path: Path) -> None:
    world = random_maker(seed, n_works=120, n_awkward=n_awkward).write(tmp_path / "world")
    expected = Oracle(world.wikidata, world.kb, load_relations(str(world.relations)), **RANDOM)

    check(run_job(options_for(world, tmp_path / "release", **RANDOM)), expected)
    assert expected.questions
