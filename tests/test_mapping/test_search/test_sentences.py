"""The sentence of a page that says an evidence in other words."""

from __future__ import annotations

import pytest

from kbsource.records import Element
from mapping.search.sentences import named_sentence
from mapping.search.tokenised_page import TokenisedPage
from tests.support.tokenisers import tokeniser

TITLE = "Abraham Lincoln"
BODY = (
    "Abraham Lincoln (February 12, 1809 – April 15, 1865) was the 16th president of the United States.",
    "Lincoln was born into poverty in a log cabin in Kentucky. He was raised on the frontier. In 1860 he won.",
    "Abraham Lincoln was born on February 12, 1809, the second child of Thomas Lincoln and Nancy Hanks Lincoln, in a "
    "log cabin on Sinking Spring Farm near Hodgenville, Kentucky. He was named after his grandfather.",
    "The Lincoln who was born in Hodgenville in a cabin, in the old State of Kentucky, had never been to Paris.",
    "In the house Mary Todd of Lexington was often lonely.",
)
ELEMENTS = [
    Element("title", 0, 0, "", "", TITLE),
    Element("heading", 0, 0, "", "", "Hodgenville born"),
    *(Element("paragraph", 0, 0, "", "", text) for text in BODY),
]
CASES = {
    "the example of the command": ("Born in Hodgenville, Kentucky", "The Lincoln who was born in Hodgenville"),
    "what the title says need not be said again": ("Lincoln won in 1860", "In 1860 he won."),
    "other words count too": ("Lincoln was raised on the frontier in 1860", None),
    "a name of the title beside one that is not": ("Abraham Lincoln married Todd", None),
    "rare words count for more": ("He died in Paris", None),
    "names alone are enough": ("Hodgenville, Sinking Spring", "Abraham Lincoln was born on February"),
    "a number is a name": ("the president from 1865", "Abraham Lincoln (February 12"),
    "a name that the page has not": ("Born in Springfield, Kentucky", None),
    "a word that begins a sentence is no name": ("In Lexington she was lonely", "In the house Mary Todd"),
    "no names": ("he was raised on the frontier", None),
    "names of the title alone": ("the child Abraham", None),
    "nothing": ("...", None),
}


@pytest.mark.parametrize(("evidence", "begins"), CASES.values(), ids=CASES)
def test_a_sentence_has_all_names_and_most_of_the_other_words(evidence: str, begins: str | None) -> None:
    page = TokenisedPage(ELEMENTS, tokeniser("en"))
    span = named_sentence(evidence, page, TITLE)
    found = None if span is None else ELEMENTS[span.start_element].text[span.start_char : span.end_char]
    if begins is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(begins)
        assert found.endswith(".")


def test_of_the_paragraph_as_it_stands_today_the_sentence_is_given() -> None:
    page = TokenisedPage(ELEMENTS[:5], tokeniser("en"))
    span = named_sentence("Born in Hodgenville, Kentucky", page, TITLE)
    assert span is not None
    assert (span.start_element, span.start_char, span.score, span.match) == (4, 0, 0.0, "names")
    assert ELEMENTS[4].text[: span.end_char].endswith("near Hodgenville, Kentucky.")
