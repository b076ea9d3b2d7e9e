"""Finds sentences of pages that may state a fact; the first that an entailment model accepts is the proof.

Source: QAMPARI (2022), section 3.1, and the released code where "released" is mentioned.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import accumulate, islice
from typing import NamedTuple

from kbsource.records import Anchor, Page
from kbsource.sentences import sentence_spans
from mapping.entail.signal import EntailmentModel, Pair, UnjudgedPair
from mapping.search.text import find_whole, fold_case

LEAST_ALIAS_CHARS = 4
"""Minimum length of an alias, in characters; shorter aliases occur everywhere. Source: the released code, which also
drops short labels."""
N_BEFORE = 2
"""Number of sentences before the sentence that names something. Source: the paper; the released code has one."""

_BLANKS = re.compile(r"[ \t\r\n\u00a0]+")
_TITLES = frozenset(("title", "heading"))
_LEAST_DIGITS = 3
_MOST_DIGITS = 127  # maximum of a number in Wikibase; longer numbers are not written out
_GOES_ON = re.compile(r"\d[.,]\d")
_WENT_BEFORE = re.compile(r"\d,\d")  # not for a point: 12.5.1954


class SearchTarget(NamedTuple):
    """A thing that is searched for in a page."""

    names: tuple[str, ...]  # distinct, non-empty names without white space at their ends, best first
    page_id: int | None = None  # page about the thing, to which links point; None without a page


class CandidateSentence(NamedTuple):
    """A sentence that names a thing, together with the sentences before it."""

    page_id: int  # id of the page that contains the sentence
    element: int  # number of the element that contains the sentence
    start_char: int  # first code point, in the element, of the first sentence
    sentence_char: int  # first code point of the sentence that names the thing
    end_char: int  # end of the sentence that names the thing, one past its last code point
    text: str  # text of the element from ``start_char`` to ``end_char``
    found: str  # name of the thing, as written in the sentence
    title: str  # title of the page


def item_names(label: str | None, aliases: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Returns the English names of an item: its label, then its aliases, without repeats.

    Args:
        label: kept even if it is short.
        aliases: (language, text); used if the language is ``en`` or a variant (``en-gb``) and the text has at least
            ``LEAST_ALIAS_CHARS``.

    Returns:
        Names as written in pages (``plain_text``).
    """
    names = [plain_text(label or "")]
    for language, text in aliases:
        if language.split("-")[0] == "en" and len(plain_text(text)) >= LEAST_ALIAS_CHARS:
            names.append(plain_text(text))
    return tuple(dict.fromkeys(name for name in names if name))


def plain_text(text: str) -> str:
    """Returns a text with white space as in a release: single spaces, none at the ends.

    >>> plain_text(" No\u00a0break ")
    'No break'
    """
    return _BLANKS.sub(" ", text).strip()


def number_names(amount: str) -> tuple[str, ...]:
    """Returns the forms that a number may have in a page: unchanged, without trailing zeros, with commas between
    thousands.

    Numbers with fewer than three digits have no names, since pages are full of them.

    >>> number_names("61390"), number_names("1250.50"), number_names("10.0"), number_names("12")
    (('61390', '61,390'), ('1250.50', '1250.5', '1,250.5'), ('10.0',), ())
    """
    try:
        value = Decimal(amount)
    except InvalidOperation:
        return ()
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS:
        return ()
    short = written_number(value)
    names = dict.fromkeys((f"{value:f}", short, f"{Decimal(short):,f}"))
    return tuple(name for name in names if sum(char.isdigit() for char in name) >= _LEAST_DIGITS)


