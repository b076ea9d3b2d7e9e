"""Moved facts by themselves: outcomes, what keeps a fact from being a question, records of KILT, and questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kbsource.errors import SetupError
from mapping.facts import (
    PROBLEMS,
    Fact,
    FactAnswer,
    FactProof,
    Side,
    compared,
    fact_record,
    load_templates,
    problem_of,
    with_common,
)

TEXT = "It is old. The capital is Ostermoor."


def proof(found: str, *, page_id: int = 7) -> FactProof:
    said = f"The capital of the Isles is {found}."
    place = (1, 10, 46, 21, 3, 12)
    return FactProof(TEXT, page_id, "Isles", 99, "Section::::Abstract.", *place, found, said, 0.5, None)


def answer(name: str, state: str = "proved") -> FactAnswer:
    """An answer that is proved, found but not proved, not found, or nameless."""
    names = () if state == "nameless" else (name, f"{name} Town")
    n_found = {"proved": 2, "found": 1}.get(state, 0)
    text = next(iter(names), None)
    own = proof(name) if state == "proved" else None
    return FactAnswer(f"Q{name}", f"Q{name}", text, names, None, n_sentences=n_found, proof=own)


def fact(old: list[FactAnswer], new: list[FactAnswer], **changed: Any) -> Fact:
    pages = {"old_page_id": 7, "old_title": "Isles", "new_page_id": 7, "new_title": "Isles", **changed}
    about = ("Q1", "Q1", "P36", "capital", "Isles", "What is the capital of Isles?", compared(old, new), None)
    return Fact(*about, *pages.values(), *with_common(old, new))


A, B = answer("A"), answer("B")


@pytest.mark.parametrize(
    ("old", "new", "outcome"),
    [
        ([A], [A], "stayed"),
        ([A, B], [B, A], "stayed"),
        ([A], [B], "changed"),
        ([A], [A, B], "changed"),
        ([A, B], [B], "changed"),
        ([], [A], "appeared"),
        ([A], [], "disappeared"),
    ],
)
def test_what_becomes_of_a_fact_is_told_by_its_answers(
    old: list[FactAnswer], new: list[FactAnswer], outcome: str
) -> None:
    assert compared(old, new) == outcome
    assert problem_of(fact(old, new)) is None


@pytest.mark.parametrize(
    ("old", "new", "changed", "problem"),
    [
        ([A], [A], {"old_page_id": None}, "old_no_page"),
        ([], [A], {"old_page_id": None}, None),
        ([A], [A], {"new_page_id": None}, "new_no_page"),
        ([A], [], {"new_page_id": None}, None),
        ([answer("A", "nameless")], [A], {}, "old_no_name"),
        ([A], [answer("A", "nameless")], {}, "new_no_name"),
        ([answer("A", "lost")], [A], {}, "old_not_found"),
        ([A], [answer("A", "lost")], {}, "new_not_found"),
        ([answer("A", "found")], [A], {}, "old_not_entailed"),
        ([A, answer("B", "found")], [A, answer("C", "lost")], {}, "change_unproved"),
        ([A, answer("B", "found")], [A], {}, "change_unproved"),
        ([A, answer("B", "found")], [A, answer("C")], {}, None),
        ([answer("A", "nameless")], [answer("A", "nameless")], {"new_page_id": None}, "new_no_page"),
    ],
)
def test_a_fact_makes_a_question_where_each_release_proves_an_answer_and_one_that_differs(
    old: list[FactAnswer], new: list[FactAnswer], changed: dict[str, Any], problem: str | None
) -> None:
    assert problem_of(fact(old, new, **changed)) == problem
    assert problem is None or problem in PROBLEMS


@pytest.mark.parametrize("side", ["old", "new"])
def test_a_record_has_the_answers_of_its_release_and_those_of_the_other_in_meta(side: Side) -> None:
    changed_fact = fact([answer("B", "found"), A], [B])
    other = "new" if side == "old" else "old"
    span = {
        "wikipedia_id": "7",
        "title": "Isles",
        "start_paragraph_id": 3,
        "start_character": 12,
        "end_paragraph_id": 3,
        "end_character": 48,
        "bleu_score": 0.5,
        "meta": {"revision_id": 99, "entailment": None, "hypothesis": "The capital of the Isles is {}."},
        "section": "Section::::Abstract.",
    }

    def proved(name: str) -> dict[str, Any]:
        meta = {**span["meta"], "hypothesis": span["meta"]["hypothesis"].format(name)}  # type: ignore[dict-item]
        return {"answer": name, "provenance": [{**span, "meta": meta}]}

    outputs = {
        "old": [proved("A"), {"answer": "A Town"}, {"answer": "B"}, {"answer": "B Town"}],
        "new": [proved("B"), {"answer": "B Town"}],
    }

    assert fact_record(changed_fact, side) == {
        "id": "Q1-P36",
        "input": "What is the capital of Isles?",
        "output": outputs[side],
        "meta": {"outcome": "changed", "item_id": "Q1", "property_id": "P36", other: outputs[other]},
    }


def test_a_record_is_in_the_file_of_a_release_that_answers() -> None:
    assert fact_record(fact([A], []), "new") is None
    assert fact_record(fact([], [A]), "old") is None
    assert fact_record(replace(fact([A], [A]), problem="old_not_found"), "new") is None


def test_questions_are_the_packages_own_else_ambers_else_those_of_qampari() -> None:
    templates = load_templates()

    assert templates["P36"] == "What is the capital of {entity}?"  # QAMPARI: What are the capitals of …
    assert templates["P54"] == "{entity} plays for which team?"
    assert templates["P417"] == "What are the patron saints of {entity}?"
    assert all(text.count("{entity}") == 1 and text.endswith("?") for text in templates.values())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("P36 = 'What is it?'\n", "P36: expected a line like"),
        ("Q36 = 'What is {entity}?'\n", "Q36: expected a line like"),
        ("P036 = 'What is {entity}?'\n", "P036: expected a line like"),
        ("P36 = 1\n", "P36: expected a line like"),
        ("P36\n", "is not valid TOML"),
        (None, "no such file"),
    ],
)
def test_a_file_of_questions_is_looked_at(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "questions.toml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SetupError, match=said):
        load_templates(str(path))


def test_a_file_of_questions_has_all_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "questions.toml").write_text("P6 = 'Who leads {entity}?'\n")
    assert load_templates(str(tmp_path / "questions.toml")) == {"P6": "Who leads {entity}?"}
