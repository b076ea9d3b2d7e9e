"""Forms of words by language, beside the cases of tests/golden/templates."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbsource.wikitext.functions.arguments import read_rules
from kbsource.wikitext.functions.inflection import inflect, plural_form, plural_index
from kbsource.wikitext.functions.numbers import format_number, group_digits, number_form, unformat_number
from tests.support.examples import examples

PLURALS = {lang: row["forms"] for row in read_rules("inflection")["plural"] for lang in row["langs"].split()}
LANGUAGES = sorted(PLURALS)
FORMS = {lang: row for row in read_rules("numbers")["format"] for lang in row["langs"].split()}


def test_a_language_stands_once_in_a_table() -> None:
    for rows in (read_rules("inflection")["plural"], read_rules("numbers")["format"], read_rules("moments")["form"]):
        langs = [lang for row in rows for lang in row["langs"].split()]
        assert len(langs) == len(set(langs))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_form_but_fractions_is_that_of_some_number(lang: str) -> None:
    found = {
        plural_index(f"{n}{decimals}", lang) for n in (*range(200), 1_000_000) for decimals in ("", ".1", ".5", ".25")
    }
    assert found == set(range(len(PLURALS[lang]) + 1)) or found == set(range(len(PLURALS[lang])))


@settings(max_examples=examples(60))
@given(st.text("0123456789.,+-eE−০১ \u00a0x", max_size=60), st.sampled_from(["en", "ru", "ar", "bn", "lt", "xx"]))
def test_a_form_is_one_of_the_forms(written: str, lang: str) -> None:
    assert plural_form(written, ["a", "b", "c"], lang) in ("a", "b", "c")


@settings(max_examples=examples(60))
@given(st.integers(-(10**12) + 1, 10**12 - 1), st.integers(0, 999), st.sampled_from(["en", "simple", *sorted(FORMS)]))
def test_what_is_formatted_is_read_again(whole: int, decimals: int, lang: str) -> None:
    form = number_form(lang)
    for text in (str(whole), f"{whole}.{decimals:03d}"):
        if form.group != form.decimal or "." not in text:  # Khmer has commas for both
            assert unformat_number(format_number(text, lang), lang) == text
    assert group_digits("123", lang) == "123".translate(form.native)


def test_long_numbers_and_words_cost_nothing() -> None:
    assert plural_form("9" * 1_000_000, ["a", "b"], "ru") == "b"
    assert plural_form("0." + "3" * 1_000_000, ["a", "b"], "en") == "b"
    word = "a" * 1_000_000
    assert inflect(word, "elative", "fi") == word
