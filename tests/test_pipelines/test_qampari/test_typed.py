"""What queries share and what each has of its own: facts, answers, denominators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mapping.qampari.questions import INTERSECTION, SIMPLE
from mapping.qampari.records import QueryRow, Question
from mapping.qampari.selection import AnswerFilter
from pipelines.jobs.shared_inputs import MadeRelease
from tests.support.builds import rows
from tests.support.qampari_oracle import considered, undrawn_questions
from tests.support.qampari_worlds import Maker, World, options_for, run_job

pytestmark = pytest.mark.slow

GIVEN: dict[str, Any] = {"answer_filter": AnswerFilter(4, 200, 0.8)}
SAID = "was directed by Ada Ash"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    maker = Maker()
    maker.add("Q1", "film")
    maker.add("Q2", "painting")
    maker.add("Q3", "animated film", "P279 Q1")
    # Directed by Q10: films Q100 to Q104, of which Q103 and Q104 are paintings too, as are Q105 and Q106. The pages of
    # all but Q106 say who directed them. Q102 is an animated film. Q107 was a painting once, Q108 is one by mistake.
    maker.add("Q10", "Ada Ash")
    classes = [("Q1",), ("Q1",), ("Q3",), ("Q1", "Q2"), ("Q2", "Q3"), ("Q2",), ("Q2",), ("Q2 ended",), ()]
    for number, own in enumerate(classes, 100):
        claims = [f"P31 {one}" for one in own] + (["-P31 Q2"] if number == 108 else [])
        page = [f"Work {number} {SAID}." if number != 106 else "It is a work."]
        maker.add(f"Q{number}", f"Work {number}", "P57 Q10", *claims, page=page)
    # Books of two authors. All but the last of each say so; each is in one language and says so, except that the last
    # book of Q12 is in two.
    for number in range(40, 52):
        maker.add(f"Q{number}", f"Tongue {number}", page=[f"Tongue {number} is the language of Tome {number + 160}."])
    for author, numbers in (("Q11", range(200, 205)), ("Q12", range(205, 210))):
        maker.add(author, f"Writer {author}")
        for number in numbers:
            also = ["P407 Q51"] if number == 209 else []
            by = f"by Writer {author} " if number != numbers[-1] else ""
            page = [f"Tome {number} is a book {by}in Tongue {number - 160}, not in Tongue 51."]
            maker.add(f"Q{number}", f"Tome {number}", f"P50 {author}", f"P407 Q{number - 160}", *also, page=page)
    # Five answer two queries, but of one of them no page says that it answers the second.
    maker.add("Q13", "Bo Birch")
    maker.add("Q14", "Port Cove")
    for number in range(300, 305):
        place = "and was born in Port Cove" if number != 304 else ""
        page = [f"Item {number} was written by Bo Birch {place}."]
        maker.add(f"Q{number}", f"Item {number}", "P50 Q13", "P19 Q14", page=page)
    maker.add("Q305", "Item 305", "P50 Q13", page=["Item 305 was written by Bo Birch."])
    maker.add("Q306", "Item 306", "P19 Q14", page=["Item 306 was born in Port Cove."])
    return maker.write(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def made(world: World, tmp_path_factory: pytest.TempPathFactory) -> MadeRelease:
    return run_job(options_for(world, tmp_path_factory.mktemp("made") / "release", **GIVEN))


@pytest.fixture(scope="module")
def queries(made: MadeRelease) -> dict[str, QueryRow]:
    return {key: row for (_, key), row in considered(made.output).items()}


@pytest.fixture(scope="module")
def questions(made: MadeRelease) -> dict[str, Question]:
    return {one.key: one for one in undrawn_questions(made.output)}


def test_typed_queries_share_facts_and_have_counts_of_their_own(
    made: MadeRelease, queries: dict[str, QueryRow], questions: dict[str, Question]
) -> None:
    film, painting = queries["P57__Q10__film"], queries["P57__Q10__painting"]

    assert (film.n_answers, film.n_validated, film.outcome) == (5, 5, "kept")
    assert (painting.n_answers, painting.n_aligned, painting.outcome) == (4, 3, "too_few_found")
    answers = {one.item_id: one.proofs for one in questions["P57__Q10__film"].answers}
    assert list(answers) == [f"Q{number}" for number in range(100, 105)]
    n_others = sum(one.n_answers for one in queries.values() if one.subset == SIMPLE and one.property_ids != ("P57",))
    # Seven works are of one of the types, two of both.
    assert made.report["facts"]["simple"]["all"] == 7 + n_others


def test_the_report_has_the_class_of_each_type(made: MadeRelease) -> None:
    assert made.report["types"] == {"film": "Q1", "painting": "Q2"}
    assert made.report["types_without_class"] == ["ship"]


def test_pairs_of_answers_that_are_not_validated_count_in_the_share(queries: dict[str, QueryRow]) -> None:
    first, second = queries["P407__P50__Q11"], queries["P407__P50__Q12"]

    for name in ("Q11", "Q12"):
        base = queries[f"P50__{name}"]
        assert (base.n_answers, base.n_validated, base.outcome) == (5, 4, "kept")
    # The page of every book names its language; of the fifth nothing says that it answers the base query.
    assert (first.n_answers, first.n_aligned, first.n_validated, first.outcome) == (5, 4, 4, "kept")
    assert (second.n_answers, second.n_aligned, second.n_validated, second.outcome) == (6, 4, None, "too_few_found")


def test_a_value_is_looked_for_in_the_page_of_the_subject_first(questions: dict[str, Question]) -> None:
    for answer in questions["P407__P50__Q11"].answers:
        assert answer.via is not None
        assert [one.title for one in answer.proofs] == [answer.via.title] * 2
        assert answer.proofs[1].text.endswith("not in Tongue 51.")


def test_intersections_are_of_validated_answers(queries: dict[str, QueryRow], questions: dict[str, Question]) -> None:
    key = "P19__Q14__P50__Q13"

    assert (queries["P19__Q14"].n_answers, queries["P19__Q14"].n_validated) == (6, 5)
    assert [one.item_id for one in questions[key].answers] == [f"Q{number}" for number in range(300, 304)]
    assert questions[key].subset == INTERSECTION


def test_of_types_with_the_same_validated_answers_the_most_specific_is_kept_by_option(tmp_path: Path) -> None:
    maker = Maker()
    maker.add("Q1", "film")
    maker.add("Q2", "painting", "P279 Q1")
    # All that Q10 directed are paintings. So are all of Q11 that a page says of; of Q12 there is a film more.
    for director, numbers in (("Q10", range(100, 105)), ("Q11", range(200, 206)), ("Q12", range(300, 306))):
        maker.add(director, f"Ada {director}")
        for number in numbers:
            is_last = number % 100 == 5
            said = f"Work {number} was directed by Ada {director}." if number != 205 else "It is a work."
            own_class = "P31 Q1" if is_last else "P31 Q2"
            maker.add(f"Q{number}", f"Work {number}", f"P57 {director}", own_class, page=[said])
    world = maker.write(tmp_path / "world")

    def outcomes(name: str, **options: Any) -> dict[str, str]:
        made = run_job(options_for(world, tmp_path / name, **options))
        kept = {row["key"] for row in rows(Path(made.output), "questions")}
        found = {row["key"]: row["outcome"] for row in rows(Path(made.output), "queries")}
        assert kept == {key for key, outcome in found.items() if outcome == "kept"}
        assert all(row["n_validated"] is not None for row in rows(Path(made.output), "queries"))
        return found

    all_kept = {f"P57__{name}__{label}": "kept" for name in ("Q10", "Q11", "Q12") for label in ("film", "painting")}
    assert outcomes("all") == all_kept
    wider = {"P57__Q10__film": "wider_type", "P57__Q11__film": "wider_type"}
    assert outcomes("specific", most_specific_types=True) == all_kept | wider
