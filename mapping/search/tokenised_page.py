"""The tokens of a page in search order, computed once for all evidence of the page."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate, chain

from kbsource.records import Element
from mapping.search.tokens import Tokeniser

_HEADING = "heading"
_TITLE = "title"


class TokenisedPage:
    """Token ids of a page: body elements first, then headings, then the title, each in page order.

    A *place* is the index of an element in this order; an earlier place is preferred. Offsets are computed only for
    requested spans.

    Attributes:
        elements: the page's elements, numbered as in the release.
        tokeniser: the tokeniser that produced the tokens.
        order: element number of each place.
        n_body: number of places in the body.
        ids: token ids of all places in sequence. Ids are specific to this page.
        bounds: index in ``ids`` of each place's first token; the last entry is the number of tokens.
        vocabulary: normal form -> id, ids from 0.
    """

    def __init__(self, elements: Sequence[Element], tokeniser: Tokeniser) -> None:
        self.elements = elements
        self.tokeniser = tokeniser
        numbers = range(len(elements))
        body = [number for number in numbers if elements[number].kind not in (_HEADING, _TITLE)]
        headings = [number for number in numbers if elements[number].kind == _HEADING]
        titles = [number for number in numbers if elements[number].kind == _TITLE]
        self.order = body + headings + titles
        self.n_body = len(body)
        forms = [tokeniser.forms(elements[number].text) for number in self.order]
        self.bounds = [0, *accumulate(map(len, forms))]
        self.vocabulary: dict[str, int] = {}
        new_id = self.vocabulary.setdefault
        self.ids = [new_id(form, len(self.vocabulary)) for form in chain.from_iterable(forms)]
        # The ids as a text, each as the character with that code point, so that str.find can search for sequences. No
        # page has as many distinct tokens as there are code points.
        self._chars = "".join(map(chr, self.ids))
        self._reaches: dict[int, list[int]] = {1: self.bounds[1:]}

    def ids_of(self, forms: Sequence[str]) -> list[int]:
        """Returns the page's ids of normal forms; -1 for forms that the page does not contain."""
        number_of: Callable[[str, int], int] = self.vocabulary.get
        return [number_of(form, -1) for form in forms]

    def place_of(self, token: int) -> int:
        """Returns the place that a token belongs to."""
        return bisect_right(self.bounds, token) - 1

    def reach(self, max_elements: int) -> list[int]:
        """Returns, for each place, the end of the tokens that a span starting in it can contain.

        A span crosses into the next element of the body if that is also the next element of the page, up to
        ``max_elements`` elements. Spans never cross headings or the title.
        """
        known = self._reaches.get(max_elements)
        if known is None:
            known = self._reaches[max_elements] = [
                self.bounds[self._last_place(place, max_elements) + 1] for place in range(len(self.order))
            ]
        return known

    def _last_place(self, place: int, max_elements: int) -> int:
        last = place
        while (
            last + 1 < self.n_body and last + 1 - place < max_elements and self.order[last + 1] == self.order[last] + 1
        ):
            last += 1
        return last

    def find(self, ids: Sequence[int], *, max_elements: int = 1) -> int | None:
        """Returns the first index in ``ids`` where a sequence of ids occurs; None if it does not occur."""
        reach = self.reach(max_elements)
        found = (
            position for position in self.occurrences(ids) if position + len(ids) <= reach[self.place_of(position)]
        )
        return next(found, None)

    def occurrences(self, ids: Sequence[int]) -> list[int]:
        """Returns all indices where a sequence of ids occurs, ascending; borders of elements are ignored."""
        found: list[int] = []
        if not ids or min(ids) < 0:
            return found
        wanted, position = "".join(map(chr, ids)), -1
        while (position := self._chars.find(wanted, position + 1)) >= 0:
            found.append(position)
        return found

    def locate(self, first: int, end: int) -> tuple[int, int, int, int]:
        """Returns the element and character where a span of tokens starts, and the element and character where it ends.

        Args:
            first, end: half-open indices in ``ids``; the span is not empty.
        """
        first_place, last_place = self.place_of(first), self.place_of(end - 1)
        start_element, end_element = self.order[first_place], self.order[last_place]
        start = self.tokeniser.token(self.elements[start_element].text, first - self.bounds[first_place])
        end_text = self.elements[end_element].text
        last = self.tokeniser.token(end_text, end - 1 - self.bounds[last_place])
        return start_element, start.start, end_element, last.end
