"""Facts of lists, and the sentences that prove them."""

from __future__ import annotations

import re
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.records import Page
from kbsource.sentences import sentence_spans
from mapping.qampari.evidence import PageSentences
from mapping.qampari.list_tables import LinkedText, ListRow, ListTable
from mapping.qampari.questions import TABLE_COMPOSITION, TABLE_SIMPLE
from mapping.qampari.records import ProofText, Question, QuestionEntity
from mapping.qampari.selection import AnswerFilter
from mapping.qampari.table_questions import (
    REASONS,
    DroppedQuestion,
    TableFact,
    column_kind,
    draw_pivot,
    find_words,
    make_questions,
    name_words,
    parse_cell_number,
    table_facts,
    value_names,
)
from tests.support.qampari_proofs import page_of, prove_fact
from tests.support.tables_of_lists import LIST, SEED, asked_questions, made_list, made_proofs


def _text(text: str, page_id: int | None = None) -> LinkedText:
    return LinkedText(text, page_id, None if page_id is None else f"Title {page_id}")


def _list(*rows: tuple[LinkedText, ...], number: int = 0, value_columns: tuple[int, ...] = (1,)) -> ListTable:
    """A list whose first column is the key."""
    columns = ("Lake", "County", "Depth")[: len(rows[0])]
    made = tuple(ListRow(row[0], row) for row in rows)
    return ListTable(900, "List of lakes of Sweden", "lakes of Sweden", (number,), columns, 0, value_columns, made)


def _value_fact(value: str, *, text: str = "Lake Ullane", value_page_id: int | None = 2) -> TableFact:
    return TableFact(900, 0, 3, 1, 1, text, value_names(value), value_page_id)


def test_rows_with_a_page_make_a_fact_of_belonging_and_one_of_each_value() -> None:
    table = _list(
        (_text("Lake A", 1), _text("Skåne", 50), _text("12")),
        (_text("Lake B"), _text("Skåne", 50), _text("900")),
        (_text("Lake C", 3), _text(""), _text("1,200")),
        value_columns=(1, 2),
    )

    words = ("lakes", "of", "sweden")
    assert list(table_facts([table])) == [
        TableFact(900, 0, 0, None, 1, "Lake A", words, None),
        TableFact(900, 0, 2, None, 3, "Lake C", words, None),
        TableFact(900, 0, 0, 1, 1, "Lake A", ("Skåne",), 50),
        TableFact(900, 0, 2, 2, 3, "Lake C", ("1,200", "1200"), None),
    ]
    assert [table_fact.key for table_fact in table_facts([table])] == [
        "900__0__0",
        "900__0__2",
        "900__0__0__1",
        "900__0__2__2",
    ]


def test_a_page_belongs_to_the_list_once_and_has_each_value_once() -> None:
    lake_a, lake_b = _text("Lake A", 1), _text("Lake B", 2)
    first = _list((lake_a, _text("Skåne")), (lake_a, _text("Halland")), (lake_a, _text("Skåne")))
    second = _list((lake_b, _text("Skåne")), (lake_a, _text("Skåne")), number=4)

    found = [(table_fact.table, table_fact.row, table_fact.column) for table_fact in table_facts([first, second])]
    assert found == [(0, 0, None), (4, 0, None), (0, 0, 1), (0, 1, 1), (4, 0, 1), (4, 1, 1)]


def test_the_page_of_the_key_is_not_searched_for_the_key() -> None:
    _, fact = table_facts([_list((_text("Lake A", 1), _text("Skåne", 1)))])

    assert fact.value_page_id is None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", "0"),
        ("1990", "1990"),
        ("4,542,100", "4542100"),
        ("4\u00a0542", "4542"),
        ("4 542", "4542"),
        ("0.50", "0.50"),
        ("1,250.5", "1250.5"),
        ("−12", "-12"),
        ("-0", "0"),
        ("+7", "7"),
    ],
)
def test_numbers_may_have_marks_between_thousands(text: str, number: str) -> None:
    assert parse_cell_number(text) == Decimal(number)
    assert str(parse_cell_number(text)) == number


