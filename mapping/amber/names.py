"""Names that several entities share: which of them a collection takes, and which entity is the head."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from mapping.amber.records import AmberOptions, GapScale

LEAST_GAP = 0.1
"""Source: section 3.2 of the paper, https://aclanthology.org/2021.acl-long.345."""


class Bearer(NamedTuple):
    """An entity that has a name.

    Attributes:
        item: its number.
        views: of its page.
        is_member: whether it is of a type of the collection.
    """

    item: int
    views: int
    is_member: bool


class Members(NamedTuple):
    """What a collection takes of a name.

    Attributes:
        reason: why it takes nothing: ``too_few_members``, ``small_gap``; ``no_members`` for a name that is none of its
            own; None where it takes the name.
        rows: members that it takes, each with whether it is a head; to be read once.
    """

    reason: str | None
    rows: Iterator[tuple[Bearer, bool]]


def choose_members(bearers: Iterable[Bearer], options: AmberOptions) -> Members:
    """Gives what a collection takes of a name. Memory: two bearers, however many there are.

    Args:
        bearers: all entities that have the name, the most viewed first, equal ones by number.
        options: say what the head is the most popular of, and how the gap is measured.
    """
    rows = iter(bearers)
    most_views, first, second = 0, None, None
    for row in rows:
        if row.is_member or options.head_scope == "all":
            most_views = max(most_views, row.views)
        if row.is_member:
            if first is not None:
                second = row
                break
            first = row
    if first is None or second is None:
        return Members("no_members" if first is None else "too_few_members", iter(()))
    if gap(first.views, second.views, options.gap_on) < LEAST_GAP:
        return Members("small_gap", iter(()))
    members = chain((first, second), (row for row in rows if row.is_member))
    return Members(None, ((member, member.views == most_views) for member in members))


def gap(most: int, next_most: int, scale: GapScale) -> float:
    """Gives the difference of two numbers of views by their mean; 0 where the mean is.

    >>> round(gap(100_000, 31_623, "log10"), 3), gap(3, 1, "views"), gap(1, 1, "log10")
    (0.105, 1.0, 0.0)
    """
    high, low = (math.log10(most), math.log10(next_most)) if scale == "log10" else (float(most), float(next_most))
    return (high - low) / ((high + low) / 2) if high + low else 0.0
