"""Which links become records: drawn by hashes of what the records say, apart by the pages that they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kbsource.identity import stable_sha256
from mapping.entity_linking.options import ContextOptions
from mapping.entity_linking.records import SPLITS, Context

Numbers = npt.NDArray[Any]
_HASH_BITS = 63
N_BUCKETS = 1 << 10
"""Pages are apart by these: a thousandth of them is the least that dev can have."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """What decides which links become records of which split.

    Attributes:
        train, dev: records wanted.
        seed: names what is drawn.
        context: cuts their texts.
    """

    train: int
    dev: int
    seed: str
    context: ContextOptions

    def bucket(self, page_id: int) -> int:
        """Gives the bucket of a page, a hash below ``N_BUCKETS``: those of dev are the first ones."""
        return int(stable_sha256(self.seed, "page", str(page_id))[:8], 16) * N_BUCKETS >> 32

    def key(self, context: Context, target: int) -> bytes:
        """Gives the 16 bytes by which records are drawn, the least first; those of equal records are equal."""
        return sha256("\x1f".join((self.seed, *context, str(target))).encode()).digest()[:16]


def hash_groups(batch: pa.RecordBatch, *, n_groups: int) -> npt.NDArray[np.int64]:
    """Gives the group of each row of KEYS: groups are ranges of hashes, in their order."""
    groups: npt.NDArray[np.int64] = (batch["hash"].to_numpy() >> (_HASH_BITS - 32)) * n_groups >> 32
    return groups


def distinct_keys(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Gives rows of KEYS, in ``KEY_ORDER``, without those that say what another link before them says."""
    last = np.full((1, 2), -1, np.int64)
    for batch in batches:
        hashes = np.concatenate([last, np.column_stack([batch["hash"], batch["more_hash"]])])
        last = hashes[-1:]
        yield batch.filter(pa.array((hashes[1:] != hashes[:-1]).any(axis=1)))


def rows_of(batch: pa.RecordBatch, split: str, n_dev_buckets: int) -> pa.RecordBatch:
    """Gives the rows of KEYS of one split."""
    is_dev = batch["bucket"].to_numpy() < n_dev_buckets
    return batch.filter(pa.array(is_dev if split == "dev" else ~is_dev))


class Drawn(NamedTuple):
    """What is drawn.

    Attributes:
        n_dev_buckets: buckets of pages that belong to dev.
        found: distinct keys of each split.
        groups: keys that each group gives to each split, the least hashes first, as many as are wanted.
    """

    n_dev_buckets: int
    found: dict[str, int]
    groups: list[dict[str, int]]


def draw(groups: Sequence[Numbers], sampling: Sampling) -> Drawn:
    """Draws, as many buckets for dev as give it its share of all records.

    Args:
        groups: distinct keys of every bucket in each group.
        sampling: what is wanted.

    >>> few = Sampling(2, 1, "kilt", ContextOptions())
    >>> draw([np.array([0, 1, 2, 0]), np.array([1, 0, 1, 1])], few)
    Drawn(n_dev_buckets=2, found={'train': 4, 'dev': 2}, groups=[{'train': 2, 'dev': 1}, {'train': 0, 'dev': 0}])
    """
    total = np.sum([np.zeros(N_BUCKETS, np.int64)] if not len(groups) else groups, axis=0)
    least = -(-sampling.dev * int(total.sum()) // max(1, sampling.train + sampling.dev))
    n_dev = int(np.searchsorted(np.append(0, np.cumsum(total)), least))
    left = {"train": sampling.train, "dev": sampling.dev}
    found, given = dict.fromkeys(SPLITS, 0), []
    for of_buckets in groups:
        own = {"train": int(of_buckets[n_dev:].sum()), "dev": int(of_buckets[:n_dev].sum())}
        given.append({split: min(own[split], left[split]) for split in SPLITS})
        for split in SPLITS:
            found[split] += own[split]
            left[split] -= given[-1][split]
    return Drawn(n_dev, found, given)