@pytest.mark.parametrize(
    "text", ["", "007", "1,25", "1990,000", "1,000 000", "12 km", "12%", "1914–18", "1.2.3", ".5", "1e5", "NaN", "1٣٤"]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    assert parse_cell_number(text) is None


@given(st.integers(-(10**12), 10**12))
def test_a_number_is_read_as_it_is_written(number: int) -> None:
    assert parse_cell_number(str(number)) == parse_cell_number(f"{number:,}") == number


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Lund", ("Lund",)),
        ("12", ()),
        ("−12", ()),
        ("1.5", ()),
        ("10.0", ("10.0",)),
        ("0.1", ()),
        ("1990", ("1990", "1,990")),
        ("4 542", ("4 542", "4542", "4,542")),
        ("007", ("007",)),
        ("07", ()),
        ("", ()),
        ("12 km", ("12 km",)),
    ],
)
def test_numbers_of_less_than_three_digits_are_not_looked_for(text: str, names: tuple[str, ...]) -> None:
    assert value_names(text) == names


def test_a_value_is_proved_by_the_first_sentence_of_the_keys_page_that_names_it() -> None:
    page = page_of(1, "One. Two. Three. It is in Skåne. Five.", "Skåne is large.")
    proof = prove_fact(_value_fact("Skåne"), page, page_of(2, "Lake Ullane is here."))

    assert proof is not None
    assert (proof.text, proof.page_id, proof.title) == ("Two. Three. It is in Skåne.", 1, "Page 1")
    text = page.elements[proof.element].text
    assert text[proof.start_char : proof.end_char] == proof.text
    assert text[proof.sentence_char : proof.end_char] == "It is in Skåne."
    assert (proof.entailment, proof.hypothesis) == (None, None)
    alone = prove_fact(_value_fact("Skåne"), page, None, n_before=0)
    assert alone is not None
    assert alone.text == "It is in Skåne."


@pytest.mark.parametrize("key_page", [None, page_of(1, "It is in Halland.")])
def test_a_value_is_else_proved_by_the_values_page_that_names_the_key(key_page: Page | None) -> None:
    proof = prove_fact(_value_fact("Skåne"), key_page, page_of(2, "It is wide. LAKE ULLANE is its lake."))

    assert proof is not None
    assert (proof.text, proof.page_id) == ("It is wide. LAKE ULLANE is its lake.", 2)


def test_nothing_is_proved_by_other_pages_titles_links_or_parts_of_words() -> None:
    key_page = page_of(1, "It is in Skåneland. The province is south.", links=((2, "province", 2),))
    value_page = page_of(2, "The Lake Ullanes. The water is cold.", links=((2, "water", 1),))

    assert prove_fact(_value_fact("Skåne"), key_page, value_page) is None
    assert prove_fact(_value_fact("Ullane", text="Sweden"), page_of(1), page_of(2)) is None
    assert prove_fact(_value_fact("Skåne"), None, None) is None


def test_a_key_of_two_digits_is_not_looked_for() -> None:
    assert prove_fact(_value_fact("Skåne", text="12"), None, page_of(2, "It has 12 lakes.")) is None
    assert prove_fact(_value_fact("Skåne", text="121"), None, page_of(2, "It has 121 lakes.")) is not None


def test_that_a_row_belongs_is_proved_by_the_words_of_the_list() -> None:
    (fact,) = table_facts([_list((_text("Lake A", 1),), value_columns=())])
    proof = prove_fact(fact, page_of(1, "It is cold. A lake in the south of Sweden. It is deep."))

    assert proof is not None
    assert (proof.text, proof.page_id) == ("It is cold. A lake in the south of Sweden.", 1)
    assert prove_fact(fact, page_of(1, "A lake in Sweden.")) is None
    assert prove_fact(fact, None) is None


def test_names_are_cut_into_words() -> None:
    assert name_words("Women's R&B singers, in the U.S. (A–C) and the U.K.") == (
        "women's", "r&b", "singers", "in", "the", "u.s", "a", "c", "and", "u.k",
    )  # fmt: skip


def test_a_letter_whose_lower_case_is_two_code_points_is_one_letter_of_its_word() -> None:
    words = name_words("Mosques in İzmir")

    assert len(words) == 3
    assert find_words(PageSentences(page_of(1, "A mosque in İzmir.")), words) is not None
    assert find_words(PageSentences(page_of(1, "A mosque in Izmit.")), words) is None


@pytest.mark.parametrize(
    ("words", "text", "is_found"),
    [
        (("lakes",), "A LAKE.", True),
        (("lakes",), "The Lakes.", True),
        (("lake",), "Lakes.", False),
        (("bus",), "A bu.", False),
        (("lens",), "A len.", True),
        (("lakes", "sweden"), "A lake.", False),
        (("sweden",), "Swedens.", False),
        (("u.s",), "In the U.S. there.", True),
        (("of",), "Off.", False),
        ((), "Anything.", False),
    ],
)
def test_all_words_must_stand_in_the_page_an_s_at_their_end_may_be_missing(
    words: tuple[str, ...], text: str, is_found: bool
) -> None:
    assert (find_words(PageSentences(page_of(1, text)), words) is not None) == is_found


