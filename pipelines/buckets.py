"""How many buckets of work make a task."""

from __future__ import annotations

from collections.abc import Sequence


def bucket_groups(counts: Sequence[int], *, least: int) -> list[list[int]]:
    """Gives the buckets of each task: neighbours, until they are worth a task; empty ones are left out.

    Args:
        counts: of rows, by bucket.
        least: rows that make a task of their own worth while.

    >>> bucket_groups([0, 300, 300, 600, 100, 0], least=500)
    [[1, 2], [3], [4]]
    """
    groups: list[list[int]] = []
    n_rows = least
    for bucket, count in enumerate(counts):
        if not count:
            continue
        if n_rows >= least:
            groups.append([])
            n_rows = 0
        groups[-1].append(bucket)
        n_rows += count
    return groups
