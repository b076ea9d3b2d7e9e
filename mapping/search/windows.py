"""Finds the best span that starts in one element of a page, with windows that slide over the tokens shared with the
evidence.

A *hit* is a token of the element that is also a token of the evidence, and a *unit* is a range of tokens in which spans
may start and end. An optimal span starts and ends at hits, and all tokens of a shared n-gram are consecutive hits. The
*product* of a span is the product, over all orders, of its number of shared n-grams.
"""

from __future__ import annotations

import math
from typing import NamedTuple

# Bounds are compared with this margin, so that rounding never drops a span that ties.
MARGIN = 1e-12


class WindowUnit(NamedTuple):
    """The tokens to search: spans start at a token in [first, start_end), and end at ``end`` or before."""

    first: int
    start_end: int
    end: int


class Grams:
    """The evidence's n-grams up to an order, as a trie over the page's token ids; also computes the score.

    Attributes:
        n_tokens: number of tokens of the evidence, Q.
        order: length of the longest n-grams, N.
        possible: Q - n + 1 for n = 1..N.
        next_node: node * n_page_ids + token id -> node; node 0 is the root.
        limits: how often the evidence contains each node's n-gram.
        lengths: each node's n, minus one.
    """

    def __init__(self, ids: list[int], *, order: int, n_page_ids: int) -> None:
        self.n_tokens = len(ids)
        self.order = order
        self.n_page_ids = n_page_ids
        self.possible = [self.n_tokens - length for length in range(order)]
        self.next_node: dict[int, int] = {}
        self.limits = [0]
        self.lengths = [0]
        self._n_possible = math.prod(self.possible)
        self._root = 1 / order
        for start in range(len(ids)):
            node = 0
            for length, token in enumerate(ids[start : start + order]):
                if token < 0:
                    break
                key = node * n_page_ids + token
                node = self.next_node.get(key, 0)
                if not node:
                    node = self.next_node[key] = len(self.limits)
                    self.limits.append(0)
                    self.lengths.append(length)
                self.limits[node] += 1

    def score(self, product: int, n_span: int) -> float:
        """Returns the BLEU of a span with this number of tokens, and with this product of the numbers of shared n-grams
        over all orders.
        """
        return math.exp(min(0.0, 1 - n_span / self.n_tokens)) * self.root(product)

    def root(self, product: int) -> float:
        """Returns the score without the length penalty."""
        return float((product / self._n_possible) ** self._root)

    def longest(self, product: int, score: float) -> int:
        """Returns how many tokens a span with that product can have and still reach the score, apart from rounding."""
        return int(self.n_tokens * (1 + math.log(self.root(product) / score)) + 1e-6)


class Hits:
    """The hits of a unit and its shared n-grams.

    Attributes:
        positions: token index of each hit.
        n_starts: number of hits at which a span may start.
        from_here: for each hit, the nodes of the shared n-grams that start there, by length from 1, without gaps.
        to_here: for each hit, the nodes of the shared n-grams that end there, in the same form.
        product: product over the orders of the number of n-grams that the whole unit shares.
    """

    def __init__(self, page_ids: list[int], unit: WindowUnit, grams: Grams) -> None:
        next_node, n_page_ids, order = grams.next_node, grams.n_page_ids, grams.order
        tokens = page_ids[unit.first : unit.end]
        self.end = unit.end
        self.positions = [position for position, token in enumerate(tokens, unit.first) if token in next_node]
        n_hits = len(self.positions)
        self.n_starts = sum(position < unit.start_end for position in self.positions)
        self.from_here: list[list[int]] = []
        self.to_here: list[list[int]] = [[] for _ in range(n_hits)]
        for index, position in enumerate(self.positions):
            node, nodes, last = 0, [], index
            offset = position - unit.first
            for token in tokens[offset : offset + order]:
                node = next_node.get(node * n_page_ids + token, 0)
                if not node:
                    break
                nodes.append(node)
                self.to_here[last].append(node)
                last += 1
            self.from_here.append(nodes)
        for nodes in self.to_here:
            nodes.reverse()
        self.product = self._whole(grams)

    def _whole(self, grams: Grams) -> int:
        room, shared = grams.limits.copy(), [0] * grams.order
        for nodes in self.from_here:
            for node in nodes:
                if room[node] > 0:
                    shared[grams.lengths[node]] += 1
                    room[node] -= 1
        return math.prod(shared)

    def slide(self, n_window: int, grams: Grams) -> list[int]:
        """Returns, for each start, the product of the window of ``n_window`` tokens. Windows are cut off at the end of
        the unit.
        """
        positions, from_here, to_here = self.positions, self.from_here, self.to_here
        room, shared, lengths = grams.limits.copy(), [0] * grams.order, grams.lengths
        n_hits, end, products, changed, product = len(positions), 0, [], True, 0
        for start in range(self.n_starts):
            limit = positions[start] + n_window
            while end < n_hits and positions[end] < limit:
                for node in to_here[end][: end - start + 1]:
                    room[node] -= 1
                    if room[node] >= 0:
                        shared[lengths[node]] += 1
                        changed = True
                end += 1
            if changed:
                product, changed = math.prod(shared), False
            products.append(product)
            for node in from_here[start][: end - start]:
                room[node] += 1
                if room[node] > 0:
                    shared[lengths[node]] -= 1
                    changed = True
        return products

    def shortest(self, product: int, grams: Grams) -> tuple[int, int]:
        """Returns the number of tokens and the first token index of the shortest span that reaches a product; ties go
        to the earliest."""
        positions, from_here, to_here = self.positions, self.from_here, self.to_here
        room, shared, lengths = grams.limits.copy(), [0] * grams.order, grams.lengths
        n_hits, end, best = len(positions), 0, (self.end + 1, 0)
        for start in range(self.n_starts):
            while math.prod(shared) < product:
                if end == n_hits:
                    return best
                for node in to_here[end][: end - start + 1]:
                    room[node] -= 1
                    if room[node] >= 0:
                        shared[lengths[node]] += 1
                end += 1
            best = min(best, (positions[end - 1] + 1 - positions[start], positions[start]))
            for node in from_here[start][: end - start]:
                room[node] += 1
                if room[node] > 0:
                    shared[lengths[node]] -= 1
        return best

    def extend(self, start: int, n_longest: int, grams: Grams) -> list[tuple[int, int]]:
        """Returns (product, tokens) of the spans from one start at which the product increases, up to a length."""
        positions, room, shared, lengths = self.positions, grams.limits.copy(), [0] * grams.order, grams.lengths
        first, found = positions[start], []
        for end in range(start, len(positions)):
            n_span = positions[end] + 1 - first
            if n_span > n_longest:
                break
            rises = False
            for node in self.to_here[end][: end - start + 1]:
                room[node] -= 1
                if room[node] >= 0:
                    shared[lengths[node]] += 1
                    rises = True
            if rises and n_span > grams.n_tokens:
                found.append((math.prod(shared), n_span))
        return found