def test_words_of_titles_and_headings_do_not_count_those_of_list_items_do() -> None:
    assert find_words(PageSentences(page_of(1, "Nothing.")), ("lakes",)) is None
    assert find_words(PageSentences(page_of(1, "A lake.", kind="list_item")), ("lakes",)) is not None


_WORDS = st.lists(st.sampled_from(["lakes", "lake", "of", "bus", "towns"]), min_size=1, unique=True)
_SENTENCES = st.lists(
    st.lists(st.sampled_from(["Lakes", "lake", "of", "bus", "bu", "Town", "x"]), min_size=1).map(
        lambda words: " ".join(words).capitalize() + "."
    ),
    max_size=4,
).map(" ".join)


@given(_WORDS, st.lists(_SENTENCES, max_size=3), st.integers(0, 2))
def test_words_are_found_as_by_looking_at_each_sentence(words: list[str], paragraphs: list[str], n_before: int) -> None:
    page = page_of(1, *paragraphs)

    def has(word: str, text: str) -> bool:
        forms = {word, word.removesuffix("s")} if len(word) > 3 else {word}
        return not forms.isdisjoint(re.findall(r"\w+", text.lower()))

    sentences = [
        (element, start, end, page_element.text[start:end])
        for element, page_element in enumerate(page.elements)
        if page_element.kind == "paragraph"
        for start, end in sentence_spans(page_element.text)
    ]
    found = find_words(PageSentences(page, n_before=n_before), words)
    if not all(any(has(word, text) for *_, text in sentences) for word in words):
        assert found is None
        return
    # ``max`` gives the first of the largest.
    element, start, end, _ = max(sentences, key=lambda sentence: sum(has(word, sentence[3]) for word in words))
    assert found is not None
    assert (found.element, found.sentence_char, found.end_char) == (element, start, end)
    assert found.text == page.elements[element].text[found.start_char : found.end_char]
    assert len(sentence_spans(found.text)) <= n_before + 1


def _lakes(*numbers: int) -> list[str]:
    return [f"Lake {number}" for number in numbers]


def test_a_simple_question_asks_for_the_rows() -> None:
    (question, *_), _ = make_questions([table := made_list(["x"] * 6)], made_proofs(table), seed=SEED)

    asked = (question.subset, question.key, question.question_text, question.property_ids, question.entities)
    assert asked == (TABLE_SIMPLE, "900", "Who or what is lakes of Sweden?", (), (LIST,))
    assert (question.n_answers, question.n_validated, len(question.answers)) == (6, 6, 6)
    answer = question.answers[1]
    assert (answer.text, answer.aliases, answer.title, answer.item_id, answer.via) == (
        "Lake 2", ("Lake 2",), "Title 2", None, None,
    )  # fmt: skip
    assert [proof.text for proof in answer.proofs] == ["900__0__1"]


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
    unproved = [f"900__0__{n_no_page + number}" for number in range(n_unproved)]
    found, unkept = asked_questions(made_list(["x"] * n_rows, links=links), without=unproved, keep=AnswerFilter(5, 8))

    n_pages = n_rows - n_no_page
    if reason is None:
        assert len(found["Who or what is lakes of Sweden?"]) == n_pages - n_unproved
    else:
        assert found == {}
        assert unkept["900"] == DroppedQuestion(TABLE_SIMPLE, "900", reason, n_pages, n_pages - n_unproved)


def test_the_share_can_be_of_all_rows_those_without_a_page_too() -> None:
    table = made_list(["Skåne län"] * 7)
    unlinked = tuple(row._replace(key=row.key._replace(page_id=None, title=None)) for row in table.rows[5:])
    table = table._replace(rows=(*table.rows[:5], *unlinked))

    of_linked, _ = make_questions([table], made_proofs(table), seed=SEED, share_of="linked")
    of_all, unkept = make_questions([table], made_proofs(table), seed=SEED, share_of="all")

    assert len(of_linked) == 2
    assert of_all == []
    assert {question_unkept.reason for question_unkept in unkept} == {"share_too_low"}
    assert make_questions([table], made_proofs(table), seed=SEED, keep=AnswerFilter(share=0.7), share_of="all")[0]


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
    assert [[proof.text for proof in answer.proofs] for answer in question.answers] == [
        [f"900__3__{row}__1"] for row in range(5)
    ]


