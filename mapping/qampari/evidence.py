"""Sentences of pages that may say a fact, and the first of them that an entailment model accepts: the proof.

Source: QAMPARI (2022), section 3.1, and the released code for what is named as released.
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
from mapping.entail.signal import EntailmentModel, Pair, Refused
from mapping.search.text import find_whole, fold_case

LEAST_ALIAS_CHARS = 4
"""Shorter aliases are found everywhere. Source: the released code, which drops short labels too."""
N_BEFORE = 2
"""Sentences before the one that names something. Source: the paper; the released code has one."""

_BLANKS = re.compile(r"[ \t\r\n\u00a0]+")
_TITLES = frozenset(("title", "heading"))
_LEAST_DIGITS = 3
_MOST_DIGITS = 127  # of a number in Wikibase; none is written out that would be longer
_GOES_ON = re.compile(r"\d[.,]\d")
_WENT_BEFORE = re.compile(r"\d,\d")  # no point: 12.5.1954


class Sought(NamedTuple):
    """A thing that is looked for in a page."""

    names: tuple[str, ...]  # best first, each once; none empty or with white space around it
    page_id: int | None = None  # of its own page, which links lead to; None where it has none


class Candidate(NamedTuple):
    """A sentence that names a thing, behind the sentences before it."""

    page_id: int  # page that it stands in
    element: int  # number of the element
    start_char: int  # where the first sentence begins, in code points of the element
    sentence_char: int  # where the sentence begins that names the thing
    end_char: int  # where that sentence ends
    text: str  # from ``start_char`` to ``end_char``
    found: str  # the name as it stands there
    title: str  # of the page


def item_names(label: str | None, aliases: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """What an item is called in English: its label, then its aliases, each once.

    Args:
        label: kept however short.
        aliases: (language, text); those in ``en`` and its variants (``en-gb``) of at least ``LEAST_ALIAS_CHARS``.

    Returns:
        Names as pages have them (``plain_text``).
    """
    names = [plain_text(label or "")]
    for language, text in aliases:
        if language.split("-")[0] == "en" and len(plain_text(text)) >= LEAST_ALIAS_CHARS:
            names.append(plain_text(text))
    return tuple(dict.fromkeys(name for name in names if name))


def plain_text(text: str) -> str:
    """A text with the white space that texts of a knowledge source have: single blanks, none around it.

    >>> plain_text(" No\u00a0break ")
    'No break'
    """
    return _BLANKS.sub(" ", text).strip()


def number_names(amount: str) -> tuple[str, ...]:
    """How a page may write a number: as it is, without zeros at its end, with commas between thousands.

    What has fewer than three digits is no name, since pages are full of it.

    >>> number_names("61390"), number_names("1250.50"), number_names("10.0"), number_names("12")
    (('61390', '61,390'), ('1250.50', '1250.5', '1,250.5'), ('10.0',), ())
    """
    try:
        value = Decimal(amount)
    except InvalidOperation:
        return ()
    if not value.is_finite() or abs(value.adjusted()) > _MOST_DIGITS:
        return ()
    short = plain_number(value)
    names = dict.fromkeys((f"{value:f}", short, f"{Decimal(short):,f}"))
    return tuple(name for name in names if sum(char.isdigit() for char in name) >= _LEAST_DIGITS)


def plain_number(number: Decimal) -> str:
    """A number without an exponent or zeros at its end, so that equal numbers have one text."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def year_names(year: int) -> tuple[str, ...]:
    """How a page may write a year: four digits; none for years that have fewer, or are before our era."""
    return (str(year),) if 1000 <= year <= 9999 else ()


def text_names(text: str) -> tuple[str, ...]:
    """How a page may write a text: as it is; one of digits alone needs three of them."""
    text = plain_text(text)
    if not text or (text.isdecimal() and len(text) < _LEAST_DIGITS):
        return ()
    return (text,)


