"""Normal forms: what is deleted, what stays, and that nothing hangs on what stands around a character."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.search.normalise import is_void, normal_form
from mapping.search.tokens import Tokeniser

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
    assert Tokeniser("en").forms(f"about {raised} of") == Tokeniser("en").forms(f"about {plain} of")


@pytest.mark.parametrize("sign", "⁺⁻⁼⁽⁾₊₋₌₍₎")
def test_raised_signs_are_void_as_their_form_is_empty(sign: str) -> None:
    assert is_void(sign)
    assert normal_form(sign) == ""
