"""Sets of items, a bit a number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mapping.qampari.facts.classes import Numbers


class ItemSet:
    """Numbers of items. Memory: a bit for each number up to the largest, 16 MB for all of Wikidata."""

    def __init__(self, bits: npt.NDArray[np.uint8] | None = None) -> None:
        self.bits = np.zeros(1, np.uint8) if bits is None else bits

    def add(self, numbers: Numbers) -> None:
        """Takes numbers."""
        if len(numbers):
            n_bytes = int(numbers.max() >> 3) + 1
            if n_bytes > len(self.bits):
                self.bits = np.pad(self.bits, (0, max(n_bytes, 2 * len(self.bits)) - len(self.bits)))
            np.bitwise_or.at(self.bits, numbers >> 3, np.uint8(1) << (numbers & 7).astype(np.uint8))

    def has(self, numbers: Numbers) -> npt.NDArray[np.bool_]:
        """Says which numbers are in it."""
        places = numbers >> 3
        is_near = places < len(self.bits)
        found = np.zeros(len(numbers), np.bool_)
        bits = (numbers[is_near] & 7).astype(np.uint8)
        found[is_near] = (self.bits[places[is_near]] >> bits) & np.uint8(1) != 0
        return found