def test_values_of_a_column_need_enough_proved_rows_each() -> None:
    table = made_list(["Skåne län"] * 5 + ["Halland"] * 6)
    found, unkept = asked_questions(table, without=["900__0__0__1"])

    assert [text for text in found if "such that" in text] == [
        "What are the lakes of Sweden such that their county value is Halland?"
    ]
    assert list(unkept.values()) == [
        DroppedQuestion(TABLE_COMPOSITION, "900__0__1__Skåne län", "too_few_validated", 5, 4)
    ]


def test_a_column_with_too_small_a_share_makes_no_question() -> None:
    table = made_list(["Skåne län"] * 5 + ["Halland"] * 2)
    found, unkept = asked_questions(table, without=["900__0__5__1", "900__0__6__1"])

    assert not [text for text in found if "such that" in text]
    assert unkept == {"900__0__1": DroppedQuestion(TABLE_COMPOSITION, "900__0__1", "share_too_low", 7, 5)}


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
    assert [question_unkept.reason for question_unkept in unkept.values()] == ([] if is_asked else ["short_value"])


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
    """The pivot of two questions and their answers."""
    pattern = re.compile(rf"What are the lakes of Sweden such that (?:.*) ({words}) (.*)\?")
    sides = [(match[1], match[2], found[text]) for text in found if (match := pattern.fullmatch(text))]
    (first, pivot, below), (second, other, rest) = sides
    assert (f"{first}|{second}", pivot) == (words, other)
    return pivot, below, rest


def test_numbers_are_compared_as_numbers_and_greater_has_the_pivot_itself() -> None:
    values = ["900", "1,000", "9,500", "10,000", "120.50", "999", "200", "300", "400", "5,000", "600", "700"]
    found, unkept = asked_questions(made_list(values, column="Area"))
    shown, below, rest = _sides(found, "lower than|greater than")

    numbers = [Decimal(value.replace(",", "")) for value in values]
    pivot = numbers[values.index(shown)]
    assert below == _lakes(*(place for place, number in enumerate(numbers, 1) if number < pivot))
    assert rest == _lakes(*(place for place, number in enumerate(numbers, 1) if number >= pivot))
    assert len(below) >= 5
    assert len(rest) >= 5
    assert not unkept
    assert all("their area value is" in text for text in found if "such that" in text)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("Founded", [str(1990 + number) for number in range(12)]),
        ("Date of opening", [f"{number + 1} May {1990 + number}" for number in range(12)]),
    ],
)
def test_years_are_compared_as_years_and_after_has_the_pivot_itself(column: str, values: list[str]) -> None:
    found, _ = asked_questions(made_list(values, column=column))
    pivot, below, rest = _sides(found, "before|after")

    assert below == _lakes(*range(1, int(pivot) - 1989))
    assert rest == _lakes(*range(int(pivot) - 1989, 13))
    assert all("they were created or happened" in text for text in found if "such that" in text)


def test_keys_of_sides_have_word_and_pivot_questions_the_pivot_as_the_table_writes_it() -> None:
    table = made_list([f"{number * 1000:,}.0" for number in range(1, 11)], column="Area")
    _, below, rest = make_questions([table], made_proofs(table), seed=SEED)[0]

    assert (below.key, rest.key) == ("900__0__1__lower__6000", "900__0__1__greater__6000")
    said = "What are the lakes of Sweden such that their area value is"
    assert (below.question_text, rest.question_text) == (f"{said} lower than 6,000.0?", f"{said} greater than 6,000.0?")


def test_a_page_with_two_values_on_one_side_answers_once_by_the_first_and_with_one_on_each_side_twice() -> None:
    table = made_list(
        ["100"] * 6 + ["110"] + ["500"] * 6 + ["120"], column="Area", links=[*range(1, 7), 1, *range(7, 13), 7]
    )
    found, _ = asked_questions(table)

    assert list(found.values())[1:] == [[*_lakes(*range(1, 7)), "Lake 14"], _lakes(*range(8, 14))]


def test_a_column_whose_sides_are_too_small_makes_no_question() -> None:
    for values in (["100"] * 12, [str(100 + number) for number in range(9)]):
        found, unkept = asked_questions(made_list(values, column="Area"))

        assert len(found) == 1
        assert unkept["900__0__1"] == DroppedQuestion(
            TABLE_COMPOSITION, "900__0__1", "no_pivot", len(values), len(values)
        )