class Best:
    """The best span so far.

    Spans of up to Q tokens all have the same penalty and are compared by their products, which are integers. Two spans
    of different lengths above Q never tie: the ratio of their penalties is transcendental, the ratio of their roots
    algebraic.
    """

    def __init__(self, grams: Grams) -> None:
        self.score = 0.0
        self.first = 0
        self.end = 0
        self._grams = grams
        self._product = 0
        self._ties: list[Hits] = []

    def offer_short(self, product: int, hits: Hits) -> None:
        """Records that a span of up to Q tokens in a unit reaches a product."""
        score = self._grams.root(product)
        if self._ties and product == self._product:
            self._ties.append(hits)
        elif (product > self._product) if self._ties else (score > self.score):
            self.score, self._product, self._ties = score, product, [hits]

    def offer_long(self, product: int, first: int, n_span: int) -> None:
        """Records a span of more than Q tokens."""
        score = self._grams.score(product, n_span)
        if not self._ties and n_span == self.end - self.first:
            better = (product, -first) > (self._product, -self.first)
        else:
            better = score > self.score
        if better:
            self.score, self._product, self._ties = score, product, []
            self.first, self.end = first, first + n_span

    def break_ties(self) -> None:
        """Chooses among units that tie: the shortest span, and the earliest of those."""
        if self._ties:
            n_span, self.first = min(hits.shortest(self._product, self._grams) for hits in self._ties)
            self.end = self.first + n_span


def offer_short(hits: Hits, grams: Grams, best: Best) -> None:
    """Offers the best spans of up to Q tokens that start in a unit, unless they are worse than the best so far."""
    if not hits.n_starts or grams.root(hits.product) < best.score * (1 - MARGIN):
        return
    if hits.positions[-1] - hits.positions[0] < grams.n_tokens:
        product = hits.product
    else:
        product = max(hits.slide(grams.n_tokens, grams))
    if product:
        best.offer_short(product, hits)


def offer_long(hits: Hits, grams: Grams, best: Best) -> None:
    """Offers the spans of more than Q tokens that are not worse than the best so far, whose score must be above zero.

    The window of the longest span that could still win bounds the score that a start can reach. That bound limits the
    length of spans further, and so on, until no start is left or the bound stops falling.
    """
    n_next = grams.n_tokens + 1
    n_longest = grams.longest(hits.product, best.score) if hits.n_starts and hits.product else 0
    starts: list[int] = []
    while n_longest >= n_next:
        products = hits.slide(n_longest, grams)
        floor = best.score * (1 - MARGIN)
        starts = [start for start, product in enumerate(products) if grams.score(product, n_next) >= floor]
        if not starts:
            return
        n_shorter = grams.longest(max(products), best.score)
        if n_shorter >= n_longest:
            break
        n_longest = n_shorter
    for start in starts:
        for product, n_span in hits.extend(start, n_longest, grams):
            best.offer_long(product, hits.positions[start], n_span)
