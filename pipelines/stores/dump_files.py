"""The files of a dump that a release is made of: what is refused at once, and how large the pieces are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kbsource.errors import SetupError
from kbsource.files import base_name

MAX_RANGE_BYTES = 32 << 20
"""32 MiB of bzip2 are about 400 MB of Wikidata's JSON."""
MIN_RANGE_BYTES = 1 << 20
RANGES_WANTED = 32
"""Ranges that a middling dump is cut into, so that a handful of workers end at about the same time."""


def check_names(paths: Sequence[str]) -> None:
    """Finds files that reports could not tell apart.

    Raises:
        SetupError: two have the same name.
    """
    repeated = [name for name, count in Counter(map(base_name, paths)).items() if count > 1]
    if repeated:
        raise SetupError(f"{repeated[0]} is given from two folders; counts are kept by name, so rename one of them.")


def range_size(n_bytes: int) -> int:
    """Gives the bytes per range that suit a dump of that size; depends on nothing else."""
    return min(MAX_RANGE_BYTES, max(MIN_RANGE_BYTES, -(-n_bytes // RANGES_WANTED)))