def test_rows_that_are_not_proved_are_no_answers_but_count() -> None:
    values = [str(100 + number) for number in range(14)]
    table = made_list(values, column="Area")
    questions, _ = make_questions([table], made_proofs(table, without=["900__0__0__1"]), seed=SEED)

    below = questions[1]
    assert (below.n_answers - below.n_validated, len(below.answers)) == (1, below.n_validated)
    assert "Lake 1" not in [answer.text for answer in below.answers]


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
    assert list(unkept.values()) == [DroppedQuestion(TABLE_COMPOSITION, "900__1__1__Skåne län", "same_text", 7, 7)]


def test_titles_that_lead_to_a_page_can_be_aliases() -> None:
    table = made_list(["x"] * 5)
    redirects = {2: ("Lake 2", "Second Lake"), 77: ("Other",)}
    (question,), _ = make_questions([table], made_proofs(table), seed=SEED, redirects=redirects)

    assert [answer.aliases for answer in question.answers[:2]] == [("Lake 1",), ("Lake 2", "Second Lake")]


def test_no_tables_have_no_questions_and_those_of_two_pages_are_refused() -> None:
    assert make_questions([], {}, seed=SEED) == ([], [])
    with pytest.raises(ValueError, match="one page"):
        make_questions([made_list(["x"]), made_list(["x"])._replace(page_id=901)], {}, seed=SEED)


def test_pivots_hang_on_seed_and_column() -> None:
    amounts = [(number, Decimal(number)) for number in range(100)]
    drawn = {
        draw_pivot(amounts, least=5, seed=seed, column_key=column)
        for seed in "abc"
        for column in ("1__0__1", "1__0__2")
    }

    assert len(drawn) == 6
    assert all(pivot is not None and 5 <= pivot <= 95 for pivot in drawn)


_AMOUNTS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 9).map(Decimal)), max_size=25)


@given(_AMOUNTS, st.integers(1, 5), st.randoms(use_true_random=False))
def test_a_pivot_is_one_of_the_amounts_with_enough_pages_on_both_sides_in_any_order(
    amounts: list[tuple[int, Decimal]], least: int, random: Random
) -> None:
    def sides(pivot: Decimal) -> tuple[int, int]:
        below = {page_id for page_id, amount in amounts if amount < pivot}
        return len(below), len({page_id for page_id, amount in amounts if amount >= pivot})

    pivot = draw_pivot(amounts, least=least, seed=SEED, column_key="1__0__1")
    shuffled = sorted(amounts, key=lambda _: random.random())
    assert draw_pivot(shuffled, least=least, seed=SEED, column_key="1__0__1") == pivot
    if pivot is None:
        assert not any(min(sides(amount)) >= least for _, amount in amounts)
    else:
        assert pivot in {amount for _, amount in amounts}
        assert min(sides(pivot)) >= least


_VALUES = st.sampled_from(["Skåne län", "Halland", "100", "200", "1990", "2001", "12", ""])


@given(
    st.lists(st.tuples(_VALUES, st.integers(1, 9)), min_size=1, max_size=14),
    st.sampled_from(["County", "Year"]),
    st.sets(st.integers(0, 40)),
    st.integers(1, 3),
)
def test_every_answer_has_its_proof_each_page_answers_once_and_keys_are_unique(
    rows: list[tuple[str, int]], column: str, unproved: set[int], least: int
) -> None:
    table = made_list([value for value, _ in rows], column=column, links=[page_id for _, page_id in rows])
    keys = [table_fact.key for number, table_fact in enumerate(table_facts([table])) if number not in unproved]
    proofs = {key: ProofText(key, 1, "T", 2, 0, len(key), 0) for key in keys}
    questions, unkept = make_questions([table], proofs, seed=SEED, keep=AnswerFilter(least, 6, 0.5))

    names = [made_question.key for made_question in questions] + [made_question.key for made_question in unkept]
    assert len(set(names)) == len(names)
    assert {question_unkept.reason for question_unkept in unkept} <= REASONS.keys()
    for question in questions:
        _check(question, proofs, least)


def _check(question: Question, proofs: dict[str, ProofText], least: int) -> None:
    assert least <= len(question.answers) == question.n_validated <= min(6, question.n_answers)
    assert len({answer.title for answer in question.answers}) == len(question.answers)
    for answer in question.answers:
        (proof,) = answer.proofs
        assert proofs[proof.text] == proof
        assert int(proof.text.split("__")[2]) + 1 == int(answer.text.split()[-1])
