"""Tokens as in the Penn Treebank."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import TreebankWordTokenizer  # type: ignore[import-untyped]  # NLTK is not typed

from mapping.sources.forms.ptb import token_spans
from tests.support.real_data import real_path

CASES = {
    "World Cup 'qualifier'.": "World Cup ' qualifier ' .",
    "She didn't; he'll, they're 'tis.": "She did n't ; he 'll , they 're 't is .",
    "The ’90s and rock ’n’ roll: it’s": "The ’90s and rock ’ n ’ roll : it ’s",
    "I cannot (gonna) say": "I can not ( gon na ) say",
    "Mr. J. R. Hale of the U.S. left Inc. behind.": "Mr. J. R. Hale of the U.S. left Inc. behind .",
    "It ended. He left": "It ended . He left",
    'He said "so." Then': 'He said " so . " Then',
    "In the U.S.": "In the U.S .",
    "at 12:30, 3,000 of them: all": "at 12:30 , 3,000 of them : all",
    "well... no--never": "well ... no -- never",
    "R&D of AT&T & co": "R&D of AT&T & co",
    "$5.50 or 20%?!": "$ 5.50 or 20 % ? !",
    "the dogs' bone": "the dogs ' bone",
    "state-of-the-art": "state-of-the-art",
    "«Élodie» … “fin”": "« Élodie » … “ fin ”",
    "": "",
    "...": "...",
    "'": "'",
}


@pytest.mark.parametrize("text", CASES)
def test_tokens_are_those_of_the_treebank(text: str) -> None:
    assert " ".join(text[start:end] for start, end in token_spans(text)) == CASES[text]


@given(st.text("aZ.,:'&-\" \n’()9nNtTsS", max_size=30))
def test_tokens_are_all_of_the_text_but_white_space_in_order(text: str) -> None:
    spans = list(token_spans(text))

    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())
    assert all(start < end and not text[start:end].isspace() for start, end in spans)


def sentences(text: str) -> Iterator[tuple[str, list[str]]]:
    """Gives sentences as the tokens part them, with their tokens."""
    begin, tokens = 0, []
    for start, end in token_spans(text):
        tokens.append(text[start:end])
        closed = [token for token in tokens if token not in tuple("])}>\"'")]
        if closed and closed[-1] == "." and text[end : end + 1].isspace():
            yield text[begin:end], tokens
            begin, tokens = end, []
    if tokens:
        yield text[begin:], tokens


# What the Treebank's script does not know: typographic quotes, opening single quotes, names with an ampersand.
UNKNOWN = re.compile(r"''|``|[’‘“”„«»…]|(?:^|[\s(\[\"])'\w|[:,]{2}|\w&\w")


def test_real_sentences_have_the_tokens_that_nltk_gives_them() -> None:
    texts = [path.read_text("utf-8") for path in sorted(real_path("datasets/wned-wiki/RawText").iterdir())]
    pages = sorted(real_path("datasets/fever/wiki-pages").iterdir())
    texts += [json.loads(line)["text"] for path in pages for line in path.read_text("utf-8").splitlines()]
    nltk = TreebankWordTokenizer()
    known = [one for text in texts for one in sentences(text) if not UNKNOWN.search(one[0])]

    assert len(known) > 2000
    for sentence, tokens in known:
        assert tokens == [re.sub("``|''", '"', token) for token in nltk.tokenize(sentence)]
