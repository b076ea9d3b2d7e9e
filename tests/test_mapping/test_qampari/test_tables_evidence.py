"""Facts of lists, and the sentences that prove them."""

from __future__ import annotations

import re
from dataclasses import fields
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.records import Anchor, Element, Page
from mapping.qampari.lists.list_tables import LinkedText, ListRow, ListTable
from mapping.qampari.lists.table_evidence import (
    TableFact,
    find_words,
    name_words,
    parse_number,
    table_facts,
    value_names,
)
from mapping.search.sentences import sentence_spans
from tests.support.qampari_proofs import prove_fact


def _page(page_id: int, *paragraphs: str, links: tuple[tuple[str, int], ...] = (), kind: str = "paragraph") -> Page:
    """Gives a page; links are (text, page id) at the text's first occurrence in the first paragraph."""
    elements = [Element("title", 1, None, "", (), "Lakes in Sweden"), Element("heading", 2, None, "", (), "Ullane")]
    elements += [Element(kind, 0, None, "", (), one) for one in paragraphs]
    anchors = []
    for text, target in links:
        start = paragraphs[0].index(text)
        anchors.append(Anchor(2, start, start + len(text), text, "T", None, target, "T"))
    values: dict[str, Any] = dict.fromkeys((one.name for one in fields(Page)), ())
    values |= {"page_id": page_id, "title": f"Page {page_id}", "elements": tuple(elements), "anchors": tuple(anchors)}
    return Page(**values)


def _text(text: str, page_id: int | None = None) -> LinkedText:
    return LinkedText(text, page_id, None if page_id is None else f"Title {page_id}")


def _list(*rows: tuple[LinkedText, ...], number: int = 0, value_columns: tuple[int, ...] = (1,)) -> ListTable:
    """Gives a list whose first column is the key."""
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
    assert [one.key for one in table_facts([table])] == ["900__0__0", "900__0__2", "900__0__0__1", "900__0__2__2"]


def test_a_page_belongs_to_the_list_once_and_has_each_value_once() -> None:
    lake_a, lake_b = _text("Lake A", 1), _text("Lake B", 2)
    first = _list((lake_a, _text("Skåne")), (lake_a, _text("Halland")), (lake_a, _text("Skåne")))
    second = _list((lake_b, _text("Skåne")), (lake_a, _text("Skåne")), number=4)

    found = [(one.table, one.row, one.column) for one in table_facts([first, second])]
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
    assert parse_number(text) == Decimal(number)
    assert str(parse_number(text)) == number


@pytest.mark.parametrize(
    "text", ["", "007", "1,25", "1990,000", "1,000 000", "12 km", "12%", "1914–18", "1.2.3", ".5", "1e5", "NaN", "1٣٤"]
)
def test_other_texts_are_no_numbers(text: str) -> None:
    assert parse_number(text) is None


@given(st.integers(-(10**12), 10**12))
def test_a_number_is_read_as_it_is_written(number: int) -> None:
    assert parse_number(str(number)) == parse_number(f"{number:,}") == number


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Lund", ("Lund",)),
        ("12", ()),
        ("−12", ()),
        ("1.5", ()),
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
    page = _page(1, "One. Two. Three. It is in Skåne. Five.", "Skåne is large.")
    proof = prove_fact(_value_fact("Skåne"), page, _page(2, "Lake Ullane is here."))

    assert proof is not None
    assert (proof.text, proof.page_id, proof.title) == ("Two. Three. It is in Skåne.", 1, "Page 1")
    text = page.elements[proof.element].text
    assert text[proof.start_char : proof.end_char] == proof.text
    assert text[proof.sentence_char : proof.end_char] == "It is in Skåne."
    assert (proof.entailment, proof.hypothesis) == (None, None)
    alone = prove_fact(_value_fact("Skåne"), page, None, n_before=0)
    assert alone is not None
    assert alone.text == "It is in Skåne."


@pytest.mark.parametrize("key_page", [None, _page(1, "It is in Halland.")])
def test_a_value_is_else_proved_by_the_values_page_that_names_the_key(key_page: Page | None) -> None:
    proof = prove_fact(_value_fact("Skåne"), key_page, _page(2, "It is wide. LAKE ULLANE is its lake."))

    assert proof is not None
    assert (proof.text, proof.page_id) == ("It is wide. LAKE ULLANE is its lake.", 2)


