"""Tokens: true offsets, and the invariant that a slice at tokens' ends has the tokens of its place."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mapping.search import tokens
from mapping.search.text import is_void
from mapping.search.tokens import Tokeniser, is_word_boundary
from tests.support.examples import examples

LANGS = ["en", "de", "fr", "ru", "zh", "ja", "th", "ko", "vi", "tr", "ar", "he", "xx", "simple", "tlh", "be-x-old"]
TEXTS = {
    "words and punctuation": ("Born in Hodgenville, Kentucky.", "Born|in|Hodgenville|Kentucky"),
    "punctuation alone is no token": ("a — b ... (c)", "a|b|c"),
    "hyphenated words are parted": ("a well-known co-op", "a|well|known|co|op"),
    "abbreviations keep their full stop": ("the (U.S.), e.g. at 5 a.m.", "the|U.S.|e.g.|at|5|a.m."),
    "clitics": ("Lincoln’s don't", "Lincoln|’s|do|n't"),
    "typographic ranges are parted as plain ones": ("1861–1865 1861-1865", "1861|1865|1861|1865"),
    "em dash parts words": ("war—peace", "war|peace"),
    "numbers stay whole": ("1,000.5 km", "1,000.5|km"),
    "units": ("10km", "10|km"),
    "Chinese letters one by one": ("在北京abc。", "在|北|京|abc"),
    "kana with marks": ("カ\u3099タ・ナ", "カ\u3099|タ|ナ"),
    "Thai letters with their marks": ("ที่ นี้", "ที่|นี้"),
    "combining characters stay with their letter": ("cafe\u0301 x", "cafe\u0301|x"),
    "powers": ("3x10^8 10^-18 (10^18)", "3x10^8|10^|18|10^18"),
    "emoji": ("🚀🚀 fine", "🚀|🚀|fine"),
    "no-break and ideographic spaces": ("a\u00a0b\u3000c", "a|b|c"),
    "blank": (" \t\u00a0", ""),
    "empty": ("", ""),
}
# Pieces that spaCy's rules for several languages split, glue or treat by special case.
ODD = [" ", "\u00a0"]
ODD += (
    "^ ⁻ ¹⁸ U.S. a.m don't n't cannot Ph.D. -led 10 km 's ’ – — / c'est-à-dire http://a.b/c C++ $ 北 タ \u0e48 \u0301 "
    "\u200d 👩 :) e E . , ( İ ß & @ % \u200b x"
).split()


@cache
def tokeniser(lang: str) -> Tokeniser:
    return Tokeniser(lang)


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_english_tokens(text: str, expected: str) -> None:
    found = tokeniser("en").tokens(text)
    assert "|".join(text[token.start : token.end] for token in found) == expected


def test_plain_and_typographic_writing_have_equal_forms() -> None:
    forms = tokeniser("en").forms
    assert forms("“1861–1865,” he didn’t say—once") == forms('"1861-1865", he didn\'t say -- once')


@pytest.mark.slow
@pytest.mark.parametrize("lang", LANGS)
def test_every_language_has_rules_without_further_packages(lang: str) -> None:
    assert [token.form for token in tokeniser(lang).tokens("Alpha beta. 北京")] == ["alpha", "beta", "北", "京"]


def test_name_says_version_and_rules() -> None:
    assert tokeniser("en").name.startswith("spacy 3.")
    assert [tokeniser(lang).name.split()[-1] for lang in ("en", "zh", "simple", "tlh")] == ["en", "xx", "en", "xx"]


def check_laws(text: str, tested: Tokeniser, *, n_slices: int = 40) -> None:
    found = tested.tokens(text)
    forms = [token.form for token in found]
    assert forms == tested.forms(text)
    assert all(forms)
    assert [tested.token(text, index) for index in range(len(found))] == found
    ends = [0] + [token.end for token in found]
    assert all(end <= token.start < token.end for end, token in zip(ends, found, strict=False))
    covered = {place for token in found for place in range(token.start, token.end)}
    assert all(is_void(char) or char.isspace() for place, char in enumerate(text) if place not in covered)
    spans = [(first, last) for first in range(len(found)) for last in range(first, len(found))]
    if len(spans) > n_slices:
        spans = random.Random(0).sample(spans, n_slices)
    for first, last in spans:
        assert tested.forms(text[found[first].start : found[last].end]) == forms[first : last + 1]


@pytest.mark.parametrize("lang", ["en", "fr", "de", "xx"])
@given(parts=st.lists(st.sampled_from(ODD), max_size=12))
@example(parts=["c'est-à-dire"])
@example(parts=["Ph.D.", "-led", "U.S.", "-led"])
@settings(max_examples=examples(150))
def test_slices_have_the_tokens_of_their_place(lang: str, parts: list[str]) -> None:
    check_laws("".join(parts), tokeniser(lang))


@given(st.text())
@settings(max_examples=examples(150))
def test_slices_of_any_text_have_the_tokens_of_their_place(text: str) -> None:
    check_laws(text, tokeniser("en"))


def test_a_split_that_is_not_stable_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with_rules = Tokeniser("en")
    # Rules that part "abc" into three, but leave "bc" whole: a slice would have other tokens than its place.
    rules = {"abc": [(0, 1), (1, 2), (2, 3)]}
    monkeypatch.setattr(with_rules, "_ask", lambda piece: rules.get(piece, [(0, len(piece))]))
    assert with_rules.forms("abc") == ["abc"]


def test_full_caches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "_CACHE_SIZE", 3)
    english, text = Tokeniser("en"), "one two-three don't U.S. one five's six"
    assert [english.forms(text) for _ in range(3)] == [tokeniser("en").forms(text)] * 3


@pytest.mark.parametrize("long_word", ["{}" + "x" * 60, "{}—" + "word—" * 20])
def test_words_too_long_to_be_kept_do_not_pile_up_either(monkeypatch: pytest.MonkeyPatch, long_word: str) -> None:
    monkeypatch.setattr(tokens, "_CACHE_SIZE", 20)
    english = Tokeniser("en")
    sizes = []
    for number in range(100):
        english.forms(long_word.format(number))
        sizes.append(len(english._rules.vocab))
    assert max(sizes) - min(sizes) <= 21


@pytest.mark.parametrize("piece", ["😀", "don't", "a.B", "<a", "'s", "\u0301"])
def test_long_text_without_spaces_is_one_token_and_takes_no_time(piece: str) -> None:
    text = "x" + piece * 30_000 + "x"
    assert [(token.start, token.end) for token in tokeniser("en").tokens(text)] == [(0, len(text))]


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("party", 1, False),
        ("an art", 3, True),
        ("art.", 3, True),
        ("a_b", 1, False),
        ("cafe\u0301", 4, False),
        ("3rd", 1, False),
        ("在北京", 1, True),
        ("abc北", 3, True),
        ("art", 0, True),
        ("art", 3, True),
    ],
)
def test_word_boundaries(text: str, position: int, expected: bool) -> None:
    assert is_word_boundary(text, position) is expected