def written_number(number: Decimal) -> str:
    """Returns a number without exponent and trailing zeros, so that equal numbers have the same text."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def year_names(year: int) -> tuple[str, ...]:
    """Returns the forms that a year may have in a page: four digits. Years with fewer digits, or before our era, are
    skipped."""
    return (str(year),) if 1000 <= year <= 9999 else ()


def text_names(text: str) -> tuple[str, ...]:
    """Returns the forms that a text may have in a page: unchanged. A text of only digits needs at least three."""
    text = plain_text(text)
    if not text or (text.isdecimal() and len(text) < _LEAST_DIGITS):
        return ()
    return (text,)


class PageSentences:
    """Searches the sentences of a page's paragraphs and list items.

    Args:
        page: the page, with its elements and anchors.
        n_before: maximum number of sentences, in the same element, before the sentence that names something.
    """

    def __init__(self, page: Page, *, n_before: int = N_BEFORE) -> None:
        self.page = page
        self.n_before = n_before
        #: numbers of the elements that are searched
        self.running = [number for number, element in enumerate(page.elements) if element.kind not in _TITLES]
        texts = [page.elements[number].text for number in self.running]
        # All elements are searched as one text, because starting a search for each element costs more than searching.
        self._text = "\n".join(texts)
        self._folded = fold_case(self._text)
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=0))[:-1]
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def find(self, sought: SearchTarget) -> list[CandidateSentence]:
        """Returns the sentences that name a thing or link to its page.

        Names are matched regardless of case, but only if no letter, digit or underscore is next to them. Numbers are
        not matched inside a longer number (1,250). If a name crosses the end of a sentence, the two sentences count as
        one. Each sentence is returned once, in the order of the names (links come last), then in page order.
        """
        places: dict[tuple[int, int, int], CandidateSentence] = {}
        for element, start, end in self._mentions(sought):
            found = self.candidate(element, start, end)
            places.setdefault((element, found.sentence_char, found.end_char), found)
        return list(places.values())

    def candidate(self, element: int, start: int, end: int) -> CandidateSentence:
        """Returns the sentence, or sentences, of an element that contain a span of it, with the sentences before
        them."""
        text, spans = self.page.elements[element].text, self.spans(element)
        starts = [first for first, _ in spans]
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        begin, stop = starts[max(0, first - self.n_before)], spans[last][1]
        place = (self.page.page_id, element, begin, starts[first], stop)
        return CandidateSentence(*place, text[begin:stop], text[start:end], self.page.title)

    def spans(self, element: int) -> list[tuple[int, int]]:
        """Returns the sentences of an element, as half-open spans."""
        if element not in self._spans:
            self._spans[element] = sentence_spans(self.page.elements[element].text)
        return self._spans[element]

    def _mentions(self, sought: SearchTarget) -> Iterator[tuple[int, int, int]]:
        """Yields the element and the half-open span of each mention, in the order of names; links come last."""
        for name in sought.names:
            if "\n" in name:  # no element contains a newline
                continue
            for found in find_whole(fold_case(name), self._text, self._folded):
                if _is_in_number(self._text, found, found + len(name)):
                    continue
                place = bisect_right(self._starts, found) - 1
                start = found - self._starts[place]
                yield self.running[place], start, start + len(name)
        if sought.page_id is not None:
            for anchor in self._anchors[sought.page_id]:
                blank = len(anchor.text) - len(anchor.text.lstrip())
                yield anchor.element, anchor.start + blank, anchor.start + len(anchor.text.rstrip())

    @cached_property
    def _anchors(self) -> defaultdict[int | None, list[Anchor]]:
        by_target: defaultdict[int | None, list[Anchor]] = defaultdict(list)
        wanted = set(self.running)
        for anchor in self.page.anchors:
            if anchor.element in wanted and anchor.text.strip():
                by_target[anchor.target_page_id].append(anchor)
        return by_target


def _is_in_number(text: str, start: int, end: int) -> bool:
    """Returns whether digits at an edge of a span are part of a longer number."""
    goes_on = _GOES_ON.match(text, end - 1) is not None
    return goes_on or (start > 1 and _WENT_BEFORE.match(text, start - 2) is not None)


def released_case(text: str) -> str:
    """Returns a text in the case of released proofs: each sentence in lower case, except for its first letter.

    >>> released_case("The River Ullane rises here. It is Long.")
    'The river ullane rises here. It is long.'
    """
    return " ".join(text[start:end].capitalize() for start, end in sentence_spans(text))


LEAST_ENTAILMENT = 0.0019540872
"""A candidate is accepted if its entailment probability is above this.

Source: the released code of QAMPARI, for its default model (``mapping.entail.signal.DEFAULT_MODEL``). That code swaps
answer and entity in the hypothesis. According to the paper the threshold drops 70 % of the wrong candidates and 7.5 %
of the correct ones. If that matters to you, choose a new threshold on judged candidates.
"""
FACTS_AT_ONCE = 4096


class ClaimedFact(NamedTuple):
    """A fact to be proved."""

    number: int
    hypothesis: str  # the fact as a sentence; empty if no model is used
    candidates: tuple[CandidateSentence, ...]  # tried in this order


class Proof(NamedTuple):
    """The outcome for a fact."""

    fact: ClaimedFact  # the fact to be proved
    candidate: CandidateSentence | None  # the first candidate that was accepted; None if no candidate was accepted
    entailment: float | None  # entailment probability of this candidate; None without candidate or model
    n_judged: int  # number of candidates given to the model, up to and including the accepted one
    n_unjudged: int  # number of these candidates that the model could not judge, such as overlong ones


def prove_facts(
    facts: Iterable[ClaimedFact],
    model: EntailmentModel | None,
    *,
    least: float = LEAST_ENTAILMENT,
    n_at_once: int = FACTS_AT_ONCE,
) -> Iterator[Proof]:
    """Determines the outcome of each fact, in order.

    Args:
        facts: in any order; ``n_at_once`` of them are held in memory.
        model: judges the candidates; if a candidate is too long, the sentence that names the answer or entity is
            truncated last. None: the first candidate is accepted.
        least: an accepted candidate has an entailment probability above this.
        n_at_once: number of facts processed together; their candidates are judged in rounds.
    """
    waiting = iter(facts)
    if model is None:
        yield from (Proof(fact, next(iter(fact.candidates), None), None, 0, 0) for fact in waiting)
        return
    while group := list(islice(waiting, n_at_once)):
        yield from _prove_together(group, model, least)


def _prove_together(facts: list[ClaimedFact], model: EntailmentModel, least: float) -> list[Proof]:
    proofs = [Proof(fact, None, None, 0, 0) for fact in facts]
    pending = [number for number, fact in enumerate(facts) if fact.candidates]
    while pending:
        tried = [facts[number].candidates[proofs[number].n_judged] for number in pending]
        pairs = [
            Pair(
                candidate.text,
                facts[number].hypothesis,
                (candidate.sentence_char - candidate.start_char, len(candidate.text)),
            )
            for number, candidate in zip(pending, tried, strict=True)
        ]
        for number, candidate, verdict in zip(pending, tried, model.judge(pairs), strict=True):
            before = proofs[number]
            if isinstance(verdict, UnjudgedPair):
                after = before._replace(n_unjudged=before.n_unjudged + 1)
            elif verdict.entailment > least:
                after = before._replace(candidate=candidate, entailment=verdict.entailment)
            else:
                after = before
            proofs[number] = after._replace(n_judged=before.n_judged + 1)
        pending = [
            number
            for number in pending
            if proofs[number].candidate is None and proofs[number].n_judged < len(facts[number].candidates)
        ]
    return proofs