def test_nothing_is_proved_by_other_pages_titles_links_or_parts_of_words() -> None:
    key_page = _page(1, "It is in Skåneland. The province is south.", links=(("province", 2),))
    value_page = _page(2, "The Lake Ullanes. The water is cold.", links=(("water", 1),))

    assert prove_fact(_value_fact("Skåne"), key_page, value_page) is None
    assert prove_fact(_value_fact("Ullane", text="Sweden"), _page(1), _page(2)) is None
    assert prove_fact(_value_fact("Skåne"), None, None) is None


def test_a_key_of_two_digits_is_not_looked_for() -> None:
    assert prove_fact(_value_fact("Skåne", text="12"), None, _page(2, "It has 12 lakes.")) is None
    assert prove_fact(_value_fact("Skåne", text="121"), None, _page(2, "It has 121 lakes.")) is not None


def test_that_a_row_belongs_is_proved_by_the_words_of_the_list() -> None:
    (fact,) = table_facts([_list((_text("Lake A", 1),), value_columns=())])
    proof = prove_fact(fact, _page(1, "It is cold. A lake in the south of Sweden. It is deep."))

    assert proof is not None
    assert (proof.text, proof.page_id) == ("It is cold. A lake in the south of Sweden.", 1)
    assert prove_fact(fact, _page(1, "A lake in Sweden.")) is None
    assert prove_fact(fact, None) is None


def test_names_are_cut_into_words() -> None:
    assert name_words("Women's R&B singers, in the U.S. (A–C) and the U.K.") == (
        "women's", "r&b", "singers", "in", "the", "u.s", "a", "c", "and", "u.k",
    )  # fmt: skip


def test_a_letter_whose_lower_case_is_two_code_points_is_one_letter_of_its_word() -> None:
    words = name_words("Mosques in İzmir")

    assert len(words) == 3
    assert find_words(_page(1, "A mosque in İzmir."), words) is not None
    assert find_words(_page(1, "A mosque in Izmit."), words) is None


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
    assert (find_words(_page(1, text), words) is not None) == is_found


def test_the_sentence_with_most_of_the_words_is_the_first_of_these() -> None:
    page = _page(
        1, "Sweden is here. Lakes abound.", "One. Two. Three. The lakes and the lake of the north.",
        "A lake of old.",
    )  # fmt: skip
    found = find_words(page, ("lakes", "of", "sweden"))

    assert found is not None
    assert (found.element, found.text) == (3, "Two. Three. The lakes and the lake of the north.")
    assert (found.found, found.is_link) == ("lakes of", False)
    assert page.elements[3].text[found.sentence_char : found.end_char] == "The lakes and the lake of the north."


def test_words_of_titles_and_headings_do_not_count_those_of_list_items_do() -> None:
    assert find_words(_page(1, "Nothing."), ("lakes",)) is None
    assert find_words(_page(1, "A lake.", kind="list_item"), ("lakes",)) is not None


_WORDS = st.lists(st.sampled_from(["lakes", "lake", "of", "bus", "towns"]), min_size=1, unique=True)
_SENTENCES = st.lists(
    st.lists(st.sampled_from(["Lakes", "lake", "of", "bus", "bu", "Town", "x"]), min_size=1).map(
        lambda words: " ".join(words).capitalize() + "."
    ),
    max_size=4,
).map(" ".join)


@given(_WORDS, st.lists(_SENTENCES, max_size=3), st.integers(0, 2))
def test_words_are_found_as_by_looking_at_each_sentence(words: list[str], paragraphs: list[str], n_before: int) -> None:
    page = _page(1, *paragraphs)

    def has(word: str, text: str) -> bool:
        forms = {word, word.removesuffix("s")} if len(word) > 3 else {word}
        return not forms.isdisjoint(re.findall(r"\w+", text.lower()))

    sentences = [
        (element, start, end, one.text[start:end])
        for element, one in enumerate(page.elements)
        if one.kind == "paragraph"
        for start, end in sentence_spans(one.text)
    ]
    found = find_words(page, words, n_before=n_before)
    if not all(any(has(word, text) for *_, text in sentences) for word in words):
        assert found is None
        return
    # ``max`` gives the first of the largest.
    element, start, end, _ = max(sentences, key=lambda one: sum(has(word, one[3]) for word in words))
    assert found is not None
    assert (found.element, found.sentence_char, found.end_char) == (element, start, end)
    assert found.text == page.elements[element].text[found.start_char : found.end_char]
    assert len(sentence_spans(found.text)) <= n_before + 1
