"""Normal forms: what is deleted, what stays, and that nothing hangs on what stands around a character."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import defaultdict
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbsource.sentences import sentence_spans
from mapping.search.text import find_whole, fold_case, is_void, normal_form
from mapping.search.tokens import Tokeniser

tokeniser = cache(Tokeniser)
FORMS = {
    "lower case": ("Lincoln", "lincoln"),
    "ASCII punctuation goes": ("U.S.-$5+`^~|", "us5"),
    "hyphen inside goes": ("well-known", "wellknown"),
    "curly quotes and dashes go": ("“don’t”—–…", "dont"),
    "minus sign goes as the hyphen does": ("−5", "5"),
    "other currency and symbols stay": ("€5°™", "€5°™"),
    "accents stay": ("Émigré", "émigré"),
    "decomposed is composed": ("E\u0301migre\u0301", "émigré"),
    "sharp s folds": ("Straße", "strasse"),
    "final sigma is a sigma": ("ΟΔΟΣ", "οδοσ"),
    "dotted capital": ("İ", "i\u0307"),
    "Chinese stays, its punctuation goes": ("北京。", "北京"),
    "Thai, Arabic, Devanagari stay": ("ไทยعربदेव", "ไทยعربदेव"),
    "emoji stays": ("👩‍🚀", "👩🚀"),
    "letters outside the BMP": ("𝔘x", "𝔘x"),
    "soft hyphen and direction marks go": ("a\u00adb\u200e\u200f", "ab"),
    "control characters go": ("a\x07b\x7f", "ab"),
    "what decomposes to punctuation goes": ("\u037e\u1fef", ""),
    "nothing of nothing": ("", ""),
    "punctuation alone": ("...!?", ""),
}


@pytest.mark.parametrize(("token", "form"), FORMS.values(), ids=FORMS.keys())
def test_normal_form(token: str, form: str) -> None:
    assert normal_form(token) == form


@pytest.mark.parametrize("upper", ["STRASSE", "ΟΔΟΣ", "ÉMIGRÉ", "ЖУК", "U.S."])
def test_letter_case_makes_no_difference(upper: str) -> None:
    assert normal_form(upper) == normal_form(upper.lower()) == normal_form(upper.title())


@given(st.text())
def test_form_is_empty_exactly_when_all_characters_are_void(token: str) -> None:
    assert (not normal_form(token)) == all(map(is_void, token))


@given(st.text())
def test_ascii_shortcut_and_full_rule_agree(token: str) -> None:
    ascii_part = "".join(char for char in token if char.isascii())
    assert normal_form(ascii_part + "é") == normal_form(ascii_part) + "é"


@given(st.text(), st.text())
def test_void_characters_between_words_do_not_matter(left: str, right: str) -> None:
    assert normal_form(f"{left}.{right}") == normal_form(left + right)


@given(st.text())
def test_canonically_equal_texts_have_equal_forms(token: str) -> None:
    composed, decomposed = unicodedata.normalize("NFC", token), unicodedata.normalize("NFD", token)
    assert normal_form(composed) == normal_form(decomposed)


@pytest.mark.parametrize(
    ("raised", "plain"),
    [
        ("10¹⁸", "1018"),
        ("10^18", "1018"),
        ("3×10^8", "3×108"),
        ("10^(18)", "1018"),
        ("10⁻¹⁸", "10−18"),
        ("10^-18", "10−18"),
        ("10^−18", "10−18"),
        ("x^(k)", "xk"),
        ("m^2", "m2"),
        ("m⁻²", "m−2"),
        ("xⁿ⁺¹", "xn+1"),
        ("H₂O", "H2O"),
    ],
)
def test_what_is_raised_or_lowered_reads_as_on_the_line(raised: str, plain: str) -> None:
    assert normal_form(raised) == normal_form(plain)
    assert tokeniser("en").forms(f"about {raised} of") == tokeniser("en").forms(f"about {plain} of")


@pytest.mark.parametrize("sign", "⁺⁻⁼⁽⁾₊₋₌₍₎")
def test_raised_signs_are_void_as_their_form_is_empty(sign: str) -> None:
    assert is_void(sign)
    assert normal_form(sign) == ""


@pytest.mark.parametrize(
    "sentence",
    [
        "They met Dr. Smith of St. Ives.",
        "It opens on Wed. 3 May and Thurs. Evening.",
        "On Tue. Night fell over Fri. Harbour.",
        "Under Henry (r. Henry VII) and John (fl. 1200) it grew (b. AD 900).",
        "Ann, b. 1950, d. 1990, came Sun. 4 May.",
    ],
)
def test_no_sentence_ends_behind_an_abbreviation(sentence: str) -> None:
    assert sentence_spans(sentence) == [(0, len(sentence))]


def test_words_that_are_abbreviations_elsewhere_end_sentences() -> None:
    text = "They were wed. He sat. Under the sun. In plan d. So it was."
    assert [text[start:end][-4:] for start, end in sentence_spans(text)] == ["wed.", "sat.", "sun.", "n d.", "was."]


def test_several_stops_after_an_abbreviation_end_a_sentence() -> None:
    text = "He met Dr. No. Then Mr... It rained?! Yes."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "He met Dr. No.",
        "Then Mr...",
        "It rained?!",
        "Yes.",
    ]


def test_a_sentence_may_end_within_a_formula() -> None:
    text = "Here $E = mc^2.$ Then $x_1, y. z$ is $A.$ It cost $5. $B$ is."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        "Here $E = mc^2.$",
        "Then $x_1, y. z$ is $A.$",
        "It cost $5.",
        "$B$ is.",
    ]


EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
ODD = "iIİıſsSKkKßẞςσΣµμΜͅιΙᾈẛṡﬅﬆꙋᲈÅåΩωǅǆǄ_ -.'a1٣é"


@pytest.mark.slow
def test_folding_keeps_every_code_point_in_its_place() -> None:
    assert all(len(fold_case(char)) == 1 for char in EVERY)
    every = "".join(EVERY)
    assert all(folded == fold_case(alone) for folded, alone in zip(fold_case(every), EVERY, strict=True))


def test_every_code_point_matches_what_it_is_folded_to() -> None:
    for start in range(0, len(EVERY), 1 << 12):
        part = "".join(EVERY[start : start + (1 << 12)])
        assert re.fullmatch(re.escape(part), fold_case(part), re.IGNORECASE)
        assert re.fullmatch(re.escape(fold_case(part)), part, re.IGNORECASE)


@pytest.mark.slow
def test_code_points_match_exactly_those_that_are_folded_alike() -> None:
    alike = defaultdict(set)
    for char in EVERY:
        alike[fold_case(char)].add(char)
    groups = [group for group in alike.values() if len(group) > 1]
    assert len(groups) > 1300
    changed = {char for group in groups for char in group}
    changing = "".join(sorted(changed))
    for group in groups:
        for char in group:
            assert set(re.findall(re.escape(char), changing, re.IGNORECASE)) == group
    # No other code point is matched by these, or has a lower case but itself.
    others = "".join(char for char in EVERY if char not in changed)
    assert not re.search(f"[{re.escape(changing)}]", others, re.IGNORECASE)
    assert all(char.lower() == char for char in others)


@given(st.text(ODD, min_size=1, max_size=4), st.text(ODD, max_size=30))
def test_the_same_as_by_regular_expression(name: str, text: str) -> None:
    expected = [found.span() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    found = [(start, start + len(name)) for start in find_whole(fold_case(name), text, fold_case(text))]
    assert found == expected


@given(st.text(min_size=1, max_size=5), st.text(max_size=30))
def test_the_same_as_by_regular_expression_for_any_letters(name: str, text: str) -> None:
    text = f"{text} {name.swapcase()} {name}"
    expected = [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)]
    assert list(find_whole(fold_case(name), text, fold_case(text))) == expected
