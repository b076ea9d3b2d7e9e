"""What queries share and what each has of its own: facts, answers, denominators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mapping.qampari.questions import load_relations
from mapping.qampari.selection import AnswerFilter
from pipelines.jobs.shared_inputs import MadeRelease
from tests.support.builds import rows
from tests.support.qampari_oracle import Oracle, check
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
        claims = [f"P31 {type_id}" for type_id in own] + (["-P31 Q2"] if number == 108 else [])
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


def test_every_query_and_question_as_slow_and_obvious_code_has_it(world: World, made: MadeRelease) -> None:
    check(made, Oracle(world.wikidata, world.kb, load_relations(str(world.relations)), **GIVEN))


def test_the_report_has_the_class_of_each_type(made: MadeRelease) -> None:
    assert made.report["types"] == {"film": "Q1", "painting": "Q2"}
    assert made.report["types_without_class"] == ["ship"]


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
