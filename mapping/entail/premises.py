"""Pieces of a page that a hypothesis is judged by: a span with its neighbours, and sentences that may say it better."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from kbsource.records import Page
from mapping.records import Span
from mapping.search.sentences import sentence_spans

CONTEXT_SENTENCES = 2
"""On either side of a span."""
# Scripts that have no blanks between words: there a letter counts as a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class Premise(NamedTuple):
    """Text that is taken as true; ``core`` is the half-open place of what matters in it."""

    text: str
    core: tuple[int, int]


class PageSentence(NamedTuple):
    """A sentence of a page: half-open code points of one element."""

    element: int
    start_char: int
    end_char: int
    text: str


def span_premise(page: Page, span: Span, *, n_context: int = CONTEXT_SENTENCES) -> Premise:
    """Gives the sentences that a span lies in, with so many more on either side.

    Sentences before and after are of the span's own elements; a paragraph says little about the next one.
    """
    texts = [element.text for element in page.elements[span.start_element : span.end_element + 1]]
    text = "\n".join(texts)
    start = span.start_char
    end = len(text) - len(texts[-1]) + span.end_char
    spans = sentence_spans(text)
    touched = [number for number, (first, last) in enumerate(spans) if first < end and last > start]
    if not touched:
        return Premise(text[start:end], (0, end - start))
    left = min(start, spans[max(0, touched[0] - n_context)][0])
    right = max(end, spans[min(len(spans) - 1, touched[-1] + n_context)][1])
    return Premise(text[left:right], (start - left, end - left))


def likely_sentences(page: Page, hypothesis: str, *, elements: Iterable[int], n_most: int) -> list[PageSentence]:
    """Gives the sentences of a page that share most of their words with a hypothesis, in the order of the page.

    Args:
        page: the page.
        hypothesis: the sentence that is to be entailed.
        elements: numbers of the elements that are searched; headings and the title say nothing.
        n_most: sentences given.
    """
    wanted = _words(hypothesis)
    ranked = []
    for number in sorted(elements):
        element = page.elements[number]
        if element.kind in _TITLES:
            continue
        for start, end in sentence_spans(element.text):
            sentence = PageSentence(number, start, end, element.text[start:end])
            if n_shared := len(wanted & _words(sentence.text)):
                ranked.append((-n_shared, sentence))
    return sorted(sentence for _, sentence in sorted(ranked)[:n_most])


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


_TITLES = frozenset(("title", "heading"))
