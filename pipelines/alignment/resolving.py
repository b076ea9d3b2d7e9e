"""Pages of evidences looked up in a release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mapping.records import PageKey
from mapping.search.resolve import Resolved, Resolver
from pipelines.alignment.rows import EVIDENCE, KEY, NOWHERE, RESOLVED, batch_rows, one_batch

_N_KEY = len(KEY)
_POSITION, _ASKED = (RESOLVED.get_field_index(name) for name in ("position", "asked"))


def resolve_rows(batches: Iterable[pa.RecordBatch], resolver: Resolver, starts: Sequence[int]) -> pa.RecordBatch:
    """Gives rows of ``EVIDENCE`` as rows of ``RESOLVED``.

    First those whose page the release does not have, by the title that was asked for, then the others in the order of
    their pages.

    Args:
        batches: of one chunk.
        resolver: looks pages up.
        starts: position of the first page of each file of the release.
    """
    rows = [_resolved(row, resolver, starts) for batch in batches for row in batch_rows(batch.select(EVIDENCE.names))]
    rows.sort(key=lambda row: row[_ASKED] or "" if row[_POSITION] == NOWHERE else "")
    rows.sort(key=itemgetter(_POSITION))
    return one_batch(rows, RESOLVED)


def _resolved(row: tuple[Any, ...], resolver: Resolver, starts: Sequence[int]) -> tuple[Any, ...]:
    kind, value, fallback_kind, fallback_value, text = row[_N_KEY : _N_KEY + 5]
    fallback = None if fallback_kind is None else PageKey(fallback_kind, fallback_value)
    found = resolver.resolve(PageKey(kind, value), fallback=fallback)
    position = page_position(found, resolver, starts)
    return (*row[:_N_KEY], position, value, *found, text, *row[_N_KEY + 5 :])


def page_position(found: Resolved, resolver: Resolver, starts: Sequence[int]) -> int:
    """Gives the number of a page among those of the release; ``NOWHERE`` where none was found."""
    if found.page_id is None:
        return NOWHERE
    shard, row = resolver.location(found.page_id)
    return starts[shard] + row


def page_groups(batch: pa.RecordBatch, *, n_pages: int, n_groups: int) -> npt.NDArray[np.int64]:
    """Gives for each row the group of its page, neighbours together; behind these a group for each part's rows
    without one."""
    positions = batch["position"].to_numpy()
    groups: npt.NDArray[np.int64] = np.where(
        positions == NOWHERE,
        n_groups + batch["part"].to_numpy().astype(np.int64),
        positions * n_groups // max(1, n_pages),
    )
    return groups
