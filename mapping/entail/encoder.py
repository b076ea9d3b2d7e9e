"""Pairs of texts -> batches of numbers for a cross-encoder: premises are cut where they must be, hypotheses never."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mapping.entail.signal import Pair, Refused

Arrays = dict[str, npt.NDArray[np.int64]]
"""Inputs of a model by name, each pairs × tokens."""

_Tokens = dict[str, list[int]]
_LEAST_FILLED = 0.9
"""Length of a pair as a share of the longest in its batch: the rest of it would be padding, which costs as much."""
_LEAST_PREMISE = 1
"""Tokens of the premise that must be left."""


class GraphForm(NamedTuple):
    """What batches a graph takes.

    Attributes:
        n_pairs, n_tokens: of every batch; None for any number.
        is_quantised: as it runs, so that what comes out for a pair depends on the others in the batch.
    """

    n_pairs: int | None = None
    n_tokens: int | None = None
    is_quantised: bool = False


_ANY = GraphForm()


class Batch(NamedTuple):
    """Pairs that go through a model at once.

    Attributes:
        places: of the pairs in the list that they come from.
        arrays: padded to the longest of them, or to what the model takes; rows behind those of the places are filled
            with the last one.
    """

    places: tuple[int, ...]
    arrays: Arrays


class PairEncoder:
    """Encodes pairs with a fast tokenizer.

    Args:
        tokenizer: of transformers, a fast one: it tells where tokens stand in the text.
        max_tokens: longest pair with the marks around it.
        batch_pairs: most pairs in a batch.
        batch_tokens: most tokens in a batch, padding among them; None for as many as there are. A pair that has more
            is a batch of its own.
        form: of the batches that the model takes.
    """

    def __init__(
        self,
        tokenizer: Any,
        *,
        max_tokens: int,
        batch_pairs: int,
        batch_tokens: int | None = None,
        form: GraphForm = _ANY,
    ) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens
        self._batch_pairs = batch_pairs if form.n_pairs is None else min(batch_pairs, form.n_pairs)
        self._batch_tokens = batch_pairs * max_tokens if batch_tokens is None else batch_tokens
        if form.is_quantised:
            self._batch_tokens = 1
        self._form = form
        self._n_marks = tokenizer.num_special_tokens_to_add(pair=True)

    def encode(self, pairs: Sequence[Pair]) -> tuple[list[Batch], dict[int, Refused]]:
        """Gives batches of pairs of like length, and why pairs are in none, by place.

        The longest come first, of equal length in the order of the list, so that the batches depend on the list
        alone; little of them is padding.
        """
        refused: dict[int, Refused] = {}
        encoded: dict[int, _Tokens] = {}
        # A piece at a time: what a tokenizer gives takes much more memory than the numbers that are kept of it.
        for start in range(0, len(pairs), self._batch_pairs):
            for place, found in enumerate(self._encoded(pairs[start : start + self._batch_pairs]), start=start):
                if isinstance(found, Refused):
                    refused[place] = found
                else:
                    encoded[place] = found
        lengths = {place: len(tokens["input_ids"]) for place, tokens in encoded.items()}
        groups: list[list[int]] = []
        for place in sorted(encoded, key=lambda place: -lengths[place]):
            if groups and self._fits(lengths[place], len(groups[-1]), lengths[groups[-1][0]]):
                groups[-1].append(place)
            else:
                groups.append([place])
        return [Batch(tuple(group), self._padded([encoded[place] for place in group])) for group in groups], refused

    def _fits(self, length: int, n_pairs: int, longest: int) -> bool:
        """Says whether one more pair of that length goes into a batch of so many, the longest of which came first."""
        n_after = n_pairs + 1
        return (
            n_after <= self._batch_pairs
            and n_after * longest <= self._batch_tokens
            and length >= _LEAST_FILLED * longest
        )

    def _encoded(self, pairs: Sequence[Pair]) -> Iterator[_Tokens | Refused]:
        rows = self._tokenizer([one.premise for one in pairs], [one.hypothesis for one in pairs], verbose=False)
        for number, pair in enumerate(pairs):
            if not pair.hypothesis.strip():
                yield Refused("empty_hypothesis", "")
            elif not pair.premise.strip():
                yield Refused("empty_premise", "")
            elif len(rows["input_ids"][number]) <= self._max_tokens:
                yield {name: values[number] for name, values in rows.items()}
            else:
                yield self._cut(pair)

    def _cut(self, pair: Pair) -> _Tokens | Refused:
        """Gives the tokens of a pair that is too long: what is farthest from the core of its premise goes first."""
        n_hypothesis = len(self._tokenizer(pair.hypothesis, add_special_tokens=False, verbose=False)["input_ids"])
        n_room = self._max_tokens - self._n_marks - n_hypothesis
        if n_room < _LEAST_PREMISE:
            n_most = self._max_tokens - self._n_marks - _LEAST_PREMISE
            return Refused("hypothesis_too_long", f"{n_hypothesis} tokens; {n_most} fit")
        found = self._tokenizer(pair.premise, add_special_tokens=False, return_offsets_mapping=True, verbose=False)
        offsets: list[tuple[int, int]] = found["offset_mapping"]
        start, end = pair.core or (0, len(pair.premise))
        in_core = next((number for number, (_, stop) in enumerate(offsets) if stop > start), len(offsets) - 1)
        last = next((number for number, (begin, _) in enumerate(offsets) if begin >= end), len(offsets))
        first, last = _window(in_core, max(last, in_core + 1), n_room, len(offsets))
        # A later piece of a word is no token by itself: alone it may come out as many.
        words = found.word_ids()
        while 0 < first < in_core and words[first] == words[first - 1]:
            first += 1
        premise = pair.premise[offsets[first][0] : offsets[last - 1][1]]
        # Away from its neighbours the text may come out a token longer: the tokenizer has the last word.
        row = self._tokenizer(premise, pair.hypothesis, truncation="only_first", max_length=self._max_tokens)
        return dict(row)

    def _padded(self, rows: list[_Tokens]) -> Arrays:
        form = self._form
        filled = [*rows, *rows[-1:] * ((form.n_pairs or 0) - len(rows))]
        padding = "longest" if form.n_tokens is None else "max_length"
        padded = self._tokenizer.pad(filled, padding=padding, max_length=form.n_tokens, return_tensors="np")
        return {name: np.asarray(values, dtype=np.int64) for name, values in padded.items()}


def _window(first: int, last: int, n_room: int, n_all: int) -> tuple[int, int]:
    """Gives the tokens that stay: from the core on, else the core with as much on either side as there is.

    >>> _window(4, 6, 4, 10), _window(0, 2, 4, 10), _window(9, 10, 4, 10), _window(2, 9, 4, 10)
    ((3, 7), (0, 4), (6, 10), (2, 6))
    """
    n_free = n_room - (last - first)
    if n_free <= 0:
        return first, first + n_room
    start = min(max(0, first - n_free // 2), n_all - n_room)
    return start, start + n_room