class PageSentences:
    """The sentences of a page's paragraphs and list items, to look for things in.

    Args:
        page: the page; of it elements and anchors are needed.
        n_before: most sentences before the one that names something; of the same element.
    """

    def __init__(self, page: Page, *, n_before: int = N_BEFORE) -> None:
        self.page = page
        self.n_before = n_before
        #: numbers of the elements that are looked into
        self.running = [number for number, one in enumerate(page.elements) if one.kind not in _TITLES]
        texts = [page.elements[number].text for number in self.running]
        # One text for all: to search each element by itself costs more than the search.
        self._text = "\n".join(texts)
        self._folded = fold_case(self._text)
        self._starts = list(accumulate((len(text) + 1 for text in texts), initial=0))[:-1]
        self._spans: dict[int, list[tuple[int, int]]] = {}

    def find(self, sought: Sought) -> list[Candidate]:
        """The sentences that name a thing or link to its page.

        Names are found without regard to case where no letter, digit or underscore stands before or behind them, and
        numbers where they are no part of a longer one (1,250). A name that runs over the end of a sentence makes one
        of the two. Each sentence comes once: by order of the names, by link last, then in the order of the page.
        """
        places: dict[tuple[int, int, int], Candidate] = {}
        for element, start, end in self._mentions(sought):
            found = self.candidate(element, start, end)
            places.setdefault((element, found.sentence_char, found.end_char), found)
        return list(places.values())

    def candidate(self, element: int, start: int, end: int) -> Candidate:
        """The sentence of an element that a place in it is in, or sentences, behind those before."""
        text, spans = self.page.elements[element].text, self.spans(element)
        starts = [first for first, _ in spans]
        first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
        begin, stop = starts[max(0, first - self.n_before)], spans[last][1]
        place = (self.page.page_id, element, begin, starts[first], stop)
        return Candidate(*place, text[begin:stop], text[start:end], self.page.title)

    def spans(self, element: int) -> list[tuple[int, int]]:
        """The sentences of an element, as half-open spans."""
        if element not in self._spans:
            self._spans[element] = sentence_spans(self.page.elements[element].text)
        return self._spans[element]

    def _mentions(self, sought: Sought) -> Iterator[tuple[int, int, int]]:
        """Element and half-open place, in the order of names, then links."""
        for name in sought.names:
            if "\n" in name:  # no element has one
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
    """Whether digits at an edge of a place are a part of a longer number."""
    goes_on = _GOES_ON.match(text, end - 1) is not None
    return goes_on or (start > 1 and _WENT_BEFORE.match(text, start - 2) is not None)


def released_case(text: str) -> str:
    """A text as released proofs are written: each sentence in lower case but for its first letter.

    >>> released_case("The River Ullane rises here. It is Long.")
    'The river ullane rises here. It is long.'
    """
    return " ".join(text[start:end].capitalize() for start, end in sentence_spans(text))


LEAST_ENTAILMENT = 0.0019540872
"""A candidate whose probability of entailment is above this is accepted.

Source: the released code of QAMPARI, for its default model (``mapping.entail.signal.DEFAULT_MODEL``). There answer and
entity stand in each other's place in the hypothesis, and the paper says that the threshold drops 70 % of the wrong
candidates and 7.5 % of the right ones: choose it anew, on judged candidates, where that matters.
"""
FACTS_AT_ONCE = 4096


class Fact(NamedTuple):
    """What is to be proved."""

    number: int
    hypothesis: str  # the fact as a sentence; empty where no model is asked
    candidates: tuple[Candidate, ...]  # in the order in which they are tried


class Proof(NamedTuple):
    """The outcome of a fact."""

    fact: Fact  # what was to be proved
    candidate: Candidate | None  # the first that was accepted; None where none was
    entailment: float | None  # its probability; None where no candidate was accepted
    n_judged: int  # candidates that the model was asked about; those behind the accepted one are not
    n_refused: int  # those of them that no model can judge, such as for their length


def prove_facts(
    facts: Iterable[Fact],
    model: EntailmentModel | None,
    *,
    least: float = LEAST_ENTAILMENT,
    n_at_once: int = FACTS_AT_ONCE,
) -> Iterator[Proof]:
    """The outcome of each fact, in their order.

    Args:
        facts: in any order; memory holds ``n_at_once`` of them.
        model: judges the candidates; the sentence that names the answer or entity is cut last. None: the first
            candidate is accepted.
        least: probability of entailment that an accepted candidate is above.
        n_at_once: facts that are worked on together; candidates are judged in rounds over these.
    """
    waiting = iter(facts)
    if model is None:
        yield from (Proof(fact, next(iter(fact.candidates), None), None, 0, 0) for fact in waiting)
        return
    while group := list(islice(waiting, n_at_once)):
        yield from _prove_together(group, model, least)


def _prove_together(facts: list[Fact], model: EntailmentModel, least: float) -> list[Proof]:
    proofs = [Proof(fact, None, None, 0, 0) for fact in facts]
    pending = [number for number, one in enumerate(facts) if one.candidates]
    while pending:
        tried = [facts[number].candidates[proofs[number].n_judged] for number in pending]
        pairs = [
            Pair(one.text, facts[number].hypothesis, (one.sentence_char - one.start_char, len(one.text)))
            for number, one in zip(pending, tried, strict=True)
        ]
        for number, candidate, verdict in zip(pending, tried, model.judge(pairs), strict=True):
            before = proofs[number]
            if isinstance(verdict, Refused):
                after = before._replace(n_refused=before.n_refused + 1)
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
