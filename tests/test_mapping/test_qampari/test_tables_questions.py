"""Questions about lists."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from mapping.qampari.lists.list_tables import LinkedText
from mapping.qampari.lists.table_questions import Unkept, column_kind, draw_pivot, make_questions
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import QuestionEntity
from mapping.qampari.selection import AnswerFilter
from tests.support.tables_of_lists import LIST, SEED, asked_questions, made_list, made_proofs


def _lakes(*numbers: int) -> list[str]:
    return [f"Lake {one}" for one in numbers]


def test_a_simple_question_asks_for_the_rows() -> None:
    (question, *_), _ = make_questions([table := made_list(["x"] * 6)], made_proofs(table), seed=SEED)

    assert question[:6] == (TABLE_SIMPLE, "900", "Who or what is lakes of Sweden?", (), None, (LIST,))
    assert (question.n_answers, question.n_validated, len(question.answers)) == (6, 6, 6)
    answer = question.answers[1]
    assert (answer.text, answer.aliases, answer.title, answer.item_id, answer.via) == (
        "Lake 2", ("Lake 2",), "Title 2", None, None,
    )  # fmt: skip
    assert [one.text for one in answer.proofs] == ["900__0__1"]


def test_a_simple_question_is_about_all_tables_of_the_page() -> None:
    first, second = made_list(["x"] * 3), made_list(["x"] * 4, key="Pond", number=2, links=[11, 12, 1, 13])
    found, _ = asked_questions(first, second)

    assert found == {"Who or what is lakes of Sweden?": ["Lake 1", "Lake 2", "Lake 3", "Lake 1", "Lake 2", "Lake 4"]}


def test_rows_that_link_to_the_same_page_are_one_answer_the_first() -> None:
    table = made_list(["Skåne län"] * 6 + ["Blekinge"], links=[1, 2, 3, 4, 5, 1, 1])
    found, _ = asked_questions(table)

    assert list(found.values()) == [_lakes(1, 2, 3, 4, 5)] * 2
    found, _ = asked_questions(table, without=["900__0__0__1", "900__0__1__1"], keep=AnswerFilter(3, 9, 0.5))
    assert list(found.values()) == [_lakes(1, 2, 3, 4, 5), _lakes(3, 4, 5)]


@pytest.mark.parametrize(
    ("n_rows", "n_unproved", "n_no_page", "reason"),
    [
        (5, 0, 0, None),
        (4, 0, 0, "too_few_validated"),
        (10, 2, 0, None),
        (10, 3, 0, "share_too_low"),
        (10, 2, 4, "too_few_validated"),
        (12, 1, 6, None),
        (6, 0, 6, "too_few_validated"),
        (8, 1, 0, None),
        (9, 0, 0, "too_many_validated"),
    ],
)
def test_four_fifths_of_the_rows_with_a_page_are_proved_and_they_are_5_to_8(
    n_rows: int, n_unproved: int, n_no_page: int, reason: str | None
) -> None:
    links = [None] * n_no_page + list(range(1, n_rows - n_no_page + 1))
    unproved = [f"900__0__{n_no_page + one}" for one in range(n_unproved)]
    found, unkept = asked_questions(made_list(["x"] * n_rows, links=links), without=unproved, keep=AnswerFilter(5, 8))

    n_pages = n_rows - n_no_page
    if reason is None:
        assert len(found["Who or what is lakes of Sweden?"]) == n_pages - n_unproved
    else:
        assert found == {}
        assert unkept["900"] == Unkept(TABLE_SIMPLE, "900", reason, n_pages, n_pages - n_unproved)


def test_a_value_that_enough_rows_have_makes_a_question() -> None:
    table = made_list(["Skåne län"] * 5 + ["Blekinge"] * 4 + ["Halland"] * 6, key="Name")
    found, unkept = asked_questions(table)

    assert {text: answers for text, answers in found.items() if "such that" in text} == {
        "What are the name of lakes of Sweden such that their county value is Skåne län?": _lakes(1, 2, 3, 4, 5),
        "What are the name of lakes of Sweden such that their county value is Halland?": _lakes(*range(10, 16)),
    }
    assert not unkept


def test_the_key_of_a_value_is_that_of_its_column_and_its_proof_that_of_the_value() -> None:
    (_, question), _ = make_questions([table := made_list(["Skåne län"] * 5, number=3)], made_proofs(table), seed=SEED)

    assert (question.subset, question.key) == (TABLE_COMPOSITION, "900__3__1__Skåne län")
    assert [[proof.text for proof in one.proofs] for one in question.answers] == [
        [f"900__3__{row}__1"] for row in range(5)
    ]


def test_values_of_a_column_need_enough_proved_rows_each() -> None:
    table = made_list(["Skåne län"] * 5 + ["Halland"] * 6)
    found, unkept = asked_questions(table, without=["900__0__0__1"])

    assert [text for text in found if "such that" in text] == [
        "What are the lakes of Sweden such that their county value is Halland?"
    ]
    assert list(unkept.values()) == [Unkept(TABLE_COMPOSITION, "900__0__1__Skåne län", "too_few_validated", 5, 4)]


def test_a_column_with_too_small_a_share_makes_no_question() -> None:
    table = made_list(["Skåne län"] * 5 + ["Halland"] * 2)
    found, unkept = asked_questions(table, without=["900__0__5__1", "900__0__6__1"])

    assert not [text for text in found if "such that" in text]
    assert unkept == {"900__0__1": Unkept(TABLE_COMPOSITION, "900__0__1", "share_too_low", 7, 5)}


def test_rows_without_a_value_count_in_the_share() -> None:
    found, unkept = asked_questions(made_list(["Skåne län"] * 5 + [""] * 2))

    assert not [text for text in found if "such that" in text]
    assert unkept["900__0__1"].reason == "share_too_low"


def test_nothing_is_asked_about_rows_without_a_value() -> None:
    found, unkept = asked_questions(made_list(["Skåne län"] * 20 + [""] * 5))

    assert [len(answers) for answers in found.values()] == [25, 20]
    assert not unkept


@pytest.mark.parametrize(("value", "is_asked"), [("Skånes", True), ("Skåne", False)])
def test_values_of_five_characters_are_not_asked_about(value: str, is_asked: bool) -> None:
    found, unkept = asked_questions(made_list([value] * 5))

    assert len([text for text in found if "such that" in text]) == is_asked
    assert [one.reason for one in unkept.values()] == ([] if is_asked else ["short_value"])


def test_a_value_that_is_linked_is_an_entity_of_the_question() -> None:
    table = made_list(["Skåne län"] * 6)
    row = table.rows[2]
    linked = row._replace(values=(row.key, LinkedText("Skåne län", 50, "Skåne County")))
    table = table._replace(rows=(*table.rows[:2], linked, *table.rows[3:]))
    simple, question = make_questions([table], made_proofs(table), seed=SEED)[0]

    assert simple.entities == (LIST,)
    assert question.entities == (LIST, QuestionEntity("Skåne län", ("Skåne län",), "Skåne County", None))


@pytest.mark.parametrize(
    ("key", "said"), [("Lake", "lakes of Sweden"), ("Body of water", "body of water of lakes of Sweden"), ("", "lakes")]
)
def test_the_key_columns_name_stands_before_the_lists_unless_that_has_it(key: str, said: str) -> None:
    found, _ = asked_questions(made_list(["Skåne län"] * 5, key=key, column="GDP area"))

    assert list(found)[1].startswith(f"What are the {said}")
    assert list(found)[1].endswith("such that their GDP area value is Skåne län?")


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("Metropolitan Area", "metropolitan area"),
        ("GDP (PPP, 2014) Millions of USD", "GDP (PPP, 2014) millions of USD"),
        ("W–L", "W–L"),
        ("McDonald iPhone", "McDonald iPhone"),
    ],
)
def test_words_of_a_columns_name_are_in_lower_case_but_for_those_like_gdp(column: str, said: str) -> None:
    found, _ = asked_questions(made_list(["Skåne län"] * 5, column=column))

    assert list(found)[1] == f"What are the lakes of Sweden such that their {said} value is Skåne län?"


def _sides(found: dict[str, list[str]], words: str) -> tuple[str, list[str], list[str]]:
    """Gives the pivot of two questions and their answers."""
    pattern = re.compile(rf"What are the lakes of Sweden such that (?:.*) ({words}) (.*)\?")
    sides = [(match[1], match[2], found[text]) for text in found if (match := pattern.fullmatch(text))]
    (first, pivot, below), (second, other, rest) = sides
    assert (f"{first}|{second}", pivot) == (words, other)
    return pivot, below, rest


def test_numbers_are_compared_as_numbers_and_greater_has_the_pivot_itself() -> None:
    values = ["900", "1,000", "9,500", "10,000", "120.50", "999", "200", "300", "400", "5,000", "600", "700"]
    found, unkept = asked_questions(made_list(values, column="Area"))
    shown, below, rest = _sides(found, "lower than|greater than")

    numbers = [Decimal(one.replace(",", "")) for one in values]
    pivot = numbers[values.index(shown)]
    assert below == _lakes(*(place for place, one in enumerate(numbers, 1) if one < pivot))
    assert rest == _lakes(*(place for place, one in enumerate(numbers, 1) if one >= pivot))
    assert len(below) >= 5
    assert len(rest) >= 5
    assert not unkept
    assert all("their area value is" in text for text in found if "such that" in text)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("Founded", [str(1990 + one) for one in range(12)]),
        ("Date of opening", [f"{one + 1} May {1990 + one}" for one in range(12)]),
    ],
)
def test_years_are_compared_as_years_and_after_has_the_pivot_itself(column: str, values: list[str]) -> None:
    found, _ = asked_questions(made_list(values, column=column))
    pivot, below, rest = _sides(found, "before|after")

    assert below == _lakes(*range(1, int(pivot) - 1989))
    assert rest == _lakes(*range(int(pivot) - 1989, 13))
    assert all("they were created or happened" in text for text in found if "such that" in text)


def test_keys_of_sides_have_word_and_pivot_questions_the_pivot_as_the_table_writes_it() -> None:
    table = made_list([f"{one * 1000:,}.0" for one in range(1, 11)], column="Area")
    _, below, rest = make_questions([table], made_proofs(table), seed=SEED)[0]

    assert (below.key, rest.key) == ("900__0__1__lower__6000", "900__0__1__greater__6000")
    said = "What are the lakes of Sweden such that their area value is"
    assert (below.text, rest.text) == (f"{said} lower than 6,000.0?", f"{said} greater than 6,000.0?")


def test_a_page_with_two_values_on_one_side_answers_once_by_the_first_and_with_one_on_each_side_twice() -> None:
    table = made_list(
        ["100"] * 6 + ["110"] + ["500"] * 6 + ["120"], column="Area", links=[*range(1, 7), 1, *range(7, 13), 7]
    )
    found, _ = asked_questions(table)

    assert list(found.values())[1:] == [[*_lakes(*range(1, 7)), "Lake 14"], _lakes(*range(8, 14))]


def test_a_column_whose_sides_are_too_small_makes_no_question() -> None:
    for values in (["100"] * 12, [str(100 + one) for one in range(9)]):
        found, unkept = asked_questions(made_list(values, column="Area"))

        assert len(found) == 1
        assert unkept["900__0__1"] == Unkept(TABLE_COMPOSITION, "900__0__1", "no_pivot", len(values), len(values))


def test_rows_that_are_not_proved_are_no_answers_but_count() -> None:
    values = [str(100 + one) for one in range(14)]
    table = made_list(values, column="Area")
    questions, _ = make_questions([table], made_proofs(table, without=["900__0__0__1"]), seed=SEED)

    below = questions[1]
    assert (below.n_answers - below.n_validated, len(below.answers)) == (1, below.n_validated)
    assert "Lake 1" not in [one.text for one in below.answers]


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        (["1990", "2001"], "Founded", "year"),
        (["1990", ""], "Founded", "year"),
        (["1990", "8848"], "Height", "number"),
        (["1990", "990"], "Height", "number"),
        (["1,990", "2001"], "Founded", "number"),
        (["1990", "c. 2001"], "Founded", "text"),
        (["1990", "c. 2001"], "Year founded", "year"),
        (["3 May 1990", "2001-05-03"], "Opening DATE", "year"),
        (["Season 1990–91"], "Last seen", "year"),
        (["Smith", "Jones"], "Last name", "text"),
        (["3 May 1990", "unknown"], "Date", "text"),
        (["12", "15"], "Date", "number"),
        (["19900", "1990"], "Year", "number"),
        (["Lund"], "Town", "text"),
        (["", ""], "Town", "text"),
        ([], "Town", "text"),
    ],
)
def test_a_column_is_of_years_or_numbers_if_all_its_values_are(values: list[str], name: str, kind: str) -> None:
    assert column_kind(values, name) == kind


def test_two_questions_with_the_same_words_are_one() -> None:
    tables = made_list(["Skåne län"] * 5), made_list(["Skåne län"] * 7, number=1, links=range(11, 18))
    found, unkept = asked_questions(*tables)

    assert len(found) == 2
    assert found["What are the lakes of Sweden such that their county value is Skåne län?"] == _lakes(1, 2, 3, 4, 5)
    assert list(unkept.values()) == [Unkept(TABLE_COMPOSITION, "900__1__1__Skåne län", "same_text", 7, 7)]


def test_titles_that_lead_to_a_page_can_be_aliases() -> None:
    table = made_list(["x"] * 5)
    redirects = {2: ("Lake 2", "Second Lake"), 77: ("Other",)}
    (question,), _ = make_questions([table], made_proofs(table), seed=SEED, redirects=redirects)

    assert [one.aliases for one in question.answers[:2]] == [("Lake 1",), ("Lake 2", "Second Lake")]


def test_no_tables_have_no_questions_and_those_of_two_pages_are_refused() -> None:
    assert make_questions([], {}, seed=SEED) == ([], [])
    with pytest.raises(ValueError, match="one page"):
        make_questions([made_list(["x"]), made_list(["x"])._replace(page_id=901)], {}, seed=SEED)


def test_pivots_hang_on_seed_and_column() -> None:
    amounts = [(one, Decimal(one)) for one in range(100)]
    drawn = {
        draw_pivot(amounts, least=5, seed=seed, column_key=column)
        for seed in "abc"
        for column in ("1__0__1", "1__0__2")
    }

    assert len(drawn) == 6
    assert all(one is not None and 5 <= one <= 95 for one in drawn)
